//! Why flows cannot be collected.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fibula_annotate::AnnotateError;

/// An error of a collector.
#[derive(Debug)]
#[non_exhaustive]
pub enum CollectError {
    /// No datagrams can be received at an address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        error: io::Error,
    },
    /// Flows cannot be sent on to an address.
    Forward {
        /// The address.
        to: SocketAddr,
        /// The system's reason.
        error: io::Error,
    },
    /// A file cannot be written. Its rows are lost; files before it are complete.
    Write {
        /// The file, or its folder; `-` is standard output.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file of templates cannot be used.
    Templates {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The table and the columns of flows do not fit each other.
    Annotate(AnnotateError),
    /// The system has no threads.
    Thread(io::Error),
}

impl CollectError {
    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        Self::Write { path: path.to_owned(), error }
    }

    /// Whether the reader of standard output has gone.
    #[must_use]
    pub fn is_closed_output(&self) -> bool {
        matches!(self, Self::Write { path, error }
            if path.as_os_str() == "-" && error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for CollectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, error } => write!(f, "cannot receive at {address}: {error}"),
            Self::Forward { to, error } => write!(f, "cannot send flows to {to}: {error}"),
            Self::Write { path, error } if path.as_os_str() == "-" => {
                write!(f, "standard output: {error}")
            }
            Self::Write { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Templates { path, what } => write!(f, "{}: {what}", path.display()),
            Self::Annotate(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "no thread for the collector: {error}"),
        }
    }
}

impl std::error::Error for CollectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. }
            | Self::Forward { error, .. }
            | Self::Write { error, .. }
            | Self::Thread(error) => Some(error),
            Self::Annotate(error) => Some(error),
            Self::Templates { .. } => None,
        }
    }
}

impl From<AnnotateError> for CollectError {
    fn from(error: AnnotateError) -> Self {
        Self::Annotate(error)
    }
}
