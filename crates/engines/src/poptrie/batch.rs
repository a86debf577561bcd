//! Many lookups: the paper's loop, and the levels of a block one after the other.
//!
//! Measured on Zen 4 with 900,000 IPv4 prefixes, addresses of random prefixes, in Mlps:
//! - The loop 155. It depends on code that keeps lookups apart: one form of the same loop had a byte
//!   register that the compiler reused, and so each lookup waited for the one before: 14.
//! - By level, with the direct table read by gathers: 188. A branch tests whether a slot has a child. It is seldom
//!   mispredicted, because most lookups end at the same level; computing both child and leaf, without a branch: 143.
//! - Nodes are prefetched a pass ahead, both lines of those that lie across two, and leaves likewise: 205, against 187
//!   without, in a bench of the kernel alone. Into which cache makes no difference.
//! - The limit is then the number of instructions, some 45 a lookup: with all keys in L1 it is no more than a tenth
//!   faster. The first level with constant shifts, slots not masked before shifts that look at six bits only, leaves
//!   counted from 1 and lanes without checks: 225, against 195. Stages that overlap (an answer, a node and a direct
//!   entry at a time, as `runmap` has them) have no fewer instructions and lose the vectors of the first pass: 178.

use fibula_core::{Addr, Hop};
use fibula_simd::{Kernel, Simd, prefetch_read_l2};

use super::Tables;
use super::node::{LEAF, Node, STRIDE, child, children_up_to, direct_index, leaf_from_one, slot};
use crate::common::{Value, Values, hop};

/// How a batch is taken: the paper's loop, or by levels.
pub(super) fn lookup_batch<A: Addr>(
    tables: &Tables,
    level: fibula_simd::Level,
    by_level: bool,
    addrs: &[A],
    hops: &mut [Hop],
) {
    match (&tables.leaves, by_level) {
        (Values::Narrow(leaves), false) => {
            level.run(Plain { search: TrieSearch::new(tables, leaves), addrs, hops });
        }
        (Values::Wide(leaves), false) => {
            level.run(Plain { search: TrieSearch::new(tables, leaves), addrs, hops });
        }
        (Values::Narrow(leaves), true) => {
            level.run(ByLevel { search: TrieSearch::new(tables, leaves), addrs, hops });
        }
        (Values::Wide(leaves), true) => {
            level.run(ByLevel { search: TrieSearch::new(tables, leaves), addrs, hops });
        }
    }
}

/// The tables, as the loops keep them in registers.
#[derive(Clone, Copy)]
struct TrieSearch<'a, V> {
    s: u32,
    direct: &'a [u32],
    nodes: &'a [Node],
    leaves: &'a [V],
}

impl<'a, V: Value> TrieSearch<'a, V> {
    fn new(tables: &'a Tables, leaves: &'a [V]) -> Self {
        Self { s: tables.s, direct: &tables.direct, nodes: &tables.nodes, leaves }
    }

    #[inline(always)]
    fn index<A: Addr>(&self, addr: A) -> usize {
        direct_index(addr, 64 - self.s)
    }

    #[inline(always)]
    fn direct<A: Addr>(&self, addr: A) -> u32 {
        // SAFETY: the direct table has 2^s entries, the index is the first s bits of an address.
        unsafe { *self.direct.get_unchecked(self.index(addr)) }
    }

    #[inline(always)]
    fn node(&self, index: usize) -> &Node {
        // SAFETY: only direct entries and nodes name nodes, and those are there: invariants of the
        // module.
        unsafe { self.nodes.get_unchecked(index) }
    }

    /// Prefetches a node. Every fourth lies across two lines.
    #[inline(always)]
    fn prefetch_node(&self, index: u32) {
        let words = self.nodes.as_flattened();
        prefetch_read_l2(words, index as usize * 3);
        prefetch_read_l2(words, index as usize * 3 + 2);
    }

    #[inline(always)]
    fn answer(&self, leaf_from_one: u32) -> Hop {
        // SAFETY: the leaf of a node's slot that has no child is there: invariant of the module.
        hop(unsafe { *self.leaves.as_ptr().add(leaf_from_one as usize).sub(1) }.into())
    }
}

/// The paper's loop: an address after the other.
struct Plain<'a, A, V> {
    search: TrieSearch<'a, V>,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: Addr, V: Value> Kernel for Plain<'_, A, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Self { search, addrs, hops } = self;
        for (&addr, hop) in addrs.iter().zip(hops) {
            *hop = one(search, addr);
        }
    }
}

#[inline(always)]
fn one<A: Addr, V: Value>(search: TrieSearch<'_, V>, addr: A) -> Hop {
    let entry = search.direct(addr);
    if entry & LEAF != 0 {
        return hop(entry & !LEAF);
    }
    let mut node = search.node(entry as usize);
    let mut at = search.s;
    loop {
        let slot = slot(addr, at);
        let (is_child, count) = children_up_to(node, slot);
        if !is_child {
            return search.answer(leaf_from_one(node, slot));
        }
        node = search.node(child(node, count));
        at += STRIDE;
    }
}

/// Level by level.
struct ByLevel<'a, A, V> {
    search: TrieSearch<'a, V>,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: Addr, V: Value> Kernel for ByLevel<'_, A, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        match self.search.s {
            18 if A::BITS == 32 => self.levels_from::<S>(18),
            s => self.levels_from::<S>(s),
        }
    }
}

impl<A: Addr, V: Value> ByLevel<'_, A, V> {
    /// A constant s makes the shifts of the first level constants.
    #[inline(always)]
    fn levels_from<S: Simd>(self, s: u32) {
        let Self { search, addrs, hops } = self;
        let search = TrieSearch { s, ..search };
        let mut lanes = Lanes::new();
        for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
            lanes.direct::<A, V, S>(search, addrs, hops);
            lanes.descend(search, addrs);
            lanes.answer(search, hops);
        }
    }
}

/// Lookups that go down together.
const BLOCK: usize = 256;
/// Vectors are stored whole, beyond the last lane in use.
const ROOM: usize = BLOCK + 16;

/// The lookups of a block.
struct Lanes {
    /// How many the direct table does not answer, and their places in the block.
    begun: usize,
    begun_places: [u32; ROOM],
    /// The places of those that are on their way down.
    places: [u32; ROOM],
    /// The nodes that they have come to.
    nodes: [u32; ROOM],
    /// By place, the leaf that the lookup has come to.
    leaves: [u32; BLOCK],
}

impl Lanes {
    fn new() -> Self {
        Self {
            begun: 0,
            begun_places: [0; ROOM],
            places: [0; ROOM],
            nodes: [0; ROOM],
            leaves: [0; BLOCK],
        }
    }

    /// Answers the lookups that end in the direct table, and starts the others.
    #[inline(always)]
    fn direct<A: Addr, V: Value, S: Simd>(
        &mut self,
        search: TrieSearch<'_, V>,
        addrs: &[A],
        hops: &mut [Hop],
    ) {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "no other form"))]
        let (mut done, mut count) = (0, 0);
        #[cfg(target_arch = "x86_64")]
        if A::BITS == 32 && S::ISA == fibula_simd::Isa::Avx512 {
            // SAFETY: a value of a `Simd` type proves that the machine has its instruction set, here
            // AVX-512 with POPCNT; addresses of 32 bits are `u32`, as the trait is sealed; the direct
            // table has 2^s entries; a block has at most `BLOCK` addresses.
            (done, count) = unsafe {
                let addrs = core::slice::from_raw_parts(addrs.as_ptr().cast(), addrs.len());
                avx512::direct(self, search.direct, search.s, addrs, hops)
            };
        }
        for (i, (&addr, to)) in addrs.iter().zip(hops).enumerate().skip(done) {
            let entry = search.direct(addr);
            *to = hop(entry & !LEAF);
            // Written in any case, kept if the count moves on.
            self.places[count % BLOCK] = i as u32;
            self.nodes[count % BLOCK] = entry;
            count += usize::from(entry & LEAF == 0);
        }
        self.begun = count;
        self.begun_places = self.places;
    }

    /// Descends until all lookups have reached a leaf.
    #[inline(always)]
    fn descend<A: Addr, V: Value>(&mut self, search: TrieSearch<'_, V>, addrs: &[A]) {
        let (mut going, mut at) = (self.level(search, addrs, self.begun, search.s), search.s);
        while going > 0 {
            at += STRIDE;
            going = self.level(search, addrs, going, at);
        }
    }

    /// Takes the first `going` lookups a level down; returns how many go on.
    #[inline(always)]
    fn level<A: Addr, V: Value>(
        &mut self,
        search: TrieSearch<'_, V>,
        addrs: &[A],
        going: usize,
        at: u32,
    ) -> usize {
        for &node in &self.nodes[..going] {
            search.prefetch_node(node);
        }
        let mut left = 0;
        for i in 0..going {
            // SAFETY: no more lookups go on than have begun, and those are no more than `BLOCK`.
            let (place, node) =
                unsafe { (*self.places.get_unchecked(i), *self.nodes.get_unchecked(i)) };
            // SAFETY: places are below the length of the block, and so of `addrs`.
            let addr = unsafe { *addrs.get_unchecked(place as usize) };
            let (node, slot) = (search.node(node as usize), slot(addr, at));
            let (is_child, count) = children_up_to(node, slot);
            if is_child {
                self.places[left % BLOCK] = place;
                self.nodes[left % BLOCK] = child(node, count) as u32;
                left += 1;
            } else {
                let leaf = leaf_from_one(node, slot);
                prefetch_read_l2(search.leaves, (leaf as usize).wrapping_sub(1));
                // SAFETY: places are below the length of the block.
                *unsafe { self.leaves.get_unchecked_mut(place as usize) } = leaf;
            }
        }
        left
    }

    #[inline(always)]
    fn answer<V: Value>(&self, search: TrieSearch<'_, V>, hops: &mut [Hop]) {
        for &place in &self.begun_places[..self.begun] {
            // SAFETY: places are below the length of the block.
            let leaf = *unsafe { self.leaves.get_unchecked(place as usize) } as usize;
            // SAFETY: the leaf of a node's slot that has no child is there: invariant of the module.
            // Volatile, or the compiler would make vectors of the answers and scatter them, which
            // takes longer than the lookups.
            let code = unsafe { search.leaves.as_ptr().add(leaf).sub(1).read_volatile() };
            // SAFETY: places are below the length of the block, and so of `hops`.
            *unsafe { hops.get_unchecked_mut(place as usize) } = hop(code.into());
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use core::arch::x86_64::*;

    use fibula_core::Hop;

    use super::super::node::LEAF;
    use super::{BLOCK, Lanes, ROOM};

    /// Lanes of a vector.
    const WIDTH: usize = 16;
    const _: () = assert!(ROOM >= BLOCK + WIDTH);

    /// As [`Lanes::direct`], for whole vectors of addresses; returns how many addresses those are, and
    /// how many lookups have begun.
    ///
    /// # Safety
    /// The direct table has 2^s entries, and there are at most `BLOCK` addresses.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,popcnt")]
    pub(super) unsafe fn direct(
        lanes: &mut Lanes,
        direct: &[u32],
        s: u32,
        addrs: &[u32],
        hops: &mut [Hop],
    ) -> (usize, usize) {
        let shift = _mm_cvtsi32_si128((32 - s).cast_signed());
        let mut place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let (places, nodes) = (lanes.places.as_mut_ptr(), lanes.nodes.as_mut_ptr());
        let (addrs, _) = addrs.as_chunks::<WIDTH>();
        let (hops, _) = hops.as_chunks_mut::<WIDTH>();
        let mut count = 0;
        for (addrs, hops) in addrs.iter().zip(hops) {
            // SAFETY: sixteen addresses are 64 bytes, and so are sixteen hops; an index is the first s
            // bits of an address, and the table has 2^s entries; no more lookups have begun than there
            // are addresses before these, and the arrays have room for a vector beyond `BLOCK`.
            unsafe {
                let addr = _mm512_loadu_si512(addrs.as_ptr().cast());
                let index = _mm512_srl_epi32(addr, shift);
                let entry = _mm512_i32gather_epi32::<4>(index, direct.as_ptr().cast());
                let code = _mm512_and_si512(entry, splat(!LEAF));
                let hop = _mm512_sub_epi32(code, splat(1));
                _mm512_storeu_si512(hops.as_mut_ptr().cast(), hop);
                let begins = !_mm512_movepi32_mask(entry);
                let beginners = _mm512_maskz_compress_epi32(begins, place);
                _mm512_storeu_si512(places.add(count).cast(), beginners);
                let entries = _mm512_maskz_compress_epi32(begins, entry);
                _mm512_storeu_si512(nodes.add(count).cast(), entries);
                count += begins.count_ones() as usize;
            }
            place = _mm512_add_epi32(place, splat(WIDTH as u32));
        }
        (addrs.as_flattened().len(), count)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(value: u32) -> __m512i {
        _mm512_set1_epi32(value.cast_signed())
    }
}
