use std::collections::BTreeMap;
use std::sync::Arc;

use fibula_core::{SharedBytes, TableRef, TableSource};

/// Where tables begin: at a cache line, as in a snapshot.
const ALIGNMENT: usize = 64;

/// The stored tables of an engine in memory, to be loaded again, whole or damaged.
///
/// A clone shares the bytes; a change of one does not show in the other.
///
/// ```
/// use fibula_core::{TableRef, TableSource};
/// use fibula_testkit::StoredTables;
///
/// let mut tables = StoredTables::of(&[TableRef { name: "words", bytes: &[1, 2, 3, 4] }]);
/// let whole = tables.clone();
/// tables.edit("words", |bytes| bytes[0] = 9);
/// assert_eq!(tables.bytes("words"), [9, 2, 3, 4]);
/// assert_eq!(whole.table("words").unwrap().as_slice(), [1, 2, 3, 4]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoredTables(BTreeMap<&'static str, Arc<Aligned>>);

impl StoredTables {
    /// Copies of these tables.
    ///
    /// # Panics
    /// If two of them have the same name.
    pub fn of(tables: &[TableRef<'_>]) -> Self {
        let mut stored = Self::default();
        for table in tables {
            assert!(!stored.0.contains_key(table.name), "two tables are named {}", table.name);
            stored.set(table.name, table.bytes);
        }
        stored
    }

    /// The tables' names and bytes, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.0.iter().map(|(&name, table)| (name, (**table).as_ref()))
    }

    /// The bytes of a table.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn bytes(&self, name: &str) -> &[u8] {
        (*self.0[name]).as_ref()
    }

    /// Replaces a table, or adds one.
    pub fn set(&mut self, name: &'static str, bytes: &[u8]) {
        self.0.insert(name, Arc::new(Aligned::new(bytes)));
    }

    /// Changes a copy of a table's bytes, in length too, and replaces the table by it.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn edit(&mut self, name: &'static str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes(name).to_vec();
        change(&mut bytes);
        self.set(name, &bytes);
    }

    /// Takes a table away.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl TableSource for StoredTables {
    fn table(&self, name: &str) -> Option<SharedBytes> {
        let table = self.0.get(name)?;
        SharedBytes::new(table.clone(), 0, (**table).as_ref().len())
    }
}

/// Bytes that begin at a multiple of [`ALIGNMENT`].
struct Aligned {
    buffer: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut buffer = Vec::<u8>::with_capacity(bytes.len() + ALIGNMENT);
        let start = buffer.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        buffer.resize(start, 0);
        buffer.extend_from_slice(bytes);
        Self { buffer, start }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl PartialEq for Aligned {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Aligned {}
