//! Times in RFC 3339.

use std::time::{Duration, SystemTime};

/// `2026-11-22T15:04:05.678Z`; times before 1970 are 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, of_day) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let ms = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a number of days after 1970-01-01. Years begin in March here: then the leap day is the last
/// one of a year, and the months' lengths repeat every five months.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// The microseconds since 1970 of a time that [`rfc3339`] wrote.
pub(crate) fn micros(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, between: char| {
        let mut parts = text.split(between).map(|part| part.parse::<u64>().ok());
        let [first, second] = [parts.next()??, parts.next()??];
        Some((first, second, parts.next()))
    };
    let (year, month, day) = numbers(date, '-')?;
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let (hour, minute, second) = numbers(whole, ':')?;
    let (day, second) = (day??, second??);
    let micros = format!("{part:0<6}").get(..6)?.parse::<u64>().ok()?;
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && year < 10_000;
    if !is_time || year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // As in `date`, years begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `date -u -d @SECONDS`.
    #[test]
    fn times_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
            assert_eq!(micros(text), Some(seconds * 1_000_000));
        }
        assert_eq!(micros("1970-01-01T00:00:01.5Z"), Some(1_500_000));
        for text in
            ["", "1970-01-01", "1969-12-31T23:59:59Z", "1970-13-01T00:00:00Z", "x-01-01T00:00:00Z"]
        {
            assert_eq!(micros(text), None, "{text}");
        }
        let half = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
        assert_eq!(rfc3339(half), "1970-01-01T00:00:01.500Z");
    }
}
