use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use fibula_core::{Addr, Routes, SharedBytes, TableSource};

use super::Snapshot;
use crate::array::Image;
use crate::{IndexedRoutes, Table};

/// The families that a snapshot holds: `u32` and `u128`.
pub trait StoredFamily: Addr + Pod {
    /// The stored routes of this family.
    #[doc(hidden)]
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self>;
    /// The routes of this family.
    #[doc(hidden)]
    fn routes(table: &Table) -> &Routes<Self>;
    /// The first `bits` (1 to 24) bits.
    #[doc(hidden)]
    fn top(self, bits: u8) -> usize;
}

impl StoredFamily for u32 {
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self> {
        &snapshot.v4
    }
    fn routes(table: &Table) -> &Routes<Self> {
        &table.v4
    }
    #[inline]
    fn top(self, bits: u8) -> usize {
        (self >> (32 - bits)) as usize
    }
}

impl StoredFamily for u128 {
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self> {
        &snapshot.v6
    }
    fn routes(table: &Table) -> &Routes<Self> {
        &table.v6
    }
    #[inline]
    fn top(self, bits: u8) -> usize {
        ((self >> 64) as u64 >> (64 - bits)) as usize
    }
}

/// The routes of a family as they lie in a snapshot: [`IndexedRoutes`], and the engine that is stored with
/// them.
pub struct StoredRoutes<A: StoredFamily> {
    pub(super) routes: IndexedRoutes<A>,
    pub(super) rows: u32,
    pub(super) engine: String,
    pub(super) tables: StoredTables,
}

impl<A: StoredFamily> Deref for StoredRoutes<A> {
    type Target = IndexedRoutes<A>;

    #[inline]
    fn deref(&self) -> &IndexedRoutes<A> {
        &self.routes
    }
}

impl<A: StoredFamily> StoredRoutes<A> {
    /// The engine whose tables are stored; empty if there is none.
    pub fn engine_name(&self) -> &str {
        &self.engine
    }

    /// The engine's tables.
    pub fn tables(&self) -> &dyn TableSource {
        &self.tables
    }

    /// The names of the engine's tables with their bytes.
    pub fn table_sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.tables.places.iter().map(|(name, start, end)| (name.as_str(), end - start))
    }

    /// Number of attribute rows: every hop is below it.
    pub fn hop_count(&self) -> u32 {
        self.rows
    }
}

/// The tables of one engine inside a snapshot.
pub(super) struct StoredTables {
    pub(super) image: Arc<Image>,
    pub(super) places: Vec<(String, usize, usize)>,
}

impl TableSource for StoredTables {
    fn table(&self, name: &str) -> Option<SharedBytes> {
        let (_, start, end) = self.places.iter().find(|(n, ..)| n == name)?;
        let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = self.image.clone();
        SharedBytes::new(owner, *start, end - start)
    }
}
