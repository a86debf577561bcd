use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Addr, Engine, LoadError, Memory};

/// One table of an engine in memory layout, which a snapshot file stores and maps back.
#[derive(Clone, Copy)]
pub struct TableRef<'a> {
    /// The table's name in the paper; unique within the engine.
    pub name: &'static str,
    /// Its bytes, in the machine's byte order.
    pub bytes: &'a [u8],
}

/// A slice of immutable bytes with the owner that keeps them alive, such as a mapped file or a buffer.
#[derive(Clone)]
pub struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    start: usize,
    len: usize,
}

impl SharedBytes {
    /// The bytes `start..start + len` of the owner; `None` if they exceed it.
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

    /// The owner and the position of the bytes in it, for tables that point into them.
    pub fn into_parts(self) -> (Arc<dyn AsRef<[u8]> + Send + Sync>, usize, usize) {
        (self.owner, self.start, self.len)
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes at {})", self.len, self.start)
    }
}

/// Finds stored tables by name.
pub trait TableSource {
    /// The bytes of the table, 64-byte aligned; `None` if there is no such table.
    fn table(&self, name: &str) -> Option<SharedBytes>;
}

/// An engine whose tables can be stored and used in place, without a rebuild.
pub trait Persist<A: Addr>: Engine<A> {
    /// The tables, in order. Together with the engine's name they describe the engine completely.
    fn tables(&self) -> Vec<TableRef<'_>>;

    /// Makes an engine from stored tables, in the configuration that they were built with. The bytes may come from a
    /// damaged or hostile file, so every length, offset and index that a lookup uses is checked here. No lookup can
    /// then read out of bounds, or return a hop that is neither [`Hop::NONE`](crate::Hop::NONE) nor below
    /// `hop_count`.
    ///
    /// # Errors
    /// [`LoadError`] names the table and the error in it.
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
