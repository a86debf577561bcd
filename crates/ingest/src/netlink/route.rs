//! RTM_NEWROUTE and RTM_DELROUTE.
//!
//! ```text
//! family 1 | prefix length 1 | source's length 1 | TOS 1 | table 1 | protocol 1 | scope 1 | type 1 | flags 4 | attributes
//! ```

use std::net::IpAddr;

use fibula_core::{Addr, AnyPrefix, NextHop, Prefix, RouteKind};

use super::wire::Part;
use crate::bgp::DecodeFault;

pub(super) const AF_INET: u8 = 2;
pub(super) const AF_INET6: u8 = 10;

/// The number of the main table.
pub(super) const MAIN: u32 = 254;

/// Of a next hop: it takes no packets, because its interface is down.
pub(super) const NEXT_HOP_DEAD: u8 = 1;

/// Attributes of a route.
mod attribute {
    pub(super) const DST: u16 = 1;
    pub(super) const SRC: u16 = 2;
    pub(super) const OIF: u16 = 4;
    pub(super) const GATEWAY: u16 = 5;
    pub(super) const PRIORITY: u16 = 6;
    pub(super) const MULTIPATH: u16 = 9;
    pub(super) const TABLE: u16 = 15;
    pub(super) const VIA: u16 = 18;
    pub(super) const NH_ID: u16 = 30;
}

/// A message about a route.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Route {
    /// The table's number, [`MAIN`] where none is given.
    pub(super) table: u32,
    pub(super) prefix: AnyPrefix,
    /// The kernel's metric; of several routes of a prefix the lowest counts.
    pub(super) priority: u32,
    pub(super) kind: RouteType,
    /// The next-hop object that it uses.
    pub(super) next_hop: Option<u32>,
}

/// `rtm_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteType {
    /// Not given; in messages that delete.
    Unspecified,
    /// A type that forwards, or drops with intent.
    Known(RouteKind),
    /// Anycast, multicast, throw and others.
    Other,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parsed {
    Route(Route),
    /// Nothing for a unicast routing table.
    Ignored(&'static str),
}

/// Reads the body of a message. The next hops that it has inline go to `hops`, without those that are dead.
#[inline]
pub(super) fn read(mut body: Part<'_>, hops: &mut Vec<NextHop>) -> Result<Parsed, DecodeFault> {
    hops.clear();
    let start = body;
    let [family, len, source_len, tos, table, _protocol, _scope, kind] =
        body.array("the route's header")?;
    let flags = u32::from_ne_bytes(body.array("the route's flags")?);
    if !matches!(family, AF_INET | AF_INET6) {
        return Ok(Parsed::Ignored("routes of other families than IP"));
    }
    /// A copy of a route that the kernel keeps for one destination.
    const CLONED: u32 = 0x200;
    if flags & CLONED != 0 {
        return Ok(Parsed::Ignored("routes that the kernel cached"));
    }
    if tos != 0 || source_len != 0 {
        return Ok(Parsed::Ignored("routes for a source or a type of service"));
    }
    let mut route = Attributes { table: table.into(), ..Attributes::default() };
    let mut single = Single::default();
    while let Some((kind, value)) = body.attribute()? {
        match kind {
            attribute::DST => route.dst = Some(value),
            attribute::SRC => {
                return Ok(Parsed::Ignored("routes for a source or a type of service"));
            }
            attribute::OIF => single.interface = interface(value.u32("RTA_OIF")?),
            attribute::GATEWAY => single.gateway = gateway(value.address("RTA_GATEWAY")?),
            attribute::VIA => single.gateway = gateway(via(value)?),
            attribute::PRIORITY => route.priority = value.u32("RTA_PRIORITY")?,
            attribute::MULTIPATH => multipath(value, hops)?,
            attribute::TABLE => route.table = value.u32("RTA_TABLE")?,
            attribute::NH_ID => route.next_hop = Some(value.u32("RTA_NH_ID")?),
            _ => {}
        }
    }
    let prefix = match family {
        AF_INET => AnyPrefix::V4(prefix::<u32>(start, route.dst, len)?),
        _ => AnyPrefix::V6(prefix::<u128>(start, route.dst, len)?),
    };
    // The kernel puts the state of a single next hop among the route's flags.
    let is_dead = flags & u32::from(NEXT_HOP_DEAD) != 0;
    if hops.is_empty() && !is_dead {
        hops.extend(single.hop());
    }
    Ok(Parsed::Route(Route {
        table: if route.table == 0 { MAIN } else { route.table },
        prefix,
        priority: route.priority,
        kind: match (kind, RouteKind::from_number(kind)) {
            (0, _) => RouteType::Unspecified,
            (_, Some(kind)) => RouteType::Known(kind),
            (_, None) => RouteType::Other,
        },
        next_hop: route.next_hop.filter(|&id| id != 0),
    }))
}

#[derive(Default)]
struct Attributes<'a> {
    dst: Option<Part<'a>>,
    table: u32,
    priority: u32,
    next_hop: Option<u32>,
}

/// The next hop in a message's own attributes.
#[derive(Default)]
pub(super) struct Single {
    pub(super) gateway: Option<IpAddr>,
    pub(super) interface: Option<u32>,
}

impl Single {
    /// The next hop; `None` if the message has none.
    pub(super) fn hop(&self) -> Option<NextHop> {
        let Self { gateway, interface } = *self;
        (gateway.is_some() || interface.is_some()).then_some(NextHop {
            gateway,
            interface,
            weight: 1,
        })
    }
}

/// Interfaces are numbered from 1.
pub(super) fn interface(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

/// The unspecified address is none.
pub(super) fn gateway(address: IpAddr) -> Option<IpAddr> {
    (!address.is_unspecified()).then_some(address)
}

/// RTA_VIA, a gateway of either family (RFC 8950): `family 2 | address`.
fn via(mut value: Part<'_>) -> Result<IpAddr, DecodeFault> {
    let start = value;
    let family = u16::from_ne_bytes(value.array("RTA_VIA's family")?);
    let address = value.address("RTA_VIA")?;
    let expected = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    if family != u16::from(expected) {
        return Err(start.fault(format!(
            "RTA_VIA of family {family} has an address of {} bytes",
            value.data.len()
        )));
    }
    Ok(address)
}

/// RTA_MULTIPATH: `length 2 | flags 1 | weight - 1 1 | interface 4 | attributes`, for each next hop.
fn multipath(mut value: Part<'_>, hops: &mut Vec<NextHop>) -> Result<(), DecodeFault> {
    const HEAD: usize = 8;
    hops.clear();
    while let Some(&[a, b, flags, weight]) = value.data.first_chunk() {
        let len = usize::from(u16::from_ne_bytes([a, b]));
        if len < HEAD {
            return Err(value.fault(format!("a next hop has a length of {len}")));
        }
        let mut hop = value.take_padded(len, "a next hop")?;
        hop.array::<4>("a next hop's header")?;
        let mut single = Single {
            interface: interface(u32::from_ne_bytes(hop.array("a next hop's interface")?)),
            gateway: None,
        };
        while let Some((kind, value)) = hop.attribute()? {
            match kind {
                attribute::GATEWAY => single.gateway = gateway(value.address("RTA_GATEWAY")?),
                attribute::VIA => single.gateway = gateway(via(value)?),
                _ => {}
            }
        }
        if flags & NEXT_HOP_DEAD == 0
            && let Some(hop) = single.hop()
        {
            hops.push(NextHop { weight: u32::from(weight) + 1, ..hop });
        }
    }
    Ok(())
}

/// The prefix; a default route need not have RTA_DST.
fn prefix<A: Addr>(
    start: Part<'_>,
    dst: Option<Part<'_>>,
    len: u8,
) -> Result<Prefix<A>, DecodeFault> {
    let addr = match dst {
        None if len == 0 => A::MIN,
        None => return Err(start.fault(format!("a route of length {len} has no RTA_DST"))),
        Some(dst) => A::from_be_slice(dst.data).ok_or_else(|| {
            let (bits, bytes) = (A::BITS, dst.data.len());
            dst.fault(format!("RTA_DST of a {bits}-bit family has {bytes} bytes"))
        })?,
    };
    Prefix::masked(addr, len)
        .map_err(|_| start.fault(format!("prefix length {len} exceeds {}", A::BITS)))
}
