//! Section 3.4 of the paper: a changed prefix rebuilds its chunk, or the chunks that it covers, from
//! the routes. Prefixes of one burst that share a chunk rebuild it once.

use bytemuck::Pod;
use fibula_core::{BuildError, Follow, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{Chunks, encode, is_long, padded};
use super::format::{Chunk, Entry, LONG_CODE_MAX, POSITION_BITS, SIZE_BITS, WideEntry};
use super::{Compact, Dxr, Form, Wide};
use crate::common::on_threads;

impl Follow<u32> for Dxr {
    /// Rebuilds the chunks under the changed prefixes. A chunk that has not grown is written where it
    /// was, any other behind the last one. O(ranges of the chunks); [`Patched::Rebuild`] once half of
    /// the range table is holes, or when a chunk fits the entries' fields no more.
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        let blocks = blocks(changed, self.k());
        let shift = self.shift;
        let cut = |near: &mut usize, block: &Prefix<u32>| {
            let first = (block.first() >> shift) as usize;
            Ok((first, Chunks::cut(routes.ranges_within_near(*block, near), first, shift)?))
        };
        if self.threads < 2 || blocks.len() < MANY {
            let mut near = 0;
            return self.replace(routes, blocks.iter().map(|block| cut(&mut near, block)));
        }
        let parts: Vec<&[Prefix<u32>]> = blocks.chunks(MANY / 8).collect();
        let cut_all = |part: &&[Prefix<u32>]| {
            let mut near = 0;
            part.iter().map(|block| cut(&mut near, block)).collect::<Vec<_>>()
        };
        let parts = on_threads(self.threads, &parts, cut_all);
        self.replace(routes, parts.into_iter().flatten())
    }
}

/// Fewer changed chunks are not cut on several threads: it takes longer to start these.
const MANY: usize = 512;

impl Dxr {
    /// Writes chunks, each with those that follow its first one.
    fn replace(
        &mut self,
        routes: &Routes<u32>,
        chunks: impl Iterator<Item = Result<(usize, Chunks), BuildError>>,
    ) -> Result<Patched, BuildError> {
        for block in chunks {
            let (first, chunks) = block?;
            let applied = match &mut self.form {
                Form::Compact(tables) => {
                    routes.hop_count() <= LONG_CODE_MAX && tables.replace(first, &chunks)
                }
                Form::Wide(tables) => tables.replace(first, &chunks),
            };
            if !applied {
                return Ok(Patched::Rebuild);
            }
        }
        Ok(Patched::Applied)
    }
}

/// The prefixes, each widened to a chunk at least, without those that others cover.
fn blocks(changed: &[Prefix<u32>], k: u8) -> Vec<Prefix<u32>> {
    let chunk = |prefix: &Prefix<u32>| {
        Prefix::masked(prefix.addr(), prefix.len().min(k)).expect("k is a prefix length")
    };
    let mut blocks: Vec<_> = changed.iter().map(chunk).collect();
    blocks.sort_unstable();
    // Sorted, so a prefix that covers others comes right before them.
    blocks.dedup_by(|next, kept| kept.covers(*next));
    blocks
}

/// The place of `new` elements in place of `old` ones that begin at `at`: there, or behind the last
/// one if they are more. `used` and `holes` follow.
fn place(at: usize, old: usize, new: usize, used: &mut usize, holes: &mut usize) -> usize {
    if new <= old {
        *holes += old - new;
        return at;
    }
    *holes += old;
    *used += new;
    *used - new
}

/// Makes room for `len` elements, and for some more, so that the next calls need not grow the table.
fn reserve<T: Pod>(table: &mut Table<T>, len: usize) {
    if table.len() < len {
        *table = Table::with(len + len / 4 + 64, |new| new[..table.len()].copy_from_slice(table));
    }
}

impl Compact {
    /// Puts the chunks in place of those from `first` on; false if they do not fit.
    fn replace(&mut self, first: usize, chunks: &Chunks) -> bool {
        let grain = self.grain;
        let lookup = self.lookup.to_mut();
        // Chunks of one range first: they leave a hole, and the others overwrite their entry.
        let mut old_words = Vec::with_capacity(chunks.chunks.len());
        for (entry, &(size, code)) in lookup[first..].iter_mut().zip(&chunks.chunks) {
            let old = Entry(*entry);
            let (at, words) = match old.direct() {
                Some(_) => (0, 0),
                None => {
                    let chunk = Chunk::new(old, grain);
                    (chunk.word, Chunk::words(chunk.size, chunk.long).next_multiple_of(1 << grain))
                }
            };
            old_words.push((at, words));
            if size == 1 {
                self.holes += words;
                *entry = code;
            }
        }
        for (index, starts, codes) in chunks.full() {
            let long = is_long(starts, codes);
            let words = padded(starts.len(), long, grain);
            let size = starts.len().div_ceil(1 << grain);
            let (at, old) = old_words[index];
            let at = place(at, old, words, &mut self.used, &mut self.holes);
            if size >= 1 << SIZE_BITS || at >> grain >= 1 << POSITION_BITS {
                return false;
            }
            // One more for the guard.
            reserve(&mut self.ranges, self.used + 1);
            let ranges = self.ranges.to_mut();
            for (word, to) in ranges[at..at + words].iter_mut().enumerate() {
                *to = encode(starts, codes, long, word);
            }
            lookup[first + index] = Entry::new(long, size as u32, (at >> grain) as u32).0;
        }
        2 * self.holes <= self.used
    }
}

impl Wide {
    /// As [`Compact::replace`].
    fn replace(&mut self, first: usize, chunks: &Chunks) -> bool {
        let lookup = self.lookup.to_mut();
        for (index, &(size, code)) in chunks.chunks.iter().enumerate() {
            if size == 1 {
                let entry = &mut lookup[first + index];
                self.holes += WideEntry(*entry).size() as usize;
                *entry = WideEntry::new(0, code).0;
            }
        }
        for (index, starts, codes) in chunks.full() {
            let old = WideEntry(lookup[first + index]);
            let (at, size) = (old.position() as usize, old.size() as usize);
            let at = place(at, size, starts.len(), &mut self.used, &mut self.holes);
            // Vector gathers take signed 32-bit indices.
            if self.used > i32::MAX as usize - 2 {
                return false;
            }
            reserve(&mut self.starts, self.used);
            reserve(&mut self.codes, self.used);
            let place = at..at + starts.len();
            self.starts.to_mut()[place.clone()].copy_from_slice(starts);
            self.codes.to_mut()[place].copy_from_slice(codes);
            lookup[first + index] = WideEntry::new(starts.len() as u32, at as u32).0;
        }
        2 * self.holes <= self.used
    }
}
