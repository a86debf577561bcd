//! Durations as text, and the parts of a time in names of files.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_rib::Moment;

/// Seconds of a day.
pub(crate) const DAY: u64 = 86_400;

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    seconds(SystemTime::now())
}

/// Seconds since 1970; 0 for times before.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Parses `90`, `90s`, `15m`, `8h`, `1d`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(fibula_fetch::parse_duration("8h"), Ok(Duration::from_secs(28_800)));
/// assert!(fibula_fetch::parse_duration("soon").is_err());
/// ```
///
/// # Errors
/// The forms of durations, if the text has none of them.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    const FORMS: &str = "a duration is a number of seconds, or one such as 90s, 15m, 8h, 1d";
    let unit = match text.bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => DAY,
        _ => 0,
    };
    let (digits, unit) = if unit == 0 { (text, 1) } else { (&text[..text.len() - 1], unit) };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORMS);
    }
    let seconds = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or(FORMS)
}

/// The names of the parts of a time in a pattern.
const PARTS: [&str; 5] = ["{year}", "{month}", "{day}", "{hour}", "{minute}"];

/// Whether a pattern has the time of a table.
pub(crate) fn is_dated(pattern: &str) -> bool {
    PARTS.iter().any(|part| pattern.contains(part))
}

/// The pattern with the parts of this time, UTC.
pub(crate) fn fill(pattern: &str, at: Moment) -> String {
    // 2024-05-01, or 2024-05-01T12:30:00Z.
    let text = at.to_string();
    let part = |from: usize, to: usize, otherwise: &str| {
        text.get(from..to).unwrap_or(otherwise).to_owned()
    };
    let values =
        [part(0, 4, ""), part(5, 7, ""), part(8, 10, ""), part(11, 13, "00"), part(14, 16, "00")];
    let mut filled = pattern.to_owned();
    for (name, value) in PARTS.iter().zip(&values) {
        filled = filled.replace(name, value);
    }
    filled
}

/// The times of the newest tables before `now`, newest first, of a source with a table each `every` seconds. Tables of
/// days and longer begin at no common time, so `now` itself is the first of them.
pub(crate) fn newest(now: u64, every: u64, count: u64) -> impl Iterator<Item = Moment> {
    let every = every.max(60);
    let base = if every < DAY { now - now % every } else { now };
    (0..count).map(move |number| {
        let at = base.saturating_sub(number * every);
        Moment::from_unix(i64::try_from(at).unwrap_or(i64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in
            [("0", 0), ("90", 90), ("90s", 90), ("15m", 900), ("8h", 28_800), ("2d", 172_800)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "h", "-1", "1w", "1.5h", "99999999999999999999d", "é"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns() {
        let at: Moment = "2026-11-28T13:30:00Z".parse().unwrap();
        let pattern = "{year}.{month}/rib.{year}{month}{day}.{hour}{minute}.bz2";
        assert_eq!(fill(pattern, at), "2026.11/rib.20261128.1330.bz2");
        let midnight: Moment = "2026-01-02".parse().unwrap();
        assert_eq!(fill(pattern, midnight), "2026.01/rib.20260102.0000.bz2");
        let now = u64::try_from(at.unix()).unwrap();
        let texts: Vec<_> =
            newest(now, 7200, 3).map(|at| fill("{day}.{hour}{minute}", at)).collect();
        assert_eq!(texts, ["28.1200", "28.1000", "28.0800"]);
        let months: Vec<_> =
            newest(now, 28 * DAY, 2).map(|at| fill("{year}-{month}", at)).collect();
        assert_eq!(months, ["2026-11", "2026-10"]);
        assert!(newest(100, 7200, 3).count() == 3);
    }
}
