//! MaxMind DB files, read back by the library that other programs use.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fibula_core::{Addr, Attributes, Change, Update, Value};
use fibula_export::mmdb;
use fibula_rib::{
    BuilderOptions, ColumnKind, ColumnsBuilder, Pod, ScalarType, Table, TableBuilder,
};
use maxminddb::Reader;

use crate::formats::{generated, nested, table};

/// Both ends of every interval: all that can differ.
fn check_mmdb<A: Addr + Pod>(table: &Table, reader: &Reader<Vec<u8>>) {
    let columns = &table.columns;
    for range in table.routes::<A>().ranges_unmerged() {
        for addr in [range.first, range.last] {
            if A::BITS == 128 && addr.to_u128() >> 32 == 0 {
                continue; // IPv4 addresses to readers of the format
            }
            let expected: BTreeMap<String, String> =
                range.hop.index().map_or_else(BTreeMap::new, |row| {
                    let value = |(at, name): (usize, &str)| match columns.value(at, row) {
                        Value::Null => None,
                        Value::Int(int) => Some((name.to_owned(), int.to_string())),
                        Value::Str(text) => Some((name.to_owned(), text.to_owned())),
                    };
                    columns.names().enumerate().filter_map(value).collect()
                });
            let ip: IpAddr = addr.to_ip();
            let found = reader.lookup(ip).unwrap();
            assert_eq!(found.has_data(), range.hop.index().is_some(), "{ip}");
            let found: Option<BTreeMap<String, serde_value::Scalar>> = found.decode().unwrap();
            let found = found.unwrap_or_default().into_iter().map(|(k, v)| (k, v.0)).collect();
            assert_eq!(expected, found, "{ip}");
        }
    }
}

/// A value of a map, as text.
mod serde_value {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, Error, Visitor};

    pub struct Scalar(pub String);

    impl<'de> Deserialize<'de> for Scalar {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Any;
            impl Visitor<'_> for Any {
                type Value = Scalar;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("text or a number")
                }
                fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                    Ok(Scalar(text.to_owned()))
                }
                fn visit_u64<E: Error>(self, int: u64) -> Result<Scalar, E> {
                    Ok(Scalar(int.to_string()))
                }
            }
            deserializer.deserialize_any(Any)
        }
    }
}

#[test]
fn mmdb_reads_back() {
    let none = table(&[], &[]);
    let all = table(&[("0.0.0.0/0", 1)], &[("::/0", 1)]);
    let one = table(&[("128.0.0.0/1", 4)], &[]);
    for table in [nested(), generated(), none, all, one] {
        let mut bytes = Vec::new();
        mmdb(&table, "test", 1_700_000_000, &mut bytes).unwrap();
        let reader = Reader::from_source(bytes).unwrap();
        assert_eq!(reader.metadata().database_type, "test");
        assert_eq!(reader.metadata().build_epoch, 1_700_000_000);
        reader.verify().unwrap();
        check_mmdb::<u32>(&table, &reader);
        check_mmdb::<u128>(&table, &reader);
    }
}

/// Mapped addresses are IPv4 addresses; so are Teredo's and 6to4's, unless an IPv6 route covers them.
#[test]
fn mmdb_has_the_aliases_of_ipv4() {
    let row = |table: &Table, ip: &str| {
        let mut bytes = Vec::new();
        mmdb(table, "test", 1, &mut bytes).unwrap();
        let reader = Reader::from_source(bytes).unwrap();
        reader.verify().unwrap();
        let found = reader.lookup(ip.parse().unwrap()).unwrap();
        let found: Option<BTreeMap<String, serde_value::Scalar>> = found.decode().unwrap();
        found.map(|found| found["n"].0.parse::<u64>().unwrap())
    };
    let n = |row: u64| Some(row * 1_000_003 % 70_000);
    let v4 = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)];
    let plain = table(&v4, &[("2001:db8::/32", 4)]);
    for ip in ["10.1.2.3", "::10.1.2.3", "::ffff:10.1.2.3", "2001:0:a01:203::", "2002:a01:203::1"] {
        assert_eq!(row(&plain, ip), n(2), "{ip}");
    }
    assert_eq!(row(&plain, "2002:b00::"), None);
    assert_eq!(row(&plain, "2001:db8::"), n(4));
    let inside = table(&v4, &[("2001:0:a01::/48", 5), ("2002::/16", 6)]);
    let around = table(&v4, &[("::/0", 7)]);
    assert_eq!(row(&inside, "2001:0:a01:203::"), n(5));
    assert_eq!(row(&inside, "2001:0:a02::"), None);
    assert_eq!(row(&inside, "2002:a01:203::1"), n(6));
    for (ip, expected) in [("2002:a01:203::1", 7), ("2001:0:a01::", 7), ("::ffff:10.1.2.3", 2)] {
        assert_eq!(row(&around, ip), n(expected), "{ip}");
    }
}

/// Columns with dots in their names are entries of maps.
#[test]
fn mmdb_has_nested_maps() {
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Country {
        iso_code: Option<String>,
        names: Option<BTreeMap<String, String>>,
    }
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Record {
        country: Option<Country>,
        asn: u32,
        #[serde(rename = "asn.name")]
        asn_name: Option<String>,
    }
    let names = ["country.iso_code", "asn", "country.names.en", "asn.name"];
    let kinds = [ColumnKind::Str, ColumnKind::Int, ColumnKind::Str, ColumnKind::Str];
    let mut builder = ColumnsBuilder::new(&names.into_iter().zip(kinds).collect::<Vec<_>>());
    let text = Value::Str;
    builder.push(&[text("CH"), Value::Int(1), text("Switzerland"), text("one")]).unwrap();
    builder.push(&[Value::Null, Value::Int(2), Value::Null, Value::Null]).unwrap();
    let columns = builder.finish().unwrap();
    let table = Table { columns, ..table(&[("10.0.0.0/8", 0), ("11.0.0.0/8", 1)], &[]) };
    let mut bytes = Vec::new();
    mmdb(&table, "test", 1, &mut bytes).unwrap();
    let reader = Reader::from_source(bytes).unwrap();
    reader.verify().unwrap();
    let record = |ip: &str| -> Record {
        reader.lookup(ip.parse().unwrap()).unwrap().decode().unwrap().unwrap()
    };
    let names = BTreeMap::from([("en".to_owned(), "Switzerland".to_owned())]);
    let country = Country { iso_code: Some("CH".to_owned()), names: Some(names) };
    let full = Record { country: Some(country), asn: 1, asn_name: Some("one".to_owned()) };
    assert_eq!(record("10.0.0.1"), full);
    assert_eq!(record("11.0.0.1"), Record { country: None, asn: 2, asn_name: None });
}

/// Values from an mmdb file have their types there, and members with indices for names are an array.
#[test]
fn mmdb_has_types_and_arrays() {
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Part {
        code: Option<String>,
    }
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Record {
        is_on: Option<bool>,
        share: Option<f32>,
        latitude: Option<f64>,
        delta: Option<i32>,
        wide: Option<u128>,
        parts: Option<Vec<Part>>,
        sparse: Option<BTreeMap<String, u32>>,
    }
    let names = [
        "is_on",
        "share",
        "latitude",
        "delta",
        "wide",
        "parts.1.code",
        "parts.0.code",
        "sparse.0",
        "sparse.2",
    ];
    let kind = |name: &str| match name.starts_with("sparse") {
        true => ColumnKind::Int,
        false => ColumnKind::Str,
    };
    let kinds: Vec<_> = names.iter().map(|name| ((*name).to_owned(), kind(name))).collect();
    let types = [
        ("is_on", ScalarType::Bool),
        ("share", ScalarType::Float),
        ("latitude", ScalarType::Double),
        ("delta", ScalarType::Int),
        ("wide", ScalarType::Wide),
    ];
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.types_of_next(&types.map(|(name, of)| (name.to_owned(), of)));
    builder.begin_source("x.mmdb", "mmdb", &kinds, false, None);
    let (text, none, int) = (Value::Str, Value::Null, Value::Int);
    let wide = u128::MAX.to_string();
    let rows = [
        (
            "10.0.0.0/8",
            [
                text("true"),
                text("0.1"),
                text("-47.25"),
                text("-5"),
                text(&wide),
                text("b"),
                text("a"),
                int(1),
                int(2),
            ],
        ),
        (
            "11.0.0.0/8",
            [
                text("false"),
                text("7"),
                text("1e-300"),
                text("2147483647"),
                text("3"),
                none,
                text("a"),
                none,
                none,
            ],
        ),
        ("12.0.0.0/8", [none, none, none, none, none, text("b"), none, none, int(9)]),
        // It is no number, whatever the others are.
        ("13.0.0.0/8", [none, none, text("north"), none, none, none, none, none, none]),
    ];
    for (prefix, values) in &rows {
        let change = Change::Announce(Attributes::Values(values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    let mut bytes = Vec::new();
    mmdb(&builder.finish().unwrap(), "test", 1, &mut bytes).unwrap();
    let reader = Reader::from_source(bytes).unwrap();
    reader.verify().unwrap();
    let record = |ip: &str| -> Record {
        reader.lookup(ip.parse().unwrap()).unwrap().decode().unwrap().unwrap()
    };
    let part = |code: &str| Part { code: Some(code.to_owned()) };
    let sparse = |pairs: &[(&str, u32)]| {
        Some(pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect())
    };
    assert_eq!(
        record("10.0.0.1"),
        Record {
            is_on: Some(true),
            share: Some(0.1),
            latitude: Some(-47.25),
            delta: Some(-5),
            wide: Some(u128::MAX),
            parts: Some(vec![part("a"), part("b")]),
            sparse: sparse(&[("0", 1), ("2", 2)]),
        }
    );
    assert_eq!(
        record("11.0.0.1"),
        Record {
            is_on: Some(false),
            share: Some(7.0),
            latitude: Some(1e-300),
            delta: Some(i32::MAX),
            wide: Some(3),
            parts: Some(vec![part("a")]),
            sparse: None,
        }
    );
    let third = record("12.0.0.1");
    assert_eq!(third.parts, Some(vec![Part { code: None }, part("b")]));
    assert_eq!(third.sparse, sparse(&[("2", 9)]));
    #[derive(serde::Deserialize)]
    struct Text {
        latitude: String,
    }
    let odd: Text = reader.lookup("13.0.0.1".parse().unwrap()).unwrap().decode().unwrap().unwrap();
    assert_eq!(odd.latitude, "north");
}
