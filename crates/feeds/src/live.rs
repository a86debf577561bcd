use fibula_core::Update;
use fibula_rib::{Live, Peer};

use crate::pace::{Clock, Pacer, Speed, SystemClock};
use crate::{Checkpoints, FeedError, Listener};

/// Feeds a live table: paced, with what a checkpoint holds already left out, and checkpoints written.
pub struct LiveFeed<'a, C: Clock = SystemClock> {
    live: &'a Live,
    clock: C,
    pacer: Option<Pacer>,
    /// Events that the table has taken in already.
    skip: u64,
    applied: u64,
    checkpoints: Option<Checkpoints>,
}

impl<'a> LiveFeed<'a> {
    /// Every event as it comes.
    pub fn new(live: &'a Live) -> Self {
        Self::with_clock(live, SystemClock::default())
    }
}

impl<'a, C: Clock> LiveFeed<'a, C> {
    /// As [`LiveFeed::new`], by this clock.
    pub fn with_clock(live: &'a Live, clock: C) -> Self {
        Self { live, clock, pacer: None, skip: 0, applied: 0, checkpoints: None }
    }

    /// Plays updates at this speed from now on, and at most so many a second.
    #[must_use]
    pub fn paced(mut self, speed: Speed, rate: Option<u64>) -> Self {
        self.pacer = Some(Pacer::new(speed, rate, &self.clock));
        self
    }

    /// Leaves out the first events: the table was opened from a checkpoint that had taken them in.
    #[must_use]
    pub fn skipping(mut self, events: u64) -> Self {
        self.skip = events;
        self
    }

    /// Writes checkpoints.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Option<Checkpoints>) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// Updates that were applied; those that were skipped do not count.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Writes the last checkpoint, if any are written at all; says how many were.
    ///
    /// # Errors
    /// As [`Checkpoints::finish`].
    pub fn finish(self) -> Result<u64, FeedError> {
        self.checkpoints.map_or(Ok(0), |checkpoints| checkpoints.finish(self.live))
    }

    /// Whether the table has taken in the event that comes now.
    fn is_known(&mut self) -> bool {
        let is_known = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        is_known
    }

    fn event(&mut self, apply: impl FnOnce(&Live)) -> Result<(), FeedError> {
        if !self.is_known() {
            apply(self.live);
            self.tick();
        }
        Ok(())
    }

    fn tick(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.tick(self.clock.now(), self.live);
        }
    }
}

impl<C: Clock> Listener for LiveFeed<'_, C> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.live.peer(peer.clone())
    }

    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError> {
        if self.is_known() {
            return Ok(());
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.wait(update.time, &self.clock);
        }
        self.live.apply(update)?;
        self.applied += 1;
        self.tick();
        Ok(())
    }

    fn down(&mut self, peer: u32) -> Result<(), FeedError> {
        self.event(|live| live.peer_down(peer))
    }

    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError> {
        self.event(|live| live.mark_stale(peer))
    }

    fn sweep(&mut self, peer: u32) -> Result<(), FeedError> {
        self.event(|live| live.sweep(peer))
    }
}
