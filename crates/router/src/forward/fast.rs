//! Ordinary packets, a burst at a time: few bytes read, few branches, one batch of lookups for each family.
//!
//! ```text
//!   1  each packet     link header, IP header  ──► key of its family, Note {offset, length, TTL and checksum to write};
//!                                                  not ordinary: Slow
//!   2  each family     lookup_batch(keys)      ──► hops
//!   3  each packet     hop ──► group ──► exit; writes MAC addresses, TTL, checksum; to the exit's port
//! ```
//!
//! Ordinary is: addressed to the port's MAC address, at most one VLAN tag, a sound header, IPv4 without options or IPv6
//! without hop-by-hop options, TTL above 1, addresses that are forwarded and are none of the router's. Whatever else,
//! and whatever has no ready exit that it fits through, goes to [`slow`](super::slow), unchanged. Packets that leave by a
//! port keep their order.

use fibula_core::Hop;
use fibula_packet::ether_type;

use super::addresses::{forwards_v4, forwards_v6};
use super::{Forwarder, Reason, Run, hash};
use crate::Packet;
use crate::egress::{Exit, Kind, Paths};

/// Packets that are worked on together: their notes and keys stay in the first-level cache.
const CHUNK: usize = 64;

/// What the first phase found out about the packets of a chunk.
pub(super) struct Chunk {
    notes: [Note; CHUNK],
    v4: Keys<u32>,
    v6: Keys<u128>,
}

struct Keys<A> {
    count: usize,
    keys: [A; CHUNK],
    hops: [Hop; CHUNK],
}

#[derive(Clone, Copy)]
struct Note {
    class: Class,
    /// Where the IP header begins.
    at: u8,
    /// The length of the IP packet.
    len: u32,
    /// What is to be written: of IPv4 bytes 8 to 11, of IPv6 byte 7.
    aged: [u8; 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Slow,
    V4,
    V6,
}

const SLOW: Note = Note { class: Class::Slow, at: 0, len: 0, aged: [0; 4] };

impl Default for Chunk {
    fn default() -> Self {
        let hops = [Hop::NONE; CHUNK];
        Self {
            notes: [SLOW; CHUNK],
            v4: Keys { count: 0, keys: [0; CHUNK], hops },
            v6: Keys { count: 0, keys: [0; CHUNK], hops },
        }
    }
}

/// What was forwarded, to be counted at the end: packets and bytes of IPv4, of IPv6.
type Forwarded = [[u64; 2]; 2];

impl Forwarder {
    /// Forwards a burst.
    pub(super) fn fast<'p>(&mut self, run: &mut Run<'_, 'p>, burst: &mut Vec<Packet<'p>>) {
        let mut chunk = self.chunk.take().unwrap_or_default();
        let mut forwarded = Forwarded::default();
        let mut packets = burst.drain(..);
        while !packets.as_slice().is_empty() {
            let some = &packets.as_slice()[..packets.len().min(CHUNK)];
            let count = some.len();
            chunk.read(run.view.egress, some);
            chunk.v4.look_up(&run.view.v4);
            chunk.v6.look_up(&run.view.v6);
            self.leave(run, &chunk, packets.by_ref().take(count), &mut forwarded);
        }
        self.chunk = Some(chunk);
        for (reason, [packets, bytes]) in
            [Reason::ForwardedV4, Reason::ForwardedV6].into_iter().zip(forwarded)
        {
            self.tally.add(reason, packets, bytes);
        }
    }

    /// The third phase.
    #[inline]
    fn leave<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        chunk: &Chunk,
        packets: impl Iterator<Item = Packet<'p>>,
        forwarded: &mut Forwarded,
    ) {
        let view = run.view;
        let (mut next_v4, mut next_v6) = (chunk.v4.hops.iter(), chunk.v6.hops.iter());
        for (mut packet, note) in packets.zip(&chunk.notes) {
            let (groups, hop) = match note.class {
                Class::V4 => (view.v4.groups, next_v4.next()),
                Class::V6 => (view.v6.groups, next_v6.next()),
                Class::Slow => (&[][..], None),
            };
            // No hop is a number beyond every slice.
            let hop = hop.map_or(usize::MAX, |hop| hop.to_bits() as usize);
            let flow = || self.flow(note, &packet);
            let mut exit = view.egress.exit(groups.get(hop).copied(), flow);
            if exit.kind == Kind::OnLink {
                exit = on_link(view.egress, exit, note, &packet).unwrap_or(exit);
            }
            // An exit that is not ready has the limit 0.
            if note.len > exit.limit || note.class == Class::Slow {
                self.slow(run, packet);
                continue;
            }
            let sum = &mut forwarded[usize::from(note.class == Class::V6)];
            sum[0] += 1;
            sum[1] += packet.bytes().len() as u64;
            if usize::from(note.at) != exit.link_len() {
                if !relink(exit, note, &mut packet, run) {
                    // The bytes are as they came in; there it is counted.
                    sum[0] -= 1;
                    sum[1] -= packet.bytes().len() as u64;
                    self.slow(run, packet);
                    continue;
                }
            } else {
                packet.set_len(usize::from(note.at) + note.len as usize);
                exit.write_macs(packet.bytes_mut());
            }
            age(note, exit, packet.bytes_mut());
            run.outcome.send[usize::from(exit.port)].push(packet);
        }
    }

    /// The hash of an ordinary packet's flow.
    #[inline]
    fn flow(&self, note: &Note, packet: &Packet<'_>) -> u32 {
        let end = usize::from(note.at) + note.len as usize;
        let bytes = packet.bytes().get(..end).unwrap_or_default();
        hash::of_ordinary(self.options.hash_seed, bytes, note.at.into())
    }
}

impl Chunk {
    /// The first phase.
    #[inline]
    fn read(&mut self, paths: &Paths, packets: &[Packet<'_>]) {
        (self.v4.count, self.v6.count) = (0, 0);
        let (mut port, mut mac) = (u16::MAX, u64::MAX);
        for (packet, note) in packets.iter().zip(&mut self.notes) {
            if packet.port != port {
                (port, mac) = (packet.port, paths.mac(packet.port));
            }
            *note = read(paths, mac, packet.bytes(), &mut self.v4, &mut self.v6).unwrap_or(SLOW);
        }
    }
}

impl<A: fibula_core::Addr> Keys<A> {
    #[inline]
    fn push(&mut self, key: A) {
        // As many keys as packets.
        self.keys[self.count % CHUNK] = key;
        self.count += 1;
    }

    /// The second phase.
    #[inline]
    fn look_up(&mut self, side: &super::Side<'_, A>) {
        if self.count > 0 {
            let count = self.count.min(CHUNK);
            side.engine.lookup_batch(&self.keys[..count], &mut self.hops[..count]);
        }
    }
}

#[inline]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Reads a packet, and adds its key if it is an ordinary one.
#[inline(always)]
fn read(
    paths: &Paths,
    mac: u64,
    bytes: &[u8],
    v4: &mut Keys<u32>,
    v6: &mut Keys<u128>,
) -> Option<Note> {
    let (link, mut rest) = bytes.split_first_chunk::<14>()?;
    if word(link.first_chunk()?) << 16 != mac {
        return None;
    }
    let mut ether_type = u16::from_be_bytes([link[12], link[13]]);
    let mut at = 14;
    if ether_type == ether_type::VLAN {
        let (tag, behind) = rest.split_first_chunk::<4>()?;
        ether_type = u16::from_be_bytes([tag[2], tag[3]]);
        (at, rest) = (18, behind);
    }
    match ether_type {
        ether_type::IPV4 => {
            let (key, note) = read_v4(at, rest)?;
            if paths.may_be_own(key) {
                return None;
            }
            v4.push(key);
            Some(note)
        }
        ether_type::IPV6 => {
            let (key, note) = read_v6(at, rest)?;
            if paths.may_be_own_v6(key) {
                return None;
            }
            v6.push(key);
            Some(note)
        }
        _ => None,
    }
}

/// Words are read in little-endian order: a sum in one's complement arithmetic is the same in both orders, but for the
/// order of its own bytes (RFC 1071, section 2 (B)).
#[inline(always)]
fn read_v4(at: u8, packet: &[u8]) -> Option<(u32, Note)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let (first, second) =
        (word(header[..8].try_into().ok()?), word(header[8..16].try_into().ok()?));
    let last = u32::from_le_bytes(header[16..].try_into().ok()?);
    let halves = |word: u64| (word & 0xffff_ffff) + (word >> 32);
    let sum = halves(halves(first) + halves(second) + u64::from(last));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let len = usize::from(((first >> 16) as u16).swap_bytes());
    let (source, destination) = (((second >> 32) as u32).swap_bytes(), last.swap_bytes());
    let ttl = second as u8;
    let is_ordinary = (first as u8 == 0x45)
        & (sum == 0xffff)
        & (len >= 20)
        & (len <= packet.len())
        & (ttl > 1)
        & forwards_v4(source)
        & forwards_v4(destination);
    if !is_ordinary {
        return None;
    }
    // Equation 3 of RFC 1624. The word with the TTL as its lower half becomes less by one: ~m + m' = 0xfffe.
    let changed = (!(second >> 16) & 0xffff) + 0xfffe;
    let changed = (changed & 0xffff) + (changed >> 16);
    let aged = ((second as u16 - 1) as u32 | (!changed as u32) << 16).to_le_bytes();
    Some((destination, Note { class: Class::V4, at, len: len as u32, aged }))
}

#[inline(always)]
fn read_v6(at: u8, packet: &[u8]) -> Option<(u128, Note)> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let address = |bytes: &[u8]| bytes.try_into().map(u128::from_be_bytes);
    let (source, destination) = (address(&header[8..24]).ok()?, address(&header[24..]).ok()?);
    let len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let (next, limit) = (header[6], header[7]);
    let is_ordinary = (header[0] >> 4 == 6)
        & (len <= packet.len())
        & (next != fibula_packet::extension::HOP_BY_HOP)
        & (limit > 1)
        & forwards_v6(source)
        & forwards_v6(destination);
    if !is_ordinary {
        return None;
    }
    let aged = [limit.wrapping_sub(1), 0, 0, 0];
    Some((destination, Note { class: Class::V6, at, len: len as u32, aged }))
}

/// The exit to a destination on the link.
fn on_link<'a>(
    paths: &'a Paths,
    exit: &Exit,
    note: &Note,
    packet: &Packet<'_>,
) -> Option<&'a Exit> {
    let ip = packet.bytes().get(note.at.into()..)?;
    match note.class {
        Class::V4 => paths.neighbour(exit.port, (*ip.get(16..)?.first_chunk::<4>()?).into()),
        Class::V6 => paths.neighbour(exit.port, (*ip.get(24..)?.first_chunk::<16>()?).into()),
        Class::Slow => None,
    }
}

/// Writes a link header of another length than the packet came with. `false`, and nothing is changed, if there is no room.
fn relink(exit: &Exit, note: &Note, packet: &mut Packet<'_>, run: &Run<'_, '_>) -> bool {
    let fits = exit.fits(run.pool, note.at.into(), packet);
    if fits {
        let ether_type = if note.class == Class::V4 { ether_type::IPV4 } else { ether_type::IPV6 };
        exit.put(ether_type, note.at.into(), note.len as usize, packet);
    }
    fits
}

/// Writes the new TTL and checksum, or hop limit.
#[inline]
fn age(note: &Note, exit: &Exit, bytes: &mut [u8]) {
    let at = exit.link_len();
    match note.class {
        Class::V4 => bytes[at + 8..at + 12].copy_from_slice(&note.aged),
        _ => bytes[at + 7] = note.aged[0],
    }
}
