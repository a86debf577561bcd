//! Path attributes (RFC 4271, 4.3).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use fibula_core::{Aggregator, BgpAttributes};

use super::BgpOptions;
use super::as_path::AsPath;
use super::code::{self, check_flags, is_unrecognized, list_of, name};
use super::cursor::{Afi, AsWidth, Cursor, DecodeFault};
use super::extended;
use super::rules::RouteFacts;

/// The replacement for an AS number that does not fit in two bytes.
const AS_TRANS: u32 = 23456;

/// The container of attributes, which determines the form of MP_REACH_NLRI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeContext {
    /// In a BGP message, of an archive or of a monitored session.
    Message,
    /// In a BGP message of a session of ours.
    Session {
        /// Whether the neighbour is in another AS.
        is_external: bool,
    },
    /// In a dump of a table, where the prefix stands elsewhere and only the next hop is left.
    Table,
}

impl AttributeContext {
    /// Whether an attribute means nothing here, whatever is in it: those that routers of one AS tell each other
    /// (RFC 7606, 7.5, 7.9, 7.10), and those for speakers of two-byte numbers (RFC 6793, 4.1). Collectors are not
    /// judged so, because their records may be of other speakers and widths.
    fn discards(self, code: u8, width: AsWidth) -> bool {
        let Self::Session { is_external } = self else { return false };
        match code {
            code::LOCAL_PREF | code::ORIGINATOR_ID | code::CLUSTER_LIST => is_external,
            code::AS4_PATH | code::AS4_AGGREGATOR => width == AsWidth::Four,
            _ => false,
        }
    }
}

/// Routes of one address family in an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MpRoutes<'a> {
    pub(crate) afi: u16,
    pub(crate) safi: u8,
    pub(crate) nlri: Cursor<'a>,
}

/// The attributes that matter here, of the many that there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathAttributes<'a> {
    origin: Option<u8>,
    as_path: Option<AsPath<'a>>,
    as4_path: Option<AsPath<'a>>,
    aggregator: Option<Aggregator>,
    as4_aggregator: Option<Aggregator>,
    next_hop: Option<IpAddr>,
    mp_next_hop: Option<IpAddr>,
    med: Option<u32>,
    local_pref: Option<u32>,
    communities: &'a [u8],
    large_communities: &'a [u8],
    extended_communities: &'a [u8],
    ipv6_extended_communities: &'a [u8],
    /// The codes below 64 that were there, a bit each.
    seen: u64,
    /// The first attribute that is marked well-known and is none of those that are.
    unrecognized: Option<(u8, usize)>,
    pub(crate) reach: Option<MpRoutes<'a>>,
    pub(crate) unreach: Option<MpRoutes<'a>>,
}

/// An attribute that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Origin,
    AsPath,
    NextHop,
}

impl Missing {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Origin => "ORIGIN is missing",
            Self::AsPath => "AS_PATH is missing",
            Self::NextHop => "the next hop is missing",
        }
    }
}

/// Buffers that outlive one route.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    as_path: String,
    communities: String,
    extended_communities: String,
    merged: Vec<u8>,
}

impl<'a> PathAttributes<'a> {
    /// Reads all of `cursor`, to the first fault.
    pub(crate) fn read(
        cursor: Cursor<'a>,
        width: AsWidth,
        context: AttributeContext,
    ) -> Result<Self, DecodeFault> {
        let mut attributes = Self::default();
        match attributes.read_on(cursor, width, context) {
            None => Ok(attributes),
            Some(fault) => Err(fault),
        }
    }

    /// Reads all of `cursor`, behind malformed attributes, too; the first fault.
    pub(crate) fn read_on(
        &mut self,
        mut cursor: Cursor<'a>,
        width: AsWidth,
        context: AttributeContext,
    ) -> Option<DecodeFault> {
        let mut first = None;
        while !cursor.is_empty() {
            let taken = match attribute(&mut cursor) {
                Ok((_, code, _)) if context.discards(code, width) => Ok(()),
                Ok((flags, code, value)) => {
                    if is_unrecognized(flags, code) {
                        self.unrecognized.get_or_insert((code, value.position()));
                    }
                    self.take(code, value, width, context)
                        .and_then(|()| check_flags(flags, code, value, context))
                }
                Err(fault) => {
                    first.get_or_insert(fault);
                    break;
                }
            };
            if let Err(fault) = taken {
                first.get_or_insert(fault);
            }
        }
        first
    }

    /// The first attribute that a route of a message must have and these have not (RFC 7606, 3.d).
    pub(crate) fn missing(&self, is_mp: bool) -> Option<Missing> {
        let next_hop = self.next_hop(is_mp);
        match (self.origin, self.as_path, next_hop) {
            (None, ..) => Some(Missing::Origin),
            (_, None, _) => Some(Missing::AsPath),
            (.., None) => Some(Missing::NextHop),
            _ => None,
        }
    }

    fn take(
        &mut self,
        code: u8,
        mut value: Cursor<'a>,
        width: AsWidth,
        context: AttributeContext,
    ) -> Result<(), DecodeFault> {
        let name = name(code);
        let bit = 1u64.checked_shl(code.into()).unwrap_or(0);
        if self.seen & bit != 0 {
            // RFC 7606, 3.g: of the others, the first one counts.
            return match code {
                code::MP_REACH_NLRI | code::MP_UNREACH_NLRI
                    if context != AttributeContext::Table =>
                {
                    Err(value.fault(format!("{name} comes twice")))
                }
                _ => Ok(()),
            };
        }
        self.seen |= bit;
        match code {
            code::ORIGIN => self.origin = Some(value.u8(name)?),
            code::AS_PATH => self.as_path = Some(AsPath::check(value, width)?),
            code::NEXT_HOP => self.next_hop = Some(value.address(Afi::V4, name)?),
            code::MULTI_EXIT_DISC => self.med = Some(value.u32(name)?),
            code::LOCAL_PREF => self.local_pref = Some(value.u32(name)?),
            // RFC 7606, 7.7: an invalid one is discarded. That of AS 0 (RFC 7607) is in archives.
            code::AGGREGATOR => {
                let width = match (value.rest().len(), context) {
                    (len, AttributeContext::Session { .. }) if len != width.bytes() + 4 => None,
                    // Some collectors have the other width here than in the paths.
                    (6, _) => Some(AsWidth::Two),
                    (8, _) => Some(AsWidth::Four),
                    _ => None,
                };
                if let Some(width) = width {
                    self.aggregator = Some(read_aggregator(value, width, name)?);
                }
            }
            code::COMMUNITIES => self.communities = value.rest(),
            code::LARGE_COMMUNITIES => self.large_communities = value.rest(),
            code::EXTENDED_COMMUNITIES => self.extended_communities = value.rest(),
            code::IPV6_EXTENDED_COMMUNITIES => self.ipv6_extended_communities = value.rest(),
            code::MP_REACH_NLRI => self.take_reach(value, context)?,
            code::MP_UNREACH_NLRI if context != AttributeContext::Table => {
                let (afi, safi) = (value.u16(name)?, value.u8(name)?);
                self.unreach = Some(MpRoutes { afi, safi, nlri: value });
            }
            // From a speaker of two-byte numbers; collectors keep them in records of four-byte ones. An invalid one is
            // discarded (RFC 6793, 6; RFC 7607).
            code::AS4_AGGREGATOR if value.rest().len() == 8 => {
                let aggregator = read_aggregator(value, AsWidth::Four, name)?;
                self.as4_aggregator = Some(aggregator).filter(|found| found.asn != 0);
            }
            code::AS4_PATH => {
                let is_sound = |path: &AsPath<'_>| {
                    let facts = path.facts();
                    !facts.has_empty_segment && !facts.has_as_0
                };
                self.as4_path = AsPath::check(value, AsWidth::Four).ok().filter(is_sound);
            }
            _ => {}
        }
        match context {
            AttributeContext::Table => Ok(()), // a collector has accepted it
            _ => self.check(code, value),
        }
    }

    /// Checks an attribute of a message, of which these bytes are left: RFC 7606, 7.1, 7.3 to 7.5, 7.8 to 7.10, 7.14
    /// and 7.15; RFC 8092, 6; RFC 9234, 5. The attributes that RFC 7606 discards if they are malformed (AGGREGATOR,
    /// ATOMIC_AGGREGATE) have no place here.
    fn check(&mut self, code: u8, mut value: Cursor<'a>) -> Result<(), DecodeFault> {
        let name = name(code);
        let left = match code {
            code::ORIGIN | code::NEXT_HOP | code::MULTI_EXIT_DISC | code::LOCAL_PREF => {
                value.rest().len()
            }
            code::ORIGINATOR_ID | code::ONLY_TO_CUSTOMER => {
                value.u32(name)?;
                value.rest().len()
            }
            _ => match (list_of(code), value.rest().len()) {
                (None, _) => 0,
                (Some(_), 0) => return Err(value.fault(format!("{name} is empty"))),
                (Some(unit), len) => len % unit,
            },
        };
        match (left, self.origin) {
            (0, Some(origin @ 3..)) => {
                self.origin = None;
                Err(value.fault(format!("ORIGIN is {origin}, which means nothing")))
            }
            (0, _) => Ok(()),
            _ => Err(value.fault(format!("{name} is {left} bytes too long"))),
        }
    }

    fn take_reach(
        &mut self,
        mut value: Cursor<'a>,
        context: AttributeContext,
    ) -> Result<(), DecodeFault> {
        const NAME: &str = "MP_REACH_NLRI";
        // RFC 6396, 4.3.4 leaves all but the next hop out; some writers do not. A next hop is never 0 bytes long and
        // the first byte of an address family is 0, which distinguishes the two.
        let is_short =
            context == AttributeContext::Table && value.rest().first().is_some_and(|&len| len != 0);
        let family = match is_short {
            true => None,
            false => Some((value.u16(NAME)?, value.u8(NAME)?)),
        };
        let len = value.u8(NAME)?;
        let next_hop = value.part(len.into(), "next hop")?;
        self.mp_next_hop = read_next_hop(next_hop);
        if let Some((afi, safi)) = family
            && context != AttributeContext::Table
        {
            value.u8("MP_REACH_NLRI reserved byte")?;
            self.reach = Some(MpRoutes { afi, safi, nlri: value });
        }
        Ok(())
    }

    /// AS_PATH.
    pub(super) fn path(&self) -> Option<AsPath<'a>> {
        self.as_path
    }

    /// AS4_PATH.
    pub(super) fn path_of_four(&self) -> Option<AsPath<'a>> {
        self.as4_path
    }

    /// The next hop of the routes of a message's own NLRI field (`is_mp` false) or of MP_REACH_NLRI.
    fn next_hop(&self, is_mp: bool) -> Option<IpAddr> {
        if is_mp { self.mp_next_hop } else { self.next_hop }
    }

    /// The fault of a session: an attribute that every speaker must know, and that nobody knows (RFC 4271, 6.3).
    pub(super) fn unrecognized(&self) -> Option<DecodeFault> {
        let (code, at) = self.unrecognized?;
        Some(DecodeFault {
            at,
            what: format!("attribute {code} is marked well-known and is unknown").into(),
        })
    }

    /// What the rules look at in a route of the message's own NLRI field (`is_mp` false) or of MP_REACH_NLRI.
    pub(crate) fn facts(&self, is_mp: bool) -> RouteFacts {
        let path = self.as_path.map(AsPath::facts);
        RouteFacts { path, next_hop: self.either_next_hop(is_mp) }
    }

    /// The next hop of the field that it should be in, otherwise of the other one, as some tables have it.
    fn either_next_hop(&self, is_mp: bool) -> Option<IpAddr> {
        self.next_hop(is_mp).or(self.next_hop(!is_mp))
    }

    /// Sets the next hop that a message has beside the attributes.
    pub(crate) fn set_next_hop(&mut self, value: Cursor<'_>) {
        self.mp_next_hop = read_next_hop(value).or(self.mp_next_hop);
    }

    /// The attributes of a route of the message's own NLRI field (`is_mp` false) or of MP_REACH_NLRI.
    pub(crate) fn finish<'s>(
        &self,
        is_mp: bool,
        options: BgpOptions,
        scratch: &'s mut Scratch,
    ) -> BgpAttributes<'s> {
        scratch.as_path.clear();
        scratch.communities.clear();
        scratch.extended_communities.clear();
        let path = match (self.as_path, self.as4_path) {
            (Some(path), Some(as4)) if !self.as4_is_stale() => {
                Some(path.complete(as4, &mut scratch.merged))
            }
            (path, _) => path,
        };
        if options.as_path
            && let Some(path) = path
        {
            path.write(&mut scratch.as_path);
        }
        if options.communities {
            self.write_communities(&mut scratch.communities);
        }
        if options.extended_communities {
            let (four, six) = (self.extended_communities, self.ipv6_extended_communities);
            extended::write(four, six, &mut scratch.extended_communities);
        }
        BgpAttributes {
            next_hop: self.either_next_hop(is_mp),
            origin_as: path.and_then(AsPath::origin),
            as_path_len: path.map_or(0, AsPath::hops),
            as_path: &scratch.as_path,
            local_pref: self.local_pref,
            med: self.med,
            origin: self.origin,
            communities: &scratch.communities,
            extended_communities: &scratch.extended_communities,
            aggregator: match (self.aggregator, self.as4_aggregator) {
                (Some(old), Some(new)) if old.asn == AS_TRANS => Some(new),
                (aggregator, _) => aggregator,
            },
            best: None,
        }
    }

    /// Whether an old speaker aggregated after the new one that wrote AS4_PATH (RFC 6793, 4.2.3): both
    /// aggregators are there, and the old one's AS is a real one.
    fn as4_is_stale(&self) -> bool {
        let is_real = |old: Aggregator| old.asn != AS_TRANS && old.asn != 0;
        self.as4_aggregator.is_some() && self.aggregator.is_some_and(is_real)
    }

    fn write_communities(&self, out: &mut String) {
        let u32_at = |bytes: &[u8], at: usize| {
            bytes[at..at + 4].iter().fold(0u32, |value, &b| value << 8 | u32::from(b))
        };
        for community in self.communities.chunks_exact(4) {
            let value = u32_at(community, 0);
            let _ = write!(out, "{}:{} ", value >> 16, value & 0xffff);
        }
        for community in self.large_communities.chunks_exact(12) {
            let [a, b, c] = [0, 4, 8].map(|at| u32_at(community, at));
            let _ = write!(out, "{a}:{b}:{c} ");
        }
        out.truncate(out.trim_end().len());
    }
}

fn read_aggregator(
    mut value: Cursor<'_>,
    width: AsWidth,
    name: &'static str,
) -> Result<Aggregator, DecodeFault> {
    let (asn, address) = (value.asn(width, name)?, value.u32(name)?);
    Ok(Aggregator { asn, address: Ipv4Addr::from(address) })
}

/// The flags, the code and the value of the next attribute.
pub(super) fn attribute<'a>(cursor: &mut Cursor<'a>) -> Result<(u8, u8, Cursor<'a>), DecodeFault> {
    let flags = cursor.u8("attribute flags")?;
    let code = cursor.u8("attribute type")?;
    let is_extended = flags & 0x10 != 0;
    let len = match is_extended {
        true => cursor.u16("attribute length")?,
        false => cursor.u8("attribute length")?.into(),
    };
    Ok((flags, code, cursor.part(len.into(), name(code))?))
}

/// The next hop: an address, or of an IPv6 pair the global one. In VPNs each has a route distinguisher before it, all
/// zero. The length determines the family: routes of either family may have next hops of the other one (RFC 8950).
fn read_next_hop(mut value: Cursor<'_>) -> Option<IpAddr> {
    const RD: usize = 8;
    let (before, afi) = match value.rest().len() {
        4 => (0, Afi::V4),
        16 | 32 => (0, Afi::V6),
        12 => (RD, Afi::V4),
        24 | 48 => (RD, Afi::V6),
        _ => return None,
    };
    value.bytes(before, "next hop's route distinguisher").ok()?;
    value.address(afi, "next hop").ok()
}
