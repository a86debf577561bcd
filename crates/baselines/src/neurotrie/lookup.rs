use fibula_core::{Addr, Hop};

use super::{Tables, node_parts};
use crate::common::{Search, bits};

impl<A: Addr> Search<A> for Tables {
    #[inline(always)]
    fn search(&self, addr: A) -> Hop {
        lookup(self, addr, || {})
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
