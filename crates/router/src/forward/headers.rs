//! The headers of ordinary packets: gathered from a chunk of packets, checked and looked up together.

use std::array;

use fibula_core::{Family, Hop};
use fibula_packet::{ether_type, extension};
use fibula_simd::{Kernel, Level, Simd};

use super::View;
use super::addresses::{forwards_v4_word, forwards_v6};
use crate::Packet;
use crate::egress::Paths;

/// Packets that are worked on together: what is known of them stays in the first-level cache.
pub(super) const CHUNK: usize = 128;

/// How many headers are checked at a time.
const LANES: usize = 16;

/// What is known of a chunk of packets.
#[derive(Clone)]
pub(super) struct Headers {
    kinds: [Kind; CHUNK],
    v4: V4,
    v6: V6,
}

/// What the link header says of a packet.
#[derive(Clone, Copy)]
enum Kind {
    /// It is not an ordinary one.
    Slow,
    /// An IPv4 header begins at this byte. Whether it is sound is in [`V4`].
    V4(u8),
    /// A sound IPv6 header begins there.
    V6(u8),
}

/// The IPv4 headers of a chunk, in order.
#[derive(Clone)]
struct V4 {
    count: usize,
    /// The headers without their last four bytes, the destination, which are in `keys`.
    words: [[u32; 4]; CHUNK],
    keys: [u32; CHUNK],
    /// Bytes from the header to the end of the frame.
    rooms: [u32; CHUNK],
    sound: [Sound; CHUNK],
    hops: [Hop; CHUNK],
}

/// The IPv6 headers of a chunk, in order.
#[derive(Clone)]
struct V6 {
    count: usize,
    keys: [u128; CHUNK],
    sound: [Sound; CHUNK],
    hops: [Hop; CHUNK],
}

/// What there is to know of a header.
#[derive(Clone, Copy, Default)]
pub(super) struct Sound {
    /// Length of the IP packet; 0 if the packet is not an ordinary one.
    pub(super) len: u32,
    /// What is to be written: bytes 8 to 11 of an IPv4 header, byte 7 of an IPv6 header.
    pub(super) aged: [u8; 4],
}

/// An ordinary packet, looked up.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) is_v4: bool,
    /// Where the IP header begins: 14 or 18.
    pub(super) at: usize,
    pub(super) sound: Sound,
    pub(super) hop: Hop,
}

impl Default for Headers {
    fn default() -> Self {
        let (sound, hops) = ([Sound::default(); CHUNK], [Hop::NONE; CHUNK]);
        let (words, keys) = ([[0; 4]; CHUNK], [0; CHUNK]);
        Self {
            kinds: [Kind::Slow; CHUNK],
            v4: V4 { count: 0, words, keys, rooms: [0; CHUNK], sound, hops },
            v6: V6 { count: 0, keys: [0; CHUNK], sound, hops },
        }
    }
}

impl Headers {
    /// Reads at most [`CHUNK`] packets, and looks up those that are ordinary. Returns the family if all of them have
    /// headers of it right behind link headers without a tag.
    #[inline]
    pub(super) fn read(
        &mut self,
        level: Level,
        view: &View<'_>,
        packets: &[Packet<'_>],
    ) -> Option<Family> {
        let family = self.gather(view.egress, packets);
        if self.v4.count > 0 {
            level.run(Check(&mut self.v4));
            let (keys, hops) = (&self.v4.keys[..self.v4.count], &mut self.v4.hops);
            view.v4.engine.lookup_batch(keys, &mut hops[..self.v4.count]);
        }
        if self.v6.count > 0 {
            let (keys, hops) = (&self.v6.keys[..self.v6.count], &mut self.v6.hops);
            view.v6.engine.lookup_batch(keys, &mut hops[..self.v6.count]);
        }
        family
    }

    /// Reads the packets' headers. Most chunks are of one family and came in by one port, and there is less to ask of each packet.
    #[inline]
    fn gather(&mut self, paths: &Paths, packets: &[Packet<'_>]) -> Option<Family> {
        (self.v4.count, self.v6.count) = (0, 0);
        let first = packets.first()?.port;
        let plain =
            |kind: u16| Plain { port: first, mac: paths.mac(first), kind: kind.to_be_bytes() };
        let (v4, v6) = (plain(ether_type::IPV4), plain(ether_type::IPV6));
        let mut all = packets.iter().enumerate();
        if all.all(|(at, packet)| v4.ip(packet).is_some_and(|ip| self.v4.put(at, paths, ip))) {
            self.v4.count = packets.len();
            return Some(Family::V4);
        }
        let mut all = packets.iter().enumerate();
        if all.all(|(at, packet)| v6.ip(packet).is_some_and(|ip| self.v6.put(at, paths, ip))) {
            self.v6.count = packets.len();
            return Some(Family::V6);
        }
        let (mut port, mut mac) = (u16::MAX, u64::MAX);
        for (packet, kind) in packets.iter().zip(&mut self.kinds) {
            if packet.port != port {
                (port, mac) = (packet.port, paths.mac(packet.port));
            }
            let read = gather(paths, mac, packet.bytes(), &mut self.v4, &mut self.v6);
            *kind = read.unwrap_or(Kind::Slow);
        }
        None
    }

    /// What was found out about the packets, which have headers of IPv4 right behind link headers without a tag; `None`: it is not an
    /// ordinary one.
    #[inline(always)]
    pub(super) fn of_v4(&self) -> impl Iterator<Item = Option<Found>> {
        self.v4.sound.iter().zip(&self.v4.hops).map(|(&sound, &hop)| {
            (sound.len > 0).then_some(Found { is_v4: true, at: 14, sound, hop })
        })
    }

    /// The same of IPv6.
    #[inline(always)]
    pub(super) fn of_v6(&self) -> impl Iterator<Item = Option<Found>> {
        let both = self.v6.sound.iter().zip(&self.v6.hops);
        both.map(|(&sound, &hop)| Some(Found { is_v4: false, at: 14, sound, hop }))
    }

    /// What was found out about packets of any kind.
    #[inline(always)]
    pub(super) fn of_both(&self) -> impl Iterator<Item = Option<Found>> {
        let (mut v4, mut v6) = (0, 0);
        self.kinds.iter().map(move |&kind| {
            // As many headers as kinds of the family.
            match kind {
                Kind::Slow => None,
                Kind::V4(at) => {
                    let header = v4 % CHUNK;
                    v4 += 1;
                    let (sound, hop) = (self.v4.sound[header], self.v4.hops[header]);
                    (sound.len > 0).then_some(Found { is_v4: true, at: at.into(), sound, hop })
                }
                Kind::V6(at) => {
                    let header = v6 % CHUNK;
                    v6 += 1;
                    let (sound, hop) = (self.v6.sound[header], self.v6.hops[header]);
                    Some(Found { is_v4: false, at: at.into(), sound, hop })
                }
            }
        })
    }
}

/// Packets that came in by a port, in frames to the router without a tag.
struct Plain {
    port: u16,
    mac: u64,
    /// The EtherType.
    kind: [u8; 2],
}

impl Plain {
    /// The IP packet, if it is in such a frame.
    #[inline(always)]
    fn ip<'a>(&self, packet: &'a Packet<'_>) -> Option<&'a [u8]> {
        let (link, ip) = packet.bytes().split_first_chunk::<14>()?;
        let to = u64::from_le_bytes(*link.first_chunk()?) << 16;
        (packet.port == self.port && to == self.mac && link[12..] == self.kind).then_some(ip)
    }
}

/// Reads a packet, and adds its header if it may be an ordinary one.
#[inline(always)]
fn gather(paths: &Paths, mac: u64, bytes: &[u8], v4: &mut V4, v6: &mut V6) -> Option<Kind> {
    let (link, rest) = bytes.split_first_chunk::<14>()?;
    let to = u64::from_le_bytes(*link.first_chunk()?) << 16;
    let (mut at, mut ip, mut kind) = (14, rest, [link[12], link[13]]);
    if kind == ether_type::VLAN.to_be_bytes() {
        let (tag, rest) = rest.split_first_chunk::<4>()?;
        (at, ip, kind) = (18, rest, [tag[2], tag[3]]);
    }
    match u16::from_be_bytes(kind) {
        ether_type::IPV4 if to == mac => v4.push(paths, ip).then_some(Kind::V4(at)),
        ether_type::IPV6 if to == mac => v6.push(paths, ip).then_some(Kind::V6(at)),
        _ => None,
    }
}

impl V4 {
    /// Adds a header, sound or not, unless the packet may be the router's own.
    #[inline(always)]
    fn push(&mut self, paths: &Paths, packet: &[u8]) -> bool {
        let is_there = self.put(self.count, paths, packet);
        self.count += usize::from(is_there);
        is_there
    }

    /// Writes a header, as `push` does.
    #[inline(always)]
    fn put(&mut self, at: usize, paths: &Paths, packet: &[u8]) -> bool {
        let Some(header) = packet.first_chunk::<20>() else { return false };
        let (words, _) = header.as_chunks::<4>();
        let key = u32::from_be_bytes(words[4]);
        if paths.may_be_own(key) {
            return false;
        }
        // As many as packets.
        let at = at % CHUNK;
        self.words[at] = array::from_fn(|word| u32::from_le_bytes(words[word]));
        self.keys[at] = key;
        self.rooms[at] = packet.len() as u32;
        true
    }
}

/// The IPv4 headers of a chunk are checked. There is nothing but arrays in this loop, of which the compiler makes
/// vectors: sixteen headers a time with AVX-512.
struct Check<'a>(&'a mut V4);

impl Kernel for Check<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let V4 { count, words, keys, rooms, sound, .. } = self.0;
        let up_to = count.next_multiple_of(LANES).min(CHUNK);
        let inputs = words[..up_to].iter().zip(&keys[..up_to]).zip(&rooms[..up_to]);
        for (((words, &key), &room), sound) in inputs.zip(&mut sound[..up_to]) {
            *sound = check_v4(*words, key, room);
        }
    }
}

/// Words are read in little-endian order: a sum in one's complement arithmetic is the same in both orders, but for the
/// order of its own bytes (RFC 1071, section 2 (B)).
#[inline(always)]
fn check_v4([first, second, third, source]: [u32; 4], key: u32, room: u32) -> Sound {
    let destination = key.swap_bytes();
    let halves = |word: u32| (word & 0xffff) + (word >> 16);
    let sum = halves(first) + halves(second) + halves(third) + halves(source) + halves(destination);
    let sum = halves(halves(sum));
    let len = (first >> 16).swap_bytes() >> 16;
    let is_ordinary = (first & 0xff == 0x45)
        & (sum == 0xffff)
        & (len >= 20)
        & (len <= room)
        & (third & 0xff > 1)
        & forwards_v4_word(source)
        & forwards_v4_word(destination);
    // Equation 3 of RFC 1624. The word with the TTL as its lower half becomes less by one: ~m + m' = 0xfffe.
    let changed = halves((!third >> 16) + 0xfffe);
    let aged = (third & 0xffff).wrapping_sub(1) | !changed << 16;
    Sound { len: if is_ordinary { len } else { 0 }, aged: aged.to_le_bytes() }
}

impl V6 {
    /// Adds a header if it is sound, unless the packet may be the router's own.
    #[inline(always)]
    fn push(&mut self, paths: &Paths, packet: &[u8]) -> bool {
        let is_there = self.put(self.count, paths, packet);
        self.count += usize::from(is_there);
        is_there
    }

    /// Writes a header, as `push` does.
    #[inline(always)]
    fn put(&mut self, at: usize, paths: &Paths, packet: &[u8]) -> bool {
        let Some(header) = packet.first_chunk::<40>() else { return false };
        let ([source, key], _) = header[8..].as_chunks::<16>() else { return false };
        let (source, key) = (u128::from_be_bytes(*source), u128::from_be_bytes(*key));
        let len = 40 + u32::from(u16::from_be_bytes([header[4], header[5]]));
        let (next, limit) = (header[6], header[7]);
        let is_ordinary = (header[0] >> 4 == 6)
            & (len <= packet.len() as u32)
            & (len <= u16::MAX.into())
            & (next != extension::HOP_BY_HOP)
            & (limit > 1);
        if !is_ordinary || !forwards_v6(source) || !forwards_v6(key) || paths.may_be_own_v6(key) {
            return false;
        }
        // As many as packets.
        let at = at % CHUNK;
        self.keys[at] = key;
        self.sound[at] = Sound { len, aged: [limit - 1, 0, 0, 0] };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_packet::checksum;
    use fibula_simd::Isa;
    use fibula_testkit::Rng;

    /// A header of 20 bytes, sound but for one thing in most cases.
    fn header(rng: &mut Rng) -> ([u8; 20], u32) {
        let mut header = [0; 20];
        header.fill_with(|| rng.below(256) as u8);
        let room = 20 + rng.below(1500) as u32;
        header[0] = 0x45;
        header[2..4].copy_from_slice(&(room as u16 - rng.below(3).min(1) as u16).to_be_bytes());
        (header[12], header[16]) = (1 + rng.below(126) as u8, 128 + rng.below(41) as u8);
        header[8] = header[8].max(2);
        match rng.below(12) {
            0 => header[0] = rng.below(256) as u8,
            1 => header[2..4].copy_from_slice(&(rng.below(40) as u16).to_be_bytes()),
            2 => header[2..4].copy_from_slice(&(room as u16 + 1).to_be_bytes()),
            3 => header[8] = rng.below(3) as u8,
            4 => header[12] = [0, 127, 169, 223, 224, 255][rng.below(6) as usize],
            5 => header[16..18].copy_from_slice(&[169, 253 + rng.below(3) as u8]),
            6 => header[16] = [0, 127, 223, 224][rng.below(4) as usize],
            _ => {}
        }
        header[10..12].fill(0);
        let sum = checksum::compute(&header).wrapping_add(u16::from(rng.below(8) == 0));
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        (header, room)
    }

    /// Whether it is sound, byte by byte, and what its bytes 8 to 11 become.
    fn plain(header: &[u8; 20], room: u32) -> Option<(u32, [u8; 4])> {
        let len = u32::from(u16::from_be_bytes([header[2], header[3]]));
        let forwards = |octets: &[u8]| {
            !matches!(octets[0], 0 | 127 | 224..) && (octets[0], octets[1]) != (169, 254)
        };
        let is_sound = header[0] == 0x45
            && (20..=room).contains(&len)
            && header[8] > 1
            && checksum::verify(header)
            && forwards(&header[12..])
            && forwards(&header[16..]);
        let mut aged = *header;
        aged[8] = aged[8].wrapping_sub(1);
        aged[10..12].fill(0);
        let sum = checksum::compute(&aged).to_be_bytes();
        is_sound.then_some((len, [aged[8], aged[9], sum[0], sum[1]]))
    }

    #[test]
    fn every_instruction_set_finds_the_same() {
        let mut rng = Rng::new(1);
        let mut counts = [0_u32; 2];
        for round in 0..if cfg!(miri) { 2 } else { 300 } {
            let count = 1 + round % CHUNK;
            let chunk: Vec<_> = (0..count).map(|_| header(&mut rng)).collect();
            for isa in Isa::available() {
                let mut headers = Headers::default();
                let v4 = &mut headers.v4;
                for (header, room) in &chunk {
                    let packet = [&header[..], &vec![0; *room as usize - 20]].concat();
                    assert!(v4.push(&Paths::default(), &packet));
                }
                isa.level().run(Check(v4));
                for (at, (header, room)) in chunk.iter().enumerate() {
                    let Sound { len, aged } = v4.sound[at];
                    let found = (len > 0).then_some((len, aged));
                    assert_eq!(found, plain(header, *room), "{isa:?} {header:?} {room}");
                    counts[usize::from(len > 0)] += 1;
                }
            }
        }
        assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
    }
}
