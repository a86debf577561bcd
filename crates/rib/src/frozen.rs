//! A copy of a VRF's best routes as a table, made while the RIB changes.

use std::collections::BTreeMap;

use fibula_core::{Addr, Hop, PerFamily, Route, Routes, Value, Vrf};
use hashbrown::HashMap;

use crate::checkpoint::columns;
use crate::chunks::Chunks;
use crate::rib::Copies;
use crate::rib::family::FamilyCopy;
use crate::{
    AttributeSet, ColumnKind, Columns, ColumnsBuilder, Peer, Provenance, Rib, SelectedPeer,
    SourceRecord, Table, TableError, ValueNames,
};

/// The column with the peer of a route, as tables of files have it.
const PEER: &str = "peer";

/// The routes of a VRF at one moment; [`Frozen::table`] makes a [`Table`] of the best ones.
///
/// It shares memory with the RIB, which then copies the parts that it changes, a few kilobytes each. Making it stops
/// a [`Live`](crate::Live) table only for copying one reference for each chunk. It needs memory only for changed
/// parts.
pub struct Frozen {
    routes: Option<PerFamily<Copies>>,
    sets: Chunks<Option<AttributeSet>>,
    /// The peers of the best routes, by number, and how many they have.
    peers: BTreeMap<u32, (Peer, u64)>,
    names: ValueNames,
    sequence: u64,
}

impl Rib {
    /// Takes a frozen copy of a VRF's routes.
    ///
    /// ```
    /// use fibula_core::{Attributes, BgpAttributes, Change, Update, Value};
    /// use fibula_rib::{Peer, Rib};
    /// let mut rib = Rib::default();
    /// let bgp = BgpAttributes { origin_as: Some(64501), ..Default::default() };
    /// let change = Change::Announce(Attributes::Bgp(&bgp));
    /// rib.apply(&Update::new("192.0.2.0/24".parse()?, change), &mut ())?;
    /// let table = rib.freeze(0).table()?;
    /// let row = table.v4.as_slice()[0].hop.index().unwrap();
    /// let origin = table.columns.find("origin_as").unwrap();
    /// assert_eq!(table.columns.value(origin, row), Value::Int(64501));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze(&self, vrf: Vrf) -> Frozen {
        Frozen {
            routes: self.copy_of(vrf),
            sets: self.sets().clone(),
            peers: self.holders(vrf),
            names: self.value_names().clone(),
            sequence: self.sequence(),
        }
    }
}

/// The row of a set that no route has used so far.
const UNUSED: u32 = u32::MAX;

/// Makes a row of each attribute set and peer.
struct Rows<'a> {
    all: &'a Chunks<Option<AttributeSet>>,
    /// By number of the set: the first peer whose route has it, and their row.
    of: Vec<(u32, u32)>,
    /// The rows of further peers.
    more: HashMap<(u32, u32), u32>,
    sets: Vec<Option<AttributeSet>>,
    peers: Vec<u32>,
}

impl Rows<'_> {
    fn row(&mut self, peer: u32, number: u32) -> u32 {
        let next = self.sets.len() as u32;
        let first = &mut self.of[number as usize];
        let row = match *first {
            (_, UNUSED) => {
                *first = (peer, next);
                next
            }
            (known, row) if known == peer => row,
            _ => *self.more.entry((number, peer)).or_insert(next),
        };
        if row == next {
            self.sets.push(self.all[number].clone());
            self.peers.push(peer);
        }
        row
    }

    fn routes<A: Addr>(&mut self, copy: &FamilyCopy<A>) -> Routes<A> {
        let mut routes = Vec::with_capacity(copy.len());
        for (prefix, peer, number) in copy.best() {
            routes.push(Route { prefix, hop: Hop::new(self.row(peer, number)) });
        }
        Routes::from_unsorted(routes)
    }

    /// The column of peers.
    fn peers(&self, known: &BTreeMap<u32, (Peer, u64)>) -> Result<Columns, TableError> {
        let texts: BTreeMap<u32, String> =
            known.iter().filter_map(|(&number, (peer, _))| Some((number, text(peer)?))).collect();
        let mut column = ColumnsBuilder::new(&[(PEER, ColumnKind::Str)]);
        for peer in &self.peers {
            column.push(&[texts.get(peer).map_or(Value::Null, |text| Value::Str(text))])?;
        }
        column.finish()
    }
}

/// A peer in its column: its address, or else its AS.
fn text(peer: &Peer) -> Option<String> {
    let asn = || (peer.asn != 0).then(|| format!("AS{}", peer.asn));
    peer.address.map(|address| address.to_string()).or_else(asn)
}

impl Frozen {
    /// Number of the feed's updates that it includes; see [`Rib::sequence`].
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Number of routes of both families.
    pub fn len(&self) -> usize {
        self.routes.as_ref().map_or(0, |routes| routes.v4.len() + routes.v6.len())
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the table, with the columns of a checkpoint, and a column `peer` with the address or the AS of each
    /// route's peer, if one has either.
    ///
    /// # Errors
    /// If a number exceeds 32 bits.
    pub fn table(self) -> Result<Table, TableError> {
        let of = vec![(0, UNUSED); self.sets.len()];
        let (sets, peers) = (Vec::new(), Vec::new());
        let mut rows = Rows { all: &self.sets, of, more: HashMap::new(), sets, peers };
        let (v4, v6) = match &self.routes {
            Some(routes) => (rows.routes(&routes.v4), rows.routes(&routes.v6)),
            None => Default::default(),
        };
        let mut columns = columns::of(&rows.sets, &self.names)?;
        let has_peers = self.peers.values().any(|(peer, _)| text(peer).is_some());
        if has_peers && columns.find(PEER).is_none() {
            columns = columns.with(rows.peers(&self.peers)?);
        }
        let peers = self.peers.iter().map(|(&index, &(ref peer, routes))| SelectedPeer {
            index,
            address: peer.address,
            asn: peer.asn,
            routes,
            of: self.peers.len() as u32,
        });
        let source = SourceRecord {
            name: format!("RIB after {} updates", self.sequence),
            format: "live".to_owned(),
            ..SourceRecord::default()
        };
        Ok(Table {
            v4,
            v6,
            columns,
            provenance: Provenance {
                sources: vec![source],
                peers: peers.collect(),
                ..Provenance::of_now()
            },
        })
    }
}
