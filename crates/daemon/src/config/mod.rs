//! The configuration of a server ([`ServeConfig`]) and of a router ([`RouteConfig`]): files in TOML, to which programs
//! may add.
//!
//! An error names the file, the line, the problem and what to do ([`ConfigError`]).

mod alarm;
mod alarm_problem;
mod check;
#[cfg(target_os = "linux")]
mod device;
mod error;
#[cfg(target_os = "linux")]
mod flows;
mod history;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod port_problem;
mod problem;
#[cfg(target_os = "linux")]
mod route;
#[cfg(target_os = "linux")]
mod route_problem;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod time;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use fibula_core::AnyPrefix;
use fibula_rpki::ReceivedFrom;
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

pub use alarm::{AlarmConfig, WebhookConfig};
pub use alarm_problem::AlarmProblem;
#[cfg(target_os = "linux")]
pub use device::PortKind;
pub use error::ConfigError;
#[cfg(target_os = "linux")]
pub use flows::FlowsConfig;
pub use history::HistoryConfig;
#[cfg(target_os = "linux")]
pub use port::{Mac, PortConfig, Subnet};
#[cfg(target_os = "linux")]
pub use port_problem::PortProblem;
pub use problem::{Problem, SourceProblem};
#[cfg(target_os = "linux")]
pub use route::{Offloading, PipelineConfig, RouteConfig, RouterConfig, Threads};
#[cfg(target_os = "linux")]
pub use route_problem::RouteProblem;
pub use source::{ConfiguredSource, SourceConfig};
pub(crate) use text::text_of;
pub use time::{Time, TimeError};

#[cfg(target_os = "linux")]
pub(crate) use device::interface_of;
#[cfg(target_os = "linux")]
pub(crate) use route::is_xdp;

/// The configuration of a server: its sources, its tables, its answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeConfig {
    /// Answers over HTTP.
    pub http: Option<Http>,
    /// Where the table is kept over restarts.
    pub checkpoint: Option<Checkpoint>,
    /// The tables.
    #[serde(default)]
    pub tables: Tables,
    /// The validator whose VRPs the origins of routes are compared with.
    pub rpki: Option<Rpki>,
    /// Limits for sources.
    #[serde(default)]
    pub limits: Limits,
    /// Listeners for FPM connections of FRR's zebra.
    #[serde(default)]
    pub fpm: Vec<Stream>,
    /// Listeners for BMP connections of routers.
    #[serde(default)]
    pub bmp: Vec<Stream>,
    /// Listeners for BGP sessions of neighbours.
    #[serde(default)]
    pub bgp: Vec<Bgp>,
    /// The kernel's forwarding tables.
    #[serde(default)]
    pub kernel: Vec<Kernel>,
    /// RIS Live's lines.
    #[serde(default)]
    pub ris: Vec<Ris>,
    /// Folders of MRT files.
    #[serde(default)]
    pub mrt: Vec<Mrt>,
    /// Rules on route changes.
    #[serde(default)]
    pub alarm: Vec<AlarmConfig>,
    /// Where alarms are sent.
    pub webhook: Option<WebhookConfig>,
    /// Where changes of routes are kept in files.
    pub history: Option<HistoryConfig>,
    /// The collector of flows.
    #[cfg(target_os = "linux")]
    pub flows: Option<FlowsConfig>,
}

/// The answers over HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Http {
    #[serde(default = "http_address")]
    pub(crate) listen: Spanned<SocketAddr>,
    /// A file whose first line is the token that every request has to bring.
    pub token_file: Option<PathBuf>,
    /// The server's certificates, a PEM file.
    pub tls_certificate: Option<PathBuf>,
    /// The key of its certificate, a PEM file.
    pub tls_key: Option<PathBuf>,
    /// Names that the header Host may have, beside addresses and localhost.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// A file with the names of ASes.
    pub as_names: Option<PathBuf>,
    /// Threads that answer.
    #[serde(default = "threads")]
    pub threads: usize,
    /// Connections at the same time.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Bytes of a request's body.
    #[serde(default = "body_bytes")]
    pub body_bytes: u64,
    /// The maximum age of an unpublished change before health checks report a problem.
    #[serde(default = "lag")]
    pub lag: Time,
}

/// The file that keeps the table over restarts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Checkpoint {
    /// The file.
    pub file: PathBuf,
    /// The time between two checkpoints.
    #[serde(default = "checkpoint_every")]
    pub every: Time,
    /// What to do with a file that is damaged when the program starts.
    #[serde(default)]
    pub on_damage: OnDamage,
}

/// What to do with a damaged checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDamage {
    /// Do not start.
    #[default]
    Refuse,
    /// Rename it, and start with an empty table.
    SetAside,
}

/// A validator, which sends VRPs by the RPKI-to-Router protocol.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rpki {
    /// Its caches in order of preference, each a name or an address with a port.
    pub caches: Spanned<Vec<String>>,
    /// The longest time for which VRPs and ASPAs are used of which nothing more was heard; by default as the cache
    /// says.
    pub expire: Option<Time>,
    /// From whom routes are received, for the verification of their paths, if `relations` does not name the peer's AS.
    #[serde(default, deserialize_with = "received_from")]
    pub received_from: ReceivedFrom,
    /// A file of lines with an AS and from whom the routes of peers in this AS are received.
    pub relations: Option<PathBuf>,
}

fn received_from<'de, D: Deserializer<'de>>(from: D) -> Result<ReceivedFrom, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|names| de::Error::custom(format!("{text:?} is none of {names}")))
}

/// The tables and their engines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tables {
    /// Engines in order of preference, as `--engine` names them.
    pub engine: Vec<String>,
    /// How long the first change of a burst waits for others.
    pub bucket: Time,
    /// Keep communities as text.
    pub communities: bool,
    /// Changes of best routes that are kept to be shown.
    pub history: usize,
}

impl Default for Http {
    fn default() -> Self {
        toml::from_str("").expect("every key has a default")
    }
}

impl Default for Tables {
    fn default() -> Self {
        let bucket = "10ms".parse().expect("a time");
        Self { engine: vec!["auto".to_owned()], bucket, communities: true, history: 100_000 }
    }
}

/// Limits for sources.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Routes of one peer in one family of one table.
    pub peer_routes: u32,
    /// Routes of all peers and tables.
    pub routes: usize,
    /// Peers of all sources. Beyond it, a source may have 256.
    pub peers: usize,
    /// Tables that have engines.
    pub tables: usize,
    /// Connections of one listener.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peer_routes: 4_000_000,
            routes: 50_000_000,
            peers: 131_072,
            tables: 64,
            connections: 256,
        }
    }
}

/// A listener for a protocol in which only the other end sends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stream {
    /// Its name in answers and logs; by default that of its kind.
    pub(crate) name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// Its address and port.
    pub listen: SocketAddr,
    /// The addresses that may connect; if empty, all.
    #[serde(default)]
    pub allow: Vec<IpAddr>,
    /// How long the routes of a lost connection serve.
    #[serde(default = "hold")]
    pub hold: Time,
    /// After this time without data, the table of a new connection counts as complete.
    #[serde(default = "quiet")]
    pub quiet: Time,
    /// Of BMP: the peers of the router, by address, whose messages are passed over.
    #[serde(default, deserialize_with = "text::prefixes")]
    pub ignore_peers: Vec<AnyPrefix>,
}

/// A listener for BGP sessions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bgp {
    /// Its name in answers and logs; by default that of its kind.
    pub(crate) name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// Its address and port.
    pub listen: SocketAddr,
    /// Our AS.
    pub local_as: u32,
    /// Our BGP identifier.
    pub router_id: Ipv4Addr,
    /// The hold time that we offer.
    #[serde(default = "hold_time")]
    pub hold_time: Time,
    /// The neighbours that may open a session.
    pub neighbour: Vec<Neighbour>,
}

/// A neighbour that may open a BGP session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Its AS; any, if it is not given.
    pub remote_as: Option<u32>,
    /// A file whose first line is the password of TCP MD5 signatures.
    pub password_file: Option<PathBuf>,
    /// Take several paths of a prefix (ADD-PATH).
    #[serde(default)]
    pub add_path: bool,
    /// Maximum number of routes of a family; more end the session.
    pub max_routes: Option<u32>,
    /// How long its routes are used after the session is lost, unless graceful restart has another time.
    #[serde(default = "hold")]
    pub hold: Time,
}

/// The kernel's forwarding tables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// Its name in answers and logs; by default that of its kind.
    pub(crate) name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// Bytes of the socket's receive buffer.
    pub buffer: Option<usize>,
}

/// RIS Live's lines, from a path or a server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ris {
    /// Its name in answers and logs; by default that of its kind.
    pub(crate) name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// A pipe, a file, or - for standard input.
    pub path: Option<PathBuf>,
    /// Or: connect to this server and read.
    pub connect: Option<SocketAddr>,
    /// How long the routes of a lost connection, or of a pipe without a writer, stay.
    #[serde(default = "hold")]
    pub hold: Time,
}

/// A folder of MRT files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mrt {
    /// Its name in answers and logs; by default that of its kind.
    pub(crate) name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// The folder in which files appear.
    pub folder: PathBuf,
}

fn time(text: &str) -> Time {
    text.parse().expect("a time")
}
fn http_address() -> Spanned<SocketAddr> {
    in_no_file(SocketAddr::from(([127, 0, 0, 1], 8080)))
}

/// An address that is not in the file.
fn in_no_file(address: SocketAddr) -> Spanned<SocketAddr> {
    Spanned::new(0..0, address)
}

fn threads() -> usize {
    2
}
fn connections() -> usize {
    1024
}
fn body_bytes() -> u64 {
    1 << 30
}
fn lag() -> Time {
    time("5s")
}
fn checkpoint_every() -> Time {
    time("60s")
}
fn hold() -> Time {
    time("120s")
}
fn quiet() -> Time {
    time("5s")
}
fn hold_time() -> Time {
    time("90s")
}

impl Http {
    /// The address and port where requests are answered.
    pub fn address(&self) -> SocketAddr {
        *self.listen.get_ref()
    }

    /// Sets the address and port where requests are answered.
    pub fn listen_on(&mut self, address: SocketAddr) {
        self.listen = in_no_file(address);
    }
}

impl Rpki {
    /// These caches, whose VRPs are used for as long as they say.
    pub fn of(caches: Vec<String>) -> Self {
        let (caches, received_from) = (Spanned::new(0..0, caches), ReceivedFrom::default());
        Self { caches, expire: None, received_from, relations: None }
    }
}

impl Stream {
    /// At this address, without restrictions on who may connect.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            name: None,
            table: None,
            listen,
            allow: Vec::new(),
            hold: hold(),
            quiet: quiet(),
            ignore_peers: Vec::new(),
        }
    }
}

impl Bgp {
    /// There, with these neighbours.
    pub fn at(
        listen: SocketAddr,
        local_as: u32,
        router_id: Ipv4Addr,
        neighbour: Vec<Neighbour>,
    ) -> Self {
        Self {
            name: None,
            table: None,
            listen,
            local_as,
            router_id,
            hold_time: hold_time(),
            neighbour,
        }
    }
}

impl Neighbour {
    /// At this address, of this AS if one is given.
    pub fn at(address: IpAddr, remote_as: Option<u32>) -> Self {
        Self {
            address,
            remote_as,
            password_file: None,
            add_path: false,
            max_routes: None,
            hold: hold(),
        }
    }
}

impl Kernel {
    /// The tables, and the receive buffer of the socket in bytes.
    pub fn with_buffer(buffer: Option<usize>) -> Self {
        Self { buffer, ..Self::default() }
    }
}

impl Ris {
    /// The lines of this path.
    pub fn of(path: PathBuf) -> Self {
        Self { name: None, table: None, path: Some(path), connect: None, hold: hold() }
    }
}

impl Mrt {
    /// The files that appear in this folder.
    pub fn of(folder: PathBuf) -> Self {
        Self { name: None, table: None, folder }
    }
}

impl Checkpoint {
    /// This file, every minute.
    pub fn at(file: PathBuf) -> Self {
        Self { file, every: checkpoint_every(), on_damage: OnDamage::default() }
    }
}
