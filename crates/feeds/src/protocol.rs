//! The interface between a protocol and the owner of its sockets.

use std::net::IpAddr;
use std::time::Duration;

use fibula_rib::Listener;

use crate::FeedError;

/// The protocol of one source over successive connections: it takes bytes and times, calls the listener, and produces
/// bytes to send. It does no I/O and reads no clock. The owner of the socket calls it with times that never decrease,
/// and calls [`Protocol::tick`] at [`Protocol::deadline`].
///
/// The routes of a failed connection stay in use for a while, so an error never empties a table, unless the protocol
/// withdraws the routes (as BGP does with a NOTIFICATION).
pub trait Protocol: Send {
    /// Another connection wants to begin. If it is accepted while one exists, the existing one has ended
    /// ([`Protocol::connected`]). If it is refused, the contents of `out` are sent over the existing one.
    ///
    /// # Errors
    /// The refusal: the bytes to send over the new connection before it is closed, and the reason.
    fn admit(&mut self, now: Duration, out: &mut Vec<u8>) -> Result<(), ConnectionRefusal> {
        let _ = (now, out);
        Ok(())
    }

    /// The address of this end of the connection that begins next.
    fn local_address(&mut self, address: IpAddr) {
        let _ = address;
    }

    /// A connection begins. Bytes to send are appended to `out`.
    ///
    /// # Errors
    /// Errors of the listener.
    fn connected(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// Bytes arrived. Without a connection they are ignored.
    ///
    /// # Errors
    /// The connection must be closed, after the contents of `out` are sent.
    fn bytes(
        &mut self,
        now: Duration,
        bytes: &[u8],
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// The connection ended, for any reason.
    fn disconnected(&mut self, now: Duration);

    /// Time has passed.
    ///
    /// # Errors
    /// The errors of [`Protocol::bytes`].
    fn tick(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// The time of the next work of [`Protocol::tick`], if nothing arrives before.
    fn deadline(&self) -> Option<Duration>;

    /// Requests everything again from the other end. Returns whether the protocol can do this.
    ///
    /// # Errors
    /// Errors of the listener.
    fn refresh(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<bool, FeedError> {
        let _ = (now, to, out);
        Ok(false)
    }

    /// Appends the last message of a source that is being closed.
    fn close(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Removes the source and its routes.
    ///
    /// # Errors
    /// Errors of the listener.
    fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError>;

    /// Assigns this peer of the table to the source. Its routes come from a checkpoint, and are removed if the source
    /// does not connect again in time.
    fn adopt(&mut self, peer: u32, now: Duration);

    /// The state of the source.
    fn state(&self) -> SourceState;

    /// The time when the routes of a lost connection are removed, while its state is [`SourceState::Lost`].
    fn expires(&self) -> Option<Duration> {
        None
    }

    /// The counts over all connections.
    fn figures(&self) -> Figures;
}

/// A refused connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRefusal {
    /// The bytes to send before it is closed.
    pub farewell: Vec<u8>,
    /// The reason, as a sentence for the log.
    pub why: String,
}

/// The state of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// It was never connected, or its routes were removed.
    #[default]
    Idle,
    /// It is connected and has not sent everything yet.
    Resync,
    /// It is connected and has sent everything.
    Up,
    /// The connection is lost, and its routes stay for a while.
    Lost,
    /// A file is damaged, so that the table lacks what it has.
    Damaged,
}

impl SourceState {
    /// The state's name in `/v1/peers` and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Resync => "resync",
            Self::Up => "up",
            Self::Lost => "lost",
            Self::Damaged => "damaged",
        }
    }
}

/// The counts of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections so far.
    pub connections: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Routes announced.
    pub announced: u64,
    /// Routes withdrawn.
    pub withdrawn: u64,
    /// Damaged parts, which were skipped.
    pub damaged: u64,
    /// Valid parts without a unicast route.
    pub ignored: u64,
    /// Parts that were not read literally, or contradict others ([`Sink::noted`](fibula_ingest::Sink::noted)), by kind.
    pub noted: std::collections::BTreeMap<&'static str, u64>,
    /// Information of the source about itself, the newest of each kind.
    pub remarks: std::collections::BTreeMap<&'static str, String>,
}
