//! The flow hash, as the forwarder documents it.

use super::u16_at;

/// Protocol, where its header begins, and whether the packet is a fragment (and a later one).
pub(super) struct Above {
    pub(super) protocol: Option<u8>,
    pub(super) at: usize,
    pub(super) is_fragment: bool,
    pub(super) is_later: bool,
}

/// The header after IP in this packet.
pub(super) fn above(ip: &[u8]) -> Above {
    if ip[0] >> 4 == 4 {
        let field = u16_at(ip, 6);
        return Above {
            protocol: Some(ip[9]),
            at: usize::from(ip[0] & 15) * 4,
            is_fragment: field & 0x3fff != 0,
            is_later: field & 0x1fff != 0,
        };
    }
    let (mut next, mut at) = (ip[6], 40);
    let (mut is_fragment, mut is_later) = (false, false);
    while !is_later && [0, 43, 44, 51, 60, 135, 139, 140].contains(&next) {
        if at + if next == 44 { 4 } else { 2 } > ip.len() {
            return Above { protocol: None, at, is_fragment, is_later };
        }
        let len = match next {
            44 => 8,
            51 => (usize::from(ip[at + 1]) + 2) * 4,
            _ => (usize::from(ip[at + 1]) + 1) * 8,
        };
        if next == 44 {
            is_later = u16_at(ip, at + 2) >= 8;
            is_fragment |= is_later || ip[at + 3] & 1 == 1;
        }
        (next, at) = (ip[at], at + len);
    }
    Above { protocol: Some(next), at, is_fragment, is_later }
}

pub(super) fn flow(seed: u64, ip: &[u8]) -> u32 {
    let Above { protocol, at, is_fragment, .. } = above(ip);
    let is_cut = protocol.is_none() || at > ip.len();
    let mut protocol = protocol.unwrap_or(0);
    let (mut from, mut to) = (0, 0);
    let is_v4 = ip[0] >> 4 == 4;
    if is_cut {
        protocol = 0;
    } else if is_fragment {
        protocol = if is_v4 { protocol } else { 44 };
    } else if [6, 17, 33, 132, 136].contains(&protocol) && at + 4 <= ip.len() {
        (from, to) = (u16_at(ip, at), u16_at(ip, at + 2));
    }
    let end = |at: usize, port: u16| {
        let word = |at: usize, len: usize| {
            ip[at..at + len].iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte))
        };
        match is_v4 {
            true => mix(seed ^ (word(at, 4) << 16) ^ u64::from(port)),
            false => mix(mix(seed ^ word(at, 8)) ^ word(at + 8, 8) ^ (u64::from(port) << 48)),
        }
    };
    let ends = if is_v4 { (end(12, from), end(16, to)) } else { (end(8, from), end(24, to)) };
    (mix(ends.0.wrapping_add(ends.1).wrapping_add(u64::from(protocol))) >> 32) as u32
}

fn mix(mut word: u64) -> u64 {
    word ^= word >> 30;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^= word >> 27;
    word = word.wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
