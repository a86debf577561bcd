//! BMP: the reports of routers to monitoring stations about routes from their BGP peers (RFC 7854), routes to their
//! peers (RFC 8671) and their own table (RFC 9069).
//!
//! | message | becomes |
//! |---|---|
//! | Route Monitoring | announcements and withdrawals; the end of a table |
//! | Peer Up | how the peer's messages are encoded; a [`PeerState`](crate::PeerState) |
//! | Peer Down | a `PeerState`: the routes of all the peer's tables are gone |
//! | Initiation, Termination, Statistics Report | a [remark](crate::Sink::remark) each |
//! | Route Mirroring, other types | ignored |
//!
//! # Peers and tables
//! A router reports up to five tables: for each peer, the received routes before and after the policy (`pre-policy`,
//! `post-policy`) and the sent routes (`out-pre-policy`, `out-post-policy`); and the router's own choice (`loc-rib`).
//! Each table is a routing instance, named by [`Sink::vrf`]. The route distinguisher of the peer, or of the route in
//! a VPN, follows after a slash: `post-policy/65000:1`. A peer has one number for each of its tables, and
//! [`PeerInfo::view`](crate::PeerInfo::view) is the table's name.
//!
//! # When a peer has sent all its routes
//! An End-of-RIB marker concerns one family, but [`Sink::end_of_rib`] concerns the peer: routes of an earlier
//! connection that were not sent again are then removed in every family. So the decoder waits for the markers of all
//! supported families on which the OPENs of Peer Up agreed. A router that monitors only some of these families never
//! sends the other markers, and the decoder cannot know this. The receiver must therefore also treat a period of
//! silence as the end. The same holds for peers without Peer Up, and for FRR's own table, which names no families.
//! Several Peer Ups of one session (Huawei sends one for each view and family) add up.
//! # Behaviour of routers
//! - Routes of a peer without Peer Up, or after Peer Down, are accepted. Whether they have path identifiers is
//!   detected from their form. This is noted once for each table.
//! - Peer Down may be repeated; repetitions are ignored.
//! - FRR sends IPv4 routes with an IPv6 next hop without a next hop, GoBGP its own routes without an AS path. They are
//!   accepted so, and this is noted, as is all else that the rules of
//!   [`SessionRules`](crate::bgp::SessionRules) find doubtful.
//! - Version 4 (a draft, with entries around each BGP message) is read like pmacct and NetGauze do, including its
//!   entry about path identifiers.
//!
//! # Damage
//! A message that cannot be decoded is reported with its peer and its position in the stream, and skipped by its
//! length. If the header itself is invalid, the next message cannot be found, and the stream ends with
//! [`StopReason::Misfit`]. A router that connects again sends everything again.
//!
//! ```
//! use fibula_ingest::{Collected, Decoder, Tail, bgp::BgpOptions, bmp::BmpDecoder};
//!
//! let initiation = [&[3, 0, 0, 0, 13, 4][..], &[0, 2, 0, 3], b"dut"].concat();
//! // 192.0.2.1 in AS 64500 has announced 198.51.100.0/24, and the policy let it in.
//! let monitoring = [
//!     &[3, 0, 0, 0, 95, 0][..],                         // version, length, Route Monitoring
//!     &[0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0],               // a global peer, post-policy
//!     &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1],
//!     &[0, 0, 0xfb, 0xf4, 192, 0, 2, 1, 0x6a, 0, 0, 0, 0, 0, 0, 7], // AS, identifier, time
//!     &[0xff; 16],
//!     &[0, 47, 2, 0, 0, 0, 20],                         // BGP: length, UPDATE
//!     &[0x40, 1, 1, 0],                                 // ORIGIN
//!     &[0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4],            // AS_PATH
//!     &[0x40, 3, 4, 192, 0, 2, 1],                      // NEXT_HOP
//!     &[24, 198, 51, 100],
//! ]
//! .concat();
//! let mut sink = Collected::default();
//! let stream = [initiation, monitoring].concat();
//! BmpDecoder::new(BgpOptions::default()).decode(&stream, Tail::End, &mut sink)?;
//! assert_eq!(sink.remarks, ["system name: dut"]);
//! assert_eq!(sink.peers[0].view, "post-policy");
//! assert_eq!(sink.vrfs, ["1 = post-policy"]);
//! assert_eq!(sink.lines, ["+ 0 198.51.100.0/24 192.0.2.1 64500 of 1"]);
//! assert_eq!(sink.noted, ["routes of a peer that never came up, read as their headers say"]);
//! # Ok::<(), fibula_ingest::StopReason>(())
//! ```

mod header;
mod sessions;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use header::looks_like_bmp;

use std::sync::Arc;

use fibula_core::AnyPrefix;

use header::{Frame, HEADER, Header, PerPeer, Unknown, View, kind};
use sessions::{Sessions, TooMany};

use crate::bgp::{
    self, AddPath, BgpOptions, Capability, Cursor, DecodeFault, Open, Out, Scratch, Vrfs,
};
use crate::position::each_record;
use crate::{Damage, Decoder, Sink, SourceInfo, StopReason, Tail};

/// The version that is a draft.
const DRAFT: u8 = 4;

/// Decodes one connection's stream of BMP; see the [module](self).
#[derive(Debug, Default)]
pub struct BmpDecoder {
    options: BgpOptions,
    /// The peers that are passed over.
    ignored: Arc<[AnyPrefix]>,
    sessions: Sessions,
    vrfs: Vrfs,
    scratch: Scratch,
    begun: bool,
    has_draft: bool,
    records: u64,
    offset: u64,
}

impl BmpDecoder {
    /// A decoder.
    pub fn new(options: BgpOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Passes over all messages on peers with one of these addresses, and counts them as ignored. The router's own
    /// table (Loc-RIB) has routes of all peers without their addresses: it is not changed.
    #[must_use]
    pub fn without(self, peers: impl Into<Arc<[AnyPrefix]>>) -> Self {
        Self { ignored: peers.into(), ..self }
    }

    fn is_ignored(&self, of: &PerPeer) -> bool {
        let Some(address) = of.key.address().filter(|_| !self.ignored.is_empty()) else {
            return false;
        };
        let host = AnyPrefix::host(address);
        self.ignored.iter().any(|peers| peers.covers(host))
    }

    fn begin(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.begun, true) {
            sink.begin(&SourceInfo { format: "bmp", bgp: true, ..SourceInfo::default() });
        }
    }

    /// Decodes the message at the beginning of `rest`. Returns its length, 0 if more input is needed.
    fn step(&mut self, rest: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
        match header::next(rest, tail) {
            Frame::Need => Ok(0),
            Frame::Message(header) => {
                self.records += 1;
                self.begin(sink);
                if let Err((who, fault)) = self.message(header, &rest[..header.len], sink) {
                    let DecodeFault { at, what } = fault;
                    let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
                    self.report(format!("{who}{what} (byte {at} of the message)"), sink)?;
                }
                Ok(header.len)
            }
            Frame::Cut(header) => {
                self.records += 1;
                self.begin(sink);
                let what = match header {
                    None => "the last message's header is cut short".to_owned(),
                    Some(Header { len, .. }) => {
                        format!("the last message is cut short: {} bytes of {len}", rest.len())
                    }
                };
                self.report(what, sink)?;
                Ok(rest.len())
            }
            Frame::Foreign(why) => Err(StopReason::Misfit(match self.begun {
                false => format!("this is no stream of BMP: it begins with {why}"),
                true => format!(
                    "byte {}: no BMP message begins here, but {why}; what follows cannot be read",
                    self.offset
                ),
            })),
        }
    }

    fn report(&self, what: String, sink: &mut dyn Sink) -> Result<(), StopReason> {
        match sink.damage(&Damage::new(self.records, self.offset, what)).is_break() {
            true => Err(StopReason::BySink),
            false => Ok(()),
        }
    }

    /// Decodes a message; on a fault, with whom it is about.
    fn message(
        &mut self,
        header: Header,
        message: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), (Option<String>, DecodeFault)> {
        let mut body = Cursor::new(message);
        body.bytes(HEADER, "BMP header").map_err(|fault| (None, fault))?;
        if header.version == DRAFT && !std::mem::replace(&mut self.has_draft, true) {
            sink.noted("messages of BMP version 4, a draft");
        }
        let of = match header.kind {
            kind::INITIATION => return text::initiation(body, sink).map_err(|fault| (None, fault)),
            kind::TERMINATION => {
                return text::termination(body, sink).map_err(|fault| (None, fault));
            }
            kind::ROUTE_MIRRORING => {
                sink.ignored("messages of BMP's route mirroring");
                return Ok(());
            }
            kind::ROUTE_MONITORING..=kind::PEER_UP => match PerPeer::read(&mut body) {
                Ok(of) => of,
                Err(Unknown::DecodeFault(fault)) => return Err((None, fault)),
                Err(Unknown::Kind) => {
                    sink.ignored("messages of BMP on peers of unknown types");
                    return Ok(());
                }
            },
            _ => {
                sink.ignored("messages of BMP of unknown types");
                return Ok(());
            }
        };
        if self.is_ignored(&of) {
            sink.ignored("messages of BMP on peers that are not wanted");
            return Ok(());
        }
        let result = match header.kind {
            kind::ROUTE_MONITORING => {
                return self
                    .monitoring(header, &of, body, sink)
                    .map_err(|fault| (Some(of.name()), fault));
            }
            kind::PEER_UP => self.peer_up(&of, body, sink),
            kind::PEER_DOWN => self.peer_down(&of, body, sink),
            kind::STATISTICS => text::statistics(body, &of, sink),
            _ => Ok(()),
        };
        result.map_err(|fault| (Some(of.peer_name()), fault))
    }

    fn monitoring(
        &mut self,
        header: Header,
        of: &PerPeer,
        body: Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let too_many = |_: TooMany| body.fault("there are too many peers");
        let (update, capabilities) = match header.version {
            DRAFT => draft_entries(body)?,
            _ => (body, Vec::new()),
        };
        if let Some(family) = bgp::ended_family(update.rest()) {
            return self.sessions.end_of_rib(of, family, sink).map_err(too_many);
        }
        let mut from = self.sessions.speaker(of, sink).map_err(too_many)?;
        for capability in capabilities {
            let Capability::AddPath(modes) = capability else { continue };
            for (family, mode) in modes {
                // The abilities of the router, because the agreement of both ends is unknown.
                let has_ids = match of.view {
                    View::LocRib => mode.send || mode.receive,
                    view if view.is_out() => mode.send,
                    _ => mode.receive,
                };
                let add_path = if has_ids { AddPath::Present } else { AddPath::Absent };
                from.set_add_path(family, add_path);
            }
        }
        let Self { options, scratch, vrfs, .. } = self;
        let (options, vrfs, time) = (*options, Some(vrfs), of.time);
        let (is_monitored, receiver, rules) = (true, self.sessions.receiver(of), None);
        let mut out = Out { sink, scratch, options, time, vrfs, is_monitored, receiver, rules };
        match bgp::decode(update, from, &mut out)? {
            bgp::Message::Update | bgp::Message::EndOfRib { .. } => {}
            _ => out.sink.ignored("BGP messages that are no UPDATE, among BMP's monitored ones"),
        }
        Ok(())
    }

    /// Local address, ports, the OPEN that was sent, the one that was received, information (RFC 7854, 4.10).
    fn peer_up(
        &mut self,
        of: &PerPeer,
        mut body: Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let mut ends = body.part(20, "local address and ports")?;
        let local_address = of.key.address_in(ends.array("local address")?);
        let (sent, received) = (open(&mut body)?, open(&mut body)?);
        self.sessions
            .up(of, local_address, (&sent, &received), sink)
            .map_err(|TooMany| body.fault("there are too many peers"))?;
        while !body.is_empty() {
            const TABLE_NAME: u16 = 3;
            let (kind, value) = text::entry(&mut body)?;
            if kind == TABLE_NAME && of.view == View::LocRib {
                let name = format!("{} is {}", of.name(), text::text(value.rest()));
                sink.remark("table name", &name);
            }
        }
        Ok(())
    }

    fn peer_down(
        &mut self,
        of: &PerPeer,
        body: Cursor<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let is_news = self.sessions.down(of, sink);
        let reason = text::down_reason(body)?;
        if is_news {
            sink.remark("peer down", &format!("{}: {reason}", of.peer_name()));
        }
        Ok(())
    }
}

impl Decoder for BmpDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let at = each_record(input, |rest| {
            let taken = self.step(rest, tail, &mut *sink)?;
            self.offset += taken as u64;
            Ok(taken)
        })?;
        if tail.is_last() {
            self.begin(sink);
        }
        Ok(at)
    }

    fn records(&self) -> u64 {
        self.records
    }
}

/// The next message, which must be an OPEN.
fn open(body: &mut Cursor<'_>) -> Result<Open, DecodeFault> {
    let start = *body;
    let Some(&[high, low]) = start.rest().get(16..18) else {
        return Err(start.fault("the OPEN's header is cut short"));
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    let message = body.part(len, "OPEN")?;
    Open::decode(message.rest())
        .map_err(|fault| DecodeFault { at: message.position() + fault.at, ..fault })
}

/// The entries of a Route Monitoring message of the draft, `type 2 | length 2 | index 2 | value`: the BGP message
/// and the capabilities that it is encoded by. Groups of routes, table names and marks of paths are passed over.
fn draft_entries(mut body: Cursor<'_>) -> Result<(Cursor<'_>, Vec<Capability>), DecodeFault> {
    const NAME: &str = "entry";
    const CAPABILITY: u16 = 1;
    const UPDATE: u16 = 4;
    let (start, mut update, mut capabilities) = (body, None, Vec::new());
    while !body.is_empty() {
        let (kind, len, _index) = (body.u16(NAME)?, body.u16(NAME)?, body.u16(NAME)?);
        let value = body.part(len.into(), NAME)?;
        match kind {
            UPDATE => update = Some(value),
            CAPABILITY => capabilities.extend(Capability::read_all(value)?),
            _ => {}
        }
    }
    match update {
        Some(update) => Ok((update, capabilities)),
        None => Err(start.fault("the message has no BGP message in it")),
    }
}
