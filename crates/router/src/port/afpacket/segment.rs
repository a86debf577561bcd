//! Merged packets, cut into packets of the size that they had, or that their sender's kernel would have given
//! them.

use fibula_packet::{Frame, LinkType, checksum};

use crate::port::partial;
use crate::{Packet, Pool};

/// The work that the kernel left to a device: `struct virtio_net_hdr`.
pub(super) struct Offload {
    needs_checksum: bool,
    kind: u8,
    /// Bytes of payload that a packet has.
    size: usize,
    checksum_start: usize,
    checksum_offset: usize,
}

const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// A flag beside the kind: only the first packet has CWR.
const ECN: u8 = 0x80;

impl Offload {
    pub(super) const LEN: usize = 10;

    pub(super) fn new(bytes: &[u8; Self::LEN]) -> Self {
        let field = |at| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        Self {
            needs_checksum: bytes[0] & 1 != 0,
            kind: bytes[1] & !ECN,
            size: field(4),
            checksum_start: field(6),
            checksum_offset: field(8),
        }
    }

    /// Whether it is several packets.
    pub(super) fn is_merged(&self) -> bool {
        self.kind != 0
    }

    /// Where a checksum is to be completed: where its bytes begin, and how many bytes later its field is.
    pub(super) fn checksum(&self) -> Option<(usize, usize)> {
        self.needs_checksum.then_some((self.checksum_start, self.checksum_offset))
    }
}

/// Cuts it; returns how many packets are lost, because there is no free slot or it is of an unknown kind.
pub(super) fn cut<'p>(
    whole: &[u8],
    offload: &Offload,
    pool: &'p Pool,
    mut done: impl FnMut(Packet<'p>),
) -> u64 {
    let Some(cut) = Cut::new(whole, offload) else { return 1 };
    let payload = &whole[cut.payload_at..];
    let pieces = payload.chunks(offload.size);
    let last = pieces.len() - 1;
    let mut lost = 0;
    for (number, piece) in pieces.enumerate() {
        match pool.take() {
            Some(mut packet) if packet.room() >= cut.payload_at + piece.len() => {
                packet.set_len(cut.payload_at + piece.len());
                let bytes = packet.bytes_mut();
                bytes[..cut.payload_at].copy_from_slice(&whole[..cut.payload_at]);
                bytes[cut.payload_at..].copy_from_slice(piece);
                cut.repair(bytes, number, number == last);
                done(packet);
            }
            none => {
                pool.give(none);
                lost += 1;
            }
        }
    }
    lost
}

/// How a merged packet is cut.
struct Cut {
    is_ipv4: bool,
    is_tcp: bool,
    network_at: usize,
    transport_at: usize,
    payload_at: usize,
    size: usize,
}

impl Cut {
    /// `None` if it is not TCP or UDP directly over IP: a tunnel, or an unknown kind of merging.
    fn new(whole: &[u8], offload: &Offload) -> Option<Self> {
        let frame = Frame::parse(LinkType::Ethernet, whole);
        let (network_at, transport_at) = (frame.network_at()?, frame.transport_at()?);
        if offload.needs_checksum && offload.checksum_start != transport_at {
            return None;
        }
        let is_tcp = match (offload.kind, frame.protocol()?) {
            (TCP_V4 | TCP_V6, 6) => true,
            (UDP, 17) => false,
            _ => return None,
        };
        let header = if is_tcp { frame.tcp()?.header_len() } else { 8 };
        let payload_at = transport_at + header;
        let is_ipv4 = frame.ipv4().is_some();
        let is_cut = (is_tcp && header < 20) || payload_at >= whole.len() || offload.size == 0;
        (!is_cut).then_some(Self {
            is_ipv4,
            is_tcp,
            network_at,
            transport_at,
            payload_at,
            size: offload.size,
        })
    }

    /// Makes the headers those of the packet with this number.
    fn repair(&self, bytes: &mut [u8], number: usize, is_last: bool) {
        let end = bytes.len();
        let (source, destination) = {
            let ip = &mut bytes[self.network_at..];
            if self.is_ipv4 {
                put16(ip, 2, (end - self.network_at) as u16);
                let identification = get16(ip, 4).wrapping_add(number as u16);
                put16(ip, 4, identification);
                put16(ip, 10, 0);
                let header = usize::from(ip[0] & 15) * 4;
                put16(ip, 10, checksum::compute(&ip[..header]));
            } else {
                put16(ip, 4, (end - self.network_at - 40) as u16);
            }
            let Some(ends) = Frame::parse(LinkType::Ethernet, bytes).ends() else { return };
            ends
        };
        let segment = &mut bytes[self.transport_at..];
        let (protocol, field) = if self.is_tcp {
            let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]])
                .wrapping_add((number * self.size) as u32);
            segment[4..8].copy_from_slice(&sequence.to_be_bytes());
            if !is_last {
                segment[13] &= !0x09; // FIN, PSH
            }
            if number > 0 {
                segment[13] &= !0x80; // CWR
            }
            (6, 16)
        } else {
            let len = segment.len() as u16;
            put16(segment, 4, len);
            (17, 6)
        };
        let pseudo = partial::pseudo_header(source, destination, protocol, segment.len() as u32);
        put16(segment, field, pseudo);
        partial::complete(bytes, self.transport_at, field);
    }
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP packet of 2,500 bytes of payload over IPv4 or IPv6, and the kernel's header for it.
    fn merged(is_ipv4: bool, size: u16) -> (Vec<u8>, Offload) {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if is_ipv4 {
            frame.extend(b"\x08\0\x45\0\x09\xf8\x12\xff\x40\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02");
        } else {
            frame.extend(b"\x86\xdd\x60\0\0\0\x09\xe4\x06\x40");
            frame.extend([0xfd; 32]);
        }
        let start = frame.len();
        frame.extend(b"\0\x07\0\x09\xff\xff\xff\x00\0\0\0\0\x80\x99\0\x10\0\0\0\0");
        frame.extend([1; 12]); // options
        frame.extend((0..2500).map(|at| (at % 251) as u8));
        let kind = if is_ipv4 { TCP_V4 } else { TCP_V6 };
        let mut header = vec![1, kind | ECN, 0, 0];
        for field in [size, start as u16, 16] {
            header.extend(field.to_ne_bytes());
        }
        (frame, Offload::new(header[..].try_into().unwrap()))
    }

    #[test]
    fn a_merged_packet_is_cut_into_whole_ones() {
        for is_ipv4 in [true, false] {
            let pool = Pool::new(8, 2048);
            let (whole, offload) = merged(is_ipv4, 1000);
            assert!(offload.is_merged());
            let mut pieces = Vec::new();
            assert_eq!(cut(&whole, &offload, &pool, |piece| pieces.push(piece)), 0);
            assert_eq!(pieces.len(), 3);
            let mut payload = Vec::new();
            for (number, piece) in pieces.iter().enumerate() {
                let frame = Frame::parse(LinkType::Ethernet, piece.bytes());
                assert_eq!(frame.check_forward(), Ok(()));
                assert_eq!(frame.length(), Some(fibula_packet::Length::Whole));
                assert_eq!(frame.ipv4().is_some(), is_ipv4);
                if let Some(ip) = frame.ipv4() {
                    assert_eq!(ip.identification(), 0x12ff + number as u16);
                }
                let tcp = frame.tcp().unwrap();
                assert_eq!(tcp.sequence(), 0xffff_ff00_u32.wrapping_add(number as u32 * 1000));
                // CWR in the first, FIN and PSH in the last.
                assert_eq!(tcp.flags() & 0xff, [0x90, 0x10, 0x19][number]);
                let segment = frame.segment().unwrap();
                let (from, to) = frame.ends().unwrap();
                let pseudo = partial::pseudo_header(from, to, 6, segment.len() as u32);
                assert!(checksum::verify(&[&pseudo.to_be_bytes()[..], segment].concat()));
                payload.extend_from_slice(&segment[32..]);
            }
            assert_eq!(payload, whole[whole.len() - 2500..]);
            pool.give(pieces);
            assert_eq!(pool.free(), 8);
        }
    }

    #[test]
    fn what_has_no_slot_or_is_unknown_is_counted() {
        let pool = Pool::new(2, 2048);
        let (whole, offload) = merged(true, 1000);
        let mut pieces = Vec::new();
        assert_eq!(cut(&whole, &offload, &pool, |piece| pieces.push(piece)), 1);
        pool.give(pieces);
        let unknown = |at: usize, value| {
            let mut header = [1, TCP_V4, 0, 0, 0, 0, 0, 0, 0, 0];
            header[4..6].copy_from_slice(&1000_u16.to_ne_bytes());
            header[6..8].copy_from_slice(&34_u16.to_ne_bytes());
            header[at] = value;
            cut(&whole, &Offload::new(&header), &pool, |_| panic!("nothing to cut"))
        };
        // UFO, a tunnel's inner checksum.
        assert_eq!([unknown(1, 3), unknown(6, 84)], [1, 1]);
        let (_, offload) = merged(true, 0);
        assert_eq!(cut(&whole, &offload, &pool, |_| panic!("nothing to cut")), 1);
        assert_eq!(cut(&whole[..60], &merged(true, 10).1, &pool, |_| panic!("cut")), 1);
        assert_eq!(pool.free(), 2);
    }
}
