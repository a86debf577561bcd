//! The messages that FRR would send for a generated table by FPM or BMP.

use std::net::{Ipv4Addr, Ipv6Addr};

use fibula_core::{Addr, AnyPrefix};
use fibula_testkit::fib::{FibSpec, HopModel};

/// Writes the protocol's message for a change of a prefix.
pub type Write1 = fn(AnyPrefix, u8, &mut Vec<u8>);

/// A protocol's messages about a generated table.
pub struct Stream {
    /// The prefixes, in order.
    pub prefixes: Vec<AnyPrefix>,
    /// All routes, with the messages before and after them.
    pub bytes: Vec<u8>,
    pub write: Write1,
}

impl Stream {
    /// `protocol` is fpm or bmp.
    pub fn new(protocol: &str, v4: usize, v6: usize) -> Result<Self, String> {
        let mut prefixes = Vec::<AnyPrefix>::new();
        generate::<u32>(v4, &mut prefixes);
        generate::<u128>(v6, &mut prefixes);
        let mut bytes = Vec::new();
        let write: Write1 = match protocol {
            "fpm" => fpm,
            "bmp" => {
                begin_bmp(&mut bytes);
                bmp
            }
            other => return Err(format!("{other}: fpm or bmp")),
        };
        prefixes.iter().for_each(|&prefix| write(prefix, 1, &mut bytes));
        if protocol == "bmp" {
            monitoring(&[0, 0, 0, 0], &mut bytes);
            monitoring(&[0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1], &mut bytes);
        }
        Ok(Self { prefixes, bytes, write })
    }
}

fn generate<A: Addr>(prefixes: usize, into: &mut Vec<AnyPrefix>) {
    let spec = FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Near(64) };
    into.extend(spec.generate::<A>().iter().map(|route| AnyPrefix::from(route.prefix)));
}

/// RTM_NEWROUTE with an inline next hop.
fn fpm(prefix: AnyPrefix, next_hop: u8, out: &mut Vec<u8>) {
    let (family, len, addr, gateway) = match prefix {
        AnyPrefix::V4(prefix) => {
            let gateway = Ipv4Addr::new(192, 0, 2, next_hop).octets().to_vec();
            (2, prefix.len(), prefix.addr().to_be_bytes().to_vec(), gateway)
        }
        AnyPrefix::V6(prefix) => {
            let gateway =
                Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(next_hop)).octets().to_vec();
            (10, prefix.len(), prefix.addr().to_be_bytes().to_vec(), gateway)
        }
    };
    let mut body = vec![family, len, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    for (kind, value) in [(1u16, &addr[..]), (5, &gateway), (4, &[3, 0, 0, 0])] {
        body.extend((value.len() as u16 + 4).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
    }
    out.extend([1, 1]);
    out.extend((body.len() as u16 + 20).to_be_bytes());
    out.extend((body.len() as u32 + 16).to_ne_bytes());
    out.extend([24u16, 0x501].map(u16::to_ne_bytes).concat());
    out.extend([0; 8]);
    out.extend(body);
}

const PEER_AS: u32 = 64500;

/// The per-peer header: post-policy, of one peer.
fn peer_header() -> Vec<u8> {
    let mut header = vec![0, 0x40];
    header.extend([0; 8 + 12]);
    header.extend([192, 0, 2, 1]);
    header.extend(PEER_AS.to_be_bytes());
    header.extend([192, 0, 2, 1]);
    header.extend([0; 8]);
    header
}

fn bmp_message(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(3);
    out.extend((body.len() as u32 + 6).to_be_bytes());
    out.push(kind);
    out.extend(body);
}

fn bgp_message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[0xff; 16][..], &(body.len() as u16 + 19).to_be_bytes(), &[kind], body].concat()
}

/// Initiation, and a peer that has come up with both families and four-byte AS numbers.
fn begin_bmp(out: &mut Vec<u8>) {
    bmp_message(4, &[0, 2, 0, 6, b'd', b'a', b'e', b'm', b'o', b'n'], out);
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 65, 4];
    capabilities.extend(PEER_AS.to_be_bytes());
    let mut open = vec![4, 0xfb, 0xf4, 0, 90, 192, 0, 2, 1];
    open.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    open.extend(capabilities);
    let open = bgp_message(1, &open);
    let mut body = peer_header();
    body.extend([0; 12]);
    body.extend([192, 0, 2, 9]);
    body.extend([0, 179, 0x80, 0]);
    body.extend(&open);
    body.extend(&open);
    bmp_message(3, &body, out);
}

fn monitoring(update: &[u8], out: &mut Vec<u8>) {
    let body = [peer_header(), bgp_message(2, update)].concat();
    bmp_message(0, &body, out);
}

/// An UPDATE that announces a prefix.
fn bmp(prefix: AnyPrefix, next_hop: u8, out: &mut Vec<u8>) {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 14, 2, 3];
    for asn in [PEER_AS, 64000 + u32::from(next_hop), 64501] {
        attributes.extend(asn.to_be_bytes());
    }
    let (addr, len) = match prefix {
        AnyPrefix::V4(prefix) => (prefix.addr().to_be_bytes().to_vec(), prefix.len()),
        AnyPrefix::V6(prefix) => (prefix.addr().to_be_bytes().to_vec(), prefix.len()),
    };
    let mut nlri = vec![len];
    nlri.extend(&addr[..usize::from(len.div_ceil(8))]);
    if addr.len() == 4 {
        attributes.extend([0x40, 3, 4, 192, 0, 2, next_hop]);
    } else {
        let hop = Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(next_hop)).octets();
        attributes.extend([0x80, 14, nlri.len() as u8 + 21, 0, 2, 1, 16]);
        attributes.extend(hop);
        attributes.push(0);
        attributes.extend(&nlri);
        nlri.clear();
    }
    let mut update = vec![0, 0];
    update.extend((attributes.len() as u16).to_be_bytes());
    update.extend(attributes);
    update.extend(nlri);
    monitoring(&update, out);
}
