use fibula_core::{Addr, Hop};

use super::Tables;
use super::node::{
    INNER_MASK, NONE, PASSED, SPLIT_END, before, longest, read, read_inner, read_split,
};
use crate::common::{Search, bits, many};
use fibula_engines::common::hop;

/// One lookup; `touch` is called for each access to the tables.
#[inline]
pub(super) fn lookup<A: Addr>(tables: &Tables, addr: A, touch: impl FnMut()) -> Hop {
    match (tables.config.stride, tables.config.split) {
        (4, false) => whole::<A, 4>(tables, addr, touch),
        (5, false) => whole::<A, 5>(tables, addr, touch),
        (_, false) => whole::<A, 6>(tables, addr, touch),
        (4, true) => split::<A, 4>(tables, addr, touch),
        (5, true) => split::<A, 5>(tables, addr, touch),
        (_, true) => split::<A, 6>(tables, addr, touch),
    }
}

/// One lookup with the machine's instructions.
#[inline]
pub(super) fn one<A: Addr>(tables: &Tables, addr: A) -> Hop {
    let mut hop = [Hop::NONE];
    lookup_batch(tables, &[addr], &mut hop);
    hop[0]
}

/// Many lookups; the layout is selected once.
pub(super) fn lookup_batch<A: Addr>(tables: &Tables, addrs: &[A], hops: &mut [Hop]) {
    let level = tables.config.isa.level();
    match (tables.config.stride, tables.config.split) {
        (4, false) => many(level, &Of::<4, false>(tables), addrs, hops),
        (5, false) => many(level, &Of::<5, false>(tables), addrs, hops),
        (_, false) => many(level, &Of::<6, false>(tables), addrs, hops),
        (4, true) => many(level, &Of::<4, true>(tables), addrs, hops),
        (5, true) => many(level, &Of::<5, true>(tables), addrs, hops),
        (_, true) => many(level, &Of::<6, true>(tables), addrs, hops),
    }
}

/// Tables of a stride, split or not.
struct Of<'a, const K: u32, const SPLIT: bool>(&'a Tables);

impl<A: Addr, const K: u32, const SPLIT: bool> Search<A> for Of<'_, K, SPLIT> {
    #[inline(always)]
    fn search(&self, addr: A) -> Hop {
        if SPLIT { split::<A, K>(self.0, addr, || {}) } else { whole::<A, K>(self.0, addr, || {}) }
    }
}

/// Descends the nodes; the last result noted is the answer.
#[inline(always)]
fn whole<A: Addr, const K: u32>(tables: &Tables, addr: A, mut touch: impl FnMut()) -> Hop {
    let Tables { config, root, nodes, results, .. } = tables;
    let [first, code] = root[bits(addr, 0, config.root)];
    touch();
    let (mut number, mut best) = (first, None);
    let mut at = config.root;
    while number != NONE && at < A::BITS.into() {
        let node = read::<K>(nodes, number as usize);
        touch();
        let slot = bits(addr, at, K);
        if let Some(place) = longest(node.bits, K, slot) {
            best = Some(node.results as usize + before(node.bits, 1, place));
        }
        let place = 1 << K | slot as u32;
        // In an end node, the upper bits are routes.
        let has_child = node.bits >> place & !node.bits & 1 != 0;
        number =
            if has_child { node.child + before(node.bits, 1 << K, place) as u32 } else { NONE };
        at += K;
    }
    match best {
        Some(result) => {
            touch();
            results.hop(result)
        }
        None => hop(code),
    }
}

/// Descends the nodes without reading results, then reads one or two inner nodes.
#[inline(always)]
fn split<A: Addr, const K: u32>(tables: &Tables, addr: A, mut touch: impl FnMut()) -> Hop {
    let Tables { config, root, nodes, inner, results, .. } = tables;
    let [first, code] = root[bits(addr, 0, config.root)];
    touch();
    if first == NONE {
        return hop(code);
    }
    // The inner node of the last parent with a match, as marked in its child, and the slot in that parent.
    let mut passed = None;
    let mut at = config.root;
    let (mut external, mut child, mut word) = read_split::<K>(nodes, first as usize);
    let mut slot = bits(addr, at, K);
    touch();
    while word & SPLIT_END == 0 && external >> slot & 1 != 0 && at + K < A::BITS.into() {
        let number = child as usize + before(external, 0, slot as u32);
        let (own, own_slot) = (word & INNER_MASK, slot);
        (external, child, word) = read_split::<K>(nodes, number);
        touch();
        if word & PASSED != 0 {
            passed = Some((own, own_slot));
        }
        at += K;
        slot = bits(addr, at, K);
    }
    let upper = if word & SPLIT_END != 0 { external << (1 << K) | 1 } else { 0 };
    let mut found = |inner_node: u32, slot, upper| {
        if inner_node == INNER_MASK {
            return None;
        }
        let (internal, from) = read_inner::<K>(inner, inner_node as usize);
        touch();
        let bits = internal | upper;
        longest(bits, K, slot).map(|place| from as usize + before(bits, 1, place))
    };
    let result = found(word & INNER_MASK, slot, upper)
        .or_else(|| passed.and_then(|(inner_node, slot)| found(inner_node, slot, 0)));
    match result {
        Some(result) => {
            touch();
            results.hop(result)
        }
        None => hop(code),
    }
}
