//! Sources that end: files and tables in memory.

use std::collections::HashMap;

use fibula_core::{Addr, Attributes, Change, Routes, Update, Value};
use fibula_ingest::{Consumer, Damage, PeerInfo, ReadOptions, ReadReport, SourceInfo, SourceSpec};
use fibula_rib::{Columns, Peer, Table};

use crate::listen::NOBODY;
use crate::{FeedError, Listener};

/// Descriptions of damage that a [`FileReport`] keeps.
pub const DAMAGE_KEPT: usize = 5;

/// What was in a file.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// What was read.
    pub read: ReadReport,
    /// The first [`DAMAGE_KEPT`] of what was damaged and skipped.
    pub damage: Vec<Damage>,
}

/// Tells the listener what the file says.
///
/// # Errors
/// If the file cannot be read, or if the listener cannot go on.
pub fn file(
    spec: &SourceSpec,
    options: &mut ReadOptions<'_>,
    to: &mut dyn Listener,
) -> Result<FileReport, FeedError> {
    let mut reading = Reading {
        to,
        indices: HashMap::new(),
        places: Places::default(),
        failed: None,
        damage: Vec::new(),
    };
    let read = fibula_ingest::read(spec, options, &mut reading)?;
    let Reading { failed, damage, .. } = reading;
    match failed {
        Some(failed) => Err(failed),
        None => Ok(FileReport { read, damage }),
    }
}

/// The peer of a source as a table knows it.
pub(crate) fn known_as(index: u32, info: &PeerInfo) -> Peer {
    // Without an address, the AS alone does not make two peers the same; the index has to.
    let asn = if info.address.is_none() && info.asn == 0 { index } else { info.asn };
    Peer { address: info.address, asn }
}

/// Where a listener has the values of a source's columns.
#[derive(Default)]
struct Places {
    /// Empty where they stand in order already.
    of_columns: Vec<usize>,
    width: usize,
}

impl Places {
    fn of<'a>(columns: impl Iterator<Item = &'a str>, to: &mut dyn Listener) -> Self {
        let columns: Vec<&str> = columns.collect();
        if columns.is_empty() {
            return Self::default();
        }
        let places = to.value_places(&columns);
        let width = places.iter().max().map_or(0, |last| last + 1);
        let in_order = places.iter().copied().eq(0..places.len());
        Self { of_columns: if in_order { Vec::new() } else { places }, width }
    }

    /// Tells the update with its values in their places.
    fn tell(&self, update: &Update<'_>, to: &mut dyn Listener) -> Result<(), FeedError> {
        match update.change {
            Change::Announce(Attributes::Values(values)) if !self.of_columns.is_empty() => {
                let mut placed = vec![Value::Null; self.width];
                for (&place, &value) in self.of_columns.iter().zip(values) {
                    placed[place] = value;
                }
                let change = Change::Announce(Attributes::Values(&placed));
                to.update(&Update { change, ..*update })
            }
            _ => to.update(update),
        }
    }
}

/// Between the reader of a file and a listener.
struct Reading<'a> {
    to: &'a mut dyn Listener,
    /// The numbers of the file's peers.
    indices: HashMap<u32, u32>,
    places: Places,
    /// The first failure; what comes behind it is not told.
    failed: Option<FeedError>,
    damage: Vec<Damage>,
}

impl Reading<'_> {
    fn number(&mut self, index: u32) -> u32 {
        *self.indices.entry(index).or_insert_with(|| self.to.peer(&NOBODY))
    }

    fn tell(&mut self, what: impl FnOnce(&mut dyn Listener) -> Result<(), FeedError>) {
        if self.failed.is_none() {
            self.failed = what(self.to).err();
        }
    }
}

impl Consumer for Reading<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        let columns = info.columns.iter().map(|column| column.name.as_str());
        self.places = Places::of(columns, self.to);
    }

    fn peer(&mut self, index: u32, info: &PeerInfo) {
        let number = self.to.peer(&known_as(index, info));
        self.indices.insert(index, number);
    }

    fn peer_down(&mut self, index: u32, _time: u64) {
        let peer = self.number(index);
        self.tell(|to| to.down(peer));
    }

    fn update(&mut self, update: &Update<'_>) {
        let peer = self.number(update.peer);
        let Self { to, places, failed, .. } = self;
        if failed.is_none() {
            let update = Update { peer, ..*update };
            *failed = places.tell(&update, &mut **to).err();
        }
    }

    fn damage(&mut self, damage: &Damage) {
        if self.damage.len() < DAMAGE_KEPT {
            self.damage.push(damage.clone());
        }
    }
}

/// Tells the listener the routes of a table, each with the values of its columns.
///
/// # Errors
/// If the listener cannot go on.
pub fn table(table: &Table, to: &mut dyn Listener) -> Result<(), FeedError> {
    let peer = to.peer(&NOBODY);
    let places = Places::of(table.columns.names(), to);
    family(&table.v4, &table.columns, (peer, &places), to)?;
    family(&table.v6, &table.columns, (peer, &places), to)
}

fn family<A: Addr>(
    routes: &Routes<A>,
    columns: &Columns,
    (peer, places): (u32, &Places),
    to: &mut dyn Listener,
) -> Result<(), FeedError> {
    let mut values = Vec::new();
    for route in routes.iter() {
        let value = |column| match route.hop.index() {
            Some(row) => columns.value(column, row),
            None => Value::Null,
        };
        values.clear();
        values.extend((0..columns.width()).map(value));
        let change = Change::Announce(Attributes::Values(&values));
        places.tell(&Update { peer, ..Update::new(route.prefix.into(), change) }, to)?;
    }
    Ok(())
}
