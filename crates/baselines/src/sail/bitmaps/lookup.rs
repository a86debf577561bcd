use fibula_core::Hop;

use super::{Bitmaps, CHUNK, Levels};
use crate::sail::hop;

/// The bitmaps from level 24 up: the first set bit is the longest match of up to 24 bits. At level 24, a longer match
/// may exist.
#[inline]
pub(super) fn lookup<L: Levels>(tables: &Bitmaps<L>, addr: u32) -> Hop {
    let node = (addr >> 8) as usize;
    let place = L::start(24) + node;
    if bit(&tables.b, place) {
        let chunk = usize::from(tables.c24[node]);
        if chunk != 0 {
            let code = tables.n32[(chunk - 1) * CHUNK + (addr & 0xff) as usize];
            if code != 0 {
                return hop(code);
            }
        }
        let code = tables.n[place];
        if code != 0 {
            return hop(code);
        }
    }
    for &level in L::LEVELS.iter().rev().skip(1) {
        // In 64 bits: level 0 shifts the whole address out.
        let place = L::start(level) + (u64::from(addr) >> (32 - level)) as usize;
        if bit(&tables.b, place) {
            return hop(tables.n[place]);
        }
    }
    Hop::NONE
}

#[inline(always)]
fn bit(bitmaps: &[u64], place: usize) -> bool {
    bitmaps[place / 64] >> (place % 64) & 1 != 0
}
