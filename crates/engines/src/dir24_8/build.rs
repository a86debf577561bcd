use fibula_core::{BuildError, Range, Routes};
use fibula_simd::Table;

use super::entry::{Entry, code};
use super::{BLOCKS, CHUNK_LEN, Tables};

/// Compiles the routes. Ranges come in order, so every entry is written once or twice and none is read.
pub(super) fn build<E: Entry>(routes: &Routes<u32>) -> Result<Tables<E>, BuildError> {
    check_hops::<E>(routes)?;
    let mut long = Vec::new();
    let mut done = Ok(());
    let tbl24 = Table::with(BLOCKS, |blocks| done = write(routes.ranges(), blocks, &mut long));
    done?;
    Ok(Tables { tbl24, tbl_long: Table::from_vec(long), free: Vec::new() })
}

/// Writes the entries of these ranges, which cover all blocks, and appends their chunks.
fn write<E: Entry>(
    ranges: impl Iterator<Item = Range<u32>>,
    blocks: &mut [E],
    long: &mut Vec<E>,
) -> Result<(), BuildError> {
    for Range { first, last, hop } in ranges {
        let entry = E::new(code(hop));
        let (low, high) = (first as usize % CHUNK_LEN, last as usize % CHUNK_LEN);
        let (mut begin, end) = (first as usize / CHUNK_LEN, last as usize / CHUNK_LEN);
        if low != 0 {
            // The previous range began the chunk of this block.
            let upto = if begin == end { high } else { CHUNK_LEN - 1 };
            long.resize(long.len() + upto + 1 - low, entry);
            begin += 1;
        }
        if begin > end {
            continue;
        }
        let whole = end + usize::from(high == CHUNK_LEN - 1);
        run(&mut blocks[begin..], whole - begin, entry);
        if whole == end {
            let chunk = long.len() / CHUNK_LEN;
            if chunk > E::MAX as usize {
                return Err(too_many_chunks::<E>());
            }
            blocks[end] = E::new(E::CHUNK | chunk as u32);
            long.resize(long.len() + high + 1, entry);
        }
    }
    Ok(())
}

/// Writes an entry so many times, and perhaps some more times behind, where the next ranges will write: most runs are
/// short, and a store of constant length needs no loop.
#[inline(always)]
fn run<E: Entry>(blocks: &mut [E], len: usize, entry: E) {
    const SHORT: usize = 32;
    match blocks.first_chunk_mut::<SHORT>() {
        Some(short) if len <= SHORT => short.fill(entry),
        _ => blocks[..len].fill(entry),
    }
}

/// Whether entries can hold the hops of these routes.
pub(super) fn check_hops<E: Entry>(routes: &Routes<u32>) -> Result<(), BuildError> {
    let (limit, needed) = (E::MAX.into(), routes.hop_count().into());
    if needed > limit {
        return Err(BuildError::Limit { engine: E::ENGINE, what: "next hops", limit, needed });
    }
    Ok(())
}

fn too_many_chunks<E: Entry>() -> BuildError {
    let limit = u64::from(E::MAX) + 1;
    BuildError::Limit {
        engine: E::ENGINE,
        what: "blocks of 256 addresses that longer routes divide",
        limit,
        needed: limit + 1,
    }
}

impl<E: Entry> Tables<E> {
    /// Number of chunks, those in the free list included.
    pub(super) fn chunks(&self) -> usize {
        self.tbl_long.len() / CHUNK_LEN
    }

    /// Rewrites the entries of these ranges, which follow one another and together cover whole
    /// blocks of 256 addresses.
    pub(super) fn paint(
        &mut self,
        ranges: impl Iterator<Item = Range<u32>>,
    ) -> Result<(), BuildError> {
        for Range { first, last, hop } in ranges {
            let entry = E::new(code(hop));
            // The whole blocks are those from `begin` on and before `end`: a range that begins or
            // ends within a block shares that one with its neighbours.
            let (low, high) = (first as usize % CHUNK_LEN, last as usize % CHUNK_LEN);
            let begin = first as usize / CHUNK_LEN + usize::from(low != 0);
            let end = last as usize / CHUNK_LEN + usize::from(high == CHUNK_LEN - 1);
            if begin > end {
                self.chunk_of(end)?[low..=high].fill(entry);
                continue;
            }
            if low != 0 {
                self.chunk_of(begin - 1)?[low..].fill(entry);
            }
            self.paint_blocks(begin, end, entry);
            if high != CHUNK_LEN - 1 {
                self.chunk_of(end)?[..=high].fill(entry);
            }
        }
        Ok(())
    }

    /// Gives whole blocks one answer; their chunks become free.
    fn paint_blocks(&mut self, begin: usize, end: usize, entry: E) {
        let blocks = &mut self.tbl24.to_mut()[begin..end];
        // Together first, which vectorises: hardly any block has a chunk.
        if blocks.iter().fold(0, |all, &entry| all | entry.into()) & E::CHUNK != 0 {
            let chunks = blocks.iter().map(|&entry| entry.into()).filter(|e| e & E::CHUNK != 0);
            self.free.extend(chunks.map(|entry| entry & E::MAX));
        }
        blocks.fill(entry);
    }

    /// The chunk of a block, which gets one if it has none. A new chunk holds the entries of its last owner; the ranges
    /// of the block overwrite all of them.
    fn chunk_of(&mut self, block: usize) -> Result<&mut [E], BuildError> {
        let entry: u32 = self.tbl24[block].into();
        let chunk = if entry & E::CHUNK != 0 {
            entry & E::MAX
        } else {
            let chunk = self.take_chunk()?;
            self.tbl24.to_mut()[block] = E::new(E::CHUNK | chunk);
            chunk
        };
        Ok(&mut self.tbl_long.to_mut()[chunk as usize * CHUNK_LEN..][..CHUNK_LEN])
    }

    /// A chunk that no block has.
    fn take_chunk(&mut self) -> Result<u32, BuildError> {
        if self.free.is_empty() {
            let (chunks, limit) = (self.chunks(), E::MAX as usize + 1);
            let grown = (2 * chunks).clamp(64, limit);
            if grown <= chunks {
                return Err(too_many_chunks::<E>());
            }
            self.tbl_long = Table::with(grown * CHUNK_LEN, |to| {
                to[..self.tbl_long.len()].copy_from_slice(&self.tbl_long);
            });
            self.free.extend((chunks as u32..grown as u32).rev());
        }
        Ok(self.free.pop().expect("free chunks were just made"))
    }
}
