//! The interface between a feed and a table.

use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Update, Vrf};
use hashbrown::HashMap;

use crate::{Live, Peer, Rib, TableError};

/// An event of a feed. The position in a feed is the number of its events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedEvent<'a> {
    /// An update from a peer.
    Update(&'a Update<'a>),
    /// The session with a peer ended, and its routes are removed.
    Down(u32),
    /// The sessions with these peers ended: one event, for which each table is read once.
    DownAll(&'a [u32]),
    /// A peer starts over: its routes are stale until it announces them again, and stay in use meanwhile.
    MarkStale(u32),
    /// These peers start over: one event, for which each table is read once.
    MarkAllStale(&'a [u32]),
    /// A peer has announced everything again: its routes that are still stale are removed.
    Sweep(u32),
    /// These peers have announced everything again: one event, for which each table is read once.
    SweepAll(&'a [u32]),
}

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

/// The paths of a session, of all its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPaths {
    /// Its name.
    pub session: Arc<str>,
    /// Its peers.
    pub peers: Vec<u32>,
    /// Number of their paths.
    pub paths: usize,
}

impl SessionPaths {
    /// The session with the most paths, if it has more than the session of this peer.
    pub fn largest(rib: &Rib, peer: u32) -> Option<Self> {
        let mut all = HashMap::<&str, (usize, Vec<u32>)>::new();
        for (number, of) in rib.peers().iter() {
            let paths = PathCounts::of(rib, number);
            if let Some(session) = of.session()
                && paths != PathCounts::default()
            {
                let (sum, peers) = all.entry(session).or_default();
                *sum += paths.v4 + paths.v6;
                peers.push(number);
            }
        }
        let own = rib.peers().get(peer).and_then(Peer::session);
        let own = own.and_then(|session| all.get(session)).map_or(0, |(paths, _)| *paths);
        let (session, (paths, peers)) = all.into_iter().max_by_key(|(_, (paths, _))| *paths)?;
        (paths > own).then(|| Self { session: session.into(), peers, paths })
    }
}

/// A table that takes the events of feeds: a [`Rib`] without followers, a [`Live`] table, or something before one of
/// them. Besides [`Listener::event`] and the four methods that make an event, no method counts in the position.
///
/// ```
/// use fibula_core::{Change, Update};
/// use fibula_rib::{Listener, Peer, Rib};
///
/// fn feed(to: &mut dyn Listener) -> Result<(), fibula_rib::TableError> {
///     let peer = to.peer(&Peer::new(None, 64500));
///     let prefix = "192.0.2.0/24".parse().unwrap();
///     to.update(&Update { peer, ..Update::new(prefix, Change::Withdraw) })?;
///     to.down(peer)
/// }
///
/// let mut rib = Rib::default();
/// feed(&mut rib)?;
/// assert_eq!(rib.sequence(), 2);
/// # Ok::<(), fibula_rib::TableError>(())
/// ```
pub trait Listener {
    /// The number of this peer for the other methods. Peers are numbered from 0 in order of appearance, and the same
    /// peer has the same number until it is [released](Listener::release).
    fn peer(&mut self, peer: &Peer) -> u32;

    /// The most peers that the table may have, if it has as many and this one is not among them.
    fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        let _ = peer;
        None
    }

    /// The source does not name the peer any more, and has removed its routes: its number may be given up. If it comes
    /// back, [`Listener::peer`] has the number to use then.
    fn release(&mut self, peer: u32) {
        let _ = peer;
    }

    /// Begins a source whose routes have values, and returns the positions of its columns among the values of all
    /// sources. Its updates must use these positions.
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize>;

    /// The number of the routing instance with this name, for updates. The same name has the same number as long as it
    /// has routes; see [`Listener::given_up`] and [`Rib::vrf`].
    fn vrf(&mut self, name: &str) -> Vrf;

    /// How many times numbers of routing instances were given up, because they had no routes. A source that keeps such
    /// numbers compares this before it uses them, and asks [`Listener::is_vrf`] for each if it differs.
    fn given_up(&self) -> u64 {
        0
    }

    /// Whether the number still is that of a routing instance.
    fn is_vrf(&self, vrf: Vrf) -> bool {
        let _ = vrf;
        true
    }

    /// The next event.
    ///
    /// # Errors
    /// If the table cannot store it. The feed then ends.
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError>;

    /// [`FeedEvent::Update`].
    ///
    /// # Errors
    /// The errors of [`Listener::event`].
    fn update(&mut self, update: &Update<'_>) -> Result<(), TableError> {
        self.event(FeedEvent::Update(update))
    }

    /// [`FeedEvent::Down`].
    ///
    /// # Errors
    /// The errors of [`Listener::event`].
    fn down(&mut self, peer: u32) -> Result<(), TableError> {
        self.event(FeedEvent::Down(peer))
    }

    /// [`FeedEvent::MarkStale`].
    ///
    /// # Errors
    /// The errors of [`Listener::event`].
    fn mark_stale(&mut self, peer: u32) -> Result<(), TableError> {
        self.event(FeedEvent::MarkStale(peer))
    }

    /// [`FeedEvent::Sweep`].
    ///
    /// # Errors
    /// The errors of [`Listener::event`].
    fn sweep(&mut self, peer: u32) -> Result<(), TableError> {
        self.event(FeedEvent::Sweep(peer))
    }

    /// Number of paths of the peer, over all routing instances; `None` if the listener does not count them.
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        let _ = peer;
        None
    }

    /// The session with the most paths, if it has more than the session of this peer; `None` if the listener does not
    /// count them.
    fn largest_session(&self, peer: u32) -> Option<SessionPaths> {
        let _ = peer;
        None
    }

    /// The position of a source, in its own words, after all events up to it. A restart from a checkpoint continues
    /// there.
    fn position(&mut self, source: &str, position: &str) {
        let _ = (source, position);
    }

    /// No event is expected for now, so that due work can be done. Returns the time until more work is due.
    fn idle(&mut self) -> Option<Duration> {
        None
    }
}

/// A RIB whose changes are not followed, for filling a table before it is used.
impl Listener for Rib {
    fn peer(&mut self, peer: &Peer) -> u32 {
        Self::peer(self, peer.clone())
    }
    fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        Rib::is_full_for(self, peer)
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        Self::value_places(self, columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        Self::vrf(self, name)
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        self.apply_event(event, &mut ())
    }
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        Some(PathCounts::of(self, peer))
    }
    fn largest_session(&self, peer: u32) -> Option<SessionPaths> {
        SessionPaths::largest(self, peer)
    }
}

/// Readers see the changes. Only one thread at a time may feed a table, whose order of events is that of the calls.
impl Listener for &Live {
    fn peer(&mut self, peer: &Peer) -> u32 {
        Live::peer(self, peer.clone())
    }
    fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        self.with_rib(|rib| rib.is_full_for(peer))
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        Live::value_places(self, columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        Live::name_vrf(self, name)
    }
    fn given_up(&self) -> u64 {
        Live::given_up(self)
    }
    fn is_vrf(&self, vrf: Vrf) -> bool {
        self.with_rib(|rib| rib.is_vrf(vrf))
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        Live::event(self, event)
    }
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        Some(self.with_rib(|rib| PathCounts::of(rib, peer)))
    }
    fn largest_session(&self, peer: u32) -> Option<SessionPaths> {
        self.with_rib(|rib| SessionPaths::largest(rib, peer))
    }
}
