//! Forwards ordinary packets, a burst at a time, with few bytes read, few branches, and one batch of lookups for each
//! family.
//!
//! ```text
//!   1  each packet     link header ──► version, where the IP header begins; the header's words, and the key     (headers)
//!   2  each header     sound, and forwarded? TTL and checksum to write
//!   3  each family     lookup_batch(keys) ──► hops
//!   4  each packet     hop ──► group ──► exit; writes MAC addresses, TTL, checksum; moved to the exit's port
//! ```
//!
//! An ordinary packet is addressed to the port's MAC address and has at most one VLAN tag, a valid header, IPv4
//! without options or IPv6 without hop-by-hop options, a TTL above 1, and addresses that may be forwarded and are not
//! the router's. All other packets, and packets without a ready exit that they fit through, are passed to
//! [`slow`](super::slow) unchanged. Packets that leave by a port keep their order.

use fibula_core::Family;
use fibula_packet::ether_type;

use super::headers::{CHUNK, Found, OfFamily, Sound};
use super::{Forwarder, Reason, Run, View, hash};
use crate::egress::{Exit, ExitKind, GroupId, Paths};
use crate::leaving::Leaving;
use crate::{Packet, Pool};

impl Forwarder {
    /// Forwards a burst.
    pub(super) fn fast<'p>(&mut self, run: &mut Run<'_, 'p>, burst: &mut Vec<Packet<'p>>) {
        let mut headers = self.headers.take().unwrap_or_default();
        let mut leaving = Leaving::new(burst);
        loop {
            let packets = leaving.rest(CHUNK);
            let count = packets.len();
            if count == 0 {
                break;
            }
            match headers.read(self.level, run.view, packets) {
                Some(Family::V4) => {
                    self.depart_family::<true>(run, &mut leaving, headers.v4(count));
                }
                Some(Family::V6) => {
                    self.depart_family::<false>(run, &mut leaving, headers.v6(count));
                }
                None => self.depart_all(run, &mut leaving, headers.of_both().take(count)),
            }
        }
        self.headers = Some(headers);
    }

    /// Rewrites the packets of a chunk of one family, and moves each to its port: the plain ones at its beginning,
    /// which are nearly always all, in loops of their own.
    fn depart_family<'p, const IS_V4: bool>(
        &mut self,
        run: &mut Run<'_, 'p>,
        leaving: &mut Leaving<'_, 'p>,
        mut of: OfFamily<'_>,
    ) {
        let count = resolve::<IS_V4>(run.view, &mut of);
        let (plain, sound) = (&of.groups[..count], &of.sound[..count]);
        let bytes = depart_plain::<IS_V4>(run.view, leaving, &mut run.outcome.send, plain, sound);
        let reason = if IS_V4 { Reason::ForwardedV4 } else { Reason::ForwardedV6 };
        self.tally.add(reason, count as u64, bytes);
        // Where one packet is not plain (equal-cost paths, an address of the router), the next ones may not be, either.
        let rest = of.sound[count..].iter().zip(&of.hops[count..]);
        self.depart_all(
            run,
            leaving,
            rest.map(|(&sound, &hop)| {
                (sound.len > 0).then_some(Found { is_v4: IS_V4, at: 14, sound, hop })
            }),
        );
    }

    /// Rewrites the packets of a chunk that are ordinary, and moves each to its port.
    fn depart_all<'p>(
        &mut self,
        run: &mut Run<'_, 'p>,
        leaving: &mut Leaving<'_, 'p>,
        chunk: impl Iterator<Item = Option<Found>>,
    ) {
        // Packets and bytes, of both families and of IPv4. Sums in memory would have each packet wait for the one
        // before.
        let (mut both, mut v4) = ((0, 0), (0, 0));
        let (view, pool) = (run.view, run.pool);
        let mut ports = run.outcome.send.as_mut_slice();
        for found in chunk {
            let packet = leaving.first();
            let frame_len = packet.bytes().len() as u64;
            let port = found.and_then(|found| self.depart(view, pool, packet, found));
            match port.and_then(|port| ports.get_mut(usize::from(port))) {
                Some(port) => leaving.push_to(port),
                None => {
                    self.slow(run, leaving.take());
                    ports = run.outcome.send.as_mut_slice();
                    continue;
                }
            }
            let is_v4 = u64::from(found.is_some_and(|found| found.is_v4));
            both = (both.0 + 1, both.1 + frame_len);
            v4 = (v4.0 + is_v4, v4.1 + is_v4 * frame_len);
        }
        self.tally.add(Reason::ForwardedV4, v4.0, v4.1);
        self.tally.add(Reason::ForwardedV6, both.0 - v4.0, both.1 - v4.1);
    }

    /// Rewrites an ordinary packet, and returns its egress port. Returns `None` and changes nothing if no ready exit
    /// has a large enough MTU.
    #[inline(always)]
    fn depart(
        &self,
        view: &View<'_>,
        pool: &Pool,
        packet: &mut Packet<'_>,
        found: Found,
    ) -> Option<u16> {
        let paths = view.egress;
        let groups = if found.is_v4 { view.v4.groups } else { view.v6.groups };
        // No hop is a number beyond every slice.
        let mut exit = paths.exit(groups.get(found.hop.to_bits() as usize).copied());
        let Found { is_v4, at, sound, .. } = found;
        // An exit that is not ready, or writes a tag, has the limit 0.
        if sound.len <= exit.plain_limit && at == 14 {
            rewrite(exit, is_v4, sound, packet);
            return Some(exit.port);
        }
        if sound.len > exit.limit() {
            let ip = packet.bytes().get(at..)?.get(..sound.len as usize)?;
            exit = self.choose(paths, exit, is_v4, ip)?;
        }
        let fits = sound.len <= exit.limit();
        (fits && relink(exit, is_v4, at, sound, packet, pool)).then_some(exit.port)
    }

    /// The exit of a packet whose group does not have the same one for all.
    #[inline(never)]
    fn choose<'a>(
        &self,
        paths: &'a Paths,
        mut exit: &'a Exit,
        is_v4: bool,
        ip: &[u8],
    ) -> Option<&'a Exit> {
        if exit.kind == ExitKind::Shared {
            exit = paths.share(exit, hash::of_ordinary(self.options.hash_seed, ip));
        }
        if exit.kind != ExitKind::OnLink {
            return Some(exit);
        }
        match is_v4 {
            true => paths.neighbour(exit.port, (*ip.get(16..)?.first_chunk::<4>()?).into()),
            false => paths.neighbour(exit.port, (*ip.get(24..)?.first_chunk::<16>()?).into()),
        }
    }
}

/// Finds the groups of packets, up to one that is not ordinary, or whose group does not have one exit that is ready,
/// writes no tag, and has the MTU. Returns their number.
#[inline(never)]
fn resolve<const IS_V4: bool>(view: &View<'_>, of: &mut OfFamily<'_>) -> usize {
    let groups = if IS_V4 { view.v4.groups } else { view.v6.groups };
    let exits = view.egress.ways();
    let mut count = 0;
    for ((sound, hop), to) in of.sound.iter().zip(of.hops).zip(&mut *of.groups) {
        // No hop is a number beyond every slice.
        let Some(&group) = groups.get(hop.to_bits() as usize) else { break };
        let Some(exit) = exits.get(group as usize) else { break };
        // Neither a length of 0 nor a limit of 0 passes.
        if sound.len.wrapping_sub(1) >= exit.plain_limit {
            break;
        }
        *to = group;
        count += 1;
    }
    count
}

/// Rewrites packets whose groups were resolved, and moves them to their ports. Returns the bytes of their frames.
/// Nearly all packets are handled here, so the loop does nothing else and keeps its variables in registers.
#[inline(never)]
fn depart_plain<'p, const IS_V4: bool>(
    view: &View<'_>,
    leaving: &mut Leaving<'_, 'p>,
    ports: &mut [Vec<Packet<'p>>],
    groups: &[GroupId],
    sound: &[Sound],
) -> u64 {
    let exits = view.egress.ways();
    let mut bytes = 0;
    leaving.sort(ports, groups.iter().zip(sound), |packet, (&group, &sound)| {
        let exit = &exits[group as usize];
        bytes += packet.bytes().len() as u64;
        rewrite(exit, IS_V4, sound, packet);
        exit.port
    });
    bytes
}

/// Decrements the TTL of a packet with a link header of 14 bytes, writes MAC addresses, and cuts off the bytes after
/// the IP packet.
#[inline(always)]
fn rewrite(exit: &Exit, is_v4: bool, sound: Sound, packet: &mut Packet<'_>) {
    // A length that was written just now would have to reach the cache before the packet can be moved.
    if packet.bytes().len() > 14 + sound.len as usize {
        packet.truncate(14 + sound.len as usize);
    }
    // A whole header was seen there.
    let Some(head) = packet.bytes_mut().first_chunk_mut::<26>() else { return };
    head[..12].copy_from_slice(&exit.header[..12]);
    match is_v4 {
        true => head[22..].copy_from_slice(&sound.aged),
        false => head[21] = sound.aged[0],
    }
}

/// Ages a packet, and writes a link header that is not as long as that which it came with, or has a tag. False, and
/// nothing changes, if there is no room.
#[inline(never)]
fn relink(
    exit: &Exit,
    is_v4: bool,
    at: usize,
    sound: Sound,
    packet: &mut Packet<'_>,
    pool: &Pool,
) -> bool {
    let len = sound.len as usize;
    if !exit.fits(pool, at, packet) {
        return false;
    }
    let bytes = packet.bytes_mut();
    match is_v4 {
        true => bytes[at + 8..at + 12].copy_from_slice(&sound.aged),
        false => bytes[at + 7] = sound.aged[0],
    }
    let ether_type = if is_v4 { ether_type::IPV4 } else { ether_type::IPV6 };
    exit.put(ether_type, at, len, packet);
    true
}
