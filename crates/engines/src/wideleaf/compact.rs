use bytemuck::{Pod, Zeroable};
use fibula_simd::Table;

use super::deep::Deep;
use super::record::{Codes, Records};
use super::word::{BYTES_MAX, Entry};
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
        if let Some(compacted) = self.with_codes::<C>() {
            *self = Self { built: self.built, is_outgrown: self.is_outgrown, ..compacted };
        }
    }

    /// The parts in use with codes that are as wide or wider. `None` if the records are too many to be addressed then.
    pub(super) fn with_codes<D: Codes<Unit = C::Unit>>(&self) -> Option<Tables<D>> {
        let mut moved = Moved::<C, D> {
            from: self,
            words: Vec::with_capacity(self.words_used),
            records: Records::new(1),
            windows: Vec::new(),
            overflows: false,
        };
        moved.words.resize(1 << ROOT_BITS, 0);
        for (place, &word) in self.words[..1 << ROOT_BITS].iter().enumerate() {
            moved.words[place] = moved.entry(word);
        }
        let Moved { words, records, windows, overflows, .. } = moved;
        if overflows {
            return None;
        }
        let mut units = vec![D::Unit::zeroed()];
        units.extend_from_slice(records.units());
        let mut tables = Tables {
            words_used: words.len(),
            units_used: units.len(),
            windows_used: windows.len(),
            words: with_room(&words),
            units: with_room(&units),
            windows: with_room(&windows),
            garbage: 0,
            live: 0,
            built: 0,
            is_outgrown: false,
        };
        tables.live = tables.used();
        // As large as the build would have been with these codes, so that growth since then still counts.
        tables.built = (self.built as u64 * tables.live as u64 / self.live.max(1) as u64) as usize;
        Some(tables)
    }
}

/// Copies the elements to a table with room for a quarter more, for patches.
fn with_room<T: Pod>(elements: &[T]) -> Table<T> {
    Table::with_room(elements, elements.len() + elements.len() / 4)
}

/// The parts copied so far.
struct Moved<'a, C: Codes, D: Codes> {
    from: &'a Tables<C>,
    /// The root and the tables.
    words: Vec<u32>,
    records: Records<D>,
    windows: Vec<Deep>,
    overflows: bool,
}

impl<C: Codes, D: Codes> Moved<'_, C, D> {
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
                let byte = self.records.push(seen, &codes);
                self.overflows |= byte >= BYTES_MAX;
                Entry::Record { byte: byte % BYTES_MAX, keys }
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
        D::TOP - number as u32
    }
}
