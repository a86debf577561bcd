use fibula_core::{Addr, Hop};

use super::{CHUNK_WORDS, ROOT, ROOT_WORDS, STRIDE, Tables, Word};
use crate::common::{Search, bits};

impl<A: Addr> Search<A> for Tables {
    #[inline(always)]
    fn search(&self, addr: A) -> Hop {
        lookup(self, addr, || {})
    }
}

/// Descends the children, then reads the leaf; calls `touch` for each access to the tables.
#[inline(always)]
pub(super) fn lookup<A: Addr>(tables: &Tables, addr: A, mut touch: impl FnMut()) -> Hop {
    let (mut first, mut slot, mut at) = (0, bits(addr, 0, ROOT), ROOT);
    loop {
        touch();
        let word = tables.children[first + slot / 64];
        if !has(word, slot) || at == A::BITS.into() {
            break;
        }
        first = ROOT_WORDS + CHUNK_WORDS * place(word, slot);
        slot = bits(addr, at, STRIDE);
        at += STRIDE;
    }
    touch();
    let word = tables.leaves[first + slot / 64];
    if !has(word, slot) {
        return Hop::NONE;
    }
    touch();
    tables.hops.hop(place(word, slot))
}

#[inline(always)]
fn has([bits, _]: Word, slot: usize) -> bool {
    bits >> (slot % 64) & 1 != 0
}

/// The number of ones before the slot's bit.
#[inline(always)]
fn place([bits, before]: Word, slot: usize) -> usize {
    before as usize + (bits & ((1 << (slot % 64)) - 1)).count_ones() as usize
}
