//! Tables that are exchanged while packets are looked up and forwarded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Hop, Prefix, Routes};
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member};
use fibula_router::forward::Side;
use fibula_router::port::xdp::{Stamp, Tried};
use fibula_router::{Paths, View};

use super::{engine, fast_path};
use crate::forward::frames::{V4, V6};
use crate::forward::world::mac;

/// Number of generations, each with its own table and egress paths.
const GENERATIONS: u8 = 6;

/// A table of more or fewer routes by which all packets go to one hop, whose group is another number in each
/// generation. The group means the generation's own neighbour in its own ways out, and a wrong one in those of all
/// others.
struct Made {
    v4: fibula_engines::BoxedEngine<u32>,
    v6: fibula_engines::BoxedEngine<u128>,
    groups: Vec<u32>,
    paths: Paths,
}

const WRONG: u8 = 0xee;

fn made(number: u8) -> Made {
    let hop = Hop::new(u32::from(number) % 3);
    let mut v4: Vec<(Prefix<u32>, Hop)> = vec![(Prefix::ALL, hop)];
    let mut v6: Vec<(Prefix<u128>, Hop)> = vec![(Prefix::ALL, hop)];
    // Routes elsewhere, so that tables differ in size and everything moves.
    for at in 0..u32::from(number) * 700 {
        v4.push((Prefix::new(0x6400_0000 | at << 9, 24).unwrap(), Hop::new(at % 200)));
        v6.push((
            Prefix::new(0x2a00_u128 << 112 | u128::from(at) << 81, 48).unwrap(),
            Hop::new(at % 200),
        ));
    }
    let (v4, v6): (Routes<u32>, Routes<u128>) =
        (v4.into_iter().collect(), v6.into_iter().collect());
    let mut groups = vec![u32::from(GENERATIONS); 256];
    groups[u32::from(number) as usize % 3] = u32::from(number);
    let adjacency = |last| Adjacency {
        port: 0,
        gateway: [192, 0, 2, last].into(),
        mac: Some([2, 0, 0, 0, 9, last]),
    };
    let egress = Egress {
        groups: (0..=GENERATIONS)
            .map(|group| {
                let at = u32::from(group != number);
                // One way out, or equal ones: both kinds of records are read.
                Group::Forward(vec![Member::Gateway(at); 1 + usize::from(number % 2)])
            })
            .collect(),
        adjacencies: vec![adjacency(number), adjacency(WRONG)],
        ports: vec![EgressPort { mac: mac(0), mtu: 1500, ..EgressPort::default() }],
        ..Egress::default()
    };
    Made { v4: engine(&v4), v6: engine(&v6), groups, paths: Paths::new(egress) }
}

#[test]
fn no_packet_sees_two_generations() {
    let Some(fast) = fast_path(1, 7) else { return };
    fast.set_port(0, 1).unwrap();
    let all: Vec<Made> = (0..GENERATIONS).map(made).collect();
    // The published generation lies between these two.
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let publish = |number: u64| {
        let made = &all[(number % u64::from(GENERATIONS)) as usize];
        let view = View {
            v4: Side { engine: &*made.v4, groups: &made.groups },
            v6: Side { engine: &*made.v6, groups: &made.groups },
            egress: &made.paths,
        };
        begun.store(number, Relaxed);
        let stamp = Stamp { v4: number + 1, v6: number + 1, egress: number + 1 };
        assert!(fast.publish(stamp, &view).unwrap());
        done.store(number, Relaxed);
    };
    publish(0);
    let trial = fast.trial(0, mac(0), &[], false).unwrap();
    let stop = AtomicBool::new(false);
    let tried: u64 = thread::scope(|scope| {
        let workers: Vec<_> = [V4::to(1).frame(0), V6::to(1).frame(0)]
            .into_iter()
            .map(|frame| {
                let (trial, stop, begun, done) = (&trial, &stop, &begun, &done);
                scope.spawn(move || {
                    let mut tried = 0;
                    while !stop.load(Relaxed) {
                        let oldest = done.load(Relaxed);
                        let found = trial.frame(&frame).unwrap();
                        let newest = begun.load(Relaxed);
                        let Tried::Sent(sent) = found else { panic!("{found:?}") };
                        let is_right = (oldest..=newest)
                            .any(|number| sent[5] == (number % u64::from(GENERATIONS)) as u8);
                        assert!(is_right, "{:02x?}, of {oldest} to {newest}", &sent[..6]);
                        tried += 1;
                    }
                    tried
                })
            })
            .collect();
        let began = Instant::now();
        let mut number = 0;
        while began.elapsed() < Duration::from_secs(2) || number < 20 {
            number += 1;
            publish(number);
            assert!(began.elapsed() < Duration::from_secs(60), "{number} generations");
        }
        stop.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(tried > 1000, "{tried}");
    let number = done.load(Relaxed);
    println!("{number} generations, {tried} packets");
}
