use fibula_core::{Addr, Hop};
use fibula_simd::{Kernel, Simd};

use super::{CHUNK_WORDS, ROOT, ROOT_WORDS, STRIDE, Tables, Word};
use crate::common::bits;

/// One lookup, as a [`Kernel`] so that the machine's instruction for counting ones is used.
pub(super) struct One<'a, A> {
    pub(super) tables: &'a Tables,
    pub(super) addr: A,
}

impl<A: Addr> Kernel for One<'_, A> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Hop {
        lookup(self.tables, self.addr, || {})
    }
}

/// Many, one after the other.
pub(super) struct Batch<'a, A> {
    pub(super) tables: &'a Tables,
    pub(super) addrs: &'a [A],
    pub(super) hops: &'a mut [Hop],
}

impl<A: Addr> Kernel for Batch<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for (hop, &addr) in self.hops.iter_mut().zip(self.addrs) {
            *hop = lookup(self.tables, addr, || {});
        }
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
