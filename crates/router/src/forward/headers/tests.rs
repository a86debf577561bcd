use super::super::addresses::forwards_v6;
use super::*;
use crate::egress::{Egress, EgressPort};
use fibula_packet::checksum;
use fibula_simd::{Isa, Scalar};
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

/// Whether the filter passes the address, without vectors.
fn may_have_v4(own: &Own, address: [u8; 4]) -> bool {
    may_have(own, Own::hash_v4(u32::from_be_bytes(address)))
}

fn may_have(own: &Own, hash: u32) -> bool {
    own.may_have(Scalar, &[hash; LANES]) != 0
}

/// Whether it is sound, byte by byte, and what its bytes 8 to 11 become.
fn plain(own: &Own, header: &[u8; 20], room: u32) -> Option<(u32, [u8; 4])> {
    let len = u32::from(u16::from_be_bytes([header[2], header[3]]));
    let forwards = |octets: &[u8]| {
        !matches!(octets[0], 0 | 127 | 224..) && (octets[0], octets[1]) != (169, 254)
    };
    let is_sound = header[0] == 0x45
        && (20..=room).contains(&len)
        && header[8] > 1
        && checksum::verify(header)
        && forwards(&header[12..])
        && forwards(&header[16..])
        && !may_have_v4(own, *header[12..].first_chunk().unwrap())
        && !may_have_v4(own, *header.last_chunk().unwrap());
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
        // The first header's destination, among others, is the router's.
        let first: [u8; 4] = *chunk[0].0.last_chunk().unwrap();
        let addresses = (0..9).map(|n| [first[0], first[1] ^ n, first[2], first[3]].into());
        let port = EgressPort { addresses: addresses.collect(), ..EgressPort::default() };
        let paths = Paths::new(Egress { ports: vec![port], ..Egress::default() });
        let own = paths.own();
        assert!(may_have_v4(own, first));
        for isa in Isa::available() {
            let mut headers = Headers::default();
            let v4 = &mut headers.v4;
            for (header, room) in &chunk {
                let packet = [&header[..], &vec![0; *room as usize - 20]].concat();
                assert!(v4.push(&packet));
            }
            isa.level().run(CheckV4(v4, own));
            for (at, (header, room)) in chunk.iter().enumerate() {
                let Sound { len, aged } = v4.sound[at];
                let found = (len > 0).then_some((len, aged));
                assert_eq!(found, plain(own, header, *room), "{isa:?} {header:?} {room}");
                counts[usize::from(len > 0)] += 1;
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}

/// A header of 40 bytes, sound but for one thing in most cases.
fn header_v6(rng: &mut Rng) -> ([u8; 40], u32) {
    let mut header = [0; 40];
    header.fill_with(|| rng.below(256) as u8);
    let room = 40 + rng.below(1500) as u32;
    header[0] = 0x60 | header[0] & 15;
    let len = room - 40 - rng.below(3).min(room.into()).min(u64::from(room - 40)) as u32;
    header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    (header[6], header[7]) = (header[6].max(1), header[7].max(2));
    (header[8], header[24]) = (0x20 | header[8] & 31, 0xfc | header[24] & 1);
    let ends = [[0; 8], [0xfe, 0x80, 0, 0, 0, 0, 0, 0], [0xff, 2, 0, 0, 0, 0, 0, 0]];
    match rng.below(12) {
        0 => header[0] = rng.below(256) as u8,
        1 => header[4..6].copy_from_slice(&(room as u16 - 39).to_be_bytes()),
        2 => header[6] = 0,
        3 => header[7] = rng.below(3) as u8,
        4 => header[8..16].copy_from_slice(&ends[rng.below(3) as usize]),
        5 => header[24..32].copy_from_slice(&ends[rng.below(3) as usize]),
        6 => header[24..26].copy_from_slice(&[0xfe, 0x70 + rng.below(80) as u8]),
        _ => {}
    }
    (header, room)
}

#[test]
fn every_instruction_set_finds_the_same_v6() {
    let mut rng = Rng::new(2);
    let mut counts = [0_u32; 2];
    for round in 0..if cfg!(miri) { 2 } else { 300 } {
        let count = 1 + round % CHUNK;
        let chunk: Vec<_> = (0..count).map(|_| header_v6(&mut rng)).collect();
        let first: [u8; 16] = *chunk[0].0.last_chunk().unwrap();
        let port = EgressPort { addresses: vec![first.into()], ..EgressPort::default() };
        let paths = Paths::new(Egress { ports: vec![port], ..Egress::default() });
        for isa in Isa::available() {
            let mut headers = Headers::default();
            let v6 = &mut headers.v6;
            for (header, room) in &chunk {
                let packet = [&header[..], &vec![0; *room as usize - 40]].concat();
                assert!(v6.push(&packet));
            }
            isa.level().run(CheckV6(v6, paths.own()));
            for (at, (header, room)) in chunk.iter().enumerate() {
                let Sound { len, aged } = v6.sound[at];
                let end = |at: usize| u128::from_be_bytes(*header[at..].first_chunk().unwrap());
                // Addresses of which the first half is 0 are left to the complete rules.
                let may = |end: u128| forwards_v6(end) && end >> 64 != 0;
                let to = header[24..].first_chunk::<16>().unwrap();
                let (words, _) = to.as_chunks();
                let words = array::from_fn(|word| u32::from_le_bytes(words[word]));
                let is_own = may_have(paths.own(), Own::hash_v6(words));
                assert!(is_own || *to != first);
                let expected = 40 + u32::from(u16::from_be_bytes([header[4], header[5]]));
                let is_sound = header[0] >> 4 == 6
                    && expected <= *room
                    && header[6] != 0
                    && header[7] > 1
                    && may(end(8))
                    && may(end(24))
                    && !is_own;
                let found = (len > 0).then_some((len, aged));
                let aged = [header[7].wrapping_sub(1), 0, 0, 0];
                let expected = is_sound.then_some((expected, aged));
                assert_eq!(found, expected, "{isa:?} {header:?} {room}");
                assert_eq!(v6.keys[at], end(24));
                counts[usize::from(len > 0)] += 1;
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}
