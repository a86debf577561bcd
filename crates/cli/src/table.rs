//! Reads the table that the command line names.

use std::fmt::Display;

pub use fibula::sources::{DEFAULT_HOPS, Loaded};
use fibula::sources::{Watch, nested_tags};
use fibula_core::grouped;
use fibula_fib::{DatedFib, Fib, FibError, FibOptions};
use fibula_ingest::{Damage, ReadProgress, ReadReport};
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{Moment, PeerChoice, Provenance, SourceRecord, Table, TableDate};

use crate::config;
use crate::failure::Failure;
use crate::progress::{Bar, note};
use crate::source::{ReadArgs, Source};

/// Reads and merges the sources, in order.
pub fn load(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    check_at(sources, read)?;
    let mut loaded = fibula::sources::load(sources, &read.settings()?, &mut Aloud::of(read))?;
    config::report(Some(&loaded.table.provenance));
    if let Some(model) = read.synthetic_hops {
        loaded.replace_hops(model);
    }
    Ok(loaded)
}

/// Reports which table of a file of several dates was chosen, unless it has exactly the requested date.
fn report_date(name: &dyn Display, requested: Option<Moment>, date: &TableDate, of: usize) {
    let (at, of) = (date.at, grouped(of as u64));
    match requested {
        Some(requested) if requested == at => {}
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

/// Shows the progress of a file, then its damage; at the end the replaced routes.
struct Aloud<'a> {
    bar: Option<Bar>,
    read: &'a ReadArgs,
}

impl<'a> Aloud<'a> {
    fn of(read: &'a ReadArgs) -> Self {
        Self { bar: None, read }
    }
}

impl Watch for Aloud<'_> {
    fn progress(&mut self, name: &str, progress: ReadProgress) {
        self.bar.get_or_insert_with(|| Bar::new(name)).show(progress);
    }

    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        self.bar = None; // the bar must be removed before a message is printed
        report_read(name, report, damage);
    }

    fn taken(&mut self, name: &str, date: &TableDate, of: usize) {
        report_date(&name, self.read.at, date, of);
    }

    fn stands_in(&mut self, name: &str, column: &str, value: &str) {
        note(format_args!("{name}: no column {column}, its values are the file's name: {value}"));
    }

    fn merged(&mut self, table: &Table) {
        report_replaced(table, self.read);
        report_unused_kinds(table, self.read);
        if let Some(text) = nested_tags(table) {
            note(text);
        }
    }
}

/// Names the columns of `--kind` that no source has: most likely they are misspelt. Numbers count the columns of a
/// file.
fn report_unused_kinds(table: &Table, read: &ReadArgs) {
    let is_there = |name: &str| table.columns.find(name).is_some();
    let unused =
        |name: &str| read.columns.is_none() && name.parse::<u64>().is_err() && !is_there(name);
    for (name, _) in read.kind.iter().filter(|(name, _)| unused(name)) {
        note(format_args!("--kind {name}=... had no effect: no column of values is called {name}"));
    }
}

/// Reports how many prefixes were replaced by a later line or source, and with `-v` names them.
fn report_replaced(table: &Table, read: &ReadArgs) {
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
pub fn peer(provenance: &Provenance, read: &ReadArgs) -> Option<String> {
    let text = provenance.peers_text()?;
    let is_one_of_several = provenance.selected_peer.as_ref().is_some_and(|peer| peer.of > 1);
    let why = match read.peer.0 {
        PeerChoice::Most if is_one_of_several => " (--peer best takes the best paths of all)",
        _ => "",
    };
    Some(format!("{text}{why}"))
}

/// Like [`load`], and reports the chosen BGP peers on standard error.
pub fn load_aloud(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let loaded = load(sources, read)?;
    if let Some(peer) = peer(&loaded.table.provenance, read) {
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
    if read.synthetic_hops.is_some() {
        return Ok(Fib::of_table(load_aloud(sources, read)?.table, options)?);
    }
    check_at(sources, read)?;
    let fib = fibula::sources::open(sources, &read.settings()?, options, &mut Aloud::of(read))?;
    config::report(Some(fib.provenance()));
    if fib.path().is_none()
        && let Some(peer) = peer(fib.provenance(), read)
    {
        let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
        note(format_args!("{}: peer {peer}", names.join(",")));
    }
    Ok(fib)
}

/// Opens the source if it is one file of several dates.
pub fn open_dated(
    sources: &[(String, Source)],
    options: &FibOptions,
) -> Result<Option<DatedFib>, Failure> {
    let [(_, Source::Snapshot(path))] = sources else { return Ok(None) };
    match DatedFib::open_with(path, options) {
        Err(FibError::Snapshot(error)) if error.kind() == SnapshotErrorKind::NotDated => Ok(None),
        opened => {
            config::report(None);
            Ok(Some(opened?))
        }
    }
}

/// Reports damaged and ignored records.
pub fn report_read(name: &str, report: &ReadReport, damage: &[Damage]) {
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
    for remark in &report.remarks {
        note(format_args!("{name}: {remark}"));
    }
    for (what, count) in &report.ignored {
        note(format_args!("{name}: passed over {} {what}", grouped(*count)));
    }
}
