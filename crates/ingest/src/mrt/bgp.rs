//! BGP messages as routers and collectors wrap them in MRT: UPDATE of RFC 4271 and RFC 4760.

use fibula_core::{Attributes, Change, Update};

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

/// Decodes an UPDATE's body. With malformed attributes none of it is applied; of a list of prefixes
/// that turns malformed, those before that point are.
pub(super) fn update(mut body: Cursor<'_>, from: Speaker, out: &mut Out<'_>) -> Result<(), Fault> {
    let len = body.u16("withdrawn routes' length")?;
    let withdrawn = body.part(len.into(), "withdrawn routes")?;
    let len = body.u16("attributes' length")?;
    let attributes = body.part(len.into(), "path attributes")?;
    let attributes = PathAttributes::read(attributes, from.width, Place::Message)?;
    let announced = (!body.is_empty()).then_some((Afi::V4, body));
    let (reach, unreach) = (kept(attributes.reach, out), kept(attributes.unreach, out));

    let mut result = Ok(());
    for (afi, nlri) in [Some((Afi::V4, withdrawn)), unreach].into_iter().flatten() {
        result = result.and(emit(nlri, afi, from, Change::Withdraw, out.time, out.sink));
    }
    for (is_mp, list) in [(false, announced), (true, reach)] {
        if let Some((afi, nlri)) = list {
            let bgp = attributes.finish(is_mp, out.options, out.scratch);
            let change = Change::Announce(Attributes::Bgp(&bgp));
            result = result.and(emit(nlri, afi, from, change, out.time, out.sink));
        }
    }
    result
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

/// Gives the sink an update for each prefix in `nlri`.
fn emit(
    mut nlri: Cursor<'_>,
    afi: Afi,
    from: Speaker,
    change: Change<'_>,
    time: u64,
    sink: &mut dyn Sink,
) -> Result<(), Fault> {
    let add_path = from.add_path || is_undeclared_add_path(nlri, afi);
    while !nlri.is_empty() {
        let path_id = if add_path { nlri.u32("path identifier")? } else { 0 };
        let prefix = nlri.prefix(afi)?;
        sink.update(&Update { peer: from.peer, path_id, time, ..Update::new(prefix, change) });
    }
    Ok(())
}

/// Whether a list has path identifiers although its record is not of an ADD-PATH subtype: before RFC
/// 8050 gave those, BIRD and others wrote such lists into ordinary records. Read without identifiers,
/// the zeros of a small identifier are default routes, several in a row, or the list does not come
/// out even; read with them, all of it makes sense.
fn is_undeclared_add_path(nlri: Cursor<'_>, afi: Afi) -> bool {
    let (mut plain, mut defaults) = (nlri.rest(), 0);
    let is_odd = loop {
        let [len, rest @ ..] = plain else { break false };
        defaults += u32::from(*len == 0);
        match rest.get(usize::from(len.div_ceil(8))..) {
            Some(rest) if usize::from(*len) <= 8 * afi.bytes() => plain = rest,
            _ => break true,
        }
    };
    let makes_sense = || {
        let mut nlri = nlri;
        while !nlri.is_empty() {
            if nlri.u32("path identifier").is_err() || nlri.prefix(afi).is_err() {
                return false;
            }
        }
        true
    };
    (is_odd || defaults > 1) && makes_sense()
}
