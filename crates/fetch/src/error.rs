use std::fmt;
use std::io;
use std::time::Duration;

/// The reason why a file was not fetched. No text of it has user names, passwords or queries of URLs.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchError {
    /// The text is no URL that can be fetched.
    Url {
        /// The text, without secrets.
        url: String,
        /// The reason.
        what: &'static str,
    },
    /// There is no source of this name, or no table of its time.
    Name {
        /// The name.
        name: String,
        /// The reason, and what to give instead.
        what: String,
    },
    /// The definition of a source is invalid.
    Definition {
        /// The source.
        name: String,
        /// The reason.
        what: String,
    },
    /// A file of the cache cannot be read or written.
    Cache {
        /// The file, or the step.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// Nothing is fetched offline, and the cache has no whole file of this source.
    Offline {
        /// The source.
        name: String,
    },
    /// Another process fetches the same file, and did not end in time.
    Locked {
        /// The source.
        name: String,
    },
    /// An earlier attempt failed, and the next one is made after a while.
    Failed {
        /// The source.
        name: String,
        /// The time since that attempt.
        ago: Duration,
    },
    /// The server has no such file (status 404 or 410).
    NotFound {
        /// The URL, without secrets.
        url: String,
    },
    /// The server answers with an error.
    Status {
        /// The URL, without secrets.
        url: String,
        /// The status.
        status: u16,
    },
    /// The name of the host is unknown, as it is without a network.
    Host {
        /// The URL, without secrets.
        url: String,
    },
    /// The server cannot be reached, or breaks the protocol.
    Network {
        /// The URL, without secrets.
        url: String,
        /// The reason.
        what: String,
    },
    /// A redirect is not followed.
    Redirect {
        /// The URL, without secrets.
        url: String,
        /// The reason.
        what: &'static str,
    },
    /// No byte came for so long.
    Silent {
        /// The URL, without secrets.
        url: String,
        /// How long.
        time: Duration,
    },
    /// The transfer took longer than it may.
    Late {
        /// The URL, without secrets.
        url: String,
        /// How long.
        time: Duration,
    },
    /// Fewer or more bytes came than the server announced.
    Length {
        /// The URL, without secrets.
        url: String,
        /// Bytes that came.
        came: u64,
        /// Bytes that were announced.
        announced: u64,
    },
    /// The file is larger than it may be.
    Large {
        /// The URL, without secrets.
        url: String,
        /// The maximum.
        bytes: u64,
    },
    /// The server sent a page of HTML in place of data.
    Page {
        /// The URL, without secrets.
        url: String,
    },
    /// The file came whole, and the caller's check refuses it.
    Refused {
        /// The URL, without secrets.
        url: String,
        /// The reason.
        what: String,
    },
}

impl FetchError {
    /// Whether another attempt may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Network { .. } | Self::Silent { .. } | Self::Length { .. } => true,
            Self::Status { status, .. } => matches!(status, 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, what } => write!(f, "{url}: {what}"),
            Self::Name { name, what } => write!(f, "{name}: {what}"),
            Self::Definition { name, what } => write!(f, "the source {name}: {what}"),
            Self::Cache { what, error } => write!(f, "the cache: {what}: {error}"),
            Self::Offline { name } => {
                write!(
                    f,
                    "{name}: nothing is fetched offline, and the cache has no whole copy of it"
                )
            }
            Self::Locked { name } => {
                write!(f, "{name}: another process is fetching it, and did not end in time")
            }
            Self::Failed { name, ago } => write!(
                f,
                "{name}: it could not be fetched {} s ago, and is asked for again after 10 minutes",
                ago.as_secs()
            ),
            Self::NotFound { url } => write!(f, "{url}: the server has no such file"),
            Self::Status { url, status } => {
                let text = ureq::http::StatusCode::from_u16(*status);
                let text = text.ok().and_then(|status| status.canonical_reason());
                write!(f, "{url}: the server answers {status}")?;
                text.map_or(Ok(()), |text| write!(f, " ({text})"))
            }
            Self::Host { url } => write!(f, "{url}: the name of the host is unknown"),
            Self::Network { url, what } => write!(f, "{url}: {what}"),
            Self::Redirect { url, what } => write!(f, "{url}: {what}"),
            Self::Silent { url, time } => {
                write!(f, "{url}: the server sent nothing for {} s", time.as_secs_f64())
            }
            Self::Late { url, time } => {
                write!(f, "{url}: the transfer took longer than {} s", time.as_secs_f64())
            }
            Self::Length { url, came, announced } => {
                write!(f, "{url}: {came} bytes came of {announced} that the server announced")
            }
            Self::Large { url, bytes } => {
                write!(f, "{url}: the file is larger than {bytes} bytes, which is the limit")
            }
            Self::Page { url } => {
                write!(
                    f,
                    "{url}: the server sent a page of HTML, not data: look at it in a browser"
                )
            }
            Self::Refused { url, what } => {
                write!(f, "{url}: the file that came cannot be used: {what}")
            }
        }
    }
}

impl std::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Cache { error, .. } => Some(error),
            _ => None,
        }
    }
}
