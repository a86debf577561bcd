//! The options of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fibula_alarms::Alarm;
use fibula_history::HistoryReader;
use fibula_rpki::{LiveVrps, Relations};

use crate::AsNames;
use crate::api::TopFlows;
use crate::metrics_text::MoreMetrics;

/// Options of a [`Server`](crate::Server). By default it listens on loopback, without a token and without TLS.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Certificate chain and key, for HTTPS instead of HTTP.
    pub tls: Option<TlsFiles>,
    /// The token that requests must have in `Authorization: Bearer`. The page, `/healthz` and `/readyz` need none.
    pub token: Option<String>,
    /// Further names for the header `Host` if the server listens on loopback, besides addresses and `localhost`.
    /// Requests with other names are refused there, because a page of another site could use such a name to read the
    /// answers.
    pub hosts: Vec<String>,
    /// Number of threads that answer requests.
    pub threads: usize,
    /// The limits for clients.
    pub limits: Limits,
    /// Maximum age of an unpublished change, before `/healthz` reports a problem.
    pub longest_lag: Duration,
    /// What keeps the program around the server from being ready.
    pub obstacle: Option<Obstacle>,
    /// Additional metrics in `/metrics`.
    pub metrics: Option<MoreMetrics>,
    /// The VRPs by which the origins of routes are validated in answers.
    pub vrps: Option<Arc<LiveVrps>>,
    /// From whom routes are received, for the verification of their paths.
    pub relations: Arc<Relations>,
    /// The alarms of `/v1/alarms`.
    pub alarms: Option<ActiveAlarms>,
    /// The history of routes in files, of `/v1/history/{prefix}`.
    pub history: Option<HistoryOnDisk>,
    /// The names of ASes for `/v1/names` and the page.
    pub as_names: Option<Arc<AsNames>>,
    /// The flows of `/v1/flows/top`.
    pub flows: Option<FlowTops>,
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
            obstacle: None,
            metrics: None,
            vrps: None,
            relations: Arc::default(),
            alarms: None,
            history: None,
            as_names: None,
            flows: None,
        }
    }
}

/// The alarms that have not ended, the oldest first, asked at each request of `/v1/alarms`. The function must not
/// block.
#[derive(Clone)]
pub struct ActiveAlarms(pub Arc<dyn Fn() -> Vec<Arc<Alarm>> + Send + Sync>);

impl fmt::Debug for ActiveAlarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActiveAlarms")
    }
}

/// The reader of the history in files, asked at each request of `/v1/history/{prefix}`; a sentence if there is none
/// now. The function must not block.
#[derive(Clone)]
pub struct HistoryOnDisk(pub Arc<dyn Fn() -> Result<HistoryReader, String> + Send + Sync>);

impl fmt::Debug for HistoryOnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryOnDisk")
    }
}

/// Gives the values with most bytes among flows, asked at each request of `/v1/flows/top`: of this column, or of the
/// first one that flows have; of this number of last minutes; this number of values at most. The error is a sentence
/// about a column that flows do not have. The function may take some milliseconds.
#[derive(Clone)]
pub struct FlowTops(pub Arc<FlowTop>);

type FlowTop = dyn Fn(Option<&str>, u64, usize) -> Result<TopFlows, String> + Send + Sync;

impl fmt::Debug for FlowTops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowTops")
    }
}

/// A sentence about what keeps the program around the server from being ready, asked at each request of `/readyz`. The
/// function must not block.
#[derive(Clone)]
pub struct Obstacle(pub Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl fmt::Debug for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Obstacle")
    }
}

/// Files in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by the certificates of its issuers.
    pub certificates: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
}

/// Limits on the memory, the threads and the time that clients can use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of connections; further ones get 503.
    pub connections: usize,
    /// Maximum number of bytes in the head of a request.
    pub head_bytes: usize,
    /// Maximum time without a request: from the beginning of the connection, or from the end of an answer, to the end
    /// of the next request's head. An incomplete head gets 408.
    pub idle_time: Duration,
    /// Maximum time in which a client accepts no byte of an answer, or sends no byte of a body.
    pub stall_time: Duration,
    /// Maximum number of bytes of a connection's answers that the client has not taken; further requests get 429.
    pub connection_answer_bytes: usize,
    /// Maximum number of bytes of all connections' answers that the clients have not taken, apart from 128 KiB that
    /// each connection may always have; further requests get 503.
    pub answer_bytes: usize,
    /// Maximum number of bytes in a body; larger ones get 413.
    pub body_bytes: u64,
    /// Maximum number of rows in a body; more get 413.
    pub body_rows: u64,
    /// Maximum number of bytes of an Arrow batch in a body, unpacked, with the dictionaries that it may use; larger
    /// ones get 400.
    pub batch_bytes: u64,
    /// Maximum time for a bulk lookup, including its body.
    pub bulk_time: Duration,
    /// Maximum number of simultaneous bulk lookups; further ones get 429.
    pub bulk: usize,
    /// Maximum number of simultaneous requests that copy or search a table; further ones get 429.
    pub slow: usize,
    /// Maximum number of simultaneous readers of changes; further ones get 429.
    pub watchers: usize,
}

impl Default for Limits {
    /// 1,024 connections; heads of 16 KiB; 30 s without a request, 30 s without a byte; answers of 16 MiB a connection,
    /// 256 MiB in all; bodies of 1 GiB and 100 million rows, in Arrow batches of 64 MiB, within ten minutes; 4 bulk
    /// lookups, 4 slow requests, 256 readers of changes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 1024,
            head_bytes: 16 << 10,
            idle_time: seconds(30),
            stall_time: seconds(30),
            connection_answer_bytes: 16 << 20,
            answer_bytes: 256 << 20,
            body_bytes: 1 << 30,
            body_rows: 100_000_000,
            batch_bytes: 64 << 20,
            bulk_time: seconds(600),
            bulk: 4,
            slow: 4,
            watchers: 256,
        }
    }
}
