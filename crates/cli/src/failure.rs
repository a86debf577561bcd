//! The end of a command: exit codes and error messages.

use std::fmt;
use std::io;

use fibula::sources::{DatesError, SourceError};
use fibula_daemon::DaemonError;
use fibula_daemon::config::ConfigError;
use fibula_feeds::FeedError;
use fibula_fetch::FetchError;
use fibula_ingest::ReadError;
use fibula_rib::{LiveError, TableError};

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As hoped.
    Done,
    /// The work was done, and the answer is "no": an engine is wrong, an address has no route.
    Negative,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Negative => 1,
        }
    }
}

/// The error that ended a command: what happened, where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    /// The reader of our output ended: this is no error, and there is nobody to report to.
    closed: bool,
}

impl Failure {
    /// A failure with this message: what happened, and where.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, closed: false }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// The end of our output's reader, which is no failure.
    pub fn output_closed() -> Self {
        Self { message: String::new(), hint: None, closed: true }
    }

    /// A failure to read or write `what`.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::output_closed();
        }
        Self::new(format_args!("{what}: {error}"))
    }

    /// Prints the message, and returns the exit code.
    pub fn report(&self) -> u8 {
        if self.closed {
            return 0;
        }
        // Standard error may be closed too; there is no third place to complain to.
        eprint_line(format_args!("fibula: {}", self.message));
        if let Some(hint) = &self.hint {
            eprint_line(format_args!("  {hint}"));
        }
        2
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors of the standard output are the only I/O errors without a name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io("writing the output", &error)
    }
}

macro_rules! from_errors {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error)
            }
        })*
    };
}

from_errors!(
    fibula_core::BuildError,
    fibula_fib::FibError,
    fibula_offload::OffloadError,
    TableError,
    fibula_rib::SnapshotError,
    fibula_simd::IsaError,
);

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let failure = Self::new(&error);
        match error {
            ReadError::Archive { .. } => failure
                .hint("get it again; `fibula build --salvage` uses the data before the damage"),
            ReadError::Empty { .. } => {
                failure.hint("`fibula build --allow-empty` takes it as it is")
            }
            ReadError::MostlyDamaged { .. } => failure.hint(
                "--format names another format; `fibula build --allow-empty` accepts the undamaged records",
            ),
            _ => failure,
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Io { name, error } => Self::io(name, &error).hint(
                "a table is a snapshot (.fib), a routing table file, gen:v4:2024:900000:1, or embedded",
            ),
            SourceError::Read(error) => error.into(),
            error => Self::new(error),
        }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let failure = Self::new(&error);
        match error {
            FetchError::Offline { .. } => {
                failure.hint("fetch it once with a network: `fibula fetch`, without FIBULA_OFFLINE and offline = true")
            }
            FetchError::Host { .. } => {
                failure.hint("is there a network? FIBULA_OFFLINE=1 uses what was fetched earlier")
            }
            FetchError::Network { .. } => failure.hint(
                "a proxy is named by HTTPS_PROXY, certificates to trust by SSL_CERT_FILE; try again if the server is busy",
            ),
            FetchError::Large { .. } => failure.hint("--max-size of `fibula fetch` sets the limit"),
            FetchError::Refused { .. } => {
                failure.hint("`fibula fetch --as any` keeps a file without looking into it")
            }
            FetchError::Name { .. } => failure.hint("`fibula fetch --list` has the names"),
            _ => failure,
        }
    }
}

impl From<DatesError> for Failure {
    fn from(error: DatesError) -> Self {
        match error {
            DatesError::Source(error) => error.into(),
            error => {
                let failure = Self::new(&error);
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }
}

impl From<FeedError> for Failure {
    fn from(error: FeedError) -> Self {
        if let FeedError::Read(error) = error {
            return error.into();
        }
        let failure = Self::new(&error);
        match error {
            FeedError::Table(TableError::OtherFeed { .. }) => failure
                .hint("give the same updates (more may follow), or another file to --checkpoint"),
            FeedError::EmptyTable => failure.hint("name one with --table"),
            _ => failure,
        }
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        let failure = Self::new(&error);
        match error {
            LiveError::NoEngine { .. } => {
                failure.hint("--engine auto takes one that can hold this table")
            }
            _ => failure,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = Self::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Live(error) => error.into(),
            DaemonError::Feed(error) => error.into(),
            error => {
                let failure = Self::new(&error);
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

/// A line on standard error. Unlike `eprintln!` it does not panic when standard error is closed.
pub fn eprint_line(text: impl fmt::Display) {
    use io::Write as _;
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.closed);
        assert!(!Failure::from(io::Error::from(io::ErrorKind::StorageFull)).closed);
    }
}
