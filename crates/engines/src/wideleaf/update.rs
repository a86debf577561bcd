use bytemuck::Pod;
use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{Cells, Parts};
use super::deep::Deep;
use super::record::Codes;
use super::word::Entry;
use super::{LEVELS, ROOT_BITS, Tables};

/// The most blocks that a patch compiles; for more, a build is faster.
const BLOCKS_MAX: usize = 1 << 15;

/// If a changed prefix covers more blocks of a table than this, the whole table is compiled again.
const CHILDREN_MAX: u32 = 64;

/// The place of a block's word, and how many successive tables the block may have.
#[derive(Clone, Copy)]
struct Word {
    place: usize,
    levels: usize,
}

impl<C: Codes> Tables<C> {
    /// Compiles the smallest blocks around the changed prefixes that have their own words, appends the result to
    /// the tables, and stores the new words. The tables and records of the old words become garbage. Returns `None` if
    /// codes or places have run out; then the table answers as before.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Option<Patched>, BuildError> {
        if self.is_outgrown {
            return Ok(Some(Patched::Rebuild));
        }
        match self.try_patch(routes, changed)? {
            // Removing the garbage may free codes and places.
            None if self.garbage > 0 => {
                self.compact();
                self.try_patch(routes, changed)
            }
            patched => Ok(patched),
        }
    }

    /// The block that a patch compiles for a prefix, or the prefix itself if it covers several.
    pub(super) fn reach(&self, prefix: Prefix<u128>) -> Prefix<u128> {
        let mut reach = prefix;
        let entry = super::root(prefix.first());
        if entry == super::root(prefix.last()) {
            self.around(entry, prefix, |block, _| {
                if block.covers(reach) {
                    reach = block;
                }
            });
        }
        reach
    }

    /// [`Self::patch`], without removing garbage before.
    fn try_patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Option<Patched>, BuildError> {
        let mut blocks = Vec::with_capacity(changed.len());
        for &prefix in changed {
            for entry in super::root(prefix.first())..=super::root(prefix.last()) {
                self.around(entry, prefix, |block, word| {
                    if blocks.last().is_none_or(|(last, _)| *last != block) {
                        blocks.push((block, word));
                    }
                });
                if blocks.len() > BLOCKS_MAX {
                    return Ok(Some(Patched::Rebuild));
                }
            }
        }
        // A block is sorted before the blocks within it.
        blocks.sort_unstable_by_key(|&(block, _)| block);
        blocks.dedup_by(|(block, _), (before, _)| before.covers(*block));
        let (blocks, at): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        let (windows_at, words_at, units_at) =
            (self.windows_used, self.words_used, self.units_used);
        let mut parts = Parts::<C>::new(routes, windows_at, words_at, units_at);
        let mut words: Vec<(usize, u32)> = Vec::with_capacity(blocks.len());
        routes.each_within(&blocks, |ranges| {
            let (block, Word { place, levels }) = (blocks[words.len()], at[words.len()]);
            let cells = Cells::new::<C::Unit>(ranges);
            words.push((place, parts.block_word(&cells, block, levels, &mut 0)));
        });
        if parts.overflows() {
            return Ok(None);
        }
        let garbage = words.iter().map(|&(place, _)| self.bytes(self.words[place])).sum::<usize>();
        append(&mut self.words, words_at, &parts.words);
        append(&mut self.units, units_at, parts.records.units());
        append(&mut self.windows, windows_at, &parts.windows);
        self.words_used += parts.words.len();
        self.units_used += parts.records.units().len();
        self.windows_used += parts.windows.len();
        let all = self.words.to_mut();
        for &(place, word) in &words {
            all[place] = word;
        }
        self.garbage += garbage;
        let added = words.iter().map(|&(_, word)| self.bytes(word)).sum::<usize>();
        self.live = (self.live + added).saturating_sub(garbage);
        // A copy removes the garbage earlier, so a patch of one rarely does.
        if self.garbage > self.used() / 2 + SLACK {
            self.tidy();
        }
        Ok(Some(if self.is_outgrown { Patched::Rebuild } else { Patched::Applied }))
    }

    /// Copies the tables to new memory with room for patches; only the parts in use if much of them is garbage.
    pub(super) fn own(&mut self) {
        if self.garbage > self.used() / 8 * 3 + SLACK {
            self.tidy();
        } else {
            self.copy();
        }
    }

    /// Removes the garbage, unless the next patch will require a build: the tables nearest to the root still suit the
    /// routes of the last build, so the engine is rebuilt if its size has changed much since then.
    fn tidy(&mut self) {
        let most = self.built + self.built / 2 + SLACK;
        self.is_outgrown = self.live >= most;
        if !self.is_outgrown {
            self.compact();
            self.is_outgrown = self.used() >= most;
        }
    }

    /// Calls `each` with the smallest block of a root entry that covers the prefix, or with the few neighbouring
    /// blocks of a table that the prefix covers, and with their words.
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
            // Compiling a few of a table's blocks is less work than compiling the whole table.
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

    /// The bytes of all tables, records and windows below an entry.
    fn bytes(&self, word: u32) -> usize {
        match Entry::of(word) {
            Entry::Constant(code) => self.bytes_deep(code),
            Entry::Record { byte, keys } => {
                let codes: &[C::Code] = bytemuck::cast_slice(&self.units);
                let codes = &codes[C::codes_at(byte, keys)..][..=keys];
                let deep = codes.iter().map(|&code| self.bytes_deep(code.into()));
                C::bytes(keys) + deep.sum::<usize>()
            }
            Entry::Table { base, bits } => {
                let words = &self.words[base..base + (1 << bits)];
                4 * words.len() + words.iter().map(|&word| self.bytes(word)).sum::<usize>()
            }
        }
    }

    /// The same for a code: those of a deep block.
    fn bytes_deep(&self, code: u32) -> usize {
        if !self.is_deep(code) {
            return 0;
        }
        size_of::<Deep>() + self.bytes(self.windows[self.block(code) as usize].word)
    }
}

/// This many bytes of garbage or growth are ignored, because a few changes alter much of a small table.
const SLACK: usize = 1 << 18;

/// Writes the elements from place `at` on. If there is no room, the table is copied with room for a quarter more.
fn append<T: Pod>(table: &mut Table<T>, at: usize, elements: &[T]) {
    let end = at + elements.len();
    if end > table.len() {
        let len = end + end / 4;
        *table = Table::with_room(table, len);
    }
    table.to_mut()[at..end].copy_from_slice(elements);
}
