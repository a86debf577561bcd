//! Decodes the stream of netlink messages from a kernel's socket.

use super::table::{Table, Writer};
use super::wire::{HEADER, Header, flag, kind, padded};
use crate::position::{RecordPosition, each_record};
use crate::{Decoder, Sink, SourceInfo, StopReason, Tail};

/// The longest message that is believed; attributes end at 64 KiB, and few are that long.
const LONGEST: usize = 1 << 20;
/// The number that `ip route save` writes before the messages.
const SAVED: u32 = 0x4531_1224;

/// Decodes rtnetlink; see the [module](super). The input is a sequence of messages: the datagrams of a socket in
/// order, or a file written by `ip route save`.
///
/// NLMSG_DONE, at the end of a dump, becomes [`Sink::end_of_rib`] of peer 0, unless the dump failed or was
/// interrupted.
///
/// ```
/// use fibula_ingest::{Collected, Decoder, Tail, netlink::NetlinkDecoder};
/// # if cfg!(target_endian = "big") { return Ok(()) }
///
/// let message = [
///     &[52, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], // length, RTM_NEWROUTE, flags, sequence, port
///     &[2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0],               // IPv4, /24, main table, static, unicast
///     &[8, 0, 1, 0, 192, 0, 2, 0],                            // RTA_DST
///     &[8, 0, 4, 0, 3, 0, 0, 0],                              // RTA_OIF
///     &[8, 0, 6, 0, 100, 0, 0, 0],                            // RTA_PRIORITY
/// ]
/// .concat();
/// let mut sink = Collected::default();
/// NetlinkDecoder::default().decode(&message, Tail::End, &mut sink)?;
/// assert_eq!(sink.lines, ["+ 0 192.0.2.0/24#100 on the link interface 3"]);
/// # Ok::<(), fibula_ingest::StopReason>(())
/// ```
#[derive(Debug)]
pub struct NetlinkDecoder {
    table: Table,
    /// The request whose answer ends everything.
    last: Option<u32>,
    notices: Notices,
    /// Whether a dump was interrupted since the last complete one.
    is_interrupted: bool,
    begun: bool,
    position: RecordPosition,
}

/// Information for the owner of the socket, from the decoded messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// The answers to requests, in order.
    pub replies: Vec<Reply>,
    /// A dump is incomplete because the table changed meanwhile (NLM_F_DUMP_INTR), or the kernel lost messages
    /// (NLMSG_OVERRUN). Request a new dump.
    pub interrupted: bool,
    /// The interfaces of RTM_NEWLINK and RTM_DELLINK messages, in order. If one went up or down, the kernel may have
    /// changed routes without a notification.
    pub links: Vec<Link>,
    /// An address was removed (RTM_DELADDR): the kernel may have removed routes without a notification.
    pub addresses: bool,
    /// One of several routes with the same prefix and metric changed, and only a dump shows which one is used now.
    pub unsure: bool,
}

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its index.
    pub interface: u32,
    /// Whether packets can be sent: the interface exists, is up, and has a carrier.
    pub is_up: bool,
}

impl Link {
    /// Reads the body of RTM_NEWLINK: `family 1 | padding 1 | type 2 | interface 4 | flags 4 | change 4`.
    fn read(header: Header, message: &[u8]) -> Option<Self> {
        /// IFF_UP, IFF_RUNNING, IFF_LOWER_UP.
        const UP: u32 = 0x1_0041;
        let word = |at| message.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let (interface, flags) = (word(HEADER + 4)?, word(HEADER + 8)?);
        Some(Self { interface, is_up: header.kind == kind::NEWLINK && flags & UP == UP })
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's sequence number.
    pub sequence: u32,
    /// 0, or the error number (`errno`) of a failed request.
    pub error: u32,
}

impl Default for NetlinkDecoder {
    fn default() -> Self {
        Self::new(None)
    }
}

impl NetlinkDecoder {
    /// Makes a decoder. [`Sink::end_of_rib`] is called after the dump that answers the request with the sequence
    /// number `last`; if `last` is `None`, after every dump.
    ///
    /// With `last`, the input begins with dumps, up to the one with that number, mixed with notifications. A
    /// notification takes precedence over a later message of a dump, which may be older. A route whose next-hop
    /// object is not yet known waits for it.
    pub fn new(last: Option<u32>) -> Self {
        Self {
            table: Table::new(Writer::Kernel, last.is_some()),
            last,
            notices: Notices::default(),
            is_interrupted: false,
            begun: false,
            position: RecordPosition::default(),
        }
    }

    /// The information since the last call.
    pub fn take_notices(&mut self) -> Notices {
        let unsure = self.table.take_unsure();
        Notices { unsure, ..std::mem::take(&mut self.notices) }
    }

    /// Decodes or skips the message at the beginning of `rest`. Returns its length, 0 if more input is needed.
    fn step(&mut self, rest: &[u8], tail: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
        if self.position.lost.is_some() {
            return self.search(rest, tail, sink);
        }
        if self.position.offset == 0 && rest.first_chunk() == Some(&SAVED.to_ne_bytes()) {
            return Ok(SAVED.to_ne_bytes().len());
        }
        let Some(header) = Header::read(rest) else {
            return self.position.cut(rest, tail, "the last message's header is cut short", sink);
        };
        let Header { len, kind, .. } = header;
        if !header.is_plausible(LONGEST) {
            if !self.begun {
                return Err(StopReason::Misfit(format!(
                    "this is no netlink stream: it begins with a message of type {kind} and length {len}"
                )));
            }
            self.position.records += 1;
            let what = format!("no message begins here (type {kind}, length {len})");
            self.position.lost = Some((self.position.offset, what));
            return Ok(STEP.min(rest.len()));
        }
        // The padding of the last message may be missing.
        let whole = if tail.is_last() { padded(len).min(rest.len()) } else { padded(len) };
        if rest.len() < whole.max(len) {
            let what = format!("the last message is cut short: {} bytes of {len}", rest.len());
            return self.position.cut(rest, tail, what, sink);
        }
        self.position.records += 1;
        self.begin(sink);
        self.message(header, &rest[..len], sink)?;
        Ok(whole)
    }

    fn message(
        &mut self,
        header: Header,
        message: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), StopReason> {
        if header.flags & flag::DUMP_INTR != 0 {
            self.interrupted(sink);
        }
        match header.kind {
            kind::DONE | kind::ERROR => self.reply(header, message, sink),
            kind::OVERRUN => self.interrupted(sink),
            kind::NOOP | kind::NEWADDR => {}
            kind::NEWLINK | kind::DELLINK => self.notices.links.extend(Link::read(header, message)),
            kind::DELADDR => self.notices.addresses = true,
            kind::NEWROUTE | kind::DELROUTE | kind::NEWNEXTHOP | kind::DELNEXTHOP => {
                if let Err(fault) = self.table.message(header, message, sink) {
                    let what = format!("{} (byte {} of the message)", fault.what, fault.at);
                    return self.position.report(self.position.offset, what, sink);
                }
            }
            _ => sink.ignored("messages about other things than routes"),
        }
        Ok(())
    }

    /// NLMSG_DONE or NLMSG_ERROR: `error 4`, negative or 0.
    fn reply(&mut self, header: Header, message: &[u8], sink: &mut dyn Sink) {
        let code = message.get(HEADER..).and_then(|body| body.first_chunk());
        let error = code.map_or(0, |code| i32::from_ne_bytes(*code)).unsigned_abs();
        let Header { sequence, .. } = header;
        self.notices.replies.push(Reply { sequence, error });
        self.table.end_of_dump(self.last == Some(sequence));
        if error != 0 {
            sink.noted("the kernel refused a request");
            return;
        }
        let is_last = self.last.is_none_or(|last| last == sequence);
        if header.kind == kind::DONE && is_last && !std::mem::take(&mut self.is_interrupted) {
            self.table.flush(sink);
            sink.end_of_rib(0);
        }
    }

    fn interrupted(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.is_interrupted, true) {
            sink.noted("a dump was interrupted by a change and may lack routes");
        }
        self.notices.interrupted = true;
    }

    /// Searches for the next message, which begins at a multiple of four.
    fn search(
        &mut self,
        rest: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let mut at = 0;
        while let Some(header) = Header::read(&rest[at..]) {
            if is_certain(&header) {
                self.position.found(at, sink)?;
                return if at == 0 { self.step(rest, tail, sink) } else { Ok(at) };
            }
            at += STEP;
        }
        Ok(if tail.is_last() { rest.len() } else { at })
    }

    fn begin(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.begun, true) {
            sink.begin(&SourceInfo { format: "netlink", ..SourceInfo::default() });
        }
    }
}

/// Messages begin at multiples of this.
const STEP: usize = 4;

/// Whether this is the header of a message that is read, beyond doubt.
fn is_certain(header: &Header) -> bool {
    let shortest = match header.kind {
        kind::DONE | kind::ERROR => 4,
        kind::NEWROUTE | kind::DELROUTE => 12,
        kind::NEWNEXTHOP | kind::DELNEXTHOP => 8,
        _ => return false,
    };
    header.len >= HEADER + shortest && header.is_plausible(u16::MAX.into())
}

impl Decoder for NetlinkDecoder {
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
