//! The devices of ports, as a file and a command line name them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::PortProblem;

/// The device of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Generated packets to random addresses; sent packets are counted.
    Memory,
    /// Captures.
    Pcap {
        /// The packets that come in.
        input: Option<PathBuf>,
        /// The file for the packets that are sent.
        output: Option<PathBuf>,
    },
    /// A packet socket on an interface.
    AfPacket(String),
    /// An XDP socket on an interface.
    AfXdp(String),
    /// The same, with a program in the kernel that forwards plain packets.
    Xdp(String),
    /// A TAP device.
    Tap(String),
    /// A device of DPDK: its arguments, of which the first is its name.
    Dpdk(String),
}

/// DPDK's drivers of devices that are on an interface of the system.
const ON_INTERFACES: [&str; 2] = ["net_af_xdp", "net_af_packet"];

impl PortKind {
    /// Whether the router is on an interface of the system, whose addresses and neighbours are the router's. Of a TAP
    /// device the system has the other end.
    pub fn is_of_system(&self) -> bool {
        match self {
            Self::AfPacket(_) | Self::AfXdp(_) | Self::Xdp(_) => true,
            Self::Dpdk(device) => ON_INTERFACES.iter().any(|driver| device.starts_with(driver)),
            Self::Memory | Self::Pcap { .. } | Self::Tap(_) => false,
        }
    }

    /// The interface that it is on, by name.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::AfPacket(name) | Self::AfXdp(name) | Self::Xdp(name) | Self::Tap(name) => {
                Some(name)
            }
            Self::Dpdk(device) => interface_of(device),
            Self::Memory | Self::Pcap { .. } => None,
        }
    }
}

/// The interface of the system that a device of DPDK is on, if it is on one.
pub(crate) fn interface_of(device: &str) -> Option<&str> {
    device.split(',').find_map(|word| word.strip_prefix("iface="))
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Pcap { input, output } => {
                let text = |path: &Option<PathBuf>| {
                    path.as_ref().map_or(String::new(), |path| path.display().to_string())
                };
                write!(f, "pcap:{}:{}", text(input), text(output))
            }
            Self::AfPacket(name) => write!(f, "afpacket:{name}"),
            Self::AfXdp(name) => write!(f, "afxdp:{name}"),
            Self::Xdp(name) => write!(f, "xdp:{name}"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Dpdk(device) => write!(f, "dpdk:{device}"),
        }
    }
}

impl FromStr for PortKind {
    type Err = PortProblem;

    fn from_str(text: &str) -> Result<Self, PortProblem> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let device = || match rest {
            "" => Err(PortProblem::NoInterface(kind.to_owned())),
            name if name.len() > 15 => Err(PortProblem::LongName(name.to_owned())),
            name => Ok(name.to_owned()),
        };
        let file = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        match kind {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(PortProblem::NamedMemory),
            "pcap" => {
                let (input, output) = rest.split_once(':').unwrap_or((rest, ""));
                let (input, output) = (file(input), file(output));
                match (&input, &output) {
                    (None, None) => Err(PortProblem::NoCapture),
                    _ => Ok(Self::Pcap { input, output }),
                }
            }
            "afpacket" => device().map(Self::AfPacket),
            "afxdp" => device().map(Self::AfXdp),
            "xdp" => device().map(Self::Xdp),
            "tap" => device().map(Self::Tap),
            "dpdk" if rest.is_empty() => Err(PortProblem::NoDevice),
            "dpdk" => Ok(Self::Dpdk(rest.to_owned())),
            _ => Err(PortProblem::UnknownKind(kind.to_owned())),
        }
    }
}
