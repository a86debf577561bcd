use std::collections::BTreeMap;

use bytemuck::Pod;
use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{Cells, Parts};
use super::deep::DeepBuilder;
use super::record::Codes;
use super::word::Entry;
use super::{LEVELS, ROOT_BITS, Tables};

/// Blocks that a patch makes anew, at most: more are better served by a build.
const BLOCKS_MAX: usize = 1 << 15;

/// Blocks of a table that a changed prefix covers, at most: of more, all are made anew with their table.
const CHILDREN_MAX: u32 = 64;

/// Where the word of a block stands, and how many tables there may be behind it.
struct Word {
    place: usize,
    levels: usize,
}

impl<C: Codes> Tables<C> {
    /// Compiles the smallest blocks around the changed prefixes that have a word of their own anew,
    /// behind what is there, and turns their words to it. What these named before is garbage.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        match self.try_patch(routes, changed)? {
            Some(patched) => Ok(patched),
            // Garbage may have the codes and places that are missing.
            None => {
                self.compact()?;
                Ok(self.try_patch(routes, changed)?.unwrap_or(Patched::Rebuild))
            }
        }
    }

    /// `None` if codes or places have run out; then nothing is changed.
    fn try_patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Option<Patched>, BuildError> {
        let mut blocks = BTreeMap::new();
        for &prefix in changed {
            for entry in super::root(prefix.first())..=super::root(prefix.last()) {
                self.around(entry, prefix, |block, word| {
                    blocks.insert(block, word);
                });
                if blocks.len() > BLOCKS_MAX {
                    return Ok(Some(Patched::Rebuild));
                }
            }
        }
        let deep = DeepBuilder::from(&self.deep);
        let mut parts = Parts::<C>::new(routes, deep, self.words_used, self.halves_used);
        let mut words: Vec<(usize, u32)> = Vec::new();
        let mut done: Option<Prefix<u128>> = None;
        for (block, Word { place, levels }) in blocks {
            // A block comes before those within it.
            if done.is_some_and(|done| done.covers(block)) {
                continue;
            }
            let cells = Cells::new(routes.ranges_within(block));
            words.push((place, parts.block_word(&cells, block, levels, &mut 0)));
            done = Some(block);
        }
        if parts.overflows() {
            return Ok(None);
        }
        let (words_at, halves_at) = (self.words_used, self.halves_used);
        if parts.deep.blocks() != self.deep.blocks() {
            self.deep = parts.deep.finish()?;
        }
        self.garbage +=
            words.iter().map(|&(place, _)| self.bytes(self.words[place])).sum::<usize>();
        append(&mut self.words, words_at, &parts.words);
        append(&mut self.halves, halves_at, parts.records.halves());
        (self.words_used, self.halves_used) =
            (words_at + parts.words.len(), halves_at + parts.records.halves().len());
        let all = self.words.to_mut();
        for (place, word) in words {
            all[place] = word;
        }
        if self.garbage <= self.used() / 2 + SLACK {
            return Ok(Some(Patched::Applied));
        }
        self.compact()?;
        // The tables that are nearest to the root suit the routes of the last build. A table that has become
        // another one is planned anew, one that goes on as it is need not be.
        let (used, deep) = (self.used(), self.deep.blocks());
        let is_alike = used < self.built.0 + self.built.0 / 2 + SLACK
            && deep <= self.built.1 + self.built.1 / 2 + DEEP_SLACK;
        Ok(Some(if is_alike { Patched::Applied } else { Patched::Rebuild }))
    }

    /// The smallest blocks of a root entry that cover the prefix, or all of the entry's that it covers, and their
    /// words: one block, or some in a table that are next to each other.
    fn around(&self, entry: usize, prefix: Prefix<u128>, mut each: impl FnMut(Prefix<u128>, Word)) {
        let (mut place, mut depth, mut levels) = (entry, ROOT_BITS, LEVELS);
        let addr = (entry as u128) << (128 - ROOT_BITS) | prefix.addr();
        let len = u32::from(prefix.len());
        let block = |addr, depth| Prefix::masked(addr, depth as u8).expect("no longer than a cell");
        while let Entry::Table { base, bits } = Entry::of(self.words[place]) {
            let child = (super::key(prefix.addr()) << (depth - ROOT_BITS) >> (32 - bits)) as usize;
            if len >= depth + bits {
                place = base + child;
                (depth, levels) = (depth + bits, levels - 1);
                continue;
            }
            // Compiling a few of a table's blocks is less work than all of them with the table.
            if len >= depth && 1 << (depth + bits - len) <= CHILDREN_MAX {
                for i in 0..1usize << (depth + bits - len) {
                    let addr = addr | (i as u128) << (128 - depth - bits);
                    let word = Word { place: base + child + i, levels: levels - 1 };
                    each(block(addr, depth + bits), word);
                }
                return;
            }
            break;
        }
        each(block(addr, depth), Word { place, levels });
    }

    /// The bytes of the tables and records that an entry names.
    fn bytes(&self, word: u32) -> usize {
        match Entry::of(word) {
            Entry::Constant(_) => 0,
            Entry::Record { keys, .. } => C::bytes(keys),
            Entry::Table { base, bits } => {
                let words = &self.words[base..base + (1 << bits)];
                4 * words.len() + words.iter().map(|&word| self.bytes(word)).sum::<usize>()
            }
        }
    }
}

/// Bytes of garbage that are nothing to speak of: small tables are all change.
const SLACK: usize = 1 << 18;
/// The same of deep blocks.
const DEEP_SLACK: usize = 64;

/// Writes the elements from place `at` on; a table without room for them grows by a quarter.
fn append<T: Pod>(table: &mut Table<T>, at: usize, elements: &[T]) {
    let end = at + elements.len();
    if end > table.len() {
        let len = end + end / 4;
        *table = Table::with(len, |larger| larger[..table.len()].copy_from_slice(table));
    }
    table.to_mut()[at..end].copy_from_slice(elements);
}
