//! Identifies a feed, so that a checkpoint can check that it continues with the same one.

use fibula_core::{AnyPrefix, Change, Update};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::FeedEvent;
use crate::rib::set;

/// A feed up to some event: its names, and a digest of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedMark {
    /// The names of its sources, for display. Feeds are compared by their digests.
    pub names: Vec<String>,
    /// Number of its events.
    pub events: u64,
    /// The digest of these events.
    pub digest: u64,
}

/// A digest of the events of a feed, in order. Feeds with the same events have the same digest. It detects mistakes,
/// not forgeries.
///
/// ```
/// use fibula_core::{Change, Update};
/// use fibula_rib::{FeedDigest, FeedEvent};
///
/// let withdrawal = Update::new("192.0.2.0/24".parse()?, Change::Withdraw);
/// let (mut one, mut other) = (FeedDigest::default(), FeedDigest::default());
/// one.add(FeedEvent::Update(&withdrawal));
/// other.add(FeedEvent::Update(&Update { time: 1, ..withdrawal }));
/// assert_ne!(one.value(), other.value());
/// assert_eq!(one.events(), 1);
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FeedDigest {
    value: u64,
    events: u64,
    scratch: Vec<u8>,
}

impl FeedDigest {
    /// Adds an event.
    pub fn add(&mut self, event: FeedEvent<'_>) {
        match event {
            FeedEvent::Update(update) => self.update(update),
            FeedEvent::Down(peer) => self.of_peer(1, peer),
            FeedEvent::MarkStale(peer) => self.of_peer(2, peer),
            FeedEvent::Sweep(peer) => self.of_peer(3, peer),
            FeedEvent::DownAll(peers) => self.of_peers(4, peers),
            FeedEvent::SweepAll(peers) => self.of_peers(5, peers),
            FeedEvent::MarkAllStale(peers) => self.of_peers(6, peers),
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        let bytes = &mut self.scratch;
        bytes.clear();
        let (addr, len) = match update.prefix {
            AnyPrefix::V4(prefix) => (u128::from(prefix.addr()), prefix.len()),
            AnyPrefix::V6(prefix) => (prefix.addr(), prefix.len()),
        };
        bytes.extend_from_slice(&[0, matches!(update.prefix, AnyPrefix::V6(_)).into(), len]);
        bytes.extend_from_slice(&addr.to_le_bytes());
        for number in [update.vrf, update.peer, update.path_id] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&update.time.to_le_bytes());
        if let Change::Announce(attributes) = &update.change {
            set::encode(attributes, bytes);
        }
        self.take();
    }

    fn of_peer(&mut self, kind: u8, peer: u32) {
        self.of_peers(kind, &[peer]);
    }

    fn of_peers(&mut self, kind: u8, peers: &[u32]) {
        self.scratch.clear();
        self.scratch.push(kind);
        self.scratch.extend(peers.iter().flat_map(|peer| peer.to_le_bytes()));
        self.take();
    }

    /// Chains the event to those before it.
    fn take(&mut self) {
        self.value = XxHash3_64::oneshot_with_seed(self.value, &self.scratch);
        self.events += 1;
    }

    /// The digest of all events so far.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The feed with these names up to here.
    pub fn mark(&self, names: &[String]) -> FeedMark {
        FeedMark { names: names.to_vec(), events: self.events, digest: self.value }
    }
}
