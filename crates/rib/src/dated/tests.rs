//! Times as they are written, and dates in names.

use proptest::prelude::*;

use super::{Moment, NameDate, TimeFormat, date_of_name};

fn at(text: &str) -> Moment {
    text.parse().unwrap()
}

/// Against dates worked out elsewhere (`date -u -d ... +%s`).
#[test]
fn days_are_counted() {
    for (text, seconds) in [
        ("1970-01-01", 0),
        ("1969-12-31", -86_400),
        ("2000-02-29", 951_782_400),
        ("2024-02-29", 1_709_164_800),
        ("2024-03-01", 1_709_251_200),
        ("1900-03-01", -2_203_891_200),
        ("0001-01-01", -62_135_596_800),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ] {
        assert_eq!(at(text).unix(), seconds, "{text}");
        assert_eq!(at(text).to_string(), text);
    }
}

#[test]
fn zones_and_fractions() {
    let noon = at("2024-05-01T12:00:00Z");
    for text in [
        "2024-05-01 12:00",
        "2024-05-01t12:00z",
        "2024-05-01T12:00:00.999999Z",
        "2024-05-01T12:00:00,5",
        "2024-05-01 12:00:00 UTC",
        "2024-05-01T14:00+02",
        "2024-05-01T14:00:00+0200",
        "2024-05-01 14:00:00 +02:00",
        "2024-05-02T00:00:00+12:00",
        "2024-05-01T06:30:00-05:30",
        " 2024-05-01T12:00:00Z\n",
        "1714564800.999",
    ] {
        assert_eq!(Moment::parse(text.as_bytes()), Some(noon), "{text}");
    }
    assert_eq!(Moment::parse(b"2016-12-31T23:59:60Z"), Moment::parse(b"2016-12-31T23:59:59Z"));
    // Towards the past, before 1970 too.
    assert_eq!(Moment::parse(b"-0.5"), Some(Moment::from_unix(-1)));
    assert_eq!(Moment::parse(b"-1.0"), Some(Moment::from_unix(-1)));
}

#[test]
fn invalid_times() {
    for text in [
        "",
        " ",
        "-",
        ".",
        "2024",
        "202405",
        "2024-5-1",
        "2024-13-01",
        "2023-02-29",
        "1900-02-29",
        "2024-05-01T",
        "2024-05-01T1",
        "2024-05-01T24:00",
        "2024-05-01T12:60",
        "2024-05-01T12:00:61",
        "2024-05-01T12:00:00.",
        "2024-05-01T12:00:00+",
        "2024-05-01T12:00:00+2",
        "2024-05-01T12:00:00+24:00",
        "2024-05-01T12:00:00 CET",
        "2024-05-01x",
        "2024/05/01",
        "10.0.0.1",
        "12a",
        "1e9",
        "+1",
        "0000-01-01",
        "99999999999999999999",
        "１７１４５６４８００",
    ] {
        let found = Moment::parse(text.as_bytes());
        // Numbers with few digits are read as seconds.
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        assert_eq!(found.is_some(), is_number && text.len() < 20, "{text:?}: {found:?}");
    }
}

#[test]
fn units_follow_from_the_size() {
    let noon = at("2024-05-01T12:00:00Z");
    for (format, text) in [
        ("s", "1714564800"),
        ("ms", "1714564800999"),
        ("us", "1714564800999999"),
        ("ns", "1714564800999999999"),
        ("rfc3339", "2024-05-01T12:00:00Z"),
    ] {
        let format: TimeFormat = format.parse().unwrap();
        assert_eq!(format.parse(text.as_bytes()), Some(noon), "{text}");
        assert_eq!(TimeFormat::Auto.parse(text.as_bytes()), Some(noon), "{text}");
    }
    assert_eq!(TimeFormat::Text.parse(b"1714564800"), None);
    assert_eq!(TimeFormat::Seconds.parse(b"20240501"), Some(Moment::from_unix(20_240_501)));
    assert_eq!(TimeFormat::Auto.parse(b"20240501"), Some(at("2024-05-01")));
    assert_eq!(TimeFormat::Auto.parse(b"20241301"), Some(Moment::from_unix(20_241_301)));
    // Numbers are read by their digits, without rounding.
    for (text, number) in [
        ("20240501", 20_240_501.0),
        ("20240501.0", 20_240_501.0),
        ("20240501.5", 20_240_501.5),
        ("20241301", 20_241_301.0),
        ("9999999", 9_999_999.0),
        ("100000101", 100_000_101.0),
        ("-20240501", -20_240_501.0),
        ("-20240501.5", -20_240_501.5),
    ] {
        let parsed = TimeFormat::Auto.parse(text.as_bytes());
        assert_eq!(TimeFormat::Auto.fraction(number), parsed, "{text}");
        if number.fract() == 0.0 {
            assert_eq!(TimeFormat::Auto.number(number as i64), parsed, "{text}");
        }
    }
    assert_eq!(TimeFormat::Auto.number(20_240_501), Some(at("2024-05-01")));
    assert_eq!(TimeFormat::Auto.parse(b"20240501.5"), Some(Moment::from_unix(20_240_501)));
    assert_eq!(TimeFormat::Seconds.number(20_240_501), Some(Moment::from_unix(20_240_501)));
    for number in [f64::NAN, f64::INFINITY, 1e19, -1e19] {
        assert_eq!(TimeFormat::Auto.fraction(number), None, "{number}");
    }
    // The year 5138 as seconds is no time; one more is 1973 in milliseconds.
    let edge = 100_000_000_000;
    assert_eq!(TimeFormat::Auto.number(edge - 1), None);
    assert_eq!(TimeFormat::Seconds.number(edge - 1), Some(Moment::from_unix(edge - 1)));
    assert_eq!(TimeFormat::Auto.number(edge), Some(Moment::from_unix(edge / 1000)));
    // The first second of 2200, and the last one before it.
    let far = 7_258_118_400;
    assert_eq!(TimeFormat::Auto.number(far - 1), Some(Moment::from_unix(far - 1)));
    assert_eq!(TimeFormat::Auto.number(far), None);
    assert_eq!(TimeFormat::Auto.number(20_240_501_123_000), Some(at("2024-05-01T12:30:00Z")));
    assert!("days".parse::<TimeFormat>().is_err());
}

#[test]
fn dates_in_names() {
    for (name, date) in [
        ("rib.20240501.0000.bz2", "2024-05-01"),
        ("bview.20240501.0800.gz", "2024-05-01T08:00:00Z"),
        ("2024-05-01.csv", "2024-05-01"),
        ("2024-05-01T00:15:30.csv", "2024-05-01T00:15:30Z"),
        ("2024-05-01T00-15.csv", "2024-05-01T00:15:00Z"),
        ("2024_05_01_0015-asn.csv.gz", "2024-05-01T00:15:00Z"),
        ("20240501-asn.csv.gz", "2024-05-01"),
        ("20240501_001530.mrt", "2024-05-01T00:15:30Z"),
        ("20240501T0015Z.csv", "2024-05-01T00:15:00Z"),
        ("202405010015.csv", "2024-05-01T00:15:00Z"),
        ("asn2024.05.01v4", "2024-05-01"),
        ("pch-20151023-as3856-v4-fib.tsv.xz", "2015-10-23"),
        ("20240501-20240501.csv", "2024-05-01"),
        ("20240501-01.csv", "2024-05-01"),
    ] {
        assert_eq!(date_of_name(name), NameDate::One(at(date)), "{name}");
    }
    for name in [
        "",
        "routes.csv",
        "2024.csv",
        "2024-05.csv",
        "12345678.csv",
        "20241301.csv",
        "2024-05-011.csv",
        "120240501.csv",
        "20240501120.csv",
        "2024-05_01.csv",
        "as64500.csv",
    ] {
        assert_eq!(date_of_name(name), NameDate::None, "{name}");
    }
    let several = NameDate::Several("20240501".into(), "2024-05-31".into());
    assert_eq!(date_of_name("from-20240501-to-2024-05-31.csv"), several);
}

proptest! {
    #[test]
    fn moments_read_back(seconds in -62_135_596_800i64..253_402_300_800) {
        let moment = Moment::from_unix(seconds);
        prop_assert_eq!(Moment::parse(moment.to_string().as_bytes()), Some(moment));
    }

    #[test]
    fn nothing_panics(text in "[0-9TZ:+. \\-_]{0,30}", bytes in proptest::collection::vec(any::<u8>(), 0..30), name: String, number: i64) {
        let _ = (Moment::parse(text.as_bytes()), Moment::parse(&bytes), date_of_name(&text), date_of_name(&name));
        for format in ["s", "ms", "us", "ns"] {
            let format: TimeFormat = format.parse().unwrap();
            prop_assert!(format.number(number).is_some());
        }
        // Only a time far ahead is none.
        let found = TimeFormat::Auto.number(number);
        prop_assert!(found.map_or(number > 0, |time| time < Moment::from_unix(7_258_118_400)));
    }
}
