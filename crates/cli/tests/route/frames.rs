//! Frames, and captures of them.

use std::fs;
use std::net::IpAddr;

/// Where frames come from, and the router's first port.
pub const SENDER: [u8; 6] = [2, 0, 0, 0, 9, 9];

pub fn router(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port + 1]
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn sum(words: &[u8]) -> u32 {
    words.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

/// The checksum of an IPv4 header whose checksum field is zero.
fn checksum(header: &[u8]) -> [u8; 2] {
    let mut sum = sum(header);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A UDP packet to an address, with its number as payload, to the router's MAC address at a port.
pub fn frame(to: IpAddr, port: u8, ttl: u8, number: u32) -> Vec<u8> {
    let udp = [&[0x30, 0x39, 0, 9, 0, 12, 0, 0][..], &number.to_be_bytes()].concat();
    let (kind, mut packet) = match to {
        IpAddr::V4(to) => {
            let len = (20 + udp.len() as u16).to_be_bytes();
            let head = [0x45, 0, len[0], len[1], 0, 7, 0x40, 0, ttl, 17, 0, 0, 172, 16, 0, 9];
            let mut packet = [&head[..], &to.octets()].concat();
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum);
            ([8, 0], packet)
        }
        IpAddr::V6(to) => {
            let head = [0x60, 0, 0, 0, 0, udp.len() as u8, 17, ttl];
            let from = [0x24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
            ([0x86, 0xdd], [&head[..], &from, &to.octets()].concat())
        }
    };
    packet.extend(udp);
    [&router(port)[..], &SENDER, &kind, &packet].concat()
}

/// What becomes of it at the next hop: addresses, TTL and checksum are others.
pub fn forwarded(frame: &[u8], by: u8, to: [u8; 6]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&router(by));
    if frame[12] == 8 {
        frame[22] -= 1;
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum);
    } else {
        frame[21] -= 1;
    }
    frame
}

pub fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [1, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

pub fn captured(path: &str) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}
