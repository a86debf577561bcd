//! FPM: the stream from FRR's `dplane_fpm_nl` to a forwarding plane (netlink messages over TCP).
//!
//! ```text
//! frame   version 1 | type 1 | length 2, big-endian, with these four bytes | netlink messages
//! ```
//! FRR sends RTM_NEWROUTE and RTM_DELROUTE. Unless it is configured with `no fpm use-next-hop-groups`, it also sends
//! RTM_NEWNEXTHOP and RTM_DELNEXTHOP. [`netlink`](crate::netlink) lists the attributes that are read. Special rules
//! of FPM:
//!
//! - A table has one route for a prefix: a route replaces the one before it, whatever its RTA_PRIORITY, which FRR
//!   sets to 20 for all.
//! - A change of a route is sent as RTM_DELROUTE and then RTM_NEWROUTE. The withdrawal is held back until the next
//!   route arrives or [`Decoder::flush`] is called, so that readers never see a moment without the route.
//! - Without next-hop objects, an IPv4 route over an IPv6 next hop has the gateway 169.254.0.1. It is kept, because
//!   the true address is not in the stream.
//! - When a connection begins, FRR sends all routes, without a mark at the end. It leaves out static routes of tables
//!   other than the main one (FRR 8.4.4), so a reader that removes unconfirmed routes loses them until they change.
//! - Only FPM of type netlink is read. FRR can be built to send protobuf instead, which is refused.
//!
//! A frame or a message that cannot be decoded is skipped and reported. After an invalid header, the decoder searches
//! for the next frame. A stream that does not begin with a frame is refused.
//!
//! ```
//! use fibula_ingest::{Collected, Decoder, Tail, fpm::FpmDecoder};
//! # if cfg!(target_endian = "big") { return Ok(()) }
//!
//! let frame = [
//!     &[1, 1, 0, 60][..],                                  // FPM: version, netlink, length
//!     &[56, 0, 0, 0, 24, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0], // length, RTM_NEWROUTE, flags, sequence, port
//!     &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0],          // IPv4, /24, main table, BGP, unicast
//!     &[8, 0, 1, 0, 192, 0, 2, 0],                         // RTA_DST
//!     &[8, 0, 5, 0, 10, 9, 0, 14],                         // RTA_GATEWAY
//!     &[8, 0, 4, 0, 11, 0, 0, 0],                          // RTA_OIF
//!     &[4, 0, 0, 0],
//! ]
//! .concat();
//! let mut sink = Collected::default();
//! FpmDecoder::default().decode(&frame, Tail::End, &mut sink)?;
//! assert_eq!(sink.lines, ["+ 0 192.0.2.0/24 via 10.9.0.14 interface 11"]);
//! # Ok::<(), fibula_ingest::StopReason>(())
//! ```

use crate::netlink::{Header, Table, padded};
use crate::position::{RecordPosition, each_record};
use crate::{Decoder, Sink, SourceInfo, StopReason, Tail};

/// Bytes of a frame's header.
const HEADER: usize = 4;

mod kind {
    pub(super) const NETLINK: u8 = 1;
    pub(super) const PROTOBUF: u8 = 2;
}

/// Decodes FPM; see the [module](self).
#[derive(Debug, Default)]
pub struct FpmDecoder {
    table: Table,
    begun: bool,
    position: RecordPosition,
}

impl FpmDecoder {
    /// Decodes or skips the message at the beginning of `rest`. Returns its length, 0 if more input is needed.
    fn step(&mut self, rest: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
        if self.position.lost.is_some() {
            return self.search(rest, tail, sink);
        }
        let Some(&[version, kind, high, low]) = rest.first_chunk::<HEADER>() else {
            return self.position.cut(rest, tail, "the last frame's header is cut short", sink);
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        let is_frame = version == 1 && kind <= kind::PROTOBUF && len >= HEADER;
        if !self.begun {
            match fits(rest, kind == kind::PROTOBUF && is_frame) {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(StopReason::Misfit(why)),
                None => {
                    return self.position.cut(rest, tail, "the first frame is cut short", sink);
                }
            }
        }
        if !is_frame {
            self.position.records += 1;
            let what =
                format!("no frame begins here (version {version}, type {kind}, length {len})");
            self.position.lost = Some((self.position.offset, what));
            return Ok(1);
        }
        let Some(frame) = rest.get(..len) else {
            let what = format!("the last frame is cut short: {} bytes of {len}", rest.len());
            return self.position.cut(rest, tail, what, sink);
        };
        self.position.records += 1;
        self.begin(sink);
        if kind != kind::NETLINK {
            self.position.report(
                self.position.offset,
                format!("a frame of type {kind} among those of type 1"),
                sink,
            )?;
        } else {
            self.messages(&frame[HEADER..], sink)?;
        }
        Ok(len)
    }

    /// Decodes the messages of a frame.
    fn messages(&mut self, body: &[u8], sink: &mut dyn Sink) -> Result<(), StopReason> {
        let mut at = 0;
        while let Some(header) = Header::read(&body[at..]) {
            if !header.is_plausible(body.len() - at) {
                let Header { len, kind, .. } = header;
                let what = format!(
                    "a message of type {kind} has a length of {len}, {} bytes of the frame are left",
                    body.len() - at
                );
                return self.report_in_frame(at, &what, sink);
            }
            let message = &body[at..at + header.len];
            if let Err(fault) = self.table.message(header, message, sink) {
                self.report_in_frame(at + fault.at, &fault.what, sink)?;
            }
            at += padded(header.len).min(body.len() - at);
        }
        match body.len() - at {
            0..4 => Ok(()),
            left => self.report_in_frame(at, &format!("{left} bytes are no message"), sink),
        }
    }

    /// Searches for the next frame.
    fn search(
        &mut self,
        rest: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let no_frame = |at: &usize| looks_like_frame(&rest[*at..]) == Some(false);
        let at = (0..rest.len()).find(|at| !no_frame(at)).unwrap_or(rest.len());
        match looks_like_frame(&rest[at..]) {
            Some(true) => {
                self.position.found(at, sink)?;
                if at == 0 { self.step(rest, tail, sink) } else { Ok(at) }
            }
            // Too few bytes to decide; at the end they are lost, too.
            _ if tail.is_last() => Ok(rest.len()),
            _ => Ok(at),
        }
    }

    fn begin(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.begun, true) {
            sink.begin(&SourceInfo { format: "fpm", ..SourceInfo::default() });
        }
    }

    /// Reports damage at this place behind the frame's header.
    fn report_in_frame(
        &self,
        at: usize,
        what: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), StopReason> {
        let what = format!("{what} (byte {} of the frame)", HEADER + at);
        self.position.report(self.position.offset, what, sink)
    }
}

/// Whether a stream with this beginning is decoded, and the reason if not; `None` if there are too few bytes to decide.
fn fits(rest: &[u8], is_protobuf: bool) -> Option<Result<(), String>> {
    if is_protobuf {
        return Some(Err(
            "this is FPM in its protobuf form, of which only the netlink form is read: load FRR's module \
             dplane_fpm_nl (`zebra -M dplane_fpm_nl`)"
                .to_owned(),
        ));
    }
    Some(match looks_like_frame(rest)? {
        true => Ok(()),
        false => Err(format!(
            "this is no FPM stream: it begins with the bytes {:02x?}, not with version 1, type 1 and a netlink \
             message",
            &rest[..rest.len().min(HEADER)]
        )),
    })
}

/// Bytes that [`looks_like_frame`] needs.
const CERTAIN: usize = HEADER + crate::netlink::HEADER;

/// Whether a frame with a netlink message begins here; `None` if there are too few bytes to decide.
pub(crate) fn looks_like_frame(bytes: &[u8]) -> Option<bool> {
    let netlink = [1, kind::NETLINK];
    let seen = bytes.len().min(netlink.len());
    if bytes[..seen] != netlink[..seen] {
        return Some(false);
    }
    let &[_, _, high, low] = bytes.first_chunk()?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len < CERTAIN {
        return Some(false);
    }
    Some(Header::read(&bytes[HEADER..])?.is_plausible(len - HEADER))
}

impl Decoder for FpmDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let at = each_record(input, |rest| {
            let taken = self.step(rest, tail, &mut *sink)?;
            self.position.offset += taken as u64;
            Ok(taken)
        })?;
        if tail.is_last() {
            self.position.found(0, sink)?;
            self.begin(sink);
            self.flush(sink);
        }
        Ok(at)
    }

    fn records(&self) -> u64 {
        self.position.records
    }

    fn is_holding(&self) -> bool {
        self.table.is_holding()
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        self.table.flush(sink);
    }
}
