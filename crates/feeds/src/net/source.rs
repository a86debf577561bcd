//! The sources that a hub runs.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_ingest::Decoder;
use fibula_rib::Peer;

use super::stream::StreamDevice;
use crate::{Event, Protocol};

/// The configuration of a source of a [`Hub`](super::Hub).
pub struct FeedSource {
    /// Its name, which no other source has: text without white space. Sessions of a listening source have this name, a
    /// space and the remote address: `bmp 192.0.2.1`.
    pub name: String,
    /// Its protocol: `fpm`, `bmp`, `bgp`, `kernel`, `ris`, `mrt`.
    pub kind: &'static str,
    /// The table that it feeds, for display; see [`SourceStatus`](crate::SourceStatus::table).
    pub table: String,
    /// Its endpoint.
    pub endpoint: Endpoint,
}

/// The origin of a source's bytes, and its protocol.
pub enum Endpoint {
    /// Accepts connections. A remote address has one session. When it connects again, the same session continues with
    /// the new connection, if its protocol accepts it ([`Protocol::admit`]), even if the old one is still open.
    Listen(Listen),
    /// Opens a connection, and opens it again when it breaks.
    Connect {
        /// The address to connect to.
        address: SocketAddr,
        /// The protocol.
        speaker: ProtocolFactory,
        /// The intervals of attempts after a failure.
        retry: Retry,
    },
    /// Reads a named pipe, whose writers may change; a file, once; or standard input (`-`), once.
    Path {
        /// The pipe.
        path: PathBuf,
        /// The protocol.
        speaker: ProtocolFactory,
    },
    /// Reads something that is opened by a function: the kernel's routing socket.
    Device {
        /// A description, for display.
        what: String,
        /// The function that opens it.
        open: Box<dyn Fn() -> io::Result<Box<dyn StreamDevice>> + Send>,
        /// The protocol.
        speaker: ProtocolFactory,
        /// The intervals of attempts after a failure.
        retry: Retry,
    },
    /// Reads the files of a folder as they appear.
    Folder(Folder),
}

/// A listening endpoint.
pub struct Listen {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The addresses that may connect: the longest prefix that covers the remote address determines the protocol. A
    /// prefix of a single address has a session that exists, and is shown, before it connects.
    pub speakers: Vec<(AnyPrefix, ProtocolFactory)>,
    /// Maximum number of sessions, connected or lost.
    pub limit: usize,
    /// The addresses whose connections must be signed, with their TCP MD5 keys, on Linux (see
    /// [`set_md5_key`](crate::bgp::set_md5_key)).
    pub keys: Vec<(AnyPrefix, Vec<u8>)>,
}

/// Makes the protocols of an endpoint's sessions.
#[derive(Clone)]
pub struct ProtocolFactory {
    /// Its settings as text: at [`HubHandle::reload`](super::HubHandle::reload) a session with equal settings
    /// continues.
    pub settings: String,
    /// Makes the protocol of a session.
    pub protocol: Arc<dyn Fn(SessionContext) -> Box<dyn Protocol> + Send + Sync>,
}

/// A session that needs a protocol.
pub struct SessionContext {
    /// The session's name, which is the [source](Peer::source) of its peers, followed by a space and the peer's view if
    /// there are views. After a restart, peers are assigned to sessions by this name.
    pub name: Arc<str>,
    /// The address of the other end, if there is one.
    pub remote: Option<IpAddr>,
    /// Receives the protocol's events.
    pub events: Box<dyn Fn(Event) + Send>,
}

/// The intervals of attempts after failures: `first`, then twice as long each time, up to `longest`. After ten seconds
/// of success they start from `first` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The interval after the first failure.
    pub first: Duration,
    /// The maximum interval.
    pub longest: Duration,
}

impl Default for Retry {
    /// One second; a minute.
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

/// A folder in which files appear, such as a collector's `updates`.
///
/// Files are taken **in the order of the times in their names**: of `rib.20221122.1600.bz2` and
/// `updates.20221122.1605.gz` that is the text from the first number of four or more digits up to the next letter,
/// `20221122.1600`; names with equal times are in the order of the whole names, so that `bview` and `rib` come before
/// `updates`. Names that begin with a dot, end with `~`, `.tmp` or `.part`, or are not UTF-8 are ignored.
///
/// A file is **complete** when it was renamed into the folder, when its writer closed it, or when it has not
/// changed for [`Folder::settle`]. An incomplete file holds back later files. A file that becomes complete after a
/// later one was read is reported and skipped.
///
/// The folder is **begun** with its newest dump (`rib*`, `bview*`), or with its first file if there is none;
/// earlier files are ignored, and so are later dumps, which repeat the updates, unless a file was damaged. With
/// [`Folder::after`] it continues after that file. After a dump was read, routes of its peers that it does not contain
/// are withdrawn.
///
/// A file that is **damaged** (a failed checksum, a cut archive or last record, most of its records) is reported, and
/// nothing of it is taken: each file is read twice, and the first time nothing is passed on. The folder continues,
/// because later files are worth more than a table that no longer changes, but its state is
/// [`SourceState::Damaged`](crate::SourceState) until the table has what is missing: until the file is replaced before
/// a later one was taken, or the next dump is taken. Its position stays before the first such file, so that another
/// start finds it again. A file that is damaged between the two readings has brought a part that may be wrong: then
/// only a dump ends the state, and the position is empty: another start begins with a dump. A damaged dump at the
/// beginning is replaced by the one before. Whether a table dump without compression ends early between two records
/// cannot be seen.
#[derive(Clone)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// The name of its last file that the table includes: the source's position in a checkpoint, see
    /// [`Positions`](crate::Positions). Empty as `None`.
    pub after: Option<String>,
    /// The time after which an unchanged file is complete.
    pub settle: Duration,
    /// Its settings, like [`ProtocolFactory::settings`].
    pub settings: String,
    /// Makes the decoder of a file.
    pub decoder: Arc<dyn Fn() -> Box<dyn Decoder> + Send + Sync>,
    /// The peer for formats without peers; its source is that of all peers.
    pub peer: Peer,
    /// The name of the table, as [`SessionOptions::table`](crate::SessionOptions::table).
    pub table: String,
}

impl FeedSource {
    /// The properties that must not change if the source is to continue at a reload. The speakers of a listening source
    /// are compared one by one.
    pub(super) fn identity(&self) -> Identity {
        let (way, settings) = match &self.endpoint {
            Endpoint::Listen(_) => ("listen", ""),
            Endpoint::Connect { speaker, .. } => ("connect", &*speaker.settings),
            Endpoint::Path { speaker, .. } => ("path", &*speaker.settings),
            Endpoint::Device { speaker, .. } => ("device", &*speaker.settings),
            Endpoint::Folder(folder) => ("folder", &*folder.settings),
        };
        let place = self.endpoint.text();
        Identity {
            kind: self.kind,
            table: self.table.clone(),
            way,
            place,
            settings: settings.to_owned(),
        }
    }

    pub(super) fn check(&self) -> Result<(), FeedSourceError> {
        let is_name = !self.name.is_empty() && !self.name.contains(char::is_whitespace);
        is_name.then_some(()).ok_or_else(|| FeedSourceError::Name { name: self.name.clone() })
    }
}

impl Endpoint {
    /// The endpoint as the board shows it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Listen(listen) => listen.address.to_string(),
            Self::Connect { address, .. } => address.to_string(),
            Self::Path { path, .. } | Self::Folder(Folder { path, .. }) => {
                path.display().to_string()
            }
            Self::Device { what, .. } => what.clone(),
        }
    }
}

/// See [`FeedSource::identity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    kind: &'static str,
    table: String,
    way: &'static str,
    place: String,
    settings: String,
}

/// The reason why a source cannot be run.
#[derive(Debug)]
#[non_exhaustive]
pub enum FeedSourceError {
    /// Its name is empty or has white space in it.
    Name {
        /// The name.
        name: String,
    },
    /// There is another source of this name.
    Twice {
        /// The name.
        name: String,
    },
    /// The hub cannot listen on its address.
    Listen {
        /// The source.
        name: String,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system has no thread to read its folder.
    Thread {
        /// The source.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

impl fmt::Display for FeedSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => {
                write!(f, "{name:?} cannot name a source: it is empty or has white space in it")
            }
            Self::Twice { name } => write!(f, "there are two sources called {name}; rename one"),
            Self::Listen { name, address, error } => {
                write!(f, "{name}: cannot listen on {address}: {error}")
            }
            Self::Thread { name, error } => {
                write!(f, "{name}: no thread to read the folder: {error}")
            }
        }
    }
}

impl std::error::Error for FeedSourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. } | Self::Thread { error, .. } => Some(error),
            Self::Name { .. } | Self::Twice { .. } => None,
        }
    }
}
