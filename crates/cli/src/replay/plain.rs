//! The check: the same feed into plain maps, and what the reader was told compared with them, at the
//! point of the feed that its generation takes in. Slow, complete, and of no engine's making.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use fibula_core::{Addr, AnyPrefix, Change, FamilyType, PerFamily, Prefix, Update, Vrf};
use fibula_feeds::{FeedError, Listener};
use fibula_rib::{AttributeSet, Peer, Rib, ValueNames};

use super::feed::Played;
use super::reader::Sample;

/// The paths of a prefix by peer and path identifier.
type Paths = BTreeMap<(u32, u32), AttributeSet>;

/// The prefixes with their paths.
struct Maps;

impl FamilyType for Maps {
    type Of<A: Addr> = HashMap<Prefix<A>, Paths>;
}

/// The plain table, and the samples that wait for their point of the feed.
pub struct Plain<A: Addr> {
    maps: PerFamily<Maps>,
    /// By number.
    peers: Vec<Peer>,
    values: ValueNames,
    /// Without routes: it numbers the names.
    vrfs: Rib,
    /// The paths that their peer is to say again, until it has said everything.
    stale: BTreeSet<(u32, u32, AnyPrefix)>,
    /// What has happened so far.
    sequence: u64,
    /// The next one last.
    samples: Vec<Sample<A>>,
    /// Answers that were compared, and those that differed.
    pub checked: u64,
    pub wrong: u64,
}

impl<A: Addr> Plain<A> {
    pub fn new(mut samples: Vec<Sample<A>>) -> Self {
        samples.sort_by_key(|sample| Reverse(sample.sequence));
        Self {
            maps: PerFamily::default(),
            peers: Vec::new(),
            values: ValueNames::default(),
            vrfs: Rib::default(),
            stale: BTreeSet::new(),
            sequence: 0,
            samples,
            checked: 0,
            wrong: 0,
        }
    }

    /// Compares all samples of this point of the feed.
    pub fn check(&mut self) {
        while let Some(sample) = self.samples.pop_if(|next| next.sequence <= self.sequence) {
            for (addr, answer) in &sample.answers {
                self.checked += 1;
                let expected = longest(self.maps.get::<A>(), *addr);
                self.wrong += u64::from(expected != answer.as_ref());
            }
        }
    }

    fn happened(&mut self) {
        self.sequence += 1;
        self.check();
    }

    /// How many prefixes have other paths, or another best one, in the RIB than here.
    pub fn differences(&self, rib: &Rib) -> u64 {
        differences(&self.maps.v4, rib) + differences(&self.maps.v6, rib)
    }

    /// Samples whose point of the feed never came.
    pub fn left(&self) -> usize {
        self.samples.len()
    }
}

/// The best path, by the default preference in one tuple.
fn best(paths: &Paths) -> Option<&AttributeSet> {
    let rank = |item: &(&(u32, u32), &AttributeSet)| {
        let (&(peer, path_id), set) = *item;
        let bgp = set.bgp().unwrap_or_default();
        let preference = Reverse(bgp.local_pref.unwrap_or(100));
        let (origin, med) = (bgp.origin.unwrap_or(0), bgp.med.unwrap_or(0));
        (preference, bgp.as_path_len, origin, peer, med, path_id)
    };
    paths.iter().min_by_key(rank).map(|(_, set)| set)
}

/// The longest match by definition.
fn longest<A: Addr>(map: &HashMap<Prefix<A>, Paths>, addr: A) -> Option<&AttributeSet> {
    let shorter = (0..=A::BITS).rev().filter_map(|len| Prefix::masked(addr, len).ok());
    shorter.into_iter().find_map(|prefix| map.get(&prefix)).and_then(best)
}

fn differences<A: Addr>(map: &HashMap<Prefix<A>, Paths>, rib: &Rib) -> u64 {
    let mut different = (map.len() as u64).abs_diff(rib.len::<A>(0) as u64);
    for (prefix, paths) in map {
        let held = rib.paths(0, *prefix);
        let same = |(key, set): (&(u32, u32), &AttributeSet)| {
            held.iter().any(|path| (path.peer, path.path_id) == *key && path.attributes == *set)
        };
        let all = held.len() == paths.len() && paths.iter().all(same);
        let first = held.first().map(|path| &path.attributes) == best(paths);
        different += u64::from(!all || !first);
    }
    different
}

fn say<A: Addr>(map: &mut HashMap<Prefix<A>, Paths>, prefix: Prefix<A>, update: &Update<'_>) {
    let key = (update.peer, update.path_id);
    match update.change {
        Change::Announce(attributes) => {
            map.entry(prefix).or_default().insert(key, AttributeSet::new(&attributes));
        }
        Change::Withdraw => {
            if let Some(paths) = map.get_mut(&prefix) {
                paths.remove(&key);
                if paths.is_empty() {
                    map.remove(&prefix);
                }
            }
        }
    }
}

/// Drops all other paths.
fn retain<A: Addr>(
    map: &mut HashMap<Prefix<A>, Paths>,
    keep: impl Fn((u32, u32, AnyPrefix)) -> bool,
) {
    map.retain(|&prefix, paths| {
        paths.retain(|&(peer, path_id), _| keep((peer, path_id, prefix.into())));
        !paths.is_empty()
    });
}

/// The paths of the peer, by path identifier and prefix.
fn of_peer<A: Addr>(
    map: &HashMap<Prefix<A>, Paths>,
    peer: u32,
) -> impl Iterator<Item = (u32, u32, AnyPrefix)> {
    map.iter().flat_map(move |(&prefix, paths)| {
        let said = paths.keys().filter(move |(p, _)| *p == peer);
        said.map(move |&(_, path_id)| (peer, path_id, prefix.into()))
    })
}

impl<A: Addr> Listener for Plain<A> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        let known = self.peers.iter().position(|known| known == peer);
        let number = known.unwrap_or_else(|| {
            self.peers.push(peer.clone());
            self.peers.len() - 1
        });
        number as u32
    }

    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.values.places(columns.iter().copied())
    }

    fn vrf(&mut self, name: &str) -> Vrf {
        self.vrfs.vrf(name)
    }

    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError> {
        if update.vrf == 0 {
            self.stale.remove(&(update.peer, update.path_id, update.prefix));
            match update.prefix {
                AnyPrefix::V4(prefix) => say(&mut self.maps.v4, prefix, update),
                AnyPrefix::V6(prefix) => say(&mut self.maps.v6, prefix, update),
            }
        }
        self.happened();
        Ok(())
    }

    fn down(&mut self, peer: u32) -> Result<(), FeedError> {
        self.stale.retain(|&(p, ..)| p != peer);
        retain(&mut self.maps.v4, |(p, ..)| p != peer);
        retain(&mut self.maps.v6, |(p, ..)| p != peer);
        self.happened();
        Ok(())
    }

    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError> {
        self.stale.extend(of_peer(&self.maps.v4, peer));
        self.stale.extend(of_peer(&self.maps.v6, peer));
        self.happened();
        Ok(())
    }

    fn sweep(&mut self, peer: u32) -> Result<(), FeedError> {
        let swept: BTreeSet<_> = self.stale.extract_if(.., |&(p, ..)| p == peer).collect();
        retain(&mut self.maps.v4, |path| !swept.contains(&path));
        retain(&mut self.maps.v6, |path| !swept.contains(&path));
        self.happened();
        Ok(())
    }
}

impl<A: Addr> Played for Plain<A> {
    fn prefixes(&self) -> Vec<AnyPrefix> {
        let v4 = self.maps.v4.keys().copied().map(AnyPrefix::V4);
        let v6 = self.maps.v6.keys().copied().map(AnyPrefix::V6);
        let mut all: Vec<_> = v4.chain(v6).collect();
        all.sort_unstable();
        all
    }
}
