//! The headers of ordinary packets: gathered from a chunk of packets, checked and looked up together.

use std::array;

use fibula_core::{Family, Hop};
use fibula_packet::{ether_type, extension};
use fibula_simd::{Kernel, Level, Simd};

use super::View;
use super::addresses::{forwards_v4_word, forwards_v6_words};
use crate::Packet;
use crate::egress::{GroupId, Own, Paths};

/// Number of packets processed together. Their parsed headers fit into the first-level cache.
pub(crate) const CHUNK: usize = 128;

/// How many headers are checked at a time.
const LANES: usize = 16;

/// The parsed headers of a chunk of packets.
#[derive(Clone)]
pub(super) struct Headers {
    kinds: [HeaderKind; CHUNK],
    v4: V4,
    v6: V6,
    groups: [GroupId; CHUNK],
}

/// Packets of one family.
pub(super) struct OfFamily<'a> {
    /// Those that are not ordinary have the length 0.
    pub(super) sound: &'a [Sound],
    pub(super) hops: &'a [Hop],
    /// Room for the groups of the hops.
    pub(super) groups: &'a mut [GroupId; CHUNK],
}

/// The kind of a packet according to its link header.
#[derive(Clone, Copy)]
enum HeaderKind {
    /// It is not an ordinary one.
    Slow,
    /// An IPv4 header begins at this byte. Whether it is sound is in [`V4`].
    V4(u8),
    /// An IPv6 header begins there. Whether it is sound is in [`V6`].
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
    /// The headers' first 16 bytes.
    words: [[u32; 4]; CHUNK],
    /// Their last 16 bytes, the destination, which is also in `keys`.
    to: [[u32; 4]; CHUNK],
    keys: [u128; CHUNK],
    /// Bytes from the header to the end of the frame.
    rooms: [u32; CHUNK],
    sound: [Sound; CHUNK],
    hops: [Hop; CHUNK],
}

/// The result of checking a header.
#[derive(Clone, Copy, Default)]
pub(super) struct Sound {
    /// Length of the IP packet; 0 if the packet is not an ordinary one.
    pub(super) len: u32,
    /// The bytes to write: bytes 8 to 11 of an IPv4 header, byte 7 of an IPv6 header.
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
        let (words, rooms) = ([[0; 4]; CHUNK], [0; CHUNK]);
        Self {
            kinds: [HeaderKind::Slow; CHUNK],
            v4: V4 { count: 0, words, keys: [0; CHUNK], rooms, sound, hops },
            v6: V6 { count: 0, words, to: words, keys: [0; CHUNK], rooms, sound, hops },
            groups: [0; CHUNK],
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
            level.run(CheckV4(&mut self.v4, view.egress.own()));
            let (keys, hops) = (&self.v4.keys[..self.v4.count], &mut self.v4.hops);
            view.v4.engine.lookup_batch(keys, &mut hops[..self.v4.count]);
        }
        if self.v6.count > 0 {
            level.run(CheckV6(&mut self.v6, view.egress.own()));
            let (keys, hops) = (&self.v6.keys[..self.v6.count], &mut self.v6.hops);
            view.v6.engine.lookup_batch(keys, &mut hops[..self.v6.count]);
        }
        family
    }

    /// Reads the packets' headers. Most chunks have a single family, which needs fewer checks for each packet.
    #[inline]
    fn gather(&mut self, paths: &Paths, packets: &[Packet<'_>]) -> Option<Family> {
        (self.v4.count, self.v6.count) = (0, 0);
        let V4 { words, keys, rooms, .. } = &mut self.v4;
        let mut rows = words.iter_mut().zip(keys).zip(rooms);
        if all_plain(paths, ether_type::IPV4, packets, |ip| {
            let header = header_v4(ip)?;
            let ((words, key), room) = rows.next()?;
            (*words, *key, *room) = header;
            Some(())
        }) {
            self.v4.count = packets.len();
            return Some(Family::V4);
        }
        let V6 { words, to, keys, rooms, .. } = &mut self.v6;
        let mut rows = words.iter_mut().zip(to).zip(keys).zip(rooms);
        if all_plain(paths, ether_type::IPV6, packets, |ip| {
            let header = header_v6(ip)?;
            let (((words, to), key), room) = rows.next()?;
            (*words, *to, *key, *room) = header;
            Some(())
        }) {
            self.v6.count = packets.len();
            return Some(Family::V6);
        }
        let (mut port, mut mac) = (u16::MAX, u64::MAX);
        for (packet, kind) in packets.iter().zip(&mut self.kinds) {
            if packet.port != port {
                (port, mac) = (packet.port, paths.mac(packet.port));
            }
            let read = gather(mac, packet.bytes(), &mut self.v4, &mut self.v6);
            *kind = read.unwrap_or(HeaderKind::Slow);
        }
        None
    }

    /// The results for the first packets, which have IPv4 headers directly after link headers without a tag.
    pub(super) fn v4(&mut self, count: usize) -> OfFamily<'_> {
        let V4 { sound, hops, .. } = &self.v4;
        OfFamily { sound: &sound[..count], hops: &hops[..count], groups: &mut self.groups }
    }

    /// The same for IPv6.
    pub(super) fn v6(&mut self, count: usize) -> OfFamily<'_> {
        let V6 { sound, hops, .. } = &self.v6;
        OfFamily { sound: &sound[..count], hops: &hops[..count], groups: &mut self.groups }
    }

    /// The results for packets of both families.
    #[inline(always)]
    pub(super) fn of_both(&self) -> impl Iterator<Item = Option<Found>> {
        let (mut v4, mut v6) = (0, 0);
        self.kinds.iter().map(move |&kind| {
            // As many headers as kinds of the family.
            match kind {
                HeaderKind::Slow => None,
                HeaderKind::V4(at) => {
                    let header = v4 % CHUNK;
                    v4 += 1;
                    let (sound, hop) = (self.v4.sound[header], self.v4.hops[header]);
                    (sound.len > 0).then_some(Found { is_v4: true, at: at.into(), sound, hop })
                }
                HeaderKind::V6(at) => {
                    let header = v6 % CHUNK;
                    v6 += 1;
                    let (sound, hop) = (self.v6.sound[header], self.v6.hops[header]);
                    (sound.len > 0).then_some(Found { is_v4: false, at: at.into(), sound, hop })
                }
            }
        })
    }
}

/// Reads IP packets of this EtherType, up to one that is not right behind a link header to the router without a tag, or
/// cannot be read. Returns whether it read all of them. Packets of a port are mostly adjacent, so its address is
/// fetched once for each such run.
#[inline(always)]
fn all_plain(
    paths: &Paths,
    kind: u16,
    packets: &[Packet<'_>],
    mut read: impl FnMut(&[u8]) -> Option<()>,
) -> bool {
    let mut rest = packets;
    while let Some(first) = rest.first() {
        let plain =
            Plain { port: first.port, mac: paths.mac(first.port), kind: kind.to_be_bytes() };
        let other = rest.iter().position(|packet| plain.ip(packet).and_then(&mut read).is_none());
        match other {
            None => return true,
            Some(0) => return false,
            Some(count) => rest = &rest[count..],
        }
    }
    true
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
        let is_plain = addressed(link) == self.mac && link[12..] == self.kind;
        (packet.port == self.port && is_plain).then_some(ip)
    }
}

/// The MAC address that a frame is for, as [`Paths::mac`] has it, and above it the bit of the sender's address that is
/// set for a group: a frame of a group is for no port.
#[inline(always)]
fn addressed(link: &[u8; 14]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *link;
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) << 15
}

/// Reads a packet, and adds its header if it may be an ordinary one.
#[inline(always)]
fn gather(mac: u64, bytes: &[u8], v4: &mut V4, v6: &mut V6) -> Option<HeaderKind> {
    let (link, rest) = bytes.split_first_chunk::<14>()?;
    let to = addressed(link);
    let (mut at, mut ip, mut kind) = (14, rest, [link[12], link[13]]);
    if kind == ether_type::VLAN.to_be_bytes() {
        let (tag, rest) = rest.split_first_chunk::<4>()?;
        // A tag for its priority alone; others are for the complete rules.
        if (tag[0] & 15) | tag[1] != 0 {
            return None;
        }
        (at, ip, kind) = (18, rest, [tag[2], tag[3]]);
    }
    match u16::from_be_bytes(kind) {
        ether_type::IPV4 if to == mac => v4.push(ip).then_some(HeaderKind::V4(at)),
        ether_type::IPV6 if to == mac => v6.push(ip).then_some(HeaderKind::V6(at)),
        _ => None,
    }
}

impl V4 {
    /// Adds a header, sound or not.
    #[inline(always)]
    fn push(&mut self, packet: &[u8]) -> bool {
        let Some(header) = header_v4(packet) else { return false };
        // As many as packets.
        let at = self.count % CHUNK;
        (self.words[at], self.keys[at], self.rooms[at]) = header;
        self.count += 1;
        true
    }
}

/// The words of a header without its destination, the destination, and the bytes from the header to the end of the
/// frame.
#[inline(always)]
fn header_v4(packet: &[u8]) -> Option<([u32; 4], u32, u32)> {
    let (words, _) = packet.first_chunk::<20>()?.as_chunks::<4>();
    let source = array::from_fn(|word| u32::from_le_bytes(words[word]));
    Some((source, u32::from_be_bytes(words[4]), packet.len() as u32))
}

/// The IPv4 headers of a chunk are checked. There is nothing but arrays in the first loop, of which the compiler makes
/// vectors: eight headers at a time with AVX2 and AVX-512. The second one leaves packets from and to the router's own
/// addresses to the complete rules.
struct CheckV4<'a>(&'a mut V4, &'a Own);

impl Kernel for CheckV4<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let V4 { count, words, keys, rooms, sound, .. } = self.0;
        let up_to = count.next_multiple_of(LANES).min(CHUNK);
        let inputs = words[..up_to].iter().zip(&keys[..up_to]).zip(&rooms[..up_to]);
        for (((words, &key), &room), sound) in inputs.zip(&mut sound[..up_to]) {
            *sound = check_v4(*words, key, room);
        }
        let rows = words[..up_to].as_chunks().0.iter().zip(keys[..up_to].as_chunks().0);
        for ((words, keys), sound) in rows.zip(sound.as_chunks_mut().0) {
            let (mut from, mut to) = ([0; LANES], [0; LANES]);
            for (hash, words) in from.iter_mut().zip::<&[[u32; 4]; LANES]>(words) {
                *hash = Own::hash_v4(words[3].swap_bytes());
            }
            for (hash, key) in to.iter_mut().zip::<&[u32; LANES]>(keys) {
                *hash = Own::hash_v4(*key);
            }
            refuse(sound, self.1.may_have(simd, &from) | self.1.may_have(simd, &to));
        }
    }
}

/// Leaves these packets to the complete rules. There are nearly none.
#[inline(always)]
fn refuse(sound: &mut [Sound; LANES], mut which: u16) {
    while which != 0 {
        sound[which.trailing_zeros() as usize % LANES].len = 0;
        which &= which - 1;
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
    /// Adds a header, sound or not.
    #[inline(always)]
    fn push(&mut self, packet: &[u8]) -> bool {
        let Some(header) = header_v6(packet) else { return false };
        // As many as packets.
        let at = self.count % CHUNK;
        (self.words[at], self.to[at], self.keys[at], self.rooms[at]) = header;
        self.count += 1;
        true
    }
}

/// The first words of a header, the destination as words and as a number, and the bytes from the header to the end of
/// the frame.
#[inline(always)]
fn header_v6(packet: &[u8]) -> Option<([u32; 4], [u32; 4], u128, u32)> {
    let header = packet.first_chunk::<40>()?;
    let ([first, _], _) = header.as_chunks::<16>() else { return None };
    let to = header.last_chunk::<16>()?;
    let words = |bytes: &[u8; 16]| {
        let (words, _) = bytes.as_chunks::<4>();
        array::from_fn(|word| u32::from_le_bytes(words[word]))
    };
    Some((words(first), words(to), u128::from_be_bytes(*to), packet.len() as u32))
}

/// The same for IPv6 headers.
struct CheckV6<'a>(&'a mut V6, &'a Own);

impl Kernel for CheckV6<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let V6 { count, words, to, rooms, sound, .. } = self.0;
        let up_to = count.next_multiple_of(LANES).min(CHUNK);
        let inputs = words[..up_to].iter().zip(&to[..up_to]).zip(&rooms[..up_to]);
        for (((words, to), &room), sound) in inputs.zip(&mut sound[..up_to]) {
            *sound = check_v6(*words, *to, room);
        }
        for (to, sound) in to[..up_to].as_chunks().0.iter().zip(sound.as_chunks_mut().0) {
            let mut hashes = [0; LANES];
            for (hash, to) in hashes.iter_mut().zip::<&[[u32; 4]; LANES]>(to) {
                *hash = Own::hash_v6(*to);
            }
            refuse(sound, self.1.may_have(simd, &hashes));
        }
    }
}

/// Words are read in little-endian order.
#[inline(always)]
fn check_v6([first, second, source, source_2]: [u32; 4], to: [u32; 4], room: u32) -> Sound {
    let len = 40 + ((second & 0xff) << 8 | second >> 8 & 0xff);
    let (next, limit) = (second >> 16 & 0xff, second >> 24);
    let is_ordinary = (first & 0xf0 == 0x60)
        & (len <= room)
        & (len <= u16::MAX.into())
        & (next != u32::from(extension::HOP_BY_HOP))
        & (limit > 1)
        & forwards_v6_words(source, source_2)
        & forwards_v6_words(to[0], to[1]);
    let aged = limit.wrapping_sub(1);
    Sound { len: if is_ordinary { len } else { 0 }, aged: aged.to_le_bytes() }
}

#[cfg(test)]
mod tests;
