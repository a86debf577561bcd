//! Ways out as the programs take them: an egress table, in the words of `bpf/forward.c`.

use std::collections::HashMap;
use std::net::IpAddr;

use super::arena::{LINE, Parts};
use crate::egress::{Egress, EgressPort, Group, Member};

/// Bytes of a `struct exit`, and of a `struct neighbour`.
const RECORD: usize = 32;
/// How many lines a program looks for a neighbour in.
const PROBES: u64 = 4;

// `enum kind`
const PASSED_ON: u16 = 0;
const READY: u16 = 1;
const SHARED: u16 = 2;
const ON_LINK: u16 = 3;

/// A way out.
#[derive(Clone, Copy, Default)]
struct Exit {
    macs: [u8; 12],
    kind: u16,
    port: u16,
    limit: u32,
    at: u32,
    count: u32,
}

impl Exit {
    fn kind(kind: u16) -> Self {
        Self { kind, ..Self::default() }
    }

    fn ready(port: u16, own: &EgressPort, mac: [u8; 6]) -> Self {
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&mac);
        macs[6..].copy_from_slice(&own.mac);
        Self { macs, port, limit: own.mtu, ..Self::kind(READY) }
    }

    fn bytes(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..12].copy_from_slice(&self.macs);
        bytes[12..14].copy_from_slice(&self.kind.to_ne_bytes());
        bytes[14..16].copy_from_slice(&self.port.to_ne_bytes());
        for (to, word) in bytes[16..28].chunks_exact_mut(4).zip([self.limit, self.at, self.count]) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// The ways out of the table's groups. Packets that leave by a port which no program sends to are passed on; so are all
/// that do not leave as they are.
pub(super) fn parts(description: &Egress, is_fast: &[bool], seed: u64) -> Parts<'static> {
    let fast = |port: u16| {
        let own = description.ports.get(usize::from(port))?;
        let is_fast = is_fast.get(usize::from(port)).copied().unwrap_or_default();
        (is_fast && own.vlan.is_none()).then_some(own)
    };
    let ready = |port, mac: Option<[u8; 6]>| match (fast(port), mac) {
        (Some(own), Some(mac)) => Exit::ready(port, own, mac),
        _ => Exit::kind(PASSED_ON),
    };
    let member = |member: &Member| match *member {
        Member::Gateway(at) => match description.adjacencies.get(at as usize) {
            Some(way) => ready(way.port, way.mac),
            None => Exit::kind(PASSED_ON),
        },
        Member::OnLink(port) if fast(port).is_some() => Exit { port, ..Exit::kind(ON_LINK) },
        Member::OnLink(_) => Exit::kind(PASSED_ON),
    };
    let (mut exits, mut shares) = (vec![Exit::kind(PASSED_ON)], Vec::new());
    let mut known = HashMap::new();
    let mut ways = Vec::with_capacity(description.groups.len());
    for group in &description.groups {
        ways.push(match group {
            Group::Forward(members) => match members.as_slice() {
                [only] => member(only),
                [] => Exit::kind(PASSED_ON),
                several => {
                    let (at, count) = (shares.len() as u32, several.len() as u32);
                    shares.extend(several.iter().map(|each| {
                        *known.entry(*each).or_insert_with(|| {
                            exits.push(member(each));
                            (exits.len() - 1) as u32
                        })
                    }));
                    Exit { at, count, ..Exit::kind(SHARED) }
                }
            },
            _ => Exit::kind(PASSED_ON),
        });
    }
    let mut neighbours = Neighbours::with_room(description.neighbours.len());
    for (&(port, address), &mac) in &description.neighbours {
        if fast(port).is_some() {
            exits.push(ready(port, Some(mac)));
            neighbours.insert(port, address, (exits.len() - 1) as u32, seed);
        }
    }
    let bytes = |exits: &[Exit]| exits.iter().flat_map(Exit::bytes).collect();
    let mut parts = Parts::default();
    let at = parts.push_owned(bytes(&ways));
    let exits = parts.push_owned(bytes(&exits));
    let shares = parts.push_words(shares);
    let mask = neighbours.lines as u32 - 1;
    let neighbours = parts.push_owned(neighbours.bytes);
    let layout = [at, ways.len() as u32, exits, shares, neighbours, mask];
    parts.layout[..6].copy_from_slice(&layout);
    parts
}

/// Neighbours by port and address: an open hash table, whose buckets are lines of two. One that finds no room within
/// the probes is left out, and its packets are passed on.
struct Neighbours {
    bytes: Vec<u8>,
    lines: usize,
}

impl Neighbours {
    fn with_room(count: usize) -> Self {
        let lines = count.next_power_of_two();
        Self { bytes: vec![0xff; lines * LINE], lines }
    }

    fn insert(&mut self, port: u16, address: IpAddr, exit: u32, seed: u64) {
        let (bits, tag) = match address {
            IpAddr::V4(v4) => (v4.to_bits().into(), u32::from(port)),
            IpAddr::V6(v6) => (v6.to_bits(), u32::from(port) | 0x1_0000),
        };
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        let bucket = mix(mix(high ^ seed) ^ low ^ u64::from(tag) << 40);
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&high.to_ne_bytes());
        record[8..16].copy_from_slice(&low.to_ne_bytes());
        record[16..20].copy_from_slice(&tag.to_ne_bytes());
        record[20..24].copy_from_slice(&exit.to_ne_bytes());
        for probe in 0..PROBES {
            let line = bucket.wrapping_add(probe) as usize & (self.lines - 1);
            let line = &mut self.bytes[line * LINE..][..LINE];
            let free = line.chunks_exact_mut(RECORD).find(|slot| slot[16..20] == [0xff; 4]);
            if let Some(slot) = free {
                return slot.copy_from_slice(&record);
            }
        }
    }
}

/// As in `forward/hash.rs`.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
