//! The tables of several dates, against one separate table for each date.

use std::net::IpAddr;

use fibula_core::{Addr, AnyPrefix, Hop, Prefix, Route, Routes, Value};
use fibula_fib::{DatedFib, EngineChoice, FibOptions, Pod};
use fibula_rib::{
    ColumnKind, ColumnsBuilder, DatedBuilder, DatedSnapshot, Dates, EnginePart, Moment, Table,
    TableError,
};
use fibula_testkit::probes;
use proptest::prelude::*;

/// Nested, of both families, with the whole space and both ends of it.
const PREFIXES: [&str; 20] = [
    "0.0.0.0/0",
    "0.0.0.0/1",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "10.0.0.0/9",
    "10.128.0.0/9",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.2.0/32",
    "10.1.2.3/32",
    "128.0.0.0/1",
    "192.0.2.0/24",
    "255.255.255.255/32",
    "::/0",
    "2000::/3",
    "2001:db8::/32",
    "2001:db8:1::/48",
    "2001:db8::/128",
    "2001:db8:1::1/128",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
];

/// Seconds since the table before, and the value of each prefix that is there.
type Day = (i64, Vec<Option<u64>>);

fn days() -> impl Strategy<Value = Vec<Day>> {
    // Prefixes come, stay and go in runs, as they do in tables of days that follow each other.
    let value = prop_oneof![2 => Just(None), 3 => (0u64..3).prop_map(Some)];
    let day = proptest::collection::vec(value, PREFIXES.len());
    let keep = proptest::collection::vec(proptest::bool::weighted(0.6), PREFIXES.len());
    proptest::collection::vec((1i64..200_000, day, keep), 1..9).prop_map(|mut days| {
        for at in 1..days.len() {
            for prefix in 0..PREFIXES.len() {
                if days[at].2[prefix] {
                    days[at].1[prefix] = days[at - 1].1[prefix];
                }
            }
        }
        days.into_iter().map(|(gap, values, _)| (gap, values)).collect()
    })
}

/// The table of a day: its columns and their order are not those of the others.
fn table(day: usize, values: &[Option<u64>]) -> Table {
    let names = match day % 3 {
        0 => [("asn", ColumnKind::Int), ("name", ColumnKind::Str)].to_vec(),
        1 => [("name", ColumnKind::Str), ("asn", ColumnKind::Int)].to_vec(),
        _ => [("asn", ColumnKind::Int)].to_vec(),
    };
    let mut rows = ColumnsBuilder::new(&names);
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (prefix, value) in PREFIXES.iter().zip(values) {
        let Some(asn) = *value else { continue };
        let name = format!("n{asn}");
        let (asn, name) = (Value::Int(asn), Value::Str(&name));
        let cells = match day % 3 {
            0 => vec![asn, name],
            1 => vec![name, asn],
            _ => vec![asn],
        };
        let hop = Hop::new(rows.intern(&cells).unwrap());
        match prefix.parse().unwrap() {
            AnyPrefix::V4(prefix) => v4.push(Route { prefix, hop }),
            AnyPrefix::V6(prefix) => v6.push(Route { prefix, hop }),
        }
    }
    let columns = rows.finish().unwrap();
    let (v4, v6) = (Routes::from_unsorted(v4), Routes::from_unsorted(v6));
    Table { v4, v6, columns, ..Table::default() }
}

/// Prefix, AS and name of the longest match in the table of a day, by definition.
type Found = Option<(String, Option<u64>, Option<String>)>;

fn expected(day: usize, values: &[Option<u64>], address: IpAddr) -> Found {
    let host = AnyPrefix::host(address);
    let covers = |text: &str| match (text.parse().unwrap(), host) {
        (AnyPrefix::V4(prefix), AnyPrefix::V4(host)) => prefix.covers(host),
        (AnyPrefix::V6(prefix), AnyPrefix::V6(host)) => prefix.covers(host),
        _ => false,
    };
    let length = |text: &str| text.rsplit_once('/').unwrap().1.parse::<u8>().unwrap();
    let all = PREFIXES.iter().zip(values).filter_map(|(text, value)| Some((*text, (*value)?)));
    let (text, asn) = all.filter(|(text, _)| covers(text)).max_by_key(|(text, _)| length(text))?;
    let name = (day % 3 < 2).then(|| format!("n{asn}"));
    Some((text.to_owned(), Some(asn), name))
}

fn found(found: Option<fibula_fib::Match<'_>>) -> Found {
    let found = found?;
    let asn = match found.value("asn") {
        Some(Value::Int(asn)) => Some(asn),
        _ => None,
    };
    let name = match found.value("name") {
        Some(Value::Str(name)) => Some(name.to_owned()),
        _ => None,
    };
    Some((found.prefix().unwrap().to_string(), asn, name))
}

fn addresses() -> Vec<IpAddr> {
    fn family<A: Addr>(pick: impl Fn(AnyPrefix) -> Option<Prefix<A>>) -> Vec<IpAddr> {
        let all = PREFIXES.iter().filter_map(|text| pick(text.parse().unwrap()));
        let routes: Routes<A> = all.map(|prefix| (prefix, Hop::new(0))).collect();
        probes::boundary(&routes).map(Addr::to_ip).collect()
    }
    let mut all = family::<u32>(|prefix| match prefix {
        AnyPrefix::V4(prefix) => Some(prefix),
        AnyPrefix::V6(_) => None,
    });
    all.extend(family::<u128>(|prefix| match prefix {
        AnyPrefix::V6(prefix) => Some(prefix),
        AnyPrefix::V4(_) => None,
    }));
    all
}

/// 2024-01-01.
const FIRST: i64 = 1_704_067_200;

fn moments(days: &[Day]) -> Vec<Moment> {
    let gaps = days.iter().scan(FIRST, |at, (gap, _)| {
        *at += gap;
        Some(Moment::from_unix(*at))
    });
    gaps.collect()
}

fn snapshot(builder: DatedBuilder) -> DatedSnapshot {
    let dated = builder.finish().unwrap();
    let bytes = dated.to_bytes(&EnginePart::none(), &EnginePart::none()).unwrap();
    DatedSnapshot::from_bytes(bytes).unwrap()
}

/// The file of all days; the first `split` of them are in a file that the others are added to.
fn built(days: &[Day], split: usize) -> DatedSnapshot {
    let moments = moments(days);
    let mut builder = DatedBuilder::default();
    for (day, (_, values)) in days.iter().enumerate() {
        if day == split && day > 0 {
            builder = DatedBuilder::from_snapshot(&snapshot(builder)).unwrap();
        }
        builder.add(moments[day], &format!("day {day}"), &table(day, values)).unwrap();
    }
    snapshot(builder)
}

/// The length of the matching prefix at a date, as annotation looks it up.
fn length_at<A: Addr + Pod>(fib: &DatedFib, addr: A, date: u16) -> Option<u8> {
    let timeline = fib.family::<A>().engine().lookup(addr);
    fib.timelines::<A>().ask().find(timeline, date).map(|(_, len)| len)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// At the beginning and the end of every date's time, at every boundary of a prefix, by every way to ask.
    #[test]
    fn as_separate_tables(days in days(), split in 0usize..9, engine in proptest::bool::ANY) {
        let engine = if engine { EngineChoice::Auto } else { EngineChoice::Search };
        let options = FibOptions::default().engines([engine]);
        let fib = DatedFib::of_snapshot(built(&days, split), &options).unwrap();
        let moments = moments(&days);
        let second = |at: Moment, more: i64| Moment::from_unix(at.unix() + more);
        for address in addresses() {
            prop_assert_eq!(found(fib.lookup(address, second(moments[0], -1))), None);
            let mut history = Vec::new();
            for (day, (_, values)) in days.iter().enumerate() {
                let expected = expected(day, values, address);
                let until = moments.get(day + 1).map_or(i64::MAX, |next| next.unix() - 1);
                for time in [moments[day], second(moments[day], 1).min(Moment::from_unix(until)), Moment::from_unix(until)] {
                    prop_assert_eq!(&found(fib.lookup(address, time)), &expected, "{} at {}", address, time);
                }
                let length = match AnyPrefix::host(address) {
                    AnyPrefix::V4(host) => length_at(&fib, host.addr(), day as u16),
                    AnyPrefix::V6(host) => length_at(&fib, host.addr(), day as u16),
                };
                let of_text = |text: &str| text.rsplit_once('/').unwrap().1.parse().unwrap();
                prop_assert_eq!(length, expected.as_ref().map(|(prefix, ..)| of_text(prefix)));
                if history.last().is_none_or(|(_, before)| *before != expected) {
                    history.push((day as u16, expected));
                }
            }
            let told: Vec<_> = fib.history(address).map(|(day, now)| (day, found(now))).collect();
            prop_assert_eq!(told, history);
        }
    }

    /// The table of each date comes back as it was.
    #[test]
    fn tables_come_back(days in days(), split in 0usize..9) {
        let dated = built(&days, split);
        for (day, (_, values)) in days.iter().enumerate() {
            let (before, after) = (table(day, values), dated.table(day as u16));
            prop_assert_eq!(listed(&after, &["asn", "name"]), listed(&before, &["asn", "name"]));
            let counted = &dated.dates().tables()[day];
            prop_assert_eq!((counted.v4, counted.v6), (before.v4.len() as u64, before.v6.len() as u64));
        }
    }
}

/// Prefixes with the values of these columns; null where a table has no such column.
fn listed(table: &Table, columns: &[&str]) -> Vec<String> {
    fn family<A: Addr>(routes: &Routes<A>, table: &Table, columns: &[&str]) -> Vec<String> {
        let line = |route: Route<A>| {
            let row = route.hop.index().unwrap();
            let value = |name: &&str| {
                table.columns.find(name).map_or(Value::Null, |at| table.columns.value(at, row))
            };
            format!("{} {:?}", route.prefix, columns.iter().map(value).collect::<Vec<_>>())
        };
        routes.iter().map(line).collect()
    }
    let mut all = family(&table.v4, table, columns);
    all.extend(family(&table.v6, table, columns));
    all
}

/// Dates at equal distances, at others, one alone: the number is that of a search, at every boundary.
#[test]
fn numbers_of_times() {
    let none = vec![None; PREFIXES.len()];
    let daily: Vec<Day> = (0..400).map(|_| (86_400, none.clone())).collect();
    let odd = [1, 1, 86_400, 1_000_000, 7, 86_400 * 365, 1].map(|gap| (gap, none.clone())).to_vec();
    for days in [daily, odd.clone(), odd[..2].to_vec(), odd[..1].to_vec()] {
        let mut builder = DatedBuilder::default();
        for (day, at) in moments(&days).into_iter().enumerate() {
            builder.add(at, "", &table(day, &none)).unwrap();
        }
        let dated = builder.finish().unwrap();
        for (day, at) in moments(&days).into_iter().enumerate() {
            let dates = dated.dates();
            let number = |more: i64| dates.number(Moment::from_unix(at.unix() + more));
            assert_eq!(number(0), day as u16);
            assert_eq!(number(-1), (day as u16).checked_sub(1).unwrap_or(Dates::NONE));
        }
        let ends = [i64::MIN, i64::MAX].map(|at| dated.dates().number(Moment::from_unix(at)));
        assert_eq!(ends, [Dates::NONE, days.len() as u16 - 1]);
    }
}

/// Prefixes that never change share a few timelines, and only changes take room.
#[test]
fn what_stays_is_shared() {
    let same = vec![Some(1); PREFIXES.len()];
    let days: Vec<Day> = (0..50).map(|_| (86_400, same.clone())).collect();
    let dated = built(&days, 0);
    let lengths = |v4: bool| {
        let of_family = PREFIXES.iter().filter(|text| text.contains('.') == v4);
        of_family
            .map(|text| text.rsplit_once('/').unwrap().1)
            .collect::<std::collections::BTreeSet<_>>()
    };
    // Two rows: with the name and, in the tables without that column, not.
    assert_eq!(dated.columns().len(), 2);
    assert_eq!(dated.timelines::<u32>().len(), lengths(true).len());
    assert_eq!(dated.timelines::<u128>().len(), lengths(false).len());
}

#[test]
fn what_cannot_be_is_refused() {
    let day = |at: &str| at.parse::<Moment>().unwrap();
    let mut builder = DatedBuilder::default();
    let numbers = table(2, &[Some(1); PREFIXES.len()]);
    builder.add(day("2024-05-02"), "b", &numbers).unwrap();
    for earlier in ["2024-05-02", "2024-05-01"] {
        let error = builder.add(day(earlier), "a", &numbers).unwrap_err();
        assert!(matches!(error, TableError::Dates { .. }));
        assert_eq!(
            error.to_string(),
            format!("the table of {earlier} does not come after that of 2024-05-02")
        );
    }
    let mut rows = ColumnsBuilder::new(&[("asn", ColumnKind::Str)]);
    rows.push(&[Value::Str("text")]).unwrap();
    let texts = Table { columns: rows.finish().unwrap(), ..Table::default() };
    let error = builder.add(day("2024-05-03"), "c", &texts).unwrap_err();
    assert!(matches!(error, TableError::Kind { .. }), "{error}");
}
