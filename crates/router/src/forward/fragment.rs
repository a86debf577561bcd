//! Fragments and options of IPv4: RFC 791, section 3.2.

use fibula_packet::{Ipv4, checksum, ether_type};

use super::{Forwarder, Reason, Run};
use crate::Packet;
use crate::egress::Exit;

/// The options of a header that concern a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Options {
    /// Nothing: they are forwarded as they are.
    Plain,
    /// There is a source route among them.
    SourceRoute,
    /// The option at this byte of the header is malformed.
    Malformed(u8),
}

/// Reads the options. The first malformed one ends the list.
pub(super) fn options(ip: &Ipv4<'_>) -> Options {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    let mut found = Options::Plain;
    for option in (List { rest: ip.options().unwrap_or_default(), at: 20 }) {
        match option {
            Ok([LOOSE | STRICT, ..]) => found = Options::SourceRoute,
            Ok(_) => {}
            Err(at) => return Options::Malformed(at),
        }
    }
    found
}

/// The options of a header, up to the end of the list, but for those that only pad. `Err` is the place of a malformed
/// one, and the last.
struct List<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Iterator for List<'a> {
    type Item = Result<&'a [u8], u8>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [1, rest @ ..] = self.rest {
            (self.rest, self.at) = (rest, self.at + 1);
        }
        let [kind, rest @ ..] = self.rest else { return None };
        if *kind == 0 {
            return None;
        }
        let len = rest.first().map_or(0, |len| usize::from(*len));
        if len < 2 || len > self.rest.len() {
            self.rest = &[];
            // A header has at most 60 bytes.
            return Some(Err(self.at as u8));
        }
        let (option, rest) = self.rest.split_at(len);
        (self.rest, self.at) = (rest, self.at + len);
        Some(Ok(option))
    }
}

/// A header of at most 60 bytes.
struct Head {
    bytes: [u8; 60],
    len: usize,
}

impl Head {
    /// The header of fragments but the first: options with the copied flag, padded to a multiple of four bytes.
    fn of_later(header: &[u8]) -> Self {
        let mut head = Self { bytes: [0; 60], len: 20 };
        head.bytes[..20].copy_from_slice(&header[..20]);
        for option in (List { rest: &header[20..], at: 20 }).flatten() {
            if option[0] & 0x80 != 0 {
                head.bytes[head.len..head.len + option.len()].copy_from_slice(option);
                head.len += option.len();
            }
        }
        head.len = head.len.next_multiple_of(4);
        head.bytes[0] = 0x40 | (head.len / 4) as u8;
        head
    }
}

/// Whether a packet of `len` bytes may be cut for this MTU: each fragment but the last has eight bytes of data at
/// least, and an offset that its field can hold.
pub(super) fn may_cut(ip: &Ipv4<'_>, mtu: usize) -> bool {
    !ip.dont_fragment() && mtu >= ip.header_len() + 8
}

/// Whether the fragment ends beyond the longest possible packet (RFC 791, section 3.1): its parts would have no valid
/// offset.
pub(super) fn ends_beyond(ip: &Ipv4<'_>) -> bool {
    usize::from(ip.fragment_offset()) + usize::from(ip.total_len()) - ip.header_len() > 0xffff
}

impl Forwarder {
    /// Sends a packet of `len` bytes at byte `at` of its frame as fragments. The packet, whose TTL is the new one,
    /// becomes the first of them.
    #[cold]
    pub(super) fn fragment<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        exit: &Exit,
        (at, len): (usize, usize),
        mut packet: Packet<'p>,
    ) {
        let mtu = exit.limit() as usize;
        let send = &mut run.outcome.send[usize::from(exit.port)];
        let first_at = send.len();
        let frame_len = packet.bytes().len();
        let bytes = &packet.bytes()[at..at + len];
        let header_len = usize::from(bytes[0] & 15) * 4;
        let (header, data) = bytes.split_at(header_len);
        let field = u16::from_be_bytes([header[6], header[7]]);
        let mut later = Head::of_later(header);
        let first = (mtu - header_len) / 8 * 8;
        let (mut sent, mut sent_bytes) = (1, exit.link_len() + header_len + first);
        let mut done = first;
        while done < data.len() {
            let fits = mtu - later.len;
            let rest = data.len() - done;
            let (part, more) = if rest > fits { (fits / 8 * 8, true) } else { (rest, false) };
            let flags = (field & 0xe000) | if more { 0x2000 } else { 0 };
            let offset = (field & 0x1fff) + (done / 8) as u16;
            number(&mut later.bytes[..later.len], later.len + part, flags | offset);
            let Some(mut fragment) = made(run.pool, exit, &later, &data[done..done + part]) else {
                run.outcome.dropped.extend(send.drain(first_at..));
                self.tally.one(Reason::NoSlot, frame_len);
                run.outcome.dropped.push(packet);
                return;
            };
            (sent, sent_bytes) = (sent + 1, sent_bytes + fragment.bytes().len());
            fragment.mark = packet.mark;
            send.push(fragment);
            done += part;
        }
        let header = &mut packet.bytes_mut()[at..at + header_len];
        number(header, header_len + first, field | 0x2000);
        exit.put(ether_type::IPV4, at, header_len + first, &mut packet);
        send.push(packet);
        // The packet itself was read until now; it is sent first.
        send[first_at..].rotate_right(1);
        self.tally.one(Reason::Fragmented, frame_len);
        self.tally.add(Reason::Fragment, sent, sent_bytes as u64);
    }
}

/// Length, flags with offset, and checksum of a fragment's header.
fn number(header: &mut [u8], len: usize, field: u16) {
    header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    header[6..8].copy_from_slice(&field.to_be_bytes());
    header[10..12].fill(0);
    let sum = checksum::compute(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn made<'p>(pool: &'p crate::Pool, exit: &Exit, head: &Head, data: &[u8]) -> Option<Packet<'p>> {
    let mut fragment = pool.take()?;
    let (link, len) = (exit.link_len(), head.len + data.len());
    if fragment.room() < link + len {
        pool.give([fragment]);
        return None;
    }
    fragment.set_len(link + len);
    fragment.port = exit.port;
    let (front, rest) = fragment.bytes_mut().split_at_mut(link);
    exit.write(ether_type::IPV4, front);
    rest[..head.len].copy_from_slice(&head.bytes[..head.len]);
    rest[head.len..].copy_from_slice(data);
    Some(fragment)
}
