//! Frames built from fields, and the fields read back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_packet::{Fragmentation, Frame, Length, LinkType};
use proptest::collection::vec;
use proptest::prelude::*;

/// Tags with one of the four TPIDs.
fn tags() -> impl Strategy<Value = Vec<(u16, u16)>> {
    let tpid = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100), Just(0x9200)];
    vec((tpid, any::<u16>()), 0..6)
}

proptest! {
    #[test]
    fn ethernet_ipv4_tcp(
        macs in any::<[u8; 12]>(), tags in tags(), class: u8, identification: u16,
        flags in 0u16..4, ttl: u8, ends in any::<(u32, u32)>(), options in 0usize..=10,
        ports in any::<(u16, u16)>(), tcp_flags in 0u16..0x1000, window: u16,
        payload in vec(any::<u8>(), 0..40), padding in 0usize..20,
    ) {
        let mut tcp = Vec::new();
        tcp.extend(ports.0.to_be_bytes());
        tcp.extend(ports.1.to_be_bytes());
        tcp.extend([0, 0, 0, 7, 0, 0, 0, 9]);
        tcp.extend((0x5000 | tcp_flags).to_be_bytes());
        tcp.extend(window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&payload);
        let options = vec![1u8; options * 4];
        let mut packet = crate::common::ipv4(&options, flags << 13, 6, &tcp);
        packet[1] = class;
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet[8] = ttl;
        packet[12..16].copy_from_slice(&ends.0.to_be_bytes());
        packet[16..20].copy_from_slice(&ends.1.to_be_bytes());
        let mut bytes = crate::common::ethernet(&tags, 0x0800, &packet);
        bytes[..12].copy_from_slice(&macs);
        bytes.resize(bytes.len() + padding, 0xee);

        let frame = Frame::parse(LinkType::Ethernet, &bytes);
        let (to, from) = frame.macs().unwrap();
        prop_assert_eq!([to, from].concat(), macs.to_vec());
        let found: Vec<_> = frame.tags().map(|tag| (tag.tpid, tag.tci)).collect();
        prop_assert_eq!(&found, &tags);
        for tag in frame.tags() {
            let eligible = u16::from(tag.drop_eligible());
            prop_assert_eq!(u16::from(tag.priority()) << 13 | eligible << 12 | tag.vid(), tag.tci);
        }
        let network = 14 + 4 * tags.len();
        prop_assert_eq!(frame.network_at(), Some(network));
        let ip = frame.ipv4().unwrap();
        prop_assert_eq!((ip.version(), ip.header_len()), (4, 20 + options.len()));
        prop_assert_eq!(ip.options().unwrap_or_default(), &options[..]);
        prop_assert_eq!(ip.has_options(), !options.is_empty());
        prop_assert_eq!((ip.traffic_class(), ip.identification(), ip.ttl()), (class, identification, ttl));
        prop_assert_eq!(ip.more_fragments(), flags & 1 != 0);
        prop_assert_eq!(ip.dont_fragment(), flags & 2 != 0);
        let (a, b): (IpAddr, IpAddr) = (Ipv4Addr::from(ends.0).into(), Ipv4Addr::from(ends.1).into());
        prop_assert_eq!(frame.ends(), Some((a, b)));
        prop_assert_eq!(frame.transport_at(), Some(network + ip.header_len()));
        prop_assert_eq!(frame.segment(), Some(&tcp[..]));
        let tcp = frame.tcp().unwrap();
        prop_assert_eq!((tcp.flags(), tcp.window()), (tcp_flags, window));
        prop_assert_eq!((frame.length(), frame.fault()), (Some(Length::Whole), None));

        let key = frame.flow_key();
        prop_assert_eq!((key.ends, key.ports, key.protocol), (frame.ends(), Some(ports), Some(6)));
        prop_assert_eq!((key.dscp(), key.ecn()), (Some(class >> 2), Some(class & 3)));
        prop_assert_eq!((key.tcp_flags, key.icmp, key.ether_type), (Some(tcp_flags), None, Some(0x0800)));
        let which = if flags & 1 != 0 { Fragmentation::First } else { Fragmentation::Whole };
        prop_assert_eq!(key.fragment, which);
        let two: Vec<_> = key.tags.into_iter().flatten().map(|tag| (tag.tpid, tag.tci)).collect();
        prop_assert_eq!(&two[..], &tags[..tags.len().min(2)]);
    }

    #[test]
    fn ipv6_chains_udp(
        class: u8, label in 0u32..1 << 20, hops: u8, ends in any::<(u128, u128)>(),
        chain in vec((prop_oneof![Just(0u8), Just(43), Just(60), Just(135), Just(139), Just(140),
            Just(51), Just(44)], 0u8..4), 0..7),
        ports in any::<(u16, u16)>(), fragment in 0u16..0x2000,
    ) {
        // Each header names the one behind it. A fragment header of a later fragment ends the chain.
        let (mut extensions, mut expected) = (Vec::new(), Vec::new());
        let mut later = false;
        for (i, (number, units)) in chain.iter().enumerate() {
            let next = chain.get(i + 1).map_or(17, |(number, _)| *number);
            let (size, units) = match number {
                51 => (4 * (usize::from(*units) + 2), *units),
                44 => (8, 0),
                _ => (8 * (usize::from(*units) + 1), *units),
            };
            let (at, mut header) = (40 + extensions.len(), vec![0; size]);
            header[..2].copy_from_slice(&[next, units]);
            if *number == 44 {
                // One in two is a later fragment.
                let field = if fragment & 1 == 0 { fragment << 3 | 1 } else { 1 };
                header[2..4].copy_from_slice(&field.to_be_bytes());
                later |= field > 1;
            }
            extensions.extend(header);
            expected.push((*number, at, size, next));
            if later {
                break;
            }
        }
        let mut udp = crate::common::udp();
        udp[..2].copy_from_slice(&ports.0.to_be_bytes());
        udp[2..4].copy_from_slice(&ports.1.to_be_bytes());
        let first = chain.first().map_or(17, |(number, _)| *number);
        let mut packet = crate::common::ipv6(first, &[&extensions[..], &udp].concat());
        packet[..4].copy_from_slice(&(6 << 28 | u32::from(class) << 20 | label).to_be_bytes());
        packet[7] = hops;
        packet[8..24].copy_from_slice(&ends.0.to_be_bytes());
        packet[24..40].copy_from_slice(&ends.1.to_be_bytes());
        let bytes = crate::common::ethernet(&[], 0x86dd, &packet);

        let frame = Frame::parse(LinkType::Ethernet, &bytes);
        let ip = frame.ipv6().unwrap();
        prop_assert_eq!((ip.traffic_class(), ip.flow_label(), ip.hop_limit()), (class, label, hops));
        let (a, b): (IpAddr, IpAddr) = (Ipv6Addr::from(ends.0).into(), Ipv6Addr::from(ends.1).into());
        prop_assert_eq!(frame.ends(), Some((a, b)));
        let found: Vec<_> = frame.extensions().unwrap().map(|e| (e.number, e.at, e.len, e.next)).collect();
        prop_assert_eq!(&found, &expected);
        let protocol = expected.last().map_or(first, |(.., next)| *next);
        prop_assert_eq!((frame.protocol(), frame.announced()), (Some(protocol), Some(protocol)));
        prop_assert_eq!(frame.payload_at(), Some(54 + extensions.len()));
        let (fault, length) = (frame.fault(), frame.length());
        prop_assert_eq!((fault, length), (None, Some(Length::Whole)));

        let key = frame.flow_key();
        prop_assert_eq!(key.traffic_class, Some(class));
        let fragmented = chain[..expected.len()].iter().any(|(number, _)| *number == 44);
        let which = match (fragmented, later) {
            (_, true) => Fragmentation::Later,
            (true, _) => Fragmentation::First,
            _ => Fragmentation::Whole,
        };
        prop_assert_eq!(key.fragment, which);
        prop_assert_eq!(key.ports, (!later).then_some(ports));
        prop_assert_eq!(frame.transport_at().is_some(), !later);
        prop_assert_eq!(frame.udp().is_some(), !later);
    }

    /// Any bytes with any link type: every method answers.
    #[test]
    fn any_bytes(
        number in prop_oneof![0u32..300, Just(1)], wire_len in 0usize..200,
        kind in prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x8100), Just(0x8847), any::<u16>()],
        mut data in vec(any::<u8>(), 0..120),
    ) {
        let Some(link) = LinkType::from_number(number) else { return Ok(()) };
        for at in [0, 2, 12, 14, 16] {
            if let Some(place) = data.get_mut(at..at + 2) {
                place.copy_from_slice(&kind.to_be_bytes());
            }
            let frame = Frame::parse_captured(link, &data, wire_len);
            prop_assert!(frame.wire_len() >= data.len());
            for at in [frame.network_at(), frame.payload_at(), frame.transport_at()] {
                prop_assert!(at.unwrap_or_default() <= data.len());
            }
            prop_assert_eq!(frame.flow_key(), Frame::parse_captured(link, &data, wire_len).flow_key());
            let _ = (frame.fault().map(|fault| fault.to_string()), frame.check_forward());
        }
    }
}
