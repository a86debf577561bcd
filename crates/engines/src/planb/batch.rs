use fibula_core::Hop;
use fibula_simd::{Kernel, Simd, prefetch_read};

use super::{Line, Tree};
use crate::common::{Long, SearchAddr, SearchKey, Value, Values, hop};

// The form of the loops, and the measurements behind it (Zen 4, 3.5 GHz, 220,103 IPv6 prefixes, 131,884 intervals, 2^22
// keys of random prefixes, Mlps):
//
// - A block of lookups goes down level by level. A visit takes 18 cycles from cache line to child
//   but only 1.6 of the core's throughput, so some dozen must be in flight. Blocks of 16 / 32 / 64 /
//   128: 164 / 185 / 179 / 175.
// - A batch of 128 and more goes down as a whole. Between two levels its places have long been stored, and half of its
//   keys are prefetched at the leaves rather than all of them at the root: 1.13 / 1.02 / 1.23 times as fast at 256
//   (RND / PFX / ZIPF, 256 hops), 1.08 / 1.07 / 1.23 at 128, 0.98 / 0.97 / 1.08 at 64.
// - The places of a block lie in a small array between the levels. Keeping them and the keys in
//   registers saves a third of the instructions, but the compiler then spills, or packs the places
//   into vectors (SLP) only to unpack them again: 90 to 170, different with every change nearby.
//   Loops over an array it leaves scalar.
// - Four lookups an iteration, against one: 197, 185. The first two levels in one pass, which are a
//   dozen cache lines: 197, against 190.
// - Each visit prefetches the line of the next one: a load that waits for L3 would block the reorder buffer, a prefetch
//   does not. 160 to 197.
// - Keys are prefetched a page ahead: 197, against 130 without. The core's own prefetching stops at each page, and a
//   batch of 256 IPv6 keys is one.

/// Lookups an iteration.
const WIDTH: usize = 4;
/// Iterations that go down the tree together.
const BLOCK: usize = 8;
/// The same in long batches.
const WHOLE: usize = 64;
/// Lookups of a batch that is long.
const WHOLE_MIN: usize = 128;
/// How far ahead keys are prefetched. Batches are most often parts of a longer array, so prefetching does not stop at
/// the batch's end; a prefetch beyond the array is harmless.
const AHEAD: usize = 4096;

pub(super) fn lookup_batch<A: SearchAddr, const LINES: usize>(
    tree: &Tree<A, LINES>,
    addrs: &[A],
    hops: &mut [Hop],
) {
    match &tree.values {
        Values::Narrow(values) => look_up(tree, values, addrs, hops),
        Values::Wide(values) => look_up(tree, values, addrs, hops),
    }
}

/// Two functions: short batches take a tenth longer in one that has room for the places of long ones.
fn look_up<A: SearchAddr, V: Value, const LINES: usize>(
    tree: &Tree<A, LINES>,
    values: &[V],
    addrs: &[A],
    hops: &mut [Hop],
) {
    if addrs.len() < WHOLE_MIN {
        tree.level.run(Batch::<_, _, BLOCK, LINES> { tree, values, addrs, hops });
    } else {
        tree.level.run(Batch::<_, _, WHOLE, LINES> { tree, values, addrs, hops });
    }
}

/// A batch in blocks of `N` iterations.
struct Batch<'a, A: SearchAddr, V, const N: usize, const LINES: usize> {
    tree: &'a Tree<A, LINES>,
    values: &'a [V],
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: SearchAddr, V: Value, const N: usize, const LINES: usize> Kernel
    for Batch<'_, A, V, N, LINES>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let search = BlockDescent { simd, tree: self.tree, values: self.values };
        let (addrs, addrs_rest) = self.addrs.as_chunks::<WIDTH>();
        let (hops, hops_rest) = self.hops.as_chunks_mut::<WIDTH>();
        let (blocks, addrs) = addrs.as_chunks::<N>();
        let (hop_blocks, hops) = hops.as_chunks_mut::<N>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            search.block::<N>(addrs, hops);
        }
        if !addrs.is_empty() {
            search.block::<N>(addrs, hops);
        }
        if !addrs_rest.is_empty() {
            let (mut addrs, mut hops) = ([A::MIN; WIDTH], [Hop::NONE; WIDTH]);
            addrs[..addrs_rest.len()].copy_from_slice(addrs_rest);
            search.block::<N>(&[addrs], core::slice::from_mut(&mut hops));
            hops_rest.copy_from_slice(&hops[..hops_rest.len()]);
        }
    }
}

/// The places of a block: the first key of each lookup's node, counted in keys from the first node of its level. They
/// begin with a cache line: a store across two of them delays the loads behind it, by a quarter in batches of 8.
#[repr(align(64))]
struct NodeOffsets<const N: usize>([[u32; WIDTH]; N]);

struct BlockDescent<'a, A: SearchAddr, V, S, const LINES: usize> {
    simd: S,
    tree: &'a Tree<A, LINES>,
    values: &'a [V],
}

impl<A: SearchAddr, V: Value, S: Simd, const LINES: usize> BlockDescent<'_, A, V, S, LINES> {
    #[inline(always)]
    fn block<const N: usize>(&self, addrs: &[[A; WIDTH]], hops: &mut [[Hop; WIDTH]]) {
        let mut places = NodeOffsets([[0; WIDTH]; N]);
        let mut bases = self.tree.shape.bases();
        match bases {
            [] | [_] => {}
            [_, _] => {
                self.descend::<N, 1, true>(bases, addrs, &mut places);
                bases = &bases[1..];
            }
            _ => {
                self.descend::<N, 2, true>(bases, addrs, &mut places);
                bases = &bases[2..];
            }
        }
        while bases.len() > 1 {
            self.descend::<N, 1, false>(bases, addrs, &mut places);
            bases = &bases[1..];
        }
        self.answer(bases, addrs, &places, hops);
        if let Some(long) = &self.tree.long {
            resolve::<A, V>(long, addrs, hops);
        }
    }

    /// Moves the places down `LEVELS` levels, of which the first is that of `bases[0]`.
    #[inline(always)]
    fn descend<const N: usize, const LEVELS: usize, const ROOT: bool>(
        &self,
        bases: &[usize],
        addrs: &[[A; WIDTH]],
        places: &mut NodeOffsets<N>,
    ) {
        let mut nodes = [self.nodes(bases[0]); LEVELS];
        for (nodes, &base) in nodes.iter_mut().zip(bases) {
            *nodes = self.nodes(base);
        }
        let below = self.nodes(bases[LEVELS]);
        for (i, (addrs, places)) in addrs.iter().zip(&mut places.0).enumerate() {
            if ROOT && (N <= BLOCK || i % 2 == 0) {
                prefetch_read(addrs, AHEAD / size_of::<A>());
            }
            for (addr, place) in addrs.iter().zip(places) {
                let key = addr.high().splat(self.simd);
                let mut at = if ROOT { 0 } else { *place };
                for nodes in nodes {
                    let lanes = Tree::<A, LINES>::LANES as u32;
                    at = at * (lanes + 1) + self.rank(nodes, at, key) * lanes;
                }
                for line in 0..LINES {
                    prefetch_read(below, at as usize + line * A::Key::LANES);
                }
                *place = at;
            }
        }
    }

    /// Reads the leaves at the places, and the answers of the intervals found there.
    #[inline(always)]
    fn answer<const N: usize>(
        &self,
        bases: &[usize],
        addrs: &[[A; WIDTH]],
        places: &NodeOffsets<N>,
        hops: &mut [[Hop; WIDTH]],
    ) {
        let leaves = self.nodes(bases[0]);
        for (i, ((addrs, places), hops)) in addrs.iter().zip(&places.0).zip(hops).enumerate() {
            if N > BLOCK && i % 2 == 1 {
                prefetch_read(addrs, AHEAD / size_of::<A>());
            }
            for ((addr, &at), to) in addrs.iter().zip(places).zip(hops) {
                let key = addr.high().splat(self.simd);
                let interval = at + self.rank(leaves, at, key);
                // SAFETY: a search ends at an interval (invariant of the module), and there are as
                // many values as intervals.
                let code = unsafe { *self.values.get_unchecked(interval as usize) };
                *to = hop(code.into());
            }
        }
    }

    /// The keys of the tree from this node on.
    #[inline(always)]
    fn nodes(&self, base: usize) -> &[A::Key] {
        bytemuck::cast_slice(&self.tree.keys[base * LINES..])
    }

    /// How many of the keys of the node at `at` are below the key.
    #[inline(always)]
    fn rank(&self, nodes: &[A::Key], at: u32, key: <A::Key as SearchKey>::Splat<S>) -> u32 {
        let node = nodes.as_ptr().wrapping_add(at as usize).cast::<[Line<A>; LINES]>();
        // SAFETY: a search stays among the nodes (invariant of the module), so this is one of them; `Line` is an array
        // of keys, with their alignment.
        let node = unsafe { &*node };
        let mut rank = 0;
        for line in node {
            rank += A::Key::rank(self.simd, line, key);
        }
        rank
    }
}

/// Replaces the answers that name a block of [`Long`] with those of the low bits.
#[inline(always)]
fn resolve<A: SearchAddr, V: Value>(long: &Long, addrs: &[[A; WIDTH]], hops: &mut [[Hop; WIDTH]]) {
    let blocks = long.blocks() as u32;
    let block = |hop: Hop| V::TOP.wrapping_sub(hop.to_bits().wrapping_add(1));
    for (addrs, hops) in addrs.iter().zip(hops) {
        // Looked at together, so that there is one branch, seldom taken.
        if hops.iter().fold(false, |any, &hop| any | (block(hop) < blocks)) {
            for (addr, hop) in addrs.iter().zip(hops) {
                let block = block(*hop);
                if block < blocks {
                    *hop = crate::common::hop(long.find(block as usize, addr.low()));
                }
            }
        }
    }
}
