//! TABLE_DUMP_V2: a table of peers, then a record for every prefix with a route of each peer
//! (RFC 6396, 4.3; RFC 8050 for the ADD-PATH forms).
//!
//! ```text
//! sequence 4 | [AFI 2 | SAFI 1 if generic] | prefix | count 2 | { peer 2 | time 4 | [path 4] | attributes' length 2 | attributes }
//! ```

use fibula_core::{AnyPrefix, Attributes, Change, Update};

use super::peers::Peers;
use crate::bgp::{
    Afi, AsWidth, AttributeContext, Cursor, DecodeFault, OTHER_FAMILY, Out, PathAttributes,
};

const PEER_INDEX_TABLE: u16 = 1;

/// The content of a subtype.
enum Rib {
    Unicast(Afi),
    Generic,
}

/// The routes of a subtype and whether they have path identifiers; `None` for routes that are not kept.
fn rib(subtype: u16) -> Option<(Rib, bool)> {
    match subtype {
        2 => Some((Rib::Unicast(Afi::V4), false)),
        4 => Some((Rib::Unicast(Afi::V6), false)),
        6 => Some((Rib::Generic, false)),
        8 => Some((Rib::Unicast(Afi::V4), true)),
        10 => Some((Rib::Unicast(Afi::V6), true)),
        12 => Some((Rib::Generic, true)),
        _ => None,
    }
}

pub(super) fn decode(
    mut body: Cursor<'_>,
    subtype: u16,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    if subtype == PEER_INDEX_TABLE {
        return peers.read_table(body, out.sink);
    }
    let Some((rib, add_path)) = rib(subtype) else {
        out.sink.ignored(match subtype {
            3 | 5 | 9 | 11 => "multicast table records",
            7 => "GEO_PEER_TABLE",
            _ => "TABLE_DUMP_V2 of an unknown subtype",
        });
        return Ok(());
    };
    body.u32("sequence number")?;
    let afi = match rib {
        Rib::Unicast(afi) => afi,
        Rib::Generic => {
            let (afi, safi) = (body.u16("address family")?, body.u8("subsequent address family")?);
            match (Afi::from_code(afi), safi) {
                (Some(afi), 1) => afi,
                _ => {
                    out.sink.ignored(OTHER_FAMILY);
                    return Ok(());
                }
            }
        }
    };
    let prefix = body.prefix(afi)?;
    entries(body, prefix, add_path, peers, out)
}

/// Decodes the routes of a prefix. A malformed one is skipped by its length and reported after the
/// others.
fn entries(
    mut body: Cursor<'_>,
    prefix: AnyPrefix,
    add_path: bool,
    peers: &mut Peers,
    out: &mut Out<'_>,
) -> Result<(), DecodeFault> {
    let count = body.u16("entry count")?;
    let mut result = Ok(());
    for _ in 0..count {
        let start = body;
        let index = body.u16("peer index")?;
        body.u32("originated time")?;
        let path_id = if add_path { body.u32("path identifier")? } else { 0 };
        let len = body.u16("attributes' length")?;
        let attributes = body.part(len.into(), "path attributes")?;
        let Some(peer) = peers.indexed(index, out.sink) else {
            result = Err(start.fault(format!("peer {index} is not in the table of peers")));
            continue;
        };
        match PathAttributes::read(attributes, AsWidth::Four, AttributeContext::Table) {
            Err(fault) => result = Err(fault),
            Ok(attributes) => {
                let is_mp = matches!(prefix, AnyPrefix::V6(_));
                attributes.facts(is_mp).note(None, out.sink);
                let bgp = attributes.finish(is_mp, out.options, out.scratch);
                let change = Change::Announce(Attributes::Bgp(&bgp));
                let update = Update::new(prefix, change);
                out.sink.update(&Update { peer, path_id, time: out.time, ..update });
            }
        }
    }
    result
}
