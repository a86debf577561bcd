use core::marker::PhantomData;

use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::{Bitmaps, CHUNK, Levels, MOST, name};
use fibula_engines::common::table;

/// Loads stored tables. Checks everything that lookups rely on: the lengths, the chunks that `C_24` names, and the
/// codes. Whether the bits are those of the hops is not: a wrong bit gives a wrong answer, no harm.
pub(super) fn load<L: Levels>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Bitmaps<L>, LoadError> {
    let b: Table<u64> = table(tables, name::B)?;
    let n: Table<u16> = table(tables, name::N)?;
    let c24: Table<u16> = table(tables, name::C24)?;
    let n32: Table<u16> = table(tables, name::N32)?;
    let chunks = n32.len() / CHUNK;
    for (table, whole) in [
        (name::B, b.len() == L::PLACES / 64),
        (name::N, n.len() == L::PLACES),
        (name::C24, c24.len() == 1 << 24),
        (name::N32, n32.len().is_multiple_of(CHUNK) && chunks <= MOST),
    ] {
        if !whole {
            return Err(LoadError::new(table, "has not the length that it must have"));
        }
    }
    for (table, codes) in [(name::N, &n), (name::N32, &n32)] {
        if codes.iter().max().is_some_and(|&code| u32::from(code) > hop_count) {
            return Err(LoadError::new(table, "a hop is out of range"));
        }
    }
    let free = free(&c24, chunks)?;
    Ok(Bitmaps { b, n, c24, n32, free, levels: PhantomData })
}

/// The chunks that `C_24` does not name; an error if it names one twice or one that is not there.
fn free(c24: &[u16], chunks: usize) -> Result<Vec<u16>, LoadError> {
    let mut is_free = vec![true; chunks];
    for &chunk in c24.iter().filter(|&&chunk| chunk != 0) {
        match is_free.get_mut(usize::from(chunk) - 1) {
            Some(is_free) if *is_free => *is_free = false,
            Some(_) => return Err(LoadError::new(name::C24, "names a chunk twice")),
            None => return Err(LoadError::new(name::C24, "names a chunk that is not there")),
        }
    }
    let free = is_free.iter().zip(1..).filter(|(is_free, _)| **is_free);
    Ok(free.map(|(_, chunk)| chunk).collect())
}
