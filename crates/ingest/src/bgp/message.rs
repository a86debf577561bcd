//! Messages: their frames, and the UPDATE of RFC 4271 and RFC 4760.

use fibula_core::{Attributes, Change, Update};

use super::BgpOptions;
use super::attributes::{MpRoutes, PathAttributes, Place, Scratch};
use super::cursor::{Afi, AsWidth, Cursor, Fault};
use crate::Sink;

/// Why routes of another family are ignored.
pub(crate) const OTHER_FAMILY: &str = "routes of other address families than IPv4 and IPv6 unicast";

/// Bytes of the marker, all ones.
pub(super) const MARKER: usize = 16;
/// Bytes of a message's header: marker, length, type.
pub(super) const HEADER: usize = 19;
/// Bytes of the longest message, without RFC 8654.
pub(super) const LONGEST: usize = 4096;
const UPDATE: u8 = 2;

/// Who sent a message, and how it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// The number that updates name the peer by.
    pub peer: u32,
    /// AS numbers have four bytes: both ends announced it (RFC 6793).
    pub four_byte_asns: bool,
    /// Path identifiers of IPv4 routes.
    pub add_path_v4: AddPath,
    /// Path identifiers of IPv6 routes.
    pub add_path_v6: AddPath,
}

impl Default for Speaker {
    /// Peer 0 with AS numbers of four bytes and without path identifiers.
    fn default() -> Self {
        let add_path = AddPath::Absent;
        Self { peer: 0, four_byte_asns: true, add_path_v4: add_path, add_path_v6: add_path }
    }
}

impl Speaker {
    pub(super) fn add_path(&self, afi: Afi) -> AddPath {
        match afi {
            Afi::V4 => self.add_path_v4,
            Afi::V6 => self.add_path_v6,
        }
    }
}

/// Whether prefixes have path identifiers before them (RFC 7911).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddPath {
    /// They have none.
    #[default]
    Absent,
    /// They have.
    Present,
    /// Nobody knows: a list that only makes sense with identifiers has them. Before RFC 8050 dumps did
    /// not say it; a session's capabilities do.
    Unknown,
}

/// What a message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// OPEN; [`Open::decode`](super::Open::decode) has what it says.
    Open,
    /// UPDATE; the sink has what it says.
    Update,
    /// An UPDATE that says that the peer has sent all its routes of a family (RFC 4724).
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

/// The length of the message at the front of a stream; `None` if it is not all there yet.
///
/// # Errors
/// If no message begins here: the stream is of no further use (RFC 4271, 6.1).
pub fn framed(input: &[u8]) -> Result<Option<usize>, Fault> {
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

/// Decodes messages, of any number of peers.
#[derive(Debug, Default)]
pub struct Messages {
    options: BgpOptions,
    scratch: Scratch,
}

impl Messages {
    /// A decoder.
    pub fn new(options: BgpOptions) -> Self {
        Self { options, scratch: Scratch::default() }
    }

    /// Gives the sink what a message says, of which `message` has all bytes. `time` is when it came, in
    /// microseconds since 1970.
    ///
    /// # Errors
    /// If the message is malformed. Its routes are then withdrawn, as RFC 7606 has it; of a list of
    /// prefixes that turns malformed, those before that point reach the sink.
    pub fn decode(
        &mut self,
        message: &[u8],
        from: Speaker,
        time: u64,
        sink: &mut dyn Sink,
    ) -> Result<Message, Fault> {
        let mut out = Out { sink, scratch: &mut self.scratch, options: self.options, time };
        decode(Cursor::new(message), from, &mut out)
    }
}

/// What decoders of BGP data write to.
pub(crate) struct Out<'o> {
    pub(crate) sink: &'o mut dyn Sink,
    pub(crate) scratch: &'o mut Scratch,
    pub(crate) options: BgpOptions,
    /// Microseconds since 1970.
    pub(crate) time: u64,
}

/// Decodes a message with its header.
pub(crate) fn decode(
    mut body: Cursor<'_>,
    from: Speaker,
    out: &mut Out<'_>,
) -> Result<Message, Fault> {
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

/// Decodes an UPDATE's body. Routes with a malformed attribute, or without one that they must have, are
/// withdrawn (RFC 7606: the peer has replaced what it said before); of a list of prefixes that turns
/// malformed, those before that point count.
pub(crate) fn update(
    mut body: Cursor<'_>,
    from: Speaker,
    out: &mut Out<'_>,
) -> Result<Message, Fault> {
    let is_empty = body.rest() == [0; 4];
    let len = body.u16("withdrawn routes' length")?;
    let withdrawn = body.part(len.into(), "withdrawn routes")?;
    let len = body.u16("attributes' length")?;
    let attributes = body.part(len.into(), "path attributes")?;
    let width = if from.four_byte_asns { AsWidth::Four } else { AsWidth::Two };
    let end = match is_empty {
        true => Some((1, 1)),
        false => end_of_rib(attributes, withdrawn.is_empty() && body.is_empty()),
    };
    let at = attributes;
    let (attributes, fault) = PathAttributes::read_on(attributes, width, Place::Message);
    let announced = (!body.is_empty()).then_some((Afi::V4, body));
    let (reach, unreach) = (kept(attributes.reach, out), kept(attributes.unreach, out));

    let mut result = fault.clone().map_or(Ok(()), Err);
    for (afi, nlri) in [Some((Afi::V4, withdrawn)), unreach].into_iter().flatten() {
        result = result.and(emit(nlri, afi, from, Change::Withdraw, out.time, out.sink));
    }
    for (is_mp, list) in [(false, announced), (true, reach)] {
        let Some((afi, nlri)) = list else { continue };
        let missing = attributes.missing(is_mp).map(|what| at.fault(what));
        if let Some(fault) = fault.clone().or(missing) {
            result = result.and(emit(nlri, afi, from, Change::Withdraw, out.time, out.sink));
            result = result.and(Err(fault));
            continue;
        }
        let bgp = attributes.finish(is_mp, out.options, out.scratch);
        let change = Change::Announce(Attributes::Bgp(&bgp));
        result = result.and(emit(nlri, afi, from, change, out.time, out.sink));
    }
    result?;
    Ok(end.map_or(Message::Update, |(afi, safi)| Message::EndOfRib { afi, safi }))
}

/// The family whose end an UPDATE marks: it has an MP_UNREACH_NLRI without routes, and nothing else.
fn end_of_rib(attributes: Cursor<'_>, is_alone: bool) -> Option<(u16, u8)> {
    const MP_UNREACH_NLRI: u8 = 15;
    match *attributes.rest() {
        [_, MP_UNREACH_NLRI, 3, high, low, safi] | [_, MP_UNREACH_NLRI, 0, 3, high, low, safi]
            if is_alone =>
        {
            Some((u16::from_be_bytes([high, low]), safi))
        }
        _ => None,
    }
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
    let add_path = match from.add_path(afi) {
        AddPath::Absent => false,
        AddPath::Present => true,
        AddPath::Unknown => is_undeclared_add_path(nlri, afi),
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collected;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let len = (HEADER + body.len()) as u16;
        [&[0xff; 16][..], &len.to_be_bytes(), &[kind], body].concat()
    }

    fn decode(message: &[u8], from: Speaker) -> (Result<Message, Fault>, Vec<String>) {
        let mut sink = Collected::default();
        let result = Messages::default().decode(message, from, 7, &mut sink);
        (result, sink.lines)
    }

    #[test]
    fn frames() {
        let two = [message(4, &[]), message(2, &[0; 4])].concat();
        for len in 0..HEADER {
            assert_eq!(framed(&two[..len]), Ok(None), "{len}");
        }
        assert_eq!(framed(&two), Ok(Some(HEADER)));
        assert_eq!(framed(&two[HEADER..HEADER + 22]), Ok(None));
        assert_eq!(framed(&two[HEADER..]), Ok(Some(23)));
        assert!(framed(b"\xff\xffGET / HTTP/1.1").is_err());
        assert!(framed(&[&[0xff; 16][..], &[0, 18, 4]].concat()).is_err());
    }

    #[test]
    fn ends_of_ribs() {
        let ends = |body: &[u8]| decode(&message(2, body), Speaker::default());
        let end = |afi, safi| (Ok(Message::EndOfRib { afi, safi }), Vec::new());
        assert_eq!(ends(&[0; 4]), end(1, 1));
        assert_eq!(ends(&[0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1]), end(2, 1));
        assert_eq!(ends(&[0, 0, 0, 7, 0x90, 15, 0, 3, 0, 1, 4]), end(1, 4));
        // Routes are withdrawn: no end.
        let withdrawal = [0, 0, 0, 7, 0x80, 15, 4, 0, 2, 1, 0];
        assert_eq!(ends(&withdrawal), (Ok(Message::Update), vec!["- 0 ::/0".to_owned()]));
        let both = [0, 1, 0, 0, 6, 0x80, 15, 3, 0, 2, 1];
        assert_eq!(ends(&both), (Ok(Message::Update), vec!["- 0 0.0.0.0/0".to_owned()]));
    }

    #[test]
    fn path_identifiers_are_guessed_only_where_nobody_knows() {
        // Withdrawn: identifier 1, 10.0.0.0/8; or three default routes and half a prefix.
        let body = [0, 6, 0, 0, 0, 1, 8, 10, 0, 0];
        let of =
            |add_path_v4| decode(&message(2, &body), Speaker { add_path_v4, ..Speaker::default() });
        let identified = (Ok(Message::Update), vec!["- 0 10.0.0.0/8#1".to_owned()]);
        assert_eq!(of(AddPath::Present), identified);
        assert_eq!(of(AddPath::Unknown), identified);
        let (result, lines) = of(AddPath::Absent);
        assert!(result.is_err());
        assert_eq!(lines[..3], ["- 0 0.0.0.0/0"; 3]);
    }

    /// RFC 7606: routes with a malformed attribute, or without one that they must have, are withdrawn.
    #[test]
    fn malformed_and_missing_attributes_withdraw() {
        let origin: &[u8] = &[0x40, 1, 1, 0];
        let path: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4];
        let next_hop: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
        let update = |attributes: &[&[u8]]| {
            let attributes = attributes.concat();
            let body = [&[0, 0, 0, attributes.len() as u8], &attributes[..], &[8, 10]].concat();
            let (result, lines) = decode(&message(2, &body), Speaker::default());
            (result.err().map(|fault| fault.what.to_string()), lines)
        };
        let route = "+ 0 10.0.0.0/8 192.0.2.1 64500".to_owned();
        assert_eq!(update(&[origin, path, next_hop]), (None, vec![route]));
        for (attributes, what) in [
            (vec![path, next_hop], "ORIGIN is missing"),
            (vec![origin, next_hop], "AS_PATH is missing"),
            (vec![origin, path], "the next hop is missing"),
            (vec![&[0x40, 2, 2, 7, 0], origin, next_hop], "AS path segment of unknown kind 7"),
            (vec![&[0x40, 1, 0], path, next_hop], "ORIGIN needs 1 bytes, 0 are left"),
            (vec![origin, path, &[0x40, 3, 2, 192, 0]], "NEXT_HOP needs 4 bytes, 2 are left"),
            (vec![origin, path, next_hop, &[0x80, 4, 9, 0]], "MULTI_EXIT_DISC needs 9 bytes"),
        ] {
            let (fault, lines) = update(&attributes);
            assert!(fault.as_ref().is_some_and(|f| f.starts_with(what)), "{fault:?}: {what}");
            assert_eq!(lines, ["- 0 10.0.0.0/8"], "{what}");
        }
    }

    #[test]
    fn kinds() {
        let kind = |kind| decode(&message(kind, &[]), Speaker::default()).0.ok();
        let kinds = [1, 3, 4, 5, 9].map(kind);
        let wanted = [Message::Open, Message::Notification, Message::Keepalive];
        assert_eq!(kinds[..3], wanted.map(Some));
        assert_eq!(kinds[3..], [Some(Message::RouteRefresh), None]);
    }
}
