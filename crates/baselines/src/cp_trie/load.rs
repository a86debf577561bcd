use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::{CHILDREN, CHUNK_WORDS, LEAVES, ROOT_WORDS, Tables, Word};
use fibula_engines::common::{Values, table};

/// Loads the stored tables, and checks in one pass over each that all counted children and leaves exist. The
/// bits of an address bound the depth of a lookup.
pub(super) fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Tables, LoadError> {
    let children: Table<Word> = table(tables, CHILDREN)?;
    let leaves: Table<Word> = table(tables, LEAVES)?;
    let hops = Values::load(tables, hop_count, 0)?;
    let chunks = children.len().checked_sub(ROOT_WORDS);
    let whole = chunks.is_some_and(|words| words.is_multiple_of(CHUNK_WORDS));
    let chunks = chunks.unwrap_or(0) / CHUNK_WORDS;
    if !whole || counted(&children) != Some(chunks as u64) {
        return Err(LoadError::new(CHILDREN, "does not count the nodes that are there"));
    }
    if leaves.len() != children.len() || counted(&leaves) != Some(hops.len() as u64) {
        return Err(LoadError::new(LEAVES, "does not count the hops that are there"));
    }
    Ok(Tables { children, leaves, hops })
}

/// The ones of all words, if each word's count is that of those before it.
fn counted(words: &[Word]) -> Option<u64> {
    words.iter().try_fold(0, |ones, &[bits, before]| {
        (before == ones).then(|| ones + u64::from(bits.count_ones()))
    })
}
