//! The prefixes of one family and VRF: a path-compressed binary trie in one array.
//!
//! A node stands for a prefix; its children are longer prefixes inside it, told apart by the bit behind
//! its own length. A node has a route, or two children, or is the root: so there are fewer than two
//! nodes for each prefix with a route. Nodes are named by 32-bit places in the array, those that are
//! given back are used again. Beside them a hash table finds the node of a prefix that has a route: most
//! updates are about such prefixes, and the way down from the root is twenty cache misses long.
//!
//! ```text
//!   10.0.0.0/8           node 0: 0.0.0.0/0 ──0── node 1: 10.0.0.0/8, a route
//!   10.1.0.0/16                                      └─0── node 4: 10.0.0.0/14, no route
//!   10.2.0.0/16                                             ├─0── node 2: 10.1.0.0/16
//!                                                           └─1── node 3: 10.2.0.0/16
//! ```

use std::hash::BuildHasher;

use fibula_core::{Addr, Prefix};
use hashbrown::{DefaultHashBuilder, HashTable};

/// No node: the root is nobody's child.
const NONE: u32 = 0;
/// No path.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Packed to multiples of 4: beside numbers of 32 bits, an address of 128 would be padded to 48 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Node<A> {
    addr: A,
    kids: [u32; 2],
    /// The first of the prefix's paths, the best one; [`NO_PATH`] if it has no route.
    path: u32,
    len: u8,
}

const _: () = assert!(size_of::<Node<u32>>() == 20 && size_of::<Node<u128>>() == 32);

pub(super) struct Trie<A: Addr> {
    nodes: Vec<Node<A>>,
    free: Vec<u32>,
    /// The nodes with a route.
    routes: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<A: Addr> Default for Trie<A> {
    fn default() -> Self {
        let mut trie = Self {
            nodes: Vec::new(),
            free: Vec::new(),
            routes: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        trie.add(Prefix::ALL, [NONE; 2]);
        trie
    }
}

fn prefix<A: Addr>(node: &Node<A>) -> Prefix<A> {
    Prefix::masked(node.addr, node.len).unwrap_or(Prefix::ALL)
}

impl<A: Addr> Trie<A> {
    fn prefix(&self, node: u32) -> Prefix<A> {
        prefix(&self.nodes[node as usize])
    }

    fn add(&mut self, prefix: Prefix<A>, kids: [u32; 2]) -> u32 {
        let node = Node { addr: prefix.addr(), kids, path: NO_PATH, len: prefix.len() };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        super::family::grow(&mut self.nodes);
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 nodes")
    }

    /// How many more prefixes there is room for.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= u32::MAX as usize - 4
    }

    /// The child of the node on the way to the address, and its prefix.
    fn kid(&self, node: u32, addr: A) -> Option<(u32, Prefix<A>)> {
        let node = &self.nodes[node as usize];
        let kid = node.kids[usize::from(addr.bit(node.len))];
        (kid != NONE).then(|| (kid, self.prefix(kid)))
    }

    /// The nodes whose prefixes cover this one, from the root down.
    fn way(&self, to: Prefix<A>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(0), move |&at| {
            if self.nodes[at as usize].len >= to.len() {
                return None;
            }
            let (kid, prefix) = self.kid(at, to.addr())?;
            prefix.covers(to).then_some(kid)
        })
    }

    /// The node of the prefix, which comes to be if it is new.
    pub(super) fn node(&mut self, prefix: Prefix<A>) -> u32 {
        if let Some(at) = self.find(prefix) {
            return at;
        }
        let at = self.descend(prefix);
        if self.nodes[at as usize].len == prefix.len() { at } else { self.grow(at, prefix) }
    }

    /// The node of the prefix, if it has a route.
    pub(super) fn find(&self, prefix: Prefix<A>) -> Option<u32> {
        let hash = self.hasher.hash_one(prefix);
        self.routes.find(hash, |&at| self.prefix(at) == prefix).copied()
    }

    /// The first path of a node's prefix.
    pub(super) fn path(&self, node: u32) -> u32 {
        self.nodes[node as usize].path
    }

    pub(super) fn set_path(&mut self, node: u32, path: u32) {
        self.nodes[node as usize].path = path;
    }

    /// The last node on the way to the prefix: the longest that covers it, itself included. As the last
    /// of [`Trie::way`], in a loop that does nothing else: what every update begins with.
    fn descend(&self, to: Prefix<A>) -> u32 {
        let (addr, len) = (to.addr(), to.len());
        let (mut at, mut node) = (0, &self.nodes[0]);
        while node.len < len {
            let kid = node.kids[usize::from(addr.bit(node.len))];
            let next = &self.nodes[kid as usize];
            let differs = next.addr.xor(addr).and(A::netmask(next.len)) != A::MIN;
            if kid == NONE || next.len > len || differs {
                break;
            }
            (at, node) = (kid, next);
        }
        at
    }

    /// A new node for the prefix, somewhere right below `at`.
    fn grow(&mut self, at: u32, prefix: Prefix<A>) -> u32 {
        let branch = usize::from(prefix.addr().bit(self.nodes[at as usize].len));
        let Some((kid, below)) = self.kid(at, prefix.addr()) else {
            let new = self.add(prefix, [NONE; 2]);
            self.nodes[at as usize].kids[branch] = new;
            return new;
        };
        let common =
            below.addr().common_prefix_len(prefix.addr()).min(below.len()).min(prefix.len());
        let fork = Prefix::masked(prefix.addr(), common).unwrap_or(Prefix::ALL);
        let side = usize::from(below.addr().bit(common));
        let mut kids = [NONE; 2];
        kids[side] = kid;
        if common == prefix.len() {
            let new = self.add(prefix, kids);
            self.nodes[at as usize].kids[branch] = new;
            return new;
        }
        let new = self.add(prefix, [NONE; 2]);
        kids[1 - side] = new;
        let fork = self.add(fork, kids);
        self.nodes[at as usize].kids[branch] = fork;
        new
    }

    /// The first path of exactly this prefix.
    pub(super) fn get(&self, prefix: Prefix<A>) -> Option<u32> {
        self.find(prefix).map(|node| self.path(node))
    }

    /// The prefix of this node has a route now, and had none.
    pub(super) fn came(&mut self, node: u32) {
        let Self { nodes, routes, hasher, .. } = self;
        let hash = |&at: &u32| hasher.hash_one(prefix::<A>(&nodes[at as usize]));
        routes.insert_unique(hash(&node), node, hash);
    }

    /// The prefix has no route any more: nodes that were there for it alone go.
    pub(super) fn remove(&mut self, prefix: Prefix<A>) {
        let Some(node) = self.find(prefix) else { return };
        let hash = self.hasher.hash_one(prefix);
        if let Ok(entry) = self.routes.find_entry(hash, |&at| at == node) {
            entry.remove();
        }
        self.nodes[node as usize].path = NO_PATH;
        let way: Vec<u32> = self.way(prefix).collect();
        // It may leave its parent with one child and no route.
        for at in (1..way.len()).rev().take(2) {
            let (node, parent) = (way[at], way[at - 1]);
            let Node { kids, path, .. } = self.nodes[node as usize];
            if path != NO_PATH || (kids[0] != NONE && kids[1] != NONE) {
                return;
            }
            let only = kids[0] | kids[1];
            let kids = &mut self.nodes[parent as usize].kids;
            kids.iter_mut().filter(|kid| **kid == node).for_each(|kid| *kid = only);
            self.free.push(node);
        }
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

    fn route(&self, at: u32) -> Option<(Prefix<A>, u32)> {
        let path = self.nodes[at as usize].path;
        (path != NO_PATH).then(|| (self.prefix(at), path))
    }

    /// The prefixes with routes that this one covers, itself included, in order; with their paths.
    pub(super) fn covered(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, u32)> + '_ {
        let at = self.descend(prefix);
        let top = if self.nodes[at as usize].len == prefix.len() {
            Some(at)
        } else {
            self.kid(at, prefix.addr())
                .filter(|(_, below)| prefix.covers(*below))
                .map(|(kid, _)| kid)
        };
        let mut stack: Vec<u32> = top.into_iter().collect();
        std::iter::from_fn(move || {
            let at = stack.pop()?;
            let [left, right] = self.nodes[at as usize].kids;
            stack.extend([right, left].into_iter().filter(|&kid| kid != NONE));
            Some(at)
        })
        .filter_map(|at| self.route(at))
    }

    /// The prefixes with routes, in no order: as they lie in memory, several times as fast as in order.
    pub(super) fn unordered(&self) -> impl Iterator<Item = (Prefix<A>, u32)> + '_ {
        (0..self.nodes.len() as u32).filter_map(|at| self.route(at))
    }

    /// The prefixes with routes from this one on, at most so many.
    pub(super) fn from(&self, prefix: Prefix<A>, most: usize) -> Vec<(Prefix<A>, u32)> {
        // The nodes on the way and, to the right of it, their other children: what is left to visit.
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
            let node = &self.nodes[at as usize];
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
            let [left, right] = self.nodes[at as usize].kids;
            stack.extend([right, left].into_iter().filter(|&kid| kid != NONE));
            found.extend(self.route(at));
        }
        found
    }

    /// How many prefixes have a route.
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// Bytes of the nodes, and of what finds them.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<A>>()
            + self.free.capacity() * 4
            + self.routes.allocation_size()
    }
}
