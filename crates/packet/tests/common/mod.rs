//! Frames that several tests use: a real capture, and builders of hand-made ones.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;

use fibula_packet::{LinkType, checksum};

/// The packets of the committed capture: the bytes kept of an Ethernet frame, its length on the
/// wire.
pub fn capture() -> Vec<(Vec<u8>, usize)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tcpdump-tests.pcap");
    let file = std::fs::read(path).unwrap();
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut found, mut at) = (Vec::new(), 24);
    while at < file.len() {
        let captured = number(at + 8);
        found.push((file[at + 16..at + 16 + captured].to_vec(), number(at + 12)));
        at += 16 + captured;
    }
    assert_eq!(found.len(), 1235);
    found
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// An Ethernet frame: MACs, tags of TPID and TCI, EtherType, payload.
pub fn ethernet(tags: &[(u16, u16)], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = hex("020000000001 020000000002");
    for (tpid, tci) in tags {
        out.extend(tpid.to_be_bytes());
        out.extend(tci.to_be_bytes());
    }
    out.extend(ether_type.to_be_bytes());
    out.extend(payload);
    out
}

/// An IPv4 packet from 192.0.2.1 to 198.51.100.2, with a right length and checksum. `fragment` is
/// the field of flags and offset.
pub fn ipv4(options: &[u8], fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut out = vec![0x40 | (header / 4) as u8, 0];
    out.extend(((header + payload.len()) as u16).to_be_bytes());
    out.extend([0x12, 0x34]);
    out.extend(fragment.to_be_bytes());
    out.extend([64, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    out.extend(options);
    let sum = checksum::compute(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(payload);
    out
}

/// An IPv6 packet between two addresses of 2001:db8::/32, with a right length.
pub fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = hex("6b912345");
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend([next, 64]);
    out.extend(hex("20010db8000000000000000000000001 20010db8000000000000000000000002"));
    out.extend(payload);
    out
}

pub fn udp() -> Vec<u8> {
    hex("0035 1000 000c 0000 01020304")
}

pub fn tcp() -> Vec<u8> {
    hex("0050 1f90 00000001 00000002 6012 1000 abcd 0000 020405b4 aabb")
}

/// Hand-made frames, each with what it shows.
pub fn frames() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    use LinkType::{CiscoHdlc, Ethernet, LinuxSll, LinuxSll2, Loopback, Ppp, RawIp};
    let v4 = || ipv4(&[], 0x4000, 17, &udp());
    let v6 = |next: u8, chain: &str| [ipv6(next, &[hex(chain), udp()].concat())].concat();
    let after = |head: &str| [hex(head), v4()].concat();
    let chain = "2b00010400000000 2c01000000000000 0000000000000000 3300000100000007 \
                 3c01000000000001 00000002 1100010400000000";
    // Hop-by-hop headers that name each other until the packet ends.
    let loops = "0000010400000000".repeat(9);
    let mut jumbo = v6(0, "1100 c204 00010000");
    jumbo[4..6].fill(0);
    let mut offloaded = ipv4(&[], 0, 6, &tcp());
    offloaded[2..4].fill(0);
    let mut overlong = v4();
    overlong[2] = 5;
    let mut short_header = v4();
    short_header[0] = 0x44;
    let mut within = v6(60, "1101010400000000 0000000000000000");
    within[5] = 8;
    let mut version = v4();
    version[0] = 0x65;
    let mut tcp_offset = tcp();
    tcp_offset[12] = 0x40;
    let tags = [(0x88a8, 0x2064), (0x8100, 0xb007), (0x9100, 1), (0x9200, 2), (0x8100, 3)];
    vec![
        ("UDP", Ethernet, ethernet(&[], 0x0800, &v4())),
        ("padding", Ethernet, [ethernet(&[], 0x0800, &v4()), vec![0; 14]].concat()),
        ("one tag", Ethernet, ethernet(&tags[1..2], 0x0800, &v4())),
        ("QinQ", Ethernet, ethernet(&tags[..2], 0x86dd, &v6(17, ""))),
        ("five tags", Ethernet, ethernet(&tags, 0x0800, &v4())),
        ("tags and nothing", Ethernet, ethernet(&tags, 0x8100, &[])),
        ("ARP", Ethernet, ethernet(&[], 0x0806, &hex("0001 0800 0604 0001"))),
        ("LLC", Ethernet, ethernet(&[], 0x0026, &hex("424203 0000 000000 8000"))),
        ("SNAP", Ethernet, ethernet(&[], 0x0028, &after("aaaa03000000 0800"))),
        ("SNAP of AppleTalk", Ethernet, ethernet(&[], 0x0028, &hex("aaaa03000000 809b 0102"))),
        ("MPLS", Ethernet, ethernet(&[], 0x8847, &after("00010040 00020140"))),
        ("MPLS of Ethernet", Ethernet, ethernet(&[], 0x8847, &hex("00020140 00000000 0200"))),
        ("MPLS without end", Ethernet, ethernet(&[], 0x8848, &hex("00010040").repeat(4))),
        ("PPPoE", Ethernet, ethernet(&[], 0x8864, &after("110000010022 0021"))),
        ("PPPoE, LCP", Ethernet, ethernet(&[], 0x8864, &hex("110000010006 c021 0101"))),
        ("loopback", Loopback, after("02000000")),
        ("loopback, other order", Loopback, [hex("0000001e"), v6(17, "")].concat()),
        ("loopback, other family", Loopback, hex("07000000 0102")),
        ("PPP", Ppp, after("0021")),
        ("PPP with address", Ppp, after("ff03 0021")),
        ("Cisco HDLC", CiscoHdlc, after("0f00 0800")),
        ("SLL", LinuxSll, after("0000 0001 0006 020000000001 0000 0800")),
        ("SLL2", LinuxSll2, after("0800 0000 00000002 0001 00 06 0200000000010000")),
        ("SLL2, tagged", LinuxSll2, after(&("8100".to_owned() + &"00".repeat(18) + "20070800"))),
        ("SLL2, ARP", LinuxSll2, hex(&("0806".to_owned() + &"00".repeat(18) + "0001"))),
        ("raw IPv6", RawIp, v6(17, "")),
        ("version 5", RawIp, hex("55000000")),
        ("TCP with options", RawIp, ipv4(&[], 0, 6, &tcp())),
        ("IPv4 options", RawIp, ipv4(&hex("94040000 0101 0100"), 0, 17, &udp())),
        ("first fragment", RawIp, ipv4(&[], 0x2000, 17, &udp())),
        ("later fragment", RawIp, ipv4(&[], 0x2003, 17, &udp())),
        ("ICMP", RawIp, ipv4(&[], 0, 1, &hex("0800 f7ff 00000000"))),
        ("SCTP", RawIp, ipv4(&[], 0, 132, &hex("0bb80bb9 00000001 00000000 00"))),
        ("IPv4 with AH", RawIp, ipv4(&[], 0, 51, &hex("1101000000000001 00000002"))),
        ("chain", RawIp, v6(0, chain)),
        ("chain without end", RawIp, ipv6(0, &hex(&loops))),
        ("chain longer than the frame", RawIp, ipv6(60, &hex("11ff000000000000"))),
        ("IPv6 fragment", RawIp, v6(44, "1100000100000007")),
        ("later IPv6 fragment", RawIp, v6(44, "3c00000900000007")),
        ("atomic fragment in a fragment", RawIp, v6(44, "2c00000100000007 1100000000000008")),
        ("atomic IPv6 fragment", RawIp, v6(44, "1100000000000007")),
        ("ESP", RawIp, ipv6(60, &hex("3200010400000000 00000001 00000002 deadbeef"))),
        ("no next header", RawIp, ipv6(60, &hex("3b00010400000000 00350035"))),
        ("ICMPv6", RawIp, ipv6(0, &hex("3a00050200000000 8f00 0000 00000000"))),
        ("jumbo", RawIp, jumbo),
        ("length 0", RawIp, offloaded),
        ("longer than the frame", RawIp, overlong),
        ("IHL 4", RawIp, short_header),
        ("ends within its chain", RawIp, within),
        ("IPv4 with version 6", Ethernet, ethernet(&[], 0x0800, &version)),
        ("TCP data offset 4", RawIp, ipv4(&[], 0, 6, &tcp_offset)),
        ("empty", Ethernet, Vec::new()),
    ]
}
