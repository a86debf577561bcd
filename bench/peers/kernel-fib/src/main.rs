//! Linux's forwarding tables of the main routing table: the trie of IPv4 (`fib_trie`), and that of IPv6 (`ip6_fib`).
//!
//! Each lookup is a question over netlink, so its rate is that of a control program, and not that of forwarding: a
//! system call or two take longer than the lookup. IPv4 has a socket for lookups alone (NETLINK_FIB_LOOKUP), which
//! answers with the length of the matching prefix; the hop is found by it in a map. IPv6 is asked for its route
//! (RTM_GETROUTE with RTM_F_FIB_MATCH), whose metric is the hop plus 1.
#![forbid(unsafe_code)]

mod netlink;
mod routes;

use std::collections::HashMap;
use std::fs;
use std::io;

use bench_peer::{Built, NO_HOP, Route, Table, serve};

use crate::netlink::{Answer, Socket};

/// Questions in one system call: their answers must fit into the socket's buffer.
const AT_ONCE: usize = 128;

fn main() -> io::Result<()> {
    let release = rustix::system::uname();
    serve("kernel-fib", &release.release().to_string_lossy(), v4, v6)
}

/// Memory of the kernel's slabs, which have the tables.
fn slabs() -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Slab:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kib.unwrap_or_default() << 10
}

/// Fills the main table. Returns what the kernel's memory grew by.
fn fill<const N: usize>(routes: impl Iterator<Item = ([u8; N], u8, u32)>) -> Result<usize, String> {
    let before = slabs();
    let socket = Socket::open(netlink::ROUTE).map_err(|error| error.to_string())?;
    let device = socket.device("fib0").map_err(|error| format!("the interface fib0: {error}"))?;
    routes::add(&socket, routes, device).map_err(|error| format!("adding routes: {error}"))?;
    Ok(slabs().saturating_sub(before))
}

struct V4 {
    socket: Socket,
    hops: HashMap<(u32, u8), u32>,
    bytes: usize,
}

fn v4(routes: &[Route<u32>]) -> Built<u32> {
    let bytes = fill(routes.iter().map(|&(addr, len, hop)| (addr.to_be_bytes(), len, hop)))?;
    let socket = Socket::open(netlink::FIB_LOOKUP).map_err(|error| error.to_string())?;
    let hops = routes.iter().map(|&(addr, len, hop)| ((addr, len), hop)).collect();
    Ok(Box::new(V4 { socket, hops, bytes }))
}

impl Table<u32> for V4 {
    fn look_up(&self, keys: &[u32], hops: &mut [u32]) {
        for (&key, hop) in keys.iter().zip(hops) {
            let len = routes::matching_length(&self.socket, key).expect("the kernel answers");
            let prefix = len.map(|len| (routes::masked(key, len), len));
            *hop = prefix.map_or(NO_HOP, |prefix| self.hops[&prefix]);
        }
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.bytes)
    }

    fn note(&self) -> String {
        "a system call to ask and one to read for each key; memory is what the kernel's slabs grew by".to_owned()
    }
}

struct V6 {
    socket: Socket,
    bytes: usize,
}

fn v6(routes: &[Route<u128>]) -> Built<u128> {
    let bytes = fill(routes.iter().map(|&(addr, len, hop)| (addr.to_be_bytes(), len, hop)))?;
    let socket = Socket::open(netlink::ROUTE).map_err(|error| error.to_string())?;
    Ok(Box::new(V6 { socket, bytes }))
}

impl Table<u128> for V6 {
    fn look_up(&self, keys: &[u128], hops: &mut [u32]) {
        for (keys, hops) in keys.chunks(AT_ONCE).zip(hops.chunks_mut(AT_ONCE)) {
            routes::ask(&self.socket, keys).expect("the kernel takes questions");
            for hop in hops {
                *hop = match self.socket.answer().expect("the kernel answers") {
                    Answer::Route { metric: Some(metric) } => metric - 1,
                    Answer::Route { metric: None } => panic!("the kernel found no route of ours"),
                    Answer::None => NO_HOP,
                };
            }
        }
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.bytes)
    }

    fn note(&self) -> String {
        format!(
            "{AT_ONCE} questions in a system call, one to read each answer; memory is what the kernel's slabs grew by"
        )
    }
}
