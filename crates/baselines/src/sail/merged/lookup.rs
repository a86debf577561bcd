use fibula_core::Hop;

use super::{Entry, SailL};
use crate::sail::division::byte;

/// The paper's lookup: 16 bits of the address, and as long as the entry is a chunk, 8 more. An entry
/// that is not among the chunks is a code, so the check of the bounds is the question itself.
#[inline(always)]
pub(super) fn lookup<E: Entry>(tables: &SailL<E>, addr: u32) -> Hop {
    let mut entry = tables.bcn16[(addr >> 16) as usize];
    if let Some(chunk) = tables.bcn24.get(entry.chunk(tables.bcn24.len())) {
        entry = chunk[byte(addr >> 8)];
        if let Some(chunk) = tables.n32.get(entry.chunk(tables.n32.len())) {
            entry = chunk[byte(addr)];
        }
    }
    entry.hop()
}
