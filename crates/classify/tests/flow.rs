//! Flows of frames, masks and matches.

use fibula_classify::{Field, Flow, Mask, Match};
use fibula_packet::{Frame, LinkType};

/// A frame of two tags, IPv4, TCP: every field at another value.
pub fn frame() -> Vec<u8> {
    [
        &b"\x02\x03\x04\x05\x06\x07\x0a\x0b\x0c\x0d\x0e\x0f"[..],
        b"\x88\xa8\xb0\x07\x81\x00\x60\x08\x08\x00",
        b"\x45\xb9\0\x28\x12\x34\x40\0\x40\x06\0\0\xc0\0\x02\x01\xc6\x33\x64\x02",
        b"\0\x50\x10\0\0\0\0\0\0\0\0\0\x50\x12\0\0\0\0\0\0",
    ]
    .concat()
}

fn flow(bytes: &[u8]) -> Flow {
    Flow::from(&Frame::parse(LinkType::Ethernet, bytes))
}

fn fields(flow: &Flow) -> Vec<(Field, u128)> {
    Field::ALL.map(|field| (field, flow.get(field))).into_iter().filter(|(_, v)| *v != 0).collect()
}

#[test]
fn a_frame_of_ipv4_has_its_fields() {
    use Field::*;
    let expected = [
        (EthDst, 0x0203_0405_0607),
        (EthSrc, 0x0a0b_0c0d_0e0f),
        (Vlan, 7),
        (VlanDei, 1),
        (VlanPcp, 5),
        (VlanTpid, 0x88a8),
        (InnerVlan, 8),
        (InnerVlanPcp, 3),
        (InnerVlanTpid, 0x8100),
        (Ipv4Src, 0xc000_0201),
        (Ipv4Dst, 0xc633_6402),
        (SrcPort, 80),
        (DstPort, 4096),
        (Protocol, 6),
        (Transport, 1),
        (IpVersion, 4),
        (EthType, 0x800),
        (Dscp, 46),
        (Ecn, 1),
        (TcpFlags, 0x12),
    ];
    assert_eq!(fields(&flow(&frame())), expected);
}

#[test]
fn a_later_fragment_has_no_ports() {
    let mut bytes = frame();
    bytes[29] = 5; // fragment offset
    let flow = flow(&bytes);
    let got = [Field::Fragment, Field::Transport, Field::SrcPort, Field::Protocol];
    assert_eq!(got.map(|field| flow.get(field)), [2, 0, 0, 6]);
}

#[test]
fn icmp_over_ipv6() {
    let bytes = [
        &[2; 12][..],
        b"\x86\xdd\x60\0\0\0\0\x04\x3a\x40",
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        b"\x01\x04\0\0",
    ]
    .concat();
    let flow = flow(&bytes);
    use Field::*;
    let got = [IpVersion, Ipv6Src, Ipv6Dst, Protocol, Transport, IcmpType, IcmpCode, Ipv4Src];
    let net = 0x2001_0db8 << 96;
    assert_eq!(got.map(|field| flow.get(field)), [6, net | 1, net | 2, 58, 2, 1, 4, 0]);
}

#[test]
fn a_malformed_header_leaves_the_link_fields() {
    let mut bytes = frame();
    bytes[22] = 0x44; // IHL below 5
    let flow = flow(&bytes);
    let got = [Field::EthType, Field::IpVersion, Field::Ipv4Src, Field::Protocol, Field::SrcPort];
    assert_eq!(got.map(|field| flow.get(field)), [0x800, 0, 0, 0, 0]);
}

#[test]
fn masks() {
    assert_eq!(Mask::prefix(Field::Ipv4Src, 0), Mask::EMPTY);
    assert_eq!(Mask::prefix(Field::Ipv6Dst, 0), Mask::EMPTY);
    assert_eq!(Mask::prefix(Field::Ipv4Src, 32), Mask::exact(Field::Ipv4Src));
    assert_eq!(Mask::prefix(Field::Ipv4Src, 99), Mask::exact(Field::Ipv4Src));
    assert_eq!(Mask::prefix(Field::Ipv4Src, 9).get(Field::Ipv4Src), 0xff80_0000);
    assert_eq!(Mask::prefix(Field::Ipv6Src, 65).get(Field::Ipv6Src), u128::MAX << 63);
    let both = Mask::prefix(Field::Ipv4Src, 8) | Mask::bits(Field::DstPort, 0xfff0);
    assert!(both.contains(&Mask::prefix(Field::Ipv4Src, 7)));
    assert!(!both.contains(&Mask::prefix(Field::Ipv4Src, 9)));
    assert_eq!(both.count(), 20);
}

#[test]
fn matches_depend_on_the_bits_of_the_mask_alone() {
    let all = flow(&frame());
    for field in Field::ALL {
        for bit in 0..field.bits() {
            let mut other = all;
            other.set(field, all.get(field) ^ 1 << bit);
            let mask = Mask::bits(field, 1 << bit);
            assert!(!Match::new(all, mask).matches(&other), "{field} {bit}");
            let rest = Mask::bits(field, !(1 << bit));
            assert!(Match::new(all, rest).matches(&other), "{field} {bit}");
            assert_eq!(Match::new(all, rest), Match::new(other, rest));
        }
    }
    assert!(Match::default().matches(&all));
}
