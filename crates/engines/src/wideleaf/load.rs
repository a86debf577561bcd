use fibula_core::{LoadError, TableSource};

use super::deep::Deep;
use super::record::Codes;
use super::word::Entry;
use super::{LEVELS, ROOT_BITS, Tables, WORDS};
use crate::common::table;

/// Loads the stored tables, and checks every entry that a lookup can reach.
///
/// Tables must not overlap. Builds never make them overlap, and therefore the check takes linear time even for
/// hostile files. Words and records that no entry names are not checked.
pub(super) fn load<C: Codes>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<C>, LoadError> {
    let tables = Tables::<C>::new(
        table(tables, WORDS)?,
        table(tables, C::NAME)?,
        Deep::load(tables, hop_count)?,
    );
    // Codes count deep blocks down from the largest one.
    if tables.deep.blocks() > C::TOP as usize {
        return Err(LoadError::new(C::NAME, "cannot name all deep blocks"));
    }
    // Searches without a record read the first unit.
    if tables.units.is_empty() {
        return Err(LoadError::new(C::NAME, "is too short"));
    }
    if tables.words.len() < 1 << ROOT_BITS {
        return Err(LoadError::new(WORDS, "is shorter than the root"));
    }
    let mut check = Check { tables: &tables, hop_count, taken: vec![false; tables.words.len()] };
    check.taken[..1 << ROOT_BITS].fill(true);
    for &word in &tables.words[..1 << ROOT_BITS] {
        check.entry(word, LEVELS)?;
    }
    Ok(tables)
}

struct Check<'a, C: Codes> {
    tables: &'a Tables<C>,
    hop_count: u32,
    /// The words that belong to a table seen so far.
    taken: Vec<bool>,
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
    fn record(&self, byte: usize, keys: usize) -> Result<(), LoadError> {
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
        codes[codes_at..][..=keys].iter().try_for_each(|&code| self.code(C::NAME, code.into()))
    }

    fn code(&self, table: &'static str, code: u32) -> Result<(), LoadError> {
        // A constant may be larger than the codes of narrow records.
        let block = C::TOP.checked_sub(code).map(|block| block as usize);
        let sound =
            block.is_some_and(|block| code <= self.hop_count || block < self.tables.deep.blocks());
        if sound { Ok(()) } else { Err(LoadError::new(table, "names a hop beyond the hop count")) }
    }
}
