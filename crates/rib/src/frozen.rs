//! A copy of a VRF's best routes as a table, made while the RIB changes.

use fibula_core::{Addr, Hop, PerFamily, Route, Routes, Vrf};

use crate::checkpoint::columns;
use crate::chunks::Chunks;
use crate::rib::Copies;
use crate::rib::family::FamilyCopy;
use crate::{AttributeSet, Provenance, Rib, SourceRecord, Table, TableError, ValueNames};

/// The routes of a VRF at one moment; [`Frozen::table`] makes a [`Table`] of the best ones.
///
/// It shares memory with the RIB, which then copies the parts that it changes, a few kilobytes each. Making it stops
/// a [`Live`](crate::Live) table only for copying one reference for each chunk. It needs memory only for changed
/// parts.
pub struct Frozen {
    routes: Option<PerFamily<Copies>>,
    sets: Chunks<Option<AttributeSet>>,
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
            names: self.value_names().clone(),
            sequence: self.sequence(),
        }
    }
}

/// The new number of a set that no route has used so far.
const UNUSED: u32 = u32::MAX;

/// Gives sets new numbers, without gaps.
struct Rows<'a> {
    all: &'a Chunks<Option<AttributeSet>>,
    of: Vec<u32>,
    sets: Vec<Option<AttributeSet>>,
}

impl Rows<'_> {
    fn routes<A: Addr>(&mut self, copy: &FamilyCopy<A>) -> Routes<A> {
        let mut routes = Vec::with_capacity(copy.len());
        for (prefix, number) in copy.best() {
            let row = &mut self.of[number as usize];
            if *row == UNUSED {
                *row = self.sets.len() as u32;
                self.sets.push(self.all[number].clone());
            }
            routes.push(Route { prefix, hop: Hop::new(*row) });
        }
        Routes::from_unsorted(routes)
    }
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

    /// Makes the table, with the columns of a checkpoint.
    ///
    /// # Errors
    /// If a number exceeds 32 bits.
    pub fn table(self) -> Result<Table, TableError> {
        let unused = vec![UNUSED; self.sets.len()];
        let mut rows = Rows { all: &self.sets, of: unused, sets: Vec::new() };
        let (v4, v6) = match &self.routes {
            Some(routes) => (rows.routes(&routes.v4), rows.routes(&routes.v6)),
            None => Default::default(),
        };
        let columns = columns::of(&rows.sets, &self.names)?;
        let source = SourceRecord {
            name: format!("RIB after {} updates", self.sequence),
            format: "live".to_owned(),
            ..SourceRecord::default()
        };
        Ok(Table {
            v4,
            v6,
            columns,
            provenance: Provenance { sources: vec![source], ..Provenance::of_now() },
        })
    }
}
