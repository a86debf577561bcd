//! BGP messages as routers and collectors wrap them in MRT: UPDATE of RFC 4271 and RFC 4760.

use fibula_core::{AnyPrefix, Attributes, Change, Update};

use super::attributes::{MpRoutes, PathAttributes, Place, Scratch};
use super::cursor::{Afi, AsWidth, Cursor, Fault};
use super::{MrtOptions, OTHER_FAMILY};
use crate::Sink;

/// What decoders of record bodies write to.
pub(super) struct Out<'o> {
    pub(super) sink: &'o mut dyn Sink,
    pub(super) scratch: &'o mut Scratch,
    pub(super) options: MrtOptions,
    /// Microseconds since 1970.
    pub(super) time: u64,
}

/// Who sent a message, and how it is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker {
    pub(super) peer: u32,
    pub(super) width: AsWidth,
    pub(super) add_path: bool,
}

const UPDATE: u8 = 2;

/// Decodes a message with its header; only an UPDATE has anything to say.
pub(super) fn message(mut body: Cursor<'_>, from: Speaker, out: &mut Out<'_>) -> Result<(), Fault> {
    const HEADER: u16 = 19;
    body.bytes(16, "BGP marker")?;
    let len = body.u16("BGP message length")?;
    let kind = body.u8("BGP message type")?;
    let Some(len) = len.checked_sub(HEADER) else {
        return Err(body.fault(format!("BGP message length {len} is less than its header")));
    };
    let body = body.part(len.into(), "BGP message")?;
    match kind {
        UPDATE => update(body, from, out),
        1 | 3..=5 => Ok(()),
        _ => Err(body.fault(format!("unknown BGP message type {kind}"))),
    }
}

/// Decodes an UPDATE's body. It is applied as a whole or, if anything in it is malformed, not at all.
pub(super) fn update(mut body: Cursor<'_>, from: Speaker, out: &mut Out<'_>) -> Result<(), Fault> {
    let len = body.u16("withdrawn routes' length")?;
    let withdrawn = body.part(len.into(), "withdrawn routes")?;
    let len = body.u16("attributes' length")?;
    let attributes = body.part(len.into(), "path attributes")?;
    let attributes = PathAttributes::read(attributes, from.width, Place::Message)?;
    let announced = body;

    let (reach, unreach) = (kept(attributes.reach, out), kept(attributes.unreach, out));
    let lists = [Some((Afi::V4, withdrawn)), unreach, Some((Afi::V4, announced)), reach];
    for (afi, nlri) in lists.into_iter().flatten() {
        prefixes(nlri, afi, from.add_path, |_, _| {})?;
    }

    for (afi, nlri) in [Some((Afi::V4, withdrawn)), unreach].into_iter().flatten() {
        emit(nlri, afi, from, Change::Withdraw, out)?;
    }
    let announced = (!announced.is_empty()).then_some((Afi::V4, announced));
    for (is_mp, list) in [(false, announced), (true, reach)] {
        if let Some((afi, nlri)) = list {
            // The text of the path and so on is made once for all prefixes of the message.
            let Out { sink, scratch, options, time } = out;
            let bgp = attributes.finish(is_mp, *options, scratch);
            let change = Change::Announce(Attributes::Bgp(&bgp));
            let peer = from.peer;
            prefixes(nlri, afi, from.add_path, |path_id, prefix| {
                sink.update(&Update { prefix, peer, path_id, time: *time, change });
            })?;
        }
    }
    Ok(())
}

/// The routes of an MP attribute if they are unicast.
fn kept<'a>(routes: Option<MpRoutes<'a>>, out: &mut Out<'_>) -> Option<(Afi, Cursor<'a>)> {
    let routes = routes?;
    match (Afi::from_code(routes.afi), routes.safi) {
        (Some(afi), 1) => Some((afi, routes.nlri)),
        _ => {
            out.sink.ignored(OTHER_FAMILY);
            None
        }
    }
}

fn emit(
    nlri: Cursor<'_>,
    afi: Afi,
    from: Speaker,
    change: Change<'_>,
    out: &mut Out<'_>,
) -> Result<(), Fault> {
    let (peer, time) = (from.peer, out.time);
    prefixes(nlri, afi, from.add_path, |path_id, prefix| {
        out.sink.update(&Update { prefix, peer, path_id, time, change });
    })
}

/// Calls `visit` with the path identifier and the prefix of each route in `nlri`.
fn prefixes(
    mut nlri: Cursor<'_>,
    afi: Afi,
    add_path: bool,
    mut visit: impl FnMut(u32, AnyPrefix),
) -> Result<(), Fault> {
    while !nlri.is_empty() {
        let path_id = if add_path { nlri.u32("path identifier")? } else { 0 };
        visit(path_id, nlri.prefix(afi)?);
    }
    Ok(())
}
