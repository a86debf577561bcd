//! Information for the operator of a hub.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::Event;

/// An event of a source of a [`Hub`](super::Hub). It does not affect other sources.
#[derive(Debug)]
pub struct SourceReport {
    /// The source, or its session: `bmp`, `bmp 192.0.2.1`.
    pub source: Arc<str>,
    /// The event.
    pub what: SourceEvent,
}

/// An event of a source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceEvent {
    /// It waits for connections.
    Listening {
        /// Where.
        address: SocketAddr,
    },
    /// A connection began.
    Connected,
    /// The connection ended. Its routes stay for the hold time.
    Disconnected {
        /// Why.
        why: String,
        /// Bytes that the connection had brought.
        bytes: u64,
    },
    /// The connection was closed here, because the hub was stopped or the source removed: nothing is wrong.
    Closed {
        /// Which of the two.
        why: String,
        /// Bytes that the connection had brought.
        bytes: u64,
    },
    /// A connection was refused: its address may not connect or is connected already, or there are too many sessions.
    Refused {
        /// The peer.
        address: IpAddr,
        /// Why.
        why: Cow<'static, str>,
    },
    /// A source that is opened here cannot be opened. It is tried again after this time.
    Unavailable {
        /// The system's error.
        why: String,
        /// When the next attempt is made.
        retry: Duration,
    },
    /// A stream that does not come back, such as standard input, ended.
    Ended,
    /// A file of a folder was taken.
    Taken {
        /// The file.
        file: String,
        /// Updates in it.
        updates: u64,
        /// Parts of it that were damaged and skipped.
        damaged: u64,
    },
    /// A file of a folder, or the rest of one, was skipped.
    PassedOver {
        /// The file.
        file: String,
        /// Why, and how much of it was taken.
        why: String,
    },
    /// The checkpoint has peers of a source that is not configured any more: their routes are removed.
    Orphans {
        /// How many peers.
        peers: usize,
    },
    /// So many more refusals, or damaged parts, were not reported one by one.
    More {
        /// Their number.
        count: u64,
    },
    /// An event of the source's protocol.
    Protocol(Event),
}

impl fmt::Display for SourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.what)
    }
}

impl fmt::Display for SourceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { address } => write!(f, "listens on {address}"),
            Self::Connected => f.write_str("connected"),
            Self::Disconnected { why, bytes } => {
                write!(f, "disconnected behind byte {bytes}: {why}")
            }
            Self::Closed { why, bytes } => write!(f, "closed behind byte {bytes}: {why}"),
            Self::Refused { address, why } => write!(f, "refused {address}: {why}"),
            Self::Unavailable { why, retry } => {
                write!(f, "{why}; the next attempt is made in {retry:?}")
            }
            Self::Ended => f.write_str("the stream ended"),
            Self::Taken { file, updates, damaged: 0 } => write!(f, "{file}: {updates} updates"),
            Self::Taken { file, updates, damaged } => {
                write!(f, "{file}: {updates} updates; {damaged} damaged parts were skipped")
            }
            Self::PassedOver { file, why } => write!(f, "{file}: {why}"),
            Self::Orphans { peers } => write!(
                f,
                "the checkpoint has {peers} peers of this source, which is not configured: their routes \
                 are gone"
            ),
            Self::More { count } => write!(f, "and {count} more like this"),
            Self::Protocol(event) => write!(f, "{event}"),
        }
    }
}

/// Receives reports.
pub(super) type OnReport = Arc<dyn Fn(SourceReport) + Send + Sync>;
