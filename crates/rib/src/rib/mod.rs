//! The authoritative table: what every peer says, and which of it is best.
//!
//! A [`Rib`] holds both families of several VRFs: for each prefix the paths of its peers, the best one
//! first, and for each path the number of its attribute set. Sets are interned with reference counts;
//! the number of the best path's set is the [`Hop`] that engines answer with.
//!
//! ```text
//!   update ─► peer's path of the prefix changes ─► best path anew ─► Change {prefix, hop} if that changed
//!
//!   Trie<A>: prefix ─► path ─► path ─► ..       path: peer, path id, attribute set, next path; 16 bytes
//! ```
//!
//! Invariants:
//! - a prefix is in the trie with a path exactly if some peer announced it and did not take it back;
//! - the first path of a prefix is the one that [`Preference`] puts first;
//! - a set has as many references as paths have its number.

mod decision;
mod family;
pub(crate) mod names;
pub(crate) mod set;
mod sets;
mod trie;

use std::collections::BTreeMap;

use fibula_core::{Addr, AnyPrefix, Change as Said, Hop, Prefix, Route, Routes, Update};
use hashbrown::HashMap;

use crate::{StoredFamily, TableError};
use decision::Contender;
pub use decision::{Decision, Path, Peer, Preference, Step};
use family::{Family, Node};
pub use set::AttributeSet;
use sets::Sets;
use trie::Packed;

/// A routing instance; 0 is the global one.
pub type Vrf = u32;

/// A change of the best route of a prefix: what a forwarding table has to follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<A: Addr> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// The attributes' number and the attributes; `None` if the prefix has no route any more.
    pub best: Option<(u32, AttributeSet)>,
}

impl<A: Addr> Change<A> {
    /// The hop: the number of the attributes, or [`Hop::NONE`].
    pub fn hop(&self) -> Hop {
        self.best.as_ref().map_or(Hop::NONE, |(number, _)| Hop::new(*number))
    }
}

/// A [`Change`] of either family.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyChange {
    /// Of an IPv4 prefix.
    V4(Change<u32>),
    /// Of an IPv6 prefix.
    V6(Change<u128>),
}

/// The tables of one VRF.
#[derive(Default)]
struct Tables {
    v4: Family<u32>,
    v6: Family<u128>,
}

/// Where a family's tables lie in a VRF's.
#[expect(private_interfaces, private_bounds, reason = "sealed: for u32 and u128, here")]
pub trait RibFamily: StoredFamily + Packed {
    #[doc(hidden)]
    fn family(tables: &Tables) -> &Family<Self>;
    #[doc(hidden)]
    fn family_mut(tables: &mut Tables) -> &mut Family<Self>;
    #[doc(hidden)]
    fn any(change: Change<Self>) -> AnyChange;
}

macro_rules! rib_family {
    ($addr:ty, $field:ident, $any:ident) => {
        #[expect(private_interfaces, reason = "as the trait")]
        impl RibFamily for $addr {
            fn family(tables: &Tables) -> &Family<Self> {
                &tables.$field
            }
            fn family_mut(tables: &mut Tables) -> &mut Family<Self> {
                &mut tables.$field
            }
            fn any(change: Change<Self>) -> AnyChange {
                AnyChange::$any(change)
            }
        }
    };
}

rib_family!(u32, v4, V4);
rib_family!(u128, v6, V6);

/// The authoritative table; see the [module](self).
///
/// ```
/// use fibula_core::{Attributes, BgpAttributes, Change, Update};
/// use fibula_rib::{Peer, Rib};
///
/// let mut rib = Rib::default();
/// let peers = [64500, 64501].map(|asn| rib.peer(Peer { address: None, asn }));
/// for (peer, as_path_len) in peers.into_iter().zip([3, 2]) {
///     let attributes = BgpAttributes { as_path_len, ..Default::default() };
///     let change = Change::Announce(Attributes::Bgp(&attributes));
///     let prefix = "192.0.2.0/24".parse()?;
///     rib.apply(0, &Update { prefix, peer, path_id: 0, time: 0, change })?;
/// }
/// let (_, best) = rib.longest::<u32>(0, 0xc000_0207).unwrap();
/// assert_eq!(best.peer, peers[1]);
/// let why = rib.explain::<u32>(0, "192.0.2.0/24".parse()?).unwrap();
/// assert!(why.to_string().contains("over peer AS64500 by AS path length"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Rib {
    sets: Sets,
    vrfs: BTreeMap<Vrf, Tables>,
    peers: Vec<Peer>,
    numbers: HashMap<Peer, u32>,
    preference: Preference,
    /// Updates that were applied.
    sequence: u64,
}

impl Rib {
    /// An empty table with this preference.
    pub fn new(preference: Preference) -> Self {
        Self { preference, ..Self::default() }
    }

    /// The number of this peer; a new one if it was not known.
    pub fn peer(&mut self, peer: Peer) -> u32 {
        let next = self.peers.len() as u32;
        let number = *self.numbers.entry(peer.clone()).or_insert(next);
        if number == next {
            self.peers.push(peer);
        }
        number
    }

    /// The peers, by number.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// What is preferred.
    pub fn preference(&self) -> &Preference {
        &self.preference
    }

    /// How many updates were applied, over all restarts: the position in the feed.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Takes an update, whose peer is one of [`Rib::peer`]'s numbers; returns what changed for those
    /// who forward.
    ///
    /// # Errors
    /// [`TableError::Limit`] if there is too much of something for its 32-bit number; the table is as
    /// it was.
    pub fn apply(
        &mut self,
        vrf: Vrf,
        update: &Update<'_>,
    ) -> Result<Option<AnyChange>, TableError> {
        let changed = match update.prefix {
            AnyPrefix::V4(prefix) => self.say::<u32>(vrf, prefix, update)?.map(AnyChange::V4),
            AnyPrefix::V6(prefix) => self.say::<u128>(vrf, prefix, update)?.map(AnyChange::V6),
        };
        self.sequence += 1;
        Ok(changed)
    }

    fn say<A: RibFamily>(
        &mut self,
        vrf: Vrf,
        prefix: Prefix<A>,
        update: &Update<'_>,
    ) -> Result<Option<Change<A>>, TableError> {
        let (peer, path_id) = (update.peer, update.path_id);
        let Self { sets, vrfs, preference, .. } = self;
        match update.change {
            Said::Announce(attributes) => {
                let family = A::family_mut(vrfs.entry(vrf).or_default());
                family.check_room()?;
                let set = sets.acquire(&attributes);
                let set = set.ok_or(TableError::Limit { what: "attribute sets" })?;
                Ok(family.announce(prefix, peer, path_id, set, sets, preference))
            }
            Said::Withdraw => match vrfs.get_mut(&vrf) {
                None => Ok(None),
                Some(tables) => {
                    let family = A::family_mut(tables);
                    Ok(family.withdraw(prefix, peer, path_id, sets, preference))
                }
            },
        }
    }

    /// Interns sound sets of a checkpoint; each has a reference until [`Rib::release_sets`].
    pub(crate) fn restore_set(&mut self, bytes: &[u8]) -> Result<u32, TableError> {
        self.sets.acquire_bytes(bytes).ok_or(TableError::Limit { what: "attribute sets" })
    }

    pub(crate) fn release_sets(&mut self, numbers: Vec<u32>) {
        numbers.into_iter().for_each(|number| self.sets.release(number));
    }

    /// Puts a path in its place as a checkpoint says.
    pub(crate) fn restore<A: RibFamily>(
        &mut self,
        vrf: Vrf,
        prefix: Prefix<A>,
        (peer, path_id): (u32, u32),
        set: u32,
    ) -> Result<(), TableError> {
        let Self { sets, vrfs, preference, .. } = self;
        let family = A::family_mut(vrfs.entry(vrf).or_default());
        family.check_room()?;
        sets.refer(set).ok_or(TableError::Limit { what: "routes of an attribute set" })?;
        family.announce(prefix, peer, path_id, set, sets, preference);
        Ok(())
    }

    /// The session with the peer ended: its routes of all VRFs are gone. Says what changed.
    pub fn peer_down(&mut self, peer: u32, mut changed: impl FnMut(Vrf, AnyChange)) {
        let Self { sets, vrfs, preference, .. } = self;
        for (&vrf, tables) in vrfs {
            tables.v4.peer_down(peer, sets, preference, |change| changed(vrf, change));
            tables.v6.peer_down(peer, sets, preference, |change| changed(vrf, change));
        }
        self.sequence += 1;
    }

    /// The VRFs that there are.
    pub fn vrfs(&self) -> impl Iterator<Item = Vrf> + '_ {
        self.vrfs.keys().copied()
    }

    fn family<A: RibFamily>(&self, vrf: Vrf) -> Option<&Family<A>> {
        self.vrfs.get(&vrf).map(A::family)
    }

    fn path<A: RibFamily>(&self, family: &Family<A>, at: u32) -> Path {
        let Node { peer, path_id, set, .. } = family.paths[at as usize];
        Path { peer, path_id, hop: set, attributes: self.sets.get(set).clone() }
    }

    /// How many prefixes have a route.
    pub fn len<A: RibFamily>(&self, vrf: Vrf) -> usize {
        self.family::<A>(vrf).map_or(0, |family| family.trie.len())
    }

    /// Whether no prefix has a route.
    pub fn is_empty(&self) -> bool {
        self.vrfs.values().all(|tables| tables.v4.used + tables.v6.used == 0)
    }

    /// The best path of exactly this prefix.
    pub fn exact<A: RibFamily>(&self, vrf: Vrf, prefix: Prefix<A>) -> Option<Path> {
        let family = self.family::<A>(vrf)?;
        family.trie.get(prefix).map(|at| self.path(family, at))
    }

    /// All paths of exactly this prefix, the best first.
    pub fn paths<A: RibFamily>(&self, vrf: Vrf, prefix: Prefix<A>) -> Vec<Path> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        let first = family.trie.get(prefix);
        let found = first.into_iter().flat_map(|at| family.list(at));
        found.map(|(at, _)| self.path(family, at)).collect()
    }

    /// The longest prefix that covers the address, with its best path.
    pub fn longest<A: RibFamily>(&self, vrf: Vrf, addr: A) -> Option<(Prefix<A>, Path)> {
        let family = self.family::<A>(vrf)?;
        family.trie.longest(addr).map(|(prefix, at)| (prefix, self.path(family, at)))
    }

    /// The hop of the address: the same answer as [`Rib::longest`], quicker.
    pub fn lookup<A: RibFamily>(&self, vrf: Vrf, addr: A) -> Hop {
        let found = self.family::<A>(vrf).and_then(|family| {
            family.trie.longest(addr).map(|(_, at)| family.paths[at as usize].set)
        });
        found.map_or(Hop::NONE, Hop::new)
    }

    /// The prefixes that cover this one, itself included, longest first, with their best paths.
    pub fn covering<A: RibFamily>(&self, vrf: Vrf, prefix: Prefix<A>) -> Vec<(Prefix<A>, Path)> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        let found = family.trie.covering(prefix).into_iter();
        found.map(|(prefix, at)| (prefix, self.path(family, at))).collect()
    }

    /// The prefixes that this one covers, itself included, in order, with their best paths.
    pub fn covered<A: RibFamily>(
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
    pub fn iter<A: RibFamily>(&self, vrf: Vrf) -> impl Iterator<Item = (Prefix<A>, Path)> + '_ {
        self.covered(vrf, Prefix::ALL)
    }

    /// The best routes, as engines compile them.
    pub fn routes<A: RibFamily>(&self, vrf: Vrf) -> Routes<A> {
        let Some(family) = self.family::<A>(vrf) else { return Routes::default() };
        let hop = |at: u32| Hop::new(family.paths[at as usize].set);
        let found = family.trie.covered(Prefix::ALL);
        Routes::from_unsorted(found.map(|(prefix, at)| Route { prefix, hop: hop(at) }).collect())
    }

    /// At most so many prefixes from this one on, in order: to go through the table in parts.
    pub(crate) fn part<A: RibFamily>(
        &self,
        vrf: Vrf,
        from: Prefix<A>,
        most: usize,
    ) -> Vec<Prefix<A>> {
        let Some(family) = self.family::<A>(vrf) else { return Vec::new() };
        family.trie.from(from, most).into_iter().map(|(prefix, _)| prefix).collect()
    }

    /// All paths of a family and VRF, in order of prefixes, for a checkpoint.
    pub(crate) fn all_paths<A: RibFamily>(
        &self,
        vrf: Vrf,
        mut each: impl FnMut(Prefix<A>, u32, u32, u32),
    ) {
        let Some(family) = self.family::<A>(vrf) else { return };
        for (prefix, first) in family.trie.covered(Prefix::ALL) {
            for (_, node) in family.list(first) {
                each(prefix, node.peer, node.path_id, node.set);
            }
        }
    }

    /// The attribute sets by number; `None` where a number is free.
    pub(crate) fn sets(&self) -> impl ExactSizeIterator<Item = Option<&AttributeSet>> {
        self.sets.slots()
    }

    /// Why the best path of exactly this prefix is the best.
    pub fn explain<A: RibFamily>(&self, vrf: Vrf, prefix: Prefix<A>) -> Option<Decision> {
        let mut paths = self.paths(vrf, prefix);
        let contender = |path: &Path| Contender {
            peer: path.peer,
            path_id: path.path_id,
            rank: path.attributes.rank(),
        };
        let best = contender(paths.first()?);
        paths.sort_by(|a, b| self.preference.compare(&contender(a), &contender(b)).0);
        let step = |path: &Path| self.preference.compare(&best, &contender(path)).1;
        let steps: Vec<_> = paths.iter().map(step).collect();
        let name = |path: &Path| match self.peers.get(path.peer as usize) {
            Some(peer) => peer.to_string(),
            None => format!("peer {}", path.peer),
        };
        let names = paths.iter().map(name).collect();
        let lost = steps.into_iter().enumerate().map(|(i, step)| (i > 0).then_some(step));
        Some(Decision {
            prefix: prefix.to_string(),
            paths: paths.into_iter().zip(lost).collect(),
            names,
        })
    }

    /// What it holds, and in how many bytes.
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

/// What a [`Rib`] holds, and in how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RibMemory {
    /// Paths of all peers.
    pub routes: usize,
    /// Prefixes with at least one path.
    pub prefixes: usize,
    /// Bytes of prefixes and paths.
    pub route_bytes: usize,
    /// Distinct attribute sets.
    pub sets: usize,
    /// Bytes of the attribute sets.
    pub set_bytes: usize,
}

impl RibMemory {
    fn add<A: Packed>(&mut self, family: &Family<A>) {
        self.routes += family.used;
        self.prefixes += family.trie.len();
        self.route_bytes += family.trie.memory() + family.paths.capacity() * size_of::<Node>();
    }

    /// Bytes a route, attributes aside; 0 without routes.
    pub fn per_route(&self) -> f64 {
        if self.routes == 0 { 0.0 } else { self.route_bytes as f64 / self.routes as f64 }
    }
}
