use std::time::Duration;

use fibula_core::{AnyPrefix, Update, Vrf};
use fibula_rib::{Peer, Rib};

use crate::FeedError;

/// Number of paths of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Of IPv4.
    pub v4: usize,
    /// Of IPv6.
    pub v6: usize,
}

impl PathCounts {
    /// The paths of the peer in this table.
    pub fn of(rib: &Rib, peer: u32) -> Self {
        Self { v4: rib.paths_of::<u32>(peer), v6: rib.paths_of::<u128>(peer) }
    }
}

/// The events of a table. Each method call is one event, and the position in a feed is the number of events; methods
/// marked as "No event" are not counted.
pub trait Listener {
    /// The number of this peer for the other methods. Peers are numbered from 0 in order of appearance, and the same
    /// peer always has the same number. No event.
    fn peer(&mut self, peer: &Peer) -> u32;

    /// Begins a source whose routes have values, and returns the positions of its columns among the values of all
    /// sources. Its updates must use these positions. No event.
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize>;

    /// Number of paths of the peer, over all routing instances; `None` if the listener does not count them. No event.
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        let _ = peer;
        None
    }

    /// The number of the routing instance with this name, for updates. The same name always has the same number; see
    /// [`Rib::vrf`]. No event.
    fn vrf(&mut self, name: &str) -> Vrf;

    /// An update from a peer.
    ///
    /// # Errors
    /// If the table cannot store it. The feed then ends.
    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError>;

    /// The session with a peer ended, and its routes are removed.
    ///
    /// # Errors
    /// The errors of [`Listener::update`].
    fn down(&mut self, peer: u32) -> Result<(), FeedError>;

    /// A peer starts over: its routes are stale until it announces them again, and stay in use meanwhile.
    ///
    /// # Errors
    /// The errors of [`Listener::update`].
    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError>;

    /// A peer has announced everything again: its routes that are still stale are removed.
    ///
    /// # Errors
    /// The errors of [`Listener::update`].
    fn sweep(&mut self, peer: u32) -> Result<(), FeedError>;

    /// The position of a source, in its own words, after all events up to it. A restart from a checkpoint continues
    /// there. No event.
    fn position(&mut self, source: &str, position: &str) {
        let _ = (source, position);
    }

    /// No event is expected for now, so that due work can be done. Returns the time until more work is due. No event.
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

/// The peer for sources without peers.
pub(crate) const NOBODY: Peer = Peer::new(None, 0);
