//! Frames cut at every byte: no panic, no offset outside, and no fact lost by one byte more.

use std::collections::HashMap;
use std::net::IpAddr;

use fibula_packet::{Extension, FaultKind, Frame, HeaderKind, Length, LinkType, Refusal, Tag};

/// Everything that a frame says, as facts that bytes behind can only add to.
#[derive(Clone, Debug, PartialEq)]
struct Facts {
    scalars: [Option<u64>; 15],
    ends: Option<(IpAddr, IpAddr)>,
    tags: Vec<Tag>,
    extensions: Vec<Extension>,
}

fn facts(frame: &Frame<'_>) -> Facts {
    let mac = |bytes: [u8; 6]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let pair = |(a, b): (u16, u16)| u64::from(a) << 16 | u64::from(b);
    Facts {
        scalars: [
            frame.macs().map(|(to, _)| mac(to)),
            frame.macs().map(|(_, from)| mac(from)),
            frame.ether_type().map(u64::from),
            frame.ppp_protocol().map(u64::from),
            frame.network().map(|network| network as u64),
            frame.network_at().map(|at| at as u64),
            frame.protocol().map(u64::from),
            frame.payload_at().map(|at| at as u64),
            frame.transport_at().map(|at| at as u64),
            frame.fragment().map(|f| u64::from(f.offset) << 1 | u64::from(f.more)),
            frame.ports().map(pair),
            frame.tcp().map(|tcp| u64::from(tcp.flags())),
            frame.udp().map(|udp| u64::from(udp.len())),
            frame.icmp().map(|(kind, code)| u64::from(kind) << 8 | u64::from(code)),
            frame.ipv4().and_then(|ip| ip.options()).map(|options| options.len() as u64),
        ],
        ends: frame.ends(),
        tags: frame.tags().collect(),
        extensions: frame.extensions().into_iter().flatten().collect(),
    }
}

/// Whether `more` says all that `less` does.
fn keeps(less: &Facts, more: &Facts) -> bool {
    let mut pairs = less.scalars.iter().zip(&more.scalars);
    pairs.all(|(less, more)| less.is_none() || less == more)
        && (less.ends.is_none() || less.ends == more.ends)
        && more.tags.starts_with(&less.tags)
        && more.extensions.starts_with(&less.extensions)
}

fn check_offsets(frame: &Frame<'_>, name: &str) {
    let len = frame.bytes().len();
    let offsets = [frame.network_at(), frame.payload_at(), frame.transport_at()];
    let found: Vec<usize> = offsets.into_iter().flatten().collect();
    assert!(found.is_sorted() && found.iter().all(|at| *at <= len), "{name} {len}: {found:?}");
    for extension in frame.extensions().into_iter().flatten() {
        let end = frame.network_at().unwrap() + extension.at + extension.len;
        assert!(end <= len && extension.len >= 8, "{name}: {extension:?}");
    }
}

/// Checks every prefix; gives the faults that were seen.
fn check(name: &str, link: LinkType, bytes: &[u8], wire_len: usize) -> HashMap<HeaderKind, usize> {
    let mut seen = HashMap::new();
    let mut before: Option<(Facts, Option<Length>, bool)> = None;
    for len in 0..=bytes.len() {
        let frame = Frame::parse_captured(link, &bytes[..len], wire_len);
        let (facts, length, fault) = (facts(&frame), frame.length(), frame.fault());
        check_offsets(&frame, name);
        if let Some((less, shorter, sound)) = before {
            assert!(keeps(&less, &facts), "{name}, {len} bytes: {less:?} became {facts:?}");
            // A length that is judged stays so; only of a cut packet more may be learnt.
            let open = matches!(shorter, None | Some(Length::Cut));
            assert!(open || shorter == length, "{name}, {len}: {shorter:?} became {length:?}");
            // Without a fault, there is nothing to come.
            assert!(!sound || (less == facts && fault.is_none()), "{name}, {len}: {fault:?}");
        }
        if let Some(fault) = fault {
            *seen.entry(fault.header).or_default() += 1;
            let cut = len < wire_len;
            assert!(cut || fault.kind != FaultKind::Cut, "{name}, {len}: {fault}");
        }
        let key = frame.flow_key();
        assert!(key.ports.is_none() || key.ports == frame.ports(), "{name}, {len}");
        if frame.check_forward().is_ok() {
            let there = matches!(length, Some(Length::Whole | Length::WithinHeaders));
            assert!(there, "{name}, {len}: {length:?}");
        }
        before = Some((facts, length, fault.is_none()));
    }
    seen
}

#[test]
fn every_prefix_of_the_capture() {
    let mut seen: HashMap<HeaderKind, usize> = HashMap::new();
    for (number, (bytes, wire_len)) in crate::common::capture().iter().enumerate() {
        for (header, count) in
            check(&format!("packet {number}"), LinkType::Ethernet, bytes, *wire_len)
        {
            *seen.entry(header).or_default() += count;
        }
    }
    for header in [HeaderKind::Link, HeaderKind::Ipv4, HeaderKind::Ipv6, HeaderKind::Transport(6)] {
        assert!(seen[&header] > 1000, "{header}: {seen:?}");
    }
}

#[test]
fn every_prefix_of_hand_made_frames() {
    let mut seen: HashMap<HeaderKind, usize> = HashMap::new();
    for (name, link, bytes) in crate::common::frames() {
        // Cut by the capture; and ending there on the wire.
        for (header, count) in check(name, link, &bytes, bytes.len()) {
            *seen.entry(header).or_default() += count;
        }
        for len in 0..=bytes.len() {
            let frame = Frame::parse(link, &bytes[..len]);
            check_offsets(&frame, name);
            let kind = frame.fault().map(|fault| fault.kind);
            assert_ne!(kind, Some(FaultKind::Cut), "{name}, {len}");
            assert_ne!(frame.length(), Some(Length::Cut), "{name}, {len}");
        }
    }
    let headers = [
        HeaderKind::Link,
        HeaderKind::Vlan,
        HeaderKind::Llc,
        HeaderKind::Mpls,
        HeaderKind::Pppoe,
        HeaderKind::Ppp,
        HeaderKind::Ip,
        HeaderKind::Ipv4,
        HeaderKind::Ipv4Options,
        HeaderKind::Ipv6,
        HeaderKind::Extension(0),
        HeaderKind::Extension(44),
        HeaderKind::Extension(51),
        HeaderKind::Extension(60),
        HeaderKind::Transport(6),
        HeaderKind::Transport(17),
        HeaderKind::Transport(132),
    ];
    for header in headers {
        assert!(seen.contains_key(&header), "no frame is cut in its {header}: {seen:?}");
    }
}

/// What the whole hand-made frames are: fault, length, protocol, whether a router may forward them.
#[test]
fn verdicts() {
    use FaultKind::{Malformed, Short};
    let mut checked = 0;
    for (name, link, bytes) in crate::common::frames() {
        let frame = Frame::parse(link, &bytes);
        let fault = frame.fault().map(|fault| (fault.header, fault.kind));
        let got = (fault, frame.length(), frame.protocol(), frame.check_forward());
        let whole = Some(Length::Whole);
        let no_ip = Err(Refusal::NotIp);
        let expected = match name {
            "ARP"
            | "LLC"
            | "SNAP of AppleTalk"
            | "MPLS of Ethernet"
            | "PPPoE, LCP"
            | "loopback, other family"
            | "SLL2, ARP" => (None, None, None, no_ip),
            "tags and nothing" => (Some((HeaderKind::Vlan, Short)), None, None, no_ip),
            "MPLS without end" => (Some((HeaderKind::Mpls, Short)), None, None, no_ip),
            "version 5" => (Some((HeaderKind::Ip, Malformed)), None, None, no_ip),
            "empty" => (Some((HeaderKind::Link, Short)), None, None, no_ip),
            "TCP with options" => (None, whole, Some(6), Ok(())),
            "ICMP" => (None, whole, Some(1), Ok(())),
            "SCTP" => (None, whole, Some(132), Ok(())),
            "IPv4 with AH" => (None, whole, Some(51), Ok(())),
            "chain without end" => {
                (Some((HeaderKind::Extension(0), Short)), Some(Length::WithinHeaders), None, Ok(()))
            }
            "chain longer than the frame" => {
                let fault = Some((HeaderKind::Extension(60), Short));
                (fault, Some(Length::WithinHeaders), Some(17), Ok(()))
            }
            // The fragment header names the first header of the first fragment.
            "later IPv6 fragment" => (None, whole, Some(60), Ok(())),
            "ESP" => (None, whole, Some(50), Ok(())),
            "no next header" => (None, whole, Some(59), Ok(())),
            "ICMPv6" => (None, whole, Some(58), Ok(())),
            "jumbo" => (None, Some(Length::Beyond), Some(17), Err(Refusal::LengthBeyondFrame)),
            "length 0" => (None, Some(Length::WithinHeaders), Some(6), Err(Refusal::Checksum)),
            "longer than the frame" => {
                (None, Some(Length::Beyond), Some(17), Err(Refusal::Checksum))
            }
            "IHL 4" => {
                (Some((HeaderKind::Ipv4, Malformed)), whole, Some(17), Err(Refusal::HeaderLength))
            }
            "ends within its chain" => (None, Some(Length::WithinHeaders), Some(17), Ok(())),
            "IPv4 with version 6" => {
                (Some((HeaderKind::Ipv4, Malformed)), whole, Some(17), Err(Refusal::Version))
            }
            "TCP data offset 4" => {
                (Some((HeaderKind::Transport(6), Malformed)), whole, Some(6), Ok(()))
            }
            _ => (None, whole, Some(17), Ok(())),
        };
        assert_eq!(got, expected, "{name}");
        checked += 1;
    }
    assert_eq!(checked, 52);
}

/// Bytes behind the packet change neither its flow key nor its segment.
#[test]
fn trailers_do_not_matter() {
    let mut keys = 0;
    for (name, link, bytes) in crate::common::frames() {
        let frame = Frame::parse(link, &bytes);
        if !matches!(frame.length(), Some(Length::Whole | Length::WithinHeaders)) {
            continue;
        }
        for filler in [0x00, 0x2c, 0x3c, 0x11, 0xff] {
            let padded = [&bytes[..], &[filler; 40]].concat();
            let padded = Frame::parse(link, &padded);
            assert_eq!(padded.flow_key(), frame.flow_key(), "{name} {filler}");
            if frame.length() == Some(Length::Whole) && frame.fault().is_none() {
                assert_eq!(padded.segment(), frame.segment(), "{name} {filler}");
            }
            keys += 1;
        }
    }
    assert!(keys > 100);
}

/// A packet that was captured before the network card divided it has length 0. It ends with its frame where a capture
/// is read. As a received frame it ends within its header, and no router forwards it either way.
#[test]
fn packets_without_a_length() {
    let link = LinkType::RawIp;
    let mut v4 = crate::common::ipv4(&[], 0, 6, &crate::common::tcp());
    v4[2..4].fill(0);
    let checksum = fibula_packet::checksum::compute(&[&v4[..10], &[0, 0], &v4[12..20]].concat());
    v4[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut v6 = crate::common::ipv6(6, &crate::common::tcp());
    v6[4..6].fill(0);
    for (bytes, wire_len) in [(&v4, v4.len()), (&v6, v6.len()), (&v4, 9000), (&v6, 70_000)] {
        let captured = Frame::parse_captured(link, bytes, wire_len);
        assert_eq!((captured.length(), captured.fault()), (Some(Length::Offloaded), None));
        assert_eq!(captured.ports(), Some((80, 8080)));
        assert_eq!(captured.flow_key().ports, captured.ports());
        assert_eq!(captured.flow_key().tcp_flags, Some(0x12));
        assert_eq!(captured.check_forward(), Err(Refusal::LengthWithinHeader));
        let received = Frame::parse(link, bytes);
        assert_eq!((received.ports(), received.flow_key().ports), (None, None));
    }
    let received = Frame::parse(link, &v4);
    assert_eq!(received.length(), Some(Length::WithinHeaders));
    assert_eq!(received.flow_key().ends, None);
    assert_eq!(received.check_forward(), Err(Refusal::LengthWithinHeader));
    // Nothing follows, and so does no length.
    let nothing = crate::common::ipv6(59, &[]);
    assert_eq!(Frame::parse_captured(link, &nothing, 40).length(), Some(Length::Whole));
    // Cut before its ports.
    let cut = Frame::parse_captured(link, &v4[..22], v4.len());
    assert_eq!((cut.ports(), cut.fault().unwrap().kind), (None, FaultKind::Cut));
}
