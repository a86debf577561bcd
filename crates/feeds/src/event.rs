use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fibula_ingest::Damage;
use fibula_rib::SnapshotError;

use crate::bgp::Agreed;

/// Information for the operator of a feed, which continues.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A checkpoint could not be written. The next one is tried when it is due, and the existing file stays.
    CheckpointFailed {
        /// The file.
        path: PathBuf,
        /// Why.
        failure: CheckpointFailure,
    },
    /// A part of a stream could not be decoded and was skipped.
    Damaged(Damage),
    /// A BGP session is established.
    Established {
        /// The neighbour's address.
        address: IpAddr,
        /// The negotiated settings.
        agreed: Box<Agreed>,
    },
    /// The peer with this number has restarted and announced everything again. Routes that it did not announce again
    /// were removed.
    Swept {
        /// The peer.
        peer: u32,
    },
    /// The table is full, and this session had the most routes: they were removed, so that others have room.
    CutOff {
        /// The session.
        session: Arc<str>,
        /// Number of its routes.
        routes: usize,
    },
    /// A lost connection was not restored in time, and the routes of its peers were removed.
    Expired {
        /// How many peers.
        peers: usize,
    },
}

/// The reason why a checkpoint was not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum CheckpointFailure {
    /// The file could not be written, for example because the disk is full.
    Write(SnapshotError),
    /// The system could not start a thread for the writer, or the writer panicked.
    Thread(io::Error),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CheckpointFailed { path, failure: CheckpointFailure::Thread(error) } => {
                write!(f, "{}: cannot write the checkpoint: {error}", path.display())?;
                f.write_str("; the next one is tried when it is due")
            }
            Self::CheckpointFailed { failure: CheckpointFailure::Write(error), .. } => {
                write!(f, "{error}; the next one is tried when it is due")
            }
            Self::Damaged(damage) => write!(f, "{damage}"),
            Self::Established { address, agreed } => {
                write!(f, "the session with {address} is established: {agreed}")
            }
            Self::Swept { peer } => write!(f, "peer {peer} has sent its whole table again"),
            Self::CutOff { routes, .. } => write!(
                f,
                "the table is full (limits.routes), and this session had the most routes: its {routes} are removed"
            ),
            Self::Expired { peers } => {
                write!(f, "the connection did not come back: the routes of {peers} peers are gone")
            }
        }
    }
}
