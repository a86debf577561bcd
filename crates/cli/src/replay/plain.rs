//! The check: the same feed into plain maps, and the reader's answers compared with them, at the point of the feed that
//! its generation takes in.

use std::cmp::Reverse;

use fibula_core::{Addr, AnyPrefix, Change, Vrf};
use fibula_rib::{AttributeSet, FeedEvent, Listener, Peer, Rib, TableError, ValueNames};
use fibula_testkit::PlainRib;
use fibula_testkit::plain_rib::best;

use super::feed::Played;
use super::reader::Sample;

/// The plain table, and the samples that wait for their point of the feed.
pub struct Plain<A: Addr> {
    routes: PlainRib<AttributeSet>,
    /// By number.
    peers: Vec<Peer>,
    values: ValueNames,
    /// Without routes: it numbers the names.
    vrfs: Rib,
    /// The number of events so far.
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
            routes: PlainRib::default(),
            peers: Vec::new(),
            values: ValueNames::default(),
            vrfs: Rib::default(),
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
                let expected = self.routes.longest(*addr, rank);
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
        differences::<u32>(&self.routes, rib) + differences::<u128>(&self.routes, rib)
    }

    /// Samples whose point of the feed never came.
    pub fn left(&self) -> usize {
        self.samples.len()
    }
}

/// The default preference in one tuple; the best path has the smallest.
fn rank((peer, path_id): (u32, u32), set: &AttributeSet) -> impl Ord + use<> {
    let bgp = set.bgp().unwrap_or_default();
    let preference = Reverse(bgp.local_pref.unwrap_or(100));
    let (origin, med) = (bgp.origin.unwrap_or(0), bgp.med.unwrap_or(0));
    (preference, bgp.as_path_len, origin, peer, med, path_id)
}

fn differences<A: Addr>(routes: &PlainRib<AttributeSet>, rib: &Rib) -> u64 {
    let (mut count, mut different) = (0u64, 0);
    for (prefix, paths) in routes.iter::<A>() {
        count += 1;
        let held = rib.paths(0, prefix);
        let same = |(key, set): (&(u32, u32), &AttributeSet)| {
            held.iter().any(|path| (path.peer, path.path_id) == *key && path.attributes == *set)
        };
        let all = held.len() == paths.len() && paths.iter().all(same);
        let first = held.first().map(|path| &path.attributes) == best(paths, rank);
        different += u64::from(!all || !first);
    }
    different + count.abs_diff(rib.len::<A>(0) as u64)
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

    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        match event {
            FeedEvent::Update(update) if update.vrf == 0 => {
                let key = (update.peer, update.path_id);
                match update.change {
                    Change::Announce(attributes) => {
                        self.routes.announce(update.prefix, key, AttributeSet::new(&attributes));
                    }
                    Change::Withdraw => self.routes.withdraw(update.prefix, key),
                }
            }
            FeedEvent::Update(_) => {}
            FeedEvent::Down(peer) => self.routes.down(peer),
            FeedEvent::MarkStale(peer) => self.routes.mark_stale(peer),
            FeedEvent::Sweep(peer) => self.routes.sweep(peer),
            FeedEvent::DownAll(peers) => peers.iter().for_each(|&peer| self.routes.down(peer)),
            FeedEvent::MarkAllStale(peers) => {
                peers.iter().for_each(|&peer| self.routes.mark_stale(peer));
            }
            FeedEvent::SweepAll(peers) => peers.iter().for_each(|&peer| self.routes.sweep(peer)),
        }
        self.happened();
        Ok(())
    }
}

impl<A: Addr> Played for Plain<A> {
    fn prefixes(&self) -> Vec<AnyPrefix> {
        self.routes.prefixes()
    }
}
