//! Reads the table that the command line names.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_core::{Family, grouped};
use fibula_fib::{Fib, FibError, FibOptions};
use fibula_ingest::{Damage, Progress, ReadReport};
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{Moment, PeerChoice, Provenance, Snapshot, SourceRecord, Table, TableDate};
pub use fibula_sources::DEFAULT_HOPS;
use fibula_sources::{Merge, Watch};
use fibula_testkit::fib::{HopModel, synthetic_hops};

use crate::failure::Failure;
use crate::progress::{Bar, note};
use crate::source::{ReadArgs, Source};

/// A table in memory, with details of how it was read.
pub struct Loaded {
    /// The names of the sources.
    pub name: String,
    /// The table.
    pub table: Table,
    /// The stages of the work, with their durations.
    pub stages: Vec<(&'static str, Duration)>,
    /// Number of damaged records, which were skipped.
    pub damaged: u64,
    /// The snapshot that the table comes from, if it comes from one.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// Reads and merges the sources, in order.
pub fn load(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    check_at(sources, read)?;
    let name = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
    let mut loaded = match sources {
        [(_, Source::Snapshot(path))] if read.takes_all() => from_snapshot(path, read)?,
        [(_, Source::Embedded)] if read.takes_all() => {
            let started = Instant::now();
            let table = fibula_sources::embedded(None)?;
            Loaded::new(table, vec![("unpack", started.elapsed())])
        }
        [(name, Source::Generated(spec))] if read.takes_all() => {
            let started = Instant::now();
            let table = fibula_sources::generated(*spec);
            let mut loaded = Loaded::new(table, vec![("generate", started.elapsed())]);
            loaded.table.provenance.sources.push(SourceRecord {
                name: name.clone(),
                format: "generated".to_owned(),
                announced: spec.prefixes as u64,
                ..Default::default()
            });
            loaded
        }
        sources => merge(sources, read)?,
    };
    loaded.name = name;
    if let Some(model) = read.synthetic_hops {
        loaded.replace_hops(model);
    }
    Ok(loaded)
}

/// The seed of synthetic hops. Any value works, as long as it stays the same.
const HOP_SEED: u64 = 1;

impl Loaded {
    fn new(table: Table, stages: Vec<(&'static str, Duration)>) -> Self {
        Self { name: String::new(), table, stages, damaged: 0, snapshot: None }
    }

    /// Replaces the table's hops by synthetic ones. A snapshot's stored engines hold the old hops, so the snapshot is
    /// dropped.
    pub fn replace_hops(&mut self, model: HopModel) {
        let provenance = std::mem::take(&mut self.table.provenance);
        self.table = Table::from_routes(
            synthetic_hops(&self.table.v4, model, HOP_SEED),
            synthetic_hops(&self.table.v6, model, HOP_SEED),
        );
        self.table.provenance = provenance;
        self.snapshot = None;
    }

    /// Whether all routes have the same values, so that an engine would have nothing to distinguish.
    pub fn has_no_values(&self) -> bool {
        self.table.columns.width() == 0 || self.table.columns.len() <= 1
    }

    /// The families that have routes.
    pub fn families(&self) -> Vec<Family> {
        let (v4, v6) = (!self.table.v4.is_empty(), !self.table.v6.is_empty());
        [(v4, Family::V4), (v6, Family::V6)]
            .into_iter()
            .filter_map(|(has, f)| has.then_some(f))
            .collect()
    }
}

fn from_snapshot(path: &Path, read: &ReadArgs) -> Result<Loaded, Failure> {
    let started = Instant::now();
    match Snapshot::open_with(path, read.load) {
        Ok(snapshot) if read.at.is_none() => {
            let opened = started.elapsed();
            let table = fibula_sources::snapshot_table(&snapshot);
            let stages = vec![("open", opened), ("copy routes", started.elapsed() - opened)];
            Ok(Loaded { snapshot: Some(Arc::new(snapshot)), ..Loaded::new(table, stages) })
        }
        Err(error) if error.kind() != SnapshotErrorKind::Dated => Err(error.into()),
        _ => {
            let (table, of_date) = fibula_sources::open_snapshot(path, read.load, read.at)?;
            if let Some((date, of)) = &of_date {
                say_date(&path.display(), read.at, date, *of);
            }
            Ok(Loaded::new(table, vec![("open", started.elapsed())]))
        }
    }
}

/// Reports which table of a file of several dates was chosen, unless it has exactly the requested date.
fn say_date(name: &dyn Display, asked: Option<Moment>, date: &TableDate, of: usize) {
    let (at, of) = (date.at, grouped(of as u64));
    match asked {
        Some(asked) if asked == at => {}
        Some(_) => note(format_args!("{name}: the table of {at}")),
        None => note(format_args!(
            "{name}: the newest of {of} tables, that of {at} (--at TIME chooses another)"
        )),
    }
}

/// Refuses `--at` if no source can have dates.
pub fn check_at(sources: &[(String, Source)], read: &ReadArgs) -> Result<(), Failure> {
    let is_snapshot = |(_, source): &(String, Source)| matches!(source, Source::Snapshot(_));
    match read.at {
        Some(_) if !sources.iter().any(is_snapshot) => Err(no_dates()),
        _ => Ok(()),
    }
}

/// The error for `--at` with tables that have no dates.
pub fn no_dates() -> Failure {
    Failure::new("--at is for a file of several dates, and no table is one")
        .hint("fibula build --as-of writes one")
}

fn merge(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let started = Instant::now();
    let mut merge = Merge::new(read.settings()?);
    for (name, source) in sources {
        merge.add(name, source, &mut Aloud { at: read.at, ..Aloud::default() })?;
    }
    let (read_time, damaged) = (started.elapsed(), merge.damaged());
    let table = merge.finish()?;
    say_replaced(&table, read);
    say_unused_kinds(&table, read);
    let stages = vec![("read", read_time), ("merge", started.elapsed() - read_time)];
    Ok(Loaded { damaged, ..Loaded::new(table, stages) })
}

/// Shows the progress of a file, then its damage.
#[derive(Default)]
struct Aloud {
    bar: Option<Bar>,
    /// The time given with `--at`.
    at: Option<Moment>,
}

impl Watch for Aloud {
    fn progress(&mut self, name: &str, progress: Progress) {
        self.bar.get_or_insert_with(|| Bar::new(name)).show(progress);
    }

    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        self.bar = None; // the bar must be removed before a message is printed
        say_report(name, report, damage);
    }

    fn taken(&mut self, name: &str, date: &TableDate, of: usize) {
        say_date(&name, self.at, date, of);
    }

    fn stands_in(&mut self, name: &str, column: &str, value: &str) {
        note(format_args!("{name}: no column {column}, its name stands for it: {value}"));
    }
}

/// Names the columns of `--kind` that no source has: most likely they are misspelt. Numbers count the columns of a file.
fn say_unused_kinds(table: &Table, read: &ReadArgs) {
    let is_there = |name: &str| table.columns.find(name).is_some();
    let unused =
        |name: &str| read.columns.is_none() && name.parse::<u64>().is_err() && !is_there(name);
    for (name, _) in read.kind.iter().filter(|(name, _)| unused(name)) {
        note(format_args!("--kind {name}=... had no effect: no column of values is called {name}"));
    }
}

/// Reports how many prefixes were replaced by a later line or source, and with `-v` names them.
fn say_replaced(table: &Table, read: &ReadArgs) {
    let Provenance { sources, replaced, tags, .. } = &table.provenance;
    let counts = match tags {
        None => "the last one counts",
        Some(_) => "the last one counts but for the tags",
    };
    let mut in_all = 0;
    for source in sources {
        let SourceRecord { name, repeated, replaced, .. } = source;
        in_all += repeated + replaced;
        if *repeated > 0 {
            let lines = plural(*repeated, "record repeats", "records repeat");
            note(format_args!("{name}: {lines} a prefix of the same source: {counts}"));
        }
        if *replaced > 0 {
            let prefixes = plural(*replaced, "prefix", "prefixes");
            note(format_args!("{name}: {prefixes} of earlier sources replaced: {counts}"));
        }
    }
    if in_all > 0 && !read.verbose {
        note("-v names them");
    }
    if read.verbose {
        replaced.iter().for_each(|found| note(format_args!("  {found}")));
        let more = in_all.saturating_sub(replaced.len() as u64);
        if more > 0 {
            note(format_args!("  and {} more", grouped(more)));
        }
    }
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// The BGP peers whose routes the table has. Each collector peer sees other routes, so reports always say which were
/// used.
pub fn peer(table: &Table, read: &ReadArgs) -> Option<String> {
    let text = table.provenance.peers_text()?;
    let is_one_of_several = table.selected_peer().is_some_and(|peer| peer.of > 1);
    let why = match read.peer.0 {
        PeerChoice::Most if is_one_of_several => " (--peer best takes the best paths of all)",
        _ => "",
    };
    Some(format!("{text}{why}"))
}

/// Like [`load`], and reports the chosen BGP peers on standard error.
pub fn load_aloud(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let loaded = load(sources, read)?;
    if let Some(peer) = peer(&loaded.table, read) {
        note(format_args!("{}: peer {peer}", loaded.name));
    }
    Ok(loaded)
}

/// Opens the table that the sources name. A snapshot is used in place; everything else is compiled in memory.
pub fn open(
    sources: &[(String, Source)],
    read: &ReadArgs,
    options: &FibOptions,
) -> Result<Fib, Failure> {
    if let [(_, Source::Snapshot(path))] = sources
        && read.takes_all()
        && read.synthetic_hops.is_none()
        && read.at.is_none()
    {
        match Fib::open_with(path, &options.clone().loading(read.load)) {
            Err(FibError::Snapshot(error)) if error.kind() == SnapshotErrorKind::Dated => {}
            other => return Ok(other?),
        }
    }
    Ok(Fib::of_table(load_aloud(sources, read)?.table, options)?)
}

/// Reports damaged and ignored records.
pub fn say_report(name: &str, report: &ReadReport, damage: &[Damage]) {
    let records = grouped(report.records);
    if report.damaged > 0 {
        let damaged = grouped(report.damaged);
        note(format_args!("{name}: {damaged} of {records} records damaged and skipped:"));
        damage.iter().for_each(|damage| note(format_args!("  {damage}")));
        if report.damaged > damage.len() as u64 {
            note(format_args!("  and {} more", grouped(report.damaged - damage.len() as u64)));
        }
    }
    for (what, count) in &report.noted {
        note(format_args!("{name}: {what}: {}", grouped(*count)));
    }
    for (what, count) in &report.ignored {
        note(format_args!("{name}: passed over {} {what}", grouped(*count)));
    }
}
