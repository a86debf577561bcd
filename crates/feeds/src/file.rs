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
    let mut reading = Reading { to, indices: HashMap::new(), failed: None, damage: Vec::new() };
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

/// Between the reader of a file and a listener.
struct Reading<'a> {
    to: &'a mut dyn Listener,
    /// The numbers of the file's peers.
    indices: HashMap<u32, u32>,
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
    fn begin(&mut self, _: &SourceInfo) {}

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
        self.tell(|to| to.update(&Update { peer, ..*update }));
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
    family(&table.v4, &table.columns, peer, to)?;
    family(&table.v6, &table.columns, peer, to)
}

fn family<A: Addr>(
    routes: &Routes<A>,
    columns: &Columns,
    peer: u32,
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
        to.update(&Update { peer, ..Update::new(route.prefix.into(), change) })?;
    }
    Ok(())
}
