//! RTM_NEWLINK, RTM_NEWADDR and RTM_NEWNEIGH with their opposites: interfaces, addresses and neighbours.
//!
//! ```text
//! link       family 1 | padding 1 | type 2 | interface 4 | flags 4 | change 4
//! address    family 1 | prefix length 1 | flags 1 | scope 1 | interface 4
//! neighbour  family 1 | padding 3 | interface 4 | state 2 | flags 1 | type 1
//! ```
//! Attributes follow each header. Messages of other types, and information about bridges, proxies and multicast, are
//! ignored without a count, because a router's socket receives many of them.

use std::net::IpAddr;

use super::Reply;
use super::route::{AF_INET, AF_INET6};
use super::wire::{HEADER, Header, Part, flag, kind, padded};
use crate::bgp::DecodeFault;

/// The content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// An interface exists, in this state.
    Interface(Interface),
    /// The interface with this index is gone.
    InterfaceGone(u32),
    /// An interface has this address.
    Address(InterfaceAddress),
    /// An interface no longer has this address.
    AddressGone(InterfaceAddress),
    /// A neighbour is known, in this state.
    Neighbour(Neighbour),
    /// The kernel has removed a neighbour: the one with this address behind the interface with this index.
    NeighbourGone(u32, IpAddr),
    /// The result of a request.
    Reply(Reply),
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name: `eth1`.
    pub name: String,
    /// Its MAC address; `None` if it has none of six bytes.
    pub mac: Option<[u8; 6]>,
    /// The longest IP packet, in bytes; 0 if unknown.
    pub mtu: u32,
    /// Whether packets can be sent: the interface is up, and has a carrier.
    pub is_up: bool,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceAddress {
    /// The interface's index.
    pub interface: u32,
    /// This machine's address.
    pub local: IpAddr,
    /// An address of the subnet: the other end's address on a point-to-point link, else `local`.
    pub subnet: IpAddr,
    /// The length of the subnet's prefix, at most that of an address.
    pub len: u8,
}

/// A neighbour on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface's index.
    pub interface: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its MAC address, if it is known and has six bytes.
    pub mac: Option<[u8; 6]>,
    /// The state of the entry.
    pub state: NeighbourState,
}

/// The state of a neighbour entry (NUD_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeighbourState {
    /// No resolution was started.
    None,
    /// A request was sent, and there is no answer yet.
    Incomplete,
    /// The neighbour answered recently.
    Reachable,
    /// The neighbour answered some time ago, and was not probed since.
    Stale,
    /// A request will be sent soon.
    Delay,
    /// Requests are being sent.
    Probe,
    /// The neighbour did not answer.
    Failed,
    /// The link needs no resolution.
    NoArp,
    /// An administrator set the entry.
    Permanent,
}

impl NeighbourState {
    /// Whether packets can be sent to its MAC address.
    pub fn is_usable(self) -> bool {
        !matches!(self, Self::None | Self::Incomplete | Self::Failed)
    }

    /// The state of these bits; if several are set, the least certain one.
    fn of(bits: u16) -> Self {
        const STATES: [(u16, NeighbourState); 8] = [
            (0x20, NeighbourState::Failed),
            (0x01, NeighbourState::Incomplete),
            (0x10, NeighbourState::Probe),
            (0x08, NeighbourState::Delay),
            (0x04, NeighbourState::Stale),
            (0x02, NeighbourState::Reachable),
            (0x40, NeighbourState::NoArp),
            (0x80, NeighbourState::Permanent),
        ];
        STATES.iter().find(|(bit, _)| bits & bit != 0).map_or(Self::None, |(_, state)| *state)
    }
}

/// The contents of a datagram's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkNews {
    /// The messages, in order.
    pub messages: Vec<LinkMessage>,
    /// A dump is incomplete because of changes meanwhile, or the kernel lost messages. Request a new dump.
    pub interrupted: bool,
    /// Number of messages that could not be decoded.
    pub damaged: u64,
    /// The error of the first of them.
    pub damage: Option<String>,
}

impl LinkNews {
    /// Decodes a datagram of the routing socket, which has complete messages, and appends the messages.
    ///
    /// ```
    /// use fibula_ingest::netlink::{LinkNews, NeighbourState, LinkMessage};
    /// # if cfg!(target_endian = "big") { return }
    ///
    /// let message = [
    ///     &[48, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], // length, RTM_NEWNEIGH, flags, sequence, port
    ///     &[2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 1],                  // IPv4, interface 3, reachable
    ///     &[8, 0, 1, 0, 192, 0, 2, 1],                            // NDA_DST
    ///     &[10, 0, 2, 0, 2, 0, 0, 0, 0, 7, 0, 0],                 // NDA_LLADDR
    /// ]
    /// .concat();
    /// let mut news = LinkNews::default();
    /// news.read(&message);
    /// let [LinkMessage::Neighbour(neighbour)] = news.messages[..] else { panic!("{news:?}") };
    /// assert_eq!(neighbour.mac, Some([2, 0, 0, 0, 0, 7]));
    /// assert_eq!(neighbour.state, NeighbourState::Reachable);
    /// ```
    pub fn read(&mut self, datagram: &[u8]) {
        let mut rest = datagram;
        while !rest.is_empty() {
            let Some(header) = Header::read(rest).filter(|header| header.is_plausible(rest.len()))
            else {
                let at = datagram.len() - rest.len();
                return self.lost(&DecodeFault { at, what: "no message begins here".into() });
            };
            let body = Part { data: &rest[HEADER..header.len], base: HEADER };
            if let Err(fault) = self.message(header, body) {
                self.lost(&fault);
            }
            rest = &rest[padded(header.len).min(rest.len())..];
        }
    }

    fn lost(&mut self, fault: &DecodeFault) {
        self.damaged += 1;
        let DecodeFault { at, what } = fault;
        self.damage.get_or_insert_with(|| format!("{what} (byte {at} of the message)"));
    }

    fn message(&mut self, header: Header, body: Part<'_>) -> Result<(), DecodeFault> {
        self.interrupted |= header.flags & flag::DUMP_INTR != 0 || header.kind == kind::OVERRUN;
        let is_new = matches!(header.kind, kind::NEWLINK | kind::NEWADDR | kind::NEWNEIGH);
        let message = match header.kind {
            kind::DONE | kind::ERROR => {
                let code = body.data.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                let Header { sequence, .. } = header;
                Some(LinkMessage::Reply(Reply { sequence, error: code.unsigned_abs() }))
            }
            kind::NEWLINK | kind::DELLINK => interface(body)?.map(|interface| match is_new {
                true => LinkMessage::Interface(interface),
                false => LinkMessage::InterfaceGone(interface.index),
            }),
            kind::NEWADDR | kind::DELADDR => address(body)?.map(|address| match is_new {
                true => LinkMessage::Address(address),
                false => LinkMessage::AddressGone(address),
            }),
            kind::NEWNEIGH | kind::DELNEIGH => neighbour(body)?.map(|neighbour| match is_new {
                true => LinkMessage::Neighbour(neighbour),
                false => LinkMessage::NeighbourGone(neighbour.interface, neighbour.address),
            }),
            _ => None,
        };
        self.messages.extend(message);
        Ok(())
    }
}

fn interface(mut body: Part<'_>) -> Result<Option<Interface>, DecodeFault> {
    const ADDRESS: u16 = 1;
    const NAME: u16 = 3;
    const MTU: u16 = 4;
    /// IFF_UP, IFF_RUNNING, IFF_LOWER_UP.
    const UP: u32 = 0x1_0041;
    let [family, ..] = body.array::<4>("the link's header")?;
    let index = u32::from_ne_bytes(body.array("the link's index")?);
    let flags = u32::from_ne_bytes(body.array("the link's flags")?);
    body.array::<4>("the link's flags that changed")?;
    // A bridge reports its ports in messages of its own family.
    if family != 0 || index == 0 {
        return Ok(None);
    }
    let mut interface = Interface { index, is_up: flags & UP == UP, ..Interface::default() };
    while let Some((kind, value)) = body.attribute()? {
        match kind {
            ADDRESS => interface.mac = value.data.try_into().ok(),
            NAME => {
                let name = value.data.split(|&byte| byte == 0).next().unwrap_or_default();
                interface.name = String::from_utf8_lossy(name).into_owned();
            }
            MTU => interface.mtu = value.u32("IFLA_MTU")?,
            _ => {}
        }
    }
    Ok(Some(interface))
}

fn address(mut body: Part<'_>) -> Result<Option<InterfaceAddress>, DecodeFault> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    let start = body;
    let [family, len, _, _] = body.array("the address's header")?;
    let interface = u32::from_ne_bytes(body.array("the address's interface")?);
    if !matches!(family, AF_INET | AF_INET6) {
        return Ok(None);
    }
    let (mut subnet, mut local) = (None, None);
    while let Some((kind, value)) = body.attribute()? {
        match kind {
            ADDRESS => subnet = Some(value.address("IFA_ADDRESS")?),
            LOCAL => local = Some(value.address("IFA_LOCAL")?),
            _ => {}
        }
    }
    let Some((local, subnet)) = local.or(subnet).zip(subnet.or(local)) else {
        return Err(start.fault("an address message without an address"));
    };
    let is_v4 = family == AF_INET;
    if local.is_ipv4() != is_v4 || subnet.is_ipv4() != is_v4 {
        return Err(start.fault(format!("an address of the other family than {family}")));
    }
    if len > bits(local) {
        return Err(start.fault(format!("prefix length {len} exceeds {}", bits(local))));
    }
    Ok(Some(InterfaceAddress { interface, local, subnet, len }))
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn neighbour(mut body: Part<'_>) -> Result<Option<Neighbour>, DecodeFault> {
    const DST: u16 = 1;
    const LLADDR: u16 = 2;
    /// NTF_PROXY: the kernel answers for it.
    const PROXY: u8 = 8;
    let start = body;
    let [family, ..] = body.array::<4>("the neighbour's header")?;
    let interface = u32::from_ne_bytes(body.array("the neighbour's interface")?);
    let [a, b, flags, _] = body.array("the neighbour's state")?;
    if !matches!(family, AF_INET | AF_INET6) || flags & PROXY != 0 {
        return Ok(None);
    }
    let (mut address, mut mac) = (None, None);
    while let Some((kind, value)) = body.attribute()? {
        match kind {
            DST => address = Some(value.address("NDA_DST")?),
            LLADDR => mac = value.data.try_into().ok(),
            _ => {}
        }
    }
    let Some(address) = address else {
        return Err(start.fault("a neighbour without an address"));
    };
    if address.is_multicast() || address == IpAddr::from([255; 4]) {
        return Ok(None);
    }
    let state = NeighbourState::of(u16::from_ne_bytes([a, b]));
    Ok(Some(Neighbour { interface, address, mac, state }))
}

/// Appends a request that the kernel resolves this neighbour, or confirms it. The request needs CAP_NET_ADMIN. For an
/// unknown neighbour the kernel begins at once, for a stale one within `delay_first_probe_time`. The outcome arrives
/// as [`LinkMessage::Neighbour`], and the answer to the request is a [`Reply`].
pub fn ask_for_neighbour(interface: u32, address: IpAddr, sequence: u32, out: &mut Vec<u8>) {
    /// NLM_F_REQUEST, NLM_F_ACK and NLM_F_CREATE.
    const FLAGS: u16 = 0x405;
    /// NTF_USE: as if a packet were sent.
    const USE: u8 = 1;
    let (family, octets) = match &address {
        IpAddr::V4(v4) => (AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AF_INET6, v6.octets().to_vec()),
    };
    let begin = out.len();
    out.extend([0; 4]);
    out.extend(kind::NEWNEIGH.to_ne_bytes());
    out.extend(FLAGS.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]);
    out.extend([family, 0, 0, 0]);
    out.extend(interface.to_ne_bytes());
    out.extend([0, 0, USE, 0]);
    let len = 4 + octets.len() as u16;
    out.extend(len.to_ne_bytes());
    out.extend(1u16.to_ne_bytes());
    out.extend(octets);
    finish(begin, out);
}

/// The tables that can be dumped, in the order of use: interfaces before the entries that refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDump {
    /// All interfaces.
    Interfaces,
    /// All addresses.
    Addresses,
    /// All neighbours.
    Neighbours,
}

impl LinkDump {
    /// The dump after this one.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Interfaces => Some(Self::Addresses),
            Self::Addresses => Some(Self::Neighbours),
            Self::Neighbours => None,
        }
    }

    /// Appends the request.
    pub fn ask(self, sequence: u32, out: &mut Vec<u8>) {
        /// NLM_F_REQUEST and NLM_F_DUMP.
        const DUMP: u16 = 0x301;
        let (kind, len) = match self {
            Self::Interfaces => (18u16, 16),
            Self::Addresses => (22, 8),
            Self::Neighbours => (30, 12),
        };
        let begin = out.len();
        out.extend([0; 4]);
        out.extend(kind.to_ne_bytes());
        out.extend(DUMP.to_ne_bytes());
        out.extend(sequence.to_ne_bytes());
        out.extend([0; 4]);
        out.resize(begin + HEADER + len, 0);
        finish(begin, out);
    }
}

/// Puts the length of the message that begins there into its header.
fn finish(begin: usize, out: &mut [u8]) {
    let len = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_ne_bytes());
}
