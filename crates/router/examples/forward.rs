//! Nanoseconds a packet of `Forwarder::forward`, on one core, beside those of the input and output alone.
//!
//! `cargo run --release -p fibula-router --example forward -- [v4|v6] [ENGINE] [PREFIXES] [BURST] [GATEWAYS]`
//!
//! A packet is written into a slot as a port without a device would do it (template, destination and checksum of one of
//! a million flows, PFX), forwarded, and its slot is taken again: the slots in use stay in the caches. "I/O alone" does
//! the same, moves the packet to its port by a field of the flow, and rewrites the MAC addresses. Every flow's output
//! is compared, before, with that of the path that handles one packet at a time, and its port with the oracle's answer.

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use fibula_core::{Addr, Engine, Hop, Lookup, Routes};
use fibula_engines::Isa;
use fibula_packet::checksum;
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member};
use fibula_router::forward::{Reason, Side};
use fibula_router::{ForwardOptions, Forwarder, Outcome, Packet, Paths, Pool, View};
use fibula_testkit::Oracle;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::traffic::{Traffic, keys};

const FLOWS: usize = 1 << 20;
const SLOTS: u32 = 1024;
/// Ports that packets leave by; they come in by port 0.
const PORTS: u16 = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let number = |at, default| argument(at).map_or(default, |text| text.parse().expect("a number"));
    match argument(0).unwrap_or("v4") {
        "v4" => measure::<u32>(
            argument(1).unwrap_or("runmap"),
            number(2, 900_000),
            number(3, 64),
            number(4, 64),
        ),
        "v6" => measure::<u128>(
            argument(1).unwrap_or("wideleaf"),
            number(2, 200_000),
            number(3, 64),
            number(4, 64),
        ),
        other => panic!("{other}: v4 or v6"),
    }
}

/// A flow: what differs between its packets and the template.
struct Flow<A> {
    destination: A,
    checksum: u16,
    port: u16,
}

trait Template: Addr {
    const FRAME: &'static [u8];
    fn flow(destination: Self, port: u16) -> Flow<Self>;
    fn write(flow: &Flow<Self>, frame: &mut [u8]);
    fn view<'a>(mine: Side<'a, Self>, egress: &'a Paths) -> View<'a>;
}

const V4: &[u8] = b"\x02\0\0\0\x01\0\x02\0\0\0\x09\x09\x08\0\x45\0\0\x2e\0\0\0\0\x40\x11\0\0\xc6\x12\0\x05\0\0\0\0\x10\0\0\x35\0\x1a\0\0aaaaaaaaaaaaaaaaaa";
const V6: &[u8] = b"\x02\0\0\0\x01\0\x02\0\0\0\x09\x09\x86\xdd\x60\0\0\0\0\x0c\x11\x40\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\x35\0\x0c\0\0aaaa";

static NONE4: std::sync::LazyLock<Oracle<u32>> =
    std::sync::LazyLock::new(|| Oracle::new(&Routes::default()));
static NONE6: std::sync::LazyLock<Oracle<u128>> =
    std::sync::LazyLock::new(|| Oracle::new(&Routes::default()));

impl Template for u32 {
    const FRAME: &'static [u8] = V4;
    fn flow(destination: u32, port: u16) -> Flow<u32> {
        let mut header = V4[14..34].to_vec();
        header[16..].copy_from_slice(&destination.to_be_bytes());
        Flow { destination, checksum: checksum::compute(&header), port }
    }
    #[inline(always)]
    fn write(flow: &Flow<u32>, frame: &mut [u8]) {
        frame[24..26].copy_from_slice(&flow.checksum.to_be_bytes());
        frame[30..34].copy_from_slice(&flow.destination.to_be_bytes());
    }
    fn view<'a>(v4: Side<'a, u32>, egress: &'a Paths) -> View<'a> {
        View { v4, v6: Side { engine: &*NONE6, groups: &[] }, egress }
    }
}

impl Template for u128 {
    const FRAME: &'static [u8] = V6;
    fn flow(destination: u128, port: u16) -> Flow<u128> {
        Flow { destination, checksum: 0, port }
    }
    #[inline(always)]
    fn write(flow: &Flow<u128>, frame: &mut [u8]) {
        frame[38..54].copy_from_slice(&flow.destination.to_be_bytes());
    }
    fn view<'a>(v6: Side<'a, u128>, egress: &'a Paths) -> View<'a> {
        View { v4: Side { engine: &*NONE4, groups: &[] }, v6, egress }
    }
}

fn egress(gateways: u32) -> Egress {
    let mac = |a, b: u32| [2, 0, 0, 0, a, b as u8];
    Egress {
        groups: (0..gateways).map(|at| Group::Forward(vec![Member::Gateway(at)])).collect(),
        adjacencies: (0..gateways)
            .map(|at| Adjacency {
                port: 1 + at as u16 % PORTS,
                gateway: IpAddr::from([192, 0, 2, at as u8]),
                mac: Some(mac(2, at)),
            })
            .collect(),
        ports: (0..=PORTS)
            .map(|port| EgressPort {
                mac: mac(1, port.into()),
                mtu: 1500,
                vlan: None,
                addresses: vec![IpAddr::from([192, 0, 2, 200 + port as u8])],
            })
            .collect(),
        ..Egress::default()
    }
}

fn measure<A: Template>(engine: &str, prefixes: usize, burst: usize, gateways: usize) {
    let gateways = gateways as u32;
    let spec = FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Near(gateways) };
    let routes = spec.generate::<A>();
    let registry = fibula_engines::Registry::product();
    let entry = registry.find::<A>(engine).expect("an engine of this name");
    let compiled = entry.build(&routes, Isa::detect()).expect("the table fits");
    let groups: Vec<u32> = (0..gateways).collect();
    let paths = Paths::new(egress(gateways));
    let side = Side { engine: &*compiled, groups: &groups };
    let view = A::view(side, &paths);
    let oracle = Oracle::build(&routes, &()).expect("any table");
    let port = |hop: Hop| hop.index().map_or(0, |hop| 1 + hop as u16 % PORTS);
    // Only addresses that are forwarded.
    let may = |key: &A| match key.to_ip() {
        IpAddr::V4(v4) => {
            !(v4.octets()[0] == 127
                || v4.octets()[0] == 0
                || v4.octets()[0] >= 224
                || v4.is_link_local())
        }
        IpAddr::V6(v6) => v6.octets()[0] & 0xe0 == 0x20,
    };
    let flows: Vec<Flow<A>> = keys(&routes, Traffic::Pfx, FLOWS * 5 / 4, 7)
        .into_iter()
        .filter(may)
        .take(FLOWS)
        .map(|key| A::flow(key, port(oracle.lookup(key))))
        .collect();
    assert!(flows.len() == FLOWS);
    drop(oracle);
    check(&view, &flows);
    println!(
        "{} {engine}, {prefixes} prefixes, {gateways} gateways, bursts of {burst}, {} bytes",
        A::FAMILY,
        A::FRAME.len()
    );
    let mut best = [f64::MAX; 3];
    for _ in 0..5 {
        for (best, kind) in best.iter_mut().zip([Measured::Io, Measured::Burst, Measured::OneByOne])
        {
            *best = best.min(run(&view, &flows, burst, kind));
        }
    }
    let lookups = lookups(&*compiled, &flows, burst);
    for (name, ns) in ["I/O alone", "forward", "one by one"].into_iter().zip(best) {
        println!(
            "{name:10} {ns:7.2} ns {:7.1} Mpps  {:.2} of the I/O rate",
            1e3 / ns,
            best[0] / ns
        );
    }
    println!("{:10} {lookups:7.2} ns, of these", "lookup");
}

#[derive(Clone, Copy, PartialEq)]
enum Measured {
    Io,
    Burst,
    OneByOne,
}

fn receive<'p, A: Template>(
    flow: &Flow<A>,
    free: &mut Vec<Packet<'p>>,
    burst: &mut Vec<Packet<'p>>,
) {
    let mut packet = free.pop().expect("more slots than a burst has packets");
    packet.set_len(A::FRAME.len());
    packet.port = 0;
    let bytes = packet.bytes_mut();
    bytes.copy_from_slice(A::FRAME);
    A::write(flow, bytes);
    burst.push(packet);
}

/// Nanoseconds that this thread has run: other processes on the machine do not count. Linux's; elsewhere the clock.
fn on_cpu(start: Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = text.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    first.unwrap_or_else(|| start.elapsed().as_nanos() as u64)
}

/// Nanoseconds a packet.
fn run<A: Template>(view: &View<'_>, flows: &[Flow<A>], burst: usize, kind: Measured) -> f64 {
    let pool = Pool::new(SLOTS, 2048);
    let mut free: Vec<_> = (0..SLOTS).filter_map(|_| pool.take()).collect();
    let mut forwarder = Forwarder::new(ForwardOptions::default());
    let (mut packets, mut outcome) = (Vec::new(), Outcome::default());
    outcome.send.resize_with(usize::from(PORTS) + 1, Vec::new);
    let (start, mut count) = (Instant::now(), 0);
    let began = on_cpu(start);
    while on_cpu(start) - began < 200_000_000 {
        for some in flows.chunks(burst) {
            some.iter().for_each(|flow| receive(flow, &mut free, &mut packets));
            match kind {
                Measured::Io => {
                    for (mut packet, flow) in packets.drain(..).zip(some) {
                        packet.bytes_mut()[..12]
                            .copy_from_slice(black_box(b"\x02\0\0\0\x02\0\x02\0\0\0\x01\x01"));
                        outcome.send[usize::from(flow.port)].push(packet);
                    }
                }
                Measured::Burst => {
                    forwarder.forward(view, &pool, start, &mut packets, &mut outcome)
                }
                Measured::OneByOne => {
                    forwarder.forward_one_by_one(view, &pool, start, &mut packets, &mut outcome);
                }
            }
            outcome.send.iter_mut().for_each(|sent| free.append(sent));
        }
        count += flows.len();
    }
    let time = on_cpu(start) - began;
    if kind != Measured::Io {
        let counters = forwarder.counters();
        let sent = counters.packets(Reason::ForwardedV4) + counters.packets(Reason::ForwardedV6);
        assert_eq!(sent, count as u64, "every packet is forwarded");
    }
    pool.give(free);
    time as f64 / count as f64
}

/// Nanoseconds that the engine needs for the same keys in the same batches.
fn lookups<A: Template>(
    engine: &(impl Lookup<A> + ?Sized),
    flows: &[Flow<A>],
    burst: usize,
) -> f64 {
    /// The system counts a thread's time in milliseconds: one pass takes three.
    const PASSES: usize = 32;
    let keys: Vec<A> = flows.iter().map(|flow| flow.destination).collect();
    let mut hops = vec![Hop::NONE; burst];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let began = on_cpu(start);
        for keys in (0..PASSES).flat_map(|_| keys.chunks(burst)) {
            engine.lookup_batch(keys, &mut hops[..keys.len()]);
            black_box(&hops);
        }
        best = best.min((on_cpu(start) - began) as f64 / (PASSES * keys.len()) as f64);
    }
    best
}

/// Both paths send the same frames by the oracle's ports.
fn check<A: Template>(view: &View<'_>, flows: &[Flow<A>]) {
    let pool = Pool::new(SLOTS, 2048);
    let mut free: Vec<_> = (0..SLOTS).filter_map(|_| pool.take()).collect();
    let mut forwarder = Forwarder::new(ForwardOptions::default());
    let (mut packets, mut fast, mut slow) = (Vec::new(), Outcome::default(), Outcome::default());
    for some in flows.chunks(256) {
        some.iter().for_each(|flow| receive(flow, &mut free, &mut packets));
        forwarder.forward(view, &pool, Instant::now(), &mut packets, &mut fast);
        some.iter().for_each(|flow| receive(flow, &mut free, &mut packets));
        forwarder.forward_one_by_one(view, &pool, Instant::now(), &mut packets, &mut slow);
        for port in 1..=PORTS {
            let (fast, slow) = (&fast.send[usize::from(port)], &slow.send[usize::from(port)]);
            let expected = some.iter().filter(|flow| flow.port == port).count();
            assert_eq!((fast.len(), slow.len()), (expected, expected));
            assert!(fast.iter().zip(slow).all(|(fast, slow)| fast.bytes() == slow.bytes()));
        }
        for outcome in [&mut fast, &mut slow] {
            outcome.send.iter_mut().for_each(|sent| free.append(sent));
        }
    }
    pool.give(free);
}
