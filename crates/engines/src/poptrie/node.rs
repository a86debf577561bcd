//! The format of nodes, and how to read a slot.

use fibula_core::Addr;

/// Bits of the address that a node decides.
pub(super) const STRIDE: u32 = 6;
/// The bit of direct entries that are the code of a hop; the others are the number of a node.
pub(super) const LEAF: u32 = 1 << 31;

/// A node, 24 bytes: `vector`, `leafvec`, and the two bases, `base1` in the high half.
pub(super) type Node = [u64; 3];

pub(super) fn node(vector: u64, leafvec: u64, base1: usize, base0: usize) -> Node {
    [vector, leafvec, (base1 as u64) << 32 | u64::from(base0 as u32)]
}

/// The address at the top of a word of its own or, for IPv6, the high half of it.
#[inline(always)]
fn high<A: Addr>(addr: A) -> u64 {
    (addr.to_u128() << (128 - u32::from(A::BITS)) >> 64) as u64
}

/// The entry of the direct table: the first s bits of the address, where `shift` is 64 - s.
#[inline(always)]
pub(super) fn direct_index<A: Addr>(addr: A, shift: u32) -> usize {
    (high(addr) >> (shift & 63)) as usize
}

/// The 6 bits of the address from bit `at` on, as the low bits; the bits above them are undefined. Bits beyond the end
/// of the address are clear.
#[inline(always)]
pub(super) fn slot<A: Addr>(addr: A, at: u32) -> u32 {
    // The levels above bit 64 are those that most lookups see: one shift, of half the width.
    if A::BITS == 32 {
        (high(addr) >> ((64 - STRIDE).wrapping_sub(at) & 63)) as u32
    } else if at + STRIDE <= 64 {
        (high(addr) << (at & 63) >> (64 - STRIDE)) as u32
    } else {
        (addr.to_u128() << at >> (128 - STRIDE)) as u32
    }
}

/// The bits of the vector up to a slot's own, which comes to lie at the top.
#[inline(always)]
fn up_to(vector: u64, slot: u32) -> u64 {
    vector.wrapping_shl(!slot)
}

/// Whether the slot has a child; if so, how many the node has up to this one.
#[inline(always)]
pub(super) fn children_up_to(node: &Node, slot: u32) -> (bool, u32) {
    let children = up_to(node[0], slot);
    (children.cast_signed() < 0, children.count_ones())
}

/// The node of the child that is the `count`th, from 1.
#[inline(always)]
pub(super) fn child(node: &Node, count: u32) -> usize {
    ((node[2] >> 32) as usize).wrapping_add(count as usize).wrapping_sub(1)
}

/// The leaf of a slot without a child, counted from 1; the reader subtracts it at no cost.
#[inline(always)]
pub(super) fn leaf_from_one(node: &Node, slot: u32) -> u32 {
    (node[2] as u32).wrapping_add(up_to(node[1], slot).count_ones())
}
