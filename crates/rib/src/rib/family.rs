//! The paths of one family and VRF: for each prefix a list, the best one first.

use fibula_core::Prefix;
use hashbrown::HashMap;

use super::decision::{Contender, Preference};
use super::sets::Sets;
use super::trie::{NO_PATH, Packed, Trie};
use super::{AnyChange, Change, RibFamily};
use crate::TableError;

/// One path of one peer.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) peer: u32,
    pub(super) path_id: u32,
    pub(super) set: u32,
    /// The next path of the prefix, or of the list of free ones.
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

/// The routes of one family and VRF.
pub(super) struct Family<A: Packed> {
    pub(super) trie: Trie<A>,
    pub(super) paths: Vec<Node>,
    /// The first of the paths that are free, [`NO_PATH`] if none is.
    free: u32,
    /// How many paths are in use.
    pub(super) used: usize,
    /// How many of them each peer has: most sessions that end had nothing to say.
    peers: HashMap<u32, u32>,
}

impl<A: Packed> Default for Family<A> {
    fn default() -> Self {
        Self {
            trie: Trie::default(),
            paths: Vec::new(),
            free: NO_PATH,
            used: 0,
            peers: HashMap::new(),
        }
    }
}

impl<A: Packed> Family<A> {
    pub(super) fn check_room(&self) -> Result<(), TableError> {
        if self.trie.is_full() || self.paths.len() >= NO_PATH as usize {
            return Err(TableError::Limit { what: "routes" });
        }
        Ok(())
    }

    /// The paths from this one on, with their places.
    pub(super) fn list(&self, first: u32) -> impl Iterator<Item = (u32, Node)> + '_ {
        let node = |at: u32| (at != NO_PATH).then(|| (at, self.paths[at as usize]));
        std::iter::successors(node(first), move |(_, last)| node(last.next))
    }

    /// Puts the best path first; returns the first one.
    fn decide(&mut self, first: u32, sets: &Sets, preference: &Preference) -> u32 {
        if self.paths[first as usize].next == NO_PATH {
            return first;
        }
        let contender = |node: &Node| Contender {
            peer: node.peer,
            path_id: node.path_id,
            rank: sets.get(node.set).rank(),
        };
        let mut best = (first, contender(&self.paths[first as usize]));
        let mut before_best = NO_PATH;
        let mut before = first;
        for (at, node) in self.list(first).skip(1) {
            let next = contender(&node);
            if preference.compare(&next, &best.1).0.is_lt() {
                best = (at, next);
                before_best = before;
            }
            before = at;
        }
        let best = best.0;
        if before_best != NO_PATH {
            self.paths[before_best as usize].next = self.paths[best as usize].next;
            self.paths[best as usize].next = first;
        }
        best
    }

    /// The best route as a change, unless it is what it was.
    fn changed(
        &self,
        prefix: Prefix<A>,
        old: Option<u32>,
        first: u32,
        sets: &Sets,
    ) -> Option<Change<A>> {
        let set = self.paths[first as usize].set;
        (old != Some(set)).then(|| Change { prefix, best: Some((set, sets.get(set).clone())) })
    }

    /// The peer's path of the prefix has this set from now on, one of whose references it takes.
    pub(super) fn announce(
        &mut self,
        prefix: Prefix<A>,
        peer: u32,
        path_id: u32,
        set: u32,
        sets: &mut Sets,
        preference: &Preference,
    ) -> Option<Change<A>> {
        let node = self.trie.node(prefix);
        let first = self.trie.path(node);
        let old = (first != NO_PATH).then(|| self.paths[first as usize].set);
        let known = self.list(first).find(|(_, n)| n.peer == peer && n.path_id == path_id);
        let first = match known {
            Some((at, path)) => {
                self.paths[at as usize].set = set;
                if path.set == set {
                    sets.release(set); // it had a reference already
                    return None;
                }
                // Decided before the old set goes: its number must not be used again for this one.
                let first = self.decide(first, sets, preference);
                let change = self.changed(prefix, old, first, sets);
                sets.release(path.set);
                self.trie.set_path(node, first);
                return change;
            }
            None => {
                let new = self.add(Node { peer, path_id, set, next: first });
                if first == NO_PATH {
                    self.trie.came(node);
                }
                self.decide(new, sets, preference)
            }
        };
        self.trie.set_path(node, first);
        self.changed(prefix, old, first, sets)
    }

    fn add(&mut self, node: Node) -> u32 {
        self.used += 1;
        *self.peers.entry(node.peer).or_default() += 1;
        if self.free != NO_PATH {
            let at = self.free;
            self.free = self.paths[at as usize].next;
            self.paths[at as usize] = node;
            return at;
        }
        grow(&mut self.paths);
        self.paths.push(node);
        (self.paths.len() - 1) as u32
    }

    /// The peer takes its path of the prefix back.
    pub(super) fn withdraw(
        &mut self,
        prefix: Prefix<A>,
        peer: u32,
        path_id: u32,
        sets: &mut Sets,
        preference: &Preference,
    ) -> Option<Change<A>> {
        let place = self.trie.find(prefix)?;
        let first = self.trie.path(place);
        let (at, node) = self.list(first).find(|(_, n)| n.peer == peer && n.path_id == path_id)?;
        let old = self.paths[first as usize].set;
        let before = self.list(first).find(|(_, n)| n.next == at).map(|(before, _)| before);
        self.paths[at as usize].next = self.free;
        self.free = at;
        self.used -= 1;
        if let Some(paths) = self.peers.get_mut(&peer) {
            *paths -= 1;
        }
        let change = match before {
            Some(before) => {
                // Not the best one: nothing changes for those who forward.
                self.paths[before as usize].next = node.next;
                None
            }
            None if node.next == NO_PATH => {
                self.trie.remove(prefix);
                Some(Change { prefix, best: None })
            }
            None => {
                let first = self.decide(node.next, sets, preference);
                self.trie.set_path(place, first);
                self.changed(prefix, Some(old), first, sets)
            }
        };
        sets.release(node.set);
        change
    }

    pub(super) fn peer_down(
        &mut self,
        peer: u32,
        sets: &mut Sets,
        preference: &Preference,
        mut changed: impl FnMut(AnyChange),
    ) where
        A: RibFamily,
    {
        let known = self.peers.get(&peer).map_or(0, |&paths| paths as usize);
        if known == 0 {
            return;
        }
        let of_peer = |(prefix, first): (Prefix<A>, u32)| {
            let list = self.list(first).filter(|(_, node)| node.peer == peer);
            list.map(move |(_, node)| (prefix, node.path_id)).collect::<Vec<_>>()
        };
        let gone: Vec<_> = self.trie.unordered().flat_map(of_peer).take(known).collect();
        for (prefix, path_id) in gone {
            if let Some(change) = self.withdraw(prefix, peer, path_id, sets, preference) {
                changed(A::any(change));
            }
        }
    }
}

/// Makes room for one more, by an eighth: doubling would leave half of the largest arrays empty. Little
/// at first: a checkpoint may name millions of VRFs.
pub(super) fn grow<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / 8 + 8);
    }
}
