//! Ports of DPDK on its virtual devices, without privileges and without huge pages.
//!
//! All tests are one process, which has DPDK's environment once. Each test has its own devices.

mod errors;
mod frames;
mod routing;

#[path = "../forward/model/mod.rs"]
mod model;
#[path = "../forward/world.rs"]
mod world;

use std::time::{Duration, Instant};

use fibula_router::port::dpdk::{self, DpdkOptions, FRONT};
use fibula_router::port::{Port, Queue};
use fibula_router::{Packet, Pool};

const SLOTS: u32 = 4096;

fn pool() -> Pool {
    Pool::with_front(SLOTS, 2048, FRONT)
}

fn open<'p>(devargs: &str, pool: &'p Pool) -> Port<'p> {
    dpdk::open(devargs, pool, &DpdkOptions::default()).unwrap()
}

fn packet<'p>(pool: &'p Pool, bytes: &[u8]) -> Packet<'p> {
    let mut packet = pool.take().expect("enough slots");
    assert!(packet.fill(bytes));
    packet
}

/// Sends all of them.
fn send<'p>(pool: &'p Pool, queue: &mut Queue<'p>, mut burst: Vec<Packet<'p>>) {
    let began = Instant::now();
    while !burst.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(10), "{} cannot be sent", burst.len());
        queue.transmit.transmit(pool, &mut burst).unwrap();
        queue.transmit.flush(pool).unwrap();
    }
}

/// Receives the waiting packets, in bursts of 50.
fn receive<'p>(pool: &'p Pool, queue: &mut Queue<'p>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    loop {
        let mut burst = Vec::new();
        let count = queue.receive.receive(pool, &mut burst, 50).unwrap();
        assert!(count == burst.len() && count <= 50);
        if count == 0 {
            return found;
        }
        found.extend(burst.iter().map(|packet| packet.bytes().to_vec()));
        pool.give(burst);
    }
}
