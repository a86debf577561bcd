use std::ops::Deref;
use std::sync::Arc;

use fibula_core::{Addr, FamilyType, SharedBytes, TableSource};

use crate::IndexedRoutes;
use crate::array::Image;

/// The routes of a family in a snapshot: [`IndexedRoutes`], and the engine that is stored with
/// them.
pub struct StoredRoutes<A: Addr> {
    pub(super) routes: IndexedRoutes<A>,
    pub(super) rows: u32,
    pub(super) engine: String,
    pub(super) tables: StoredTables,
}

/// The stored routes of each family.
pub(super) struct Stored;

impl FamilyType for Stored {
    type Of<A: Addr> = StoredRoutes<A>;
}

impl<A: Addr> Deref for StoredRoutes<A> {
    type Target = IndexedRoutes<A>;

    #[inline]
    fn deref(&self) -> &IndexedRoutes<A> {
        &self.routes
    }
}

impl<A: Addr> StoredRoutes<A> {
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
