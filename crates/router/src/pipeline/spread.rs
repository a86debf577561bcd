//! Which flow a packet belongs to, for threads that share the flows of a queue.

use std::net::IpAddr;

use fibula_packet::{Frame, LinkType};

use crate::Packet;

/// A number that all packets of a flow have in common: of their addresses alone, since later fragments have no ports.
/// Packets other than IP are one flow for each port.
pub(super) fn flow(packet: &Packet<'_>) -> u32 {
    let Some((from, to)) = Frame::parse(LinkType::Ethernet, packet.bytes()).ends() else {
        return packet.port.into();
    };
    let number = |address| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mixed(bits as u64) ^ (bits >> 64) as u64
        }
    };
    (mixed(mixed(number(from)) ^ number(to)) >> 32) as u32
}

/// Every bit of the number changes the upper half (the finisher of splitmix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
