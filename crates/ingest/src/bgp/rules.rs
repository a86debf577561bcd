//! What a session refuses of a route that an archive keeps and counts.

use std::net::IpAddr;

use super::attributes::{Missing, PathAttributes};
use crate::Sink;

/// The ends of a session, by which its routes are judged. Archives and monitored sessions are not: what others
/// accepted is kept, and [`Sink::noted`](crate::Sink::noted) counts each rule that a route breaks, as if an external
/// neighbour had sent it.
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
/// | LOCAL_PREF, ORIGINATOR_ID, CLUSTER_LIST from an external neighbour | the attribute is discarded | RFC 7606, 7.5, 7.9, 7.10 |
/// | AS4_PATH, AS4_AGGREGATOR where AS numbers have four bytes | the attribute is discarded | RFC 6793, 4.1 |
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
        let applies = |rule: &Rule| {
            self.is_external || !matches!(rule, Rule::Confederation | Rule::EmptyPath)
        };
        let broken = attributes.facts(is_mp).broken(self.local_address);
        if let Some(rule) = Rule::of(broken).find(applies) {
            return Some(rule.refused());
        }
        let paths = [attributes.path(), attributes.path_of_four()];
        let is_ours = paths.into_iter().flatten().any(|path| path.has(self.local_asn));
        is_ours.then_some(Refused::Loop("routes with our own AS in their path"))
    }
}

/// A rule that a route can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    NoPath,
    As0,
    EmptySegment,
    Confederation,
    EmptyPath,
    NoNextHop,
    NoHost,
    OwnAddress,
}

impl Rule {
    /// All of them, each at the number of its bit.
    const ALL: [Self; 8] = [
        Self::NoPath,
        Self::As0,
        Self::EmptySegment,
        Self::Confederation,
        Self::EmptyPath,
        Self::NoNextHop,
        Self::NoHost,
        Self::OwnAddress,
    ];

    /// Those of a set.
    fn of(set: u8) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |&rule| set & 1 << rule as u8 != 0)
    }

    /// What a session does with the route.
    fn refused(self) -> Refused {
        match self {
            Self::NoPath => Refused::Malformed(Missing::AsPath.text()),
            Self::As0 => Refused::Malformed("AS_PATH has AS 0"),
            Self::EmptySegment => Refused::Malformed("AS_PATH has a segment without an AS"),
            Self::Confederation => Refused::Malformed(
                "AS_PATH of an external neighbour has a segment of a confederation",
            ),
            Self::EmptyPath => Refused::Malformed("AS_PATH of an external neighbour is empty"),
            Self::NoNextHop => Refused::Malformed(Missing::NextHop.text()),
            Self::NoHost => Refused::Malformed("the next hop is not the address of a host"),
            Self::OwnAddress => Refused::Loop("routes whose next hop is our own address"),
        }
    }

    /// How the route is counted where it is kept.
    fn kept(self) -> &'static str {
        match self {
            Self::NoPath => "routes without an AS path, kept as they are",
            Self::As0 => "AS paths with AS 0, kept as they are",
            Self::EmptySegment => "AS paths with an empty segment, kept as they are",
            Self::Confederation => "AS paths with a segment of a confederation, kept as they are",
            Self::EmptyPath => "empty AS paths, kept as they are",
            Self::NoNextHop => "routes without a next hop, kept as they are",
            Self::NoHost => "next hops that are not the address of a host, kept as they are",
            Self::OwnAddress => "next hops that are the receiver's own address, kept as they are",
        }
    }
}

/// What the rules look at in a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteFacts {
    /// `None` if it has no path.
    pub(crate) path: Option<PathFacts>,
    pub(crate) next_hop: Option<IpAddr>,
}

/// What the rules look at in an AS path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathFacts {
    pub(crate) has_as_0: bool,
    pub(crate) has_empty_segment: bool,
    pub(crate) has_confederation: bool,
    pub(crate) is_empty: bool,
}

impl RouteFacts {
    /// Counts each rule that a route breaks which was accepted elsewhere and is kept. `receiver` is the address at
    /// which it was received.
    pub(crate) fn note(&self, receiver: Option<IpAddr>, sink: &mut dyn Sink) {
        let broken = self.broken(receiver);
        if broken != 0 {
            Rule::of(broken).for_each(|rule| sink.noted(rule.kept()));
        }
    }

    /// The rules that the route breaks, as a set: a bit each, because most routes of an archive break none.
    fn broken(&self, receiver: Option<IpAddr>) -> u8 {
        let path = self.path.unwrap_or_default();
        let is_no_host = self.next_hop.is_some_and(|next_hop| !is_host(next_hop));
        let is_own = self.next_hop.is_some() && self.next_hop == receiver && !is_no_host;
        [
            (self.path.is_none(), Rule::NoPath),
            (path.has_as_0, Rule::As0),
            (path.has_empty_segment, Rule::EmptySegment),
            (path.has_confederation, Rule::Confederation),
            (path.is_empty, Rule::EmptyPath),
            (self.next_hop.is_none(), Rule::NoNextHop),
            (is_no_host, Rule::NoHost),
            (is_own, Rule::OwnAddress),
        ]
        .into_iter()
        .fold(0, |set, (is_broken, rule)| set | u8::from(is_broken) << rule as u8)
    }
}

/// Whether packets can be sent to this address as to a host.
fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast()),
    }
}
