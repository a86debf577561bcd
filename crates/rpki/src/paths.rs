//! Adds the validity of AS paths to a table, as a column, and counts it.

use std::collections::HashMap;

use fibula_core::{Addr, Value};
use fibula_rib::{ColumnKind, Columns, ColumnsBuilder, Pod, Provenance, Table};

use crate::{Aspas, PathValidity, Relations, RpkiError, parse_asn, path_text};

/// The column with the AS path of routes as text.
pub const AS_PATH: &str = "as_path";
/// The column with the validity of the path: [`PathValidity::name`]; null for routes without a path, which are those of
/// the own AS and those that are not of BGP.
pub const PATH_VALIDITY: &str = "aspa";
/// The column with the peer that sent a route: its address, or its AS.
const PEER: &str = "peer";

/// The table with the column [`PATH_VALIDITY`], from its column [`AS_PATH`]. A column that this function added before
/// is replaced. Another column of the table with this name keeps its values under a number ([`renamed_path_column`]).
///
/// A route is received from its peer, whose AS is looked up in `relations`. If the table does not have the AS of the
/// peer, it is the first one of the path.
///
/// # Errors
/// If there is no such column, a value in it is not a path, or the table has too many rows.
pub fn add_path_column(
    table: Table,
    aspas: &Aspas,
    relations: &Relations,
) -> Result<Table, RpkiError> {
    table.check()?;
    let columns = &table.columns;
    let column = columns.find(AS_PATH).ok_or_else(|| RpkiError::NoPaths {
        columns: columns.names().map(str::to_owned).collect(),
    })?;
    let peers = Peers::of(&table);
    let mut added = ColumnsBuilder::new(&[(PATH_VALIDITY, ColumnKind::Str)]);
    // Many rows have the same path from the same peer.
    let mut known = HashMap::new();
    for row in 0..columns.len() {
        let path = columns.code(column, row);
        let validity = match path {
            None => None,
            Some(path) => {
                let key = (path, peers.code(columns, row));
                match known.get(&key) {
                    Some(&validity) => validity,
                    None => {
                        let validity =
                            verify(columns.decode(column, path), aspas, relations, || {
                                peers.asn(columns, row)
                            })?;
                        known.insert(key, validity);
                        validity
                    }
                }
            }
        };
        let name =
            validity.map_or(Value::Null, |validity: PathValidity| Value::Str(validity.name()));
        added.push(&[name])?;
    }
    let own = columns.clone().renamed(&names(columns));
    let columns = own.with(added.finish()?);
    Ok(Table { columns, ..table })
}

/// The validity of the path in a cell.
fn verify(
    path: Value<'_>,
    aspas: &Aspas,
    relations: &Relations,
    peer: impl FnOnce() -> Option<u32>,
) -> Result<Option<PathValidity>, RpkiError> {
    let bad = |value: String| RpkiError::NoPath { column: AS_PATH.to_owned(), value };
    let ases = match path {
        Value::Null => return Ok(None),
        // A table of text in which each path is one AS.
        Value::Int(asn) => {
            let asn = u32::try_from(asn).map_err(|_| bad(asn.to_string()))?;
            path_text::Ases { path: vec![asn], has_set: false }
        }
        Value::Str(text) => path_text::parse(text).ok_or_else(|| bad(text.to_owned()))?,
    };
    let from = relations.of(peer().or(ases.path.first().copied()));
    Ok(ases.verify(aspas, from))
}

/// The ASes of the peers.
struct Peers {
    column: Option<usize>,
    /// By the code of the peer's name.
    by_code: Vec<Option<u32>>,
}

impl Peers {
    fn of(table: &Table) -> Self {
        let columns = &table.columns;
        let column = columns.find(PEER);
        let by_name = by_name(&table.provenance);
        let asn = |name: Value<'_>| match name {
            Value::Str(name) => by_name.get(name).copied().unwrap_or_else(|| {
                // Peers without an address are called by their AS.
                name.strip_prefix("AS").and_then(parse_asn).filter(|&asn| asn != 0)
            }),
            _ => None,
        };
        let codes = column.map_or(0, |column| columns.distinct(column));
        let by_code = (0..codes as u32).map(|code| asn(columns.decode(column.unwrap_or(0), code)));
        Self { column, by_code: by_code.collect() }
    }

    fn code(&self, columns: &Columns, row: u32) -> Option<u32> {
        columns.code(self.column?, row)
    }

    fn asn(&self, columns: &Columns, row: u32) -> Option<u32> {
        *self.by_code.get(self.code(columns, row)? as usize)?
    }
}

/// The ASes of the peers with addresses; `None` for an address with several.
fn by_name(provenance: &Provenance) -> HashMap<String, Option<u32>> {
    let mut by_name = HashMap::new();
    for peer in &provenance.peers {
        let Some(address) = peer.address else { continue };
        let asn = Some(peer.asn).filter(|&asn| asn != 0);
        by_name
            .entry(address.to_string())
            .and_modify(|known: &mut Option<u32>| {
                *known = known.filter(|known| Some(*known) == asn)
            })
            .or_insert(asn);
    }
    by_name
}

/// The column of a table that [`add_path_column`] renames, with its name afterwards.
pub fn renamed_path_column(columns: &Columns) -> Option<(String, String)> {
    let mut both = columns.names().map(str::to_owned).zip(names(columns));
    both.find(|(before, after)| before != after)
}

/// The names of the table's columns beside the added one.
fn names(columns: &Columns) -> Vec<String> {
    let is_ours = columns.find(PATH_VALIDITY).is_some_and(|column| {
        let is_validity =
            |value| PathValidity::ALL.iter().any(|known| value == Value::Str(known.name()));
        (0..columns.distinct(column) as u32).all(|code| is_validity(columns.decode(column, code)))
    });
    columns.names_beside(if is_ours { &[] } else { &[PATH_VALIDITY] })
}

/// The routes of a table by the validity of their paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathReport {
    /// The routes of IPv4.
    pub v4: PathStates,
    /// The routes of IPv6.
    pub v6: PathStates,
}

/// The routes of a family by the validity of their paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStates {
    /// Number of routes of each validity. The index is `PathValidity as usize`, in the order of [`PathValidity::ALL`].
    pub routes: [u64; 3],
    /// Number of routes without a path.
    pub without: u64,
}

impl PathStates {
    /// Number of routes with invalid paths.
    pub fn invalid(&self) -> u64 {
        self.routes[PathValidity::Invalid as usize]
    }
}

impl PathReport {
    /// Counts the routes of a table that [`add_path_column`] made.
    ///
    /// # Errors
    /// [`RpkiError::NoColumn`] if the table does not have the column.
    pub fn new(table: &Table) -> Result<Self, RpkiError> {
        let columns = &table.columns;
        let column = columns.find(PATH_VALIDITY).ok_or_else(|| RpkiError::NoColumn {
            asked: PATH_VALIDITY.to_owned(),
            columns: columns.names().map(str::to_owned).collect(),
        })?;
        Ok(Self { v4: family::<u32>(table, column), v6: family::<u128>(table, column) })
    }

    /// Number of routes of both families with invalid paths.
    pub fn invalid(&self) -> u64 {
        self.v4.invalid() + self.v6.invalid()
    }
}

fn family<A: Addr + Pod>(table: &Table, column: usize) -> PathStates {
    let mut states = PathStates::default();
    for route in table.routes::<A>().iter() {
        let Some(row) = route.hop.index() else { continue }; // routes have hops
        match table.columns.value(column, row) {
            Value::Str(name) => match name.parse::<PathValidity>() {
                Ok(validity) => states.routes[validity as usize] += 1,
                Err(_) => states.without += 1,
            },
            _ => states.without += 1,
        }
    }
    states
}
