//! The ports' reports about their interfaces, the packets that they receive, and how opening fails.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use fibula_packet::{Frame, LinkType, checksum};
use fibula_router::Pool;
use fibula_router::port::afpacket::{self, AfPacketOptions};
use fibula_router::port::afxdp::{self, AfXdpOptions, Copying, Mode};
use fibula_router::port::tap::{self, TapOptions};

use super::world::{PortKind, frame, inside, open, pair, pool, run};

#[test]
fn errors_have_advice() {
    inside("ports::kinds::in_it_errors_have_advice");
}

#[test]
#[ignore = "run by errors_have_advice"]
fn in_it_errors_have_advice() {
    pair(1);
    let pool = pool();
    let xdp = |name: &str, pool: &Pool, mode, copying| {
        let options = AfXdpOptions { mode, copying, ..Default::default() };
        afxdp::open(name, pool, &options).map(drop).unwrap_err().to_string()
    };
    let packet = |name: &str, pool: &Pool| {
        afpacket::open(name, pool, &AfPacketOptions::default()).map(drop).unwrap_err().to_string()
    };
    let contains = |error: String, words: &[&str]| {
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    };
    contains(packet("none", &pool), &["afpacket:none", "ip link"]);
    contains(xdp("none", &pool, Mode::Auto, Copying::Auto), &["afxdp:none", "ip link"]);
    contains(packet("a-name-that-is-too-long", &pool), &["afpacket:a-name"]);
    contains(packet("lo", &pool), &["afpacket:lo", "not an Ethernet interface"]);
    let small = Pool::new(4, 512);
    contains(packet("dA", &small), &["afpacket:dA", "MTU", "slots"]);
    contains(xdp("dA", &small, Mode::Auto, Copying::Auto), &["slots of 512", "2048"]);
    // veth has no zero copy.
    contains(xdp("dA", &pool, Mode::Native, Copying::ZeroCopy), &["afxdp:dA", "zero copy"]);
    {
        let _first = open(PortKind::Native, "dA", &pool);
        contains(xdp("dA", &pool, Mode::Native, Copying::Auto), &["another XDP program"]);
    }
    let error = tap::open("dA", &pool, &TapOptions::default()).map(drop).unwrap_err().to_string();
    contains(error, &["tap:dA", "not a TAP device"]);
    assert_eq!(pool.free(), 16_384);
}

/// Frames by a name, and whether the XDP program hands them over.
fn frames(mac: [u8; 6]) -> Vec<(&'static str, Vec<u8>, bool)> {
    let plain = frame(mac, 100, 1, None);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = plain.clone();
        change(&mut frame);
        frame
    };
    let to = |address: &str, tag: Option<u16>| {
        let mut frame = frame(mac, 120, 1, tag);
        let at = if tag.is_some() { 18 } else { 14 };
        match address.parse().unwrap() {
            IpAddr::V4(address) => frame[at + 16..at + 20].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => {
                frame[at - 2..at].copy_from_slice(&[0x86, 0xdd]);
                frame[at] = 0x60;
                frame[at + 24..at + 40].copy_from_slice(&address.octets());
            }
        }
        frame
    };
    vec![
        ("plain", plain.clone(), true),
        ("tagged", frame(mac, 100, 2, Some(7)), true),
        ("another MAC address", with(&|frame| frame[5] ^= 1), false),
        ("another MAC address, its first half", with(&|frame| frame[3] ^= 1), false),
        ("broadcast", with(&|frame| frame[..6].fill(0xff)), false),
        ("ARP", with(&|frame| frame[12..14].copy_from_slice(&[8, 6])), false),
        ("too short for IPv4", with(&|frame| frame.truncate(33)), false),
        (
            "two tags",
            with(&|frame| frame[12..18].copy_from_slice(&[0x88, 0xa8, 0, 1, 0x81, 0])),
            false,
        ),
        ("local", to("10.9.0.1", None), false),
        ("local, tagged", to("10.9.0.1", Some(9)), false),
        ("not local", to("10.9.0.2", Some(9)), true),
        ("no longer local", to("10.9.0.3", None), true),
        ("local IPv6", to("fd09::1", None), false),
        ("local IPv6, tagged", to("fd09::1", Some(9)), false),
        ("IPv6", to("fd09::2", None), true),
        ("IPv6, tagged", to("fd09:1::1", Some(9)), true),
        ("link-local", to("fe80::1", None), false),
        ("the last link-local", to("febf:ffff::1", None), false),
        ("behind link-local", to("fec0::1", None), true),
        ("multicast", to("ff02::5", None), false),
    ]
}

#[test]
fn the_program_leaves_to_the_kernel_what_is_the_kernels() {
    inside("ports::kinds::in_it_the_program_leaves_to_the_kernel_what_is_the_kernels");
}

#[test]
#[ignore = "run by the_program_leaves_to_the_kernel_what_is_the_kernels"]
fn in_it_the_program_leaves_to_the_kernel_what_is_the_kernels() {
    pair(1);
    let pool = pool();
    for kind in [PortKind::Native, PortKind::Generic] {
        let (mut here, mut there) = (open(kind, "dA", &pool), open(PortKind::Packet, "dB", &pool));
        let xdp = here.xdp.clone().unwrap();
        let local = |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            xdp.set_local(&addresses).unwrap();
        };
        local(&["10.9.0.3", "fd09::3"]);
        local(&["10.9.0.1", "fd09::1", "10.9.0.1"]);
        for (name, sent, comes) in frames(here.mac) {
            let burst = vec![there.packet(&sent), there.packet(&frame(here.mac, 60, 999, None))];
            there.send(0, burst);
            // The second one always comes.
            let found = here.receive_within(if comes { 2 } else { 1 }, Duration::from_secs(5));
            let expected = if comes { vec![sent] } else { vec![] };
            let (last, first) = found.split_last().expect(name);
            assert_eq!(first, expected, "{kind:?}: {name}");
            assert_eq!(last[..], frame(here.mac, 60, 999, None), "{kind:?}: {name}");
        }
    }
}

#[test]
fn checksums_that_a_kernel_left_out_are_completed() {
    inside("ports::kinds::in_it_checksums_that_a_kernel_left_out_are_completed");
}

#[test]
#[ignore = "run by checksums_that_a_kernel_left_out_are_completed"]
fn in_it_checksums_that_a_kernel_left_out_are_completed() {
    pair(1);
    run("ip addr add 10.9.0.2/24 dev dB");
    run("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:01 dev dB");
    run("ip link set dA address 02:00:00:00:00:01");
    let pool = pool();
    for kind in [PortKind::Packet, PortKind::Native, PortKind::Generic] {
        let mut here = open(kind, "dA", &pool);
        let socket = UdpSocket::bind("10.9.0.2:0").unwrap();
        for len in [0, 1, 17, 100, 1472] {
            let sent: Vec<u8> = (0..len).map(|at| at as u8).collect();
            socket.send_to(&sent, "10.9.0.1:9").unwrap();
            let found = here.receive(1).pop().expect("a packet");
            let frame = Frame::parse(LinkType::Ethernet, &found);
            let segment = frame.segment().unwrap();
            assert_eq!(segment[8..], sent);
            let mut with_pseudo = vec![10, 9, 0, 2, 10, 9, 0, 1, 0, 17];
            with_pseudo.extend_from_slice(&segment[4..6]);
            with_pseudo.extend_from_slice(segment);
            assert_ne!(segment[6..8], [0, 0]);
            assert!(checksum::verify(&with_pseudo), "{kind:?}, {len} bytes");
        }
    }
    assert_eq!(pool.free(), 16_384);
}
