//! From the sources that the command line names to a table.

use std::path::Path;
use std::time::{Duration, Instant};

use fibula_core::{Attributes, Change, Family, Update, Value, grouped};
use fibula_ingest::{Consumer, Damage, PeerInfo, ReadReport, SourceInfo};
use fibula_rib::{Columns, PeerChoice, Snapshot, StoredFamily, Table, TableBuilder};
use fibula_testkit::fib::{HopModel, synthetic_hops};

use crate::embedded;
use crate::failure::Failure;
use crate::progress::{Bar, note};
use crate::source::{ReadArgs, Source};

/// A table in memory, and what it took to get it there.
pub struct Loaded {
    /// The sources, as they were named.
    pub name: String,
    /// The table.
    pub table: Table,
    /// What was done, and how long it took.
    pub stages: Vec<(&'static str, Duration)>,
    /// Records that were damaged and skipped.
    pub damaged: u64,
    /// The snapshot that the table comes from, if it is one.
    pub snapshot: Option<Snapshot>,
}

/// Reads and merges the sources, in order.
pub fn load(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let name = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
    let mut loaded = match sources {
        [(_, Source::Snapshot(path))] if read.columns.is_none() => from_snapshot(path)?,
        [(name, Source::Generated(spec))] => {
            let started = Instant::now();
            let spec_hops = spec.with_hops(DEFAULT_HOPS);
            let table = match spec.family {
                Family::V4 => Table::from_routes(spec_hops.generate(), Default::default()),
                Family::V6 => Table::from_routes(Default::default(), spec_hops.generate()),
            };
            let mut loaded = Loaded::new(table, vec![("generate", started.elapsed())]);
            loaded.table.provenance.sources.push(fibula_rib::SourceRecord {
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

/// What generated tables, and tables without values, have for hops unless told otherwise.
pub const DEFAULT_HOPS: HopModel = HopModel::Hash(256);

/// Another seed than that of generated prefixes would do as well; it only has to stay the same.
const HOP_SEED: u64 = 1;

impl Loaded {
    fn new(table: Table, stages: Vec<(&'static str, Duration)>) -> Self {
        Self { name: String::new(), table, stages, damaged: 0, snapshot: None }
    }

    /// Gives the table synthetic hops in place of its own. A snapshot's stored engines answer with
    /// the old ones and are left out from then on.
    pub fn replace_hops(&mut self, model: HopModel) {
        let provenance = std::mem::take(&mut self.table.provenance);
        self.table = Table::from_routes(
            synthetic_hops(&self.table.v4, model, HOP_SEED),
            synthetic_hops(&self.table.v6, model, HOP_SEED),
        );
        self.table.provenance = provenance;
        self.snapshot = None;
    }

    /// Whether all routes of both families say the same: nothing for an engine to tell apart.
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

fn from_snapshot(path: &Path) -> Result<Loaded, Failure> {
    let started = Instant::now();
    let snapshot = Snapshot::open(path)?;
    let opened = started.elapsed();
    let table = Table {
        v4: snapshot.family::<u32>().to_routes(),
        v6: snapshot.family::<u128>().to_routes(),
        columns: snapshot.columns().clone(),
        provenance: snapshot.provenance().clone(),
    };
    let stages = vec![("open", opened), ("copy routes", started.elapsed() - opened)];
    Ok(Loaded { snapshot: Some(snapshot), ..Loaded::new(table, stages) })
}

fn merge(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let mut builder = TableBuilder::new(read.builder());
    let started = Instant::now();
    let mut damaged = 0;
    for (name, source) in sources {
        match source {
            Source::Embedded => embedded::feed(&mut builder),
            Source::Generated(spec) => {
                let hops = spec.with_hops(DEFAULT_HOPS);
                let table = match spec.family {
                    Family::V4 => Table::from_routes(hops.generate(), Default::default()),
                    Family::V6 => Table::from_routes(Default::default(), hops.generate()),
                };
                feed_table(&mut builder, name, "generated", &table);
            }
            Source::Snapshot(path) => {
                let loaded = from_snapshot(path)?;
                feed_table(&mut builder, name, "snapshot", &loaded.table);
            }
            Source::Feed(path) => damaged += feed_file(&mut builder, path, read)?,
        }
    }
    let read_time = started.elapsed();
    let table = builder.finish()?;
    let stages = vec![("read", read_time), ("merge", started.elapsed() - read_time)];
    Ok(Loaded { damaged, ..Loaded::new(table, stages) })
}

/// Whose view of the world a BGP table is, and that there are others: it must not stay unsaid.
pub fn peer(table: &Table, read: &ReadArgs) -> Option<String> {
    let peer = table.selected_peer()?;
    let why = match read.peer.0 {
        PeerChoice::Most if peer.of > 1 => " (the one with the most; --peer takes another)",
        _ => "",
    };
    Some(format!("{peer}{why}"))
}

/// [`load`], and says on standard error whose view it is.
pub fn load_aloud(sources: &[(String, Source)], read: &ReadArgs) -> Result<Loaded, Failure> {
    let loaded = load(sources, read)?;
    if let Some(peer) = peer(&loaded.table, read) {
        note(format_args!("{}: peer {peer}", loaded.name));
    }
    Ok(loaded)
}

fn feed_table(builder: &mut TableBuilder, name: &str, format: &str, table: &Table) {
    let columns: Vec<_> = table
        .columns
        .names()
        .enumerate()
        .map(|(i, n)| (n.to_owned(), table.columns.kind(i)))
        .collect();
    builder.begin_source(name, format, &columns, false, None);
    feed_routes::<u32>(builder, table, fibula_core::AnyPrefix::V4);
    feed_routes::<u128>(builder, table, fibula_core::AnyPrefix::V6);
}

fn feed_routes<A: StoredFamily>(
    builder: &mut TableBuilder,
    table: &Table,
    any: fn(fibula_core::Prefix<A>) -> fibula_core::AnyPrefix,
) {
    let mut values = Vec::new();
    for route in table.routes::<A>().iter() {
        values.clear();
        values.extend(row(&table.columns, route.hop));
        builder.apply(&Update {
            prefix: any(route.prefix),
            peer: 0,
            path_id: 0,
            time: 0,
            change: Change::Announce(Attributes::Values(&values)),
        });
    }
}

/// The values of a hop, column by column.
pub fn row(columns: &Columns, hop: fibula_core::Hop) -> impl Iterator<Item = Value<'_>> {
    (0..columns.width())
        .map(move |column| hop.index().map_or(Value::Null, |row| columns.value(column, row)))
}

fn feed_file(builder: &mut TableBuilder, path: &Path, read: &ReadArgs) -> Result<u64, Failure> {
    let spec = read.spec(path);
    let mut feeder = Feeder { builder, damage: Vec::new() };
    let report = {
        let bar = Bar::new(&spec.name()); // gone before anything else is said
        let mut show = |progress| bar.show(progress);
        let mut options = read.decoder()?;
        options.progress = Some(&mut show);
        fibula_ingest::read(&spec, &mut options, &mut feeder)?
    };
    say_report(&spec.name(), &report, &feeder.damage);
    Ok(report.damaged)
}

/// Damage reported in full for each file.
pub const SHOWN: usize = 5;

/// Says what was damaged and what was passed over.
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
    for (what, count) in &report.ignored {
        note(format_args!("{name}: passed over {} {what}", grouped(*count)));
    }
}

/// Hands what is decoded to the table builder.
struct Feeder<'a> {
    builder: &'a mut TableBuilder,
    damage: Vec<Damage>,
}

impl Consumer for Feeder<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        let kind = |kind| match kind {
            fibula_ingest::ColumnKind::Int => fibula_rib::ColumnKind::Int,
            fibula_ingest::ColumnKind::Str => fibula_rib::ColumnKind::Str,
        };
        let columns: Vec<_> = info.columns.iter().map(|c| (c.name.clone(), kind(c.kind))).collect();
        self.builder.begin_source(&info.name, info.format, &columns, info.bgp, info.date);
    }

    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        self.builder.add_peer(index, peer.address, peer.asn);
    }

    fn peer_down(&mut self, index: u32, _time: u64) {
        self.builder.peer_down(index);
    }

    fn update(&mut self, update: &Update<'_>) {
        self.builder.apply(update);
    }

    fn damage(&mut self, damage: &Damage) {
        if self.damage.len() < SHOWN {
            self.damage.push(damage.clone());
        }
    }
}
