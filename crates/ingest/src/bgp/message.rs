//! Messages: their frames, and the UPDATE of RFC 4271 and RFC 4760.

use std::net::IpAddr;

use fibula_core::{Attributes, Change};

use super::attributes::{AttributeContext, Missing, MpRoutes, PathAttributes, Scratch};
use super::cursor::{Afi, AsWidth, Cursor, DecodeFault};
use super::nlri::{Nlri, OTHER_FAMILY};
use super::rules::{Refused, SessionRules};
use super::vrf::{RouteDistinguisher, Vrfs};
use super::{AfiSafi, BgpOptions};
use crate::Sink;

/// Why routes of another family are ignored where VPNs are read.
const NOT_READ: &str = "routes of address families that are not read";

/// Bytes of the marker, all ones.
pub(super) const MARKER: usize = 16;
/// Bytes of a message's header: marker, length, type.
pub(super) const HEADER: usize = 19;
/// Bytes of the longest message, without RFC 8654.
pub(super) const LONGEST: usize = 4096;
const UPDATE: u8 = 2;

/// The sender of a message, and its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerEncoding {
    /// The number of the peer in updates.
    pub peer: u32,
    /// Whether AS numbers have four bytes, because both ends announced it (RFC 6793).
    pub four_byte_asns: bool,
    /// Path identifiers of IPv4 routes.
    pub add_path_v4: AddPath,
    /// Path identifiers of IPv6 routes.
    pub add_path_v6: AddPath,
    /// Path identifiers of IPv4 routes in VPNs.
    pub add_path_vpn_v4: AddPath,
    /// Path identifiers of IPv6 routes in VPNs.
    pub add_path_vpn_v6: AddPath,
    /// The name of the peer's table with these routes, if the source has several (BMP's `pre-policy`). The names of
    /// their routing instances begin with it. Empty otherwise.
    pub view: &'static str,
    /// The routing instance of routes that do not name one themselves; `None` for the main one.
    pub rd: Option<RouteDistinguisher>,
}

impl Default for PeerEncoding {
    /// Peer 0 with AS numbers of four bytes and without path identifiers, views and instances.
    fn default() -> Self {
        Self { four_byte_asns: true, ..Self::unknown(0, AddPath::Absent) }
    }
}

impl PeerEncoding {
    /// AS numbers have two bytes, and of path identifiers the same is known in all families.
    pub(crate) fn unknown(peer: u32, add_path: AddPath) -> Self {
        Self {
            peer,
            four_byte_asns: false,
            add_path_v4: add_path,
            add_path_v6: add_path,
            add_path_vpn_v4: add_path,
            add_path_vpn_v6: add_path,
            view: "",
            rd: None,
        }
    }

    pub(super) fn add_path(&self, afi: Afi, is_vpn: bool) -> AddPath {
        match (afi, is_vpn) {
            (Afi::V4, false) => self.add_path_v4,
            (Afi::V6, false) => self.add_path_v6,
            (Afi::V4, true) => self.add_path_vpn_v4,
            (Afi::V6, true) => self.add_path_vpn_v6,
        }
    }

    /// Whether prefixes of a family have path identifiers; unknown if that family is not read.
    pub(crate) fn add_path_of(&self, family: AfiSafi) -> AddPath {
        match (Afi::from_code(family.afi), family.safi) {
            (Some(afi), 1) => self.add_path(afi, false),
            (Some(afi), 128) => self.add_path(afi, true),
            _ => AddPath::Unknown,
        }
    }

    /// Sets whether prefixes of a family have path identifiers, if that family is read.
    pub(crate) fn set_add_path(&mut self, family: AfiSafi, add_path: AddPath) {
        match family {
            AfiSafi::IPV4 => self.add_path_v4 = add_path,
            AfiSafi::IPV6 => self.add_path_v6 = add_path,
            AfiSafi::VPN_IPV4 => self.add_path_vpn_v4 = add_path,
            AfiSafi::VPN_IPV6 => self.add_path_vpn_v6 = add_path,
            _ => {}
        }
    }
}

/// Whether prefixes have path identifiers before them (RFC 7911).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddPath {
    /// There are none.
    #[default]
    Absent,
    /// Each prefix has one.
    Present,
    /// Unknown: a list that is only valid with identifiers has them. Dumps before RFC 8050 do not contain this; in a
    /// session the capabilities determine it.
    Unknown,
}

/// The kind of a decoded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// OPEN; [`Open::decode`](super::Open::decode) decodes its contents.
    Open,
    /// UPDATE; its contents were passed to the sink.
    Update,
    /// An UPDATE that marks the end of the peer's routes of a family (RFC 4724).
    EndOfRib {
        /// The address family: 1 is IPv4, 2 is IPv6.
        afi: u16,
        /// The subsequent address family: 1 is unicast.
        safi: u8,
    },
    /// NOTIFICATION: the session ends.
    Notification,
    /// KEEPALIVE.
    Keepalive,
    /// ROUTE-REFRESH.
    RouteRefresh,
}

/// The length of the message at the front of a stream; `None` if it is incomplete.
///
/// # Errors
/// If no message begins here. The stream cannot be decoded any further (RFC 4271, 6.1).
pub fn framed(input: &[u8]) -> Result<Option<usize>, DecodeFault> {
    let marker = input.len().min(16);
    let cursor = Cursor::new(input);
    if input[..marker].iter().any(|&byte| byte != 0xff) {
        return Err(cursor.fault("the BGP marker is not all ones"));
    }
    let Some(&[high, low, _]) = input.get(16..HEADER) else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len < HEADER {
        return Err(cursor.fault(format!("BGP message length {len} is less than its header")));
    }
    Ok((input.len() >= len).then_some(len))
}

/// Decodes messages of any number of peers. Routes of VPNs belong to the instance of their route distinguisher
/// ([`Sink::vrf`]).
#[derive(Debug, Default)]
pub struct Messages {
    options: BgpOptions,
    rules: Option<SessionRules>,
    scratch: Scratch,
    vrfs: Vrfs,
}

impl Messages {
    /// Makes a decoder.
    pub fn new(options: BgpOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Judges further routes by these rules; without rules every route that can be read is kept.
    pub fn judge_by(&mut self, rules: SessionRules) {
        self.rules = Some(rules);
    }

    /// Passes the contents of a complete message to the sink. `time` is the time of arrival in microseconds since
    /// 1970.
    ///
    /// # Errors
    /// If the message is malformed. Its routes are then withdrawn, as RFC 7606 requires. Of a list of prefixes that
    /// becomes malformed, the prefixes before that point reach the sink.
    pub fn decode(
        &mut self,
        message: &[u8],
        from: PeerEncoding,
        time: u64,
        sink: &mut dyn Sink,
    ) -> Result<Message, DecodeFault> {
        let Self { options, rules, scratch, vrfs } = self;
        let (options, rules) = (*options, *rules);
        let (vrfs, is_monitored, receiver) = (Some(vrfs), false, None);
        let mut out = Out { sink, scratch, options, time, vrfs, is_monitored, receiver, rules };
        decode(Cursor::new(message), from, &mut out)
    }
}

/// The output of decoders of BGP data.
pub(crate) struct Out<'o> {
    pub(crate) sink: &'o mut dyn Sink,
    pub(crate) scratch: &'o mut Scratch,
    pub(crate) options: BgpOptions,
    /// Microseconds since 1970.
    pub(crate) time: u64,
    /// The source's routing instances; `None` if it has one table, and routes of VPNs are ignored.
    pub(crate) vrfs: Option<&'o mut Vrfs>,
    /// The messages are a router's reports about its peers, which may lack next hops, and AS paths as GoBGP's own
    /// routes do.
    pub(crate) is_monitored: bool,
    /// The address at which routes that were accepted elsewhere were received, if it is known.
    pub(crate) receiver: Option<IpAddr>,
    /// The rules of a session; `None` for routes that were accepted elsewhere.
    pub(crate) rules: Option<SessionRules>,
}

impl Out<'_> {
    /// The routes of an MP attribute if they are read.
    fn kept<'a>(&mut self, routes: Option<MpRoutes<'a>>) -> Option<Nlri<'a>> {
        let kept = Nlri::multiprotocol(routes?, self.vrfs.is_some());
        if kept.is_none() {
            self.sink.ignored(if self.vrfs.is_some() { NOT_READ } else { OTHER_FAMILY });
        }
        kept
    }

    fn withdraw(&mut self, nlri: Nlri<'_>, from: PeerEncoding) -> Result<(), DecodeFault> {
        nlri.emit(from, Change::Withdraw, self.time, self.vrfs.as_deref_mut(), self.sink)
    }

    fn announce(
        &mut self,
        nlri: Nlri<'_>,
        from: PeerEncoding,
        attributes: &PathAttributes<'_>,
        is_mp: bool,
    ) -> Result<(), DecodeFault> {
        let bgp = attributes.finish(is_mp, self.options, self.scratch);
        let change = Change::Announce(Attributes::Bgp(&bgp));
        nlri.emit(from, change, self.time, self.vrfs.as_deref_mut(), self.sink)
    }
}

/// Decodes a message with its header.
pub(crate) fn decode(
    mut body: Cursor<'_>,
    from: PeerEncoding,
    out: &mut Out<'_>,
) -> Result<Message, DecodeFault> {
    body.bytes(16, "BGP marker")?;
    let len = body.u16("BGP message length")?;
    let kind = body.u8("BGP message type")?;
    let Some(len) = usize::from(len).checked_sub(HEADER) else {
        return Err(body.fault(format!("BGP message length {len} is less than its header")));
    };
    let body = body.part(len, "BGP message")?;
    match kind {
        1 => Ok(Message::Open),
        UPDATE => update(body, from, out),
        3 => Ok(Message::Notification),
        4 => Ok(Message::Keepalive),
        5 => Ok(Message::RouteRefresh),
        _ => Err(body.fault(format!("unknown BGP message type {kind}"))),
    }
}

/// Decodes an UPDATE's body. Routes with a malformed attribute, or without one that they must have, are withdrawn (RFC
/// 7606: the peer has replaced its earlier route). If a list of prefixes is malformed, the prefixes before that point
/// are used.
pub(crate) fn update(
    mut body: Cursor<'_>,
    from: PeerEncoding,
    out: &mut Out<'_>,
) -> Result<Message, DecodeFault> {
    let end = ended(body.rest());
    let len = body.u16("withdrawn routes' length")?;
    let withdrawn = body.part(len.into(), "withdrawn routes")?;
    let len = body.u16("attributes' length")?;
    let attributes = body.part(len.into(), "path attributes")?;
    let width = if from.four_byte_asns { AsWidth::Four } else { AsWidth::Two };
    let (at, mut attributes) = (attributes, PathAttributes::default());
    let context = match out.rules {
        Some(SessionRules { is_external, .. }) => AttributeContext::Session { is_external },
        None => AttributeContext::Message,
    };
    let mut fault = attributes.read_on(at, width, context);
    if out.rules.is_some() {
        fault = fault.or_else(|| attributes.unrecognized());
    }
    let announced = (!body.is_empty()).then_some(Nlri::plain(body));
    let (reach, unreach) = (out.kept(attributes.reach), out.kept(attributes.unreach));

    let mut result = fault.clone().map_or(Ok(()), Err);
    for nlri in [Some(Nlri::plain(withdrawn)), unreach].into_iter().flatten() {
        result = result.and(out.withdraw(nlri, from));
    }
    for (is_mp, list) in [(false, announced), (true, reach)] {
        let Some(nlri) = list else { continue };
        let may_lack = |what: &Missing| out.is_monitored && *what != Missing::Origin;
        let missing = attributes.missing(is_mp).filter(|what| !may_lack(what));
        let refused = out.rules.and_then(|rules| rules.judge(&attributes, is_mp));
        let wrong = match (missing, refused) {
            (Some(missing), _) => Some(at.fault(missing.text())),
            (None, Some(Refused::Malformed(what))) => Some(at.fault(what)),
            (None, Some(Refused::Loop(_)) | None) => None,
        };
        result = match (fault.clone().or(wrong), refused) {
            (Some(fault), _) => result.and(out.withdraw(nlri, from)).and(Err(fault)),
            // The earlier route of the prefix is replaced by one that is not used.
            (None, Some(Refused::Loop(why))) => {
                out.sink.ignored(why);
                result.and(out.withdraw(nlri, from))
            }
            (None, _) => {
                if out.rules.is_none() {
                    attributes.facts(is_mp).note(out.receiver, out.sink);
                }
                result.and(out.announce(nlri, from, &attributes, is_mp))
            }
        };
    }
    result?;
    Ok(end.map_or(Message::Update, |AfiSafi { afi, safi }| Message::EndOfRib { afi, safi }))
}

/// The family whose end an UPDATE with this body marks (RFC 4724, 2): it has nothing at all, or an
/// MP_UNREACH_NLRI without routes alone.
fn ended(body: &[u8]) -> Option<AfiSafi> {
    const MP_UNREACH_NLRI: u8 = 15;
    match *body {
        [0, 0, 0, 0] => Some(AfiSafi::IPV4),
        [0, 0, 0, 6, _, MP_UNREACH_NLRI, 3, high, low, safi]
        | [0, 0, 0, 7, _, MP_UNREACH_NLRI, 0, 3, high, low, safi] => {
            Some(AfiSafi { afi: u16::from_be_bytes([high, low]), safi })
        }
        _ => None,
    }
}

/// As [`ended`], of a message with its header.
pub(crate) fn ended_family(message: &[u8]) -> Option<AfiSafi> {
    match message.get(HEADER - 1..)? {
        [UPDATE, body @ ..] => ended(body),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
