//! Every path of a RIB as columns of numbers.

use fibula_core::{Addr, FamilyType, Hop, Prefix, Route, Routes, Vrf};

use crate::Pod;
use crate::rib::family::FamilyCopy;
use crate::rib::{RibPeers, Staleness};

/// The places of peers in the file, by number.
pub(super) struct PeerPlaces {
    /// The numbers in order; empty if each peer's place is its number.
    numbers: Vec<u32>,
}

impl PeerPlaces {
    pub(super) fn of(peers: &RibPeers) -> Self {
        let last = peers.iter().next_back().map(|(number, _)| number as usize + 1);
        let has_gaps = last.is_some_and(|count| count != peers.len());
        let numbers = peers.iter().map(|(number, _)| number);
        Self { numbers: if has_gaps { numbers.collect() } else { Vec::new() } }
    }

    pub(super) fn get(&self, peer: u32) -> u32 {
        if self.numbers.is_empty() {
            return peer;
        }
        self.numbers.binary_search(&peer).map_or(u32::MAX, |place| place as u32)
    }
}

/// The paths of each family.
pub(super) struct AllPaths;

impl FamilyType for AllPaths {
    type Of<A: Addr> = Paths<A>;
}

/// All paths of a family: the columns of a table.
#[derive(Default)]
pub(super) struct Paths<A> {
    addr: Vec<A>,
    len: Vec<u8>,
    vrf: Vec<u32>,
    peer: Vec<u32>,
    id: Vec<u32>,
    set: Vec<u32>,
    /// The places of the stale paths.
    pub(super) stale: Vec<u32>,
}

impl<A: Addr + Pod> Paths<A> {
    /// The paths by VRF.
    pub(super) fn of<'a>(
        copies: impl Iterator<Item = (Vrf, &'a FamilyCopy<A>)>,
        (staleness, places): (&Staleness, &PeerPlaces),
    ) -> Self {
        let mut paths = Self::default();
        for (vrf, copy) in copies {
            for (prefix, speaker, path_id, set) in copy.all() {
                if staleness.is_stale(speaker) {
                    paths.stale.push(paths.addr.len() as u32);
                }
                paths.addr.push(prefix.addr());
                paths.len.push(prefix.len());
                paths.peer.push(places.get(speaker.peer()));
                paths.id.push(path_id);
                paths.set.push(set);
            }
            paths.vrf.resize(paths.addr.len(), vrf);
        }
        paths
    }

    /// The best routes of the global VRF: the first path of each prefix is the best.
    pub(super) fn routes(&self) -> Routes<A> {
        let global = self.vrf.partition_point(|&vrf| vrf == 0);
        let prefix = |i: usize| Prefix::masked(self.addr[i], self.len[i]).unwrap_or(Prefix::ALL);
        let is_first = |&i: &usize| i == 0 || prefix(i) != prefix(i - 1);
        let route = |i: usize| Route { prefix: prefix(i), hop: Hop::new(self.set[i]) };
        Routes::from_unsorted((0..global).filter(is_first).map(route).collect())
    }

    pub(super) fn sections(self, into: &mut Vec<(String, Vec<u8>)>) {
        let mut put = |what: &str, bytes: &[u8]| {
            into.push((format!("rib/{}/{what}", A::FAMILY), bytes.to_vec()));
        };
        put("addr", bytemuck::cast_slice(&self.addr));
        put("len", &self.len);
        let Self { vrf, peer, id, set, stale, .. } = &self;
        for (what, numbers) in
            [("vrf", vrf), ("peer", peer), ("id", id), ("set", set), ("stale", stale)]
        {
            put(what, bytemuck::cast_slice(numbers));
        }
    }
}
