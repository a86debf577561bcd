//! Interfaces, addresses and neighbours: messages of a kernel, and damaged ones.

use std::io::Read as _;

use lzma_rust2::XzReader;
use proptest::prelude::*;

use super::super::wire::kind;
use super::super::{LinkDump, LinkMessage, LinkNews, NeighbourState, Reply, ask_for_neighbour};
use super::{V4, V6, attribute, flagged, message, number};

/// Linux 6.18: dumps of a veth pair with addresses and neighbours, then changes of them (testdata/README.md).
const RECORDED: &[u8] = include_bytes!("../../../testdata/links.bin.xz");

fn recorded() -> Vec<u8> {
    let mut bytes = Vec::new();
    XzReader::new(RECORDED, false).read_to_end(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> LinkNews {
    let mut news = LinkNews::default();
    news.read(bytes);
    news
}

/// A line for each report.
fn lines(messages: &[LinkMessage]) -> Vec<String> {
    let mac = |mac: Option<[u8; 6]>| {
        mac.map_or("-".to_owned(), |mac| mac.map(|byte| format!("{byte:02x}")).join(":"))
    };
    messages
        .iter()
        .map(|message| match message {
            LinkMessage::Interface(i) => {
                let state = if i.is_up { "up" } else { "down" };
                format!("link {} {} {} {} {state}", i.index, i.name, mac(i.mac), i.mtu)
            }
            LinkMessage::InterfaceGone(index) => format!("link {index} gone"),
            LinkMessage::Address(a) => {
                format!("address {} {} of {}/{}", a.interface, a.local, a.subnet, a.len)
            }
            LinkMessage::AddressGone(a) => format!("address {} {} gone", a.interface, a.local),
            LinkMessage::Neighbour(n) => {
                format!("neighbour {} {} {} {:?}", n.interface, n.address, mac(n.mac), n.state)
            }
            LinkMessage::NeighbourGone(interface, address) => {
                format!("neighbour {interface} {address} gone")
            }
            LinkMessage::Reply(Reply { sequence, error }) => format!("end of {sequence}: {error}"),
        })
        .collect()
}

#[test]
fn messages_of_a_kernel() {
    let news = read(&recorded());
    assert_eq!((news.damaged, &news.damage, news.interrupted), (0, &None, false));
    let expected = [
        "link 1 lo 00:00:00:00:00:00 65536 up",
        "link 2 east 02:00:00:00:00:02 1500 up",
        "link 3 west 02:00:00:00:00:01 1400 up",
        "end of 1: 0",
        "address 1 127.0.0.1 of 127.0.0.1/8",
        "address 2 192.0.2.10 of 192.0.2.11/32",
        "address 3 192.0.2.1 of 192.0.2.1/24",
        "address 1 ::1 of ::1/128",
        "address 2 fe80::ff:fe00:2 of fe80::ff:fe00:2/64",
        "address 3 2001:db8::1 of 2001:db8::1/64",
        "address 3 fe80::ff:fe00:1 of fe80::ff:fe00:1/64",
        "end of 2: 0",
        "neighbour 3 192.0.2.7 02:00:00:00:07:07 Permanent",
        "neighbour 3 2001:db8::7 02:00:00:00:07:08 Reachable",
        "end of 3: 0",
        "address 2 198.51.100.1 of 198.51.100.1/24",
        "neighbour 2 198.51.100.9 02:00:00:00:09:09 Permanent",
        "neighbour 2 198.51.100.9 02:00:00:00:09:0a Stale",
        "neighbour 2 198.51.100.9 - Failed",
        "neighbour 2 198.51.100.9 gone",
        "address 2 198.51.100.1 gone",
        "link 3 west 02:00:00:00:00:01 1400 down",
        "neighbour 3 192.0.2.7 gone",
        "neighbour 3 2001:db8::7 gone",
        "address 3 2001:db8::1 gone",
        "address 3 fe80::ff:fe00:1 gone",
        "link 2 east 02:00:00:00:00:02 1500 down",
        "link 2 east 02:00:00:00:00:02 1500 down",
        "address 2 fe80::ff:fe00:2 gone",
        "address 3 192.0.2.1 gone",
        "link 3 gone",
        "address 2 192.0.2.10 gone",
        "link 2 gone",
    ];
    assert_eq!(lines(&news.messages), expected);
}

#[test]
fn only_usable_neighbours_are_used() {
    let states = [
        (0, NeighbourState::None, false),
        (1, NeighbourState::Incomplete, false),
        (2, NeighbourState::Reachable, true),
        (4, NeighbourState::Stale, true),
        (8, NeighbourState::Delay, true),
        (0x10, NeighbourState::Probe, true),
        (0x20, NeighbourState::Failed, false),
        (0x40, NeighbourState::NoArp, true),
        (0x80, NeighbourState::Permanent, true),
    ];
    for (bits, state, is_usable) in states {
        let news = read(&neighbour(V4, bits, 0, &[attribute(1, &[10, 0, 0, 1])]));
        let [LinkMessage::Neighbour(neighbour)] = news.messages[..] else { panic!("{news:?}") };
        assert_eq!((neighbour.state, neighbour.state.is_usable()), (state, is_usable));
    }
}

fn neighbour(family: u8, state: u16, flags: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let head = [&[family, 0, 0, 0, 3, 0, 0, 0][..], &state.to_ne_bytes(), &[flags, 1]].concat();
    message(kind::NEWNEIGH, &[&head, &attributes.concat()[..]].concat())
}

#[test]
fn what_is_of_no_concern_is_passed_over() {
    let host = attribute(1, &[10, 0, 0, 1]);
    let bridge_port = [&[7, 0, 0, 0, 3, 0, 0, 0][..], &[0; 8]].concat();
    for message in [
        neighbour(7, 2, 0, std::slice::from_ref(&host)),
        neighbour(V4, 2, 8, std::slice::from_ref(&host)),
        neighbour(V4, 0x40, 0, &[attribute(1, &[224, 0, 0, 5])]),
        message(kind::NEWLINK, &bridge_port),
        message(kind::NEWROUTE, &[]),
        message(kind::NOOP, &[]),
    ] {
        assert_eq!(read(&message), LinkNews::default());
    }
    assert!(read(&message(kind::OVERRUN, &[])).interrupted);
    assert!(read(&flagged(kind::DONE, 0x10, &[0; 4])).interrupted);
}

#[test]
fn a_damaged_message_is_skipped_and_the_next_one_read() {
    let good = neighbour(V6, 2, 0, &[attribute(1, &[0xfe; 16])]);
    let address = |len: u8, attributes: &[Vec<u8>]| {
        let head = [V4, len, 0, 0, 3, 0, 0, 0];
        message(kind::NEWADDR, &[&head, &attributes.concat()[..]].concat())
    };
    for (bad, what) in [
        (neighbour(V4, 2, 0, &[]), "a neighbour without an address (byte 16 of the message)"),
        (
            neighbour(V4, 2, 0, &[attribute(1, &[1, 2, 3])]),
            "NDA_DST of 3 bytes is no address (byte 32 of the message)",
        ),
        (address(24, &[]), "an address message without an address (byte 16 of the message)"),
        (address(33, &[number(1, 7)]), "prefix length 33 exceeds 32 (byte 16 of the message)"),
        (
            address(24, &[attribute(1, &[0; 16])]),
            "an address of the other family than 2 (byte 16 of the message)",
        ),
        (
            message(kind::NEWLINK, &[0; 7]),
            "the link's index needs 4 bytes, 3 are left (byte 20 of the message)",
        ),
    ] {
        let news = read(&[bad, good.clone()].concat());
        assert_eq!((news.damaged, news.damage.as_deref(), news.messages.len()), (1, Some(what), 1));
    }
    let news = read(&good[..good.len() - 1]);
    assert_eq!(news.damage.as_deref(), Some("no message begins here (byte 0 of the message)"));
}

#[test]
fn requests_are_as_the_kernel_expects() {
    let mut out = Vec::new();
    ask_for_neighbour(3, [192, 0, 2, 1].into(), 9, &mut out);
    // As the kernel would send it, except for the requested state.
    let news = read(&out);
    assert_eq!(lines(&news.messages), ["neighbour 3 192.0.2.1 - None"]);
    assert_eq!(
        (out.len(), &out[..4], &out[24..28]),
        (36, &36u32.to_ne_bytes()[..], &[0, 0, 1, 0][..])
    );
    let mut out = Vec::new();
    let mut part = Some(LinkDump::Interfaces);
    while let Some(dump) = part {
        dump.ask(1, &mut out);
        part = dump.next();
    }
    assert_eq!(out.len(), 3 * 16 + 16 + 8 + 12);
    assert_eq!(read(&out), LinkNews::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_panic(at in 0usize..13_000, with in any::<[u8; 8]>(), end in 0usize..13_228) {
        let mut bytes = recorded();
        bytes[at..at + 8].copy_from_slice(&with);
        bytes.truncate(end);
        let news = read(&bytes);
        prop_assert!(news.messages.len() < 100);
        prop_assert_eq!(news.damaged > 0, news.damage.is_some());
    }
}
