use fibula_core::{LoadError, TableSource};

use super::update::unnamed;
use super::{Entry, Free, SailL, name};
use fibula_engines::common::table;

/// Stored tables. An entry is a chunk only if there is that chunk, so none can lead out of bounds; it remains to check
/// the sizes, and that all other entries are hops of the table.
pub(super) fn load<E: Entry>(
    tables: &dyn TableSource,
    hop_count: u32,
    staged: bool,
) -> Result<SailL<E>, LoadError> {
    let mut loaded: SailL<E> = SailL {
        bcn16: table(tables, name::BCN16)?,
        bcn24: table(tables, name::BCN24)?,
        n32: table(tables, name::N32)?,
        free: Free::default(),
        staged,
    };
    for (name, chunks) in [(name::BCN24, loaded.bcn24.len()), (name::N32, loaded.n32.len())] {
        if chunks > E::MAX as usize {
            return Err(LoadError::new(name, "has more chunks than entries can name"));
        }
    }
    check_level_16(&loaded.bcn16, loaded.bcn24.len(), hop_count)?;
    check(name::BCN24, loaded.bcn24.as_flattened(), loaded.n32.len(), hop_count)?;
    check(name::N32, loaded.n32.as_flattened(), 0, hop_count)?;
    loaded.free = Free {
        level24: unnamed(&loaded.bcn16, loaded.bcn24.len()),
        level32: unnamed(loaded.bcn24.as_flattened(), loaded.n32.len()),
    };
    Ok(loaded)
}

/// The array of level 16, whole, and entry by entry.
pub(super) fn check_level_16<E: Entry>(
    bcn16: &[E],
    chunks: usize,
    hop_count: u32,
) -> Result<(), LoadError> {
    if bcn16.len() != 1 << 16 {
        return Err(LoadError::new(name::BCN16, "has not 2^16 entries"));
    }
    check(name::BCN16, bcn16, chunks, hop_count)
}

/// Each entry names a chunk, or a hop of the table.
pub(super) fn check<E: Entry>(
    name: &'static str,
    array: &[E],
    chunks: usize,
    hop_count: u32,
) -> Result<(), LoadError> {
    if array.iter().all(|entry| entry.chunk(chunks) < chunks || (*entry).into() <= hop_count) {
        Ok(())
    } else {
        Err(LoadError::new(name, "names a chunk that is not there, or a hop out of range"))
    }
}
