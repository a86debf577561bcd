//! The prefixes that rules have on one field.
//!
//! A path-compressed binary trie: a node is a prefix of rules, or the point where two of them diverge.
//!
//! ```text
//!   rules: 10.0.0.0/8, 10.1.0.0/16, 10.1.2.0/24, 11.0.0.0/8      the value 10.1.7.1
//!
//!            (root, /0)                                          /8 and /16 match
//!                 |                                              10.1.7.1 and 10.1.2.0/24 part at bit 21:
//!             10.0.0.0/7                                         with 22 bits known no /24 matches
//!             /        \
//!      10.0.0.0/8    11.0.0.0/8
//!          |
//!      10.1.0.0/16
//!          |
//!      10.1.2.0/24
//! ```

use std::collections::HashMap;

use fibula_simd::prefetch_read;

use super::TOGETHER;

const NONE: u32 = u32::MAX;

const _: () = assert!(TOGETHER < 32, "a bit for each");

#[derive(Clone, Debug)]
struct Node<K> {
    /// The prefix, from the highest bit on; bits after the first `len` are 0.
    bits: K,
    len: u8,
    /// The number of rules with this prefix.
    rules: u32,
    children: [u32; 2],
    /// The groups of these rules: bit `n` is for all groups whose numbers are `n` modulo 64.
    groups: u64,
}

/// The first part of a walk.
#[derive(Clone, Debug, Default)]
struct Top {
    /// Lengths and groups of the prefixes in this part.
    found: Box<[(u8, u64)]>,
    /// The node where the walk continues, or [`NONE`].
    next: u32,
    /// If the walk ends here: how many bits prove that the value has no other prefixes.
    shown: u8,
}

/// Values of fields, aligned to the highest bit.
pub(super) trait Bits: Copy + Eq {
    fn common(self, other: Self) -> u8;
    fn bit(self, at: u8) -> usize;
    fn first(self, len: u8) -> Self;
    /// The first `bits` bits, 1 to 16, as a number.
    fn number(self, bits: u8) -> usize;
    /// The value whose first `bits` bits are this number.
    fn of_number(number: usize, bits: u8) -> Self;
}

macro_rules! bits {
    ($($word:ty),*) => { $(
        impl Bits for $word {
            #[inline]
            fn common(self, other: Self) -> u8 {
                (self ^ other).leading_zeros() as u8
            }
            #[inline]
            fn bit(self, at: u8) -> usize {
                usize::from(self << at >> (Self::BITS - 1) != 0)
            }
            #[inline]
            fn first(self, len: u8) -> Self {
                if len == 0 { 0 } else { self & Self::MAX << (Self::BITS - u32::from(len)) }
            }
            #[inline]
            fn number(self, bits: u8) -> usize {
                (self >> (Self::BITS - u32::from(bits))) as usize
            }
            #[inline]
            fn of_number(number: usize, bits: u8) -> Self {
                (number as Self) << (Self::BITS - u32::from(bits))
            }
        }
    )* };
}

bits!(u64, u128);

/// The prefixes of one field, and how many rules have each.
#[derive(Clone, Debug)]
pub(super) struct Trie<K> {
    nodes: Vec<Node<K>>,
    free: Vec<u32>,
    /// The first part of a walk, indexed by the first `top_bits` bits of a value.
    top: Vec<Top>,
    top_bits: u8,
    /// For a node and a bit of its groups, the number of rules beyond the first one. Only changes of the rules use
    /// this.
    more: HashMap<(u32, u8), u32>,
}

impl<K: Bits + Default> Trie<K> {
    /// An empty trie of values of `bits` bits. With `bulk`, inserts are faster, but [`Trie::pack`] must precede the
    /// first walk.
    pub(super) fn new(bits: u32, bulk: bool) -> Self {
        let root = Node { bits: K::default(), len: 0, rules: 0, children: [NONE; 2], groups: 0 };
        let (nodes, free, more) = (vec![root], Vec::new(), HashMap::new());
        let mut trie = Self { nodes, free, top: Vec::new(), top_bits: 0, more };
        if !bulk {
            trie.make_top(bits.min(8) as u8);
        }
        trie
    }

    fn make_top(&mut self, bits: u8) {
        self.top_bits = bits;
        self.top = vec![Top::default(); 1 << bits];
        self.refresh(K::default(), 0);
    }

    /// Recomputes the tops of all values whose first `agree` bits are those of `value`.
    fn refresh(&mut self, value: K, agree: u8) {
        if self.top.is_empty() {
            return;
        }
        let agree = agree.min(self.top_bits);
        let first = value.first(agree).number(self.top_bits);
        for number in first..first + (1 << (self.top_bits - agree)) {
            self.top[number] = self.walk_top(K::of_number(number, self.top_bits));
        }
    }

    fn walk_top(&self, value: K) -> Top {
        let (mut found, mut at) = (Vec::new(), 0u32);
        loop {
            let node = &self.nodes[at as usize];
            if node.len > self.top_bits {
                // Whether the node matches the value depends on bits that are not known here.
                return Top { found: found.into(), next: at, shown: 0 };
            }
            let common = value.common(node.bits);
            if common < node.len {
                return Top { found: found.into(), next: NONE, shown: common + 1 };
            }
            if node.rules > 0 {
                found.push((node.len, node.groups));
            }
            if node.children == [NONE; 2] {
                return Top { found: found.into(), next: NONE, shown: node.len };
            }
            if node.len == self.top_bits {
                // The next bit decides where the walk continues.
                return Top { found: found.into(), next: at, shown: 0 };
            }
            match node.children[value.bit(node.len)] {
                NONE => return Top { found: found.into(), next: NONE, shown: node.len + 1 },
                child => at = child,
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<K>>()
            + self.free.capacity() * 4
            + self.top.iter().map(|top| size_of::<Top>() + size_of_val(&*top.found)).sum::<usize>()
            + self.more.capacity() * 13
    }

    fn node(&mut self, bits: K, len: u8) -> u32 {
        let node = Node { bits: bits.first(len), len, rules: 0, children: [NONE; 2], groups: 0 };
        match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    /// Counts a rule with the first `len` bits as its prefix, of a group with bit `group`.
    pub(super) fn insert(&mut self, bits: K, len: u8, group: u8) {
        let (at, agree) = self.make(bits, len);
        let node = &mut self.nodes[at as usize];
        node.rules += 1;
        if node.groups >> group & 1 == 1 {
            *self.more.entry((at, group)).or_default() += 1;
        }
        node.groups |= 1 << group;
        if agree < len || len <= self.top_bits {
            self.refresh(bits, agree.min(len));
        }
    }

    /// Returns the node of a prefix, which is created if it does not exist, and a number of bits: walks of values that
    /// agree with the prefix in fewer bits are unchanged.
    fn make(&mut self, bits: K, len: u8) -> (u32, u8) {
        let (mut at, mut agree) = (0u32, u8::MAX);
        loop {
            let node = &self.nodes[at as usize];
            if node.len == len {
                return (at, agree.min(len));
            }
            let side = bits.bit(node.len);
            let child = node.children[side];
            if child == NONE {
                let (leaf, above) = (self.node(bits, len), self.nodes[at as usize].len);
                self.nodes[at as usize].children[side] = leaf;
                return (leaf, agree.min(above));
            }
            let (under, under_len) =
                (self.nodes[child as usize].bits, self.nodes[child as usize].len);
            let common = bits.common(under).min(len).min(under_len);
            if common < under_len {
                // The new node, or the point where both prefixes diverge, is inserted between the nodes.
                agree = agree.min(self.nodes[at as usize].len);
                let fork = self.node(bits, common);
                self.nodes[fork as usize].children[under.bit(common)] = child;
                self.nodes[at as usize].children[side] = fork;
                at = fork;
            } else {
                at = child;
            }
        }
    }

    /// Removes a rule that `insert` counted, and nodes that are no longer needed.
    pub(super) fn remove(&mut self, bits: K, len: u8, group: u8) {
        let (mut at, mut above, mut grandparent) = (0u32, NONE, NONE);
        while self.nodes[at as usize].len < len {
            (grandparent, above) = (above, at);
            at = self.nodes[at as usize].children[bits.bit(self.nodes[at as usize].len)];
        }
        let node = &mut self.nodes[at as usize];
        node.rules -= 1;
        match self.more.get_mut(&(at, group)) {
            Some(1) => {
                self.more.remove(&(at, group));
            }
            Some(more) => *more -= 1,
            None => node.groups &= !(1 << group),
        }
        let is_gone = node.rules == 0;
        if is_gone && self.splice(at, above) && above != NONE {
            self.splice(above, grandparent);
        }
        if is_gone || len <= self.top_bits {
            // The parent may have been removed, too.
            let agree = if grandparent == NONE { 0 } else { self.nodes[grandparent as usize].len };
            self.refresh(bits, agree.min(len));
        }
    }

    /// Removes the node if it has no rules and at most one child; returns whether it did. The root is never removed.
    fn splice(&mut self, at: u32, above: u32) -> bool {
        let node = &self.nodes[at as usize];
        let only = match node.children {
            _ if node.rules > 0 || above == NONE => return false,
            [NONE, other] | [other, NONE] => other,
            _ => return false,
        };
        let side = node.bits.bit(self.nodes[above as usize].len);
        self.nodes[above as usize].children[side] = only;
        self.free.push(at);
        true
    }

    /// Reorders the nodes so that walks touch few cache lines: the top level by level, because all walks pass through
    /// it, and below it each child after its parent.
    pub(super) fn pack(&mut self, width: u8) {
        const TOP: u8 = 10;
        let (mut order, mut below) = (vec![0u32], Vec::new());
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            for child in self.nodes[node as usize].children.into_iter().filter(|c| *c != NONE) {
                let is_top = self.nodes[child as usize].len <= TOP;
                if is_top { order.push(child) } else { below.push(child) }
            }
            at += 1;
        }
        below.reverse();
        while let Some(node) = below.pop() {
            order.push(node);
            let children = self.nodes[node as usize].children;
            below.extend(children.into_iter().rev().filter(|child| *child != NONE));
        }
        let mut place = vec![NONE; self.nodes.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        let moved = |child: u32| if child == NONE { NONE } else { place[child as usize] };
        let node = |&old: &u32| {
            let node = &self.nodes[old as usize];
            Node { children: node.children.map(moved), ..*node }
        };
        self.nodes = order.iter().map(node).collect();
        let moved = |((node, group), more)| ((place[node as usize], group), more);
        self.more = std::mem::take(&mut self.more).into_iter().map(moved).collect();
        self.free.clear();
        // About a quarter as many tops as nodes, so that tops take little memory and stay in the second-level cache.
        let bits = self.nodes.len().ilog2().saturating_sub(2).clamp(8, 10) as u8;
        self.make_top(bits.min(width));
    }

    /// Walks the trie for several values at once, at most [`TOGETHER`], so that their memory accesses overlap. Calls
    /// `found` with the number of a value, and the length and groups of each of its prefixes, shortest first. Some
    /// prefixes are reported twice, and some belong to no rule and have no groups. `shown` gets how many bits of each
    /// value prove that it has no other prefixes.
    #[inline(always)]
    pub(super) fn walk(
        &self,
        values: &[K],
        shown: &mut [u8],
        mut found: impl FnMut(usize, u8, u64),
    ) {
        let mut at = [0u32; TOGETHER];
        let mut walking = 0u32;
        for (number, value) in values.iter().enumerate() {
            let top = &self.top[value.number(self.top_bits)];
            for &(len, groups) in &top.found {
                found(number, len, groups);
            }
            match top.next {
                NONE => shown[number] = top.shown,
                next => {
                    prefetch_read(&self.nodes, next as usize);
                    at[number] = next;
                    walking |= 1 << number;
                }
            }
        }
        while walking != 0 {
            let mut round = walking;
            while round != 0 {
                let number = round.trailing_zeros() as usize;
                round &= round - 1;
                let (value, node) = (values[number], &self.nodes[at[number] as usize]);
                let common = value.common(node.bits);
                let end = if common < node.len {
                    Some(common + 1)
                } else {
                    // A node where the top ends is reported for the second time here. A node without rules has no
                    // groups.
                    found(number, node.len, node.groups);
                    match node.children {
                        [NONE, NONE] => Some(node.len),
                        children => match children[value.bit(node.len)] {
                            NONE => Some(node.len + 1),
                            child => {
                                prefetch_read(&self.nodes, child as usize);
                                at[number] = child;
                                None
                            }
                        },
                    }
                };
                if let Some(end) = end {
                    shown[number] = end;
                    walking &= !(1 << number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
