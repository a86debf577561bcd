//! The attributes of hops. Generations share the parts in which they agree.

use std::sync::Arc;

use crate::{AttributeSet, ValueNames};

/// Sets in a chunk, which a change of one set copies.
const CHUNK: usize = 128;

/// A part of an [`AttributeTable`]: the sets with the numbers from a multiple of its length on.
pub type AttributeChunk = [Option<AttributeSet>; CHUNK];

/// Attribute sets by number, in chunks. A clone shares all chunks, and a change copies one chunk. So each generation
/// has a table of its own, in which the numbers keep their meaning.
#[derive(Clone, Default)]
pub struct AttributeTable {
    chunks: Vec<Arc<AttributeChunk>>,
    names: ValueNames,
}

impl AttributeTable {
    /// The set with this number.
    pub fn get(&self, number: u32) -> Option<&AttributeSet> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?[number % CHUNK].as_ref()
    }

    /// The chunks, in order. Two tables agree in every chunk that they share by [`Arc::ptr_eq`]; a shared chunk never
    /// changes.
    pub fn chunks(&self) -> &[Arc<AttributeChunk>] {
        &self.chunks
    }

    /// The names of the values of sets that are neither of BGP nor next hops, for [`AttributeSet::named`].
    pub fn names(&self) -> &ValueNames {
        &self.names
    }

    pub(crate) fn set_names(&mut self, names: &ValueNames) {
        self.names.clone_from(names);
    }

    /// Assigns the set to the number in this table.
    pub(crate) fn set(&mut self, number: u32, set: &AttributeSet) {
        let (chunk, at) = (number as usize / CHUNK, number as usize % CHUNK);
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new([const { None }; CHUNK]));
        }
        // Most changes repeat a known set, so that no copy is needed.
        if self.chunks[chunk][at].as_ref().is_none_or(|known| !known.is(set)) {
            Arc::make_mut(&mut self.chunks[chunk])[at] = Some(set.clone());
        }
    }

    /// Bytes of the table itself, without the shared sets and chunks.
    pub fn memory(&self) -> usize {
        self.chunks.len() * (size_of::<AttributeChunk>() + size_of::<Arc<AttributeChunk>>())
    }
}
