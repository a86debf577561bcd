//! Chooses the best of several paths for a prefix, with the reason.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::AnyPrefix;

use super::set::{AttributeSet, Rank};

/// One criterion of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The higher local preference; 100 if missing.
    LocalPreference,
    /// The shorter AS path.
    AsPathLength,
    /// The lower origin: IGP before EGP before incomplete.
    Origin,
    /// The peer that is first in [`Preference::peers`], else by number.
    PeerOrder,
    /// The lower MED; 0 if missing.
    Med,
    /// The lower path identifier.
    PathId,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LocalPreference => "local preference",
            Self::AsPathLength => "AS path length",
            Self::Origin => "origin",
            Self::PeerOrder => "peer order",
            Self::Med => "MED",
            Self::PathId => "path identifier",
        })
    }
}

/// The criteria of the decision, in order. Paths that are equal in all of them are ordered by peer and path
/// identifier, so there is always one best path.
///
/// The default compares MEDs after the peers, so only among paths of one peer: MEDs of different neighbours are not
/// comparable, and comparing only some paths by MED would not give a total order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// The criteria, the most important first.
    pub steps: Vec<Step>,
    /// Peers, by number, that are preferred to all others, the most preferred first.
    pub peers: Vec<u32>,
}

impl Default for Preference {
    fn default() -> Self {
        use Step::{AsPathLength, LocalPreference, Med, Origin, PathId, PeerOrder};
        let steps = vec![LocalPreference, AsPathLength, Origin, PeerOrder, Med, PathId];
        Self { steps, peers: Vec::new() }
    }
}

/// A path as the decision sees it.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) peer: u32,
    pub(crate) path_id: u32,
    pub(crate) rank: Rank,
}

impl Preference {
    /// [`Ordering::Less`] if `a` is better, and the deciding criterion.
    pub(crate) fn compare(&self, a: &Contender, b: &Contender) -> (Ordering, Step) {
        for &step in &self.steps {
            let order = match step {
                Step::LocalPreference => {
                    Reverse(a.rank.local_pref).cmp(&Reverse(b.rank.local_pref))
                }
                Step::AsPathLength => a.rank.path_len.cmp(&b.rank.path_len),
                Step::Origin => a.rank.origin.cmp(&b.rank.origin),
                Step::PeerOrder => self.place(a.peer).cmp(&self.place(b.peer)),
                Step::Med => a.rank.med.cmp(&b.rank.med),
                Step::PathId => a.path_id.cmp(&b.path_id),
            };
            if order.is_ne() {
                return (order, step);
            }
        }
        match self.place(a.peer).cmp(&self.place(b.peer)) {
            Ordering::Equal => (a.path_id.cmp(&b.path_id), Step::PathId),
            order => (order, Step::PeerOrder),
        }
    }

    fn place(&self, peer: u32) -> (usize, u32) {
        let listed = self.peers.iter().position(|&p| p == peer);
        (listed.unwrap_or(self.peers.len()), peer)
    }
}

/// A path for a prefix, announced by one peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The number of the peer.
    pub peer: u32,
    /// The ADD-PATH identifier; 0 if the peer sends one path for each prefix.
    pub path_id: u32,
    /// The number of its attributes, which is the hop of the prefix if this is its best path.
    pub hop: u32,
    /// Its attributes.
    pub attributes: AttributeSet,
}

/// The explanation of a decision: all paths of a prefix, the best first, each with the criterion by which the best
/// one is better. Its text form is for people.
#[derive(Clone, Debug)]
pub struct Decision {
    pub(super) prefix: AnyPrefix,
    pub(super) paths: Vec<(Path, Option<Step>)>,
    /// The peers of the paths; `None` for a number that is no peer's.
    pub(super) peers: Vec<Option<Peer>>,
}

impl Decision {
    /// The paths, the best first, each of the others with the criterion by which it lost.
    pub fn paths(&self) -> &[(Path, Option<Step>)] {
        &self.paths
    }

    /// The best path.
    pub fn best(&self) -> &Path {
        &self.paths[0].0
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |(path, peer): (&Path, &Option<Peer>)| match peer {
            Some(peer) => peer.to_string(),
            None => format!("peer {}", path.peer),
        };
        let best = &self.paths[0].0;
        let first = name((best, &self.peers[0]));
        write!(f, "{}: {first} has the best path: {}", self.prefix, best.attributes)?;
        if self.paths.len() == 1 {
            f.write_str("; there is no other")?;
        }
        for ((path, step), peer) in self.paths.iter().zip(&self.peers).skip(1) {
            let name = name((path, peer));
            let step = step.map_or(String::new(), |step| step.to_string());
            write!(f, "\n  over {name} by {step}: {}", path.attributes)?;
        }
        Ok(())
    }
}

/// A source of routes. Peers are the same if address, AS and source are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its address, if the source has it.
    pub address: Option<IpAddr>,
    /// Its AS, 0 if unknown.
    pub asn: u32,
    /// The name of the source; `None` for files, in all of which a peer is the same.
    pub source: Option<Arc<str>>,
}

impl Peer {
    /// A peer in files.
    pub const fn new(address: Option<IpAddr>, asn: u32) -> Self {
        Self { address, asn, source: None }
    }

    /// The session of its source: one of several views of a peer (`bmp 192.0.2.1 pre-policy`) is of the same session as
    /// the others, `bmp 192.0.2.1`.
    pub fn session(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        let (name, rest) = source.split_once(' ').unwrap_or((source, ""));
        let address = rest.split(' ').next().unwrap_or_default();
        match address.parse::<IpAddr>() {
            Ok(_) => Some(&source[..name.len() + 1 + address.len()]),
            Err(_) => Some(name),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "peer {address} AS{}", self.asn)?,
            None => write!(f, "peer AS{}", self.asn)?,
        }
        self.source.as_ref().map_or(Ok(()), |source| write!(f, " of {source}"))
    }
}
