//! The best routes of a VRF as a table of their own, taken while the RIB changes.

use fibula_core::{Addr, Hop, Route, Routes, Vrf};

use crate::checkpoint::columns;
use crate::{AttributeSet, Provenance, Rib, SourceRecord, Table, TableError, ValueNames};

/// A copy of the best routes of a VRF at one moment; [`Frozen::table`] makes a [`Table`] of it.
///
/// The RIB is needed only to take the copy. Sorting, columns and engines are made without it, so a
/// [`Live`](crate::Live) table is held still for no longer than it takes to walk over its routes.
pub struct Frozen {
    v4: Vec<Route<u32>>,
    v6: Vec<Route<u128>>,
    /// The sets that routes have, by their new numbers.
    sets: Vec<Option<AttributeSet>>,
    names: ValueNames,
    sequence: u64,
}

impl Rib {
    /// Copies the best routes of a VRF.
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
        let mut rows = Rows { of: vec![UNUSED; self.sets().len()], sets: Vec::new() };
        Frozen {
            v4: rows.routes(self, vrf),
            v6: rows.routes(self, vrf),
            sets: rows.sets,
            names: self.value_names().clone(),
            sequence: self.sequence(),
        }
    }
}

/// The number of a set that no route has had so far.
const UNUSED: u32 = u32::MAX;

/// Gives sets new numbers, without gaps.
struct Rows {
    of: Vec<u32>,
    sets: Vec<Option<AttributeSet>>,
}

impl Rows {
    fn routes<A: Addr>(&mut self, rib: &Rib, vrf: Vrf) -> Vec<Route<A>> {
        let mut routes = Vec::with_capacity(rib.len::<A>(vrf));
        rib.each_best(vrf, |prefix, number, set| {
            let row = &mut self.of[number as usize];
            if *row == UNUSED {
                *row = self.sets.len() as u32;
                self.sets.push(Some(set.clone()));
            }
            routes.push(Route { prefix, hop: Hop::new(*row) });
        });
        routes
    }
}

impl Frozen {
    /// How many updates of the feed it takes in; see [`Rib::sequence`].
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The routes of both families.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The table: its columns are those of a checkpoint.
    ///
    /// # Errors
    /// If there is too much of something for its numbers.
    pub fn table(self) -> Result<Table, TableError> {
        let columns = columns::of(&self.sets, &self.names)?;
        let source = SourceRecord {
            name: format!("RIB after {} updates", self.sequence),
            format: "live".to_owned(),
            ..SourceRecord::default()
        };
        Ok(Table {
            v4: Routes::from_unsorted(self.v4),
            v6: Routes::from_unsorted(self.v6),
            columns,
            provenance: Provenance { sources: vec![source], ..Provenance::of_now() },
        })
    }
}
