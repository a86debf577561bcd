//! The protocol of a connection, as the owner of its socket sees it.

use std::time::Duration;

use crate::{FeedError, Listener};

/// The protocol of one source over connections that come and go: bytes and times in, verbs to the listener
/// and bytes to be sent out. No I/O and no clock: whoever owns the socket calls, with times that never go
/// back, and calls [`Protocol::tick`] at [`Protocol::deadline`].
///
/// Of a connection that fails, the routes serve on for a while, so an error never takes a table along, unless
/// the protocol says that they are gone (a NOTIFICATION of BGP does).
pub trait Protocol: Send {
    /// Another connection wants to begin. Where one is there, that one has ended if the new one is taken
    /// ([`Protocol::connected`]); if it is refused, what is in `out` is sent over the one that is there.
    ///
    /// # Errors
    /// The refusal: what to send over the new connection before it is closed, and why.
    fn admit(&mut self, now: Duration, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let _ = (now, out);
        Ok(())
    }

    /// A connection begins. What has to be sent is appended to `out`.
    ///
    /// # Errors
    /// If the listener cannot go on.
    fn connected(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// Bytes came; without a connection they are ignored.
    ///
    /// # Errors
    /// The connection is of no further use: what is in `out` is sent, then it is closed.
    fn bytes(
        &mut self,
        now: Duration,
        bytes: &[u8],
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// The connection ended, for whatever reason.
    fn disconnected(&mut self, now: Duration);

    /// Time has passed.
    ///
    /// # Errors
    /// As [`Protocol::bytes`].
    fn tick(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError>;

    /// When [`Protocol::tick`] will do something, if nothing comes before.
    fn deadline(&self) -> Option<Duration>;

    /// Asks the other end for everything again, if the protocol can; says whether it can.
    ///
    /// # Errors
    /// If the listener cannot go on.
    fn refresh(
        &mut self,
        now: Duration,
        to: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<bool, FeedError> {
        let _ = (now, to, out);
        Ok(false)
    }

    /// The last words of a source that is being closed.
    fn close(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// The source is no more: its routes are gone.
    ///
    /// # Errors
    /// If the listener cannot go on.
    fn end(&mut self, to: &mut dyn Listener) -> Result<(), FeedError>;

    /// This peer of the table is one of the source's: its routes come from a checkpoint, and go if the source
    /// does not come back in time.
    fn adopt(&mut self, peer: u32, now: Duration);

    /// Where it stands.
    fn state(&self) -> SourceState;

    /// What has come so far, over all connections.
    fn figures(&self) -> Figures;
}

/// A connection that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What to send before it is closed.
    pub farewell: Vec<u8>,
    /// A sentence for the log.
    pub why: String,
}

/// Where a source stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// It was never connected, or its routes are gone.
    #[default]
    Idle,
    /// It is connected and has not said everything yet.
    Resync,
    /// It is connected and has said everything.
    Up,
    /// The connection is lost; its routes stay for a while.
    Lost,
}

impl SourceState {
    /// As `/v1/peers` and the logs call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Resync => "resync",
            Self::Up => "up",
            Self::Lost => "lost",
        }
    }
}

/// What a source has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections that began.
    pub connections: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Routes that were announced.
    pub announced: u64,
    /// Routes that were withdrawn.
    pub withdrawn: u64,
    /// Parts that could not be decoded and were skipped.
    pub damaged: u64,
    /// Sound parts that hold nothing for a unicast routing table.
    pub ignored: u64,
    /// What the source says of itself, the newest of each kind.
    pub remarks: std::collections::BTreeMap<&'static str, String>,
}
