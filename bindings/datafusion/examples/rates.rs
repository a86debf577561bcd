//! Rates of `fibula_number` and `fibula_prefix` beside DataFusion's own joins, in one run.
//!
//! `cargo run --release --example rates -- [ROWS] [PREFIXES]`
//!
//! The IPv4 prefixes do not overlap, so a join on their bits is right: one for each length that the table has, which is
//! DataFusion's quickest way, since it has no join of intervals but the nested loop. All ways have to give the same sums
//! before anything is timed; they run in turns, and the median counts.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{SessionConfig, SessionContext};
use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};

const LENGTHS: [u32; 7] = [16, 19, 20, 21, 22, 23, 24];

type Error = Box<dyn std::error::Error>;

/// A generator of numbers that are the same in each run (xorshift64).
fn next(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u32
}

/// First address, length and value of prefixes that do not overlap, most of them short of a routing table's.
fn networks(count: usize) -> Vec<(u32, u32, u32)> {
    let (mut found, mut at, mut state) = (Vec::new(), 1_u64 << 24, 7);
    while found.len() < count && at < 223 << 24 {
        let of = next(&mut state) % 45;
        let len = LENGTHS[[0, 1, 2, 3, 5, 7, 9].iter().filter(|&&from| of >= from).count() - 1];
        let size = 1_u64 << (32 - len);
        at = at.div_ceil(size) * size + size * u64::from(next(&mut state) % 3);
        found.push((at as u32, len, next(&mut state) % 70_000));
        at += size;
    }
    found
}

fn dotted(address: u32) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}

async fn sums(context: &SessionContext, sql: &str) -> Result<(i64, i64), Error> {
    let batches = context.sql(sql).await?.collect().await?;
    let of = |column: usize| batches[0].column(column).as_primitive::<Int64Type>().value(0);
    Ok((of(0), of(1)))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments.next().map_or(Ok(4_000_000), |text| text.parse())?;
    let count: usize = arguments.next().map_or(Ok(500_000), |text| text.parse())?;
    let networks = networks(count);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("t.fib");
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("rates", "text", &[("asn".into(), ColumnKind::Int)], false, None);
    for &(first, len, asn) in &networks {
        let row = [Value::Int(asn.into())];
        let change = Change::Announce(Attributes::Values(&row));
        builder.apply(&Update::new(format!("{}/{len}", dotted(first)).parse()?, change));
    }
    Fib::of_table(builder.finish()?, &FibOptions::default())?.write(&path)?;

    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    fibula_datafusion::functions().into_iter().for_each(|function| context.register_udf(function));
    // Half of the addresses lie in prefixes, the others anywhere.
    let mut state = 9;
    let addresses: StringArray = (0..rows)
        .map(|row| {
            let random = next(&mut state);
            let (first, len, _) = networks[random as usize % networks.len()];
            let inside = first | next(&mut state) & (u32::MAX >> len);
            Some(dotted(if row % 2 == 0 { inside } else { random }))
        })
        .collect();
    let batch = RecordBatch::try_from_iter([("ip", Arc::new(addresses) as _)])?;
    let batches: Vec<_> =
        (0..rows).step_by(8192).map(|at| batch.slice(at, 8192.min(rows - at))).collect();
    let (one, other) = batches.split_at(batches.len() / 2);
    let flows = datafusion::datasource::MemTable::try_new(
        batch.schema(),
        vec![one.to_vec(), other.to_vec()],
    )?;
    context.register_table("flows", Arc::new(flows))?;
    let mut coalesce = (Vec::new(), Vec::new());
    let mut joins = String::new();
    for len in LENGTHS {
        let of = networks.iter().filter(|network| network.1 == len);
        let (keys, rest): (Vec<u32>, Vec<&(u32, u32, u32)>) =
            of.map(|of| (of.0 >> (32 - len), of)).unzip();
        let batch = RecordBatch::try_from_iter([
            ("key", Arc::new(UInt32Array::from(keys)) as _),
            ("asn", Arc::new(rest.iter().map(|of| Some(of.2)).collect::<UInt32Array>()) as _),
            (
                "prefix",
                Arc::new(
                    rest.iter()
                        .map(|of| Some(format!("{}/{len}", dotted(of.0))))
                        .collect::<StringArray>(),
                ) as _,
            ),
        ])?;
        context.register_batch(format!("l{len}"), batch)?;
        write!(joins, " LEFT JOIN l{len} ON l{len}.key = (number >> {})", 32 - len)?;
        coalesce.0.push(format!("l{len}.asn"));
        coalesce.1.push(format!("l{len}.prefix"));
    }
    let octet = |at: u32| {
        format!("CAST(split_part(ip, '.', {at}) AS INT UNSIGNED) * {}", 1_u64 << (32 - 8 * at))
    };
    let number = (1..=4).map(octet).collect::<Vec<_>>().join(" + ");
    let joined = format!("(SELECT CAST({number} AS INT UNSIGNED) AS number FROM flows){joins}");
    let path = path.display();
    let number = "SELECT count(v), CAST(sum(v) AS BIGINT) FROM";
    let text = "SELECT count(p), CAST(sum(length(p)) AS BIGINT) FROM";
    let ways = [
        (
            "value, fibula",
            format!("{number} (SELECT fibula_number('{path}', ip, 'asn') AS v FROM flows)"),
        ),
        (
            "value, joins",
            format!("{number} (SELECT coalesce({}) AS v FROM {joined})", coalesce.0.join(", ")),
        ),
        ("prefix, fibula", format!("{text} (SELECT fibula_prefix('{path}', ip) AS p FROM flows)")),
        (
            "prefix, joins",
            format!("{text} (SELECT coalesce({}) AS p FROM {joined})", coalesce.1.join(", ")),
        ),
    ];
    let mut found = Vec::new();
    for (_, sql) in &ways {
        found.push(sums(&context, sql).await?);
    }
    if found[0] != found[1] || found[2] != found[3] {
        return Err(format!("the answers differ: {found:?}").into());
    }
    let mut seconds = vec![Vec::new(); ways.len()];
    for _ in 0..5 {
        for ((_, sql), seconds) in ways.iter().zip(&mut seconds) {
            let begin = Instant::now();
            sums(&context, sql).await?;
            seconds.push(begin.elapsed().as_secs_f64());
        }
    }
    println!("{rows} rows, {} prefixes, {} rows with a value", networks.len(), found[0].0);
    for ((name, _), seconds) in ways.iter().zip(&mut seconds) {
        seconds.sort_by(f64::total_cmp);
        println!(
            "{name:16} {:6.1} million rows a second",
            rows as f64 / seconds[seconds.len() / 2] / 1e6
        );
    }
    Ok(())
}
