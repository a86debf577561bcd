use std::marker::PhantomData;

use fibula_core::{LoadError, TableSource};

use super::line::Code;
use super::word::Entry;
use super::{SHAPE, Shape, Tables, WORDS};
use crate::common::{Long, table};

/// Loads the stored tables, and checks every word and every line. A table lies behind the word that names it, so that each
/// lookup ends.
pub(super) fn load<C: Code>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<C>, LoadError> {
    let shape = table::<Shape>(tables, SHAPE)?;
    let [shape] = *shape else { return Err(LoadError::new(SHAPE, "is not one shape")) };
    let (words, lines) = (table::<u32>(tables, WORDS)?, table(tables, C::NAME)?);
    let long = Long::load(tables, hop_count)?;
    if shape.shift >= 32 || shape.entries as usize >= words.len() {
        return Err(LoadError::new(SHAPE, "names root words that are not there"));
    }
    // Batches search the first line for addresses that are answered.
    if lines.is_empty() {
        return Err(LoadError::new(C::NAME, "is empty"));
    }
    let blocks = long.as_ref().map_or(0, Long::blocks) as u64;
    let is_code = |code: u32| {
        if code < shape.blocks_from {
            code <= hop_count
        } else {
            u64::from(code - shape.blocks_from) < blocks
        }
    };
    for (at, &word) in words.iter().enumerate() {
        let sound = match Entry::of(word) {
            Entry::Table { base, bits, .. } => base > at && base + (1 << bits) <= words.len(),
            Entry::Line(number) => number < lines.len(),
            Entry::Code(code) => is_code(code),
        };
        if !sound {
            return Err(LoadError::new(WORDS, "names what is not there"));
        }
    }
    for line in lines.iter() {
        if !C::codes(line)[..=C::ITEMS].iter().all(|&code| is_code(code.into())) {
            return Err(LoadError::new(C::NAME, "names a hop beyond the hop count"));
        }
    }
    Ok(Tables { words, lines, shape, long, codes: PhantomData })
}
