use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Addr, Engine, LoadError, Memory};

/// One table of an engine as it lies in memory: what a snapshot file stores and maps back.
#[derive(Clone, Copy)]
pub struct TableRef<'a> {
    /// The paper's name of the table; unique within the engine.
    pub name: &'static str,
    /// Its bytes, in the machine's byte order.
    pub bytes: &'a [u8],
}

/// A run of immutable bytes that somebody else keeps alive: a mapped file, a buffer.
#[derive(Clone)]
pub struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    start: usize,
    len: usize,
}

impl SharedBytes {
    /// The bytes `start..start + len` of the owner; `None` if they are not all there.
    pub fn new(
        owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
        start: usize,
        len: usize,
    ) -> Option<Self> {
        let end = start.checked_add(len)?;
        (end <= (*owner).as_ref().len()).then_some(Self { owner, start, len })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.start..self.start + self.len]
    }

    /// The owner and the place of the bytes in it, for tables that point into them.
    pub fn into_parts(self) -> (Arc<dyn AsRef<[u8]> + Send + Sync>, usize, usize) {
        (self.owner, self.start, self.len)
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes at {})", self.len, self.start)
    }
}

/// Where stored tables are found by name.
pub trait TableSource {
    /// The bytes of the table, 64-byte aligned; `None` if there is no such table.
    fn table(&self, name: &str) -> Option<SharedBytes>;
}

/// An engine whose tables can be stored and used in place, without a rebuild.
pub trait Persist<A: Addr>: Engine<A> {
    /// The tables, in order. Together with the engine's name they say all there is to say.
    fn tables(&self) -> Vec<TableRef<'_>>;

    /// An engine over stored tables, of the configuration that they were built with. The bytes may come from a damaged or hostile file: every length,
    /// offset and index that a lookup relies on is checked here, so that no lookup can read out of
    /// bounds or answer a hop that is neither [`Hop::NONE`](crate::Hop::NONE) nor below `hop_count`.
    ///
    /// # Errors
    /// [`LoadError`] names the table and what is wrong with it.
    fn load(
        tables: &dyn TableSource,
        hop_count: u32,
        config: &Self::Config,
    ) -> Result<Self, LoadError>;
}

impl Memory {
    /// The sizes of these tables.
    pub fn of_tables(tables: &[TableRef<'_>]) -> Self {
        Self::new(tables.iter().map(|t| (t.name, t.bytes.len())))
    }
}
