//! The date in the name of a file.

use super::Moment;
use super::moment::digits;

/// The dates in a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameDate {
    /// No date.
    None,
    /// One date, perhaps repeated.
    One(Moment),
    /// Several different dates: the first two, in the order of the name.
    Several(String, String),
}

/// The date in a file's name, without its folders. Dates are
///
/// - `20240501`, also with a time behind it: `20240501.0000`, `20240501-0015`, `20240501_001530`, `20240501T0000Z`
///   and `202405010015`, `20240501001530`;
/// - `2024-05-01`, `2024_05_01`, `2024.05.01`, also with a time: `2024-05-01T00-15`, `2024-05-01_0015`,
///   `2024-05-01T00:15:30`.
///
/// Years are 1980 to 2199, everything is UTC, and no digit stands before or behind. A name with two different dates has
/// no date.
///
/// ```
/// use fibula_rib::dated::{NameDate, date_of_name};
/// let date = |text: &str| NameDate::One(text.parse().unwrap());
/// assert_eq!(date_of_name("rib.20240501.0000.bz2"), date("2024-05-01"));
/// assert_eq!(date_of_name("bview.20240501.0800.gz"), date("2024-05-01T08:00:00Z"));
/// assert_eq!(date_of_name("asn-2024-05-01-v4.csv"), date("2024-05-01"));
/// assert_eq!(date_of_name("routes.csv"), NameDate::None);
/// assert!(matches!(date_of_name("20240501-20240531.csv"), NameDate::Several(..)));
/// ```
pub fn date_of_name(name: &str) -> NameDate {
    let bytes = name.as_bytes();
    let mut first: Option<(Moment, &str)> = None;
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit());
        let Some((moment, len)) = begins.then(|| date_at(&bytes[at..])).flatten() else {
            at += 1;
            continue;
        };
        // The match begins and ends with a digit, so its ends are character boundaries.
        let text = name.get(at..at + len).unwrap_or_default();
        match first {
            Some((other, found)) if other != moment => {
                return NameDate::Several(found.to_owned(), text.to_owned());
            }
            _ => first = Some((moment, text)),
        }
        at += len;
    }
    first.map_or(NameDate::None, |(moment, _)| NameDate::One(moment))
}

/// The date that the text begins with, and its length.
fn date_at(text: &[u8]) -> Option<(Moment, usize)> {
    let run = run(text);
    let (day, len) = match run {
        8 => (day(&text[..4], &text[4..6], &text[6..8])?, 8),
        12 | 14 => {
            let day = day(&text[..4], &text[4..6], &text[6..8])?;
            return Some((at_clock(day, &text[8..run])?, run));
        }
        4 => {
            let [separator @ (b'-' | b'_' | b'.'), m1, m2, other, d1, d2, rest @ ..] = &text[4..]
            else {
                return None;
            };
            if separator != other || rest.first().is_some_and(u8::is_ascii_digit) {
                return None;
            }
            (day(&text[..4], &[*m1, *m2], &[*d1, *d2])?, 10)
        }
        _ => return None,
    };
    let clock =
        clock(&text[len..]).and_then(|(clock, more)| Some((at_clock(day, &clock)?, len + more)));
    Some(clock.unwrap_or((day, len)))
}

/// Number of digits at the beginning of the text.
fn run(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

fn day(year: &[u8], month: &[u8], day: &[u8]) -> Option<Moment> {
    let year = digits(year).filter(|year| (1980..2200).contains(year))?;
    Moment::of_day(year, digits(month)?, digits(day)?)
}

/// Hours, minutes and perhaps seconds behind a separator, as digits alone; and how long it is.
fn clock(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let [b'.' | b'-' | b'_' | b'T' | b't' | b' ', rest @ ..] = text else { return None };
    match run(rest) {
        len @ (4 | 6) => Some((rest[..len].to_vec(), 1 + len)),
        2 => {
            // Two digits alone are something else, such as the number of a part.
            let separator = *rest.get(2).filter(|byte| b":-".contains(byte))?;
            if run(&rest[3..]) != 2 {
                return None;
            }
            let mut found = [&rest[..2], &rest[3..5]].concat();
            let mut len = 1 + 5;
            if rest.get(5) == Some(&separator) && run(&rest[6..]) == 2 {
                found.extend_from_slice(&rest[6..8]);
                len += 3;
            }
            Some((found, len))
        }
        _ => None,
    }
}

/// The time of a day that four or six digits are.
fn at_clock(day: Moment, clock: &[u8]) -> Option<Moment> {
    let part = |at: usize| clock.get(at..at + 2).map_or(Some(0), digits);
    let (hour, minute, second) = (part(0)?, part(2)?, part(4)?);
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then(|| Moment::from_unix(day.unix() + i64::from(hour * 3600 + minute * 60 + second)))
}
