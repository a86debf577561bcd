//! Ports as a command line and a file name them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage, Neighbour, NeighbourState};
use fibula_router::control::{PortLink, index_of_port};
use serde::Deserialize;

use super::{PortKind, PortProblem};

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = PortProblem;

    fn from_str(text: &str) -> Result<Self, PortProblem> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2);
            let part = part.and_then(|part| u8::from_str_radix(part, 16).ok());
            *byte = part.ok_or_else(|| PortProblem::NoMac(text.to_owned()))?;
        }
        match parts.next() {
            Some(_) => Err(PortProblem::LongMac(text.to_owned())),
            None if mac[0] & 1 != 0 => Err(PortProblem::GroupMac(text.to_owned())),
            None => Ok(Self(mac)),
        }
    }
}

/// An address with the length of its subnet's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(IpAddr, u8);

impl FromStr for Subnet {
    type Err = PortProblem;

    fn from_str(text: &str) -> Result<Self, PortProblem> {
        let bad = || PortProblem::NoSubnet(text.to_owned());
        let (address, len) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let len: u8 = len.parse().map_err(|_| bad())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if len > bits { Err(bad()) } else { Ok(Self(address, len)) }
    }
}

macro_rules! from_text {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
from_text!(PortKind, Mac, Subnet);

/// A port with the interface, addresses and neighbours of its link. Ports of the system take these from the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortConfig {
    /// Its device.
    pub port: PortKind,
    /// The index that routes call its interface by.
    pub interface: Option<u32>,
    /// The router's MAC address there.
    pub mac: Option<Mac>,
    /// The longest IP packet, in bytes.
    pub mtu: Option<u32>,
    /// The router's addresses there.
    #[serde(default)]
    pub addresses: Vec<Subnet>,
    /// MAC addresses by address.
    #[serde(default)]
    pub neighbours: BTreeMap<IpAddr, Mac>,
    /// Of a capture: packets come in as far apart as their times are.
    #[serde(default)]
    pub times: bool,
    /// Of afpacket, tap and dpdk: how many queues.
    pub queues: Option<u16>,
    /// The live table that packets which come in here are forwarded by; that of the router if none is named.
    pub vrf: Option<String>,
}

impl From<PortKind> for PortConfig {
    fn from(port: PortKind) -> Self {
        Self {
            port,
            interface: None,
            mac: None,
            mtu: None,
            addresses: Vec::new(),
            neighbours: BTreeMap::new(),
            times: false,
            queues: None,
            vrf: None,
        }
    }
}

impl FromStr for PortConfig {
    type Err = PortProblem;

    /// `pcap:in.pcap:out.pcap,address=192.0.2.1/24,neighbour=192.0.2.9=02:00:00:00:00:09`.
    fn from_str(text: &str) -> Result<Self, PortProblem> {
        let mut parts = text.split(',');
        let mut config = Self::from(parts.next().unwrap_or_default().parse::<PortKind>()?);
        for part in parts {
            config.set(part)?;
        }
        config.check()?;
        Ok(config)
    }
}

/// The number that a setting has as its value.
fn number<T: FromStr>(key: &str, value: &str) -> Result<T, PortProblem> {
    let bad = |_| PortProblem::NoNumber { key: key.to_owned(), value: value.to_owned() };
    value.parse().map_err(bad)
}

/// The longest IP packet of a port without an interface, unless one is given.
const MTU: u32 = 1500;

impl PortConfig {
    /// Takes a setting of a command line: `mtu=1500`.
    fn set(&mut self, setting: &str) -> Result<(), PortProblem> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match key {
            "interface" => self.interface = Some(number(key, value)?),
            "mtu" => self.mtu = Some(number(key, value)?),
            "queues" => self.queues = Some(number(key, value)?),
            "mac" => self.mac = Some(value.parse()?),
            "address" => self.addresses.push(value.parse()?),
            "neighbour" => {
                let bad = || PortProblem::NoNeighbour(value.to_owned());
                let (address, mac) = value.split_once('=').ok_or_else(bad)?;
                let address = address.parse().map_err(|_| bad())?;
                self.neighbours.insert(address, mac.parse()?);
            }
            "times" => self.times = true,
            "vrf" => self.vrf = Some(value.to_owned()),
            // A device of DPDK has its own arguments.
            _ if let PortKind::Dpdk(device) = &mut self.port => {
                device.push(',');
                device.push_str(setting);
            }
            _ => return Err(PortProblem::UnknownSetting(key.to_owned())),
        }
        Ok(())
    }

    /// Whether the settings fit the kind of port, and are in their ranges.
    pub(super) fn check(&self) -> Result<(), PortProblem> {
        let Self { port, interface, mac, mtu, queues, .. } = self;
        let bad = |what| Err(PortProblem::Setting { port: port.clone(), what });
        match port {
            port if port.is_of_system()
                && (interface.is_some() || mac.is_some() || mtu.is_some()) =>
            {
                bad("interface, mac and mtu are those of the system")
            }
            PortKind::Tap(_) if mac.is_some() || mtu.is_some() => {
                bad("mac and mtu are those of the device")
            }
            _ if mtu.is_some_and(|mtu| !(68..=65_535).contains(&mtu)) => {
                bad("an MTU is from 68 to 65535")
            }
            _ if interface.is_some_and(|index| index == 0 || index >= index_of_port(0)) => {
                bad("an interface's index is from 1 to 1073741823")
            }
            PortKind::Pcap { input: Some(input), output: Some(output) } if input == output => {
                bad("it would overwrite the capture that it reads")
            }
            _ if self.times && !matches!(port, PortKind::Pcap { input: Some(_), .. }) => {
                bad("times is for a capture that is read")
            }
            PortKind::Memory | PortKind::Pcap { .. } | PortKind::AfXdp(_) | PortKind::Xdp(_)
                if queues.is_some() =>
            {
                bad(
                    "queues is for afpacket, tap and dpdk; afxdp and xdp have those of their interface",
                )
            }
            PortKind::Xdp(_) if self.vrf.is_some() => {
                bad("vrf is not for xdp, whose programs have the router's table; take afxdp")
            }
            _ if queues.is_some_and(|queues| !(1..=64).contains(&queues)) => {
                bad("it has from 1 to 64 queues")
            }
            _ => Ok(()),
        }
    }

    /// Whether both can be ports of one router: not two of one interface, nor files that one writes and another uses.
    pub(super) fn check_beside(&self, other: &Self) -> Result<(), PortProblem> {
        let (a, b) = (&self.port, &other.port);
        let both = |what| Err(PortProblem::Both { one: a.clone(), other: b.clone(), what });
        if a == b && *a != PortKind::Memory {
            return Err(PortProblem::Twice(a.clone()));
        }
        if a.device().is_some() && a.device() == b.device() {
            return both("are on the same interface: leave one of them out");
        }
        if self.interface.is_some() && self.interface == other.interface {
            return both("have the same interface: routes name one of them, give each its own");
        }
        let PortKind::Pcap { input: in_a, output: out_a } = a else { return Ok(()) };
        let PortKind::Pcap { input: in_b, output: out_b } = b else { return Ok(()) };
        let is_same = |a: &Option<PathBuf>, b: &Option<PathBuf>| a.is_some() && a == b;
        if is_same(out_a, out_b) {
            return both("write the same file");
        }
        match is_same(out_a, in_b) || is_same(in_a, out_b) {
            true => both("use the same file, which one of them overwrites"),
            false => Ok(()),
        }
    }

    /// The router's MAC address at a port without an interface.
    pub(crate) fn mac(&self, number: usize) -> [u8; 6] {
        self.mac.map_or([2, 0, 0, 0, 0, number as u8 + 1], |Mac(mac)| mac)
    }

    /// The longest IP packet of a port without an interface.
    pub(crate) fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(MTU)
    }

    /// The index of its interface; `known` is the system's.
    pub(crate) fn interface(&self, number: usize, known: u32) -> u32 {
        match self.port.is_of_system() {
            true => known,
            false => self.interface.unwrap_or(index_of_port(number as u16)),
        }
    }

    /// The state of its link that the system does not report.
    pub(crate) fn messages(&self, link: &PortLink) -> Vec<LinkMessage> {
        let PortLink { name, interface: index, mac, mtu } = link.clone();
        let mut messages = Vec::new();
        if !self.port.is_of_system() {
            messages.push(LinkMessage::Interface(Interface {
                index,
                name,
                mac: Some(mac),
                mtu,
                is_up: true,
            }));
        }
        messages.extend(self.addresses.iter().map(|&Subnet(local, len)| {
            LinkMessage::Address(InterfaceAddress { interface: index, local, subnet: local, len })
        }));
        messages.extend(self.neighbours.iter().map(|(&address, &Mac(mac))| {
            let state = NeighbourState::Permanent;
            LinkMessage::Neighbour(Neighbour { interface: index, address, mac: Some(mac), state })
        }));
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named() {
        let text = "pcap:in.pcap:out.pcap,interface=7,address=192.0.2.1/24,neighbour=192.0.2.9=02:00:00:00:00:09";
        let port: PortConfig = text.parse().unwrap();
        assert_eq!(port.port.to_string(), "pcap:in.pcap:out.pcap");
        assert_eq!((port.interface(1, 0), port.mac(1), port.mtu()), (7, [2, 0, 0, 0, 0, 2], 1500));
        assert_eq!(port.messages(&PortLink::default()).len(), 3);
        for text in ["xdp:eth1", "afpacket:eth1"] {
            assert!(text.parse::<PortConfig>().is_ok_and(|port| port.port.is_of_system()));
        }
        let port: PortConfig = "afxdp:eth1".parse().unwrap();
        assert_eq!((port.interface(1, 9), port.messages(&PortLink::default()).len()), (9, 0));
        let port: PortConfig = "dpdk:net_pcap0,rx_pcap=a,mtu=900,tx_pcap=b".parse().unwrap();
        assert_eq!(port.port.to_string(), "dpdk:net_pcap0,rx_pcap=a,tx_pcap=b");
        assert_eq!((port.interface(1, 9), port.mtu()), (index_of_port(1), 900));
        let port: PortConfig = "dpdk:net_af_xdp0,iface=eth1,queues=2".parse().unwrap();
        assert_eq!((port.interface(1, 9), port.queues), (9, Some(2)));
        for text in
            ["memory", "pcap::out.pcap", "pcap:in.pcap", "pcap:in.pcap,times", "tap:t0,queues=2"]
        {
            assert!(text.parse::<PortConfig>().is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            ("netmap:0", "not a kind of port"),
            ("dpdk:", "needs a device"),
            ("dpdk:net_af_xdp0,iface=eth1,mtu=900", "those of the system"),
            ("afxdp", "afxdp:eth1"),
            ("xdp", "xdp:eth1"),
            ("xdp:eth1,mtu=1500", "those of the system"),
            ("xdp:eth1,vrf=fpm/100", "vrf is not for xdp"),
            ("memory:1", "memory has no name"),
            ("pcap:", "needs a file"),
            ("afxdp:eth1,mac=02:00:00:00:00:01", "those of the system"),
            ("tap:t0,mac=02:00:00:00:00:01", "those of the device"),
            ("memory,mtu=67", "from 68"),
            ("memory,mtu=x", "no number"),
            ("memory,interface=0", "from 1"),
            ("memory,times", "a capture that is read"),
            ("memory,queues=2", "afpacket, tap and dpdk"),
            ("tap:t0,queues=65", "64 queues"),
            ("memory,mac=01:00:00:00:00:01", "of a group"),
            ("memory,mac=02:00:00:00:00", "not a MAC address"),
            ("memory,mac=02:00:00:00:00:01:02", "longer"),
            ("memory,address=192.0.2.1/33", "prefix length"),
            ("memory,address=192.0.2.1", "prefix length"),
            ("memory,neighbour=192.0.2.1", "ADDRESS=MAC"),
            ("memory,speed=1", "not a setting of a port"),
            ("afpacket:eth1,queues=x", "queues=\"x\" is no number"),
            ("pcap:a.pcap:a.pcap", "overwrite the capture that it reads"),
            ("afxdp:a-name-that-is-too-long", "longer"),
        ] {
            let error = text.parse::<PortConfig>().unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn ports_that_are_not_for_one_router_are_named() {
        let collide = |a: &str, b: &str| {
            let [a, b]: [PortConfig; 2] = [a, b].map(|text| text.parse().unwrap());
            let problem = a.check_beside(&b).err();
            assert_eq!(problem.is_some(), b.check_beside(&a).is_err());
            problem.map_or(String::new(), |problem| problem.to_string())
        };
        for (a, b, what) in [
            ("tap:t", "tap:t", "--port tap:t occurs twice"),
            ("afxdp:eth1", "afpacket:eth1", "on the same interface"),
            ("memory,interface=3", "pcap:a:,interface=3", "give each its own"),
            ("pcap:a:b", "pcap:c:b", "write the same file"),
            ("pcap:a:b", "pcap:b:", "which one of them overwrites"),
        ] {
            let found = collide(a, b);
            assert!(found.contains(what), "{a} {b}: {found}");
        }
        for (a, b) in [("memory", "memory"), ("pcap:a:b", "pcap:a:c"), ("tap:t", "tap:u")] {
            assert_eq!(collide(a, b), "");
        }
    }
}
