//! Measures the annotation of columns in memory, one core: addresses in, columns out.
//!
//! ```text
//! fibula build v4.tsv v6.tsv -o table.fib
//! cargo run --release -p fibula-annotate --example columns -- table.fib [rows [part of a line's name]]
//! ```
//!
//! Before anything is timed, the answers of the first and the last hundred thousand rows are compared
//! with [`IndexedRoutes::matched`](fibula_fib::IndexedRoutes::matched), which is another way to find them.

use std::error::Error;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, ArrayRef, StringArray, UInt32Array};
use fibula_annotate::{
    Address, AnnotateOptions, Annotated, ColumnAnnotator, LookupFamily, LookupTable,
};
use fibula_core::{Addr, Hop, Lookup, Prefix, Value};
use fibula_fib::{Columns, Fib, IndexedRoutes, Pod};

/// A sequence that depends on nothing (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// An address in a prefix of the table, every prefix as likely.
    fn covered<A: Addr + Pod>(&mut self, fib: &Fib) -> A {
        let stored = fib.family::<A>().routes();
        let prefix = stored.get(self.next() as usize % stored.len()).prefix;
        let bits = u128::from(self.next()) << 64 | u128::from(self.next());
        prefix.addr().or(A::from_u128(bits).and(A::netmask(prefix.len()).not()))
    }
}

/// A table that finds routes by search alone, however many are asked for.
struct Searched(Fib);

impl LookupTable for Searched {
    fn columns(&self) -> &Columns {
        self.0.columns()
    }
    fn v4(&self) -> &dyn LookupFamily<u32> {
        self
    }
    fn v6(&self) -> &dyn LookupFamily<u128> {
        self
    }
}

impl<A: Addr + Pod> LookupFamily<A> for Searched {
    fn engine(&self) -> &dyn Lookup<A> {
        self.0.family::<A>().engine()
    }
    fn routes(&self) -> &IndexedRoutes<A> {
        self.0.family::<A>().routes()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let fib = Fib::open(args.next().ok_or("which snapshot?")?)?;
    let rows: usize = args.next().map_or(Ok(10_000_000), |rows| rows.parse())?;
    let only = args.next().unwrap_or_default();
    println!("{fib:?}");

    let mut random = Random(1);
    let numbers: Vec<u32> = (0..rows).map(|_| random.covered(&fib)).collect();
    let text = numbers.iter().map(|&addr| Ipv4Addr::from(addr).to_string());
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values(text));
    let mixed = numbers.iter().map(|&addr| match random.next() % 2 {
        0 => Ipv4Addr::from(addr).to_string(),
        _ => Ipv6Addr::from(random.covered::<u128>(&fib)).to_string(),
    });
    let mixed: ArrayRef = Arc::new(StringArray::from_iter_values(mixed));
    let numbers: ArrayRef = Arc::new(UInt32Array::from(numbers));

    let values: Vec<String> = fib.columns().names().map(str::to_owned).collect();
    let prefix: Vec<String> = vec!["prefix".to_owned()];
    let both: Vec<String> = prefix.iter().chain(&values).cloned().collect();
    for (what, column, add, searched) in [
        ("UInt32 -> all values", &numbers, &values, false),
        ("IPv4 text -> all values", &strings, &values, false),
        ("IPv4 text -> prefix", &strings, &prefix, false),
        ("mixed text -> all values", &mixed, &values, false),
        ("mixed text -> prefix", &mixed, &prefix, false),
        ("mixed text -> prefix and all values", &mixed, &both, false),
        ("mixed text, by binary search -> prefix", &mixed, &prefix, true),
    ] {
        if !what.contains(&only) {
            continue;
        }
        let mut options = AnnotateOptions::default();
        options.add.clone_from(add);
        let annotator = match searched {
            true => ColumnAnnotator::new(Searched(fib.clone()), &options)?,
            false => ColumnAnnotator::new(fib.clone(), &options)?,
        };
        for part in [
            column.slice(0, rows.min(100_000)),
            column.slice(rows - rows.min(100_000), rows.min(100_000)),
        ] {
            check(&fib, &part, &annotator.annotate("ip", &part)?)?;
        }
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let started = Instant::now();
            black_box(annotator.annotate("ip", black_box(column))?);
            best = best.min(started.elapsed().as_secs_f64());
        }
        println!("{what}: {:.1} M rows/s", rows as f64 / best / 1e6);
    }
    if only.is_empty() {
        parsing(&strings, &mixed);
    }
    Ok(())
}

fn parsing(strings: &ArrayRef, mixed: &ArrayRef) {
    use arrow_array::cast::AsArray;
    for (what, column) in [("IPv4", strings), ("mixed", mixed)] {
        let column = column.as_string::<i32>();
        let started = Instant::now();
        let fold =
            |sum: u64, text: Option<&str>| match Address::parse(text.unwrap_or("").as_bytes()) {
                Some(Address::V4(addr)) => sum ^ u64::from(addr),
                Some(Address::V6(addr)) => sum ^ addr as u64,
                None => sum,
            };
        let ours = column.iter().fold(0, fold);
        let (time, started) = (started.elapsed(), Instant::now());
        let fold = |sum: u64, text: Option<&str>| match text.unwrap_or("").parse() {
            Ok(std::net::IpAddr::V4(addr)) => sum ^ u64::from(u32::from(addr)),
            Ok(std::net::IpAddr::V6(addr)) => sum ^ u128::from(addr) as u64,
            Err(_) => sum,
        };
        let std = column.iter().fold(0, fold);
        assert_eq!(ours, std);
        let rate = |time: std::time::Duration| column.len() as f64 / time.as_secs_f64() / 1e6;
        let (ours, std) = (rate(time), rate(started.elapsed()));
        println!("parsing {what}: {ours:.1} M/s, std::net {std:.1} M/s");
    }
}

/// Compares with the stored routes, cell by cell.
fn check(fib: &Fib, column: &ArrayRef, found: &Annotated) -> Result<(), Box<dyn Error>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt32Type, UInt64Type};
    fn matched<A: Addr + Pod>(fib: &Fib, addr: A) -> Option<(String, Hop)> {
        let routes = fib.family::<A>().routes();
        let route = routes.get(routes.matched(addr)?);
        Some((Prefix::to_string(&route.prefix), route.hop))
    }
    for row in 0..column.len() {
        let address = match column.as_primitive_opt::<UInt32Type>() {
            Some(numbers) => Address::V4(numbers.value(row)),
            None => column.as_string::<i32>().value(row).parse::<std::net::IpAddr>()?.into(),
        };
        let expected = match address {
            Address::V4(addr) => matched(fib, addr),
            Address::V6(addr) => matched(fib, addr),
        };
        for (field, column) in found.fields.iter().zip(&found.columns) {
            let name = field.name().strip_prefix("ip_").unwrap_or_default();
            let expected = match (&expected, fib.columns().find(name)) {
                (None, _) => None,
                (Some((prefix, _)), None) => Some(prefix.clone()),
                (Some((_, hop)), Some(column)) => {
                    match fib.columns().value(column, hop.index().ok_or("a route without a hop")?) {
                        Value::Int(int) => Some(int.to_string()),
                        Value::Str(text) => Some(text.to_owned()),
                        Value::Null => None,
                    }
                }
            };
            let got = if column.is_null(row) {
                None
            } else if let Some(text) = column.as_string_opt::<i32>() {
                Some(text.value(row).to_owned())
            } else if let Some(ints) = column.as_primitive_opt::<UInt32Type>() {
                Some(ints.value(row).to_string())
            } else if let Some(ints) = column.as_primitive_opt::<UInt64Type>() {
                Some(ints.value(row).to_string())
            } else {
                let codes = column.as_any_dictionary();
                let code = codes.normalized_keys()[row];
                Some(codes.values().as_string::<i32>().value(code).to_owned())
            };
            if got != expected {
                return Err(
                    format!("row {row}: {address:?}: {name}: {got:?}, not {expected:?}").into()
                );
            }
        }
    }
    Ok(())
}
