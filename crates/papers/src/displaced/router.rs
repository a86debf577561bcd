//! A router of one thread whose packets pass through memory that the caches of a core do not hold.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fibula_core::{Addr, FamilyType, Follow, Hop, Lookup, Memory, PerFamily, Routes};
use fibula_engines::AnyEngine;
use fibula_packet::{Frame, LinkType, checksum};
use fibula_papers::clock::timed;
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member};
use fibula_router::forward::{Side, View};
use fibula_router::pool::HEADROOM;
use fibula_router::port::memory::{self, Flows};
use fibula_router::{ForwardOptions, Forwarder, Outcome, Packet, Paths, Pool};
use fibula_testkit::Oracle;
use fibula_testkit::traffic::{Traffic, keys};

/// Packets that are received, looked up and sent together.
pub const BURST: usize = 64;
/// Packets that wait until their slots may be used again, as on the ring of a network card.
const WAITING: usize = 4096;
/// Bytes that received packets are copied from, and of those that sent ones are copied to: both exceed the caches of a
/// core.
const MEMORY: usize = 16 << 20;
/// The part of a frame that differs between flows.
const HEADERS: usize = 64;
/// The hop `h` leads to the neighbour `h % NEIGHBOURS`.
const NEIGHBOURS: usize = 16;
/// MAC addresses of the router and of the source of the packets.
const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// An engine that looks nothing up: the hop is in the address.
pub struct Nothing;

impl<A: Addr> Lookup<A> for Nothing {
    fn lookup(&self, addr: A) -> Hop {
        // Bits that a /48 of IPv6 has, too.
        Hop::new((addr.to_u128() >> (A::BITS / 2)) as u32 % NEIGHBOURS as u32)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl<A: Addr> Follow<A> for Nothing {}
impl<A: Addr> AnyEngine<A> for Nothing {}

/// The sides of a view.
struct Sides<'a>(std::marker::PhantomData<&'a ()>);

impl<'a> FamilyType for Sides<'a> {
    type Of<A: Addr> = Side<'a, A>;
}

/// Packets of one length, one for each destination, and the neighbours that they may be sent to.
pub struct Bench {
    headers: Vec<[u8; HEADERS]>,
    is_v4: bool,
    bytes: usize,
    groups: Vec<u32>,
    paths: Paths,
    others: (Oracle<u32>, Oracle<u128>),
}

/// The result of a pass over all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub packets: u64,
    /// The sum of the numbers of the neighbours that they were sent to.
    pub neighbours: u64,
    /// The sum of the checksums of the sent frames, if it was asked for.
    pub checksum: u64,
}

/// Destinations that a router may forward to, drawn from the prefixes of the table.
pub fn destinations<A: Addr>(routes: &Routes<A>, count: usize, seed: u64) -> Vec<A> {
    let mut chosen: Vec<A> = Vec::new();
    // A table may have no such prefix: the caller sees that there are none.
    for round in 0..16 {
        let more = keys(routes, Traffic::Pfx, count, seed.wrapping_add(round << 32));
        let flows = Flows::udp(SOURCE, ROUTER, HEADERS, more.iter().map(|key| key.to_ip()));
        let may = |(at, key): &(usize, A)| {
            let frame = flows.frame(*at);
            let is_right = Frame::parse(LinkType::Ethernet, &frame).check_forward().is_ok();
            is_right && !key.to_ip().is_multicast()
        };
        let left = count - chosen.len();
        chosen.extend(more.into_iter().enumerate().filter(may).map(|(_, key)| key).take(left));
        if chosen.len() == count {
            break;
        }
    }
    chosen
}

impl Bench {
    /// Packets of so many bytes to these destinations, for a table of so many hops.
    pub fn new<A: Addr>(keys: &[A], hop_count: u32, bytes: usize) -> Self {
        let flows = Flows::udp(SOURCE, ROUTER, bytes, keys.iter().map(|key| key.to_ip()));
        let header = |at| {
            let mut header = [0; HEADERS];
            header.copy_from_slice(&flows.frame(at)[..HEADERS]);
            header
        };
        let adjacency = |at: usize| Adjacency {
            port: 0,
            gateway: [192, 0, 2, at as u8].into(),
            mac: Some(neighbour(at as u64)),
        };
        let gateway = |at| Group::Forward(vec![Member::Gateway(at)]);
        let hops = hop_count.max(NEIGHBOURS as u32);
        Self {
            headers: (0..keys.len()).map(header).collect(),
            is_v4: A::BITS == 32,
            bytes,
            groups: (0..hops).map(|hop| hop % NEIGHBOURS as u32).collect(),
            paths: Paths::new(Egress {
                groups: (0..NEIGHBOURS as u32).map(gateway).collect(),
                adjacencies: (0..NEIGHBOURS).map(adjacency).collect(),
                ports: vec![EgressPort { mac: ROUTER, mtu: 1500, ..EgressPort::default() }],
                ..Egress::default()
            }),
            others: (Oracle::new(&Routes::default()), Oracle::new(&Routes::default())),
        }
    }

    /// What a pass over as many packets must give, if these are the answers for them; with the checksum, or without.
    pub fn expected(&self, hops: &[Hop], sums: bool) -> Passed {
        let mut passed = Passed::default();
        let packets = self.headers.iter().zip(hops).zip(0..);
        for ((header, hop), at) in packets {
            let Some(hop) = hop.index() else { continue };
            let to = u64::from(hop) % NEIGHBOURS as u64;
            passed.packets += 1;
            passed.neighbours += to;
            if !sums {
                continue;
            }
            let mut frame = vec![0; self.bytes];
            frame[..HEADERS].copy_from_slice(header);
            frame[HEADERS..].copy_from_slice(&payload(at, self.bytes));
            frame[..12].copy_from_slice(&[neighbour(to), ROUTER].concat());
            if self.is_v4 {
                frame[22] -= 1;
                frame[24..26].fill(0);
                let sum = checksum::compute(&frame[14..34]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            } else {
                frame[21] -= 1;
            }
            passed.checksum = passed.checksum.wrapping_add(memory::checksum(&frame));
        }
        passed
    }

    /// A pool for the packets of this length.
    pub fn pool(&self) -> Pool {
        // An odd number of lines, so that packets do not compete for a few places of the first-level cache.
        let lines = (HEADROOM + self.bytes).div_ceil(64).max(8) | 1;
        Pool::with_front((WAITING + 2 * BURST) as u32, 64 * lines as u32, 0)
    }
}

/// The MAC address of a neighbour.
fn neighbour(at: u64) -> [u8; 6] {
    [6, 0, 0, 0, 0, at as u8]
}

/// What is behind the headers of a packet. Offsets are multiples of a cache line.
fn payload(at: usize, bytes: usize) -> Vec<u8> {
    let from = place(at, bytes);
    (from..from + bytes - HEADERS).map(pattern).collect()
}

/// Where in the memory a packet lies.
fn place(at: usize, bytes: usize) -> usize {
    let slot = bytes.next_multiple_of(64);
    at % (MEMORY / slot) * slot
}

/// The memory that is received.
fn received() -> Vec<u8> {
    let mut memory = vec![0; MEMORY];
    // Eight bytes have the same pattern.
    for (at, bytes) in (0..).step_by(8).zip(memory.as_chunks_mut::<8>().0) {
        *bytes = [pattern(at); 8];
    }
    memory
}

/// The byte at a place of the memory that is received.
fn pattern(at: usize) -> u8 {
    (at / 8 * 31 + at / 4096) as u8
}

/// A router at work: what is kept between passes.
pub struct Router<'p, 'b> {
    bench: &'b Bench,
    pool: &'p Pool,
    forwarder: Forwarder,
    burst: Vec<Packet<'p>>,
    outcome: Outcome<'p>,
    waiting: VecDeque<Packet<'p>>,
    received: Vec<u8>,
    sent: Vec<u8>,
}

impl<'p, 'b> Router<'p, 'b> {
    pub fn new(bench: &'b Bench, pool: &'p Pool) -> Self {
        Self {
            bench,
            pool,
            forwarder: Forwarder::new(ForwardOptions::default()),
            burst: Vec::with_capacity(BURST),
            outcome: Outcome::default(),
            waiting: VecDeque::with_capacity(WAITING + BURST),
            received: received(),
            sent: vec![0; MEMORY],
        }
    }

    /// Forwards the packets to the first so many destinations, and takes the time of this thread. With `sums`, frames
    /// are summed up, which takes time as well.
    pub fn pass<A: Addr>(
        &mut self,
        engine: &dyn AnyEngine<A>,
        packets: usize,
        sums: bool,
    ) -> (Passed, Duration) {
        timed(|| self.forward(engine, packets, sums))
    }

    fn forward<A: Addr>(
        &mut self,
        engine: &dyn AnyEngine<A>,
        packets: usize,
        sums: bool,
    ) -> Passed {
        let Bench { groups, paths, others, headers, bytes, .. } = self.bench;
        let bytes = *bytes;
        let mut sides = PerFamily::<Sides<'_>> {
            v4: Side { engine: &others.0, groups: &[] },
            v6: Side { engine: &others.1, groups: &[] },
        };
        *sides.get_mut::<A>() = Side { engine, groups };
        let view = View { v4: sides.v4, v6: sides.v6, egress: paths };
        let mut passed = Passed::default();
        let headers = &headers[..packets.min(headers.len())];
        for (first, headers) in (0..).step_by(BURST).zip(headers.chunks(BURST)) {
            let taken = self.pool.take_many(&mut self.burst, headers.len());
            assert_eq!(taken, headers.len(), "the pool has room for a burst more than wait");
            for ((packet, header), at) in self.burst.iter_mut().zip(headers).zip(first..) {
                let from = place(at, bytes);
                packet.set_len(bytes);
                packet.port = 0;
                let (front, rest) = packet.bytes_mut().split_at_mut(HEADERS);
                front.copy_from_slice(header);
                rest.copy_from_slice(&self.received[from..from + bytes - HEADERS]);
            }
            let (outcome, now) = (&mut self.outcome, Instant::now());
            self.forwarder.forward(&view, self.pool, now, &mut self.burst, outcome);
            for packet in outcome.send.iter_mut().flat_map(|packets| packets.drain(..)) {
                let (frame, to) = (packet.bytes(), place(passed.packets as usize, bytes));
                self.sent[to..to + frame.len()].copy_from_slice(frame);
                passed.packets += 1;
                passed.neighbours += u64::from(frame[5]);
                if sums {
                    passed.checksum = passed.checksum.wrapping_add(memory::checksum(frame));
                }
                self.waiting.push_back(packet);
            }
            self.pool.give(outcome.dropped.drain(..).chain(outcome.host.drain(..)));
            self.pool.give(outcome.waiting.drain(..).map(|(_, packet)| packet));
            let over = self.waiting.len().saturating_sub(WAITING);
            self.pool.give(self.waiting.drain(..over));
        }
        passed
    }

    /// Gives the packets that wait back to their pool.
    pub fn end(mut self) {
        self.pool.give(self.waiting.drain(..));
    }
}
