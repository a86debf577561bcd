//! Packets to random addresses.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{Flows, MemoryOptions, open};
use crate::Pool;
use crate::port::Port;

/// Flows of the port.
const FLOWS: usize = 65_536;

/// The sender's MAC address.
const SENDER: [u8; 6] = [2, 0, 0, 0, 0xff, 0];

/// Makes a port that receives packets of 60 bytes to random IPv4 addresses without end, and discards the packets that
/// it sends. The seed decides on the addresses.
pub fn random<'p>(name: &str, pool: &'p Pool, mac: [u8; 6], seed: u64) -> Port<'p> {
    let mut state = seed;
    let mut next = || {
        // Of 1.0.0.0 to 223.255.255.255, without 127.0.0.0/8 and what is next to it.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [a, b, c, d] = ((state >> 32) as u32).to_be_bytes();
        Ipv4Addr::new(if a % 222 + 1 == 127 { 128 } else { a % 222 + 1 }, b, c, d).into()
    };
    let addresses: Vec<_> = (0..FLOWS).map(|_| next()).collect();
    let flows = Arc::new(Flows::udp(SENDER, mac, 60, addresses));
    let options = MemoryOptions { mac, queues: 1, flows, packets: None };
    open(name, pool, &options).0
}
