//! How a server behaves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::MoreMetrics;

/// How a [`Server`](crate::Server) behaves. By default it listens on loopback, without a token and without TLS.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// Certificate chain and key, for HTTPS in place of HTTP.
    pub tls: Option<TlsFiles>,
    /// What requests must have in `Authorization: Bearer`. The page, `/healthz` and `/readyz` ask for none.
    pub token: Option<String>,
    /// Names that the header `Host` may have where the server listens on loopback, beside addresses and
    /// `localhost`. Others are refused there: a page of another site could be given such a name, and read
    /// the answers.
    pub hosts: Vec<String>,
    /// Threads that answer requests.
    pub threads: usize,
    /// How much of what there may be.
    pub limits: Limits,
    /// How long a change may wait before `/healthz` says that the server is not well.
    pub longest_lag: Duration,
    /// What `/metrics` has besides the server's own numbers.
    pub metrics: Option<MoreMetrics>,
}

impl Default for ServerOptions {
    /// Port 8080 of 127.0.0.1, two threads, five seconds of lag.
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, 8080).into()],
            tls: None,
            token: None,
            hosts: Vec::new(),
            threads: 2,
            limits: Limits::default(),
            longest_lag: Duration::from_secs(5),
            metrics: None,
        }
    }
}

/// Files in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those of its issuers behind.
    pub certificates: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
}

/// What bounds the memory, the threads and the time that clients can claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once; further ones get 503.
    pub connections: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// How long a connection may be without a request: from its beginning, or from the end of an answer, to
    /// the end of the next request's head. Half a head gets 408.
    pub idle_time: Duration,
    /// How long a client may take no byte of an answer, or send no byte of a body.
    pub stall_time: Duration,
    /// Bytes of a body; larger ones get 413.
    pub body_bytes: u64,
    /// Rows of a body; more get 413.
    pub body_rows: u64,
    /// Time for a bulk lookup, its body included.
    pub bulk_time: Duration,
    /// Bulk lookups at once; further ones get 429.
    pub bulk: usize,
    /// Requests at once that copy or search a table; further ones get 429.
    pub slow: usize,
    /// Readers of changes at once; further ones get 429.
    pub watchers: usize,
}

impl Default for Limits {
    /// 1,024 connections; heads of 16 KiB; 30 s without a request, 30 s without a byte; bodies of 1 GiB and 100
    /// million rows within ten minutes; 4 bulk lookups, 4 slow requests, 256 readers of changes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 1024,
            head_bytes: 16 << 10,
            idle_time: seconds(30),
            stall_time: seconds(30),
            body_bytes: 1 << 30,
            body_rows: 100_000_000,
            bulk_time: seconds(600),
            bulk: 4,
            slow: 4,
            watchers: 256,
        }
    }
}
