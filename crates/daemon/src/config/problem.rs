//! The problems that a configuration can have.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fibula_rpki::BadVrps;
use fibula_server::BadAsNames;

use super::AlarmProblem;
#[cfg(target_os = "linux")]
use super::{PortProblem, RouteProblem};
#[cfg(target_os = "linux")]
use crate::route::{NextHopsProblem, RulesProblem};

/// A problem of a configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A file cannot be read.
    Unreadable {
        /// The key or the flag that names the file.
        setting: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The first line of a file with a secret is empty.
    EmptySecret {
        /// The key that names the file.
        setting: &'static str,
    },
    /// The text is no TOML, has an unknown key, or a value of another type.
    Syntax(String),
    /// There is no source.
    NoSource,
    /// A source's name or table cannot be a name.
    Name {
        /// The name.
        name: String,
        /// Why not.
        what: &'static str,
    },
    /// Two sources have the same name.
    SameName(String),
    /// Two listeners have the same address.
    SameAddress {
        /// The name of one.
        one: String,
        /// The name of the other, or `http`.
        other: String,
        /// Their address.
        address: SocketAddr,
    },
    /// A problem of one source.
    Source {
        /// Its name.
        name: String,
        /// The problem.
        problem: SourceProblem,
    },
    /// A validator's cache has no port, or none is named.
    Cache {
        /// The cache; empty if there is none.
        cache: String,
    },
    /// A problem of a rule on route changes.
    Alarm {
        /// Its name.
        rule: String,
        /// The problem.
        problem: AlarmProblem,
    },
    /// The collector of flows has no address.
    NoFlows,
    /// Flows are to be counted by too many columns.
    #[cfg(target_os = "linux")]
    TooManyTops(usize),
    /// The address where alarms are sent is none.
    Webhook(String),
    /// Alarms are to be sent, and there is no rule.
    WebhookWithoutRules,
    /// A line of the file with names of ASes is wrong.
    AsNames(BadAsNames),
    /// A line of the file with relations is wrong.
    Relations(BadVrps),
    /// Only one of the certificate and the key of TLS is given.
    HalfOfTls,
    /// A number is 0 with which nothing would work.
    Zero {
        /// The key.
        key: &'static str,
    },
    /// The list of engines is empty.
    NoEngine,
    /// The folder of the checkpoint does not exist.
    NoFolder {
        /// The checkpoint.
        file: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A problem of one port.
    #[cfg(target_os = "linux")]
    Port(PortProblem),
    /// The parts of a router's configuration do not fit together.
    #[cfg(target_os = "linux")]
    Route(RouteProblem),
    /// A file of next hops is wrong, or does not fit the table.
    #[cfg(target_os = "linux")]
    NextHops(NextHopsProblem),
    /// A file of rules is wrong, or does not fit the router.
    #[cfg(target_os = "linux")]
    Rules(RulesProblem),
}

/// A problem of a source.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceProblem {
    /// A RIS source has a path and an address, or neither.
    PathOrAddress,
    /// An FPM source is to ignore peers.
    NoPeers,
    /// The hold time of BGP is out of range.
    HoldTime,
    /// The AS or the BGP identifier is zero.
    NoIdentity,
    /// It has no neighbour.
    NoNeighbour,
    /// A neighbour occurs twice.
    SameNeighbour(IpAddr),
    /// The options of its sessions are out of range.
    Session(String),
    /// Only Linux has such a source.
    NotHere,
}

impl Problem {
    /// The setting that names the file, where this is what the reader knows the file by.
    pub(super) fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { setting, .. } | Self::EmptySecret { setting } => Some(setting),
            #[cfg(target_os = "linux")]
            Self::Rules(_) => Some("--rules"),
            _ => None,
        }
    }

    /// Whether it is a problem of a line, rather than of a key.
    pub(super) fn is_of_line(&self) -> bool {
        #[cfg(target_os = "linux")]
        return matches!(self, Self::NextHops(_) | Self::Rules(_));
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoSource => {
                "name one: --fpm, --bmp, --bgp, --kernel, --ris, --mrt, or --config FILE"
            }
            Self::NoFolder { .. } => "make it, or name another file",
            Self::Cache { .. } => {
                "write the validator's name or address with the port of its RTR server, such as \
                 caches = [\"validator.example:3323\"]"
            }
            Self::Alarm { problem, .. } => return problem.hint(),
            Self::Webhook(_) => "write an address such as https://alarms.example/fibula",
            Self::WebhookWithoutRules => "name one: [[alarm]]",
            Self::Relations(_) => {
                "each line is an AS and customer, peer, route-server, provider or unknown"
            }
            Self::NoFlows => "name one: listen = [\"0.0.0.0:2055\"]",
            Self::Zero { .. } => "write a larger number, or leave the key out for its default",
            #[cfg(target_os = "linux")]
            Self::Route(problem) => return problem.hint(),
            #[cfg(target_os = "linux")]
            Self::NextHops(problem) => problem.hint(),
            #[cfg(target_os = "linux")]
            Self::Rules(RulesProblem::File(problem)) => return problem.hint(),
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { error, .. } => error.fmt(f),
            Self::EmptySecret { .. } => f.write_str("its first line is empty"),
            Self::Syntax(what) => f.write_str(what),
            Self::NoSource => f.write_str("there is no source to follow"),
            Self::Name { name, what } => write!(f, "{name:?} cannot be a name: {what}"),
            Self::SameName(name) => {
                write!(f, "two sources are called {name}: give one a name of its own")
            }
            Self::SameAddress { one, other, address } => {
                write!(f, "{one} and {other} both listen on {address}")
            }
            Self::Source { name, problem } => write!(f, "{name}: {problem}"),
            Self::Cache { cache } if cache.is_empty() => f.write_str("rpki: caches names none"),
            Self::Cache { cache } => write!(f, "rpki: {cache:?} is no host and port"),
            Self::Alarm { rule, problem } => write!(f, "alarm {rule:?}: {problem}"),
            Self::Webhook(url) => write!(f, "webhook: {url:?} is not an address of HTTP"),
            Self::WebhookWithoutRules => {
                f.write_str("webhook: there is no rule that raises alarms")
            }
            Self::AsNames(bad) => bad.fmt(f),
            Self::Relations(bad) => bad.fmt(f),
            Self::HalfOfTls => f.write_str("http: tls-certificate and tls-key belong together"),
            Self::NoFlows => f.write_str("flows: listen names no address"),
            #[cfg(target_os = "linux")]
            Self::TooManyTops(columns) => {
                let most = fibula_collect::Talkers::COLUMNS;
                write!(f, "flows: top names {columns} columns; at most {most} are counted")
            }
            Self::Zero { key } => write!(f, "{key} is 0, with which nothing would work"),
            Self::NoEngine => {
                f.write_str("tables: engine names none; auto takes the one that suits")
            }
            Self::NoFolder { file, folder } => {
                let (file, folder) = (file.display(), folder.display());
                write!(f, "checkpoint {file}: there is no folder {folder}")
            }
            #[cfg(target_os = "linux")]
            Self::Port(problem) => problem.fmt(f),
            #[cfg(target_os = "linux")]
            Self::Route(problem) => problem.fmt(f),
            #[cfg(target_os = "linux")]
            Self::NextHops(problem) => problem.fmt(f),
            #[cfg(target_os = "linux")]
            Self::Rules(problem) => problem.fmt(f),
        }
    }
}

impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PathOrAddress => "a ris source has either a path or an address to connect to",
            Self::NoPeers => "FPM has no peers: ignore-peers is for BMP",
            Self::HoldTime => "hold-time is 0, or from 3s to 65535s (RFC 4271)",
            Self::NoIdentity => "local-as and router-id are not 0 (RFC 7607, RFC 6286)",
            Self::NoNeighbour => "it has no neighbour, so nobody may connect",
            Self::SameNeighbour(address) => {
                return write!(f, "neighbour {address} occurs twice");
            }
            Self::Session(what) => what,
            Self::NotHere => "only Linux has a kernel source",
        })
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            Self::AsNames(bad) => Some(bad),
            Self::Relations(bad) => Some(bad),
            _ => None,
        }
    }
}
