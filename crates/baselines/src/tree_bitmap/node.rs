//! The layout of nodes, and how a slot is looked up in one.
//!
//! ```text
//!   stride  one node                                split: a node                        an inner node
//!   4       bits 0..32, child, results: 3 words     external, child, inner: 3            internal, results: 2
//!   5       bits 0..64, child, results: 4           external, child, inner: 3            internal, results: 2
//!   6       bits 0..128, child, results: 6          external (2), child, inner: 4        internal (2), results: 3
//! ```

use super::Config;

/// Bit 0 of a node's bits, which is not the place of a prefix. If it is set, the node has no children, and the upper
/// half of the bits are routes.
pub(super) const END: u128 = 1;
/// No node, no inner node.
pub(super) const NONE: u32 = u32::MAX;
/// In the word of the inner node: [`END`] of a split node.
pub(super) const SPLIT_END: u32 = 1 << 31;
/// In the word of the inner node: a route of the parent covers this node.
pub(super) const PASSED: u32 = 1 << 30;
/// The number of the inner node; all bits set if there is none.
pub(super) const INNER_MASK: u32 = PASSED - 1;

/// For each place, a mask of the places of all prefixes of its prefix, itself included.
static WAYS: [u128; 128] = {
    let mut ways = [0; 128];
    let mut place = 1;
    while place < 128 {
        ways[place] = ways[place / 2] | 1 << place;
        place += 1;
    }
    ways
};

/// Words of half a node's bits, those of the internal or the external bitmap.
const fn half(stride: u32) -> usize {
    if stride == 6 { 2 } else { 1 }
}

/// Words of all of a node's bits.
const fn whole(stride: u32) -> usize {
    1 << (stride - 4)
}

/// Words of a node.
pub(super) const fn width(config: Config) -> usize {
    2 + if config.split { half(config.stride) } else { whole(config.stride) }
}

/// Words of an inner node.
pub(super) const fn inner_width(stride: u32) -> usize {
    1 + half(stride)
}

/// The lower half of the bits: the internal bitmap and the flag of end nodes.
pub(super) const fn internal(stride: u32) -> u128 {
    (1 << (1 << stride)) - 1
}

/// The place of the longest prefix of a node that contains the slot.
#[inline(always)]
pub(super) fn longest(bits: u128, stride: u32, slot: usize) -> Option<u32> {
    let among = if bits & END != 0 { !END } else { internal(stride) & !END };
    // The mask in `WAYS` never has bit 0.
    let matching = bits & among & WAYS[1 << stride | slot];
    (matching != 0).then(|| 127 - matching.leading_zeros())
}

/// The number of results, or of children, before the one at this place.
#[inline(always)]
pub(super) fn before(bits: u128, from: u32, place: u32) -> usize {
    (bits >> from & ((1 << (place - from)) - 1)).count_ones() as usize
}

/// A decoded node.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub bits: u128,
    pub child: u32,
    pub results: u32,
}

fn join(words: &[u32]) -> u128 {
    words.iter().rev().fold(0, |bits, &word| bits << 32 | u128::from(word))
}

/// The unsplit node of this number.
#[inline(always)]
pub(super) fn read<const K: u32>(nodes: &[u32], number: usize) -> Node {
    let words = &nodes[number * (2 + whole(K))..][..2 + whole(K)];
    let (bits, rest) = words.split_at(whole(K));
    Node { bits: join(bits), child: rest[0], results: rest[1] }
}

/// A split node: its external bitmap from bit 0 on, its children and the word of its inner node.
#[inline(always)]
pub(super) fn read_split<const K: u32>(nodes: &[u32], number: usize) -> (u128, u32, u32) {
    let words = &nodes[number * (2 + half(K))..][..2 + half(K)];
    let (bits, rest) = words.split_at(half(K));
    // With stride 4, only half of the word is in use.
    (join(bits) & internal(K), rest[0], rest[1])
}

/// An inner node: its internal bitmap and its results.
#[inline(always)]
pub(super) fn read_inner<const K: u32>(inner: &[u32], number: usize) -> (u128, u32) {
    let words = &inner[number * (1 + half(K))..][..1 + half(K)];
    let (bits, rest) = words.split_at(half(K));
    (join(bits) & internal(K) & !END, rest[0])
}

/// Writes `count` words of bits.
pub(super) fn put(words: &mut [u32], bits: u128, count: usize) {
    for (i, word) in words[..count].iter_mut().enumerate() {
        *word = (bits >> (32 * i)) as u32;
    }
}

/// Writes a node; a split one if `inner` has the word of its inner node.
pub(super) fn write(config: Config, words: &mut [u32], node: Node, inner: Option<u32>) {
    let stride = config.stride;
    let count = match inner {
        None => {
            put(words, node.bits, whole(stride));
            words[whole(stride) + 1] = node.results;
            whole(stride)
        }
        Some(inner) => {
            put(words, node.bits >> (1 << stride), half(stride));
            words[half(stride) + 1] = inner;
            half(stride)
        }
    };
    words[count] = node.child;
}

/// Appends an inner node.
pub(super) fn push_inner(stride: u32, inner: &mut Vec<u32>, node: Node) {
    let at = inner.len();
    inner.resize(at + inner_width(stride), 0);
    put(&mut inner[at..], node.bits & internal(stride) & !END, half(stride));
    inner[at + half(stride)] = node.results;
}
