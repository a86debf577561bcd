use std::time::Duration;

/// The median; sorts the numbers. 0 if there are none.
///
/// ```
/// assert_eq!(fibula_testkit::measure::median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
/// ```
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        n if n % 2 == 1 => numbers[n / 2],
        n => (numbers[n / 2 - 1] + numbers[n / 2]) / 2.0,
    }
}

/// Three decimals: more would only look exact.
pub fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Million keys a second.
pub fn rate(keys: usize, time: Duration) -> f64 {
    keys as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(rounded(1.23456), 1.235);
    }
}
