use fibula_core::{LoadError, TableSource};

use super::deep::Deep;
use super::record::Codes;
use super::word::Entry;
use super::{LEVELS, ROOT_BITS, Tables, WINDOWS, WORDS};
use crate::common::table;

/// Loads the stored tables, and checks every entry that a lookup can reach.
///
/// Tables must not overlap. Builds never make them overlap, and therefore the check takes linear time even for
/// hostile files. Words and records that no entry names are not checked.
pub(super) fn load<C: Codes>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<C>, LoadError> {
    // Before windows, deep blocks had intervals of whole addresses.
    if tables.table(WINDOWS).is_none() && tables.table("deep_starts").is_some() {
        return Err(LoadError::outdated(WINDOWS));
    }
    let tables =
        Tables::<C>::new(table(tables, WORDS)?, table(tables, C::NAME)?, table(tables, WINDOWS)?);
    // Codes count deep blocks down from the largest one.
    if tables.windows.len() > C::TOP as usize {
        return Err(LoadError::new(C::NAME, "cannot name all deep blocks"));
    }
    // Batches compute keys of windows that no code names, too.
    if !tables.windows.iter().all(Deep::is_sound) {
        return Err(LoadError::new(WINDOWS, "has no bits for a key"));
    }
    // Searches without a record read the first unit.
    if tables.units.is_empty() {
        return Err(LoadError::new(C::NAME, "is too short"));
    }
    if tables.words.len() < 1 << ROOT_BITS {
        return Err(LoadError::new(WORDS, "is shorter than the root"));
    }
    let mut check = Check {
        tables: &tables,
        hop_count,
        taken: vec![false; tables.words.len()],
        named: vec![false; tables.windows.len()],
        next: Vec::new(),
        around: None,
    };
    check.taken[..1 << ROOT_BITS].fill(true);
    for &word in &tables.words[..1 << ROOT_BITS] {
        check.entry(word, LEVELS)?;
    }
    while let Some(block) = check.next.pop() {
        let window = &tables.windows[block];
        check.around = Some(window);
        check.entry(window.word, LEVELS)?;
    }
    Ok(tables)
}

struct Check<'a, C: Codes> {
    tables: &'a Tables<C>,
    hop_count: u32,
    /// The words that belong to a table seen so far.
    taken: Vec<bool>,
    /// The deep blocks whose codes were seen, and those of them that are to be checked.
    named: Vec<bool>,
    next: Vec<usize>,
    /// The window whose word is checked.
    around: Option<&'a Deep>,
}

impl<C: Codes> Check<'_, C> {
    fn entry(&mut self, word: u32, levels: usize) -> Result<(), LoadError> {
        match Entry::of(word) {
            Entry::Constant(code) => self.code(WORDS, code),
            Entry::Record { byte, keys } => self.record(byte, keys),
            Entry::Table { base, bits } => {
                match self.taken.get_mut(base..base + (1 << bits)) {
                    Some(taken) if levels > 0 && taken.iter().all(|taken| !taken) => {
                        taken.fill(true);
                    }
                    _ => return Err(LoadError::new(WORDS, "a table is out of place")),
                }
                for i in base..base + (1 << bits) {
                    self.entry(self.tables.words[i], levels - 1)?;
                }
                Ok(())
            }
        }
    }

    /// Checks a record. A rank is at most the number of keys, so a code for each rank suffices.
    fn record(&mut self, byte: usize, keys: usize) -> Result<(), LoadError> {
        let unit = size_of::<C::Unit>();
        let all: &[u16] = bytemuck::cast_slice(&self.tables.units);
        let codes: &[C::Code] = bytemuck::cast_slice(all);
        let codes_at = C::codes_at(byte, keys);
        if byte % unit + 2 * keys > unit || codes_at + keys >= codes.len() {
            return Err(LoadError::new(WORDS, "names a record that is not there"));
        }
        if !all[byte / 2..][..keys].is_sorted() {
            return Err(LoadError::new(C::NAME, "the keys of a record are not sorted"));
        }
        for &code in &codes[codes_at..][..=keys] {
            self.code(C::NAME, code.into())?;
        }
        Ok(())
    }

    /// Checks a code. Each deep block has one, and its window is narrower than the one around it, so that every lookup
    /// ends.
    fn code(&mut self, table: &'static str, code: u32) -> Result<(), LoadError> {
        // A constant may be larger than the codes of narrow records.
        if code <= self.hop_count.min(C::TOP) && !self.tables.is_deep(code) {
            return Ok(());
        }
        let block = self.tables.block(code) as usize;
        let Some(window) = self.tables.windows.get(block) else {
            return Err(LoadError::new(table, "names a hop beyond the hop count"));
        };
        if self.named[block] || self.around.is_some_and(|around| !window.is_within(around)) {
            return Err(LoadError::new(WINDOWS, "a window is out of place"));
        }
        self.named[block] = true;
        self.next.push(block);
        Ok(())
    }
}
