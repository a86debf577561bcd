//! The attributes that hops number, shared between generations as far as they agree.

use std::sync::Arc;

use crate::AttributeSet;

/// Sets in a chunk: what a change of one copies.
const CHUNK: usize = 128;

/// A part of an [`AttributeTable`]: sets by number, from a multiple of its length on.
pub type AttributeChunk = [Option<AttributeSet>; CHUNK];

/// Attribute sets by number, in chunks. A clone shares all chunks, a change copies one: so each
/// generation has its own table, in which numbers keep their meaning whatever they come to mean later.
#[derive(Clone, Default)]
pub struct AttributeTable {
    chunks: Vec<Arc<AttributeChunk>>,
}

impl AttributeTable {
    /// The set of this number.
    pub fn get(&self, number: u32) -> Option<&AttributeSet> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?[number % CHUNK].as_ref()
    }

    /// The chunks, in order. Where two tables have the same one, as [`Arc::ptr_eq`] says, they agree in it; a chunk
    /// that somebody else holds never changes.
    pub fn chunks(&self) -> &[Arc<AttributeChunk>] {
        &self.chunks
    }

    /// The number means this set from now on, in this table.
    pub(crate) fn set(&mut self, number: u32, set: &AttributeSet) {
        let (chunk, at) = (number as usize / CHUNK, number as usize % CHUNK);
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new([const { None }; CHUNK]));
        }
        // Most changes repeat what is known, and a copy would be for nothing.
        if self.chunks[chunk][at].as_ref().is_none_or(|known| !known.is(set)) {
            Arc::make_mut(&mut self.chunks[chunk])[at] = Some(set.clone());
        }
    }

    /// Bytes of the table itself; sets and chunks are shared.
    pub fn memory(&self) -> usize {
        self.chunks.len() * (size_of::<AttributeChunk>() + size_of::<Arc<AttributeChunk>>())
    }
}
