//! Attribute sets as the builder keeps them: each distinct one once, as a few 32-bit words.
//!
//! ```text
//! word 0            segment << 1 | from BGP
//! then, per cell    column << 2 | tag, followed by
//!                     tag 0: an integer below 2^32          (1 word)
//!                     tag 1: an integer, low and high half   (2 words)
//!                     tag 2: a string's number               (1 word)
//! ```
//!
//! The segment counts the changes between BGP and other sources. The routes of the chosen peer and
//! those of the other sources are kept apart until the end, since a BGP withdrawal must not take back
//! what a text file said; the higher segment then says which of two routes is the later one.

use std::cmp::Reverse;

use std::net::IpAddr;

use fibula_core::{BgpAttributes, NextHops, Value};
use hashbrown::HashMap;

use super::BuilderOptions;
use crate::ColumnKind;
use crate::intern::Interner;
use crate::rib::next_hops;

/// Columns that only rank the paths of a peer; they never become columns of the table.
const LOCAL_PREF: u32 = (1 << 30) - 1;
const MED: u32 = (1 << 30) - 2;
const ORIGIN: u32 = (1 << 30) - 3;
const PATH_LEN: u32 = (1 << 30) - 4;

/// What BGP takes for a local preference that is not given.
const DEFAULT_LOCAL_PREF: u32 = 100;

/// A column as it is being united from the sources.
pub(super) struct UnitedColumn {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) kept: bool,
}

#[derive(Clone, Copy)]
struct BgpColumns {
    next_hop: Option<u32>,
    origin_as: Option<u32>,
    as_path_len: Option<u32>,
    peer: Option<u32>,
    as_path: Option<u32>,
    communities: Option<u32>,
}

/// A cell of an attribute set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Int(u64),
    /// The number of a string.
    Str(u32),
}

/// How BGP ranks paths of one peer: the least is the best.
pub(super) type Rank = (Reverse<u32>, u32, u32, u32);

/// All attribute sets, the strings in them, and the columns that they fill.
pub(super) struct AttributeSets {
    sets: Interner<u32>,
    strings: Interner<u8>,
    /// Next hops are few and repeat: their text is made once.
    next_hops: HashMap<IpAddr, u32>,
    pub(super) columns: Vec<UnitedColumn>,
    bgp: Option<BgpColumns>,
    /// The columns of forwarding next hops, once there is such a route.
    next_hop_columns: Option<[Option<u32>; 4]>,
    wanted: Option<Vec<String>>,
    as_path: bool,
    communities: bool,
    /// The set being encoded; kept to spare an allocation for each update.
    scratch: Vec<u32>,
}

impl AttributeSets {
    pub(super) fn new(options: &BuilderOptions) -> Self {
        Self {
            sets: Interner::default(),
            strings: Interner::default(),
            next_hops: HashMap::new(),
            columns: Vec::new(),
            bgp: None,
            next_hop_columns: None,
            wanted: options.columns.clone(),
            as_path: options.as_path,
            communities: options.communities,
            scratch: Vec::new(),
        }
    }

    /// The number of the column with this name, which is text if it is text anywhere; `None` if it is
    /// not wanted.
    pub(super) fn column(&mut self, name: &str, kind: ColumnKind) -> Option<u32> {
        let at = match self.columns.iter().position(|c| c.name == name) {
            Some(at) => at,
            None => {
                let kept = self.wanted.as_ref().is_none_or(|w| w.iter().any(|w| w == name));
                self.columns.push(UnitedColumn { name: name.to_owned(), kind, kept });
                self.columns.len() - 1
            }
        };
        let column = &mut self.columns[at];
        if kind == ColumnKind::Str {
            column.kind = ColumnKind::Str;
        }
        column.kept.then_some(at as u32)
    }

    /// Declares the columns of BGP routes.
    pub(super) fn bgp_columns(&mut self) {
        if self.bgp.is_some() {
            return;
        }
        let (as_path, communities) = (self.as_path, self.communities);
        self.bgp = Some(BgpColumns {
            next_hop: self.column("next_hop", ColumnKind::Str),
            origin_as: self.column("origin_as", ColumnKind::Int),
            as_path_len: self.column("as_path_len", ColumnKind::Int),
            peer: self.column("peer", ColumnKind::Str),
            as_path: as_path.then(|| self.column("as_path", ColumnKind::Str)).flatten(),
            communities: communities.then(|| self.column("communities", ColumnKind::Str)).flatten(),
        });
    }

    /// The column that names the peer of a BGP route, if it is kept.
    pub(super) fn peer_column(&self) -> Option<u32> {
        self.bgp.and_then(|c| c.peer)
    }

    /// The number of a set of BGP attributes; `None` when numbers have run out.
    pub(super) fn bgp(&mut self, segment: u32, bgp: &BgpAttributes<'_>) -> Option<u32> {
        self.bgp_columns();
        let columns = self.bgp?;
        let mut words = std::mem::take(&mut self.scratch);
        words.clear();
        words.push(segment << 1 | 1);
        let mut put = |column: Option<u32>, cell: Option<Cell>| {
            if let (Some(column), Some(cell)) = (column, cell) {
                encode(&mut words, column, cell);
            }
        };
        let int = |v: u32| Some(Cell::Int(v.into()));
        put(columns.next_hop, bgp.next_hop.and_then(|ip| self.next_hop(ip)));
        put(columns.origin_as, bgp.origin_as.and_then(int));
        put(columns.as_path_len, int(bgp.as_path_len));
        put(columns.as_path, self.text(bgp.as_path, columns.as_path));
        put(columns.communities, self.text(bgp.communities, columns.communities));
        put(Some(LOCAL_PREF), bgp.local_pref.and_then(int));
        put(Some(MED), bgp.med.filter(|&med| med > 0).and_then(int));
        put(Some(ORIGIN), bgp.origin.filter(|&origin| origin > 0).and_then(|o| int(o.into())));
        if columns.as_path_len.is_none() {
            put(Some(PATH_LEN), int(bgp.as_path_len));
        }
        let id = self.sets.intern(&words);
        self.scratch = words;
        id
    }

    /// The number of a set of next hops; `None` when numbers have run out.
    pub(super) fn next_hops(&mut self, segment: u32, next_hops: &NextHops) -> Option<u32> {
        let columns = match self.next_hop_columns {
            Some(columns) => columns,
            None => next_hops::COLUMNS.map(|(name, kind)| self.column(name, kind)),
        };
        self.next_hop_columns = Some(columns);
        self.values(segment, &columns, &next_hops::Cells::of(next_hops).values())
    }

    /// The number of a set of values for these columns; `None` when numbers have run out.
    pub(super) fn values(
        &mut self,
        segment: u32,
        columns: &[Option<u32>],
        values: &[Value<'_>],
    ) -> Option<u32> {
        let mut words = std::mem::take(&mut self.scratch);
        words.clear();
        words.push(segment << 1);
        for (&column, &value) in columns.iter().zip(values) {
            let Some(column) = column else { continue };
            match value {
                Value::Null => {}
                Value::Int(v) => encode(&mut words, column, Cell::Int(v)),
                Value::Str(text) => {
                    self.columns[column as usize].kind = ColumnKind::Str;
                    encode(&mut words, column, Cell::Str(self.strings.intern(text.as_bytes())?));
                }
            }
        }
        let id = self.sets.intern(&words);
        self.scratch = words;
        id
    }

    fn next_hop(&mut self, ip: IpAddr) -> Option<Cell> {
        if let Some(&id) = self.next_hops.get(&ip) {
            return Some(Cell::Str(id));
        }
        let id = self.strings.intern(ip.to_string().as_bytes())?;
        self.next_hops.insert(ip, id);
        Some(Cell::Str(id))
    }

    fn text(&mut self, text: &str, column: Option<u32>) -> Option<Cell> {
        column.filter(|_| !text.is_empty())?;
        self.strings.intern(text.as_bytes()).map(Cell::Str)
    }

    /// How many sets there are.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(super) fn segment(&self, set: u32) -> u32 {
        self.sets.get(set)[0] >> 1
    }

    pub(super) fn is_bgp(&self, set: u32) -> bool {
        self.sets.get(set)[0] & 1 == 1
    }

    /// The cells of a set, those that only rank it left out; of two for one column the later counts.
    pub(super) fn cells(&self, set: u32) -> impl Iterator<Item = (u32, Cell)> {
        decode(self.sets.get(set)).filter(|(column, _)| *column < PATH_LEN)
    }

    pub(super) fn string(&self, id: u32) -> &str {
        // Only whole strings are interned.
        std::str::from_utf8(self.strings.get(id)).unwrap_or_default()
    }

    /// The rank of a set among the paths of its peer.
    pub(super) fn rank(&self, set: u32) -> Rank {
        let path_len = self.bgp.and_then(|c| c.as_path_len).unwrap_or(PATH_LEN);
        let (mut preference, mut length, mut origin, mut med) = (DEFAULT_LOCAL_PREF, 0, 0, 0);
        for (column, cell) in decode(self.sets.get(set)) {
            let Cell::Int(value) = cell else { continue };
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            match column {
                LOCAL_PREF => preference = value,
                ORIGIN => origin = value,
                MED => med = value,
                c if c == path_len => length = value,
                _ => {}
            }
        }
        (Reverse(preference), length, origin, med)
    }
}

fn encode(words: &mut Vec<u32>, column: u32, cell: Cell) {
    match cell {
        Cell::Int(v) => match u32::try_from(v) {
            Ok(v) => words.extend([column << 2, v]),
            Err(_) => words.extend([column << 2 | 1, v as u32, (v >> 32) as u32]),
        },
        Cell::Str(id) => words.extend([column << 2 | 2, id]),
    }
}

fn decode(words: &[u32]) -> impl Iterator<Item = (u32, Cell)> {
    let mut rest = words.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (cell, after) = match *rest {
            [head, v, ref after @ ..] if head & 3 == 0 => (Cell::Int(v.into()), after),
            [head, low, high, ref after @ ..] if head & 3 == 1 => {
                (Cell::Int(u64::from(high) << 32 | u64::from(low)), after)
            }
            [_, id, ref after @ ..] => (Cell::Str(id), after),
            _ => return None,
        };
        let column = rest[0] >> 2;
        rest = after;
        Some((column, cell))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back() {
        let cells = [
            (0, Cell::Int(0)),
            (7, Cell::Int(u64::from(u32::MAX))),
            (8, Cell::Int(u64::MAX)),
            (LOCAL_PREF, Cell::Int(1 << 32)),
            (1, Cell::Str(u32::MAX - 1)),
        ];
        let mut words = vec![0];
        for (column, cell) in cells {
            encode(&mut words, column, cell);
        }
        assert_eq!(decode(&words).collect::<Vec<_>>(), cells);
    }
}
