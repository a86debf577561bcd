//! What `fibula serve` is to do: the file, in TOML, and what the flags add to it.

mod check;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

pub use self::check::{Source, Text, What, read};
use super::time::Time;

/// The configuration, whole and checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Answers over HTTP.
    pub http: Option<Http>,
    /// Where the table is kept over restarts.
    pub checkpoint: Option<Checkpoint>,
    #[serde(default)]
    pub tables: Tables,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub fpm: Vec<Stream>,
    #[serde(default)]
    pub bmp: Vec<Stream>,
    #[serde(default)]
    pub bgp: Vec<Bgp>,
    #[serde(default)]
    pub kernel: Vec<Kernel>,
    #[serde(default)]
    pub ris: Vec<Ris>,
    #[serde(default)]
    pub mrt: Vec<Mrt>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Http {
    #[serde(default = "http_address")]
    pub listen: Spanned<SocketAddr>,
    /// A file whose first line is the token that every request has to bring.
    pub token_file: Option<PathBuf>,
    /// The server's certificates and key, PEM files.
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// Names that the header Host may have, beside addresses and localhost.
    #[serde(default)]
    pub hosts: Vec<String>,
    #[serde(default = "threads")]
    pub threads: usize,
    #[serde(default = "connections")]
    pub connections: usize,
    #[serde(default = "body_bytes")]
    pub body_bytes: u64,
    /// Readiness and health: how long a change may take to the readers.
    #[serde(default = "lag")]
    pub lag: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Checkpoint {
    pub file: PathBuf,
    #[serde(default = "checkpoint_every")]
    pub every: Time,
}

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

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Routes of one peer in one family of one table.
    pub peer_routes: u32,
    /// Routes of all peers and tables.
    pub routes: usize,
    /// Tables that have engines.
    pub tables: usize,
    /// Connections of one listener.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { peer_routes: 4_000_000, routes: 50_000_000, tables: 64, connections: 256 }
    }
}

/// A listener for a protocol in which the other end only speaks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stream {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    pub listen: SocketAddr,
    /// The addresses that may connect; if empty, all.
    #[serde(default)]
    pub allow: Vec<IpAddr>,
    /// How long the routes of a lost connection serve.
    #[serde(default = "hold")]
    pub hold: Time,
    /// After so long without a word, a new connection has said everything.
    #[serde(default = "quiet")]
    pub quiet: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bgp {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    pub listen: SocketAddr,
    pub local_as: u32,
    /// Our BGP identifier.
    pub router_id: Ipv4Addr,
    #[serde(default = "hold_time")]
    pub hold_time: Time,
    pub neighbour: Vec<Neighbour>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbour {
    pub address: IpAddr,
    /// Its AS; any, if it is not given.
    pub remote_as: Option<u32>,
    /// A file whose first line is the password of TCP MD5 signatures.
    pub password_file: Option<PathBuf>,
    /// Take several paths of a prefix (ADD-PATH).
    #[serde(default)]
    pub add_path: bool,
    /// End the session at so many routes of a family.
    pub max_routes: Option<u32>,
    /// How long its routes serve when the session is lost, unless graceful restart says how long.
    #[serde(default = "hold")]
    pub hold: Time,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// Bytes of the socket's receive buffer.
    pub buffer: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ris {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
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

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mrt {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
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

/// An address that a flag gives, or nobody.
pub fn in_no_file(address: SocketAddr) -> Spanned<SocketAddr> {
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

impl Stream {
    /// At this address, without restrictions on who may connect.
    pub fn at(listen: SocketAddr) -> Self {
        Self { name: None, table: None, listen, allow: Vec::new(), hold: hold(), quiet: quiet() }
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

impl Ris {
    /// What this path gives.
    pub fn of(path: PathBuf) -> Self {
        Self { name: None, table: None, path: Some(path), connect: None, hold: hold() }
    }
}

impl Mrt {
    /// What appears in this folder.
    pub fn of(folder: PathBuf) -> Self {
        Self { name: None, table: None, folder }
    }
}

impl Checkpoint {
    /// This file, every minute.
    pub fn at(file: PathBuf) -> Self {
        Self { file, every: checkpoint_every() }
    }
}
