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

/// The arithmetic mean; 0 of none.
pub fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// Half of the 95 % confidence interval of the mean, by Student's distribution: the numbers are taken as independent
/// and normally distributed. `None` of fewer than two.
pub fn confidence(numbers: &[f64]) -> Option<f64> {
    let freedom = numbers.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / numbers.len() as f64).sqrt();
    Some(student(freedom) * error)
}

/// The 97.5 % quantile of Student's distribution; its expansion for many degrees is exact to three decimals.
fn student(freedom: usize) -> f64 {
    const FEW: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let n = freedom as f64;
    let many = 1.95996 + 2.37227 / n + 2.82250 / n.powi(2) + 2.55585 / n.powi(3);
    FEW.get(freedom - 1).copied().unwrap_or(many)
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

    #[test]
    fn confidence_intervals() {
        assert_eq!((mean(&[]), mean(&[1.0, 2.0, 6.0])), (0.0, 3.0));
        assert_eq!((confidence(&[]), confidence(&[5.0])), (None, None));
        // A deviation of 1 of three numbers: 4.303 / sqrt(3).
        assert_eq!(confidence(&[1.0, 2.0, 3.0]).map(rounded), Some(2.484));
        assert_eq!(confidence(&[7.0; 9]), Some(0.0));
        // From tables: 2.0796 for 21 degrees, 2.0003 for 60, 1.9623 for 1,000.
        assert_eq!([21, 60, 1000].map(|n| rounded(student(n))), [2.080, 2.000, 1.962]);
    }
}
