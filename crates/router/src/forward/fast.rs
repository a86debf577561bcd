//! Ordinary packets, a burst at a time: few bytes read, few branches, one batch of lookups for each family.
//!
//! ```text
//!   1  each packet     link header, IP header  ──► key of its family; Note: offset, length, TTL and checksum to write
//!   2  each family     lookup_batch(keys)      ──► hops
//!   3  each packet     hop ──► group ──► exit; writes MAC addresses, TTL, checksum; to the exit's port
//! ```
//!
//! Ordinary is: addressed to the port's MAC address, at most one VLAN tag, a sound header, IPv4 without options or IPv6
//! without hop-by-hop options, TTL above 1, addresses that are forwarded and are none of the router's. Whatever else,
//! and whatever has no ready exit that it fits through, goes to [`slow`](super::slow), unchanged. Packets that leave by a
//! port keep their order.

use fibula_core::{Addr, Hop};
use fibula_packet::{ether_type, extension};

use super::addresses::{both_forward, forwards_v6};
use super::{Forwarder, Reason, Run, Side, hash};
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

/// What is known of an ordinary packet, in one word.
///
/// ```text
/// bits 0..4  4 or 6: the version; 0: it is not ordinary
///      8..16  where the IP header begins: 14 or 18
///     16..32  length of the IP packet
///     32..64  what is to be written: bytes 8 to 11 of the IPv4 header, or byte 7 of the IPv6 header
/// ```
#[derive(Clone, Copy)]
struct Note(u64);

impl Note {
    const SLOW: Self = Self(0);

    #[inline]
    fn new(version: u64, at: u64, len: u16, aged: u32) -> Self {
        Self(version | at << 8 | u64::from(len) << 16 | u64::from(aged) << 32)
    }

    #[inline]
    fn is_v4(self) -> bool {
        self.0 & 4 != 0 && self.0 & 2 == 0
    }

    #[inline]
    fn at(self) -> usize {
        usize::from((self.0 >> 8) as u8)
    }

    #[inline]
    fn len(self) -> usize {
        usize::from((self.0 >> 16) as u16)
    }

    #[inline]
    fn aged(self) -> [u8; 4] {
        ((self.0 >> 32) as u32).to_le_bytes()
    }
}

impl Default for Chunk {
    fn default() -> Self {
        let hops = [Hop::NONE; CHUNK];
        Self {
            notes: [Note::SLOW; CHUNK],
            v4: Keys { count: 0, keys: [0; CHUNK], hops },
            v6: Keys { count: 0, keys: [0; CHUNK], hops },
        }
    }
}

impl Forwarder {
    /// Forwards a burst.
    pub(super) fn fast<'p>(&mut self, run: &mut Run<'_, 'p>, burst: &mut Vec<Packet<'p>>) {
        let mut chunk = self.chunk.take().unwrap_or_default();
        let mut packets = burst.drain(..);
        while !packets.as_slice().is_empty() {
            let some = &packets.as_slice()[..packets.len().min(CHUNK)];
            let count = some.len();
            chunk.read(run.view.egress, some);
            chunk.v4.look_up(&run.view.v4);
            chunk.v6.look_up(&run.view.v6);
            self.leave(run, &chunk, packets.by_ref().take(count));
        }
        self.chunk = Some(chunk);
    }

    /// The third phase.
    #[inline]
    fn leave<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        chunk: &Chunk,
        packets: impl Iterator<Item = Packet<'p>>,
    ) {
        let view = run.view;
        // Packets and bytes; sums in memory would have each packet wait for the one before.
        let (mut v4, mut v6) = ((0, 0), (0, 0));
        let (mut next_v4, mut next_v6) = (chunk.v4.hops.iter(), chunk.v6.hops.iter());
        for (mut packet, &note) in packets.zip(&chunk.notes) {
            let is_v4 = note.is_v4();
            let (groups, hop) = match note.0 {
                0 => {
                    self.slow(run, packet);
                    continue;
                }
                _ if is_v4 => (view.v4.groups, next_v4.next()),
                _ => (view.v6.groups, next_v6.next()),
            };
            // As many hops as notes. No hop is a number beyond every slice.
            let hop = hop.map_or(usize::MAX, |hop| hop.to_bits() as usize);
            let mut exit = view.egress.exit(groups.get(hop).copied());
            // An exit that is not ready has the limit 0.
            if note.len() > exit.limit as usize {
                match self.choose(view.egress, exit, note, packet.bytes()) {
                    Some(chosen) if note.len() <= chosen.limit as usize => exit = chosen,
                    _ => {
                        self.slow(run, packet);
                        continue;
                    }
                }
            }
            let frame_len = packet.bytes().len();
            if note.at() == 14 && exit.link_len() == 14 {
                packet.set_len(14 + note.len());
                // The first phase saw a whole header there.
                if let Some(head) = packet.bytes_mut().first_chunk_mut::<26>() {
                    head[..12].copy_from_slice(&exit.header[..12]);
                    match is_v4 {
                        true => head[22..].copy_from_slice(&note.aged()),
                        false => head[21] = note.aged()[0],
                    }
                }
            } else {
                match relink(exit, note, packet, run) {
                    Ok(done) => packet = done,
                    Err(packet) => {
                        self.slow(run, packet);
                        continue;
                    }
                }
            }
            if is_v4 {
                v4 = (v4.0 + 1, v4.1 + frame_len as u64);
            } else {
                v6 = (v6.0 + 1, v6.1 + frame_len as u64);
            }
            run.outcome.send[usize::from(exit.port)].push(packet);
        }
        self.tally.add(Reason::ForwardedV4, v4.0, v4.1);
        self.tally.add(Reason::ForwardedV6, v6.0, v6.1);
    }

    /// The exit of a packet whose group does not have the same one for all.
    #[inline(never)]
    fn choose<'a>(
        &self,
        paths: &'a Paths,
        mut exit: &'a Exit,
        note: Note,
        frame: &[u8],
    ) -> Option<&'a Exit> {
        let (at, end) = (note.at(), note.at() + note.len());
        let frame = frame.get(..end)?;
        if exit.kind == Kind::Shared {
            exit = paths.share(exit, hash::of_ordinary(self.options.hash_seed, frame, at));
        }
        if exit.kind != Kind::OnLink {
            return Some(exit);
        }
        let ip = frame.get(at..)?;
        match note.is_v4() {
            true => paths.neighbour(exit.port, (*ip.get(16..)?.first_chunk::<4>()?).into()),
            false => paths.neighbour(exit.port, (*ip.get(24..)?.first_chunk::<16>()?).into()),
        }
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
            let found = read(paths, mac, packet.bytes(), &mut self.v4, &mut self.v6);
            *note = found.unwrap_or(Note::SLOW);
        }
    }
}

impl<A: Addr> Keys<A> {
    #[inline]
    fn push(&mut self, key: A) {
        // As many keys as packets.
        self.keys[self.count % CHUNK] = key;
        self.count += 1;
    }

    /// The second phase.
    #[inline]
    fn look_up(&mut self, side: &Side<'_, A>) {
        if self.count > 0 {
            let count = self.count.min(CHUNK);
            side.engine.lookup_batch(&self.keys[..count], &mut self.hops[..count]);
        }
    }
}

#[inline]
fn word<const N: usize>(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word[..N].copy_from_slice(bytes.first_chunk::<N>()?);
    Some(u64::from_le_bytes(word))
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
    if word::<8>(link)? << 16 != mac {
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
fn read_v4(at: u64, packet: &[u8]) -> Option<(u32, Note)> {
    let header = packet.first_chunk::<20>()?;
    let (first, second) = (word::<8>(header)?, word::<8>(&header[8..])?);
    let last = word::<4>(&header[16..])?;
    let halves = |word: u64| (word & 0xffff_ffff) + (word >> 32);
    let sum = halves(halves(first) + halves(second) + last);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let len = ((first >> 16) as u16).swap_bytes();
    let (source, destination) = (((second >> 32) as u32).swap_bytes(), (last as u32).swap_bytes());
    let is_ordinary = (first as u8 == 0x45)
        & (sum == 0xffff)
        & (len >= 20)
        & (usize::from(len) <= packet.len())
        & (second as u8 > 1);
    if !is_ordinary || !both_forward(source, destination) {
        return None;
    }
    // Equation 3 of RFC 1624. The word with the TTL as its lower half becomes less by one: ~m + m' = 0xfffe.
    let changed = (!(second >> 16) & 0xffff) + 0xfffe;
    let changed = (changed & 0xffff) + (changed >> 16);
    let aged = u32::from(second as u16 - 1) | (!changed as u32) << 16;
    Some((destination, Note::new(4, at, len, aged)))
}

#[inline(always)]
fn read_v6(at: u64, packet: &[u8]) -> Option<(u128, Note)> {
    let header = packet.first_chunk::<40>()?;
    let address = |bytes: &[u8]| bytes.try_into().map(u128::from_be_bytes);
    let (source, destination) = (address(&header[8..24]).ok()?, address(&header[24..]).ok()?);
    let payload = u16::from_be_bytes([header[4], header[5]]);
    let (next, limit) = (header[6], header[7]);
    let is_ordinary = (header[0] >> 4 == 6)
        & (40 + usize::from(payload) <= packet.len())
        & (next != extension::HOP_BY_HOP)
        & (limit > 1);
    if !is_ordinary || !forwards_v6(source) || !forwards_v6(destination) {
        return None;
    }
    let note = Note::new(6, at, payload.checked_add(40)?, u32::from(limit) - 1);
    Some((destination, note))
}

/// Ages a packet, and writes a link header that is not as long as that which it came with, or has a tag. `Err` is the packet
/// as it was, if there is no room.
///
/// Packets are passed by value: one whose address is taken in the loop above would lie in memory there, and be read back by
/// wider loads than its fields were written with, for which the processor waits.
#[inline(never)]
fn relink<'p>(
    exit: &Exit,
    note: Note,
    mut packet: Packet<'p>,
    run: &Run<'_, '_>,
) -> Result<Packet<'p>, Packet<'p>> {
    let at = note.at();
    if !exit.fits(run.pool, at, &packet) {
        return Err(packet);
    }
    let bytes = packet.bytes_mut();
    match note.is_v4() {
        true => bytes[at + 8..at + 12].copy_from_slice(&note.aged()),
        false => bytes[at + 7] = note.aged()[0],
    }
    let ether_type = if note.is_v4() { ether_type::IPV4 } else { ether_type::IPV6 };
    exit.put(ether_type, at, note.len(), &mut packet);
    Ok(packet)
}
