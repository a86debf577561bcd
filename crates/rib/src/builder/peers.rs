//! The BGP peers of all sources, and the choice among them.

use std::fmt;
use std::net::IpAddr;

use hashbrown::HashMap;

use super::PeerChoice;

/// A peer: the same one in every source in which address and AS are the same.
pub(super) struct Peer {
    pub(super) address: Option<IpAddr>,
    pub(super) asn: u32,
    /// Its index in the first source that has it.
    pub(super) index: u32,
    /// Whether the peer may be chosen.
    pub(super) eligible: bool,
}

impl Peer {
    /// Its value in the column `peer`.
    pub(super) fn text(&self) -> String {
        self.address.map_or_else(|| format!("AS{}", self.asn), |address| address.to_string())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address} AS{}", self.asn)?,
            None => write!(f, "AS{}", self.asn)?,
        }
        write!(f, " (index {})", self.index)
    }
}

pub(super) struct Peers {
    choice: PeerChoice,
    pub(super) peers: Vec<Peer>,
    known: HashMap<(Option<IpAddr>, u32, u32), u32>,
    /// The current source's indices; looked up for each update.
    indices: HashMap<u32, u32>,
    /// Number of sources with peers so far.
    sources: u32,
}

impl Peers {
    pub(super) fn new(choice: PeerChoice) -> Self {
        Self {
            choice,
            peers: Vec::new(),
            known: HashMap::new(),
            indices: HashMap::new(),
            sources: 0,
        }
    }

    pub(super) fn begin_source(&mut self) {
        self.indices.clear();
        self.sources += 1;
    }

    pub(super) fn add(&mut self, index: u32, address: Option<IpAddr>, asn: u32) {
        // Without an address, the AS alone does not make two peers of a source the same.
        let key = (address, asn, if address.is_some() { 0 } else { index });
        let peers = &mut self.peers;
        let number = *self.known.entry(key).or_insert_with(|| {
            peers.push(Peer { address, asn, index, eligible: false });
            peers.len() as u32 - 1
        });
        self.indices.insert(index, number);
        let peer = &mut self.peers[number as usize];
        peer.eligible |= match self.choice {
            PeerChoice::Best | PeerChoice::All | PeerChoice::Most => true,
            PeerChoice::Index(wanted) => self.sources <= 1 && wanted == index,
            PeerChoice::Address(wanted) => address == Some(wanted),
            PeerChoice::As(wanted) => asn == wanted,
        };
    }

    /// The speaker number of the current source's peer, `None` if its routes are not wanted.
    pub(super) fn speaker(&mut self, index: u32) -> Option<u32> {
        let number = match self.indices.get(&index) {
            Some(&number) => number,
            None => {
                self.add(index, None, 0);
                self.indices[&index]
            }
        };
        self.peers[number as usize].eligible.then(|| speaker(number as usize))
    }

    /// The peers whose routes are taken: the eligible peer with the most routes, or all eligible peers with routes; if
    /// none has routes, a peer without.
    pub(super) fn select(&self, routes: impl Fn(u32) -> u64) -> Vec<usize> {
        let eligible = || self.peers.iter().enumerate().filter(|(_, peer)| peer.eligible);
        let counted = eligible().map(|(i, _)| (i, routes(speaker(i))));
        let most = counted.clone().reduce(|best, next| if next.1 > best.1 { next } else { best });
        match (&self.choice, most) {
            (_, None) => Vec::new(),
            (PeerChoice::Most, Some((most, _))) | (_, Some((most, 0))) => vec![most],
            _ => counted.filter(|(_, routes)| *routes > 0).map(|(i, _)| i).collect(),
        }
    }

    /// The requested peers, in words; `None` if none were requested.
    pub(super) fn requested(&self) -> Option<String> {
        match self.choice {
            PeerChoice::Best | PeerChoice::All | PeerChoice::Most => None,
            PeerChoice::Index(index) => Some(format!("with index {index}")),
            PeerChoice::Address(address) => Some(address.to_string()),
            PeerChoice::As(asn) => Some(format!("in AS{asn}")),
        }
    }
}

/// The number of a peer: 0 is for the sources without peers.
pub(super) fn speaker(peer: usize) -> u32 {
    peer as u32 + 1
}

/// The peer of a speaker number.
pub(super) fn peer_of(speaker: u32) -> Option<usize> {
    speaker.checked_sub(1).map(|peer| peer as usize)
}
