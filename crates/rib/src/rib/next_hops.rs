//! Forwarding next hops as bytes of a set, and as the cells of columns.
//!
//! | column | holds |
//! |---|---|
//! | `next_hop` | the gateway; empty if the destination is on the link |
//! | `interface` | the index of the interface |
//! | `weight` | the weight |
//! | `kind` | `unicast`, `local`, `blackhole`, `unreachable`, `prohibit` |
//!
//! Of several next hops each of the first three columns is a text, one item a next hop in the order of
//! [`AttributeSet::next_hops`](super::AttributeSet::next_hops), separated by spaces, `-` where there is
//! none: `192.0.2.1 192.0.2.9`, `3 -`, `1 2`. So a column of numbers becomes one of text as soon as a
//! route has several next hops.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{NextHop, NextHops, RouteKind, Value};

use crate::ColumnKind;

/// The columns that next hops have, in order.
pub(crate) const COLUMNS: [(&str, ColumnKind); 4] = [
    ("next_hop", ColumnKind::Str),
    ("interface", ColumnKind::Int),
    ("weight", ColumnKind::Int),
    ("kind", ColumnKind::Str),
];

const HAS_IP: u8 = 1;
const IS_V6: u8 = 2;
const HAS_INTERFACE: u8 = 4;

/// Bytes of one next hop.
const ITEM: usize = 28;

/// An address in 16 bytes, and its flags: 0 if there is none, 1 for IPv4, 3 for IPv6.
pub(super) fn pack(ip: Option<IpAddr>) -> ([u8; 16], u8) {
    let mut octets = [0; 16];
    match ip {
        None => (octets, 0),
        Some(IpAddr::V4(ip)) => {
            octets[..4].copy_from_slice(&ip.octets());
            (octets, HAS_IP)
        }
        Some(IpAddr::V6(ip)) => (ip.octets(), HAS_IP | IS_V6),
    }
}

/// The reverse of [`pack`]; other flags do not matter.
pub(super) fn unpack(octets: [u8; 16], flags: u8) -> Option<IpAddr> {
    let [a, b, c, d, ..] = octets;
    match flags & (HAS_IP | IS_V6) {
        HAS_IP => Some(Ipv4Addr::new(a, b, c, d).into()),
        flags if flags & HAS_IP != 0 => Some(Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

/// Appends the next hops to `out`, sorted.
pub(super) fn encode(next_hops: &NextHops, out: &mut Vec<u8>) {
    out.push(next_hops.kind as u8);
    // Most routes have one.
    let mut hops = Cow::Borrowed(&next_hops.hops[..]);
    if !hops.is_sorted() {
        hops.to_mut().sort_unstable();
    }
    for &NextHop { gateway, interface, weight } in hops.iter() {
        let (octets, flags) = pack(gateway);
        let has_interface = if interface.is_some() { HAS_INTERFACE } else { 0 };
        out.extend_from_slice(&[flags | has_interface, 0, 0, 0]);
        out.extend_from_slice(&interface.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&weight.to_le_bytes());
        out.extend_from_slice(&octets);
    }
}

/// The next hops in these bytes; `None` if the bytes are invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<NextHops> {
    let (&kind, items) = bytes.split_first()?;
    let (items, rest) = items.as_chunks::<ITEM>();
    let word = |item: &[u8; ITEM], at: usize| {
        item[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let hop = |item: &[u8; ITEM]| NextHop {
        gateway: item.last_chunk().and_then(|octets| unpack(*octets, item[0])),
        interface: (item[0] & HAS_INTERFACE != 0).then(|| word(item, 4)),
        weight: word(item, 8),
    };
    let kind = RouteKind::from_number(kind)?;
    rest.is_empty().then(|| NextHops { kind, hops: items.iter().map(hop).collect() })
}

/// The values of the columns, in their order.
#[derive(Clone)]
pub(crate) struct Cells([Cell; 4]);

#[derive(Clone)]
enum Cell {
    Null,
    Int(u64),
    Text(String),
}

impl Cells {
    pub(crate) fn of(next_hops: &NextHops) -> Self {
        let mut hops = next_hops.hops.clone();
        hops.sort_unstable();
        let gateway =
            |hop: &NextHop| hop.gateway.map_or(Cell::Null, |ip| Cell::Text(ip.to_string()));
        let interface = |hop: &NextHop| hop.interface.map_or(Cell::Null, |i| Cell::Int(i.into()));
        let weight = |hop: &NextHop| Cell::Int(hop.weight.into());
        Self([
            column(&hops, gateway),
            column(&hops, interface),
            column(&hops, weight),
            Cell::Text(next_hops.kind.to_string()),
        ])
    }

    pub(crate) fn values(&self) -> [Value<'_>; 4] {
        self.0.each_ref().map(|cell| match cell {
            Cell::Null => Value::Null,
            Cell::Int(number) => Value::Int(*number),
            Cell::Text(text) => Value::Str(text),
        })
    }
}

/// One column of all next hops.
fn column(hops: &[NextHop], cell: impl Fn(&NextHop) -> Cell) -> Cell {
    match hops {
        [] => Cell::Null,
        [only] => cell(only),
        several => {
            let item = |hop| match cell(hop) {
                Cell::Null => "-".to_owned(),
                Cell::Int(number) => number.to_string(),
                Cell::Text(text) => text,
            };
            Cell::Text(several.iter().map(item).collect::<Vec<_>>().join(" "))
        }
    }
}
