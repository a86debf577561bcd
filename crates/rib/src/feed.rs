//! How a checkpoint knows its feed again.

use fibula_core::{AnyPrefix, Change, Update};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::rib::set;

/// A feed up to some event: what it is called, and a digest of what it said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedMark {
    /// The names of its sources, for people; two feeds are the same if their digests are.
    pub names: Vec<String>,
    /// How many events it had.
    pub events: u64,
    /// The digest of these events.
    pub digest: u64,
}

/// A digest of the events of a feed, one after the other. Two feeds that said the same have the same one; it
/// finds mistakes, not forgeries.
///
/// ```
/// use fibula_core::{Change, Update};
/// use fibula_rib::FeedDigest;
///
/// let withdrawal = Update::new("192.0.2.0/24".parse()?, Change::Withdraw);
/// let (mut one, mut other) = (FeedDigest::default(), FeedDigest::default());
/// one.update(&withdrawal);
/// other.update(&Update { time: 1, ..withdrawal });
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
    /// A peer said something.
    pub fn update(&mut self, update: &Update<'_>) {
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

    /// The session with a peer ended.
    pub fn down(&mut self, peer: u32) {
        self.of_peer(1, peer);
    }

    /// A peer starts over.
    pub fn mark_stale(&mut self, peer: u32) {
        self.of_peer(2, peer);
    }

    /// A peer has said everything again.
    pub fn sweep(&mut self, peer: u32) {
        self.of_peer(3, peer);
    }

    fn of_peer(&mut self, kind: u8, peer: u32) {
        self.scratch.clear();
        self.scratch.push(kind);
        self.scratch.extend_from_slice(&peer.to_le_bytes());
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

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The feed of these names up to here.
    pub fn mark(&self, names: &[String]) -> FeedMark {
        FeedMark { names: names.to_vec(), events: self.events, digest: self.value }
    }
}
