//! TABLE_DUMP: one route a record (RFC 6396, 4.2), or several in the dumps of 1999 and 2000.
//!
//! ```text
//! view 2 | sequence 2 | { prefix 4/16 | length 1 | status 1 | time 4 | peer 4/16 | AS 2 | attributes' length 2 | attributes }
//! ```

use fibula_core::{AnyPrefix, Attributes, Change, Update};

use super::peers::Peers;
use crate::bgp::{Afi, AsWidth, AttributeContext, Cursor, DecodeFault, Out, PathAttributes};

/// View and sequence, before the entries.
const HEAD: usize = 4;

/// Subtypes 3 and 4 are IPv4 and IPv6 with AS numbers of four bytes.
fn layout(subtype: u16) -> Option<(Afi, AsWidth)> {
    match subtype {
        1 => Some((Afi::V4, AsWidth::Two)),
        2 => Some((Afi::V6, AsWidth::Two)),
        3 => Some((Afi::V4, AsWidth::Four)),
        4 => Some((Afi::V6, AsWidth::Four)),
        _ => None,
    }
}

/// Where the last entry that begins before `len` ends, as its attributes' length says; `len` itself if
/// an entry cannot be followed.
pub(super) fn entries_end(body: &[u8], subtype: u16, len: usize) -> usize {
    let Some((afi, width)) = layout(subtype) else { return len };
    let fixed = 2 * afi.bytes() + 6 + width.bytes();
    let mut at = HEAD;
    while at < len {
        let Some(&[a, b]) = body.get(at + fixed..at + fixed + 2) else { return len };
        at += fixed + 2 + usize::from(u16::from_be_bytes([a, b]));
    }
    at
}

pub(super) fn decode(
    mut body: Cursor<'_>,
    subtype: u16,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    let Some((afi, width)) = layout(subtype) else {
        out.sink.ignored("TABLE_DUMP of an unknown subtype");
        return Ok(());
    };
    body.bytes(HEAD, "view and sequence")?;
    loop {
        entry(&mut body, afi, width, peers, out)?;
        if body.is_empty() {
            return Ok(());
        }
    }
}

fn entry(
    body: &mut Cursor<'_>,
    afi: Afi,
    width: AsWidth,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    let start = *body;
    let addr = body.address(afi, "prefix")?;
    let len = body.u8("prefix length")?;
    body.bytes(5, "status and time")?;
    let peer = body.address(afi, "peer's address")?;
    let asn = body.asn(width, "peer's AS number")?;
    let attributes_len = body.u16("attributes' length")?;
    let attributes = body.part(attributes_len.into(), "path attributes")?;
    let prefix = AnyPrefix::masked(addr, len).map_err(|error| start.fault(error.to_string()))?;
    let attributes = PathAttributes::read(attributes, width, AttributeContext::Table)?;

    let peer = peers.speaker((peer, asn), &start, out.sink)?;
    let is_mp = afi == Afi::V6;
    attributes.facts(is_mp).note(None, out.sink);
    let bgp = attributes.finish(is_mp, out.options, out.scratch);
    let change = Change::Announce(Attributes::Bgp(&bgp));
    out.sink.update(&Update { peer, time: out.time, ..Update::new(prefix, change) });
    Ok(())
}
