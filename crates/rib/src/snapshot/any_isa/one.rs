//! Files that are not what `write` wrote: truncated, damaged, forged.
//!
//! Here rather than in `tests/`, since forging takes the private parts of the format.

use std::hint::black_box;

use fibula_core::{Addr, Hop, Prefix, Route, Routes, TableRef, Value};
use fibula_testkit::{Rng, tables};

use crate::snapshot::error::SnapshotErrorKind as Kind;
use crate::snapshot::format::{self, ENTRY, HEADER, NAME};
use crate::snapshot::{EnginePart, Pod, Snapshot, to_bytes};
use crate::{ColumnKind, ColumnsBuilder, Provenance, SourceRecord, Table};

const ROWS: u32 = 5;

fn small<A: Addr>(prefixes: usize) -> Routes<A> {
    let dense = tables::dense::<A>(3, prefixes);
    let hop = |(i, route): (usize, Route<A>)| (route.prefix, Hop::new(i as u32 % ROWS));
    dense.iter().enumerate().map(hop).collect()
}

fn sample(prefixes: usize) -> Vec<u8> {
    let columns = [("asn", ColumnKind::Int), ("name", ColumnKind::Str)];
    let mut rows = ColumnsBuilder::new(&columns);
    for (n, name) in [(1, "a"), (2, "zwölf"), (3, ""), (u64::MAX, "日本"), (4, "e")] {
        let n = if n == 3 { Value::Null } else { Value::Int(n) };
        rows.push(&[n, Value::Str(name)]).unwrap();
    }
    let source = SourceRecord { name: "s".into(), format: "text".into(), ..Default::default() };
    let table = Table {
        v4: small(prefixes),
        v6: small(prefixes),
        columns: rows.finish().unwrap(),
        provenance: Provenance { sources: vec![source], ..Default::default() },
    };
    let part = EnginePart {
        name: "some",
        tables: vec![
            TableRef { name: "one", bytes: b"12345" },
            TableRef { name: "none", bytes: b"" },
            TableRef { name: "two", bytes: b"678" },
        ],
    };
    to_bytes(&table, &part, &EnginePart::none()).unwrap().as_ref().to_vec()
}

/// Reads everything from a snapshot, and checks the properties that hold for every accepted file.
fn exercise(snapshot: &Snapshot) {
    fn family<A: Addr + Pod>(snapshot: &Snapshot, rng: &mut Rng) {
        let stored = snapshot.family::<A>();
        let routes = stored.to_routes();
        assert_eq!(routes.len(), stored.len());
        let within = routes.iter().take(50).map(|r| r.prefix.last()).collect::<Vec<_>>();
        let random = (0..50).map(|_| rng.addr::<A>());
        for addr in within.into_iter().chain(random).chain([A::MIN, A::MAX]) {
            let matched = stored.matched(addr);
            assert_eq!(stored.covering(addr).next(), matched);
            for index in stored.covering(addr) {
                let route = stored.get(index);
                assert!(route.prefix.contains(addr));
                let row = route.hop.index().unwrap();
                assert!(row < stored.hop_count());
                for column in 0..snapshot.columns().width() {
                    black_box(snapshot.columns().value(column, row));
                }
            }
        }
        for (name, bytes) in stored.table_sizes() {
            assert_eq!(stored.tables().table(name).unwrap().as_slice().len(), bytes);
        }
        black_box(stored.engine_name());
    }
    let mut rng = Rng::new(1);
    family::<u32>(snapshot, &mut rng);
    family::<u128>(snapshot, &mut rng);
    let columns = snapshot.columns();
    for column in 0..columns.width() {
        for row in 0..columns.len().min(1000) {
            black_box(columns.value(column, row));
        }
        for code in 0..columns.distinct(column).min(1000) as u32 {
            assert_ne!(columns.decode(column, code), Value::Null);
        }
    }
    black_box((snapshot.provenance(), snapshot.digest(), format!("{snapshot:?}")));
}

/// Makes all checksums right again, as far as the section table makes sense.
pub(super) fn fix(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes(b.try_into().unwrap())) as usize
    };
    let count = number(bytes, 24).min((bytes.len() - HEADER) / ENTRY);
    let mut sections = Vec::new();
    for i in 0..count {
        let entry = HEADER + i * ENTRY;
        let name = bytes[entry..entry + NAME].split(|&b| b == 0).next().unwrap();
        let name = String::from_utf8_lossy(name).into_owned();
        let (offset, len) = (number(bytes, entry + NAME), number(bytes, entry + NAME + 8));
        let Some(end) = offset.checked_add(len) else { continue };
        let Some(content) = bytes.get(offset..end) else { continue };
        let checksum = format::checksum(content);
        bytes[entry + NAME + 16..entry + ENTRY].copy_from_slice(&checksum.to_ne_bytes());
        sections.push(format::Section { name, place: offset..end, checksum });
    }
    bytes[32..48].copy_from_slice(&format::table_digest(&sections).to_ne_bytes());
    format::seal(&mut bytes[..HEADER + count * ENTRY]);
}

fn section(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let (sections, _) = format::decode(bytes, format::FileKind::Table).unwrap();
    sections.into_iter().find(|s| s.name == name).unwrap().place
}

#[test]
fn the_sample_opens_and_fixing_it_changes_nothing() {
    let bytes = sample(40);
    exercise(&Snapshot::from_bytes(&bytes[..]).unwrap());
    let mut fixed = bytes.clone();
    fix(&mut fixed);
    assert_eq!(fixed, bytes);
}

#[test]
fn every_changed_byte_is_refused() {
    let mut bytes = sample(8);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            bytes[at] ^= flip;
            let error = Snapshot::from_bytes(&bytes[..]).map(|_| at).unwrap_err();
            assert!(!error.to_string().is_empty());
            bytes[at] ^= flip;
        }
    }
    assert!(Snapshot::from_bytes(&bytes[..]).is_ok());
}

#[test]
fn every_other_length_is_refused() {
    let bytes = sample(8);
    for len in 0..bytes.len() {
        let error = Snapshot::from_bytes(&bytes[..len]).unwrap_err();
        let expected = if len == 0 { Kind::NotSnapshot } else { Kind::Truncated };
        assert_eq!(error.kind(), expected, "{len} bytes");
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(Snapshot::from_bytes(&longer[..]).unwrap_err().kind(), Kind::Damaged);
}

/// Random changes to the content of sections, to their table and to the header, with the checksums
/// made right: refused or harmless.
#[test]
fn forged_files_are_refused_or_harmless() {
    let sound = sample(60);
    let (sections, _) = format::decode(&sound, format::FileKind::Table).unwrap();
    let head = HEADER + sections.len() * ENTRY;
    let mut rng = Rng::new(7);
    let mut opened = 0;
    for round in 0..10_000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + rng.below(3) {
            let place = match round % 4 {
                0 => 12..head,
                _ => sections[rng.below(sections.len() as u64) as usize].place.clone(),
            };
            if place.is_empty() {
                continue;
            }
            let at = place.start + rng.below(place.len() as u64) as usize;
            mutate(&mut bytes, at, &mut rng);
        }
        fix(&mut bytes);
        if let Ok(snapshot) = Snapshot::from_bytes(&bytes[..]) {
            opened += 1;
            exercise(&snapshot);
        }
    }
    // Both happen often, else the test tests little.
    assert!((300..9_700).contains(&opened), "{opened} of 10000 opened");
}

/// Changes one byte, or sets an aligned number to a value that breaks sizes and indices.
pub(super) fn mutate(bytes: &mut [u8], at: usize, rng: &mut Rng) {
    let telling = [0, 1, 2, ROWS, 59, 60, 61, 64, 1 << 31, u32::MAX - 1, u32::MAX];
    match rng.below(4) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next_u64() as u8,
        _ => {
            let at = at & !3;
            let value = rng.choose(&telling).unwrap();
            if let Some(bytes) = bytes.get_mut(at..at + 4) {
                bytes.copy_from_slice(&value.to_ne_bytes());
            }
        }
    }
}

/// Each rule by itself: the checksums are right, one item is not.
#[test]
fn errors_name_the_section_and_the_item() {
    let sound = sample(60);
    let cases: [(&str, usize, u32, &str); 10] = [
        ("v4/hop", 3, ROWS, "item 3: hop 5 is not below the 5 rows"),
        ("v6/hop", 0, u32::MAX, "item 0: hop 4294967295 is not below the 5 rows"),
        ("v4/parent", 7, 7, "item 7: parent 7 is not an earlier route"),
        ("v6/parent", 0, 0, "item 0: parent 0 is not an earlier route"),
        ("v4/bucket", 0, 1, "buckets do not ascend"),
        ("v4/bucket", 3, 61, "buckets do not ascend"),
        ("column/0/code", 1, 4, "item 1: code 4 of a column with 4 values"),
        ("column/1/offset", 5, 1000, "offsets do not ascend"),
        ("column/1/offset", 1, 4, "item 1: the offset is inside a character"),
        ("v4/addr", 30, 0, "item 30: 0.0.0.0/7 is no prefix or does not"),
    ];
    for (name, index, value, expected) in cases {
        let mut bytes = sound.clone();
        let at = section(&bytes, name).start + 4 * index;
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        fix(&mut bytes);
        let error = Snapshot::from_bytes(&bytes[..]).map(|_| name).unwrap_err();
        assert_eq!((error.kind(), error.section()), (Kind::Invalid, Some(name)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        let offset = error.offset().unwrap() as usize;
        let item = error.reason().contains(&format!("item {index}:"));
        assert_eq!(offset, if item { at } else { section(&sound, name).start }, "{error}");
    }
    let mut bytes = sound.clone();
    let at = section(&bytes, "v6/len").start + 5;
    bytes[at] = 129;
    fix(&mut bytes);
    let error = Snapshot::from_bytes(&bytes[..]).unwrap_err();
    assert!(error.to_string().contains("/129 is no prefix"), "{error}");
}

#[test]
fn headers_are_distinguished() {
    let sound = sample(8);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = sound.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        fix(&mut bytes);
        Snapshot::from_bytes(&bytes[..]).unwrap_err()
    };
    assert_eq!(with(0, b"PK").kind(), Kind::NotSnapshot);
    assert_eq!(with(8, &0x0a0b_0c0d_u32.swap_bytes().to_ne_bytes()).kind(), Kind::ByteOrder);
    let version = with(12, &3u32.to_ne_bytes());
    assert_eq!(version.kind(), Kind::Version);
    assert!(version.to_string().contains("format version 3"), "{version}");
    assert_eq!(with(12, &2u32.to_ne_bytes()).kind(), Kind::Dated);
    assert_eq!(with(24, &u64::MAX.to_ne_bytes()).kind(), Kind::Invalid);
    assert_eq!(with(24, &4096u64.to_ne_bytes()).kind(), Kind::Truncated);
    // Misplaced, overlapping, twice the same name, no name, a gap that is not empty.
    let entry = HEADER + ENTRY;
    let offset = entry + NAME;
    assert_eq!(with(offset, &0u64.to_ne_bytes()).kind(), Kind::Invalid);
    assert_eq!(with(offset + 8, &u64::MAX.to_ne_bytes()).kind(), Kind::Invalid);
    assert!(with(entry, b"provenance\0").to_string().contains("two sections are named"));
    assert!(with(entry, &[0; NAME]).to_string().contains("not plain ASCII"));
    let (sections, _) = format::decode(&sound, format::FileKind::Table).unwrap();
    let (_, before_last) = sections.split_last().unwrap();
    let gap = before_last.iter().map(|s| s.place.end).find(|end| end % format::ALIGN > 0).unwrap();
    assert_eq!(with(gap, &[1]).kind(), Kind::Damaged);
}

/// Rows without columns take no bytes, so nothing else would bound their number.
#[test]
fn rows_without_columns_are_bounded() {
    let v4: Routes<u32> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
    let mut rows = ColumnsBuilder::new(&[] as &[(&str, ColumnKind)]);
    rows.push(&[]).unwrap();
    let columns = rows.finish().unwrap();
    let table = Table { v4, columns, ..Table::default() };
    let bytes = to_bytes(&table, &EnginePart::none(), &EnginePart::none()).unwrap();
    exercise(&Snapshot::from_bytes(bytes.clone()).unwrap());
    let mut bytes = bytes.as_ref().to_vec();
    let schema = section(&bytes, "schema");
    let text = String::from_utf8(bytes[schema.clone()].to_vec()).unwrap();
    let forged = text.replace("\"rows\":1,\"columns\":[]", "\"rows\":9,\"columns\":[]");
    assert_ne!(forged, text);
    bytes[schema].copy_from_slice(forged.as_bytes());
    fix(&mut bytes);
    let error = Snapshot::from_bytes(&bytes[..]).unwrap_err();
    assert!(error.to_string().contains("9 rows without columns for 1 routes"), "{error}");
}

/// A word of an engine's table gives other answers, so it gives another digest; the table stays the same.
#[test]
fn the_digest_covers_the_engines() {
    let bytes = sample(8);
    let before = Snapshot::from_bytes(&bytes[..]).unwrap();
    let engine = section(&bytes, "engine/v4/one").start;
    let names = section(&bytes, "engines");
    let name = names.start + bytes[names].iter().position(|&b| b == b's').unwrap();
    for at in [engine, name] {
        let mut forged = bytes.clone();
        forged[at] ^= 1;
        fix(&mut forged);
        let after = Snapshot::from_bytes(&forged[..]).unwrap();
        assert_ne!(after.digest(), before.digest());
        assert_eq!(after.table_digest(), before.table_digest());
    }
}
