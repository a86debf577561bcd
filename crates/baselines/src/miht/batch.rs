//! Many lookups: all of a block a level down the tree, then all a node down their tries.
//!
//! In a search one load waits for the one before; in a block the loads of many searches overlap, and the data of the
//! next level are prefetched as soon as their place is known. With 900,000 generated IPv4 routes on Zen 4: 27 Mlps of
//! addresses in random prefixes, 25 of random ones, against 3.3 and 5.1 one after the other; with 200,000 of IPv6 20
//! and 31, against 6.1 and 15. Blocks of 64 and of 128 are alike.

use fibula_core::Hop;
use fibula_simd::{Kernel, Simd, prefetch_read};

use super::Miht;
use super::index::{Line, NO_TRIE};
use super::trie::{TrieAddr, hop, len, matches};

/// Lookups that go down together.
const BLOCK: usize = 64;

pub(super) fn lookup_batch<A: TrieAddr>(miht: &Miht<A>, addrs: &[A], hops: &mut [Hop]) {
    if miht.index.m <= 16 {
        miht.level.run(Interleaved::<A, 1> { miht, addrs, hops });
    } else {
        miht.level.run(Interleaved::<A, 2> { miht, addrs, hops });
    }
}

/// The kernel for nodes of `LINES` lines of keys.
struct Interleaved<'a, A: TrieAddr, const LINES: usize> {
    miht: &'a Miht<A>,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: TrieAddr, const LINES: usize> Kernel for Interleaved<'_, A, LINES> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { miht, addrs, hops } = self;
        let (lines, nodes) = (&miht.index.lines[..], &miht.tries.nodes[..]);
        for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
            let mut block =
                Block { addrs, hops, places: [0; BLOCK], nodes: [miht.index.root; BLOCK] };
            for _ in 1..miht.index.height {
                block.descend::<LINES, S>(simd, lines, miht.k);
            }
            let going = block.find::<LINES, S>(simd, lines, nodes, miht.k);
            block.walk(nodes, going, miht.k as u8);
            let going = block.keyless(miht.keyless);
            block.walk(nodes, going, 0);
        }
    }
}

/// The lookups of a block.
struct Block<'a, A> {
    addrs: &'a [A],
    /// The best matches so far.
    hops: &'a mut [Hop],
    /// Those that are on their way down a trie.
    places: [u32; BLOCK],
    /// The nodes that they have come to.
    nodes: [u32; BLOCK],
}

impl<A: TrieAddr> Block<'_, A> {
    /// From the internal nodes of a level to their children.
    #[inline(always)]
    fn descend<const LINES: usize, S: Simd>(&mut self, simd: S, lines: &[Line], k: u32) {
        for (addr, place) in self.addrs.iter().zip(&mut self.nodes) {
            let at = rank::<LINES, S>(simd, lines, *place, addr.key(k));
            *place = word::<LINES>(lines, *place, LINES, at);
            for line in 0..2 * LINES {
                prefetch_read(lines, *place as usize + line);
            }
        }
    }

    /// From the external nodes to the tries; returns how many lookups have one.
    #[inline(always)]
    fn find<const LINES: usize, S: Simd>(
        &mut self,
        simd: S,
        lines: &[Line],
        tries: &[A::Node],
        k: u32,
    ) -> usize {
        self.hops.fill(Hop::NONE);
        let mut going = 0;
        for (i, addr) in self.addrs.iter().enumerate() {
            let (place, key) = (self.nodes[i], addr.key(k));
            let at = rank::<LINES, S>(simd, lines, place, key);
            let trie = word::<LINES>(lines, place, LINES, at);
            let found = word::<LINES>(lines, place, 0, at) == key && trie != NO_TRIE;
            prefetch_read(tries, trie as usize);
            // Written in any case, kept if the count moves on; no more than have been read.
            self.places[going] = i as u32;
            self.nodes[going] = trie;
            going += usize::from(found);
        }
        going
    }

    /// Sets out for the trie of the keyless routes with all that have no match; returns how many.
    #[inline(always)]
    fn keyless(&mut self, root: u32) -> usize {
        if root == NO_TRIE {
            return 0;
        }
        let mut going = 0;
        for (i, hop) in self.hops.iter().enumerate() {
            self.places[going] = i as u32;
            going += usize::from(hop.is_none());
        }
        self.nodes[..going].fill(root);
        going
    }

    /// Descends with the first `going` lookups until all have reached the end of their tries, whose roots are at this
    /// level.
    #[inline(always)]
    fn walk(&mut self, tries: &[A::Node], mut going: usize, mut level: u8) {
        while going > 0 {
            let mut left = 0;
            for i in 0..going {
                let (place, node) = (self.places[i], self.nodes[i]);
                // SAFETY: places are those of the block's addresses.
                let addr = unsafe { *self.addrs.get_unchecked(place as usize) };
                // SAFETY: roots and children are places of nodes: invariant of the module.
                let node = unsafe { tries.get_unchecked(node as usize) };
                let info = A::info(node);
                let is_match = matches(node, addr);
                // SAFETY: as many hops as addresses.
                let best = unsafe { self.hops.get_unchecked_mut(place as usize) };
                *best = if is_match { hop(info) } else { *best };
                let is_longest = is_match & (len(info) > level);
                let child = A::children(node)[addr.side(level)];
                prefetch_read(tries, child as usize);
                self.places[left] = place;
                self.nodes[left] = child;
                left += usize::from(!is_longest & (child != NO_TRIE));
            }
            going = left;
            level += 1;
        }
    }
}

/// How many keys of a node are below the key.
#[inline(always)]
fn rank<const LINES: usize, S: Simd>(simd: S, lines: &[Line], place: u32, key: u32) -> usize {
    let key = simd.splat32(key);
    let mut rank = 0;
    for line in 0..LINES {
        // SAFETY: the root and the pointers of internal nodes are places of nodes, which have `LINES`
        // lines of keys and as many of pointers: invariant of the module.
        rank += simd.rank32(unsafe { lines.get_unchecked(place as usize + line) }, key) as usize;
    }
    rank
}

/// A word of a node, counted from one of its lines.
#[inline(always)]
fn word<const LINES: usize>(lines: &[Line], place: u32, line: usize, at: usize) -> u32 {
    // SAFETY: the node is there, as for `rank`; a rank is at most the number of the node's keys, which
    // is below m, and m is at most 16 for each line of keys.
    unsafe { *lines.as_flattened().get_unchecked(16 * (place as usize + line) + at) }
}
