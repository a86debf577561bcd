use fibula_core::Hop;

use super::Tables;
use super::entry::Entry;
use crate::common::hop;

/// The paper's lookup: one load, and for blocks that longer routes divide a second one.
#[inline]
pub(super) fn lookup<E: Entry>(tables: &Tables<E>, addr: u32) -> Hop {
    let mut entry: u32 = tables.tbl24[(addr >> 8) as usize].into();
    if entry & E::CHUNK != 0 {
        let chunk = (entry & E::MAX) as usize;
        entry = tables.tbl_long[chunk << 8 | (addr & 0xff) as usize].into();
    }
    hop(entry)
}
