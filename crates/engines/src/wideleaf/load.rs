use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::deep::Deep;
use super::leaf::{Leaf, NO_KEY};
use super::word::{Entry, LINES_MAX};
use super::{GRAINS, LEVELS, ROOT_BITS, SHAPE, Tables, WORDS};
use crate::common::table;

/// Places of words are counted in 31 bits.
const WORDS_MAX: usize = 1 << 31;

/// The stored tables, once every entry that a lookup can reach has been looked at.
///
/// No part of a table may belong to another one: so they are built, and so the check is linear even
/// for a file made to be slow. What nobody names is not looked at.
pub(super) fn load<L: Leaf>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<L>, LoadError> {
    let shape: Table<u32> = table(tables, SHAPE)?;
    let &[grain] = &shape[..] else {
        return Err(LoadError::new(SHAPE, "is not one number"));
    };
    if !GRAINS.contains(&grain) {
        return Err(LoadError::new(SHAPE, "is of no known grain"));
    }
    let tables = Tables::<L>::new(
        table(tables, WORDS)?,
        table(tables, L::NAME)?,
        Deep::load(tables, hop_count)?,
        grain,
    );
    if tables.lines.len() > LINES_MAX || tables.words.len() > WORDS_MAX {
        return Err(LoadError::new(WORDS, "is larger than entries can name"));
    }
    // What searches of no line go through.
    if tables.lines.first() != Some(&[NO_KEY; 16]) {
        return Err(LoadError::new(L::NAME, "the first line is not empty"));
    }
    if tables.words.len() < 1 << ROOT_BITS {
        return Err(LoadError::new(WORDS, "is shorter than the root"));
    }
    let grains = tables.words.len() >> grain;
    let mut check = Check { tables: &tables, hop_count, taken: vec![false; grains] };
    check.taken[..1 << (ROOT_BITS - grain)].fill(true);
    for &word in &tables.words[..1 << ROOT_BITS] {
        check.entry(word, LEVELS)?;
    }
    Ok(tables)
}

struct Check<'a, L: Leaf> {
    tables: &'a Tables<L>,
    hop_count: u32,
    /// The grains of words that a table has.
    taken: Vec<bool>,
}

impl<L: Leaf> Check<'_, L> {
    fn entry(&mut self, word: u32, levels: usize) -> Result<(), LoadError> {
        match Entry::of(word) {
            Entry::Constant(code) => self.code(WORDS, code),
            Entry::Leaf(line) => self.leaf(line),
            Entry::Node(line) => {
                let keys = self.keys(line, 16)?;
                (line + 1..=line + 1 + keys).try_for_each(|leaf| self.leaf(leaf))
            }
            Entry::Table { base, down, .. } => {
                let len = 1usize << (32 - down).min(31);
                let grains = len.div_ceil(1 << self.tables.grain);
                let taken = self.taken.get_mut(base..base + grains);
                match taken {
                    Some(taken) if levels > 0 && taken.iter().all(|taken| !taken) => {
                        taken.fill(true);
                    }
                    _ => return Err(LoadError::new(WORDS, "a table is out of place")),
                }
                let start = base << self.tables.grain;
                for i in start..start + len {
                    self.entry(self.tables.words[i], levels - 1)?;
                }
                Ok(())
            }
        }
    }

    fn leaf(&self, line: usize) -> Result<(), LoadError> {
        let keys = self.keys(line, L::KEYS)?;
        let codes = L::codes(&self.tables.lines[line]);
        codes[..=keys].iter().try_for_each(|&code| self.code(L::NAME, code.into()))
    }

    /// How many keys the line has, of at most `places`: no rank in it is larger.
    fn keys(&self, line: usize, places: usize) -> Result<usize, LoadError> {
        let Some(line) = self.tables.lines.get(line) else {
            return Err(LoadError::new(WORDS, "names a line that is not there"));
        };
        let keys = &line[..places];
        if !keys.is_sorted() {
            return Err(LoadError::new(L::NAME, "the keys of a line are not sorted"));
        }
        Ok(keys.partition_point(|&key| key != NO_KEY))
    }

    fn code(&self, table: &'static str, code: u32) -> Result<(), LoadError> {
        // A constant may be larger than the codes of narrow leaves.
        let block = L::TOP.checked_sub(code).map(|block| block as usize);
        let sound =
            block.is_some_and(|block| code <= self.hop_count || block < self.tables.deep.blocks());
        if sound { Ok(()) } else { Err(LoadError::new(table, "names a hop beyond the hop count")) }
    }
}
