//! The paths of one family and VRF: for each prefix a list, the best one first.

use fibula_core::{Addr, Prefix};
use hashbrown::HashMap;

use super::decision::{Contender, Preference};
use super::sets::Sets;
use super::trie::{NO_PATH, Nodes, Trie};
use super::{Change, Limits};
use crate::TableError;
use crate::chunks::Chunks;

/// A peer, and in the highest bit the parity of its dump that announced a path: a path of another
/// parity than its peer's is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerParity(u32);

impl PeerParity {
    const ODD: u32 = 1 << 31;
    /// The largest number of a peer.
    pub(super) const MAX_PEER: u32 = Self::ODD - 1;

    /// The peer in a dump of this parity.
    pub(super) fn new(peer: u32, odd: bool) -> Self {
        Self(peer | if odd { Self::ODD } else { 0 })
    }

    /// The number of the peer.
    pub(crate) fn peer(self) -> u32 {
        self.0 & Self::MAX_PEER
    }

    /// The same peer in the dump before.
    fn before(self) -> Self {
        Self(self.0 ^ Self::ODD)
    }
}

/// One path of one peer.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) speaker: PeerParity,
    pub(super) path_id: u32,
    pub(super) set: u32,
    /// The next path of the prefix, or of the list of free ones.
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

/// The routes of one family and VRF.
pub(super) struct FamilyPaths<A: Addr> {
    pub(super) trie: Trie<A>,
    pub(super) paths: Chunks<Node>,
    /// The first of the paths that are free, [`NO_PATH`] if none is.
    free: u32,
    /// Number of paths in use.
    pub(super) used: usize,
    /// Whether the path that was added last was the first one of its peer.
    pub(super) is_first: bool,
    /// Number of paths of each peer: most sessions that end had no routes, and most dumps leave nothing stale.
    peers: HashMap<u32, Paths>,
}

/// Number of paths of a peer.
#[derive(Clone, Copy, Default)]
struct Paths {
    all: u32,
    /// Number of these paths that its latest dump does not contain yet.
    stale: u32,
    /// Number of these paths that are the best of their prefixes.
    best: u32,
}

impl<A: Addr> Default for FamilyPaths<A> {
    fn default() -> Self {
        Self {
            trie: Trie::default(),
            paths: Chunks::default(),
            free: NO_PATH,
            used: 0,
            is_first: false,
            peers: HashMap::new(),
        }
    }
}

impl<A: Addr> FamilyPaths<A> {
    pub(super) fn check_room(&self) -> Result<(), TableError> {
        if self.trie.is_full() || self.paths.len() >= NO_PATH as usize {
            return Err(TableError::Limit { what: "routes" });
        }
        Ok(())
    }

    /// The paths from this one on, with their places.
    pub(super) fn list(&self, first: u32) -> impl Iterator<Item = (u32, Node)> + '_ {
        list(&self.paths, first)
    }

    /// A copy of the current prefixes and paths, which shares memory and takes no time.
    pub(super) fn copy(&self) -> FamilyCopy<A> {
        FamilyCopy { nodes: self.trie.copy(), paths: self.paths.clone(), len: self.trie.len() }
    }

    /// Puts the best path first; returns the first one.
    fn decide(&mut self, first: u32, sets: &Sets, preference: &Preference) -> u32 {
        if self.paths[first].next == NO_PATH {
            return first;
        }
        let contender = |node: &Node| Contender {
            peer: node.speaker.peer(),
            path_id: node.path_id,
            rank: sets.get(node.set).encoded().rank(),
        };
        let mut best = (first, contender(&self.paths[first]));
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
            self.paths[before_best].next = self.paths[best].next;
            self.paths[best].next = first;
        }
        best
    }

    /// The best route as a change, if it differs from before.
    fn changed(
        &self,
        prefix: Prefix<A>,
        old: Option<u32>,
        first: u32,
        sets: &Sets,
    ) -> Option<Change<A>> {
        let Node { speaker, set, .. } = self.paths[first];
        (old != Some(set)).then(|| Change {
            prefix,
            peer: speaker.peer(),
            best: Some((set, sets.get(set).clone())),
            last_origin: None,
        })
    }

    /// Sets the attribute set of the peer's path, and takes over one reference to it. A peer with the maximum number of
    /// paths gets no further one.
    pub(super) fn announce(
        &mut self,
        prefix: Prefix<A>,
        (speaker, path_id): (PeerParity, u32),
        set: u32,
        (sets, preference, (most, limits)): (&mut Sets, &Preference, (u32, Limits)),
    ) -> Result<Option<Change<A>>, TableError> {
        if most < u32::MAX && self.peers.get(&speaker.peer()).map_or(0, |paths| paths.all) >= most {
            let first = self.trie.get(prefix).unwrap_or(NO_PATH);
            if self.find(first, speaker, path_id).is_none() {
                sets.release(set);
                let of_peer = most == limits.peer_paths;
                let most = if of_peer { most.into() } else { limits.paths as u64 };
                return Err(TableError::Full { most, of_peer });
            }
        }
        let node = self.trie.node(prefix);
        let first = self.trie.path(node);
        let old = (first != NO_PATH).then(|| self.paths[first].set);
        let holder = (first != NO_PATH).then(|| self.paths[first].speaker);
        let first = match self.find(first, speaker, path_id) {
            Some((at, path)) => {
                self.paths[at].set = set;
                if path.speaker != speaker {
                    self.paths[at].speaker = speaker;
                    self.count(speaker).stale -= 1;
                }
                if path.set == set {
                    sets.release(set); // it had a reference already
                    return Ok(None);
                }
                // Decided before the old set is freed: its number must not be reused for the new one.
                let first = self.decide(first, sets, preference);
                let change = self.changed(prefix, old, first, sets);
                sets.release(path.set);
                self.trie.set_path(node, first);
                self.held(holder, Some(self.paths[first].speaker));
                return Ok(change);
            }
            None => {
                let new = self.add(Node { speaker, path_id, set, next: first });
                if first == NO_PATH {
                    self.trie.came(node, new);
                    new
                } else {
                    let first = self.decide(new, sets, preference);
                    self.trie.set_path(node, first);
                    first
                }
            }
        };
        self.held(holder, Some(self.paths[first].speaker));
        Ok(self.changed(prefix, old, first, sets))
    }

    /// Counts that the best path of a prefix was of one peer and is of another.
    fn held(&mut self, before: Option<PeerParity>, now: Option<PeerParity>) {
        if before.map(PeerParity::peer) == now.map(PeerParity::peer) {
            return;
        }
        if let Some(before) = before {
            self.count(before).best -= 1;
        }
        if let Some(now) = now {
            self.count(now).best += 1;
        }
    }

    /// Number of paths of this peer.
    pub(super) fn of_peer(&self, peer: u32) -> usize {
        self.peers.get(&peer).map_or(0, |paths| paths.all as usize)
    }

    /// Number of paths of this peer that are the best of their prefixes.
    pub(super) fn best_of_peer(&self, peer: u32) -> usize {
        self.peers.get(&peer).map_or(0, |paths| paths.best as usize)
    }

    /// The peers of best paths, with the numbers of these.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.peers
            .iter()
            .filter(|(_, paths)| paths.best > 0)
            .map(|(&peer, paths)| (peer, paths.best))
    }

    /// The peer's path with this identifier, in the list that begins here.
    fn find(&self, first: u32, speaker: PeerParity, path_id: u32) -> Option<(u32, Node)> {
        let peer = speaker.peer();
        self.list(first).find(|(_, n)| n.speaker.peer() == peer && n.path_id == path_id)
    }

    fn count(&mut self, speaker: PeerParity) -> &mut Paths {
        self.peers.entry(speaker.peer()).or_default()
    }

    fn add(&mut self, node: Node) -> u32 {
        self.used += 1;
        let paths = self.count(node.speaker);
        paths.all += 1;
        self.is_first = paths.all == 1;
        if self.free != NO_PATH {
            let at = self.free;
            self.free = self.paths[at].next;
            self.paths[at] = node;
            return at;
        }
        self.paths.push(node);
        (self.paths.len() - 1) as u32
    }

    /// Withdraws the peer's path of the prefix.
    pub(super) fn withdraw(
        &mut self,
        prefix: Prefix<A>,
        (speaker, path_id): (PeerParity, u32),
        sets: &mut Sets,
        preference: &Preference,
    ) -> Option<Change<A>> {
        let place = self.trie.find_indexed(prefix)?;
        let first = self.trie.path(place);
        let (at, node) = self.find(first, speaker, path_id)?;
        let old = self.paths[first].set;
        let before = self.list(first).find(|(_, n)| n.next == at).map(|(before, _)| before);
        self.paths[at].next = self.free;
        self.free = at;
        self.used -= 1;
        let paths = self.count(speaker);
        paths.all -= 1;
        paths.stale -= u32::from(node.speaker != speaker);
        let is_last = paths.all == 0;
        let change = match before {
            Some(before) => {
                // Not the best path, so the best route does not change.
                self.paths[before].next = node.next;
                None
            }
            None if node.next == NO_PATH => {
                self.trie.remove(prefix);
                self.held(Some(speaker), None);
                let last_origin = sets.get(node.set).bgp().and_then(|bgp| bgp.origin_as);
                Some(Change { prefix, peer: speaker.peer(), best: None, last_origin })
            }
            None => {
                let first = self.decide(node.next, sets, preference);
                self.trie.set_path(place, first);
                self.held(Some(speaker), Some(self.paths[first].speaker));
                self.changed(prefix, Some(old), first, sets)
            }
        };
        if is_last {
            self.peers.remove(&speaker.peer());
            if self.peers.len() < self.peers.capacity() / 4 {
                self.peers.shrink_to_fit();
            }
        }
        sets.release(node.set);
        change
    }

    /// Marks all paths of the peers as stale. The speakers are the peers in the dumps that begin. This takes no time
    /// unless a previous dump is still open: the paths that it announced already have the new parity.
    pub(super) fn mark_stale(&mut self, peers: &[(PeerParity, bool)]) {
        let mut announced = HashMap::new();
        for &(speaker, is_open) in peers {
            let Some(paths) = self.peers.get_mut(&speaker.peer()) else { continue };
            let stale = std::mem::replace(&mut paths.stale, paths.all);
            if is_open && stale < paths.all {
                announced.insert(speaker.peer(), speaker);
            }
        }
        if !announced.is_empty() {
            // Free nodes may be changed too, which does no harm.
            let named = |node: &Node| announced.get(&node.speaker.peer()) == Some(&node.speaker);
            self.paths.change(named, |node| node.speaker = node.speaker.before());
        }
    }

    /// Withdraws the stale paths of the peers, or all of their paths. However many peers there are, the table is read
    /// once, and not at all if there are no such paths.
    pub(super) fn withdraw_all(
        &mut self,
        (peers, is_sweep): (&[PeerParity], bool),
        sets: &mut Sets,
        preference: &Preference,
        mut changed: impl FnMut(Change<A>),
    ) {
        let of_peer = |speaker: &PeerParity| {
            let paths = self.peers.get(&speaker.peer()).copied().unwrap_or_default();
            if is_sweep { paths.stale } else { paths.all }
        };
        let has_some = |speaker: &&PeerParity| of_peer(speaker) > 0;
        let peers: Vec<PeerParity> = peers.iter().filter(has_some).copied().collect();
        let count: usize = peers.iter().map(|speaker| of_peer(speaker) as usize).sum();
        // The speaker that a path's peer is now.
        let many: HashMap<u32, PeerParity> = match peers.len() {
            0 => return,
            1 => HashMap::new(),
            _ => peers.iter().map(|speaker| (speaker.peer(), *speaker)).collect(),
        };
        let speaker = |node: &Node| match peers[..] {
            [only] => (node.speaker.peer() == only.peer()).then_some(only),
            _ => many.get(&node.speaker.peer()).copied(),
        };
        let is_over = |node: &Node| speaker(node).filter(|now| !is_sweep || node.speaker != *now);
        let of_prefix = |(prefix, first): (Prefix<A>, u32)| {
            let list = self.list(first);
            let over = list.filter_map(|(_, node)| Some((is_over(&node)?, node.path_id)));
            over.map(move |path| (prefix, path)).collect::<Vec<_>>()
        };
        let gone: Vec<_> = self.trie.unordered().flat_map(of_prefix).take(count).collect();
        for (prefix, path) in gone {
            if let Some(change) = self.withdraw(prefix, path, sets, preference) {
                changed(change);
            }
        }
    }

    /// Marks the path of the peer that was just announced as stale, as a checkpoint has it.
    pub(super) fn restore_stale(&mut self, prefix: Prefix<A>, speaker: PeerParity, path_id: u32) {
        let first = self.trie.get(prefix).unwrap_or(NO_PATH);
        if let Some((at, _)) = self.find(first, speaker, path_id) {
            self.paths[at].speaker = speaker.before();
            self.count(speaker).stale += 1;
        }
    }
}

/// The paths from this one on, with their places.
fn list(paths: &Chunks<Node>, first: u32) -> impl Iterator<Item = (u32, Node)> + '_ {
    let node = move |at: u32| (at != NO_PATH).then(|| (at, paths[at]));
    std::iter::successors(node(first), move |(_, last)| node(last.next))
}

/// The prefixes and paths of a family and VRF at one moment.
pub(crate) struct FamilyCopy<A: Addr> {
    nodes: Nodes<A>,
    paths: Chunks<Node>,
    len: usize,
}

impl<A: Addr> FamilyCopy<A> {
    /// Number of prefixes with a route.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All prefixes in order, with the peers and sets of their best paths.
    pub(crate) fn best(&self) -> impl Iterator<Item = (Prefix<A>, u32, u32)> + '_ {
        self.nodes.covered(Prefix::ALL).map(|(prefix, first)| {
            let Node { speaker, set, .. } = self.paths[first];
            (prefix, speaker.peer(), set)
        })
    }

    /// All paths in order of prefixes, the best one of each first: its peer, identifier and set.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Prefix<A>, PeerParity, u32, u32)> + '_ {
        self.nodes.covered(Prefix::ALL).flat_map(|(prefix, first)| {
            let paths = list(&self.paths, first);
            paths
                .map(move |(_, Node { speaker, path_id, set, .. })| (prefix, speaker, path_id, set))
        })
    }
}
