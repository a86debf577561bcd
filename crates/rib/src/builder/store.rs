//! The routes of one family, for every speaker.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fibula_core::{Addr, Prefix};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use super::attributes::AttributeSets;
use super::records::Local;
use crate::Preference;
use crate::rib::decision::Contender;

/// The number for all sources that are not BGP.
pub(super) const LOCAL: u32 = 0;

/// No attribute set.
const NONE: u32 = u32::MAX;
/// Prefixes in a page: 1 KiB, so that a peer with few routes costs little and a full feed 4 bytes
/// a prefix.
const PAGE: usize = 256;

/// Prefixes numbered in order of first appearance, and the sets of each peer.
pub(super) struct Store<A: Addr> {
    prefixes: Vec<Prefix<A>>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    speakers: Vec<PeerSets>,
    /// The records of the prefixes that [`LOCAL`] has.
    pub(super) local: Local,
}

impl<A: Addr> Default for Store<A> {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            speakers: Vec::new(),
            local: Local::default(),
        }
    }
}

impl<A: Addr> Store<A> {
    /// The peer announces this set for the prefix; `None` withdraws. Returns the prefix's number, if it has one;
    /// an error when there are too many prefixes.
    pub(super) fn set(
        &mut self,
        speaker: u32,
        prefix: Prefix<A>,
        path_id: u32,
        attributes: Option<u32>,
    ) -> Result<Option<u32>, TooMany> {
        let speaker = speaker as usize;
        match attributes {
            Some(attributes) => {
                let number = self.number(prefix).ok_or(TooMany)?;
                if self.speakers.len() <= speaker {
                    self.speakers.resize_with(speaker + 1, PeerSets::default);
                }
                self.speakers[speaker].announce(number, path_id, attributes);
                Ok(Some(number))
            }
            None => {
                let peer_sets = self.speakers.get_mut(speaker);
                let hash = self.hasher.hash_one(prefix);
                let known = self.numbers.find(hash, |&n| self.prefixes[n as usize] == prefix);
                if let (Some(peer_sets), Some(&number)) = (peer_sets, known) {
                    peer_sets.withdraw(number, path_id);
                }
                Ok(known.copied())
            }
        }
    }

    fn number(&mut self, prefix: Prefix<A>) -> Option<u32> {
        let Self { prefixes, numbers, hasher, .. } = self;
        // Dumps list all peers of a prefix in a row.
        if prefixes.last() == Some(&prefix) {
            return Some(prefixes.len() as u32 - 1);
        }
        let hash = hasher.hash_one(prefix);
        if let Some(&number) = numbers.find(hash, |&n| prefixes[n as usize] == prefix) {
            return Some(number);
        }
        let number = u32::try_from(prefixes.len()).ok().filter(|&n| n != NONE)?;
        prefixes.push(prefix);
        numbers.insert_unique(hash, number, |&n| hasher.hash_one(prefixes[n as usize]));
        Some(number)
    }

    /// Withdraws all routes of the peer.
    pub(super) fn forget(&mut self, speaker: u32) {
        if let Some(peer_sets) = self.speakers.get_mut(speaker as usize) {
            *peer_sets = PeerSets::default();
        }
    }

    /// Number of prefixes for which the speaker has routes.
    pub(super) fn count(&self, speaker: u32) -> u64 {
        self.speakers.get(speaker as usize).map_or(0, PeerSets::count)
    }

    /// The prefixes with their routes: the best route of these peers or the route of the other sources, whichever is
    /// later. Not sorted.
    pub(super) fn routes(
        &self,
        peers: &[u32],
        sets: &AttributeSets,
        preference: &Preference,
    ) -> impl Iterator<Item = Found<A>> {
        let sets_of = |&speaker: &u32| Some((speaker, self.speakers.get(speaker as usize)?));
        let local = sets_of(&LOCAL);
        let peers: Vec<(u32, &PeerSets)> = peers.iter().filter_map(sets_of).collect();
        self.prefixes.iter().zip(0..).filter_map(move |(&prefix, number)| {
            let best = |&(speaker, peer_sets): &(u32, &PeerSets)| {
                let set = peer_sets.best(number, sets, preference)?;
                Some(PeerSet { speaker, set })
            };
            let contender = |path: &PeerSet| {
                let rank = sets.get(path.set).rank();
                Contender { peer: path.speaker, path_id: 0, rank }
            };
            let better =
                |a: PeerSet, b: PeerSet| match preference.compare(&contender(&b), &contender(&a)).0
                {
                    Ordering::Less => b,
                    _ => a,
                };
            let local = local.as_ref().and_then(best);
            let peer = peers.iter().filter_map(best).reduce(better);
            let (path, other) = match (local, peer) {
                (Some(local), Some(peer)) if sets.segment(local.set) > sets.segment(peer.set) => {
                    (local, Some(peer))
                }
                (Some(local), Some(peer)) => (peer, Some(local)),
                (local, peer) => (peer.or(local)?, None),
            };
            Some(Found { prefix, number, path, other })
        })
    }

    /// All paths of these peers for a prefix, in order of the peers.
    pub(super) fn paths(&self, peers: &[u32], number: u32) -> Vec<PeerSet> {
        let sets_of = |&speaker: &u32| Some((speaker, self.speakers.get(speaker as usize)?));
        let paths = peers.iter().filter_map(sets_of).flat_map(|(speaker, peer_sets)| {
            peer_sets.all(number).map(move |set| PeerSet { speaker, set })
        });
        paths.collect()
    }

    /// The number of prefixes without a route of these peers.
    pub(super) fn left_out(&self, peers: &[u32]) -> u64 {
        let is_taken =
            |speaker: usize| speaker == LOCAL as usize || peers.contains(&(speaker as u32));
        let speakers = self.speakers.iter().enumerate();
        let (taken, others): (Vec<_>, Vec<_>) =
            speakers.partition(|(speaker, _)| is_taken(*speaker));
        let any_has = |of: &[(usize, &PeerSets)], number| {
            of.iter().any(|(_, peer_sets)| peer_sets.has(number))
        };
        let numbers = 0..self.prefixes.len() as u32;
        numbers.filter(|&number| any_has(&others, number) && !any_has(&taken, number)).count()
            as u64
    }
}

/// There are more prefixes than numbers for them.
#[derive(Debug)]
pub(super) struct TooMany;

/// A prefix with its route.
pub(super) struct Found<A: Addr> {
    pub(super) prefix: Prefix<A>,
    pub(super) number: u32,
    /// The chosen route.
    pub(super) path: PeerSet,
    /// The route that was not chosen: [`LOCAL`]'s where a peer's is chosen, or the other way round.
    pub(super) other: Option<PeerSet>,
}

/// The attribute set of a route, and its speaker.
#[derive(Clone, Copy)]
pub(super) struct PeerSet {
    pub(super) speaker: u32,
    pub(super) set: u32,
}

/// The attribute sets of one peer, by prefix number.
#[derive(Default)]
struct PeerSets {
    /// Paths with identifier 0, which is all of them without ADD-PATH.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    /// Number of these paths.
    plain: u64,
    /// Other paths, by prefix and identifier.
    paths: BTreeMap<(u32, u32), u32>,
}

impl PeerSets {
    fn announce(&mut self, number: u32, path_id: u32, set: u32) {
        if path_id != 0 {
            self.paths.insert((number, path_id), set);
            return;
        }
        let (page, at) = (number as usize / PAGE, number as usize % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let slot = &mut self.pages[page].get_or_insert_with(|| Box::new([NONE; PAGE]))[at];
        self.plain += u64::from(*slot == NONE);
        *slot = set;
    }

    fn withdraw(&mut self, number: u32, path_id: u32) {
        if path_id != 0 {
            self.paths.remove(&(number, path_id));
        } else if let Some(Some(page)) = self.pages.get_mut(number as usize / PAGE) {
            let slot = &mut page[number as usize % PAGE];
            self.plain -= u64::from(*slot != NONE);
            *slot = NONE;
        }
    }

    fn plain(&self, number: u32) -> Option<u32> {
        let page = self.pages.get(number as usize / PAGE)?.as_ref()?;
        Some(page[number as usize % PAGE]).filter(|&set| set != NONE)
    }

    /// Whether there is a path for this prefix.
    fn has(&self, number: u32) -> bool {
        let mut others = self.paths.range((number, 0)..=(number, u32::MAX));
        self.plain(number).is_some() || others.next().is_some()
    }

    fn all(&self, number: u32) -> impl Iterator<Item = u32> {
        let others = self.paths.range((number, 0)..=(number, u32::MAX)).map(|(_, &set)| set);
        self.plain(number).into_iter().chain(others)
    }

    #[inline]
    fn best(&self, number: u32, sets: &AttributeSets, preference: &Preference) -> Option<u32> {
        if self.paths.is_empty() {
            return self.plain(number);
        }
        self.best_of_paths(number, sets, preference)
    }

    fn best_of_paths(
        &self,
        number: u32,
        sets: &AttributeSets,
        preference: &Preference,
    ) -> Option<u32> {
        let others = self.paths.range((number, 0)..=(number, u32::MAX)).map(|(k, &set)| (k.1, set));
        let contender = |(path_id, set): (u32, u32)| {
            let rank = sets.get(set).rank();
            Contender { peer: 0, path_id, rank }
        };
        let plain = self.plain(number).map(|set| (0, set));
        let paths = plain.into_iter().chain(others);
        let best = paths.min_by(|a, b| preference.compare(&contender(*a), &contender(*b)).0);
        best.map(|(_, set)| set)
    }

    fn count(&self) -> u64 {
        let mut last = None;
        let only_other = self.paths.keys().filter(|&&(number, _)| {
            let first = last.replace(number) != Some(number);
            first && self.plain(number).is_none()
        });
        let only_other = only_other.count() as u64;
        self.plain + only_other
    }
}
