//! Why something does not run.

use std::error::Error;
use std::fmt;
use std::io;

use fibula_feeds::FeedError;
#[cfg(unix)]
use fibula_feeds::net::FeedSourceError;
use fibula_fib::FibError;
use fibula_rib::{LiveError, SnapshotError};
use fibula_server::ServerError;

use crate::config::{ConfigError, Problem};

/// Why a server or a router did not start, or ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum DaemonError {
    /// The configuration, or a file that it names, is wrong.
    Config(ConfigError),
    /// The checkpoint cannot be read.
    Checkpoint(SnapshotError),
    /// The live table cannot be started, or accepts nothing more.
    Live(LiveError),
    /// The table of a file cannot be opened.
    Table(Box<dyn Error + Send + Sync>),
    /// A source cannot be run.
    #[cfg(unix)]
    Source(FeedSourceError),
    /// The sources could not be replaced; the reasons, one for each source.
    #[cfg(unix)]
    Refused(Vec<FeedSourceError>),
    /// The feeds ended with an error.
    Feed(FeedError),
    /// The server cannot answer.
    Server(ServerError),
    /// Flows cannot be received.
    #[cfg(target_os = "linux")]
    Flows(fibula_collect::CollectError),
    /// The system has no thread, socket or poll for it.
    System {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A port cannot be opened.
    Port {
        /// The port.
        port: String,
        /// The system's error.
        error: io::Error,
    },
    /// The router's control or its pipeline cannot run.
    Router(Box<dyn Error + Send + Sync>),
    /// A capture ends early: the port, and where.
    Capture {
        /// The port.
        port: String,
        /// Where it ends, and how.
        error: String,
    },
    /// It has ended already.
    Ended,
    /// A thread panicked: a bug.
    Panicked {
        /// Which one.
        thread: &'static str,
    },
}

impl DaemonError {
    /// What to do about it, if the error has advice.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Config(error) => return error.hint(),
            Self::Checkpoint(_) => {
                "move the file away to begin with an empty table, or let checkpoint.on-damage = \"set-aside\" do so"
            }
            Self::Port { port, error }
                if port.starts_with("xdp:") && error.kind() == io::ErrorKind::PermissionDenied =>
            {
                "run it as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK"
            }
            Self::Capture { .. } => {
                "the packets before it were forwarded; those behind it were not read"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
            Self::Live(error) => error.fmt(f),
            Self::Table(error) | Self::Router(error) => error.fmt(f),
            #[cfg(unix)]
            Self::Source(error) => error.fmt(f),
            #[cfg(unix)]
            Self::Refused(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&errors.join("; "))
            }
            Self::Feed(error) => error.fmt(f),
            Self::Server(error) => error.fmt(f),
            #[cfg(target_os = "linux")]
            Self::Flows(error) => error.fmt(f),
            Self::System { what, error } => write!(f, "{what}: {error}"),
            Self::Port { port, error } => {
                // Most errors begin with the port's name.
                let text = error.to_string();
                let what = text.strip_prefix(&format!("{port}: ")).unwrap_or(&text);
                write!(f, "--port {port}: {what}")
            }
            Self::Capture { port, error } => write!(f, "{port}: {error}"),
            Self::Ended => f.write_str("it has ended already"),
            Self::Panicked { thread } => write!(f, "{thread} panicked"),
        }
    }
}

impl Error for DaemonError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Checkpoint(error) => Some(error),
            Self::Live(error) => Some(error),
            Self::Table(error) | Self::Router(error) => Some(&**error),
            #[cfg(unix)]
            Self::Source(error) => Some(error),
            Self::Feed(error) => Some(error),
            Self::Server(error) => Some(error),
            #[cfg(target_os = "linux")]
            Self::Flows(error) => Some(error),
            Self::System { error, .. } | Self::Port { error, .. } => Some(error),
            _ => None,
        }
    }
}

macro_rules! from_errors {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for DaemonError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from_errors!(
    ConfigError => Config,
    LiveError => Live,
    FeedError => Feed,
    ServerError => Server,
);

#[cfg(unix)]
from_errors!(FeedSourceError => Source);

impl From<Problem> for DaemonError {
    fn from(problem: Problem) -> Self {
        Self::Config(problem.into())
    }
}

impl From<FibError> for DaemonError {
    fn from(error: FibError) -> Self {
        Self::Table(error.into())
    }
}

#[cfg(target_os = "linux")]
impl From<fibula_router::control::ControlError> for DaemonError {
    fn from(error: fibula_router::control::ControlError) -> Self {
        Self::Router(error.into())
    }
}

#[cfg(target_os = "linux")]
impl From<fibula_router::pipeline::PipelineError> for DaemonError {
    fn from(error: fibula_router::pipeline::PipelineError) -> Self {
        Self::Router(error.into())
    }
}

impl From<fibula_rib::TableError> for DaemonError {
    fn from(error: fibula_rib::TableError) -> Self {
        Self::Table(error.into())
    }
}
