//! Changes in place. A change rewrites the entries under its prefix, and adds and removes chunks: a node has a chunk
//! exactly if a build would give it one.
//!
//! The numbers of chunks are the largest values, so an array grows at its front, and the entries that name existing
//! chunks do not change.
//!
//! A chunk that a change gives back is not taken again before the next one. So the entries of a change can be written
//! one by one into a copy that is in use, as into the memories of a pipeline: no reader of an old entry finds a chunk
//! that has become another node's meanwhile.

use fibula_core::{Patched, Prefix, Range, Routes};
use fibula_simd::Table;

use super::{Entry, Free, SailL};
use crate::sail::code;
use crate::sail::division::{CHUNK, Chunk, byte};

/// Rewrites the entries that each changed prefix covers, or the whole /24 around a longer one. If codes and chunks
/// together exceed the values, a build is required, whose error names the limit.
pub(super) fn patch<E: Entry>(
    tables: &mut SailL<E>,
    routes: &Routes<u32>,
    changed: &[Prefix<u32>],
) -> Patched {
    let most = E::CHUNKS.min(E::MAX.saturating_sub(routes.hop_count()) as usize);
    if tables.bcn24.len().max(tables.n32.len()) > most {
        return Patched::Rebuild;
    }
    let mut painter = Painter { tables, most, given_back: Free::default() };
    for prefix in changed {
        let block = Prefix::masked(prefix.addr(), prefix.len().min(24));
        let block = block.expect("24 is a prefix length");
        for range in routes.ranges_within(block) {
            if painter.paint(range).is_none() {
                return Patched::Rebuild;
            }
        }
        painter.merge((block.addr() >> 16) as usize);
        let Painter { tables, given_back, .. } = &mut painter;
        tables.free.level24.append(&mut given_back.level24);
        tables.free.level32.append(&mut given_back.level32);
    }
    Patched::Applied
}

struct Painter<'a, E: Entry> {
    tables: &'a mut SailL<E>,
    /// Chunks that an array has room for beside the codes.
    most: usize,
    /// The chunks that this change has given back.
    given_back: Free,
}

impl<E: Entry> Painter<'_, E> {
    /// Gives the addresses of a range their code; `None` if that takes too many chunks.
    fn paint(&mut self, range: Range<u32>) -> Option<()> {
        let leaf = E::of_code(code(range.hop));
        for node in range.first >> 16..=range.last >> 16 {
            let first = range.first.max(node << 16);
            let last = range.last.min(node << 16 | 0xffff);
            if last - first == 0xffff {
                self.set_leaf(node as usize, leaf);
                continue;
            }
            let chunk = self.divided(node as usize)?;
            for node in first >> 8..=last >> 8 {
                let first = first.max(node << 8);
                let last = last.min(node << 8 | 0xff);
                if last - first == 0xff {
                    self.set_leaf_below(chunk, byte(node), leaf);
                } else {
                    let below = self.divided_below(chunk, byte(node))?;
                    at(&mut self.tables.n32, below)[byte(first)..=byte(last)].fill(leaf);
                }
            }
        }
        Some(())
    }

    /// The chunk of a node of level 16, which has one from now on.
    fn divided(&mut self, node: usize) -> Option<E> {
        let SailL { bcn16, bcn24, free, .. } = &mut *self.tables;
        let entry = bcn16[node];
        if !is_chunk(bcn24, entry) {
            let chunk = take(bcn24, &mut free.level24, self.most)?;
            at(bcn24, chunk).fill(entry);
            bcn16.to_mut()[node] = chunk;
        }
        Some(bcn16[node])
    }

    /// The same of a node of level 24.
    fn divided_below(&mut self, chunk: E, byte: usize) -> Option<E> {
        let SailL { bcn24, n32, free, .. } = &mut *self.tables;
        let entry = &mut at(bcn24, chunk)[byte];
        if !is_chunk(n32, *entry) {
            let below = take(n32, &mut free.level32, self.most)?;
            at(n32, below).fill(*entry);
            *entry = below;
        }
        Some(*entry)
    }

    /// Makes a node of level 16 a leaf.
    fn set_leaf(&mut self, node: usize, leaf: E) {
        let chunk = self.tables.bcn16[node];
        if is_chunk(&self.tables.bcn24, chunk) {
            (0..CHUNK).for_each(|byte| self.set_leaf_below(chunk, byte, E::of_code(0)));
            self.given_back.level24.push(chunk.into());
        }
        self.tables.bcn16.to_mut()[node] = leaf;
    }

    /// Makes a node of level 24 a leaf.
    fn set_leaf_below(&mut self, chunk: E, byte: usize, leaf: E) {
        let SailL { bcn24, n32, .. } = &mut *self.tables;
        let below = core::mem::replace(&mut at(bcn24, chunk)[byte], leaf);
        if is_chunk(n32, below) {
            // Stored chunks have codes of the table alone, whether they are in use or not.
            at(n32, below).fill(E::of_code(0));
            self.given_back.level32.push(below.into());
        }
    }

    /// Makes a node of level 16 a leaf if its addresses all go one way.
    fn merge(&mut self, node: usize) {
        let chunk = self.tables.bcn16[node];
        let SailL { bcn24, n32, .. } = &*self.tables;
        let Some(entries) = bcn24.get(chunk.chunk(bcn24.len())) else { return };
        let (leaf, code) = (entries[0], entries[0].into());
        if !is_chunk(n32, leaf) && entries.iter().all(|&entry| entry.into() == code) {
            self.set_leaf(node, leaf);
        }
    }
}

fn is_chunk<E: Entry>(below: &[Chunk<E>], entry: E) -> bool {
    entry.chunk(below.len()) < below.len()
}

/// The chunk that an entry names.
fn at<E: Entry>(array: &mut Table<Chunk<E>>, chunk: E) -> &mut Chunk<E> {
    let index = chunk.chunk(array.len());
    &mut array.to_mut()[index]
}

/// A free chunk. If there is none, the array grows by a part of itself, as far as there is room.
fn take<E: Entry>(array: &mut Table<Chunk<E>>, free: &mut Vec<u32>, most: usize) -> Option<E> {
    if free.is_empty() {
        let len = array.len();
        let more = (len / 4 + 16).min(most - len);
        *array = Table::with(len + more, |new| new[more..].copy_from_slice(array));
        free.extend((0..more).map(|chunk| E::of_chunk(chunk, len + more).into()));
    }
    free.pop().map(E::cut)
}

/// The chunks of an array, as entries, that no entry of the array above names.
pub(super) fn unnamed<E: Entry>(above: &[E], chunks: usize) -> Vec<u32> {
    let mut is_free = vec![true; chunks];
    for entry in above {
        if let Some(is_free) = is_free.get_mut(entry.chunk(chunks)) {
            *is_free = false;
        }
    }
    let free = is_free.iter().enumerate().filter(|(_, is_free)| **is_free);
    free.map(|(chunk, _)| E::of_chunk(chunk, chunks).into()).collect()
}
