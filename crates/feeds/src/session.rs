//! Sources that do not end: the updates in a stream of bytes, over successive connections.
//!
//! ```text
//!                    connected                       no peer and no route of an open peer came for a while
//!   Idle ───────────────────────► Resync ──────────────────────────────────────────────────► Up
//!    ▲                            │    ▲                                                      │
//!    │ hold time is over          ▼    │ connected                                            │
//!    └────────────────────────── Lost ◄┴──────────────────────────────────────────────────────┘
//!      all peers down                          disconnected; without a peer: Idle
//! ```
//!
//! When a connection is lost, its routes stay, because the daemon at the other end still forwards by them. When
//! the next one begins, all routes are stale until they are announced again. Formats with an end mark (BGP's
//! End-of-RIB) mark when a peer is complete; its stale routes are then withdrawn. No format says how many peers
//! will follow, and some (FPM) have no marks. So a connection is complete after a time in which no peer appeared or
//! ended, and no routes came from peers that have not ended.
//!
//! There is no I/O and no clock in here: the owner of the socket passes in bytes and times, and calls
//! [`Session::tick`] at [`Session::deadline`].

use std::time::Duration;

use fibula_ingest::{Damage, Decoder, DriveError, Driver, StopReason};
use fibula_rib::{Listener, Peer};

use crate::listen::NOBODY;
use crate::peer_mapper::{PeerMapper, Peers};
use crate::{Event, FeedError, Figures, Protocol, SourceState};

/// Options of a [`Session`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// The peer for formats without peers. Each stream needs a peer of its own; otherwise one stream would remove the
    /// routes of another.
    pub peer: Peer,
    /// The name of the source's table in [`Rib::vrf`](fibula_rib::Rib::vrf). Further routing instances of the source
    /// have this name, a slash and their own name. Empty for the global one.
    pub table: String,
    /// The source has sent everything when for this long no peer appeared or ended, and no route came from a peer
    /// that had not ended. Other messages do not count: FRR reports every second that a peer is still down.
    pub quiet: Duration,
    /// The source has sent everything after this time in any case, because some streams are never quiet.
    pub longest_resync: Duration,
    /// How long the routes of a lost connection stay.
    pub hold: Duration,
    /// Maximum number of bytes without the end of a record.
    pub longest_record: usize,
    /// How long a withdrawal is held back, because the next record may turn it into a replacement; see
    /// [`Decoder::is_holding`].
    pub holding: Duration,
}

impl Default for SessionOptions {
    /// 5 s of silence, 5 minutes of resynchronisation, 2 of hold time, 16 MiB, 20 ms.
    fn default() -> Self {
        Self {
            peer: NOBODY,
            table: String::new(),
            quiet: Duration::from_secs(5),
            longest_resync: Duration::from_secs(300),
            hold: Duration::from_secs(120),
            longest_record: 16 << 20,
            holding: Duration::from_millis(20),
        }
    }
}

/// One source with successive connections.
///
/// The routes of a lost connection stay, because the daemon at the other end still forwards by them. When the next
/// connection begins, all routes are stale until they are announced again. Stale routes are removed once the
/// connection has sent everything: for each peer separately if the format has end marks, else for all peers after a
/// time of silence. The owner of the socket calls [`Session::tick`] at [`Session::deadline`].
pub struct Session {
    connect: Box<dyn Fn() -> Box<dyn Decoder> + Send>,
    options: SessionOptions,
    state: State,
    /// The time of the last data of a table that is not complete yet ([`Peers::progress`]).
    news: Duration,
    peers: Peers,
    events: Box<dyn Fn(Event) + Send>,
}

enum State {
    Idle,
    /// The times of the connection's beginning and of its last data.
    Resync(Driver, Duration, Duration),
    /// The time of the last data.
    Up(Driver, Duration),
    /// The time when the connection was lost.
    Lost(Duration),
}

impl Session {
    /// Makes a source without a connection. Each connection gets a decoder of its own.
    pub fn new(
        connect: impl Fn() -> Box<dyn Decoder> + Send + 'static,
        options: SessionOptions,
    ) -> Self {
        Self {
            connect: Box::new(connect),
            options,
            state: State::Idle,
            news: Duration::ZERO,
            peers: Peers::default(),
            events: Box::new(|_| {}),
        }
    }

    /// Receives events for the operator.
    #[must_use]
    pub fn with_events(mut self, events: impl Fn(Event) + Send + 'static) -> Self {
        self.events = Box::new(events);
        self
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Resync(..) | State::Up(..))
    }

    /// Whether it is connected and has sent everything.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Up(..))
    }

    /// Passes on the updates that the decoder holds back.
    fn flush(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        let Self { state, peers, options, events, .. } = self;
        let is_resync = matches!(state, State::Resync(..));
        let (State::Resync(driver, ..) | State::Up(driver, _)) = state else { return Ok(()) };
        let SessionOptions { peer: speaker, table, .. } = options;
        let mut mapper = PeerMapper::new(to, (peers, is_resync), (speaker, table), events);
        driver.flush(&mut mapper);
        mapper.failed.map_or(Ok(()), Err)
    }

    fn become_up(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Idle) {
            State::Resync(driver, _, last) => State::Up(driver, last),
            other => other,
        };
    }
}

/// A session has nothing to send.
impl Protocol for Session {
    fn connected(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        _: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        self.peers.figures.connections += 1;
        let driver = Driver::new((self.connect)(), self.options.longest_record);
        self.state = State::Resync(driver, now, now);
        self.news = now;
        self.peers.start_over(to) // all earlier routes become stale
    }

    fn bytes(
        &mut self,
        now: Duration,
        bytes: &[u8],
        to: &mut dyn Listener,
        _: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        let Self { state, peers, options, events, .. } = self;
        let is_resync = matches!(state, State::Resync(..));
        let driver = match state {
            State::Resync(driver, _, last) | State::Up(driver, last) => {
                *last = now;
                driver
            }
            State::Idle | State::Lost(_) => return Ok(()),
        };
        peers.figures.bytes += bytes.len() as u64;
        let before = peers.progress();
        let SessionOptions { peer: speaker, table, .. } = options;
        let mut mapper = PeerMapper::new(to, (peers, is_resync), (speaker, table), events);
        let pushed = driver.push(bytes, &mut mapper);
        if let Some(failed) = mapper.failed {
            return Err(failed);
        }
        pushed.map_err(|error| match error {
            DriveError::TooLong { bytes } => FeedError::TooLong { bytes },
            DriveError::Stopped(StopReason::Misfit(what)) => FeedError::Misfit(what),
            other => FeedError::Misfit(other.to_string()),
        })?;
        if peers.progress() != before {
            self.news = now;
        }
        Ok(())
    }

    fn disconnected(&mut self, now: Duration) {
        // Its routes stay until the hold time is over. Without a peer there are none to wait for: unknown clients that
        // connect and send nothing must not keep their sessions.
        if let State::Resync(driver, ..) | State::Up(driver, _) = &self.state
            && !driver.pending().is_empty()
        {
            self.peers.figures.damaged += 1;
            let bytes = driver.pending().len();
            let what = format!("the stream ended within a record, of which {bytes} bytes came");
            let (record, offset) = (driver.records() + 1, driver.offset());
            (self.events)(Event::Damaged(Damage {
                file: "".into(),
                record,
                offset,
                what: what.into(),
            }));
        }
        if self.is_connected() {
            self.state = if self.peers.all.is_empty() { State::Idle } else { State::Lost(now) };
        }
    }

    fn tick(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        _: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Ok(());
        }
        self.flush(to)?;
        if self.is_complete() || self.deadline().is_some_and(|deadline| now < deadline) {
            return Ok(());
        }
        if self.is_connected() {
            self.peers.complete(to, &self.events)?;
            self.become_up();
            return Ok(());
        }
        let peers = self.peers.all.len();
        self.end(to)?;
        (self.events)(Event::Expired { peers });
        Ok(())
    }

    fn deadline(&self) -> Option<Duration> {
        let options = &self.options;
        match self.state {
            State::Resync(ref driver, _, last) | State::Up(ref driver, last)
                if driver.is_holding() =>
            {
                Some(last.saturating_add(options.holding))
            }
            State::Resync(_, began, _) => {
                let quiet = self.news.saturating_add(options.quiet);
                Some(quiet.min(began.saturating_add(options.longest_resync)))
            }
            State::Lost(since) => Some(since.saturating_add(options.hold)),
            State::Idle | State::Up(..) => None,
        }
    }

    fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError> {
        self.state = State::Idle;
        self.peers.end(to)
    }

    fn adopt(&mut self, peer: u32, now: Duration) {
        self.peers.all.insert(peer);
        if matches!(self.state, State::Idle) {
            self.state = State::Lost(now);
        }
    }

    fn state(&self) -> SourceState {
        match self.state {
            State::Idle => SourceState::Idle,
            State::Resync(..) => SourceState::Resync,
            State::Up(..) => SourceState::Up,
            State::Lost(_) => SourceState::Lost,
        }
    }

    fn expires(&self) -> Option<Duration> {
        match self.state {
            State::Lost(since) => Some(since.saturating_add(self.options.hold)),
            _ => None,
        }
    }

    fn figures(&self) -> Figures {
        self.peers.figures.clone()
    }
}
