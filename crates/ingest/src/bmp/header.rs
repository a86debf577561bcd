//! Finds BMP messages in a stream, and their peers.
//!
//! ```text
//!  0         1        5      6                                                              48
//!  | version | length | type | peer type 1 | flags 1 | distinguisher 8 | address 16 | AS 4 |
//!                            | BGP identifier 4 | seconds 4 | microseconds 4 | ...      (RFC 7854, 4.1 and 4.2)
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Tail;
use crate::bgp::{Cursor, DecodeFault, RouteDistinguisher};

/// Bytes of the common header.
pub(super) const HEADER: usize = 6;
/// Bytes of the longest message that is buffered. Peer Up has two OPENs, of at most 64 KiB each.
const LONGEST: usize = 1 << 20;

pub(super) mod kind {
    pub(in super::super) const ROUTE_MONITORING: u8 = 0;
    pub(in super::super) const STATISTICS: u8 = 1;
    pub(in super::super) const PEER_DOWN: u8 = 2;
    pub(in super::super) const PEER_UP: u8 = 3;
    pub(in super::super) const INITIATION: u8 = 4;
    pub(in super::super) const TERMINATION: u8 = 5;
    pub(in super::super) const ROUTE_MIRRORING: u8 = 6;
}

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u8,
    pub(super) kind: u8,
    /// Bytes of the message, with this header.
    pub(super) len: usize,
}

/// The result of reading the beginning of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// More input is needed.
    Need,
    /// A message, all of which is there.
    Message(Header),
    /// A message that the end of the input cuts short.
    Cut(Option<Header>),
    /// No message begins here; why not.
    Foreign(String),
}

/// Looks at the front of `input`, which is not empty.
pub(super) fn next(input: &[u8], tail: Tail) -> Frame {
    if let Some(version) = input.first().filter(|version| !matches!(version, 3 | 4)) {
        return Frame::Foreign(format!("version {version} in place of 3"));
    }
    let Some(&[version, a, b, c, d, kind]) = input.first_chunk() else {
        return if tail.is_last() { Frame::Cut(None) } else { Frame::Need };
    };
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let header = Header { version, kind, len };
    match input.len() >= len {
        _ if !(HEADER..=LONGEST).contains(&len) => {
            Frame::Foreign(format!("a message of {len} bytes, where 6 to {LONGEST} make sense"))
        }
        true => Frame::Message(header),
        false if tail.is_last() => Frame::Cut(Some(header)),
        false => Frame::Need,
    }
}

/// Whether a file that begins so is a stream of BMP.
pub(crate) fn looks_like_bmp(head: &[u8]) -> bool {
    let Some((&[version, a, b, c, d, kind], body)) = head.split_first_chunk() else { return false };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    let tlv_fits = |body: &[u8]| match *body {
        [0, 0..=4, high, low, ..] => {
            HEADER + 4 + usize::from(u16::from_be_bytes([high, low])) <= len
        }
        _ => false,
    };
    matches!(version, 3 | 4)
        && (HEADER..=LONGEST).contains(&len)
        && match kind {
            // A stream begins with it; some recorders begin later.
            kind::INITIATION => len == HEADER || tlv_fits(body),
            0..=3 => len > HEADER + PerPeer::BYTES && PerPeer::read(&mut Cursor::new(body)).is_ok(),
            _ => false,
        }
}

/// The table that a router reports: routes from a peer or routes to it, before or after the policy, or the router's own
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    PrePolicy,
    PostPolicy,
    OutPrePolicy,
    OutPostPolicy,
    LocRib,
}

impl View {
    pub(super) const COUNT: usize = 5;

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PrePolicy => "pre-policy",
            Self::PostPolicy => "post-policy",
            Self::OutPrePolicy => "out-pre-policy",
            Self::OutPostPolicy => "out-post-policy",
            Self::LocRib => "loc-rib",
        }
    }

    /// Whether the routes were sent by the router to the peer.
    pub(super) fn is_out(self) -> bool {
        matches!(self, Self::OutPrePolicy | Self::OutPostPolicy)
    }
}

/// The per-peer header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerPeer {
    pub(super) key: Key,
    pub(super) view: View,
    pub(super) asn: u32,
    pub(super) bgp_id: u32,
    /// AS paths have numbers of two bytes (flag A).
    pub(super) has_two_byte_asns: bool,
    /// Microseconds since 1970, 0 if the router does not send it.
    pub(super) time: u64,
}

/// The identity of a peer of a router (RFC 7854, 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    kind: u8,
    is_v6: bool,
    distinguisher: [u8; 8],
    address: [u8; 16],
}

impl PerPeer {
    pub(super) const BYTES: usize = 42;
    const LOC_RIB: u8 = 3;

    /// Reads the header; `Err` with the type if the peer is of an unknown one.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Unknown> {
        const NAME: &str = "per-peer header";
        let start = *cursor;
        let kind = cursor.u8(NAME)?;
        if kind > Self::LOC_RIB {
            return Err(Unknown::Kind);
        }
        let flags = cursor.u8(NAME)?;
        let has = |flag: u8| flags & flag != 0;
        let is_loc_rib = kind == Self::LOC_RIB;
        let view = match (has(0x10), has(0x40)) {
            _ if is_loc_rib => View::LocRib,
            (false, false) => View::PrePolicy,
            (false, true) => View::PostPolicy,
            (true, false) => View::OutPrePolicy,
            (true, true) => View::OutPostPolicy,
        };
        let key = Key {
            kind,
            is_v6: !is_loc_rib && has(0x80),
            distinguisher: cursor.array(NAME)?,
            address: cursor.array(NAME)?,
        };
        let (asn, bgp_id) = (cursor.u32(NAME)?, cursor.u32(NAME)?);
        let (seconds, micros) = (u64::from(cursor.u32(NAME)?), u64::from(cursor.u32(NAME)?));
        debug_assert_eq!(start.rest().len() - cursor.rest().len(), Self::BYTES);
        Ok(Self {
            key,
            view,
            asn,
            bgp_id,
            has_two_byte_asns: !is_loc_rib && has(0x20),
            time: seconds * 1_000_000 + micros,
        })
    }

    /// As users read it: `10.0.0.1 AS64500 post-policy/65000:1`.
    pub(super) fn name(&self) -> String {
        let table = crate::bgp::vrf_name((self.view.name(), self.key.rd()));
        match self.key.address() {
            Some(address) => format!("{address} AS{} {table}", self.asn),
            None => format!("AS{} {table}", self.asn),
        }
    }

    /// The peer without the table that the message is about.
    pub(super) fn peer_name(&self) -> String {
        match (self.key.address(), self.key.rd()) {
            (Some(address), None) => format!("{address} AS{}", self.asn),
            (Some(address), Some(rd)) => format!("{address} AS{} {rd}", self.asn),
            (None, _) => self.name(),
        }
    }
}

impl Key {
    /// The peer's address; a router's own table has none.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address_in(self.address)
    }

    /// An address of either end of the peer's session; a router's own table has none.
    pub(super) fn address_in(&self, bytes: [u8; 16]) -> Option<IpAddr> {
        let [.., a, b, c, d] = bytes;
        match self.kind {
            PerPeer::LOC_RIB => None,
            _ if self.is_v6 => Some(Ipv6Addr::from(bytes).into()),
            _ => Some(Ipv4Addr::new(a, b, c, d).into()),
        }
    }

    /// The routing instance that the peer belongs to.
    pub(super) fn rd(&self) -> Option<RouteDistinguisher> {
        (self.distinguisher != [0; 8]).then_some(RouteDistinguisher(self.distinguisher))
    }
}

/// The reason why a per-peer header cannot be used.
#[derive(Debug)]
pub(super) enum Unknown {
    /// A peer of a type that is not read.
    Kind,
    /// The message ends before it.
    DecodeFault(DecodeFault),
}

impl From<DecodeFault> for Unknown {
    fn from(fault: DecodeFault) -> Self {
        Self::DecodeFault(fault)
    }
}
