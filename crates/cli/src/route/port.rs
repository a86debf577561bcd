//! Ports as a command line and a file name them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use std::str::FromStr;

use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage, Neighbour, NeighbourState};
use fibula_router::control::PortLink;
use serde::Deserialize;

use super::kind::Kind;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2);
            let part = part.and_then(|part| u8::from_str_radix(part, 16).ok());
            *byte =
                part.ok_or_else(|| format!("{text:?} is not a MAC address: 02:00:00:00:00:01"))?;
        }
        match parts.next() {
            Some(_) => Err(format!("{text:?} is longer than a MAC address")),
            None if mac[0] & 1 != 0 => Err(format!("{text} is the address of a group")),
            None => Ok(Self(mac)),
        }
    }
}

/// An address with the length of its subnet's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(IpAddr, u8);

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not an address with a prefix length: 192.0.2.1/24");
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
from_text!(Kind, Mac, Subnet);

/// A port with the interface, addresses and neighbours of its link. Ports of the system take these from the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortConfig {
    /// What it is.
    pub port: Kind,
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

impl FromStr for PortConfig {
    type Err = String;

    /// `pcap:in.pcap:out.pcap,address=192.0.2.1/24,neighbour=192.0.2.9=02:00:00:00:00:09`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let port = parts.next().unwrap_or_default().parse()?;
        let mut config = Self {
            port,
            interface: None,
            mac: None,
            mtu: None,
            addresses: Vec::new(),
            neighbours: BTreeMap::new(),
            times: false,
            queues: None,
            vrf: None,
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = || value.parse().map_err(|_| format!("{key}={value:?} is no number"));
            match key {
                "interface" => config.interface = Some(number()?),
                "mtu" => config.mtu = Some(number()?),
                "queues" => {
                    let count = value.parse().map_err(|_| format!("queues={value:?} is no number"));
                    config.queues = Some(count?);
                }
                "mac" => config.mac = Some(value.parse()?),
                "address" => config.addresses.push(value.parse()?),
                "neighbour" => {
                    let bad = || format!("neighbour={value:?} is not ADDRESS=MAC");
                    let (address, mac) = value.split_once('=').ok_or_else(bad)?;
                    let address = address.parse().map_err(|_| bad())?;
                    config.neighbours.insert(address, mac.parse()?);
                }
                "times" => config.times = true,
                "vrf" => config.vrf = Some(value.to_owned()),
                // A device of DPDK has arguments of its own.
                _ if let Kind::Dpdk(device) = &mut config.port => {
                    device.push(',');
                    device.push_str(part);
                }
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of a port: interface, mac, mtu, address, neighbour, times, queues, vrf"
                    ));
                }
            }
        }
        config.check()?;
        Ok(config)
    }
}

/// The longest IP packet of a port without an interface, unless one is given.
const MTU: u32 = 1500;

/// Indices of interfaces that no system has.
const NO_INTERFACE: u32 = 0x4000_0000;

impl PortConfig {
    /// What does not fit together.
    pub fn check(&self) -> Result<(), String> {
        let port = &self.port;
        if port.is_of_system()
            && (self.interface.is_some() || self.mac.is_some() || self.mtu.is_some())
        {
            return Err(format!("{port}: interface, mac and mtu are those of the system"));
        }
        if matches!(port, Kind::Tap(_)) && (self.mac.is_some() || self.mtu.is_some()) {
            return Err(format!("{port}: mac and mtu are those of the device"));
        }
        if self.mtu.is_some_and(|mtu| !(68..=65_535).contains(&mtu)) {
            return Err(format!("{port}: an MTU is from 68 to 65535"));
        }
        if self.interface.is_some_and(|index| index == 0 || index >= NO_INTERFACE) {
            return Err(format!("{port}: an interface's index is from 1 to {}", NO_INTERFACE - 1));
        }
        if matches!(port, Kind::Pcap { input: Some(input), output: Some(output) } if input == output)
        {
            return Err(format!("{port}: it would overwrite the capture that it reads"));
        }
        if self.times && !matches!(port, Kind::Pcap { input: Some(_), .. }) {
            return Err(format!("{port}: times is for a capture that is read"));
        }
        if self.queues.is_some()
            && !matches!(port, Kind::AfPacket(_) | Kind::Tap(_) | Kind::Dpdk(_))
        {
            return Err(format!(
                "{port}: queues is for afpacket, tap and dpdk; afxdp and xdp have those of their interface"
            ));
        }
        if self.vrf.is_some() && matches!(port, Kind::Xdp(_)) {
            return Err(format!(
                "{port}: vrf is not for xdp, whose programs have the router's table; take afxdp"
            ));
        }
        if self.queues.is_some_and(|queues| !(1..=64).contains(&queues)) {
            return Err(format!("{port}: it has from 1 to 64 queues"));
        }
        Ok(())
    }

    /// Why they cannot be ports of one router: two of one interface, or files that one writes and another uses.
    pub fn collide(&self, other: &Self) -> Option<String> {
        let (a, b) = (&self.port, &other.port);
        let both = |what: &str| Some(format!("ports {a} and {b} {what}"));
        if a == b && *a != Kind::Memory {
            return Some(format!("--port {a} occurs twice"));
        }
        if a.device().is_some() && a.device() == b.device() {
            return both("are on the same interface: leave one of them out");
        }
        if self.interface.is_some() && self.interface == other.interface {
            return both("have the same interface: routes name one of them, give each its own");
        }
        match (a, b) {
            (Kind::Pcap { output: Some(a), .. }, Kind::Pcap { output: Some(b), .. }) if a == b => {
                both("write the same file")
            }
            (Kind::Pcap { output: Some(out), .. }, Kind::Pcap { input: Some(from), .. })
            | (Kind::Pcap { input: Some(from), .. }, Kind::Pcap { output: Some(out), .. })
                if out == from =>
            {
                both("use the same file, which one of them overwrites")
            }
            _ => None,
        }
    }

    /// The router's MAC address at a port without an interface.
    pub fn mac(&self, number: usize) -> [u8; 6] {
        self.mac.map_or([2, 0, 0, 0, 0, number as u8 + 1], |Mac(mac)| mac)
    }

    /// The longest IP packet of a port without an interface.
    pub fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(MTU)
    }

    /// The index of its interface; `known` is the system's.
    pub fn interface(&self, number: usize, known: u32) -> u32 {
        match self.port.is_of_system() {
            true => known,
            false => self.interface.unwrap_or(NO_INTERFACE + number as u32),
        }
    }

    /// What the control has to know of it, besides what the system says.
    pub fn messages(&self, link: &PortLink) -> Vec<LinkMessage> {
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
    fn ports_are_named_and_said() {
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
        assert_eq!((port.interface(1, 9), port.mtu()), (NO_INTERFACE + 1, 900));
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
            let error = text.parse::<PortConfig>().unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn ports_that_are_not_for_one_router_are_named() {
        let collide = |a: &str, b: &str| {
            let [a, b]: [PortConfig; 2] = [a, b].map(|text| text.parse().unwrap());
            assert_eq!(a.collide(&b).is_some(), b.collide(&a).is_some());
            a.collide(&b).unwrap_or_default()
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
