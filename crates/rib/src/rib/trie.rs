//! The prefixes of one family and VRF: a path-compressed binary trie in one array.
//!
//! A node has a prefix. Its children are longer prefixes inside it, distinguished by the bit after its own
//! length. A node has a route or two children, or is the root, so there are fewer than two nodes for each prefix with
//! a route. Nodes have 32-bit positions in the array, and free positions are used again. A hash table finds the node
//! of a prefix with a route directly: most updates concern such prefixes, and the path from the root costs twenty
//! cache misses.
//!
//! ```text
//!   10.0.0.0/8           node 0: 0.0.0.0/0 ──0── node 1: 10.0.0.0/8, a route
//!   10.1.0.0/16                                      └─0── node 4: 10.0.0.0/14, no route
//!   10.2.0.0/16                                             ├─0── node 2: 10.1.0.0/16
//!                                                           └─1── node 3: 10.2.0.0/16
//! ```

use std::hash::BuildHasher;
use std::ops::Deref;

use fibula_core::{Addr, Prefix};
use hashbrown::{DefaultHashBuilder, HashTable};

pub(super) use super::nodes::{NO_PATH, Nodes};
use super::nodes::{NONE, Node};
use crate::chunks::Chunks;

/// The most nodes that wait for their place in the hash table.
const UNLISTED: usize = 4096;

pub(super) struct Trie<A: Addr> {
    nodes: Nodes<A>,
    free: Vec<u32>,
    /// The nodes with a route, but for those of `unlisted`.
    routes: HashTable<u32>,
    /// Nodes that got a route since the last search in `routes`, with their hashes. While a table is loaded in order,
    /// many are added at once: their accesses, which miss the caches, overlap then.
    unlisted: Vec<(u64, u32)>,
    hasher: DefaultHashBuilder,
    /// Some of the nodes on the path to the prefix of the last search, each below the one before: tables arrive in
    /// order, so the next prefix is usually near.
    last: Vec<u32>,
}

impl<A: Addr> Default for Trie<A> {
    fn default() -> Self {
        let mut trie = Self {
            nodes: Nodes(Chunks::default()),
            free: Vec::new(),
            routes: HashTable::new(),
            unlisted: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            last: Vec::new(),
        };
        trie.add(Prefix::ALL, [NONE; 2]);
        trie
    }
}

impl<A: Addr> Deref for Trie<A> {
    type Target = Nodes<A>;

    fn deref(&self) -> &Nodes<A> {
        &self.nodes
    }
}

impl<A: Addr> Trie<A> {
    fn add(&mut self, prefix: Prefix<A>, kids: [u32; 2]) -> u32 {
        let node = Node { addr: prefix.addr(), kids, path: NO_PATH, len: prefix.len() };
        if let Some(at) = self.free.pop() {
            self.nodes.0[at] = node;
            return at;
        }
        self.nodes.0.push(node);
        u32::try_from(self.nodes.0.len() - 1).expect("fewer than 2^32 nodes")
    }

    /// Number of further prefixes for which there is room.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.0.len() >= u32::MAX as usize - 4
    }

    /// The node of the prefix, created if it does not exist.
    pub(super) fn node(&mut self, prefix: Prefix<A>) -> u32 {
        while let Some(&at) = self.last.last()
            && !self.prefix(at).covers(prefix)
        {
            self.last.pop();
        }
        let near = self.last.last().copied().unwrap_or(0);
        if self.nodes.0[near].len < Self::NEAR
            && let Some(at) = self.find_indexed(prefix)
        {
            return at;
        }
        let Self { nodes, last, .. } = self;
        let at = nodes.descend_from(near, prefix, |at| last.push(at));
        if self.nodes.0[at].len == prefix.len() {
            return at;
        }
        let new = self.grow(at, prefix);
        self.last.push(new);
        new
    }

    /// From a node whose prefix has at least this length, descending to a covered prefix is faster than the hash table,
    /// whose accesses miss the caches.
    const NEAR: u8 = if A::BITS == 32 { 10 } else { 20 };

    /// An immutable copy for readers.
    pub(super) fn copy(&self) -> Nodes<A> {
        self.nodes.clone()
    }

    /// The node of the prefix, if it has a route.
    pub(super) fn find(&self, prefix: Prefix<A>) -> Option<u32> {
        if !self.unlisted.is_empty() {
            let at = self.descend(prefix);
            return (self.prefix(at) == prefix && self.path(at) != NO_PATH).then_some(at);
        }
        let hash = self.hasher.hash_one(prefix);
        self.routes.find(hash, |&at| self.prefix(at) == prefix).copied()
    }

    /// Like [`Trie::find`], always by the hash table.
    pub(super) fn find_indexed(&mut self, prefix: Prefix<A>) -> Option<u32> {
        self.list();
        self.find(prefix)
    }

    /// Adds the nodes that are not yet in the hash table.
    fn list(&mut self) {
        if self.unlisted.is_empty() {
            return;
        }
        let Self { nodes, routes, unlisted, hasher, .. } = self;
        let hash = |&at: &u32| hasher.hash_one(nodes.prefix(at));
        let len = routes.len() + unlisted.len();
        if len > routes.capacity() {
            // In the order of the nodes in memory: the table itself would visit them in the order of hashes.
            let mut larger = HashTable::with_capacity(len.max(routes.len() / 2 * 3));
            for (at, _) in (0..).zip(nodes.0.iter()).filter(|(_, node)| node.path != NO_PATH) {
                larger.insert_unique(hash(&at), at, hash);
            }
            *routes = larger;
            unlisted.clear();
        }
        for (key, at) in unlisted.drain(..) {
            routes.insert_unique(key, at, hash);
        }
    }

    /// The first path of a node's prefix.
    pub(super) fn path(&self, node: u32) -> u32 {
        self.nodes.0[node].path
    }

    pub(super) fn set_path(&mut self, node: u32, path: u32) {
        // A write also reads and changes the counts in front of the chunk.
        if self.path(node) != path {
            self.nodes.0[node].path = path;
        }
    }

    /// A new node for the prefix, somewhere right below `at`.
    fn grow(&mut self, at: u32, prefix: Prefix<A>) -> u32 {
        let branch = usize::from(prefix.addr().bit(self.nodes.0[at].len));
        let Some((kid, below)) = self.kid(at, prefix.addr()) else {
            let new = self.add(prefix, [NONE; 2]);
            self.nodes.0[at].kids[branch] = new;
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
            self.nodes.0[at].kids[branch] = new;
            return new;
        }
        let new = self.add(prefix, [NONE; 2]);
        kids[1 - side] = new;
        let fork = self.add(fork, kids);
        self.nodes.0[at].kids[branch] = fork;
        new
    }

    /// The first path of exactly this prefix.
    pub(super) fn get(&self, prefix: Prefix<A>) -> Option<u32> {
        self.find(prefix).map(|node| self.path(node))
    }

    /// Gives the path to the node's prefix, which has none yet.
    pub(super) fn came(&mut self, node: u32, path: u32) {
        self.set_path(node, path);
        self.unlisted.push((self.hasher.hash_one(self.prefix(node)), node));
        if self.unlisted.len() >= UNLISTED {
            self.list();
        }
    }

    /// Removes the route of the prefix, and the nodes that only this route needed.
    pub(super) fn remove(&mut self, prefix: Prefix<A>) {
        let Some(node) = self.find_indexed(prefix) else { return };
        self.last.clear();
        let hash = self.hasher.hash_one(prefix);
        if let Ok(entry) = self.routes.find_entry(hash, |&at| at == node) {
            entry.remove();
        }
        self.nodes.0[node].path = NO_PATH;
        let way: Vec<u32> = self.way(prefix).collect();
        // The removal may leave the parent with one child and no route.
        for at in (1..way.len()).rev().take(2) {
            let (node, parent) = (way[at], way[at - 1]);
            let Node { kids, path, .. } = self.nodes.0[node];
            if path != NO_PATH || (kids[0] != NONE && kids[1] != NONE) {
                return;
            }
            let only = kids[0] | kids[1];
            let kids = self.nodes.0[parent].kids;
            self.nodes.0[parent].kids = kids.map(|kid| if kid == node { only } else { kid });
            self.free.push(node);
        }
    }

    /// Number of prefixes with a route.
    pub(super) fn len(&self) -> usize {
        self.routes.len() + self.unlisted.len()
    }

    /// Bytes of the nodes and of their index.
    pub(super) fn memory(&self) -> usize {
        let unlisted = self.unlisted.capacity() * size_of::<(u64, u32)>();
        self.nodes.0.memory() + self.free.capacity() * 4 + self.routes.allocation_size() + unlisted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Prefixes in order and at random are added, changed and removed. The trie equals a map, and each copy equals
        /// the map at the time of the copy.
        #[test]
        fn as_a_map_does(
            runs in prop::collection::vec((any::<u32>(), 0..=32u8, 1..30u32, 0..4u8), 0..60)
        ) {
            let (mut trie, mut map, mut copies) = (Trie::<u32>::default(), BTreeMap::new(), Vec::new());
            for (path, (addr, len, count, kind)) in (0..).zip(runs) {
                for i in 0..count {
                    let addr = (addr & 0x803f_ff00).wrapping_add(i << 7);
                    let prefix = Prefix::masked(addr, if i % 5 == 0 { len / 2 } else { len }).unwrap();
                    if kind > 0 {
                        let node = trie.node(prefix);
                        if trie.path(node) == NO_PATH {
                            trie.came(node, path);
                        }
                        trie.set_path(node, path);
                        map.insert(prefix, path);
                    } else if map.remove(&prefix).is_some() {
                        trie.remove(prefix);
                    }
                }
                if kind == 1 {
                    copies.push((trie.copy(), map.clone()));
                }
            }
            prop_assert_eq!(trie.len(), map.len());
            for (prefix, path) in &map {
                prop_assert_eq!(trie.get(*prefix), Some(*path));
            }
            copies.push((trie.copy(), map));
            for (nodes, map) in copies {
                prop_assert!(nodes.covered(Prefix::ALL).eq(map.into_iter()));
            }
        }
    }
}
