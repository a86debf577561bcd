use std::time::Duration;

use fibula_core::{AnyPrefix, Update, Vrf};
use fibula_rib::{Peer, Rib};

use crate::FeedError;

/// Paths of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Of IPv4.
    pub v4: usize,
    /// Of IPv6.
    pub v6: usize,
}

impl PathCounts {
    /// Those that the peer has in this table.
    pub fn of(rib: &Rib, peer: u32) -> Self {
        Self { v4: rib.paths_of::<u32>(peer), v6: rib.paths_of::<u128>(peer) }
    }
}

/// What can happen to a table. Each call of a verb is one event, and the position in a feed counts events;
/// those that say so are none.
pub trait Listener {
    /// The number of this peer, by which the other verbs name it: from 0 on as peers appear, always the
    /// same one for the same peer. No event.
    fn peer(&mut self, peer: &Peer) -> u32;

    /// A source whose routes have values begins: the places of its columns among the values of all sources,
    /// where its updates have them from here on. No event.
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize>;

    /// How many paths the peer has, over all routing instances; `None` from who does not count them. No event.
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        let _ = peer;
        None
    }

    /// The number of the routing instance of this name, by which updates name it: always the same one for the
    /// same name; see [`Rib::vrf`]. No event.
    fn vrf(&mut self, name: &str) -> Vrf;

    /// A peer says something.
    ///
    /// # Errors
    /// If the table cannot take it: the feed ends.
    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError>;

    /// The session with a peer ended: its routes are gone.
    ///
    /// # Errors
    /// As [`Listener::update`].
    fn down(&mut self, peer: u32) -> Result<(), FeedError>;

    /// A peer starts over: its routes are stale until it announces them again, and stay meanwhile.
    ///
    /// # Errors
    /// As [`Listener::update`].
    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError>;

    /// A peer has said everything again: its routes that are still stale are gone.
    ///
    /// # Errors
    /// As [`Listener::update`].
    fn sweep(&mut self, peer: u32) -> Result<(), FeedError>;

    /// A source has come so far, in its own words, and everything up to there has been told: to go on from, after
    /// a restart from a checkpoint. No event.
    fn position(&mut self, source: &str, position: &str) {
        let _ = (source, position);
    }

    /// Nothing comes for now, so that what is due can be done. Gives the time until something will be. No event.
    fn idle(&mut self) -> Option<Duration> {
        None
    }
}

/// Without anybody who follows the changes: to fill a table before it serves.
impl Listener for Rib {
    fn peer(&mut self, peer: &Peer) -> u32 {
        Self::peer(self, peer.clone())
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        Self::value_places(self, columns)
    }
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        Some(PathCounts::of(self, peer))
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        Self::vrf(self, name)
    }
    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError> {
        Ok(self.apply(update, &mut ())?)
    }
    fn down(&mut self, peer: u32) -> Result<(), FeedError> {
        self.peer_down(peer, &mut ());
        Ok(())
    }
    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError> {
        Self::mark_stale(self, peer);
        Ok(())
    }
    fn sweep(&mut self, peer: u32) -> Result<(), FeedError> {
        Self::sweep(self, peer, &mut ());
        Ok(())
    }
}

/// The prefixes of a VRF that have a route, sorted.
pub fn prefixes(rib: &Rib, vrf: Vrf) -> Vec<AnyPrefix> {
    let v4 = rib.iter::<u32>(vrf).map(|(prefix, _)| prefix.into());
    v4.chain(rib.iter::<u128>(vrf).map(|(prefix, _)| prefix.into())).collect()
}

/// The peer that stands for sources without peers.
pub(crate) const NOBODY: Peer = Peer::new(None, 0);
