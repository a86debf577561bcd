//! A small writer of the format; its files are read back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Collected, ColumnKind, ScalarType};

/// A value to write.
enum V {
    Str(&'static str),
    U16(u16),
    U32(u32),
    U64(u64),
    F64(f64),
    Bool(bool),
    Map(Vec<(&'static str, V)>),
    List(Vec<V>),
    /// To this offset of the data.
    Pointer(usize),
}

impl V {
    fn write(&self, out: &mut Vec<u8>) {
        let control = |out: &mut Vec<u8>, kind: u8, size: usize| {
            let size = u8::try_from(size).ok().filter(|&s| s < 29).expect("small tests");
            if kind > 7 {
                out.extend([size, kind - 7]);
            } else {
                out.push(kind << 5 | size);
            }
        };
        match self {
            Self::Str(s) => {
                control(out, 2, s.len());
                out.extend(s.bytes());
            }
            Self::F64(x) => {
                control(out, 3, 8);
                out.extend(x.to_be_bytes());
            }
            Self::U16(n) => {
                control(out, 5, 2);
                out.extend(n.to_be_bytes());
            }
            Self::U64(n) => {
                control(out, 9, 8);
                out.extend(n.to_be_bytes());
            }
            Self::U32(n) => {
                control(out, 6, 4);
                out.extend(n.to_be_bytes());
            }
            Self::Map(entries) => {
                control(out, 7, entries.len());
                for (key, value) in entries {
                    Self::Str(key).write(out);
                    value.write(out);
                }
            }
            Self::List(items) => {
                control(out, 11, items.len());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Bool(b) => control(out, 14, usize::from(*b)),
            Self::Pointer(to) => {
                out.extend([0x20 | u8::try_from(to >> 8).expect("near"), *to as u8])
            }
        }
    }
}

/// Writes a database of 24-bit records with these networks of `width`-bit addresses.
fn database(width: u8, networks: &[(u128, u8, usize)], records: &[V]) -> Vec<u8> {
    const EMPTY: usize = usize::MAX;
    let mut offsets = Vec::new();
    let mut data = Vec::new();
    for record in records {
        offsets.push(data.len());
        record.write(&mut data);
    }
    // A child is a node, empty, or a record behind a mark.
    const MARK: usize = 1 << 40;
    let mut nodes: Vec<[usize; 2]> = vec![[EMPTY; 2]];
    for &(addr, len, record) in networks {
        let mut node = 0;
        for i in 0..len {
            let bit = usize::from(addr >> (width - 1 - i) & 1 == 1);
            if i + 1 == len {
                // `record` beyond the records names a node, for aliases.
                nodes[node][bit] = match offsets.get(record) {
                    Some(offset) => MARK + offset,
                    None => record - 1000,
                };
            } else {
                if nodes[node][bit] == EMPTY {
                    nodes[node][bit] = nodes.len();
                    nodes.push([EMPTY; 2]);
                }
                node = nodes[node][bit];
            }
        }
    }
    let count = nodes.len();
    let mut out = Vec::new();
    for child in nodes.iter().flatten() {
        let value = match *child {
            EMPTY => count,
            data if data >= MARK => count + 16 + (data - MARK),
            node => node,
        };
        out.extend(&(value as u32).to_be_bytes()[1..]);
    }
    out.extend([0; 16]);
    out.extend(data);
    out.extend(b"\xab\xcd\xefMaxMind.com");
    V::Map(vec![
        ("binary_format_major_version", V::U16(2)),
        ("binary_format_minor_version", V::U16(0)),
        ("build_epoch", V::U64(1_700_000_000)),
        ("database_type", V::Str("Test")),
        ("description", V::Map(vec![])),
        ("ip_version", V::U16(if width == 32 { 4 } else { 6 })),
        ("languages", V::List(vec![])),
        ("node_count", V::U32(count as u32)),
        ("record_size", V::U16(24)),
    ])
    .write(&mut out);
    out
}

fn decode(bytes: &[u8]) -> Collected {
    let mut sink = Collected::default();
    let mut decoder = MmdbDecoder::default();
    assert_eq!(decoder.decode(&bytes[..bytes.len() / 2], Tail::More, &mut sink), Ok(0));
    assert_eq!(decoder.decode(bytes, Tail::End, &mut sink), Ok(bytes.len()));
    sink
}

fn columns(sink: &Collected) -> BTreeMap<String, ColumnKind> {
    let info = sink.info.as_ref().expect("began");
    info.columns.iter().map(|c| (c.name.clone(), c.kind)).collect()
}

fn country(code: &'static str, name: &'static str) -> V {
    let names = V::Map(vec![("de", V::Str("x")), ("en", V::Str(name))]);
    V::Map(vec![("country", V::Map(vec![("iso_code", V::Str(code)), ("names", names)]))])
}

#[test]
fn ipv4_tree() {
    let bytes = database(
        32,
        &[(0x0a00_0000, 8, 0), (0xc000_0200, 24, 1)],
        &[country("AU", "Australia"), country("DE", "Germany")],
    );
    let sink = decode(&bytes);
    assert_eq!(sink.damage, []);
    assert_eq!(sink.info.as_ref().unwrap().date, Some(1_700_000_000));
    assert_eq!(
        columns(&sink).into_iter().collect::<Vec<_>>(),
        [
            ("country.iso_code".into(), ColumnKind::Str),
            ("country.names.en".into(), ColumnKind::Str)
        ]
    );
    assert_eq!(sink.lines, ["10.0.0.0/8 = AU, Australia", "192.0.2.0/24 = DE, Germany"]);
}

#[test]
fn ipv4_within_ipv6_comes_once() {
    // 10.0.0.0/8 below ::/96; ::ffff:0:0/96 leads to the same node 96; a real IPv6 network.
    let bytes = database(
        128,
        &[(0x0a00_0000, 104, 0), (0xffff_0000_0000, 96, 1096), (0x2001_0db8 << 96, 32, 1)],
        &[V::Map(vec![("asn", V::U32(1))]), V::Map(vec![("asn", V::U32(2))])],
    );
    let sink = decode(&bytes);
    assert_eq!(sink.damage, []);
    assert_eq!(sink.lines, ["10.0.0.0/8 = 1", "2001:db8::/32 = 2"]);
    assert_eq!(columns(&sink)["asn"], ColumnKind::Int);
}

#[test]
fn scalars_of_all_kinds() {
    let record = V::Map(vec![
        ("list", V::List(vec![V::U32(7), V::Map(vec![("b", V::Bool(true))])])),
        ("x", V::F64(1.5)),
        ("mixed", V::U32(3)),
    ]);
    let other = V::Map(vec![("mixed", V::Str("three"))]);
    let bytes = database(32, &[(0, 1, 0), (0x8000_0000, 1, 1)], &[record, other]);
    let sink = decode(&bytes);
    assert_eq!(sink.damage, []);
    let kinds = columns(&sink);
    assert_eq!((kinds["list.0"], kinds["mixed"]), (ColumnKind::Int, ColumnKind::Str));
    assert_eq!(
        sink.lines,
        ["0.0.0.0/1 = 7, true, 1.5, 3", "128.0.0.0/1 = null, null, null, three"]
    );
    let types = sink.info.expect("began").types;
    let list = ("list.1.b".to_owned(), ScalarType::Bool);
    assert_eq!(types, [list, ("x".to_owned(), ScalarType::Double)]);
    // Of several types it is text.
    let both = [V::F64(1.5), V::Bool(true)].map(|value| V::Map(vec![("x", value)]));
    let sink = decode(&database(32, &[(0, 1, 0), (0x8000_0000, 1, 1)], &both));
    assert_eq!(
        (sink.lines, sink.info.expect("began").types),
        (vec!["0.0.0.0/1 = 1.5".to_owned(), "128.0.0.0/1 = true".to_owned()], vec![],)
    );
    let sink = decode(&database(32, &[(0, 1, 0)], &[V::U32(9)]));
    assert_eq!(sink.lines, ["0.0.0.0/1 = 9"]);
    assert_eq!(columns(&sink)["value"], ColumnKind::Int);
}

/// One record of another type makes a whole column text.
#[test]
fn the_record_that_makes_a_column_text_is_named() {
    let of = |value: V| V::Map(vec![("n", value)]);
    let networks: Vec<_> = (0..3).map(|i| (i << 24, 8, i as usize)).collect();
    let sink =
        decode(&database(32, &networks, &[of(V::U32(1)), of(V::U32(2)), of(V::Str("three"))]));
    assert_eq!(sink.remarks.len(), 1, "{:?}", sink.remarks);
    assert!(sink.remarks[0].contains("column n is text"), "{:?}", sink.remarks);
    assert!(sink.remarks[0].ends_with("\"three\" of 2.0.0.0/8"), "{:?}", sink.remarks);
    // Integers with fractions are fractions.
    let sink = decode(&database(32, &networks, &[of(V::U32(1)), of(V::F64(2.5)), of(V::U32(3))]));
    assert_eq!(sink.info.expect("began").types, [("n".to_owned(), ScalarType::Double)]);
    assert_eq!((sink.lines.len(), &*sink.lines[0], sink.remarks.len()), (3, "0.0.0.0/8 = 1", 0));
}

#[test]
fn ipv4_below_a_wider_record() {
    let records = [V::U32(1), V::U32(2)];
    for len in [1, 64, 96] {
        let sink =
            decode(&database(128, &[(0, len, 0), (0x2001_0db8 << 96 | 1 << 127, 32, 1)], &records));
        assert!(sink.lines.contains(&"0.0.0.0/0 = 1".to_owned()), "{len}: {:?}", sink.lines);
    }
    let sink = decode(&database(128, &[(1 << 64, 64, 0), (0x2001_0db8 << 96, 32, 1)], &records));
    assert_eq!(sink.lines, ["0:0:0:1::/64 = 1", "2001:db8::/32 = 2"]);
}

#[test]
fn damage() {
    let sink = decode(b"\0\0\x01 no database at all");
    assert_eq!((sink.damage.len(), sink.lines.len()), (1, 0));
    assert!(sink.info.is_some());

    // A tree whose only node leads to itself has 2^32 leaves.
    let bytes = database(32, &[(0, 1, 1000), (0x8000_0000, 1, 1000)], &[V::U32(1)]);
    let sink = decode(&bytes);
    assert!(!sink.damage.is_empty());
}

/// Lists of two pointers to the list before: 2^24 values in each of 2000 records of a few bytes. What
/// a record that is refused has cost counts too, or each of them would cost as much again.
#[test]
fn shared_parts_do_not_unfold_without_end() {
    let mut records = vec![V::U32(1)];
    let mut last = 0;
    for i in 0..24 {
        let pointers = vec![V::Pointer(last), V::Pointer(last)];
        records.push(V::List(pointers));
        last = 5 + 6 * i;
    }
    records.extend((0..2000).map(|_| V::List(vec![V::Pointer(last)])));
    let networks: Vec<_> = (0..2000).map(|i| (i << 21, 11, 25 + i as usize)).collect();
    let sink = decode(&database(32, &networks, &records));
    assert!(sink.damage[0].what.contains("than is credible"), "{:?}", sink.damage[0]);
    assert!(sink.damage.len() < 100, "{} records were decoded", sink.damage.len());
}

#[test]
fn long_paths_name_no_column() {
    let nested = (0..60).fold(V::U32(1), |inner, _| V::Map(vec![("abcdefghijklmnopqrst", inner)]));
    let sink =
        decode(&database(32, &[(0, 1, 0)], &[V::Map(vec![("a", V::U32(5)), ("b", nested)])]));
    assert_eq!(sink.lines, ["0.0.0.0/1 = 5"]);
    assert!(sink.damage[0].what.contains("than is credible"), "{:?}", sink.damage);
}

#[test]
fn of_a_key_that_comes_twice_the_last_counts() {
    let record = V::Map(vec![("a", V::U32(1)), ("b", V::Str("x")), ("a", V::U32(2))]);
    assert_eq!(decode(&database(32, &[(0, 1, 0)], &[record])).lines, ["0.0.0.0/1 = 2, x"]);
}

/// Each node leads twice to the next, the last one nowhere: 2^120 paths without a network.
#[test]
fn a_tree_of_endless_paths_is_refused() {
    let mut bytes = database(128, &[(0, 120, 0)], &[V::U32(1)]);
    assert_eq!(decode(&bytes).damage, []);
    for node in 0..120 {
        let next = (node as u32 + 1).to_be_bytes();
        bytes[6 * node..][..3].copy_from_slice(&next[1..]);
        bytes[6 * node + 3..][..3].copy_from_slice(&next[1..]);
    }
    let sink = decode(&bytes);
    assert_eq!((sink.damage.len(), sink.lines.len()), (1, 0));
    assert!(sink.damage[0].what.contains("more paths than is credible"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mutated_files_do_no_harm(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = database(
            128,
            &[(0x0a00_0000, 104, 0), (0x2001_0db8 << 96, 32, 1)],
            &[country("AU", "Australia"), country("DE", "Germany")],
        );
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        decode(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        decode(&bytes);
    }
}
