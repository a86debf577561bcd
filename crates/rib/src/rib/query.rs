//! The queries of a [`Rib`], and its size.

use std::collections::BTreeMap;

use fibula_core::{Addr, FamilyType, Hop, PerFamily, Prefix, Route, Routes, Vrf};
use hashbrown::HashMap;

use super::decision::Contender;
use super::family::{FamilyCopy, FamilyPaths, Node, PeerParity};
use super::{AttributeSet, Decision, Dump, Path, Peer, Rib, Tables};
use crate::chunks::Chunks;

impl Rib {
    /// The existing VRFs.
    pub fn vrfs(&self) -> impl Iterator<Item = Vrf> + '_ {
        self.vrfs.keys().copied()
    }

    fn family<A: Addr>(&self, vrf: Vrf) -> Option<&FamilyPaths<A>> {
        self.vrfs.get(&vrf).map(PerFamily::get::<A>)
    }

    fn path<A: Addr>(&self, family: &FamilyPaths<A>, at: u32) -> Path {
        let Node { speaker, path_id, set, .. } = family.paths[at];
        Path { peer: speaker.peer(), path_id, hop: set, attributes: self.sets.get(set).clone() }
    }

    /// Number of prefixes with a route.
    pub fn len<A: Addr>(&self, vrf: Vrf) -> usize {
        self.family::<A>(vrf).map_or(0, |family| family.trie.len())
    }

    /// Number of paths of the peer, over all VRFs.
    pub fn paths_of<A: Addr>(&self, peer: u32) -> usize {
        self.peer_vrfs
            .of(peer)
            .map(|vrf| self.family::<A>(vrf).map_or(0, |of| of.of_peer(peer)))
            .sum()
    }

    /// Number of paths of the peer that are the best of their prefixes, over all VRFs.
    pub fn best_paths_of<A: Addr>(&self, peer: u32) -> usize {
        self.peer_vrfs
            .of(peer)
            .map(|vrf| self.family::<A>(vrf).map_or(0, |of| of.best_of_peer(peer)))
            .sum()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The best path of exactly this prefix.
    pub fn exact<A: Addr>(&self, vrf: Vrf, prefix: Prefix<A>) -> Option<Path> {
        let family = self.family::<A>(vrf)?;
        family.trie.get(prefix).map(|at| self.path(family, at))
    }

    /// All paths of exactly this prefix, the best first.
    pub fn paths<A: Addr>(&self, vrf: Vrf, prefix: Prefix<A>) -> Vec<Path> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        let first = family.trie.get(prefix);
        let found = first.into_iter().flat_map(|at| family.list(at));
        found.map(|(at, _)| self.path(family, at)).collect()
    }

    /// The longest prefix that covers the address, with its best path.
    pub fn longest<A: Addr>(&self, vrf: Vrf, addr: A) -> Option<(Prefix<A>, Path)> {
        let family = self.family::<A>(vrf)?;
        family.trie.longest(addr).map(|(prefix, at)| (prefix, self.path(family, at)))
    }

    /// The hop of the address: the same answer as [`Rib::longest`], but faster.
    pub fn lookup<A: Addr>(&self, vrf: Vrf, addr: A) -> Hop {
        let found = self
            .family::<A>(vrf)
            .and_then(|family| family.trie.longest(addr).map(|(_, at)| family.paths[at].set));
        found.map_or(Hop::NONE, Hop::new)
    }

    /// The prefixes that cover this one, itself included, longest first, with their best paths.
    pub fn covering<A: Addr>(&self, vrf: Vrf, prefix: Prefix<A>) -> Vec<(Prefix<A>, Path)> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        let found = family.trie.covering(prefix).into_iter();
        found.map(|(prefix, at)| (prefix, self.path(family, at))).collect()
    }

    /// The prefixes that this one covers, itself included, in order, with their best paths.
    pub fn covered<A: Addr>(
        &self,
        vrf: Vrf,
        prefix: Prefix<A>,
    ) -> impl Iterator<Item = (Prefix<A>, Path)> + '_ {
        let family = self.family::<A>(vrf);
        family.into_iter().flat_map(move |family| {
            let found = family.trie.covered(prefix);
            found.map(move |(prefix, at)| (prefix, self.path(family, at)))
        })
    }

    /// All prefixes in order, with their best paths.
    pub fn iter<A: Addr>(&self, vrf: Vrf) -> impl Iterator<Item = (Prefix<A>, Path)> + '_ {
        self.covered(vrf, Prefix::ALL)
    }

    /// The best routes, as engines compile them.
    pub fn routes<A: Addr>(&self, vrf: Vrf) -> Routes<A> {
        let Some(family) = self.family::<A>(vrf) else { return Routes::default() };
        let hop = |at: u32| Hop::new(family.paths[at].set);
        let found = family.trie.covered(Prefix::ALL);
        Routes::from_unsorted(found.map(|(prefix, at)| Route { prefix, hop: hop(at) }).collect())
    }

    /// The first prefixes from this one on, in order, up to a maximum number, for reading the table in parts.
    pub fn part<A: Addr>(&self, vrf: Vrf, from: Prefix<A>, most: usize) -> Vec<Prefix<A>> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        family.trie.from(from, most).into_iter().map(|(prefix, _)| prefix).collect()
    }

    /// Like [`Rib::part`], with the attributes of the best paths, for searching a table in parts.
    pub fn part_with_attributes<A: Addr>(
        &self,
        vrf: Vrf,
        from: Prefix<A>,
        most: usize,
    ) -> impl Iterator<Item = (Prefix<A>, &AttributeSet)> {
        self.family::<A>(vrf).into_iter().flat_map(move |family| {
            let found = family.trie.from(from, most).into_iter();
            found.map(move |(prefix, at)| (prefix, self.sets.get(family.paths[at].set)))
        })
    }

    /// Like [`Rib::part`], with the attributes of this peer's path; `None` where it has none. Of several paths of the
    /// peer it is the one that [`Rib::paths`] has first.
    pub fn part_of_peer<A: Addr>(
        &self,
        vrf: Vrf,
        from: Prefix<A>,
        most: usize,
        peer: u32,
    ) -> impl Iterator<Item = (Prefix<A>, Option<&AttributeSet>)> {
        self.family::<A>(vrf).into_iter().flat_map(move |family| {
            let of_peer = move |first| {
                let path = family.list(first).find(|(_, node)| node.speaker.peer() == peer);
                path.map(|(_, node)| self.sets.get(node.set))
            };
            let found = family.trie.from(from, most).into_iter();
            found.map(move |(prefix, first)| (prefix, of_peer(first)))
        })
    }

    /// The attribute sets by number; `None` where a number is free.
    pub(crate) fn sets(&self) -> &Chunks<Option<AttributeSet>> {
        self.sets.all()
    }

    /// A copy of all current prefixes and paths, by VRF, which shares memory and takes no time.
    pub(crate) fn copies(&self) -> Vec<(Vrf, PerFamily<Copies>)> {
        let copy = |(&vrf, tables): (&Vrf, &PerFamily<Tables>)| {
            (vrf, PerFamily { v4: tables.v4.copy(), v6: tables.v6.copy() })
        };
        self.vrfs.iter().map(copy).collect()
    }

    /// The prefixes and paths of one VRF; `None` if it has none.
    pub(crate) fn copy_of(&self, vrf: Vrf) -> Option<PerFamily<Copies>> {
        let tables = self.vrfs.get(&vrf)?;
        Some(PerFamily { v4: tables.v4.copy(), v6: tables.v6.copy() })
    }

    /// The peers of a VRF's best paths, by number, with the numbers of these.
    pub(crate) fn holders(&self, vrf: Vrf) -> BTreeMap<u32, (Peer, u64)> {
        let mut holders = BTreeMap::new();
        let tables = self.vrfs.get(&vrf).into_iter();
        let counts = tables.flat_map(|tables| tables.v4.holders().chain(tables.v6.holders()));
        for (number, best) in counts {
            if let Some(peer) = self.peers().get(number) {
                holders.entry(number).or_insert_with(|| (peer.clone(), 0)).1 += u64::from(best);
            }
        }
        holders
    }

    /// Determines which paths are stale now.
    pub(crate) fn staleness(&self) -> Staleness {
        Staleness(self.dumps.clone())
    }

    /// The explanation why the best path of exactly this prefix is the best.
    pub fn explain<A: Addr>(&self, vrf: Vrf, prefix: Prefix<A>) -> Option<Decision> {
        let mut paths = self.paths(vrf, prefix);
        let contender = |path: &Path| Contender {
            peer: path.peer,
            path_id: path.path_id,
            rank: path.attributes.encoded().rank(),
        };
        let best = contender(paths.first()?);
        paths.sort_by(|a, b| self.preference.compare(&contender(a), &contender(b)).0);
        let step = |path: &Path| self.preference.compare(&best, &contender(path)).1;
        let steps: Vec<_> = paths.iter().map(step).collect();
        let peers = paths.iter().map(|path| self.peers.get(path.peer).cloned()).collect();
        let lost = steps.into_iter().enumerate().map(|(i, step)| (i > 0).then_some(step));
        Some(Decision {
            prefix: prefix.into(),
            paths: paths.into_iter().zip(lost).collect(),
            peers,
        })
    }

    /// The size of its contents.
    pub fn memory(&self) -> RibMemory {
        let mut memory = RibMemory {
            sets: self.sets.len(),
            set_bytes: self.sets.memory(),
            ..RibMemory::default()
        };
        for tables in self.vrfs.values() {
            memory.add(&tables.v4);
            memory.add(&tables.v6);
        }
        memory
    }
}

/// The prefixes and paths of each family.
pub(crate) struct Copies;

impl FamilyType for Copies {
    type Of<A: Addr> = FamilyCopy<A>;
}

/// Which paths were stale at one moment.
pub(crate) struct Staleness(HashMap<u32, Dump>);

impl Staleness {
    /// Whether the peer is sending its whole table again and has not announced this path.
    pub(crate) fn is_stale(&self, speaker: PeerParity) -> bool {
        let dump = self.0.get(&speaker.peer()).copied().unwrap_or_default();
        speaker != PeerParity::new(speaker.peer(), dump.is_odd)
    }
}

/// The size of a [`Rib`]'s contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RibMemory {
    /// Number of paths of all peers.
    pub routes: usize,
    /// Number of prefixes with at least one path.
    pub prefixes: usize,
    /// Bytes of prefixes and paths.
    pub route_bytes: usize,
    /// Number of distinct attribute sets.
    pub sets: usize,
    /// Bytes of the attribute sets.
    pub set_bytes: usize,
}

impl RibMemory {
    fn add<A: Addr>(&mut self, family: &FamilyPaths<A>) {
        self.routes += family.used;
        self.prefixes += family.trie.len();
        self.route_bytes += family.trie.memory() + family.paths.memory();
    }

    /// Bytes for each route, without attributes; 0 without routes.
    pub fn per_route(&self) -> f64 {
        if self.routes == 0 { 0.0 } else { self.route_bytes as f64 / self.routes as f64 }
    }
}
