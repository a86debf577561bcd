//! The nodes of a [trie](super::trie), and all methods for reading. A copy of the nodes costs little and can be read
//! like the trie.

use fibula_core::{Addr, Prefix};

use crate::chunks::Chunks;

/// No node: the root is the child of no node.
pub(super) const NONE: u32 = 0;
/// No path.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Packed to multiples of 4: otherwise a node with a 128-bit address would be padded to 48 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct Node<A> {
    pub(super) addr: A,
    pub(super) kids: [u32; 2],
    /// The first of the prefix's paths, the best one; [`NO_PATH`] if it has no route.
    pub(super) path: u32,
    pub(super) len: u8,
}

const _: () = assert!(size_of::<Node<u32>>() == 20 && size_of::<Node<u128>>() == 32);

impl<A: Addr> Node<A> {
    pub(super) fn prefix(&self) -> Prefix<A> {
        Prefix::masked(self.addr, self.len).unwrap_or(Prefix::ALL)
    }
}

/// The nodes by their places, the root first.
#[derive(Clone)]
pub(super) struct Nodes<A: Addr>(pub(super) Chunks<Node<A>>);

impl<A: Addr> Nodes<A> {
    pub(super) fn prefix(&self, node: u32) -> Prefix<A> {
        self.0[node].prefix()
    }

    /// The child of the node on the way to the address, and its prefix.
    pub(super) fn kid(&self, node: u32, addr: A) -> Option<(u32, Prefix<A>)> {
        let node = &self.0[node];
        let kid = node.kids[usize::from(addr.bit(node.len))];
        (kid != NONE).then(|| (kid, self.prefix(kid)))
    }

    /// The nodes whose prefixes cover this one, from the root down.
    pub(super) fn way(&self, to: Prefix<A>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(0), move |&at| {
            if self.0[at].len >= to.len() {
                return None;
            }
            let (kid, prefix) = self.kid(at, to.addr())?;
            prefix.covers(to).then_some(kid)
        })
    }

    /// The last node on the way to the prefix: the longest that covers it, itself included.
    pub(super) fn descend(&self, to: Prefix<A>) -> u32 {
        self.descend_from(0, to, |_| {})
    }

    /// Like [`Nodes::descend`] from a node that covers the prefix, with each node after that one. It gives the last
    /// node of [`Nodes::way`] in a loop that does nothing else, because every new route begins with this search.
    pub(super) fn descend_from(&self, from: u32, to: Prefix<A>, mut each: impl FnMut(u32)) -> u32 {
        let (addr, len) = (to.addr(), to.len());
        let (mut at, mut node) = (from, &self.0[from]);
        while node.len < len {
            let kid = node.kids[usize::from(addr.bit(node.len))];
            let next = &self.0[kid];
            let differs = next.addr.xor(addr).and(A::netmask(next.len)) != A::MIN;
            if kid == NONE || next.len > len || differs {
                break;
            }
            (at, node) = (kid, next);
            each(at);
        }
        at
    }

    /// The prefixes with routes that cover this one, itself included, longest first; with their paths.
    pub(super) fn covering(&self, prefix: Prefix<A>) -> Vec<(Prefix<A>, u32)> {
        let mut found: Vec<_> = self.way(prefix).filter_map(|at| self.route(at)).collect();
        found.reverse();
        found
    }

    /// The longest prefix with a route that covers the address.
    pub(super) fn longest(&self, addr: A) -> Option<(Prefix<A>, u32)> {
        self.way(Prefix::host(addr)).filter_map(|at| self.route(at)).last()
    }

    pub(super) fn route(&self, at: u32) -> Option<(Prefix<A>, u32)> {
        let path = self.0[at].path;
        (path != NO_PATH).then(|| (self.prefix(at), path))
    }

    /// The prefixes with routes that this one covers, itself included, in order; with their paths.
    pub(super) fn covered(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, u32)> + '_ {
        let at = self.descend(prefix);
        let top = if self.0[at].len == prefix.len() {
            Some(at)
        } else {
            self.kid(at, prefix.addr())
                .filter(|(_, below)| prefix.covers(*below))
                .map(|(kid, _)| kid)
        };
        let mut stack: Vec<u32> = top.into_iter().collect();
        std::iter::from_fn(move || {
            let at = stack.pop()?;
            let [left, right] = self.0[at].kids;
            stack.extend([right, left].into_iter().filter(|&kid| kid != NONE));
            Some(at)
        })
        .filter_map(|at| self.route(at))
    }

    /// The prefixes with routes, in the order of memory: several times as fast as in order of prefixes.
    pub(super) fn unordered(&self) -> impl Iterator<Item = (Prefix<A>, u32)> + '_ {
        (0..self.0.len() as u32).filter_map(|at| self.route(at))
    }

    /// The prefixes with routes from this one on, at most this number.
    pub(super) fn from(&self, prefix: Prefix<A>, most: usize) -> Vec<(Prefix<A>, u32)> {
        // The nodes to visit: those on the path and, to the right of it, their other children.
        let mut stack: Vec<u32> = Vec::new();
        let mut at = 0;
        loop {
            let here = self.prefix(at);
            if here >= prefix {
                stack.push(at);
                break;
            }
            if !here.covers(prefix) {
                break;
            }
            let node = &self.0[at];
            let bit = usize::from(prefix.addr().bit(node.len));
            if bit == 0 && node.kids[1] != NONE {
                stack.push(node.kids[1]);
            }
            match node.kids[bit] {
                NONE => break,
                kid => at = kid,
            }
        }
        let mut found = Vec::with_capacity(most.min(4096));
        while found.len() < most
            && let Some(at) = stack.pop()
        {
            let [left, right] = self.0[at].kids;
            stack.extend([right, left].into_iter().filter(|&kid| kid != NONE));
            found.extend(self.route(at));
        }
        found
    }
}
