//! Truncated, damaged and forged files of several dates, like [`super::one`].

use std::hint::black_box;

use fibula_core::{Addr, Hop, Route, Routes, Value};
use fibula_testkit::{Rng, tables};

use super::one::{fix, mutate};
use crate::snapshot::error::SnapshotErrorKind as Kind;
use crate::snapshot::format::{self, FileKind};
use crate::snapshot::{DatedSnapshot, EnginePart, Pod, Snapshot};
use crate::{ColumnKind, ColumnsBuilder, DatedBuilder, Moment, Table};

/// Tables of a few days, of whose prefixes some are missing and some have another row each day.
fn sample(prefixes: usize) -> Vec<u8> {
    fn routes<A: Addr>(day: usize, prefixes: usize) -> Routes<A> {
        let dense = tables::dense::<A>(3, prefixes);
        let is_there = |(at, _): &(usize, Route<A>)| !(at + day).is_multiple_of(3);
        let all = dense.iter().enumerate().filter(is_there);
        all.map(|(at, route)| (route.prefix, Hop::new(((at * day) % 4) as u32))).collect()
    }
    let mut builder = DatedBuilder::default();
    for day in 0..4 {
        let mut rows = ColumnsBuilder::new(&[("asn", ColumnKind::Int), ("name", ColumnKind::Str)]);
        for row in 0..4 {
            rows.push(&[Value::Int(row), Value::Str("zwölf")]).unwrap();
        }
        let columns = rows.finish().unwrap();
        let (v4, v6) = (routes(day, prefixes), routes(day, prefixes));
        let table = Table { v4, v6, columns, ..Table::default() };
        builder.add(Moment::from_unix(day as i64 * 86_400), "source", &table).unwrap();
    }
    let dated = builder.finish().unwrap();
    dated.to_bytes(&EnginePart::none(), &EnginePart::none()).unwrap().as_ref().to_vec()
}

/// Reads everything from such a file, and checks the properties that hold for every accepted file.
fn exercise(dated: &DatedSnapshot) {
    fn family<A: Addr + Pod>(dated: &DatedSnapshot, rng: &mut Rng) {
        let (routes, ask) = (dated.routes::<A>(), dated.timelines::<A>().ask());
        let rows = dated.columns().len();
        let addrs: Vec<A> = (0..20).map(|_| rng.addr::<A>()).chain([A::MIN, A::MAX]).collect();
        for date in 0..dated.dates().len() as u16 + 2 {
            for index in 0..routes.len().min(60) {
                let timeline = routes.get(index).hop;
                if let Some((row, len)) = ask.find(timeline, date) {
                    assert!(row.index().unwrap() < rows && len <= A::BITS);
                }
                black_box(ask.changes(timeline).count());
            }
            for &addr in &addrs {
                let timeline = routes.matched(addr).map_or(Hop::NONE, |at| routes.get(at).hop);
                black_box(ask.find(timeline, date));
            }
            for odd in [0, 1, u32::MAX - 1, u32::MAX, 1 << 31, ask_len(dated)] {
                black_box((
                    ask.find(Hop::from_bits(odd), date),
                    ask.changes(Hop::from_bits(odd)).count(),
                ));
            }
            let table = dated.table(date);
            table.check().unwrap();
        }
    }
    fn ask_len(dated: &DatedSnapshot) -> u32 {
        dated.timelines::<u32>().len() as u32
    }
    let mut rng = Rng::new(1);
    family::<u32>(dated, &mut rng);
    family::<u128>(dated, &mut rng);
    for time in [i64::MIN, -1, 0, 86_400, i64::MAX] {
        black_box(dated.dates().number(Moment::from_unix(time)));
    }
    black_box((dated.provenance(), dated.written(), format!("{dated:?}")));
}

#[test]
fn each_kind_of_file_is_refused_by_the_other() {
    let bytes = sample(20);
    exercise(&DatedSnapshot::from_bytes(&bytes[..]).unwrap());
    let mut fixed = bytes.clone();
    fix(&mut fixed);
    assert_eq!(fixed, bytes);
    let error = Snapshot::from_bytes(&bytes[..]).unwrap_err();
    assert_eq!(error.kind(), Kind::Dated);
    assert!(error.to_string().contains("tables of several dates"), "{error}");
    let table =
        crate::snapshot::to_bytes(&Table::default(), &EnginePart::none(), &EnginePart::none())
            .unwrap();
    let error = DatedSnapshot::from_bytes(table).unwrap_err();
    assert_eq!(error.kind(), Kind::NotDated);
    assert!(error.to_string().contains("--as-of"), "{error}");
}

#[test]
fn every_changed_byte_and_every_other_length_is_refused() {
    let mut bytes = sample(8);
    for at in 0..bytes.len() {
        bytes[at] ^= 0x81;
        assert!(DatedSnapshot::from_bytes(&bytes[..]).is_err(), "byte {at}");
        bytes[at] ^= 0x81;
    }
    for len in 0..bytes.len() {
        assert!(DatedSnapshot::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
    }
    assert!(DatedSnapshot::from_bytes(&bytes[..]).is_ok());
}

/// As for tables: random changes with right checksums are refused or harmless.
#[test]
fn forged_files_are_refused_or_harmless() {
    let sound = sample(40);
    let (sections, _) = format::decode(&sound, FileKind::Dated).unwrap();
    let dated: Vec<_> =
        sections.iter().filter(|s| s.name.contains("line/") || s.name == "dates").collect();
    let mut rng = Rng::new(9);
    let mut opened = 0;
    for round in 0..6_000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + rng.below(3) {
            let place = match round % 3 {
                0 => &sections[rng.below(sections.len() as u64) as usize],
                _ => dated[rng.below(dated.len() as u64) as usize],
            };
            if !place.place.is_empty() {
                let at = place.place.start + rng.below(place.place.len() as u64) as usize;
                mutate(&mut bytes, at, &mut rng);
            }
        }
        fix(&mut bytes);
        if let Ok(snapshot) = DatedSnapshot::from_bytes(&bytes[..]) {
            opened += 1;
            exercise(&snapshot);
        }
    }
    assert!((300..5_700).contains(&opened), "{opened} of 6000 opened");
}

/// Each rule by itself: the checksums are right, one item is not.
#[test]
fn errors_name_the_section_and_the_item() {
    let sound = sample(40);
    let section = |name: &str| {
        let (sections, _) = format::decode(&sound, FileKind::Dated).unwrap();
        sections.into_iter().find(|s| s.name == name).unwrap().place
    };
    let dated = DatedSnapshot::from_bytes(&sound[..]).unwrap();
    let v4 = dated.timelines::<u32>();
    let changes = |line: usize| (v4.first[line + 1] - v4.first[line]) as usize;
    let several = (0..v4.len()).find(|&line| changes(line) > 1).unwrap();
    // The second date of a timeline, and its first row, which follows the last date.
    let change = 3 * v4.first[several] as usize + 1;
    let row = 3 * v4.first[several] as usize + changes(several);
    let cases: [(&str, usize, &[u8], &str); 7] = [
        ("v4/hop", 4 * 3, &(v4.len() as u32).to_ne_bytes(), "item 3: hop"),
        ("v4/line/first", 0, &1u32.to_ne_bytes(), "timelines do not ascend"),
        ("v4/line/up", 4 * 5, &5u32.to_ne_bytes(), "item 5: timeline 5 is not an earlier one"),
        ("v6/line/len", 2, &[129], "item 2: length 129"),
        ("v4/line/changes", 2 * (row - 1), &4u16.to_ne_bytes(), "date 4 of 4"),
        (
            "v4/line/changes",
            2 * change,
            &0u16.to_ne_bytes(),
            "the changes of a timeline do not ascend",
        ),
        ("v4/line/changes", 2 * row, &1000u16.to_ne_bytes(), "row 1000 is not below"),
    ];
    for (name, at, value, expected) in cases {
        let mut bytes = sound.clone();
        let at = section(name).start + at;
        bytes[at..at + value.len()].copy_from_slice(value);
        fix(&mut bytes);
        let error = DatedSnapshot::from_bytes(&bytes[..]).map(|_| name).unwrap_err();
        assert_eq!((error.kind(), error.section()), (Kind::Invalid, Some(name)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let dates = section("dates");
    let text = String::from_utf8(sound[dates.clone()].to_vec()).unwrap();
    for (from, to, expected) in [
        ("\"at\":86400", "\"at\":00000", "not the expected JSON"),
        ("\"at\":86400", "\"at\":99999999999", "not the expected JSON"),
        ("\"at\":172800", "\"at\":086400", "not the expected JSON"),
        ("\"at\":172800", "\"at\":186400", ""),
        ("\"at\":172800", "\"at\":272800", "the dates do not ascend"),
        ("\"at\":259200", "\"at\":-59200", "the dates do not ascend"),
    ] {
        let mut bytes = sound.clone();
        let forged = text.replace(from, to);
        assert_ne!(forged, text);
        if forged.len() == text.len() {
            bytes[dates.clone()].copy_from_slice(forged.as_bytes());
        } else {
            let cut = &forged.as_bytes()[..text.len()];
            bytes[dates.clone()].copy_from_slice(cut);
        }
        fix(&mut bytes);
        let opened = DatedSnapshot::from_bytes(&bytes[..]);
        match expected {
            "" => assert!(opened.is_ok()),
            _ => assert!(opened.unwrap_err().to_string().contains(expected), "{to}"),
        }
    }
}
