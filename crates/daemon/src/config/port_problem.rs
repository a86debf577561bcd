//! The problems of ports.

use std::error::Error;
use std::fmt;

use super::PortKind;

/// A problem of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortProblem {
    /// No kind of port has this name.
    UnknownKind(String),
    /// A port of this kind needs the name of an interface.
    NoInterface(String),
    /// No interface has so long a name.
    LongName(String),
    /// A memory port has no name.
    NamedMemory,
    /// A port of captures needs a file.
    NoCapture,
    /// A port of DPDK needs a device.
    NoDevice,
    /// No setting has this name.
    UnknownSetting(String),
    /// A setting is no number.
    NoNumber {
        /// The setting.
        key: String,
        /// Its value.
        value: String,
    },
    /// The text is not a MAC address.
    NoMac(String),
    /// The text is longer than a MAC address.
    LongMac(String),
    /// The MAC address is that of a group.
    GroupMac(String),
    /// The text is not an address with a prefix length.
    NoSubnet(String),
    /// The text is not an address with the MAC address of a neighbour.
    NoNeighbour(String),
    /// A setting does not fit the kind of port, or is out of range.
    Setting {
        /// The port.
        port: PortKind,
        /// The problem.
        what: &'static str,
    },
    /// The port occurs twice.
    Twice(PortKind),
    /// Two ports cannot be of one router.
    Both {
        /// One of them.
        one: PortKind,
        /// The other.
        other: PortKind,
        /// Their conflict.
        what: &'static str,
    },
}

impl fmt::Display for PortProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(
                f,
                "{kind:?} is not a kind of port: memory, pcap:IN:OUT, afpacket:NAME, afxdp:NAME, xdp:NAME, \
                 tap:NAME, dpdk:DEVICE"
            ),
            Self::NoInterface(kind) => {
                write!(f, "{kind} needs the name of an interface: {kind}:eth1")
            }
            Self::LongName(name) => {
                write!(f, "{name:?} is longer than the name of an interface may be")
            }
            Self::NamedMemory => f.write_str("memory has no name"),
            Self::NoCapture => f.write_str("pcap needs a file: pcap:in.pcap:out.pcap"),
            Self::NoDevice => {
                f.write_str("dpdk needs a device: dpdk:net_af_xdp0,iface=eth1, dpdk:0000:01:00.0")
            }
            Self::UnknownSetting(key) => write!(
                f,
                "{key:?} is not a setting of a port: interface, mac, mtu, address, neighbour, times, queues, vrf"
            ),
            Self::NoNumber { key, value } => write!(f, "{key}={value:?} is no number"),
            Self::NoMac(text) => {
                write!(f, "{text:?} is not a MAC address: 02:00:00:00:00:01")
            }
            Self::LongMac(text) => write!(f, "{text:?} is longer than a MAC address"),
            Self::GroupMac(text) => write!(f, "{text} is the address of a group"),
            Self::NoSubnet(text) => {
                write!(f, "{text:?} is not an address with a prefix length: 192.0.2.1/24")
            }
            Self::NoNeighbour(text) => write!(f, "neighbour={text:?} is not ADDRESS=MAC"),
            Self::Setting { port, what } => write!(f, "{port}: {what}"),
            Self::Twice(port) => write!(f, "--port {port} occurs twice"),
            Self::Both { one, other, what } => write!(f, "ports {one} and {other} {what}"),
        }
    }
}

impl Error for PortProblem {}
