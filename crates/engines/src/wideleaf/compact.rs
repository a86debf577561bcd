use bytemuck::{Pod, Zeroable};
use fibula_simd::Table;

use super::deep::Deep;
use super::record::{Codes, Records};
use super::word::Entry;
use super::{ROOT_BITS, Tables};

impl<C: Codes> Tables<C> {
    /// Copies the tables to new memory with room for patches.
    pub(super) fn copy(&mut self) {
        self.words = with_room(&self.words[..self.words_used]);
        self.units = with_room(&self.units[..self.units_used]);
        self.windows = with_room(self.used_windows());
    }

    /// Copies the tables, records and deep blocks in use to new tables, without the garbage of patches.
    pub(super) fn compact(&mut self) {
        let mut moved = Moved::<C> {
            from: self,
            words: Vec::with_capacity(self.words_used),
            records: Records::new(1),
            windows: Vec::new(),
        };
        moved.words.resize(1 << ROOT_BITS, 0);
        for (place, &word) in self.words[..1 << ROOT_BITS].iter().enumerate() {
            moved.words[place] = moved.entry(word);
        }
        let Moved { words, records, windows, .. } = moved;
        let mut units = vec![C::Unit::zeroed()];
        units.extend_from_slice(records.units());
        (self.words_used, self.units_used) = (words.len(), units.len());
        (self.windows_used, self.garbage) = (windows.len(), 0);
        (self.words, self.units) = (with_room(&words), with_room(&units));
        self.windows = with_room(&windows);
        self.live = self.used();
    }
}

/// Copies the elements to a table with room for a quarter more, for patches.
fn with_room<T: Pod>(elements: &[T]) -> Table<T> {
    Table::with_room(elements, elements.len() + elements.len() / 4)
}

/// The parts copied so far.
struct Moved<'a, C: Codes> {
    from: &'a Tables<C>,
    /// The root and the tables.
    words: Vec<u32>,
    records: Records<C>,
    windows: Vec<Deep>,
}

impl<C: Codes> Moved<'_, C> {
    /// Copies the table or record that an entry names, and returns the new entry.
    fn entry(&mut self, word: u32) -> u32 {
        let entry = match Entry::of(word) {
            Entry::Constant(code) => Entry::Constant(self.code(code)),
            Entry::Record { byte, keys } => {
                let from = self.from;
                let first = byte / 2;
                let seen: &[u16] = bytemuck::cast_slice(&from.units);
                let seen = &seen[first..first + keys];
                let all: &[C::Code] = bytemuck::cast_slice(&from.units);
                let codes = &all[C::codes_at(byte, keys)..][..=keys];
                let codes: Vec<u32> = codes.iter().map(|&code| self.code(code.into())).collect();
                Entry::Record { byte: self.records.push(seen, &codes), keys }
            }
            Entry::Table { base, bits } => {
                let start = self.words.len();
                self.words.resize(start + (1 << bits), 0);
                for child in 0..1 << bits {
                    self.words[start + child] = self.entry(self.from.words[base + child]);
                }
                Entry::Table { base: start, bits }
            }
        };
        entry.word()
    }

    /// The new code: for a deep block that of its copy, else the same.
    fn code(&mut self, code: u32) -> u32 {
        if !self.from.is_deep(code) {
            return code;
        }
        let window = self.from.windows[self.from.block(code) as usize];
        let number = self.windows.len();
        self.windows.push(window);
        self.windows[number].word = self.entry(window.word);
        C::TOP - number as u32
    }
}
