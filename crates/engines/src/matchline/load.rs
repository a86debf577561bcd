use fibula_core::{LoadError, TableSource};

use super::line::{Code, may_cover};
use super::word::Entry;
use super::{RootShape, SHAPE, Tables, WORDS};
use crate::common::{Long, table};

/// Loads the stored tables, and checks all that a lookup can reach. Patches leave words and lines to which nothing
/// leads, and in lines prefixes of addresses that are led elsewhere, whose codes may be those of hops that are gone.
///
/// A table lies behind the word that names it, so that each lookup ends, and has no words in common with another one,
/// so that the check takes linear time even for hostile files.
pub(super) fn load<C: Code>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<C>, LoadError> {
    let shape = table::<RootShape>(tables, SHAPE)?;
    let [shape] = *shape else { return Err(LoadError::new(SHAPE, "is not one shape")) };
    let (words, lines) = (table(tables, WORDS)?, table(tables, C::NAME)?);
    let tables = Tables::<C>::new(words, lines, shape, Long::load_any(tables)?);
    if shape.shift >= 32 || shape.entries as usize >= tables.words.len() {
        return Err(LoadError::new(SHAPE, "names root words that are not there"));
    }
    let end = u64::from(shape.low) + (u64::from(shape.entries) << shape.shift);
    if shape.low & ((1 << shape.shift) - 1) != 0 || end > 1 << 32 {
        return Err(LoadError::new(SHAPE, "names addresses that are not there"));
    }
    // Batches search the first line for addresses that are answered.
    if tables.lines.is_empty() {
        return Err(LoadError::new(C::NAME, "is empty"));
    }
    let entries = shape.entries as usize;
    let mut taken = vec![false; tables.words.len()];
    taken[..=entries].fill(true);
    let sound = tables
        .long
        .iter()
        .flat_map(|long| (0..long.blocks()).map(|block| long.is_sound(block, hop_count)));
    let sound = sound.collect();
    let mut check = Check { tables: &tables, hop_count, sound, taken, left: Vec::new() };
    for entry in 0..=entries {
        let seen = u64::MAX << (32 + shape.shift);
        // Any address may lie outside of the root.
        let (key, seen) = shape.key(entry).map_or((0, 0), |key| (key, seen));
        check.left.push(Visited { place: entry, key, seen });
        while let Some(reached) = check.left.pop() {
            check.word(reached)?;
        }
    }
    Ok(tables)
}

/// A word, and the address bits of `key`, where `seen` is set, that lead to it.
struct Visited {
    place: usize,
    key: u64,
    seen: u64,
}

struct Check<'a, C: Code> {
    tables: &'a Tables<C>,
    hop_count: u32,
    /// For each block of [`Long`] whether its codes are those of hops.
    sound: Vec<bool>,
    /// The words of the root and of tables seen so far.
    taken: Vec<bool>,
    /// The words to be checked.
    left: Vec<Visited>,
}

impl<C: Code> Check<'_, C> {
    fn word(&mut self, Visited { place, key, seen }: Visited) -> Result<(), LoadError> {
        match Entry::of(self.tables.words[place]) {
            Entry::Table { base, bits, shift } => {
                match self.taken.get_mut(base..base + (1 << bits)) {
                    Some(taken) if base > place && taken.iter().all(|taken| !taken) => {
                        taken.fill(true);
                    }
                    _ => return Err(LoadError::new(WORDS, "names what is not there")),
                }
                let mask = ((1u64 << bits) - 1) << shift;
                for i in 0..1 << bits {
                    let index = (i as u64) << shift;
                    // Not beyond the top bit, and none that the bits seen exclude.
                    if index >> shift == i as u64 && (index ^ key) & mask & seen == 0 {
                        let (key, seen) = (key | index, seen | mask);
                        self.left.push(Visited { place: base + i, key, seen });
                    }
                }
                Ok(())
            }
            Entry::Line(number) => self.line(number, key, seen),
            Entry::Code(code) if self.is_code(code) => Ok(()),
            Entry::Code(_) => Err(LoadError::new(WORDS, "names a hop beyond the hop count")),
        }
    }

    /// Checks the codes of the prefixes that may cover such an address.
    fn line(&self, number: usize, key: u64, seen: u64) -> Result<(), LoadError> {
        let Some(line) = self.tables.lines.get(number) else {
            return Err(LoadError::new(WORDS, "names what is not there"));
        };
        let codes = C::codes(line);
        let mut found =
            line[..C::ITEMS].iter().zip(codes).filter(|(word, _)| may_cover(**word, key, seen));
        let is_code = |code: C| self.is_code(code.into());
        if found.all(|(_, &code)| is_code(code)) && is_code(codes[C::ITEMS]) {
            Ok(())
        } else {
            Err(LoadError::new(C::NAME, "names a hop beyond the hop count"))
        }
    }

    fn is_code(&self, code: u32) -> bool {
        match code.checked_sub(self.tables.shape.blocks_from) {
            Some(block) => self.sound.get(block as usize) == Some(&true),
            None => code <= self.hop_count,
        }
    }
}
