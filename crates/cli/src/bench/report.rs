//! Reports of measurements.

use std::io::Write;

use fibula_core::{Addr, AnyEngine, Routes, grouped};
use fibula_simd::{huge_bytes, huge_pages_off};

use fibula_testkit::measure::{LookupMode, Stamp, TrafficInput, median, rounded};
use serde::Serialize;

use super::{Args, Figures, Spread};
use crate::failure::Failure;
use crate::output::{self, Grid};

/// A measurement. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    engine: String,
    isa: &'static str,
    family: &'static str,
    table: String,
    prefixes: usize,
    traffic: String,
    batch: usize,
    mlps: f64,
    mlps_min: f64,
    mlps_max: f64,
    dependent_ns: f64,
    bytes: usize,
    /// Of these, those on huge pages. `None` if the system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_bytes: Option<usize>,
    build_ms: f64,
    threads: u32,
    spread: &'static str,
    one_thread_mlps: f64,
    ratio: f64,
}

impl Row {
    /// The row of a measurement.
    pub fn new<A: Addr>(
        table: &str,
        routes: &Routes<A>,
        traffic: &TrafficInput,
        args: &Args,
        (mode, threads): (LookupMode, u32),
        figures: Figures<'_, A>,
    ) -> Self {
        let Figures { built, mut mlps, mut alone, mut dependent, .. } = figures;
        let (median_mlps, one_thread) = (median(&mut mlps), median(&mut alone));
        Self {
            engine: built.label.clone(),
            isa: built.isa.name(),
            family: A::FAMILY.name(),
            table: table.to_owned(),
            prefixes: routes.len(),
            traffic: traffic.to_string(),
            batch: match mode {
                LookupMode::Batch(batch) => batch,
                LookupMode::Dependent => 1,
            },
            mlps: rounded(median_mlps),
            mlps_min: rounded(mlps.first().copied().unwrap_or_default()),
            mlps_max: rounded(mlps.last().copied().unwrap_or_default()),
            dependent_ns: rounded(median(&mut dependent)),
            bytes: built.engine.memory().total(),
            huge_bytes: on_huge_pages(&*built.engine),
            build_ms: rounded(built.time.as_secs_f64() * 1000.0),
            threads,
            spread: args.spread.name(),
            one_thread_mlps: rounded(one_thread),
            ratio: rounded(median_mlps / one_thread),
        }
    }

    /// The share of the table on huge pages, and why there is none.
    fn huge_share(&self) -> String {
        let Some(huge) = self.huge_bytes else { return "-".to_owned() };
        let off = huge_pages_off().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{:.0} %{off}", 100.0 * huge as f64 / self.bytes.max(1) as f64)
    }

    /// Whether there was anything but one thread with its own keys.
    fn is_spread(&self) -> bool {
        self.threads > 1 || self.spread != Spread::Own.name()
    }
}

/// The bytes of the engine's tables that lie on huge pages; `None` if the system does not say, or the engine does not
/// say where its tables are.
fn on_huge_pages<A: Addr>(engine: &dyn AnyEngine<A>) -> Option<usize> {
    let (_, tables) = engine.persist()?;
    tables.iter().map(|table| huge_bytes(table.bytes)).sum()
}

/// Prints the machine, the number of runs, and the number of keys of each.
pub fn machine(stamp: &Stamp, runs: u32, keys: Option<u32>) -> Result<(), Failure> {
    let Stamp { processor, date, .. } = stamp;
    let mut out = output::stdout();
    writeln!(out, "{processor}, {date}")?;
    write!(out, "median of {runs} runs")?;
    if let Some(keys) = keys {
        write!(out, ", {} keys each", grouped(keys.into()))?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints measurements as JSON, with the circumstances in which they were taken.
pub fn json<R: Serialize>(stamp: &Stamp, rows: &[R]) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Record<'a, R> {
        stamp: &'a Stamp,
        rows: &'a [R],
    }
    output::json(&Record { stamp, rows })
}

/// Prints the measurements of one table, traffic and batch.
pub fn group(rows: &[Row]) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut out = output::stdout();
    let prefixes = grouped(first.prefixes as u64);
    write!(out, "\n{}, IP{}, {prefixes} prefixes, ", first.table, first.family)?;
    write!(out, "{}, batch {}, threads {}", first.traffic, first.batch, first.threads)?;
    let mut columns = vec![
        "engine",
        "isa",
        ">Mlps",
        ">min",
        ">max",
        ">dependent ns",
        ">bytes/prefix",
        ">memory",
        ">build ms",
    ];
    let knows_huge_pages = rows.iter().any(|row| row.huge_bytes.is_some());
    if knows_huge_pages {
        columns.push(">huge pages");
    }
    if first.is_spread() {
        write!(out, ", spread {}", first.spread)?;
        columns.extend([">one thread", ">ratio"]);
    }
    writeln!(out)?;
    let mut grid = Grid::new(&columns);
    for row in rows {
        let mut cells = vec![
            row.engine.clone(),
            row.isa.to_owned(),
            format!("{:.1}", row.mlps),
            format!("{:.1}", row.mlps_min),
            format!("{:.1}", row.mlps_max),
            format!("{:.1}", row.dependent_ns),
            format!("{:.1}", row.bytes as f64 / row.prefixes.max(1) as f64),
            output::size(row.bytes as u64),
            format!("{:.0}", row.build_ms),
        ];
        if knows_huge_pages {
            cells.push(row.huge_share());
        }
        if row.is_spread() {
            cells.extend([format!("{:.1}", row.one_thread_mlps), format!("{:.2}", row.ratio)]);
        }
        grid.row(cells);
    }
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(())
}
