//! Many rows, compared with an oracle that reads prefixes one by one; tables that are replaced.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::prelude::SessionContext;

use crate::common::{context, write};

/// Prefixes of both families that lie in each other, and their longest match by the definition.
struct Nested {
    texts: Vec<(String, String, u64)>,
    /// The number of each prefix, by family, length and bits.
    known: HashMap<(bool, u8, u128), usize>,
}

/// A generator of numbers that are the same in each run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// An address near those of the prefixes.
    fn address(&mut self) -> IpAddr {
        let (low, high) = (self.next(), self.next());
        match high & 1 {
            0 => IpAddr::from((0x0a00_0000 | low as u32 & 0x00ff_ffff).to_be_bytes()),
            _ => IpAddr::from(
                (0x2001_0db8_u128 << 96 | u128::from(low & 0xfff) << 80 | u128::from(low >> 12))
                    .to_be_bytes(),
            ),
        }
    }
}

fn bits(address: IpAddr, len: u8) -> (bool, u8, u128) {
    let (of_v4, bits, width) = match address {
        IpAddr::V4(v4) => (true, u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (false, v6.to_bits(), 128),
    };
    let len = len.min(width);
    (of_v4, len, if len == 0 { 0 } else { bits >> (128 - len) << (128 - len) })
}

impl Nested {
    fn new(count: usize) -> Self {
        let mut numbers = Numbers(1);
        let (mut texts, mut known) = (Vec::new(), HashMap::new());
        while texts.len() < count {
            let address = numbers.address();
            let len = match address {
                IpAddr::V4(_) => 8 + numbers.next() % 25,
                IpAddr::V6(_) => 32 + numbers.next() % 97,
            } as u8;
            let key = bits(address, len);
            if known.contains_key(&key) {
                continue;
            }
            known.insert(key, texts.len());
            let first = match key.0 {
                true => IpAddr::from(((key.2 >> 96) as u32).to_be_bytes()),
                false => IpAddr::from(key.2.to_be_bytes()),
            };
            let number = texts.len() as u64;
            texts.push((format!("{first}/{len}"), format!("site {}", number % 1000), number * 7));
        }
        Self { texts, known }
    }

    fn write(&self, path: &Path) {
        write(
            path,
            self.texts.iter().map(|(prefix, site, vlan)| (&**prefix, Some(&**site), Some(*vlan))),
        );
    }

    fn longest(&self, address: IpAddr) -> Option<&(String, String, u64)> {
        (0..=128)
            .rev()
            .find_map(|len| self.known.get(&bits(address, len)))
            .map(|&at| &self.texts[at])
    }
}

/// Rows of addresses: of both families, null, and none.
fn addresses(numbers: &mut Numbers, rows: usize) -> (StringArray, Vec<Option<IpAddr>>) {
    let cell = |row: usize, numbers: &mut Numbers| match row % 17 {
        3 => (None, None),
        5 => (Some(format!("no {row}")), None),
        _ => {
            let address = numbers.address();
            (Some(address.to_string()), Some(address))
        }
    };
    let (texts, known): (Vec<_>, Vec<_>) = (0..rows).map(|row| cell(row, numbers)).unzip();
    (StringArray::from(texts), known)
}

/// Compares so many rows, a hundred thousand at a time, and returns how many matched.
async fn compared(rows: usize) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.fib");
    let nested = Nested::new(5000);
    nested.write(&path);
    let (path, mut numbers, mut matched) = (path.display(), Numbers(2), 0);
    for _ in 0..rows.div_ceil(100_000) {
        let (texts, known) = addresses(&mut numbers, rows.min(100_000));
        let context = context();
        let numbered = Arc::new(UInt64Array::from_iter_values(0..texts.len() as u64)) as _;
        let batch = RecordBatch::try_from_iter([("row", numbered), ("src", Arc::new(texts) as _)]);
        context.register_batch("flows", batch.expect("a batch")).expect("a table");
        let sql = format!(
            "SELECT r['prefix'], r['site'], r['vlan'], p, s, v, n, c FROM (SELECT row, fibula('{path}', src) AS r,
                fibula_prefix('{path}', src) AS p, fibula_value('{path}', src, 'site') AS s,
                fibula_value('{path}', src, 'vlan') AS v, fibula_number(path, src, 'vlan') AS n,
                fibula_covering('{path}', src) AS c FROM (SELECT row, src, '{path}' || '' AS path FROM flows))
            ORDER BY row"
        );
        let batches = context.sql(&sql).await.expect("a plan").collect().await.expect("rows");
        let mut known = known.into_iter();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let address = known.next().expect("as many rows");
                matched += usize::from(equal(&nested, batch, row, address));
            }
        }
        assert!(known.next().is_none());
    }
    matched
}

/// Whether a row has a match, which is the right one.
fn equal(nested: &Nested, batch: &RecordBatch, row: usize, address: Option<IpAddr>) -> bool {
    let text = |at: usize| {
        let column = batch.column(at).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row))
    };
    let number = |at: usize| {
        let column = batch.column(at).as_primitive::<UInt64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    let found = address.and_then(|address| nested.longest(address));
    let (prefix, site, vlan) = match found {
        Some((prefix, site, vlan)) => (Some(&**prefix), Some(&**site), Some(*vlan)),
        None => (None, None, None),
    };
    assert_eq!([text(0), text(3)], [prefix; 2], "{address:?}");
    assert_eq!([text(1), text(4)], [site; 2], "{address:?}");
    assert_eq!([number(2), number(5), number(6)], [vlan; 3], "{address:?}");
    let covering = batch.column(7).as_list::<i32>();
    if found.is_some() {
        let of_row = covering.value(row);
        let address = address.expect("a match");
        let expected = (0..=128).rev().filter_map(|len| {
            let key = bits(address, len);
            (key.1 == len).then(|| nested.known.get(&key)).flatten()
        });
        let expected: Vec<_> = expected.map(|&at| &*nested.texts[at].0).collect();
        let of_row: Vec<_> = of_row.as_string::<i32>().iter().flatten().collect();
        assert_eq!(of_row, expected, "{address}");
    } else {
        assert!(covering.is_null(row) || covering.value(row).is_empty());
    }
    found.is_some()
}

#[tokio::test]
async fn rows_are_those_of_the_oracle() {
    assert!(compared(100_000).await > 40_000);
}

/// Ten million: minutes without optimisation (`./dev datafusion` runs it).
#[tokio::test]
#[ignore = "long: run by ./dev datafusion with the profile release"]
async fn ten_million_rows() {
    assert!(compared(10_000_000).await > 4_000_000);
}

async fn one(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.expect("a plan").collect().await.expect("rows")
}

/// While a table is replaced again and again, each answer is of a table that was there, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_table_loses_no_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.fib");
    let replace = |version: u64| write(&path, [("10.0.0.0/8", Some("x"), Some(version))]);
    replace(0);
    let context = context();
    let src: StringArray =
        (0..50_000_u32).map(|n| Some(format!("10.{}.{}.1", n % 200, n % 251))).collect();
    let batch = RecordBatch::try_from_iter([("src", Arc::new(src) as _)]).expect("a batch");
    context.register_batch("flows", batch).expect("a table");
    let sql = format!("SELECT fibula_value('{}', src, 'vlan') AS v FROM flows", path.display());
    let done = AtomicBool::new(false);
    let versions = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut version = 0;
            while !done.load(Ordering::Relaxed) {
                version += 1;
                replace(version);
            }
            version
        });
        let handle = tokio::runtime::Handle::current();
        let (context, sql) = (&context, &sql);
        let reading = scope.spawn(move || {
            handle.block_on(async {
                let mut last = 0;
                for _ in 0..20 {
                    let mut rows = 0;
                    for batch in one(context, sql).await {
                        let column = batch.column(0).as_primitive::<UInt64Type>();
                        assert_eq!(column.null_count(), 0);
                        rows += column.len();
                        last = column.values().iter().copied().fold(last, u64::max);
                    }
                    assert_eq!(rows, 50_000);
                }
                last
            })
        });
        let last = reading.join();
        done.store(true, Ordering::Relaxed);
        let written = writer.join().expect("a writer");
        (last.expect("answers"), written)
    });
    assert!(versions.0 > 0 && versions.0 <= versions.1, "{versions:?}");
    // A file that is no table is an error, and the next one is read.
    std::fs::write(folder.path().join("new"), "no table").expect("a file");
    std::fs::rename(folder.path().join("new"), &path).expect("a file");
    let broken = context.sql(&sql).await;
    let broken = match broken {
        Ok(frame) => frame.collect().await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(broken.is_err_and(|error| error.to_string().contains("t.fib")));
    replace(5);
    let found = one(&context, &sql).await;
    assert_eq!(found[0].column(0).as_primitive::<UInt64Type>().value(0), 5);
}

/// A file that is replaced between planning and reading by one with another type of column.
#[tokio::test]
async fn a_table_of_other_columns_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.fib");
    write(&path, [("10.0.0.0/8", Some("x"), Some(1))]);
    let context = context();
    let src = StringArray::from(vec!["10.0.0.1"]);
    let batch = RecordBatch::try_from_iter([("src", Arc::new(src) as _)]).expect("a batch");
    context.register_batch("flows", batch).expect("a table");
    let sql = format!("SELECT fibula('{}', src) FROM flows", path.display());
    let frame = context.sql(&sql).await.expect("a plan");
    let plan = frame.create_physical_plan().await.expect("a plan");
    let other = folder.path().join("other.fib");
    fibula_fib::Fib::of_table(
        fibula_rib::Table::from_routes(
            [("10.0.0.0/8".parse().expect("a prefix"), fibula_core::Hop::new(0))]
                .into_iter()
                .collect(),
            fibula_core::Routes::default(),
        ),
        &fibula_fib::FibOptions::default(),
    )
    .expect("engines")
    .write(&other)
    .expect("a file");
    std::fs::rename(other, &path).expect("a file");
    let found = datafusion::physical_plan::collect(plan, context.task_ctx()).await;
    let error = found.expect_err("other columns").to_string();
    assert!(error.contains("send the query again"), "{error}");
}
