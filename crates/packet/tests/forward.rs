//! What a router refuses, each by a packet that differs from a good one in that alone.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::common::{ethernet, hex, ipv4, ipv6, udp};
use fibula_packet::{Frame, LinkType, Refusal, checksum};

fn ethernet_frame(ether_type: u16, packet: &[u8]) -> Result<(), Refusal> {
    Frame::parse(LinkType::Ethernet, &ethernet(&[], ether_type, packet)).check_forward()
}

/// A good IPv4 packet with options, changed and its checksum made right.
fn changed4(change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refusal> {
    let mut packet = ipv4(&hex("94040000"), 0x4000, 17, &udp());
    change(&mut packet);
    packet[10..12].fill(0);
    let sum = checksum::compute(&packet[..24]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    ethernet_frame(0x0800, &packet)
}

fn changed6(change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refusal> {
    let mut packet = ipv6(0, &[hex("1100010400000000"), udp()].concat());
    change(&mut packet);
    ethernet_frame(0x86dd, &packet)
}

#[test]
fn ipv4_headers() {
    assert_eq!(changed4(|_| {}), Ok(()));
    assert_eq!(changed4(|p| p[0] = 0x56), Err(Refusal::Version));
    assert_eq!(changed4(|p| p[0] = 0x44), Err(Refusal::HeaderLength));
    assert_eq!(changed4(|p| p[3] = 23), Err(Refusal::LengthWithinHeader));
    assert_eq!(changed4(|p| p[3] = 24), Ok(()));
    assert_eq!(changed4(|p| p[3] = 36), Ok(()));
    assert_eq!(changed4(|p| p[3] = 37), Err(Refusal::LengthBeyondFrame));
    assert_eq!(changed4(|p| p[8] = 0), Err(Refusal::Expired));
    assert_eq!(changed4(|p| p[8] = 1), Err(Refusal::Expired));
    assert_eq!(changed4(|p| p[8] = 2), Ok(()));
    let packet = ipv4(&hex("94040000"), 0x4000, 17, &udp());
    // Each bit of the header counts for the checksum, but those that are tested before it.
    for bit in 8..24 * 8 {
        let mut flipped = packet.clone();
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        assert_eq!(ethernet_frame(0x0800, &flipped), Err(Refusal::Checksum), "bit {bit}");
    }
    for len in 0..24 {
        assert_eq!(ethernet_frame(0x0800, &packet[..len]), Err(Refusal::TooShort), "{len} bytes");
    }
    for len in 24..packet.len() {
        let refused = Err(Refusal::LengthBeyondFrame);
        assert_eq!(ethernet_frame(0x0800, &packet[..len]), refused, "{len} bytes");
    }
    assert_eq!(ethernet_frame(0x0806, &packet), Err(Refusal::NotIp));
}

#[test]
fn ipv6_headers() {
    assert_eq!(changed6(|_| {}), Ok(()));
    assert_eq!(changed6(|p| p[0] = 0x45), Err(Refusal::Version));
    assert_eq!(changed6(|p| p[5] = 21), Err(Refusal::LengthBeyondFrame));
    assert_eq!(changed6(|p| p[5] = 20), Ok(()));
    assert_eq!(changed6(|p| p[5] = 8), Ok(()));
    assert_eq!(changed6(|p| p[5] = 7), Err(Refusal::LengthWithinHeader));
    // Length 0 with hop-by-hop options but no jumbo payload option; with one; with a small one.
    assert_eq!(changed6(|p| p[5] = 0), Err(Refusal::LengthWithinHeader));
    let jumbo = |len: &str| {
        changed6(|p| {
            p[5] = 0;
            p[42..48].copy_from_slice(&hex(&format!("c204{len}")));
            p.resize(40 + 65536, 0);
        })
    };
    assert_eq!(jumbo("00010000"), Ok(()));
    assert_eq!(jumbo("00010001"), Err(Refusal::LengthBeyondFrame));
    assert_eq!(jumbo("0000ffff"), Err(Refusal::SmallJumbo));
    assert_eq!(changed6(|p| p[7] = 1), Err(Refusal::Expired));
    assert_eq!(changed6(|p| p[7] = 2), Ok(()));
    // Hop-by-hop options longer than the packet. Others are not a router's business.
    assert_eq!(changed6(|p| p[41] = 2), Err(Refusal::LengthWithinHeader));
    assert_eq!(changed6(|p| (p[6], p[41]) = (60, 2)), Ok(()));
    let packet = ipv6(17, &udp());
    for len in 0..packet.len() {
        let refusal = if len < 40 { Refusal::TooShort } else { Refusal::LengthBeyondFrame };
        assert_eq!(ethernet_frame(0x86dd, &packet[..len]), Err(refusal), "{len} bytes");
    }
    assert_eq!(ethernet_frame(0x86dd, &ipv6(59, &[])), Ok(()));
}

#[test]
fn ipv4_addresses() {
    let with = |at: usize, address: Ipv4Addr| {
        changed4(|p| p[at..at + 4].copy_from_slice(&address.octets()))
    };
    for (address, source, destination) in [
        ("0.0.0.0", false, false),
        ("0.255.255.255", false, false),
        ("1.0.0.0", true, true),
        ("10.0.0.1", true, true),
        ("126.255.255.255", true, true),
        ("127.0.0.1", false, false),
        ("128.0.0.0", true, true),
        ("169.253.255.255", true, true),
        ("169.254.0.0", false, false),
        ("169.254.255.255", false, false),
        ("169.255.0.0", true, true),
        ("223.255.255.255", true, true),
        ("224.0.0.0", false, false),
        ("224.0.0.255", false, false),
        ("224.0.1.0", false, true),
        ("239.255.255.255", false, true),
        ("240.0.0.0", false, false),
        ("255.255.255.255", false, false),
    ] {
        let ip = address.parse().unwrap();
        let verdict = |sound: bool, refusal| if sound { Ok(()) } else { Err(refusal) };
        assert_eq!(with(12, ip), verdict(source, Refusal::Source), "{address} as source");
        assert_eq!(with(16, ip), verdict(destination, Refusal::Destination), "{address}");
    }
}

#[test]
fn ipv6_addresses() {
    let with = |at: usize, address: Ipv6Addr| {
        changed6(|p| p[at..at + 16].copy_from_slice(&address.octets()))
    };
    for (address, source, destination) in [
        ("::", false, false),
        ("::1", false, false),
        ("::ffff:192.0.2.1", false, false),
        ("::fffe:192.0.2.1", true, true),
        ("::2", true, true),
        ("2001:db8::1", true, true),
        ("fe7f:ffff::1", true, true),
        ("fe80::1", false, false),
        ("febf::1", false, false),
        ("fec0::1", true, true),
        ("ff00::1", false, false),
        ("ff01::1", false, false),
        ("ff02::1", false, false),
        ("ff12::1", false, false),
        ("ff03::1", false, true),
        ("ff0e::1", false, true),
        ("ffff::1", false, true),
    ] {
        let ip = address.parse().unwrap();
        let verdict = |sound: bool, refusal| if sound { Ok(()) } else { Err(refusal) };
        assert_eq!(with(8, ip), verdict(source, Refusal::Source), "{address} as source");
        assert_eq!(with(24, ip), verdict(destination, Refusal::Destination), "{address}");
    }
}

#[test]
fn link_broadcasts() {
    let to_all = |packet: &[u8], ether_type: u16| {
        let mut frame = ethernet(&[], ether_type, packet);
        frame[..6].fill(0xff);
        Frame::parse(LinkType::Ethernet, &frame).check_forward()
    };
    let mut packet = ipv4(&[], 0, 17, &udp());
    assert_eq!(to_all(&packet, 0x0800), Err(Refusal::LinkBroadcast));
    // Without a link header nothing is known of it.
    assert_eq!(Frame::parse(LinkType::RawIp, &packet).check_forward(), Ok(()));
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = checksum::update(sum, 0xc633, 0xe900);
    packet[16..18].copy_from_slice(&[0xe9, 0]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(to_all(&packet, 0x0800), Ok(()));
    assert_eq!(to_all(&ipv6(17, &udp()), 0x86dd), Err(Refusal::LinkBroadcast));
}
