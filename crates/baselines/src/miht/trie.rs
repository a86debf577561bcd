//! Priority tries: d-nodes, each with a route.

use std::fmt::Debug;

use bytemuck::Pod;
use fibula_core::{Addr, Hop, Prefix};

use super::pool::Pool;

/// Bits of a hop in a node; the length of the prefix has the others.
pub(super) const HOP_BITS: u32 = 24;

/// An address whose routes are kept in priority tries.
pub trait TrieAddr: Addr {
    /// A node: a quarter of a cache line for IPv4, half of one for IPv6.
    type Node: Pod + Debug;

    /// The first k bits, 1 to 32 of them.
    fn key(self, k: u32) -> u32;
    /// The bit at this level, as a number; any if the level is beyond the address, where nodes have no
    /// children.
    fn side(self, level: u8) -> usize;
    /// A node without children.
    fn node(addr: Self, info: u32) -> Self::Node;
    /// The address of the node's prefix.
    fn addr(node: &Self::Node) -> Self;
    /// The node's hop above the length of its prefix.
    fn info(node: &Self::Node) -> u32;
    /// The node's children, 0 for none.
    fn children(node: &Self::Node) -> [u32; 2];
    /// Replaces a child.
    fn set_child(node: &mut Self::Node, side: usize, child: u32);
}

impl TrieAddr for u32 {
    /// Address, info, children.
    type Node = [u32; 4];

    #[inline(always)]
    fn key(self, k: u32) -> u32 {
        self >> (32 - k)
    }
    #[inline(always)]
    fn side(self, level: u8) -> usize {
        (self << (level & 31) >> 31) as usize
    }
    #[inline(always)]
    fn node(addr: u32, info: u32) -> [u32; 4] {
        [addr, info, 0, 0]
    }
    #[inline(always)]
    fn addr(node: &[u32; 4]) -> u32 {
        node[0]
    }
    #[inline(always)]
    fn info(node: &[u32; 4]) -> u32 {
        node[1]
    }
    #[inline(always)]
    fn children(node: &[u32; 4]) -> [u32; 2] {
        [node[2], node[3]]
    }
    fn set_child(node: &mut [u32; 4], side: usize, child: u32) {
        node[2 + side] = child;
    }
}

impl TrieAddr for u128 {
    /// Both halves of the address, info, children.
    type Node = [u64; 4];

    #[inline(always)]
    fn key(self, k: u32) -> u32 {
        ((self >> 64) as u64 >> (64 - k)) as u32
    }
    #[inline(always)]
    fn side(self, level: u8) -> usize {
        // A shift of all 128 bits takes several times as long.
        let half = if level < 64 { (self >> 64) as u64 } else { self as u64 };
        (half << (level & 63) >> 63) as usize
    }
    #[inline(always)]
    fn node(addr: u128, info: u32) -> [u64; 4] {
        [(addr >> 64) as u64, addr as u64, info.into(), 0]
    }
    #[inline(always)]
    fn addr(node: &[u64; 4]) -> u128 {
        u128::from(node[0]) << 64 | u128::from(node[1])
    }
    #[inline(always)]
    fn info(node: &[u64; 4]) -> u32 {
        node[2] as u32
    }
    #[inline(always)]
    fn children(node: &[u64; 4]) -> [u32; 2] {
        [node[3] as u32, (node[3] >> 32) as u32]
    }
    fn set_child(node: &mut [u64; 4], side: usize, child: u32) {
        node[3] = node[3] & !(0xffff_ffff << (32 * side)) | u64::from(child) << (32 * side);
    }
}

/// The hop in a node's info.
#[inline(always)]
pub(super) fn hop(info: u32) -> Hop {
    Hop::from_bits(info >> 8)
}

/// The length in a node's info.
#[inline(always)]
pub(super) fn len(info: u32) -> u8 {
    info as u8
}

/// Whether the node's prefix covers the address.
#[inline(always)]
pub(super) fn matches<A: TrieAddr>(node: &A::Node, addr: A) -> bool {
    addr.common_prefix_len(A::addr(node)) >= len(A::info(node))
}

/// All priority tries of a table, in one pool whose first place means none.
///
/// The root of a trie is at a level: as many bits as all its prefixes share. A node's prefix has the bits that lead to
/// the node, and at least as many as its level. The longest prefix of a (sub)trie is at its root, unless one of them
/// has no bit left for a further step: that one must stay.
#[derive(Clone)]
pub(super) struct Tries<A: TrieAddr> {
    pub(super) nodes: Pool<A::Node>,
}

/// A node on the way down.
#[derive(Clone, Copy)]
struct Cursor {
    node: u32,
    level: u8,
    /// The parent, and which of its children the node is; none for a root.
    parent: Option<(u32, usize)>,
}

impl<A: TrieAddr> Tries<A> {
    /// No tries, with room for so many routes.
    pub(super) fn with_room(routes: usize) -> Self {
        let mut nodes = Pool::with_room(routes + 1, 1);
        nodes.take();
        Self { nodes }
    }

    /// Puts the route into the trie with this root (0: none yet) at this level, in place of one of the
    /// same prefix; returns the root. O(depth).
    pub(super) fn insert(&mut self, root: u32, level: u8, prefix: Prefix<A>, hop: Hop) -> u32 {
        let (mut addr, mut info) = (prefix.addr(), hop.to_bits() << 8 | u32::from(prefix.len()));
        let mut cursor = Cursor { node: root, level, parent: None };
        while cursor.node != 0 {
            let node = &mut self.nodes.to_mut()[cursor.node as usize];
            let (here_addr, here) = (A::addr(node), A::info(node));
            let is_here = here_addr == addr && len(here) == len(info);
            // If the new route stays here and the old one moves down, the old one is not among the descendants: it
            // would be longer than the longest, or deeper than its length.
            let stays =
                len(info) == cursor.level || len(here) > cursor.level && len(info) > len(here);
            if is_here || stays {
                let children = A::children(node);
                *node = A::node(addr, info);
                A::set_child(node, 0, children[0]);
                A::set_child(node, 1, children[1]);
                (addr, info) = (here_addr, here);
            }
            if is_here {
                return root;
            }
            cursor = child(node, cursor, addr);
        }
        let new = self.nodes.take();
        let nodes = self.nodes.to_mut();
        nodes[new as usize] = A::node(addr, info);
        if let Some((parent, side)) = cursor.parent {
            A::set_child(&mut nodes[parent as usize], side, new);
        }
        if root == 0 { new } else { root }
    }

    /// Takes the prefix out of the trie, if it is there; returns the root, 0 if nothing is left. The
    /// longest prefix below takes its place, and so on downwards. O(depth), and the number of nodes
    /// below where many of them hold prefixes without a further bit.
    pub(super) fn remove(&mut self, root: u32, level: u8, prefix: Prefix<A>) -> u32 {
        let mut cursor = Cursor { node: root, level, parent: None };
        while cursor.node != 0 {
            let node = &self.nodes[cursor.node as usize];
            if A::addr(node) == prefix.addr() && len(A::info(node)) == prefix.len() {
                return self.take_out(root, cursor);
            }
            if cursor.level == prefix.len() {
                break;
            }
            cursor = child(node, cursor, prefix.addr());
        }
        root
    }

    fn take_out(&mut self, root: u32, mut cursor: Cursor) -> u32 {
        while let Some((_, below)) = self.longest_child(cursor) {
            let nodes = self.nodes.to_mut();
            let (from, to) = (nodes[below.node as usize], &mut nodes[cursor.node as usize]);
            let children = A::children(to);
            *to = A::node(A::addr(&from), A::info(&from));
            A::set_child(to, 0, children[0]);
            A::set_child(to, 1, children[1]);
            cursor = below;
        }
        self.nodes.give(cursor.node);
        match cursor.parent {
            None => 0,
            Some((parent, side)) => {
                A::set_child(&mut self.nodes.to_mut()[parent as usize], side, 0);
                root
            }
        }
    }

    /// The longest prefix below the node, with its length.
    fn longest_child(&self, cursor: Cursor) -> Option<(u8, Cursor)> {
        let children = A::children(&self.nodes[cursor.node as usize]);
        let below = children.into_iter().enumerate().filter(|&(_, node)| node != 0);
        below
            .map(|(side, node)| {
                let parent = Some((cursor.node, side));
                self.longest(Cursor { node, level: cursor.level + 1, parent })
            })
            .max_by_key(|&(len, _)| len)
    }

    /// The longest prefix of a subtrie: its root's, or one below a root that must stay.
    fn longest(&self, cursor: Cursor) -> (u8, Cursor) {
        let len = len(A::info(&self.nodes[cursor.node as usize]));
        let below = if len == cursor.level { self.longest_child(cursor) } else { None };
        below.unwrap_or((len, cursor))
    }
}

/// The node's child towards the address.
#[inline(always)]
fn child<A: TrieAddr>(node: &A::Node, cursor: Cursor, addr: A) -> Cursor {
    let side = addr.side(cursor.level);
    let parent = Some((cursor.node, side));
    Cursor { node: A::children(node)[side], level: cursor.level + 1, parent }
}
