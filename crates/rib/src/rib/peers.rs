//! The peers of a RIB, and where they have paths.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, RangeFrom};

use fibula_core::Vrf;
use hashbrown::HashMap;

use super::Peer;
use super::family::PeerParity;

/// The peers of a RIB by number. The number of a peer that was [given up](super::Rib::forget_peer) names no other one:
/// numbers ascend, and those that are free come again only after all 2^31 were used.
#[derive(Clone, Debug, Default)]
pub struct RibPeers {
    of: BTreeMap<u32, Peer>,
    numbers: HashMap<Peer, u32>,
    next: u32,
}

impl RibPeers {
    /// The number of this peer, which is new if the peer was unknown.
    pub(super) fn number(&mut self, peer: Peer) -> u32 {
        if let Some(&number) = self.numbers.get(&peer) {
            return number;
        }
        while self.of.contains_key(&self.next) {
            self.next = after(self.next);
        }
        let number = self.next;
        self.next = after(number);
        self.numbers.insert(peer.clone(), number);
        self.of.insert(number, peer);
        number
    }

    pub(super) fn has(&self, peer: &Peer) -> bool {
        self.numbers.contains_key(peer)
    }

    pub(super) fn remove(&mut self, number: u32) {
        if let Some(peer) = self.of.remove(&number) {
            self.numbers.remove(&peer);
        }
        if self.numbers.len() < self.numbers.capacity() / 4 {
            self.numbers.shrink_to_fit();
        }
    }

    /// Number of peers.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The peer with this number, unless it was given up.
    pub fn get(&self, number: u32) -> Option<&Peer> {
        self.of.get(&number)
    }

    /// The peers in the order of their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Peer)> {
        self.range(0..)
    }

    /// The peers from this number on, in order.
    pub fn range(&self, numbers: RangeFrom<u32>) -> impl DoubleEndedIterator<Item = (u32, &Peer)> {
        self.of.range(numbers).map(|(&number, peer)| (number, peer))
    }
}

/// Equal peers have equal numbers.
impl PartialEq for RibPeers {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Index<u32> for RibPeers {
    type Output = Peer;

    /// # Panics
    /// If there is no peer with this number.
    fn index(&self, number: u32) -> &Peer {
        &self.of[&number]
    }
}

/// The next number of a peer: those that a path has no bits for are left out.
fn after(number: u32) -> u32 {
    if number >= PeerParity::MAX_PEER { 0 } else { number + 1 }
}

/// The VRFs in which each peer has paths, so that what concerns one peer need not visit the tables of all.
#[derive(Default)]
pub(super) struct PeerVrfs(HashMap<u32, BTreeSet<Vrf>>);

impl PeerVrfs {
    /// The peer has its first path in a table.
    pub(super) fn add(&mut self, peer: u32, vrf: Vrf) {
        self.0.entry(peer).or_default().insert(vrf);
    }

    /// The VRFs in which the peer has paths, or had some.
    pub(super) fn of(&self, peer: u32) -> impl Iterator<Item = Vrf> {
        self.0.get(&peer).into_iter().flatten().copied()
    }

    /// Keeps the VRFs in which the peer has paths.
    pub(super) fn retain(&mut self, peer: u32, has_paths: impl Fn(Vrf) -> bool) {
        let Some(vrfs) = self.0.get_mut(&peer) else { return };
        vrfs.retain(|&vrf| has_paths(vrf));
        if vrfs.is_empty() {
            self.0.remove(&peer);
        }
        if self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once() {
        let mut peers = RibPeers::default();
        let mut number = |asn| peers.number(Peer::new(None, asn));
        assert_eq!([1, 2, 1, 3].map(&mut number), [0, 1, 0, 2]);
        peers.remove(1);
        assert!(peers.get(1).is_none() && peers.len() == 2);
        assert_eq!([2, 4].map(|asn| peers.number(Peer::new(None, asn))), [3, 4]);
        assert_eq!(peers.iter().map(|(number, _)| number).collect::<Vec<_>>(), [0, 2, 3, 4]);
        // Behind the last number the free ones come again.
        peers.next = PeerParity::MAX_PEER;
        assert_eq!([5, 6].map(|asn| peers.number(Peer::new(None, asn))), [PeerParity::MAX_PEER, 1]);
    }
}
