//! What a session refuses of a route that an archive keeps.

use std::net::IpAddr;

use super::attributes::PathAttributes;

/// The ends of a session, by which its routes are judged. Archives and monitored sessions are not: what others
/// accepted is kept, and [`Sink::noted`](crate::Sink::noted) counts it.
///
/// | in a route | effect | by |
/// |---|---|---|
/// | AS 0 in AS_PATH | withdrawn | RFC 7607 |
/// | AS 0 in AS4_PATH, AGGREGATOR | the attribute is discarded | RFC 7607, RFC 7606, 7.7 |
/// | a segment without an AS | withdrawn | RFC 7606, 7.2 |
/// | a segment of a confederation, from an external neighbour | withdrawn | RFC 5065, 5 |
/// | an empty path, from an external neighbour | withdrawn | RFC 4271, 5.1.2 |
/// | a next hop in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3, `::`, `::1` or ff00::/8 | withdrawn | RFC 7606, 7.3 |
/// | our own address as next hop, our own AS in the path | withdrawn; no error | RFC 4271, 5.1.3, 9.1.2 |
/// | an unknown attribute that is marked well-known | the session ends | RFC 4271, 6.3 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// Our AS.
    pub local_asn: u32,
    /// Whether the neighbour is in another AS.
    pub is_external: bool,
    /// Our address, to which the neighbour connected, if it is known.
    pub local_address: Option<IpAddr>,
}

/// Why a route is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is malformed.
    Malformed(&'static str),
    /// It would lead back to us: nothing is wrong.
    Loop(&'static str),
}

impl SessionRules {
    /// The first rule that the routes of a message's own NLRI field (`is_mp` false) or of MP_REACH_NLRI break.
    pub(super) fn judge(&self, attributes: &PathAttributes<'_>, is_mp: bool) -> Option<Refused> {
        let path = attributes.path()?;
        if path.has_as_0() {
            return Some(Refused::Malformed("AS_PATH has AS 0"));
        }
        if path.has_empty_segment() {
            return Some(Refused::Malformed("AS_PATH has a segment without an AS"));
        }
        if self.is_external {
            if path.has_confederation() {
                let what = "AS_PATH of an external neighbour has a segment of a confederation";
                return Some(Refused::Malformed(what));
            }
            if path.hops() == 0 {
                return Some(Refused::Malformed("AS_PATH of an external neighbour is empty"));
            }
        }
        let next_hop = attributes.next_hop(is_mp)?;
        if !is_host(next_hop) {
            return Some(Refused::Malformed("the next hop is not the address of a host"));
        }
        if Some(next_hop) == self.local_address {
            return Some(Refused::Loop("routes whose next hop is our own address"));
        }
        let is_ours = path.has(self.local_asn)
            || attributes.path_of_four().is_some_and(|p| p.has(self.local_asn));
        is_ours.then_some(Refused::Loop("routes with our own AS in their path"))
    }
}

/// Whether packets can be sent to this address as to a host.
fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast()),
    }
}
