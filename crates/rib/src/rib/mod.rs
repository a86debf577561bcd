//! The authoritative table: the routes of every peer, and the best route of each prefix.
//!
//! A [`Rib`] holds both families of several VRFs: for each prefix the paths of its peers, the best one first, and for
//! each path the number of its attribute set. Each distinct set is stored once, with a reference count. The number of
//! the best path's set is the [`Hop`] that engines return.
//!
//! ```text
//!   update ─► peer's path of the prefix changes ─► best path anew ─► Change {prefix, hop} if that changed
//!
//!   Trie<A>: prefix ─► path ─► path ─► ..       path: peer, path id, attribute set, next path; 16 bytes
//! ```
//!
//! Invariants:
//! - a prefix is in the trie with a path exactly if some peer announced it and did not withdraw it;
//! - the first path of a prefix is the one that [`Preference`] puts first;
//! - a set has as many references as paths have its number;
//! - between [`Rib::mark_stale`] and [`Rib::sweep`] a peer's path is stale unless the peer has announced it
//!   again; at all other times none is.
//!
//! **Mark and sweep.** A source that starts over announces its whole table again, without withdrawing the routes that
//! no longer exist. A path is marked by one bit beside its peer's number. All paths of a peer are marked by inverting
//! the meaning of the bit, and each announcement clears its path's mark at no cost. A sweep reads all paths once, or
//! none if no path is stale.

pub(crate) mod decision;
pub(crate) mod family;
pub(crate) mod names;
pub(crate) mod next_hops;
mod nodes;
mod peers;
mod query;
pub(crate) mod set;
mod sets;
mod trie;
mod vrfs;

use std::collections::BTreeMap;

use std::sync::Arc;

use fibula_core::{
    Addr, AnyPrefix, Change as CoreChange, FamilyType, Hop, PerFamily, Prefix, Update, Vrf,
};
use hashbrown::HashMap;

use crate::{FeedEvent, TableError};
pub use decision::{Decision, Path, Peer, Preference, Step};
use family::{FamilyPaths, PeerParity};
pub use names::{SetTexts, ValueNames};
use peers::PeerVrfs;
pub use peers::RibPeers;
pub use query::RibMemory;
pub(crate) use query::{Copies, Staleness};
pub use set::AttributeSet;
use sets::Sets;
pub(crate) use vrfs::VrfNames;

/// A change of the best route of a prefix, which forwarding tables have to follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<A: Addr> {
    /// The prefix.
    pub prefix: Prefix<A>,
    /// The peer of the best path. If the prefix has no route any more, the peer of its last path.
    pub peer: u32,
    /// The attributes' number and the attributes; `None` if the prefix has no route any more.
    pub best: Option<(u32, AttributeSet)>,
    /// If the prefix has no route any more: the origin AS of its last path, if that was a BGP path.
    pub last_origin: Option<u32>,
}

impl<A: Addr> Change<A> {
    /// The hop: the number of the attributes, or [`Hop::NONE`].
    pub fn hop(&self) -> Hop {
        self.best.as_ref().map_or(Hop::NONE, |(number, _)| Hop::new(*number))
    }
}

/// Receives changes of best routes.
pub trait Changes {
    /// The best route of a prefix changed.
    fn changed<A: Addr>(&mut self, vrf: Vrf, change: Change<A>);
}

/// Ignores the changes.
impl Changes for () {
    fn changed<A: Addr>(&mut self, _: Vrf, _: Change<A>) {}
}

/// The tables of one VRF.
struct Tables;

impl FamilyType for Tables {
    type Of<A: Addr> = FamilyPaths<A>;
}

/// Number of paths in the tables of a VRF.
fn used(tables: &PerFamily<Tables>) -> usize {
    tables.v4.used + tables.v6.used
}

/// How many times a peer has begun to send its whole table again.
#[derive(Clone, Copy, Default)]
struct Dump {
    is_odd: bool,
    /// The dump is not complete: paths that it has not announced are stale.
    is_open: bool,
}

/// The authoritative table; see the [module](self).
///
/// ```
/// use fibula_core::{Attributes, BgpAttributes, Change, Update};
/// use fibula_rib::{Peer, Rib};
///
/// let mut rib = Rib::default();
/// let peers = [64500, 64501].map(|asn| rib.peer(Peer::new(None, asn)));
/// for (peer, as_path_len) in peers.into_iter().zip([3, 2]) {
///     let attributes = BgpAttributes { as_path_len, ..Default::default() };
///     let change = Change::Announce(Attributes::Bgp(&attributes));
///     let prefix = "192.0.2.0/24".parse()?;
///     rib.apply(&Update { peer, ..Update::new(prefix, change) }, &mut ())?;
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
    vrfs: BTreeMap<Vrf, PerFamily<Tables>>,
    /// Number of paths in all of them.
    used: usize,
    peers: RibPeers,
    peer_vrfs: PeerVrfs,
    /// The dumps of the peers that have ever started over.
    dumps: HashMap<u32, Dump>,
    preference: Preference,
    values: ValueNames,
    vrf_names: VrfNames,
    limits: Limits,
    /// Updates that were applied.
    sequence: u64,
}

/// The maximum sizes of a table. Further paths are refused, and existing ones stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of paths of one peer in one family of one VRF.
    pub peer_paths: u32,
    /// Number of paths of all peers, families and VRFs.
    pub paths: usize,
    /// Number of peers. Feeds compare it ([`Listener::is_full_for`](crate::Listener::is_full_for)); [`Rib::peer`] does
    /// not.
    pub peers: usize,
}

impl Default for Limits {
    /// No limits except those of the numbers.
    fn default() -> Self {
        Self { peer_paths: u32::MAX, paths: usize::MAX, peers: usize::MAX }
    }
}

impl Rib {
    /// Makes an empty table with this preference.
    pub fn new(preference: Preference) -> Self {
        Self { preference, ..Self::default() }
    }

    /// The number of this peer, which is new if the peer was unknown.
    pub fn peer(&mut self, peer: Peer) -> u32 {
        self.peers.number(peer)
    }

    /// [`Limits::peers`], if there are as many, and this one is not among them.
    pub fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        let most = self.limits.peers;
        (self.peers.len() >= most && !self.peers.has(peer)).then_some(most)
    }

    /// The peers, by number.
    pub fn peers(&self) -> &RibPeers {
        &self.peers
    }

    /// Gives a peer up, which has no paths: its number names nothing any more. Returns false, and does nothing, if it
    /// has some.
    pub fn forget_peer(&mut self, peer: u32) -> bool {
        self.retain_vrfs(peer);
        if self.peer_vrfs.of(peer).next().is_some() {
            return false;
        }
        self.peers.remove(peer);
        self.dumps.remove(&peer);
        true
    }

    /// Gives a VRF up, which has no routes: its number names nothing any more, and its name gets another one if it
    /// comes back. Returns false, and does nothing, if it has some, or is the global one.
    pub fn forget_vrf(&mut self, vrf: Vrf) -> bool {
        let has_routes = self.vrfs.get(&vrf).is_some_and(|tables| used(tables) > 0);
        if vrf == 0 || has_routes {
            return false;
        }
        self.vrfs.remove(&vrf);
        self.vrf_names.remove(vrf);
        true
    }

    /// The VRFs without routes, except the global one.
    pub fn empty_vrfs(&self) -> Vec<Vrf> {
        let has_routes = |vrf: Vrf| self.vrfs.get(&vrf).is_some_and(|tables| used(tables) > 0);
        let named = self.vrf_names.iter().map(|(vrf, _)| vrf);
        let mut all: Vec<Vrf> = named.chain(self.vrfs.keys().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|&vrf| vrf != 0 && !has_routes(vrf));
        all
    }

    /// Whether the number is that of a VRF: it has a name or tables.
    pub fn is_vrf(&self, vrf: Vrf) -> bool {
        self.vrf_names.name(vrf).is_some() || self.vrfs.contains_key(&vrf)
    }

    /// The positions of a source's columns among the [values](ValueNames) of all sources, which updates must use. A
    /// checkpoint has columns with these names.
    pub fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.values.places(columns.iter().copied())
    }

    /// The names of the values in all sources.
    pub fn value_names(&self) -> &ValueNames {
        &self.values
    }

    /// The number of the VRF with this name, for use in updates. It is new if the name is new. The empty name is VRF
    /// 0.
    ///
    /// ```
    /// let mut rib = fibula_rib::Rib::default();
    /// rib.name_global("fpm");
    /// assert_eq!(["fpm", "fpm/100", "bgp", "fpm/100", ""].map(|name| rib.vrf(name)), [0, 1, 2, 1, 0]);
    /// assert_eq!((rib.vrf_name(1).map(|name| &**name), rib.find_vrf("bmp")), (Some("fpm/100"), None));
    /// ```
    pub fn vrf(&mut self, name: &str) -> Vrf {
        let Self { vrf_names, vrfs, .. } = self;
        vrf_names.number(name, |number| vrfs.contains_key(&number))
    }

    /// Names VRF 0, which a checkpoint stores as its table. Returns whether name and number were free.
    pub fn name_global(&mut self, name: &str) -> bool {
        !name.is_empty() && self.vrf_names.set(0, name)
    }

    /// The number of the VRF with this name, if there is one.
    pub fn find_vrf(&self, name: &str) -> Option<Vrf> {
        self.vrf_names.find(name)
    }

    /// The name of the VRF, if it has one. It is shared, so that it can be kept without a copy.
    pub fn vrf_name(&self, vrf: Vrf) -> Option<&Arc<str>> {
        self.vrf_names.name(vrf)
    }

    pub(crate) fn vrf_names(&self) -> &VrfNames {
        &self.vrf_names
    }

    pub(crate) fn set_vrf_names(&mut self, names: VrfNames) {
        self.vrf_names = names;
    }

    /// Sets the limits for further updates.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn set_value_names(&mut self, names: ValueNames) {
        self.values = names;
    }

    /// The criteria of the decision.
    pub fn preference(&self) -> &Preference {
        &self.preference
    }

    /// Number of updates applied, over all restarts, which is the position in the feed.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Applies an update, whose peer is a number from [`Rib::peer`]. `changes` is called if the best route changes.
    ///
    /// # Errors
    /// [`TableError::Limit`] if a number exceeds 32 bits, [`TableError::Full`] if the [`Limits`] are exceeded. The
    /// table is then unchanged.
    pub fn apply(
        &mut self,
        update: &Update<'_>,
        changes: &mut impl Changes,
    ) -> Result<(), TableError> {
        match update.prefix {
            AnyPrefix::V4(prefix) => self.apply_to(prefix, update, changes)?,
            AnyPrefix::V6(prefix) => self.apply_to(prefix, update, changes)?,
        }
        self.sequence += 1;
        Ok(())
    }

    fn apply_to<A: Addr>(
        &mut self,
        prefix: Prefix<A>,
        update: &Update<'_>,
        changes: &mut impl Changes,
    ) -> Result<(), TableError> {
        let path = (self.speaker(update.peer)?, update.path_id);
        let room = self.room();
        let Self { sets, vrfs, preference, used, peer_vrfs, .. } = self;
        let change = match update.change {
            CoreChange::Announce(attributes) => {
                let family = vrfs.entry(update.vrf).or_default().get_mut::<A>();
                family.check_room()?;
                let set = sets.acquire(&attributes);
                let set = set.ok_or(TableError::Limit { what: "attribute sets" })?;
                let before = family.used;
                let change = family.announce(prefix, path, set, (sets, preference, room))?;
                if family.used > before {
                    *used += 1;
                    if family.is_first {
                        peer_vrfs.add(update.peer, update.vrf);
                    }
                }
                change
            }
            CoreChange::Withdraw => vrfs.get_mut(&update.vrf).and_then(|tables| {
                let family = tables.get_mut::<A>();
                let before = family.used;
                let change = family.withdraw(prefix, path, sets, preference);
                *used -= before - family.used;
                change
            }),
        };
        if let Some(change) = change {
            changes.changed(update.vrf, change);
        }
        Ok(())
    }

    /// Maximum number of paths of a peer in a family, 0 if the limit of all peers is reached; and the limits.
    fn room(&self) -> (u32, Limits) {
        let Limits { paths, peer_paths, .. } = self.limits;
        (if paths <= self.used { 0 } else { peer_paths }, self.limits)
    }

    /// The peer in its latest dump.
    fn speaker(&self, peer: u32) -> Result<PeerParity, TableError> {
        if peer > PeerParity::MAX_PEER {
            return Err(TableError::Limit { what: "peers" });
        }
        let dump = self.dumps.get(&peer).copied().unwrap_or_default();
        Ok(PeerParity::new(peer, dump.is_odd))
    }

    /// Marks all paths of the peer as stale, because it announces everything again. They stay in use. If the peer was
    /// already doing so, this begins again.
    pub fn mark_stale(&mut self, peer: u32) {
        self.mark_all_stale(&[peer]);
    }

    /// Marks all paths of these peers as stale. Each table is read once at most.
    fn mark_all_stale(&mut self, peers: &[u32]) {
        self.sequence += 1;
        let mut of_vrfs = BTreeMap::<Vrf, Vec<(PeerParity, bool)>>::new();
        for &peer in peers {
            let dump = self.dumps.entry(peer).or_default();
            let is_open = std::mem::replace(&mut dump.is_open, true);
            dump.is_odd ^= !is_open;
            let Ok(speaker) = self.speaker(peer) else { continue };
            for vrf in self.peer_vrfs.of(peer) {
                of_vrfs.entry(vrf).or_default().push((speaker, is_open));
            }
        }
        for (vrf, peers) in of_vrfs {
            let Some(tables) = self.vrfs.get_mut(&vrf) else { continue };
            tables.v4.mark_stale(&peers);
            tables.v6.mark_stale(&peers);
        }
    }

    /// Removes the paths that are still stale, because the peer has announced everything again.
    pub fn sweep(&mut self, peer: u32, changes: &mut impl Changes) {
        self.withdraw_all((&[peer], true), changes);
    }

    /// Removes paths of peers: the stale ones in a sweep, else all. Each table is read once for all peers.
    fn withdraw_all(&mut self, (peers, is_sweep): (&[u32], bool), changes: &mut impl Changes) {
        self.sequence += 1;
        let mut of_vrfs = BTreeMap::<Vrf, Vec<PeerParity>>::new();
        for &peer in peers {
            let Ok(speaker) = self.speaker(peer) else { continue };
            for vrf in self.peer_vrfs.of(peer) {
                of_vrfs.entry(vrf).or_default().push(speaker);
            }
        }
        let Self { sets, vrfs, preference, used, .. } = self;
        for (vrf, speakers) in of_vrfs {
            let Some(tables) = vrfs.get_mut(&vrf) else { continue };
            let (of, before) = ((&*speakers, is_sweep), self::used(tables));
            tables.v4.withdraw_all(of, sets, preference, |change| changes.changed(vrf, change));
            tables.v6.withdraw_all(of, sets, preference, |change| changes.changed(vrf, change));
            *used -= before - self::used(tables);
        }
        for &peer in peers {
            self.retain_vrfs(peer);
            self.close_dump(peer);
        }
    }

    /// Forgets in which VRFs the peer had paths and has none.
    fn retain_vrfs(&mut self, peer: u32) {
        let Self { vrfs, peer_vrfs, .. } = self;
        let has_paths =
            |tables: &PerFamily<Tables>| tables.v4.of_peer(peer) + tables.v6.of_peer(peer) > 0;
        peer_vrfs.retain(peer, |vrf| vrfs.get(&vrf).is_some_and(has_paths));
    }

    fn close_dump(&mut self, peer: u32) {
        if let Some(dump) = self.dumps.get_mut(&peer) {
            dump.is_open = false;
        }
    }

    /// Whether the peer is between [`Rib::mark_stale`] and [`Rib::sweep`].
    pub fn is_resyncing(&self, peer: u32) -> bool {
        self.dumps.get(&peer).is_some_and(|dump| dump.is_open)
    }

    /// The peers between [`Rib::mark_stale`] and [`Rib::sweep`], in order.
    pub fn resyncing(&self) -> Vec<u32> {
        let open = self.dumps.iter().filter(|(_, dump)| dump.is_open);
        let mut peers: Vec<u32> = open.map(|(&peer, _)| peer).collect();
        peers.sort_unstable();
        peers
    }

    /// Removes the peer's routes in all VRFs, because its session ended.
    pub fn peer_down(&mut self, peer: u32, changes: &mut impl Changes) {
        self.withdraw_all((&[peer], false), changes);
    }

    /// Applies the next event of a feed.
    ///
    /// # Errors
    /// The errors of [`Rib::apply`].
    pub fn apply_event(
        &mut self,
        event: FeedEvent<'_>,
        changes: &mut impl Changes,
    ) -> Result<(), TableError> {
        match event {
            FeedEvent::Update(update) => return self.apply(update, changes),
            FeedEvent::Down(peer) => self.peer_down(peer, changes),
            FeedEvent::DownAll(peers) => self.withdraw_all((peers, false), changes),
            FeedEvent::MarkStale(peer) => self.mark_stale(peer),
            FeedEvent::MarkAllStale(peers) => self.mark_all_stale(peers),
            FeedEvent::Sweep(peer) => self.sweep(peer, changes),
            FeedEvent::SweepAll(peers) => self.withdraw_all((peers, true), changes),
        }
        Ok(())
    }

    /// Interns sound sets of a checkpoint; each has a reference until [`Rib::release_sets`].
    pub(crate) fn restore_set(&mut self, bytes: &[u8]) -> Result<u32, TableError> {
        self.sets.acquire_bytes(bytes).ok_or(TableError::Limit { what: "attribute sets" })
    }

    pub(crate) fn release_sets(&mut self, numbers: Vec<u32>) {
        numbers.into_iter().for_each(|number| self.sets.release(number));
    }

    /// Adds a path of a checkpoint; stale paths come after [`Rib::mark_stale`].
    pub(crate) fn restore<A: Addr>(
        &mut self,
        vrf: Vrf,
        prefix: Prefix<A>,
        (peer, path_id): (u32, u32),
        set: u32,
        is_stale: bool,
    ) -> Result<(), TableError> {
        let speaker = self.speaker(peer)?;
        let Self { sets, vrfs, preference, used, peer_vrfs, .. } = self;
        let family = vrfs.entry(vrf).or_default().get_mut::<A>();
        family.check_room()?;
        let before = family.used;
        sets.refer(set).ok_or(TableError::Limit { what: "routes of an attribute set" })?;
        family.announce(
            prefix,
            (speaker, path_id),
            set,
            (sets, preference, (u32::MAX, Limits::default())),
        )?;
        *used += family.used - before;
        if family.used > before && family.is_first {
            peer_vrfs.add(peer, vrf);
        }
        if is_stale {
            family.restore_stale(prefix, speaker, path_id);
        }
        Ok(())
    }
}
