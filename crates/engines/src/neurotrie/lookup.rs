use fibula_core::{Addr, Hop};
use fibula_simd::{Kernel, Simd};

use super::{Tables, node_parts};
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

/// Descends the nodes to a leaf; calls `touch` for each access to the tables.
#[inline(always)]
pub(super) fn lookup<A: Addr>(tables: &Tables, addr: A, mut touch: impl FnMut()) -> Hop {
    let (mut number, mut at) = (0, 0);
    loop {
        let (first, stride) = node_parts(tables.nodes[number]);
        let slot = bits(addr, at, stride);
        touch();
        let [vector, leafvec, bases] = tables.records[first + slot / 64];
        touch();
        let before = (1 << (slot % 64)) - 1;
        if vector >> (slot % 64) & 1 == 0 {
            let ones = (leafvec & (before << 1 | 1)).count_ones() as usize;
            touch();
            return tables.leaves.hop(bases as u32 as usize + ones - 1);
        }
        number = (bases >> 32) as usize + (vector & before).count_ones() as usize;
        at += stride;
    }
}
