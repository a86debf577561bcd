//! Sources with an end: files, and tables in memory.

use std::cell::RefCell;

use fibula_core::{Addr, Attributes, Change, Routes, Update, Value};
use fibula_ingest::{Damage, ReadOptions, ReadReport, SourceSpec};
use fibula_rib::{Columns, Listener, Table};

use crate::column_map::ColumnMap;
use crate::listen::NOBODY;
use crate::peer_mapper::{PeerMapper, Peers};
use crate::{Event, FeedError};

/// Maximum number of damage descriptions in a [`FileReport`].
pub const DAMAGE_KEPT: usize = 5;

/// The result of reading a file.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// The counts.
    pub read: ReadReport,
    /// The first [`DAMAGE_KEPT`] damaged parts, which were skipped.
    pub damage: Vec<Damage>,
}

/// Passes the contents of a file to the listener.
///
/// # Errors
/// If the file cannot be read, and errors of the listener.
pub fn file(
    spec: &SourceSpec,
    options: &mut ReadOptions<'_>,
    to: &mut dyn Listener,
) -> Result<FileReport, FeedError> {
    let (mut peers, speaker, damage) = (Peers::default(), NOBODY, RefCell::new(Vec::new()));
    let events = |event| {
        let mut kept = damage.borrow_mut();
        if let Event::Damaged(damage) = event
            && kept.len() < DAMAGE_KEPT
        {
            kept.push(damage);
        }
    };
    let mut mapper = PeerMapper::new(to, (&mut peers, false), (&speaker, ""), &events);
    let read = fibula_ingest::read(spec, options, &mut mapper)?;
    match mapper.failed {
        Some(failed) => Err(failed),
        None => Ok(FileReport { read, damage: damage.take() }),
    }
}

/// Passes the routes of a table to the listener, each with the values of its columns.
///
/// # Errors
/// Errors of the listener.
pub fn table(table: &Table, to: &mut dyn Listener) -> Result<(), FeedError> {
    let peer = to.peer(&NOBODY);
    let places = ColumnMap::of(table.columns.names(), to);
    family(&table.v4, &table.columns, (peer, &places), to)?;
    family(&table.v6, &table.columns, (peer, &places), to)
}

fn family<A: Addr>(
    routes: &Routes<A>,
    columns: &Columns,
    (peer, places): (u32, &ColumnMap),
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
        places.pass_on(&Update { peer, ..Update::new(route.prefix.into(), change) }, to)?;
    }
    Ok(())
}
