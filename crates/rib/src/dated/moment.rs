//! Points in time, and their text forms.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const DAY: i64 = 86_400;

/// The beginning of the year 2200. Numbers beyond have another meaning than a time since 1970.
const FAR_AHEAD: Moment = Moment(7_258_118_400);

/// A point in time: seconds since 1970, UTC. Fractions of seconds are cut off, towards the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(i64);

impl Moment {
    /// The years 1 to 9999, which have a text.
    pub(crate) const RANGE: RangeInclusive<Self> = Self(-62_135_596_800)..=Self(253_402_300_799);

    /// The moment this number of seconds after the beginning of 1970, UTC.
    pub const fn from_unix(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since the beginning of 1970, UTC.
    pub const fn unix(self) -> i64 {
        self.0
    }

    /// The beginning of a day; `None` if the day is not in the (proleptic Gregorian) calendar.
    pub fn of_day(year: u32, month: u32, day: u32) -> Option<Self> {
        let is_leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let is_day = (1..=9999).contains(&year) && (1..=days).contains(&day);
        is_day.then(|| {
            // Years that begin in March have their leap day at the end (Howard Hinnant, days_from_civil).
            let (year, month) = (i64::from(year) - i64::from(month <= 2), i64::from(month));
            let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
            let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
            let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
            Self((days - 719_468) * DAY)
        })
    }

    /// Parses a time as text or number, like [`TimeFormat::Auto`].
    ///
    /// ```
    /// use fibula_rib::Moment;
    /// let noon = Moment::from_unix(1_714_564_800);
    /// for text in [
    ///     "2024-05-01T12:00:00Z", "2024-05-01 12:00:00", "2024-05-01T14:00:00.25+02:00", "2024-05-01 12:00",
    ///     "1714564800", "1714564800.25", "1714564800123", "1714564800123456", "1714564800123456789",
    ///     "20240501120000", "01/May/2024:14:00:00 +0200", "[01/May/2024:12:00:00 +0000]",
    /// ] {
    ///     assert_eq!(Moment::parse(text.as_bytes()), Some(noon), "{text}");
    /// }
    /// assert_eq!(Moment::parse(b"20240501"), Moment::parse(b"2024-05-01"));
    /// assert_eq!(noon.to_string(), "2024-05-01T12:00:00Z");
    /// assert_eq!(Moment::parse(b"1 May 2024"), None);
    /// assert_eq!(Moment::parse(b"99999999999"), None); // the year 5138
    /// ```
    pub fn parse(text: &[u8]) -> Option<Self> {
        TimeFormat::Auto.parse(text)
    }

    /// A time of this day, which begins at `self`. A leap second counts as the last one of its minute.
    fn at_clock(self, hour: u32, minute: u32, second: u32) -> Option<Self> {
        let is_clock = hour < 24 && minute < 60 && second <= 60;
        is_clock.then(|| Self(self.0 + i64::from(hour * 3600 + minute * 60 + second.min(59))))
    }

    /// Years, months and days, and the seconds of the day.
    fn civil(self) -> (i64, u32, u32, u32) {
        let (days, seconds) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + i64::from(month <= 2);
        (year, month as u32, day as u32, seconds as u32)
    }
}

impl fmt::Display for Moment {
    /// `2024-05-01`, or `2024-05-01T12:30:00Z` if it is not the beginning of a day.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, seconds) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")?;
        match seconds {
            0 => Ok(()),
            s => write!(f, "T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60),
        }
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    /// As [`Moment::parse`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text.as_bytes()).ok_or(
            "a time is 2024-05-01, 2024-05-01T12:00:00Z (UTC without a zone) or seconds since 1970",
        )
    }
}

/// The format of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Text (see [`TimeFormat::Text`]) or a number since 1970. The unit of a number follows from its size: below
    /// 10^11 seconds, below 10^14 milliseconds, below 10^17 microseconds, else nanoseconds. Exactly eight digits that
    /// form a date (`20240501`, `20240501.0`), and fourteen that form a date and a time (`20240501123000`), are read as
    /// these. A number whose time would be after the year 2200 is not a time.
    #[default]
    Auto,
    /// A relaxed RFC 3339: `2024-05-01`, then a `T` or a space and `12:00`, `12:00:00` or `12:00:00.5`, then `Z`,
    /// `+02:00`, `+0200`, `+02`, or nothing for UTC. Also the form of access logs, `[01/May/2024:12:00:00 +0200]`, with
    /// or without the brackets.
    Text,
    /// Seconds since 1970, also with a fraction.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// Microseconds since 1970.
    Micros,
    /// Nanoseconds since 1970.
    Nanos,
}

impl FromStr for TimeFormat {
    type Err = &'static str;

    /// `auto`, `rfc3339`, `s`, `ms`, `us` or `ns`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "rfc3339" => Self::Text,
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return Err("times are auto, rfc3339, s, ms, us or ns"),
        })
    }
}

impl TimeFormat {
    /// Parses a time. Blanks around it are ignored.
    pub fn parse(self, text: &[u8]) -> Option<Moment> {
        let text = text.trim_ascii();
        let is_text = text.get(4) == Some(&b'-');
        let is_log = matches!(text, [b'[', ..] | [_, _, b'/', ..]);
        match self {
            Self::Text | Self::Auto if is_log => log_text(text),
            Self::Text => self::text(text),
            Self::Auto if is_text => self::text(text),
            Self::Auto if text.len() == 8 => {
                date_of_digits(text).or_else(|| number(text).and_then(|n| self.decimal(n)))
            }
            _ => number(text).and_then(|n| self.decimal(n)),
        }
    }

    /// Converts a whole number to a time, as its digits are read. Not possible with [`TimeFormat::Text`].
    #[inline]
    pub fn number(self, number: i64) -> Option<Moment> {
        if self != Self::Auto {
            return self.since_1970(number);
        }
        let (date, clock) = match number {
            10_000_000..100_000_000 => (number, 0),
            // As milliseconds, these would be times after the year 2286.
            10_000_000_000_000..100_000_000_000_000 => (number / 1_000_000, number % 1_000_000),
            _ => (0, 0),
        };
        // The numbers have at most eight digits here.
        let (date, clock) = (date as u32, clock as u32);
        let day = Moment::of_day(date / 10_000, date / 100 % 100, date % 100);
        let of_digits =
            day.and_then(|day| day.at_clock(clock / 10_000, clock / 100 % 100, clock % 100));
        of_digits.or_else(|| self.since_1970(number).filter(|time| *time < FAR_AHEAD))
    }

    /// Converts a number with or without a fraction to a time, as its digits are read. Not possible with
    /// [`TimeFormat::Text`], and for numbers beyond those of 64 bits.
    pub fn fraction(self, number: f64) -> Option<Moment> {
        let floor = number.floor();
        let is_in_range = floor >= i64::MIN as f64 && floor < i64::MAX as f64;
        let decimal = Decimal { floor: floor as i64, is_whole: floor == number };
        if is_in_range { self.decimal(decimal) } else { None }
    }

    /// A date has no fraction.
    fn decimal(self, Decimal { floor, is_whole }: Decimal) -> Option<Moment> {
        if is_whole {
            return self.number(floor);
        }
        self.since_1970(floor).filter(|time| self != Self::Auto || *time < FAR_AHEAD)
    }

    fn since_1970(self, number: i64) -> Option<Moment> {
        let unit = match self {
            Self::Text => return None,
            Self::Auto => match number.unsigned_abs() {
                0..100_000_000_000 => 1,
                100_000_000_000..100_000_000_000_000 => 1_000,
                100_000_000_000_000..100_000_000_000_000_000 => 1_000_000,
                _ => 1_000_000_000,
            },
            Self::Seconds => 1,
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        };
        Some(Moment(number.div_euclid(unit)))
    }
}

/// A decimal number.
struct Decimal {
    /// Its fraction is cut off, towards the past.
    floor: i64,
    /// Whether its fraction is zero.
    is_whole: bool,
}

/// `20240501`.
pub(super) fn date_of_digits(text: &[u8]) -> Option<Moment> {
    let text: &[u8; 8] = text.try_into().ok()?;
    Moment::of_day(digits(&text[..4])?, digits(&text[4..6])?, digits(&text[6..])?)
}

/// Parses a decimal number.
fn number(text: &[u8]) -> Option<Decimal> {
    let (whole, fraction) = match memchr_dot(text) {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b""[..]),
    };
    let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let (is_negative, digits) = match whole {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !is_number(digits) || !is_number(fraction) {
        return None;
    }
    let mut floor: i64 = 0;
    for digit in digits {
        floor = floor.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    let is_whole = fraction.iter().all(|&digit| digit == b'0');
    if is_negative {
        floor = -floor - i64::from(!is_whole);
    }
    Some(Decimal { floor, is_whole })
}

fn memchr_dot(text: &[u8]) -> Option<usize> {
    text.iter().position(|&byte| byte == b'.')
}

/// A few digits; `None` if there is anything else, or nothing.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 9 {
        return None;
    }
    text.iter().try_fold(0, |number: u32, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u32::from(digit))
    })
}

/// `2024-05-01T12:00:00+02:00`, of which only the date must be there.
fn text(text: &[u8]) -> Option<Moment> {
    let (date, rest) = text.split_at_checked(10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let day = Moment::of_day(digits(&date[..4])?, digits(&date[5..7])?, digits(&date[8..])?)?;
    let rest = match rest {
        [] => return Some(day),
        [b'T' | b't' | b' ', rest @ ..] => rest,
        _ => return None,
    };
    let (clock, rest) = rest.split_at_checked(5)?;
    let (hour, minute) = (digits(&clock[..2])?, digits(&clock[3..])?);
    let (second, rest) = match rest {
        [b':', tens, ones, rest @ ..] => (digits(&[*tens, *ones])?, fraction(rest)?),
        rest => (0, rest),
    };
    let time = day.at_clock(hour, minute, second).filter(|_| clock[2] == b':')?;
    Some(Moment(time.0 - i64::from(zone(rest)?)))
}

/// `02/Feb/2024:13:00:00 +0100`, with or without brackets, as web servers write it.
fn log_text(text: &[u8]) -> Option<Moment> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    let (moment, rest) = text.split_at_checked(20)?;
    let signs = [2, 6, 11, 14, 17].map(|at| moment[at]);
    let month = MONTHS.chunks(3).position(|name| *name == moment[3..6])? as u32 + 1;
    let number = |from: usize| digits(&moment[from..from + 2]);
    let day = Moment::of_day(digits(&moment[7..11])?, month, number(0)?)?;
    let time =
        day.at_clock(number(12)?, number(15)?, number(18)?).filter(|_| signs == *b"//:::")?;
    Some(Moment(time.0 - i64::from(zone(fraction(rest)?)?)))
}

/// The text after a fraction of a second; `None` if it has no digits.
fn fraction(rest: &[u8]) -> Option<&[u8]> {
    let [b'.' | b',', digits @ ..] = rest else { return Some(rest) };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    (end > 0).then(|| &digits[end..])
}

/// The seconds that a zone is ahead of UTC.
fn zone(text: &[u8]) -> Option<i32> {
    let (sign, offset) = match text.trim_ascii_start() {
        [] | b"Z" | b"z" | b"UTC" => return Some(0),
        [b'+', offset @ ..] => (1, offset),
        [b'-', offset @ ..] => (-1, offset),
        _ => return None,
    };
    let (hours, minutes) = match offset {
        [_, _] => (offset, &b"00"[..]),
        [_, _, b':', _, _] => (&offset[..2], &offset[3..]),
        [_, _, _, _] => offset.split_at(2),
        _ => return None,
    };
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours < 24 && minutes < 60).then(|| sign * (hours * 3600 + minutes * 60) as i32)
}
