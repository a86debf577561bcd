//! The XDP program: which packets come to the router, and which stay with the kernel.
//!
//! ```text
//!   frame -> for this interface's MAC address? -> a VLAN tag is passed over -> IPv4 or IPv6?
//!         -> the destination is no address of this machine -> the socket of its queue
//!   all else: ARP, neighbour discovery, multicast, routing protocols, ping to the router -> the kernel
//! ```

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

use super::asm::{Call, Code, If, Reg, Size};
use crate::port::bpf::{self, MapKind};
use crate::port::xdp::{FastPath, PortProgram};

/// The most addresses of a machine, in each family.
const ADDRESSES: u32 = 16_384;
/// XDP_PASS: the kernel gets the packet.
const PASS: i32 = 2;

/// A loaded program with its maps.
pub(super) struct Program {
    pub program: OwnedFd,
    sockets: OwnedFd,
    local4: OwnedFd,
    local6: OwnedFd,
    local: Mutex<HashSet<IpAddr>>,
}

impl Program {
    /// Loads it for an interface with that MAC address and so many queues; with the fast path, its program, which does
    /// the same with what it does not forward.
    pub fn load(
        mac: [u8; 6],
        queues: u32,
        fast: Option<(&FastPath, u16, bool)>,
    ) -> io::Result<Self> {
        let sockets = bpf::map(MapKind::XskMap, 4, 4, queues)?;
        let local4 = bpf::map(MapKind::Hash, 4, 4, ADDRESSES)?;
        let local6 = bpf::map(MapKind::Hash, 16, 4, ADDRESSES)?;
        let program = match fast {
            None => bpf::load("fibula", &instructions(mac, &sockets, &local4, &local6))?,
            Some((fast, port, is_partial)) => {
                let own = [("sockets", &sockets), ("local4", &local4), ("local6", &local6)];
                fast.load("forward", &PortProgram { port, mac, is_partial }, &own)?
            }
        };
        Ok(Self { program, sockets, local4, local6, local: Mutex::default() })
    }

    /// The queue's packets go to this socket.
    pub fn set_socket(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        bpf::update(&self.sockets, &queue.to_ne_bytes(), socket.as_raw_fd() as u32)
    }

    /// Packets to these addresses, and to no others, stay with the kernel.
    pub fn set_local(&self, addresses: &[IpAddr]) -> io::Result<()> {
        let wanted: HashSet<IpAddr> = addresses.iter().copied().collect();
        let mut local = self.local.lock().expect("nobody panics with it");
        for &address in wanted.difference(&local.clone()) {
            match address {
                IpAddr::V4(v4) => bpf::update(&self.local4, &v4.octets(), 1)?,
                IpAddr::V6(v6) => bpf::update(&self.local6, &v6.octets(), 1)?,
            }
            local.insert(address);
        }
        for &address in local.clone().difference(&wanted) {
            match address {
                IpAddr::V4(v4) => bpf::remove(&self.local4, &v4.octets())?,
                IpAddr::V6(v6) => bpf::remove(&self.local6, &v6.octets())?,
            }
            local.remove(&address);
        }
        Ok(())
    }
}

// Offsets in struct xdp_md, the program's argument.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

fn instructions(mac: [u8; 6], sockets: &OwnedFd, local4: &OwnedFd, local6: &OwnedFd) -> Vec<u64> {
    use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R10};
    use Size::{Half, Word};
    let half = |at: usize| u32::from(u16::from_ne_bytes([mac[at], mac[at + 1]]));
    let word = u32::from_ne_bytes([mac[0], mac[1], mac[2], mac[3]]);
    let network = |number: u16| u32::from(number.to_be());

    let mut code = Code::default();
    code.copy(R6, R1);
    code.load(Word, R7, R6, DATA);
    code.load(Word, R8, R6, DATA_END);
    // R7: where the link header begins, then the network header. R8: the end.
    code.copy(R2, R7);
    code.add(R2, 14 + 20);
    code.jump_registers(If::Above, R2, R8, "pass");
    code.load(Word, R2, R7, 0);
    code.jump(If::NotEqual, R2, word, "pass");
    code.load(Half, R2, R7, 4);
    code.jump(If::NotEqual, R2, half(4), "pass");
    code.load(Half, R5, R7, 12);
    code.jump(If::Equal, R5, network(0x8100), "tagged");
    code.jump(If::Equal, R5, network(0x88a8), "tagged");
    code.add(R7, 14);
    code.go("network");
    code.label("tagged");
    code.load(Half, R5, R7, 16);
    code.add(R7, 18);
    code.label("network");
    code.jump(If::Equal, R5, network(0x0800), "ipv4");
    code.jump(If::Equal, R5, network(0x86dd), "ipv6");
    code.go("pass");

    // The destination is the key of a lookup, on the stack.
    code.label("ipv4");
    code.copy(R2, R7);
    code.add(R2, 20);
    code.jump_registers(If::Above, R2, R8, "pass");
    code.load(Word, R3, R7, 16);
    code.store(Word, R10, -4, R3);
    code.map(R1, local4);
    code.copy(R2, R10);
    code.add(R2, -4);
    code.go("look up");

    code.label("ipv6");
    code.copy(R2, R7);
    code.add(R2, 40);
    code.jump_registers(If::Above, R2, R8, "pass");
    // fe80::/10 is the link's own, ff00::/8 multicast.
    code.load(Half, R3, R7, 24);
    code.copy(R4, R3);
    code.and(R4, network(0xffc0) as i32);
    code.jump(If::Equal, R4, network(0xfe80), "pass");
    code.and(R3, network(0xff00) as i32);
    code.jump(If::Equal, R3, network(0xff00), "pass");
    // In words: the address lies at no multiple of eight.
    for word in 0..4 {
        code.load(Word, R3, R7, 24 + word * 4);
        code.store(Word, R10, -16 + word * 4, R3);
    }
    code.map(R1, local6);
    code.copy(R2, R10);
    code.add(R2, -16);

    code.label("look up");
    code.call(Call::Lookup);
    code.jump_not_null(R0, "pass");
    code.load(Word, R2, R6, QUEUE);
    code.map(R1, sockets);
    // The return value if the queue has no socket.
    code.set(R3, PASS);
    code.call(Call::RedirectMap);
    code.exit();

    code.label("pass");
    code.set(R0, PASS);
    code.exit();
    code.finish()
}
