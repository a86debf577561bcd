//! BGP4MP: messages and session changes (RFC 6396, 4.4), and the BGP records of 1999 before it.
//!
//! ```text
//! peer AS 2/4 | local AS 2/4 | interface 2 | AFI 2 | peer 4/16 | local 4/16 | message or old state 2, new state 2
//! ```

use std::net::IpAddr;

use fibula_core::{Attributes, Change, Update};

use super::peers::Peers;
use crate::PeerState;
use crate::bgp::{
    self, AddPath, Afi, AsWidth, AttributeContext, Cursor, DecodeFault, OTHER_FAMILY, Out,
    PathAttributes, PeerEncoding,
};

/// The content of a subtype.
#[derive(Clone, Copy)]
enum Content {
    State,
    Message,
    Entry,
}

pub(super) fn decode(
    mut body: Cursor<'_>,
    subtype: u16,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    let (content, width, add_path) = match subtype {
        0 => (Content::State, AsWidth::Two, AddPath::Absent),
        1 => (Content::Message, AsWidth::Two, AddPath::Unknown),
        2 => (Content::Entry, AsWidth::Two, AddPath::Absent),
        4 => (Content::Message, AsWidth::Four, AddPath::Unknown),
        5 => (Content::State, AsWidth::Four, AddPath::Absent),
        8 => (Content::Message, AsWidth::Two, AddPath::Present),
        9 => (Content::Message, AsWidth::Four, AddPath::Present),
        _ => {
            out.sink.ignored(match subtype {
                // Messages of the collector are no routes of a peer.
                6 | 7 | 10 | 11 => "messages sent by the collector",
                3 => "BGP4MP_SNAPSHOT",
                _ => "BGP4MP of an unknown subtype",
            });
            return Ok(());
        }
    };
    let start = body;
    let ends = envelope(&mut body, width, out)?;
    let peer = peers.speaker(ends, &start, out.sink)?;
    match content {
        Content::State => state(body, peer, out),
        Content::Message => bgp::decode(body, speaker(peer, width, add_path), out).map(drop),
        Content::Entry => entry(body, peer, out),
    }
}

fn speaker(peer: u32, width: AsWidth, add_path: AddPath) -> PeerEncoding {
    let four_byte_asns = width == AsWidth::Four;
    PeerEncoding { four_byte_asns, ..PeerEncoding::unknown(peer, add_path) }
}

/// Reads the ends of the session: the receiver's address, and as result the peer's address and AS.
fn envelope(
    body: &mut Cursor<'_>,
    width: AsWidth,
    out: &mut Out<'_>,
) -> Result<(IpAddr, u32), DecodeFault> {
    let asn = body.asn(width, "peer's AS number")?;
    body.asn(width, "local AS number")?;
    body.u16("interface index")?;
    let start = *body;
    let code = body.u16("address family")?;
    let Some(afi) = Afi::from_code(code) else {
        return Err(start.fault(format!("peers of unknown address family {code}")));
    };
    let address = body.address(afi, "peer's address")?;
    out.receiver = Some(body.address(afi, "local address")?);
    Ok((address, asn))
}

fn state(mut body: Cursor<'_>, peer: u32, out: &mut Out<'_>) -> Result<(), DecodeFault> {
    let (old, new) = (body.u16("old state")?, body.u16("new state")?);
    out.sink.peer_state(&PeerState { peer, time: out.time, old, new });
    Ok(())
}

/// BGP4MP_ENTRY, a route of a table, from a draft of RFC 6396 that OpenBGPD implements:
/// `view 2 | status 2 | time 4 | AFI 2 | SAFI 1 | next hop's length 1 | next hop | prefix | length 2 | attributes`.
fn entry(mut body: Cursor<'_>, peer: u32, out: &mut Out<'_>) -> Result<(), DecodeFault> {
    body.bytes(8, "view, status and time")?;
    let (code, safi) = (body.u16("address family")?, body.u8("subsequent address family")?);
    let (Some(afi), 1) = (Afi::from_code(code), safi) else {
        out.sink.ignored(OTHER_FAMILY);
        return Ok(());
    };
    let len = body.u8("next hop's length")?;
    let next_hop = body.part(len.into(), "next hop")?;
    let prefix = body.prefix(afi)?;
    let len = body.u16("attributes' length")?;
    let attributes = body.part(len.into(), "path attributes")?;
    let mut attributes = PathAttributes::read(attributes, AsWidth::Two, AttributeContext::Table)?;
    attributes.set_next_hop(next_hop);

    attributes.facts(true).note(out.receiver, out.sink);
    let bgp = attributes.finish(true, out.options, out.scratch);
    let change = Change::Announce(Attributes::Bgp(&bgp));
    out.sink.update(&Update { peer, time: out.time, ..Update::new(prefix, change) });
    Ok(())
}

/// MRT type 5, "BGP", of the collectors of 1999 (RFC 6396, B.2): IPv4 only, UPDATE without its header.
pub(super) fn decode_legacy(
    mut body: Cursor<'_>,
    subtype: u16,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    const UPDATE: u16 = 1;
    const STATE_CHANGE: u16 = 3;
    // OPEN, NOTIFY, KEEPALIVE, and the markers NULL, PREF_UPDATE, SYNC.
    if !matches!(subtype, UPDATE | STATE_CHANGE) {
        if subtype > 7 {
            out.sink.ignored("BGP records of an unknown subtype");
        }
        return Ok(());
    }
    let start = body;
    let asn = body.asn(AsWidth::Two, "peer's AS number")?;
    let address = body.address(Afi::V4, "peer's address")?;
    let peer = peers.speaker((address, asn), &start, out.sink)?;
    if subtype == STATE_CHANGE {
        return state(body, peer, out);
    }
    body.asn(AsWidth::Two, "local AS number")?;
    out.receiver = Some(body.address(Afi::V4, "local address")?);
    bgp::update(body, speaker(peer, AsWidth::Two, AddPath::Unknown), out).map(drop)
}
