use std::collections::BTreeMap;

use bytemuck::Pod;
use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{Cells, Parts};
use super::deep::DeepBuilder;
use super::record::{Codes, Half};
use super::word::Entry;
use super::{LEVELS, ROOT_BITS, Tables};

/// Blocks that a patch makes anew, at most: more are better served by a build.
const BLOCKS_MAX: usize = 4096;

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
        let mut blocks = BTreeMap::new();
        for &prefix in changed {
            for entry in super::root(prefix.first())..=super::root(prefix.last()) {
                let (block, word) = self.around(entry, prefix);
                blocks.insert(block, word);
                if blocks.len() > BLOCKS_MAX {
                    return Ok(Patched::Rebuild);
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
            return Ok(Patched::Rebuild);
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
        let used = 4 * (self.words_used - (1 << ROOT_BITS)) + size_of::<Half>() * self.halves_used;
        Ok(if self.garbage > used / 2 + SLACK { Patched::Rebuild } else { Patched::Applied })
    }

    /// The smallest block of a root entry that covers the prefix, or all of the entry's, and its word.
    fn around(&self, entry: usize, prefix: Prefix<u128>) -> (Prefix<u128>, Word) {
        let (mut place, mut depth, mut levels) = (entry, ROOT_BITS, LEVELS);
        while let Entry::Table { base, bits } = Entry::of(self.words[place])
            && u32::from(prefix.len()) >= depth + bits
        {
            place =
                base + (super::key(prefix.addr()) << (depth - ROOT_BITS) >> (32 - bits)) as usize;
            (depth, levels) = (depth + bits, levels - 1);
        }
        let first = (entry as u128) << (128 - ROOT_BITS) | prefix.addr();
        let block = Prefix::masked(first, depth as u8).expect("shorter than an address");
        (block, Word { place, levels })
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

/// Writes the elements from place `at` on; a table without room for them grows by a quarter.
fn append<T: Pod>(table: &mut Table<T>, at: usize, elements: &[T]) {
    let end = at + elements.len();
    if end > table.len() {
        let len = end + end / 4;
        *table = Table::with(len, |larger| larger[..table.len()].copy_from_slice(table));
    }
    table.to_mut()[at..end].copy_from_slice(elements);
}
