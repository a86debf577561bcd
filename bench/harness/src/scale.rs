//! Axes of pictures: where a value is, which values are marked, and how a number is written.

/// An axis from its first to its last value.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    /// From `from` to `to`, which differ.
    pub fn new(from: f64, to: f64, is_log: bool) -> Self {
        Self { from, to: if to > from { to } else { from + 1.0 }, is_log }
    }

    /// Around values, with `margin` of the axis on either side.
    pub fn around(values: impl Iterator<Item = f64>, is_log: bool, margin: f64) -> Self {
        let place = |value: f64| if is_log { value.log10() } else { value };
        let (low, high) = values
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = (place(low), place(high));
        // A single value is in the middle.
        let margin = if high > low { (high - low) * margin } else { 0.5 };
        let value = |place: f64| if is_log { 10f64.powf(place) } else { place };
        Self { from: value(low - margin), to: value(high + margin), is_log }
    }

    /// Where a value is: 0 at the begin of the axis, 1 at its end.
    pub fn share(self, value: f64) -> f64 {
        let place = |value: f64| if self.is_log { value.log10() } else { value };
        (place(value) - place(self.from)) / (place(self.to) - place(self.from))
    }

    /// At most `most` round values, or where it is logarithmic about as many.
    pub fn ticks(self, most: usize) -> Vec<f64> {
        if self.is_log {
            return self.log_ticks(most);
        }
        let steps =
            (0..).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power - 9)));
        let step = steps.into_iter().find(|step| (self.to - self.from) / step <= most as f64);
        let step = step.unwrap_or(f64::MAX);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }

    /// Powers of ten, and their multiples by 2 and 5, or all multiples, where there is room.
    fn log_ticks(self, most: usize) -> Vec<f64> {
        let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let digits: [&[f64]; 3] =
            [&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], &[1.0, 2.0, 5.0], &[1.0]];
        let of = |digits: &[f64]| -> Vec<f64> {
            let all = powers
                .clone()
                .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            all.filter(|value| (self.from..=self.to).contains(value)).collect()
        };
        let all = digits.map(of);
        let fits = all.iter().position(|ticks| ticks.len() <= most).unwrap_or(all.len() - 1);
        if all[fits].len() < 3 {
            // Too few of them are on a short axis.
            return Self { is_log: false, ..self }.ticks(most);
        }
        all[fits].clone()
    }
}

/// At most three digits, with k, M or G; whole numbers of up to four digits, such as years, as they are.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e4 {
        return format!("{value}");
    }
    // 999.6 is 1k: rounded first.
    let unit = 10f64.powi(value.abs().log10().floor() as i32 - 2);
    let value = (value / unit).round() * unit;
    let (value, suffix) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        // Numbers of four digits are read as such.
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.0125, "0.0125"),
            (1.0, "1"),
            (1.456, "1.46"),
            (12.5, "12.5"),
            (718.4, "718"),
            (2013.0, "2013"),
            (6963.4, "6960"),
            (9999.6, "10k"),
            (262_144.0, "262k"),
            (1_000_000.0, "1M"),
            (4_194_304.0, "4.19M"),
            (3.4e9, "3.4G"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn ticks_are_round_and_on_the_axis() {
        assert_eq!(Scale::new(0.0, 110.0, false).ticks(8), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::new(0.9, 1100.0, true).ticks(5), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(Scale::new(0.9, 60.0, true).ticks(8), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::new(45.0, 95.0, true).ticks(8), [50.0, 60.0, 80.0]);
        assert_eq!(
            Scale::new(4.1, 4.9, true).ticks(8),
            [4.2, 4.4, 4.6, 4.8].map(|at: f64| (at / 0.2).round() * 0.2)
        );
        assert_eq!(Scale::new(0.0, 0.0, false).ticks(4), [0.0, 0.5, 1.0]);
    }

    #[test]
    fn shares_are_linear_or_of_logarithms() {
        assert_eq!(Scale::new(0.0, 10.0, false).share(2.5), 0.25);
        assert_eq!(Scale::new(1.0, 100.0, true).share(10.0), 0.5);
        let around = Scale::around([4.0].into_iter(), false, 0.1);
        assert_eq!(around.share(4.0), 0.5);
    }
}
