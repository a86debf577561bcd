//! The options and the counters of a control.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use fibula_core::Vrf;
use fibula_ingest::netlink::LinkMessage;

use super::watch::Watched;

/// Options of a control.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// Whether to follow the kernel's links, in the network namespace of the thread that starts the control.
    pub kernel: bool,
    /// Configured links, addresses and neighbours, which exist whatever the kernel reports.
    pub fixed: Vec<LinkMessage>,
    /// The buffer of the kernel's socket for notifications, in bytes.
    pub room: usize,
}

impl Default for ControlOptions {
    /// The kernel's links, 8 MiB.
    fn default() -> Self {
        Self { kernel: true, fixed: Vec::new(), room: 8 << 20 }
    }
}

/// Information for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// A port started or stopped accepting packets.
    Port {
        /// Its name.
        name: String,
        /// Whether it does.
        is_up: bool,
    },
    /// An interface came, went or changed, or may have done so. Only for programs: there is nothing to report.
    Interfaces,
    /// The kernel refuses to resolve neighbours, with this error number. Reported once.
    Refused(u32),
    /// The socket lost notifications, or failed. Everything is requested again.
    Lost(String),
    /// A message could not be decoded. Reported once.
    Damaged(String),
    /// The addresses of this machine, on all its interfaces, with the broadcast addresses of its subnets. Reported
    /// before the first paths, and after each change.
    Own(Vec<IpAddr>),
}

impl fmt::Display for ControlEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { name, is_up: true } => write!(f, "port {name} is up"),
            Self::Port { name, is_up: false } => {
                write!(f, "port {name} is down: its next hops are not used")
            }
            Self::Interfaces => f.write_str("the machine's interfaces have changed"),
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

/// The counters of a control.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlFigures {
    /// Number of published paths.
    pub published: u64,
    /// The time spent making the last ones.
    pub making: Duration,
    /// Number of distinct sets of next hops.
    pub groups: usize,
    /// Number of these sets whose packets the kernel forwards, because no usable next hop leaves by a port.
    pub host_groups: usize,
    /// Number of these sets without a usable next hop.
    pub dead_groups: usize,
    /// Number of gateways.
    pub gateways: usize,
    /// Number of gateways whose MAC address is unknown.
    pub unresolved: usize,
    /// Number of neighbours on the ports' links with a MAC address.
    pub neighbours: usize,
    /// Number of requests to resolve neighbours.
    pub asked: u64,
    /// The counters of messages from the kernel.
    pub watched: Watched,
    /// Number of times that notifications were lost.
    pub overruns: u64,
    /// Whether each port accepts packets, by the router's number.
    pub ports: Vec<bool>,
}

/// The reason why there are no views.
#[derive(Debug)]
pub enum ControlError {
    /// The system could not create a socket or a thread.
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
            Self::NoAnswer => f.write_str("the kernel did not report its links in time"),
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
