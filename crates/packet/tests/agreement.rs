//! The same frames read by etherparse, an independent parser.
//!
//! It differs on purpose in a few places, which are left out where they occur: it follows three VLAN
//! tags and no 0x9200, reads IPv4's authentication header as an extension, takes hop-by-hop options
//! for an error behind the first header, does not follow mobility, HIP and shim6 headers, and reads
//! on behind the fragment header of a later fragment.

use std::net::IpAddr;

use etherparse::{LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice};
use fibula_packet::{Fragmentation, Frame, Length, LinkType};
use proptest::collection::vec;
use proptest::prelude::*;

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    tags: usize,
    headers: usize,
    payloads: usize,
    transports: usize,
}

fn compare(bytes: &[u8], compared: &mut Compared) {
    let frame = Frame::parse(LinkType::Ethernet, bytes);
    let Ok(theirs) = LaxSlicedPacket::from_ethernet(bytes) else {
        assert!(bytes.len() < 14 && frame.fault().is_some());
        return;
    };
    let Some(LinkSlice::Ethernet2(ethernet)) = &theirs.link else { panic!("no Ethernet header") };
    assert_eq!(frame.macs(), Some((ethernet.destination(), ethernet.source())));
    let mut tags = frame.tags();
    let mut ether_type = ethernet.ether_type().0;
    for extension in &theirs.link_exts {
        let LaxLinkExtSlice::Vlan(vlan) = extension else { return };
        let tag = tags.next().expect("as many tags");
        assert_eq!(tag.tpid, ether_type);
        assert_eq!(
            (tag.vid(), tag.priority()),
            (vlan.vlan_identifier().value(), vlan.priority_code_point().value())
        );
        assert_eq!(tag.drop_eligible(), vlan.drop_eligible_indicator());
        ether_type = vlan.ether_type().0;
        compared.tags += 1;
    }
    if tags.next().is_some() {
        return;
    }
    // They go by the version in the header, whatever was announced; to us that is a fault.
    let version = match &theirs.net {
        Some(LaxNetSlice::Ipv4(_)) => Some(0x0800),
        Some(LaxNetSlice::Ipv6(_)) => Some(0x86dd),
        _ => None,
    };
    if version.is_some_and(|version| version != ether_type) {
        assert!(frame.fault().is_some(), "{bytes:x?}");
        return;
    }
    match &theirs.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            compared.headers += 1;
            let (ours, header) = (frame.ipv4().unwrap(), ip.header());
            assert_eq!(ours.header_len(), usize::from(header.ihl()) * 4);
            let class = header.dcp().value() << 2 | header.ecn().value();
            assert_eq!(ours.traffic_class(), class);
            assert_eq!((ours.total_len(), ours.ttl()), (header.total_len(), header.ttl()));
            assert_eq!(ours.identification(), header.identification());
            assert_eq!(ours.dont_fragment(), header.dont_fragment());
            assert_eq!(ours.more_fragments(), header.more_fragments());
            assert_eq!(ours.fragment_offset() / 8, header.fragments_offset().value());
            assert_eq!(ours.checksum(), header.header_checksum());
            assert_eq!(ours.options().unwrap_or_default(), header.options());
            let ends = (header.source_addr(), header.destination_addr());
            assert_eq!(frame.ends(), Some((IpAddr::V4(ends.0), IpAddr::V4(ends.1))));
            let sum = header.to_header().calc_header_checksum() == header.header_checksum();
            // Their header forgets the reserved flag, so their sum is that of another one.
            if header.slice()[6] & 0x80 == 0 {
                assert_eq!(ours.checksum_is_right(), sum);
            }
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            compared.headers += 1;
            let (ours, header) = (frame.ipv6().unwrap(), ip.header());
            assert_eq!(
                (ours.traffic_class(), ours.hop_limit()),
                (header.traffic_class(), header.hop_limit())
            );
            assert_eq!(ours.flow_label(), header.flow_label().value());
            assert_eq!(ours.payload_len(), header.payload_length());
            let ends = (header.source_addr(), header.destination_addr());
            assert_eq!(frame.ends(), Some((IpAddr::V6(ends.0), IpAddr::V6(ends.1))));
        }
        Some(LaxNetSlice::Arp(_)) => assert_eq!(frame.ether_type(), Some(0x0806)),
        None => {
            // They found none in what was announced as IP: we found a fault.
            assert!(
                !matches!(ether_type, 0x0800 | 0x86dd) || frame.fault().is_some(),
                "{bytes:x?}"
            );
        }
    }
    let Some(payload) = theirs.net.as_ref().and_then(|net| net.ip_payload_ref()) else { return };
    let key = frame.flow_key();
    let differs = frame.ipv4().is_some_and(|ip| ip.protocol() == 51)
        || (frame.ipv6().is_some() && key.fragment == Fragmentation::Later)
        || matches!(payload.ip_number.0, 135 | 139 | 140)
        || frame.length() == Some(Length::WithinHeaders)
        || frame.ipv6().is_some_and(|ip| ip.payload_len() == 0);
    // They give the transport's error in the same place as those of IP headers.
    let stopped = theirs.stop_err.as_ref().is_some_and(|(_, layer)| {
        use etherparse::err::Layer;
        !matches!(
            layer,
            Layer::TcpHeader
                | Layer::UdpHeader
                | Layer::Icmpv4
                | Layer::Icmpv4Timestamp
                | Layer::Icmpv4TimestampReply
                | Layer::Icmpv6
        )
    });
    if differs || stopped {
        return;
    }
    compared.payloads += 1;
    assert_eq!(frame.protocol(), Some(payload.ip_number.0), "{bytes:x?}");
    let at = payload.payload.as_ptr() as usize - bytes.as_ptr() as usize;
    assert_eq!(frame.payload_at(), Some(at), "{bytes:x?}");
    assert_eq!(payload.incomplete, frame.length() == Some(Length::Beyond), "{bytes:x?}");
    assert_eq!(payload.fragmented, key.fragment != Fragmentation::Whole);
    if let Some(segment) = frame.segment() {
        assert_eq!(segment, payload.payload, "{bytes:x?}");
    }
    match &theirs.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            compared.transports += 1;
            let ours = frame.tcp().unwrap();
            assert_eq!(frame.ports(), Some((tcp.source_port(), tcp.destination_port())));
            assert_eq!(
                (ours.sequence(), ours.window()),
                (tcp.sequence_number(), tcp.window_size())
            );
            assert_eq!(ours.header_len(), usize::from(tcp.data_offset()) * 4);
            let flags = [
                tcp.fin(),
                tcp.syn(),
                tcp.rst(),
                tcp.psh(),
                tcp.ack(),
                tcp.urg(),
                tcp.ece(),
                tcp.cwr(),
                tcp.ns(),
            ];
            let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u16::from(*flag));
            assert_eq!(ours.flags() & 0x1ff, flags);
        }
        Some(TransportSlice::Udp(udp)) => {
            compared.transports += 1;
            assert_eq!(frame.ports(), Some((udp.source_port(), udp.destination_port())));
            let ours = frame.udp().unwrap();
            assert_eq!((ours.len(), ours.checksum()), (udp.length(), udp.checksum()));
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            compared.transports += 1;
            assert_eq!(frame.icmp(), Some((icmp.type_u8(), icmp.code_u8())));
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            compared.transports += 1;
            assert_eq!(frame.icmp(), Some((icmp.type_u8(), icmp.code_u8())));
        }
        Some(TransportSlice::Igmp(_)) => {}
        None => {
            // They found no header: it is in another fragment, or cut, or of another protocol.
            let known = matches!(payload.ip_number.0, 6 | 17);
            assert!(!known || payload.fragmented || frame.fault().is_some(), "{bytes:x?}");
        }
    }
}

#[test]
fn the_capture() {
    let mut compared = Compared::default();
    for (bytes, _) in crate::common::capture() {
        compare(&bytes, &mut compared);
    }
    let Compared { tags, headers, payloads, transports } = compared;
    assert!(tags == 1 && headers > 1230 && payloads > 1230 && transports > 800, "{compared:?}");
}

#[test]
fn hand_made_frames() {
    let mut compared = Compared::default();
    for (_, link, bytes) in crate::common::frames() {
        for len in 0..=bytes.len() {
            match link {
                LinkType::Ethernet => compare(&bytes[..len], &mut compared),
                LinkType::RawIp => {
                    let kind = if bytes[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
                    compare(&crate::common::ethernet(&[], kind, &bytes[..len]), &mut compared);
                }
                _ => {}
            }
        }
    }
    let Compared { tags, headers, payloads, transports } = compared;
    assert!(tags > 300 && headers > 550 && payloads > 250 && transports > 50, "{compared:?}");
}

proptest! {
    /// Frames of the capture and hand-made ones, with some bytes changed, cut anywhere.
    #[test]
    fn damaged_frames(
        number in any::<prop::sample::Index>(), changes in vec((0usize..96, any::<u8>()), 0..4),
        cut in 0usize..160, tags in vec((prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)], any::<u16>()), 0..3),
    ) {
        use std::sync::LazyLock;
        static FRAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
            let real = crate::common::capture().into_iter().map(|(bytes, _)| bytes).step_by(7);
            let made = crate::common::frames().into_iter().filter_map(|(_, link, bytes)| match link {
                LinkType::Ethernet => Some(bytes),
                LinkType::RawIp if bytes[0] >> 4 == 4 => Some(crate::common::ethernet(&[], 0x0800, &bytes)),
                LinkType::RawIp => Some(crate::common::ethernet(&[], 0x86dd, &bytes)),
                _ => None,
            });
            real.chain(made.filter(|bytes| bytes.len() >= 14)).collect()
        });
        let frame = number.get(&FRAMES);
        let mut bytes = crate::common::ethernet(&tags, u16::from_be_bytes([frame[12], frame[13]]), &frame[14..]);
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        compare(&bytes, &mut Compared::default());
    }
}
