use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::entry::Entry;
use super::{BLOCKS, CHUNK_LEN, Tables};
use crate::common::table;

/// Stored tables, checked whole: every chunk named is there and nobody else's, and the hops of all
/// blocks and of all chunks that are named are known. The chunks that nobody names are the free ones.
pub(super) fn load<E: Entry>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Tables<E>, LoadError> {
    let tbl24: Table<E> = table(tables, E::TBL24)?;
    let tbl_long: Table<E> = table(tables, E::TBL_LONG)?;
    if tbl24.len() != BLOCKS {
        return Err(LoadError::new(E::TBL24, "has no entry for each block of 256 addresses"));
    }
    let (chunks, rest) = tbl_long.as_chunks::<CHUNK_LEN>();
    if !rest.is_empty() || chunks.len() > E::MAX as usize + 1 {
        return Err(LoadError::new(
            E::TBL_LONG,
            "does not consist of chunks that entries can name",
        ));
    }
    // Codes are hops plus one. Those of chunks have the top bit clear too, or they would exceed it.
    let top = hop_count.min(E::MAX);
    let mut owned = vec![false; chunks.len()];
    for entry in tbl24.iter().map(|&entry| entry.into()).filter(|&entry| entry > top) {
        let number = (entry & E::MAX) as usize;
        let chunk = chunks.get(number).filter(|_| entry & E::CHUNK != 0);
        let chunk = chunk
            .ok_or_else(|| LoadError::new(E::TBL24, "names a hop or a chunk that is not there"))?;
        if std::mem::replace(&mut owned[number], true) {
            return Err(LoadError::new(E::TBL24, "names a chunk twice"));
        }
        if chunk.iter().any(|&entry| entry.into() > top) {
            return Err(LoadError::new(E::TBL_LONG, "names a hop beyond the hop count"));
        }
    }
    let free = (0..).zip(owned).filter(|(_, owned)| !owned).map(|(chunk, _)| chunk).collect();
    Ok(Tables { tbl24, tbl_long, free })
}
