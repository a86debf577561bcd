//! Frames of all kinds.

use fibula_testkit::Rng;

use super::model::checksum;
use super::world::mac;

/// An Ethernet frame to a port: tags of TPID and TCI, EtherType, payload.
pub fn ethernet(port: u16, tags: &[(u16, u16)], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = mac(port).to_vec();
    out.extend([2, 0, 0, 0, 9, 9]);
    for (tpid, tci) in tags {
        out.extend(tpid.to_be_bytes());
        out.extend(tci.to_be_bytes());
    }
    out.extend(ether_type.to_be_bytes());
    out.extend(payload);
    out
}

/// The parts of an IPv4 packet.
#[derive(Clone, Debug)]
pub struct V4 {
    pub class: u8,
    pub ttl: u8,
    /// Flags and offset.
    pub fragment: u16,
    pub protocol: u8,
    pub source: [u8; 4],
    pub destination: [u8; 4],
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl V4 {
    /// A UDP datagram to an address of group `group`.
    pub fn to(group: u8) -> Self {
        Self {
            class: 0xb8,
            ttl: 64,
            fragment: 0,
            protocol: 17,
            source: [198, 18, 0, 5],
            destination: [10, group, 0, 9],
            options: Vec::new(),
            payload: [&[0x10, 0, 0, 0x35, 0, 12, 0, 0][..], b"abcd"].concat(),
        }
    }

    pub fn packet(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let mut out = vec![0x40 | (header / 4) as u8, self.class];
        out.extend(((header + self.payload.len()) as u16).to_be_bytes());
        out.extend([0x12, 0x34]);
        out.extend(self.fragment.to_be_bytes());
        out.extend([self.ttl, self.protocol, 0, 0]);
        out.extend(self.source);
        out.extend(self.destination);
        out.extend(&self.options);
        let sum = checksum(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(&self.payload);
        out
    }

    pub fn frame(&self, port: u16) -> Vec<u8> {
        ethernet(port, &[], 0x0800, &self.packet())
    }
}

/// The parts of an IPv6 packet.
#[derive(Clone, Debug)]
pub struct V6 {
    pub limit: u8,
    pub next: u8,
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub payload: Vec<u8>,
}

impl V6 {
    pub fn to(group: u8) -> Self {
        let address = |group, last| {
            let mut address = [0x20, 0x01, 0x0d, 0xb8, 0, group, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            address[6] = 0;
            address
        };
        Self {
            limit: 64,
            next: 17,
            source: address(0xee, 5),
            destination: address(group, 9),
            payload: [&[0x10, 0, 0, 0x35, 0, 12, 0, 0][..], b"abcd"].concat(),
        }
    }

    pub fn packet(&self) -> Vec<u8> {
        let mut out = vec![0x6b, 0x91, 0x23, 0x45];
        out.extend((self.payload.len() as u16).to_be_bytes());
        out.extend([self.next, self.limit]);
        out.extend(self.source);
        out.extend(self.destination);
        out.extend(&self.payload);
        out
    }

    pub fn frame(&self, port: u16) -> Vec<u8> {
        ethernet(port, &[], 0x86dd, &self.packet())
    }
}

/// Options: record route, timestamp, source routes, router alert, security, padding, unknown ones, malformed ones.
pub const OPTIONS: [&[u8]; 14] = [
    &[],
    &[7, 7, 4, 0, 0, 0, 0, 0],
    &[0x44, 8, 5, 0, 1, 2, 3, 4],
    &[0x94, 4, 0, 0],
    &[0x94, 4, 0, 0, 7, 3, 4, 1, 0x82, 3, 9, 0],
    &[1, 1, 1, 0x82, 5, 1, 2, 3, 0x1e, 3, 7, 0],
    &[0x83, 7, 4, 10, 0, 0, 1, 0],
    &[1, 0x89, 7, 4, 10, 0, 0, 1],
    &[0x9e, 6, 1, 2, 3, 4, 0, 0],
    &[0, 0x83, 7, 4],
    &[7, 1, 0, 0],
    &[1, 1, 1, 0x94],
    &[0x94, 9, 0, 0, 0x83, 3, 4, 0],
    &[1, 1, 1, 1, 0x99, 0, 0, 0],
];

/// Chains of extension headers, each with the number of the first and UDP at the end where one says so.
pub const CHAINS: [(u8, &[u8]); 15] = [
    (17, &[]),
    (0, &[17, 0, 1, 4, 0, 0, 0, 0]),
    (60, &[17, 0, 1, 4, 0, 0, 0, 0]),
    (43, &[17, 0, 0, 0, 0, 0, 0, 0]),
    (44, &[17, 0, 0, 1, 0, 0, 0, 7]),
    (44, &[17, 0, 0, 9, 0, 0, 0, 7]),
    (44, &[60, 0, 0, 8, 0, 0, 0, 7]),
    (44, &[17, 0, 0, 0, 0, 0, 0, 7]),
    (44, &[44, 0, 0, 1, 0, 0, 0, 7, 17, 0, 0, 0, 0, 0, 0, 8]),
    (0, &[51, 0, 5, 2, 0, 0, 0, 0, 17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]),
    (60, &[17, 99, 1, 4, 0, 0, 0, 0]),
    (0, &[17, 99, 1, 4, 0, 0, 0, 0]),
    (58, &[]),
    (44, &[58, 0, 0, 8, 0, 0, 0, 7]),
    (59, &[]),
];

/// A frame that is mostly sound: any kind of everything that the forwarder distinguishes.
pub fn any(rng: &mut Rng) -> (u16, Vec<u8>) {
    let port = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7][rng.below(11) as usize];
    let group = rng.below(25) as u8;
    let payload_len = match rng.below(4) {
        0 => rng.below(40),
        1 => rng.below(600),
        _ => 12,
    } as usize;
    let mut payload: Vec<u8> = (0..payload_len).map(|_| rng.next_u64() as u8).collect();
    if rng.chance(0.2) {
        payload.resize(payload_len + rng.below(3000) as usize, 0x5a);
    }
    let ttl = [64, 64, 64, 64, 64, 64, 64, 64, 64, 255, 2, 2, 2, 1, 1, 0][rng.below(16) as usize];
    let icmp = [0, 3, 4, 5, 8, 11, 12, 13, 30, 1, 2, 128, 129, 135, 137][rng.below(15) as usize];
    let (ether_type, mut packet) = if rng.chance(0.5) {
        let mut packet = V4 { payload, ttl, class: rng.next_u64() as u8, ..V4::to(group) };
        packet.source[3] = rng.next_u64() as u8;
        packet.destination[2..].copy_from_slice(&[[0, 9], [1, 1], [7, 7]][rng.below(3) as usize]);
        packet.protocol = rng.choose(&[17, 17, 6, 1, 47, 132]).unwrap_or(17);
        if packet.protocol == 1 && !packet.payload.is_empty() {
            packet.payload[0] = icmp;
        }
        if rng.chance(0.3) {
            packet.options = rng.choose(&OPTIONS).unwrap_or(&[]).to_vec();
        }
        packet.fragment =
            [0, 0, 0x4000, 0x2000, 0x2003, 0x0003, 0x1fff, 0x8000][rng.below(8) as usize];
        if rng.chance(0.15) {
            packet.source = addresses_v4(rng);
        }
        if rng.chance(0.15) {
            packet.destination = addresses_v4(rng);
        }
        (0x0800, packet.packet())
    } else {
        let (next, chain) = rng.choose(&CHAINS).unwrap_or((17, &[]));
        let mut packet = V6 { limit: ttl, next, ..V6::to(group) };
        packet.source[15] = rng.next_u64() as u8;
        if next == 58 && !payload.is_empty() {
            payload[0] = icmp;
        }
        packet.payload = [chain, &payload].concat();
        if rng.chance(0.15) {
            packet.source = addresses_v6(rng);
        }
        if rng.chance(0.15) {
            packet.destination = addresses_v6(rng);
        }
        (0x86dd, packet.packet())
    };
    if rng.chance(0.2) {
        packet.extend(std::iter::repeat_n(0xa5, rng.below(40) as usize));
    }
    let mut tags = [(0x8100, 0x2007), (0x88a8, 3), (0x9100, 5), (0x9200, 5)];
    if rng.chance(0.75) {
        // For their priority alone.
        tags.iter_mut().for_each(|(_, tci)| *tci &= 0xf000);
    }
    let tags = match rng.below(6) {
        0 => &tags[..1],
        1 => &tags[..2],
        2 => &tags[..rng.below(5) as usize],
        _ => &[],
    };
    let ether_type = match rng.below(40) {
        0 => rng.choose(&[0x0806, 0x8847, 0x8864, 0x88cc, 40, 0x86dd, 0x0800]).unwrap_or(0),
        _ => ether_type,
    };
    let mut frame = ethernet(port, tags, ether_type, &packet);
    match rng.below(20) {
        0 => frame[..6].fill(0xff),
        1 => frame[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 1]),
        2 => frame[5] ^= 0x40,
        3 => frame[6] |= 1,
        4 => frame.truncate(40 + rng.below(40) as usize),
        _ => {}
    }
    (port, frame)
}

fn addresses_v4(rng: &mut Rng) -> [u8; 4] {
    const SPECIAL: [[u8; 4]; 16] = [
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [127, 0, 0, 1],
        [169, 254, 1, 1],
        [169, 254, 7, 7],
        [169, 253, 1, 1],
        [224, 0, 0, 5],
        [239, 1, 1, 1],
        [240, 0, 0, 1],
        [255, 255, 255, 255],
        [192, 0, 2, 1],
        [203, 0, 113, 1],
        [198, 51, 100, 1],
        [10, 200, 0, 1],
        [8, 8, 8, 8],
        [223, 255, 255, 255],
    ];
    rng.choose(&SPECIAL).unwrap_or_default()
}

fn addresses_v6(rng: &mut Rng) -> [u8; 16] {
    const SPECIAL: [&str; 16] = [
        "::ffff:198.18.0.5",
        "::fffe:198.18.0.5",
        "::",
        "::1",
        "::2",
        "fe80::1",
        "fe80::77",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "fc00::1",
        "2001:db8:ffff::1",
        "2001:db8:ffff::2",
        "2620:fe::fe",
        "fe80::4",
    ];
    let address: std::net::Ipv6Addr = rng.choose(&SPECIAL).unwrap_or("::").parse().unwrap();
    address.octets()
}
