use std::fmt;
use std::io;
use std::time::Duration;

/// The reason why a request got no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not the address of a server.
    Url {
        /// The address.
        url: String,
    },
    /// There are no certificates to check the server's certificate with.
    Certificates {
        /// The error.
        what: String,
    },
    /// The token has characters that a header cannot have.
    Token,
    /// The server cannot be reached.
    Io {
        /// At which step.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The server and this end do not agree on TLS.
    Tls {
        /// The server.
        server: String,
        /// The operation that failed.
        error: io::Error,
    },
    /// The server's certificate is that of an authority, which is for certificates of others.
    Authority {
        /// The server.
        server: String,
    },
    /// The connection broke.
    Http(hyper::Error),
    /// The server did not answer in time.
    Late {
        /// The timeout.
        patience: Duration,
    },
    /// The answer, or an event of a stream, is longer than the options allow.
    Long {
        /// The maximum.
        bytes: usize,
    },
    /// The server refused the request.
    Refused {
        /// The status.
        status: u16,
        /// Why.
        sentence: String,
    },
    /// The answer is invalid.
    Answer {
        /// The error.
        what: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url } => {
                write!(f, "{url:?} is not the address of a server; one is http://127.0.0.1:8080")
            }
            Self::Certificates { what } => write!(f, "certificates: {what}"),
            Self::Token => f.write_str("the token has characters that a header cannot have"),
            Self::Io { what, error } => write!(f, "{what}: {error}"),
            Self::Tls { server, error } => write!(f, "TLS with {server}: {error}"),
            Self::Authority { server } => write!(
                f,
                "TLS with {server}: its certificate is that of an authority (CA:TRUE), not that of a server"
            ),
            Self::Http(error) => write!(f, "the connection broke: {error}"),
            Self::Late { patience } => {
                write!(f, "the server took longer than {} s", patience.as_secs_f64())
            }
            Self::Long { bytes } => {
                write!(f, "the answer of the server has more than {bytes} bytes")
            }
            Self::Refused { status, sentence } => {
                write!(f, "the server refuses (status {status}): {sentence}")
            }
            Self::Answer { what } => write!(f, "invalid answer of the server: {what}"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } | Self::Tls { error, .. } => Some(error),
            Self::Http(error) => Some(error),
            _ => None,
        }
    }
}

/// The reason why there is no TLS connection.
pub(super) fn of_tls(server: String, error: io::Error) -> ClientError {
    // rustls names no kind for it, and the type behind it is that of a crate that only rustls uses.
    match error.to_string().contains("CaUsedAsEndEntity") {
        true => ClientError::Authority { server },
        false => ClientError::Tls { server, error },
    }
}
