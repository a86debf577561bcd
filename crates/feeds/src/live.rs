use std::time::Duration;

use fibula_core::Vrf;
use fibula_rib::{
    FeedDigest, FeedEvent, FeedMark, Listener, Live, PathCounts, Peer, SessionPaths, TableError,
};

use crate::leftovers::Leftovers;
use crate::pace::{Clock, Pacer, Speed, SystemClock};
use crate::{Checkpoints, FeedError, Positions};

/// Feeds a live table at a given speed, skips the events that a checkpoint already has, and writes checkpoints.
pub struct LiveFeed<'a, C: Clock = SystemClock> {
    live: &'a Live,
    clock: C,
    pacer: Option<Pacer>,
    /// Number of events to skip, because the table includes them already.
    skip: u64,
    /// The feed that the skipped events belong to, as its checkpoint stores it.
    known: Option<FeedMark>,
    /// The digest of this feed's events; `None` if neither a check nor a checkpoint needs it.
    digest: Option<FeedDigest>,
    applied: u64,
    checkpoints: Option<Checkpoints>,
    /// Whether events arrived after the last checkpoint.
    is_ahead: bool,
    left: Leftovers,
    positions: Positions,
}

impl<'a> LiveFeed<'a> {
    /// Makes a feed that applies every event as it arrives.
    pub fn new(live: &'a Live) -> Self {
        Self::with_clock(live, SystemClock::default())
    }
}

impl<'a, C: Clock> LiveFeed<'a, C> {
    /// Like [`LiveFeed::new`], with this clock.
    pub fn with_clock(live: &'a Live, clock: C) -> Self {
        Self {
            live,
            clock,
            pacer: None,
            skip: 0,
            known: None,
            digest: None,
            applied: 0,
            checkpoints: None,
            is_ahead: false,
            left: Leftovers::default(),
            positions: Positions::default(),
        }
    }

    /// Plays further updates at this speed, and with at most this many updates each second.
    #[must_use]
    pub fn paced(mut self, speed: Speed, rate: Option<u64>) -> Self {
        self.pacer = Some(Pacer::new(speed, rate, &self.clock));
        self
    }

    /// Skips this number of events, because the table was opened from a checkpoint that has them. It is not checked
    /// that they are the same; see [`LiveFeed::going_on`].
    #[must_use]
    pub fn skipping(mut self, events: u64) -> Self {
        self.skip = events;
        self
    }

    /// Skips the events that the checkpoint of the table has. If the feed's events differ up to there, or the feed
    /// ends before, the next event or [`LiveFeed::finish`] returns an error ([`TableError::OtherFeed`]), and no
    /// checkpoint is written.
    #[must_use]
    pub fn going_on(mut self, feed: FeedMark) -> Self {
        self.skip = feed.events;
        self.known = Some(feed);
        self.digest.get_or_insert_default();
        self
    }

    /// Writes checkpoints.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Option<Checkpoints>) -> Self {
        if checkpoints.as_ref().is_some_and(Checkpoints::is_of_feed) {
            self.digest.get_or_insert_default();
        }
        self.checkpoints = checkpoints;
        self
    }

    /// Sets the positions of the sources in the checkpoint of the table.
    #[must_use]
    pub fn at(mut self, positions: Positions) -> Self {
        self.positions = positions;
        self
    }

    /// Gives up peers that their sources have released, and VRFs without routes, after this time. Not for a feed that
    /// [goes on](LiveFeed::going_on): its events name peers by their numbers.
    #[must_use]
    pub fn giving_up_after(mut self, hold: Duration) -> Self {
        self.left = Leftovers::of(self.live, hold, self.clock.now());
        self
    }

    /// Number of updates applied, without skipped ones.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Writes the last checkpoint, if checkpoints are enabled, and returns the number written.
    ///
    /// # Errors
    /// The errors of [`Checkpoints::finish`]; [`TableError::OtherFeed`] if the feed ended before the position of its
    /// checkpoint.
    pub fn finish(self) -> Result<u64, FeedError> {
        match self.known {
            Some(feed) if self.skip > 0 => {
                Err(TableError::OtherFeed { feed, is_short: true }.into())
            }
            _ => {
                let digest = self.digest.unwrap_or_default();
                self.checkpoints
                    .map_or(Ok(0), |checkpoints| checkpoints.finish_of(self.live, &digest))
            }
        }
    }

    /// Whether the table includes the next event already.
    fn is_known(&mut self, event: FeedEvent<'_>) -> Result<bool, TableError> {
        if let Some(digest) = &mut self.digest {
            digest.add(event);
        }
        if self.skip == 0 {
            return Ok(false);
        }
        self.skip -= 1;
        if let (0, Some(known), Some(digest)) = (self.skip, &self.known, &self.digest)
            && digest.value() != known.digest
        {
            let feed = known.clone();
            self.checkpoints = None; // a caller that continues anyway must not overwrite the checkpoint
            return Err(TableError::OtherFeed { feed, is_short: false });
        }
        Ok(true)
    }

    /// Begins a checkpoint if one is due.
    fn checkpoint(&mut self) {
        let Some(checkpoints) = &mut self.checkpoints else { return };
        let none = FeedDigest::default();
        let digest = self.digest.as_ref().unwrap_or(&none);
        if checkpoints.tick_of(self.clock.now(), self.live, digest) {
            self.is_ahead = false;
        }
    }
}

impl<C: Clock> Listener for LiveFeed<'_, C> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        let number = self.live.peer(peer.clone());
        self.left.came_back(number);
        number
    }

    fn release(&mut self, peer: u32) {
        self.left.released(peer, self.clock.now());
    }

    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.live.value_places(columns)
    }

    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        Some(self.live.with_rib(|rib| PathCounts::of(rib, peer)))
    }

    fn largest_session(&self, peer: u32) -> Option<SessionPaths> {
        self.live.with_rib(|rib| SessionPaths::largest(rib, peer))
    }

    fn vrf(&mut self, name: &str) -> Vrf {
        self.live.name_vrf(name)
    }

    fn given_up(&self) -> u64 {
        self.live.given_up()
    }

    fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        self.live.with_rib(|rib| rib.is_full_for(peer))
    }

    fn is_vrf(&self, vrf: Vrf) -> bool {
        self.live.with_rib(|rib| rib.is_vrf(vrf))
    }

    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        if self.is_known(event)? {
            return Ok(());
        }
        if let (FeedEvent::Update(update), Some(pacer)) = (event, &mut self.pacer) {
            pacer.wait(update.time, &self.clock);
        }
        self.live.event(event)?;
        self.applied += u64::from(matches!(event, FeedEvent::Update(_)));
        self.is_ahead = true;
        self.left.look_again();
        self.checkpoint();
        Ok(())
    }

    fn position(&mut self, source: &str, position: &str) {
        self.positions.set(source, position);
        self.is_ahead = true;
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.set_position(self.positions.to_string());
        }
    }

    /// A checkpoint is written when it is due, if anything has changed since the last one; and what sources left behind
    /// is given up.
    fn idle(&mut self) -> Option<Duration> {
        let tidy = self.left.look(self.live, &self.clock);
        if self.is_ahead {
            self.checkpoint();
        }
        let checkpoints = self.checkpoints.as_ref().filter(|_| self.is_ahead);
        let due = checkpoints.map(|of| of.due().saturating_sub(self.clock.now()));
        tidy.into_iter().chain(due).min()
    }
}
