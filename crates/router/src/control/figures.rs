//! The options and the figures of a control.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use fibula_core::Vrf;
use fibula_ingest::netlink::Said;

use super::watch::Watched;

/// How a control behaves.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// Whether the kernel's links are followed, in the network namespace of the thread that starts the control.
    pub kernel: bool,
    /// Links, addresses and neighbours that are there whatever the kernel says.
    pub fixed: Vec<Said>,
    /// Bytes of notifications that the kernel's socket has room for.
    pub room: usize,
}

impl Default for ControlOptions {
    /// The kernel's links, 8 MiB.
    fn default() -> Self {
        Self { kernel: true, fixed: Vec::new(), room: 8 << 20 }
    }
}

/// What an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A port takes packets, or does not any more.
    Port {
        /// Its name.
        name: String,
        /// Whether it does.
        is_up: bool,
    },
    /// The kernel does not ask for neighbours: the number of its error. Said once.
    Refused(u32),
    /// The socket lost notifications, or failed; everything is asked again.
    Lost(String),
    /// A message could not be read. Said once.
    Damaged(String),
    /// The machine's own addresses are these now, on all its interfaces, with those of all hosts of its subnets. Said
    /// before the first paths, and when they change.
    Own(Vec<IpAddr>),
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { name, is_up: true } => write!(f, "port {name} is up"),
            Self::Port { name, is_up: false } => {
                write!(f, "port {name} is down: its next hops are not used")
            }
            Self::Refused(error) => {
                let error = io::Error::from_raw_os_error(error.cast_signed());
                write!(
                    f,
                    "the kernel does not ask for neighbours: {error} (it takes CAP_NET_ADMIN)"
                )
            }
            Self::Lost(why) => write!(f, "the kernel's links are read anew: {why}"),
            Self::Own(all) => write!(f, "the machine has {} addresses", all.len()),
            Self::Damaged(what) => write!(f, "a message of the kernel cannot be read: {what}"),
        }
    }
}

/// What a control has and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlFigures {
    /// Paths that were published.
    pub published: u64,
    /// How long it took to make the last ones.
    pub making: Duration,
    /// Distinct sets of next hops.
    pub groups: usize,
    /// Of those, sets whose packets the kernel forwards, since no usable next hop leaves by a port.
    pub host_groups: usize,
    /// Of those, sets without a usable next hop.
    pub dead_groups: usize,
    /// Gateways.
    pub gateways: usize,
    /// Of those, the ones whose MAC address is not known.
    pub unresolved: usize,
    /// Neighbours on the ports' links with a MAC address.
    pub neighbours: usize,
    /// Questions for neighbours.
    pub asked: u64,
    /// What was heard from the kernel.
    pub watched: Watched,
    /// How often notifications were lost.
    pub overruns: u64,
    /// Whether each port takes packets, by the router's number.
    pub ports: Vec<bool>,
}

/// Why there are no views.
#[derive(Debug)]
pub enum ControlError {
    /// The system refuses a socket or a thread.
    Io(io::Error),
    /// This VRF is not followed.
    NoTable(Vrf),
    /// The control thread did not answer in time.
    NoAnswer,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the control cannot run: {error}"),
            Self::NoTable(vrf) => write!(f, "table {vrf} is not followed"),
            Self::NoAnswer => f.write_str("the kernel did not say its links in time"),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::NoTable(_) | Self::NoAnswer => None,
        }
    }
}
