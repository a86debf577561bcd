//! A router with ports of all kinds and routes to every kind of group.
#![allow(dead_code, reason = "tests and the fuzz target use parts of it")]

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use fibula_core::{Addr, Hop, Lookup, Prefix, Routes};
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, GroupId, Member, Paths};
use fibula_router::forward::{Reason, ReasonCounters, Side, SourceRoutes};
use fibula_router::{ForwardOptions, Forwarder, Outcome, Packet, Pool, View};
use fibula_testkit::Oracle;

use super::model::{Answer, ExpectedError, Fate, Model};

pub const SEED: u64 = 0x5eed;

/// Tables, and a view of them.
pub struct World {
    pub paths: Paths,
    pub v4: Oracle<u32>,
    pub v6: Oracle<u128>,
    pub routes4: Routes<u32>,
    pub routes6: Routes<u128>,
    pub groups: Vec<GroupId>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The MAC address of a port.
pub fn mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 1, port as u8]
}

/// Group `n` has the routes 10.n.0.0/16 and 2001:db8:n::/48.
pub fn groups() -> Vec<Group> {
    use Member::{Gateway, OnLink};
    let mut groups = vec![
        Group::Forward(vec![Gateway(0)]),
        Group::Forward(vec![Gateway(1)]),
        Group::Forward(vec![Gateway(2)]),
        // Weights 2, 1, 1.
        Group::Forward(vec![Gateway(0), Gateway(0), Gateway(1), Gateway(2)]),
        // One of them is not known, one is on the link.
        Group::Forward(vec![Gateway(3), Gateway(1), OnLink(0)]),
        Group::Forward(vec![Gateway(3)]),
        Group::Forward(vec![OnLink(0)]),
        Group::Forward(vec![OnLink(1)]),
        Group::Forward(vec![]),
        Group::Forward(vec![Gateway(4)]),
        Group::Forward(vec![Gateway(99)]),
        Group::Forward(vec![OnLink(99)]),
        Group::Local,
        Group::Blackhole,
        Group::Unreachable,
        Group::Prohibit,
    ];
    // Ports with a small MTU, and with ones that are too small for anything.
    groups.extend((5..10).map(|at| Group::Forward(vec![Gateway(at)])));
    groups
}

fn egress() -> Egress {
    let port = |port, mtu, vlan, addresses: &[&str]| EgressPort {
        mac: mac(port),
        mtu,
        vlan,
        addresses: addresses.iter().map(|text| ip(text)).collect(),
    };
    let gateway = |port, gateway, last: Option<u8>| Adjacency {
        port,
        gateway: ip(gateway),
        mac: last.map(|last| [2, 0, 0, 0, 2, last]),
    };
    let neighbours =
        [(0, "10.6.0.9", 9), (0, "2001:db8:6::9", 9), (1, "10.7.0.9", 7), (0, "10.4.1.1", 8)];
    Egress {
        groups: groups(),
        adjacencies: vec![
            gateway(0, "192.0.2.2", Some(1)),
            gateway(1, "fe80::2", Some(2)),
            gateway(2, "198.51.100.2", Some(3)),
            gateway(1, "203.0.113.77", None),
            gateway(99, "203.0.113.78", Some(4)),
            gateway(2, "198.51.100.2", Some(5)),
            gateway(3, "198.51.100.3", Some(6)),
            gateway(4, "198.51.100.4", Some(7)),
            gateway(5, "198.51.100.5", None),
            gateway(6, "198.51.100.6", Some(8)),
        ],
        neighbours: neighbours
            .into_iter()
            .map(|(port, at, last)| ((port, ip(at)), [2, 0, 0, 0, 3, last]))
            .collect::<HashMap<_, _>>(),
        ports: vec![
            port(0, 1500, None, &["169.254.1.1", "192.0.2.1", "fe80::1", "2001:db8:ffff::1"]),
            port(1, 1500, Some(7), &["203.0.113.1"]),
            port(2, 576, None, &["2001:db8:ffff::2"]),
            port(3, 68, Some(4095), &[]),
            port(4, 27, None, &["fe80::4"]),
            port(5, 0, None, &[]),
            port(6, 9000, Some(0), &["198.51.100.1", "10.200.0.1"]),
        ],
    }
}

impl World {
    /// Its routes are those of `groups`; with a default route, all other packets go to the first gateway. Without, it
    /// has no addresses of IPv6 to send errors from.
    pub fn new(with_default: bool) -> Self {
        let mut egress = egress();
        if !with_default {
            let is_kept = |address: &IpAddr| address.is_ipv4() || *address == ip("fe80::1");
            egress.ports.iter_mut().for_each(|port| port.addresses.retain(is_kept));
        }
        let count = egress.groups.len() as u32;
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        // One more group than there is, and one more hop than there are groups.
        for at in 0..count + 2 {
            v4.push((Prefix::new(10 << 24 | at << 16, 16).unwrap(), Hop::new(at)));
            let high = 0x2001_0db8_u128 << 96 | u128::from(at) << 80;
            v6.push((Prefix::new(high, 48).unwrap(), Hop::new(at)));
        }
        if with_default {
            v4.push((Prefix::ALL, Hop::new(0)));
            v6.push((Prefix::ALL, Hop::new(1)));
        }
        // The port's address lies in a route that would forward it.
        v4.push((Prefix::new(10 << 24 | 200 << 16, 16).unwrap(), Hop::new(0)));
        let groups = (0..=count).collect();
        let (v4, v6): (Routes<u32>, Routes<u128>) =
            (v4.into_iter().collect(), v6.into_iter().collect());
        Self {
            paths: Paths::new(egress),
            v4: Oracle::new(&v4),
            v6: Oracle::new(&v6),
            routes4: v4,
            routes6: v6,
            groups,
        }
    }

    pub fn view(&self) -> View<'_> {
        View {
            v4: Side { engine: &self.v4, groups: &self.groups },
            v6: Side { engine: &self.v6, groups: &self.groups },
            egress: &self.paths,
        }
    }

    fn group<A: Addr>(&self, engine: &Oracle<A>, address: A) -> Option<GroupId> {
        let hop = engine.lookup(address).index()?;
        self.groups.get(hop as usize).copied()
    }

    /// The model's outcome for a frame.
    pub fn model<T>(&self, ask: impl FnOnce(&Model<'_>) -> T) -> T {
        ask(&Model {
            egress: self.paths.description(),
            v4: &|address| self.group(&self.v4, address),
            v6: &|address| self.group(&self.v6, address),
            seed: SEED,
            drops_source_routes: true,
        })
    }
}

/// Options without limits of ICMP.
pub fn options() -> ForwardOptions {
    ForwardOptions {
        icmp_rate: u32::MAX,
        icmp_burst: u32::MAX,
        hash_seed: SEED,
        source_routes: SourceRoutes::Drop,
        ..ForwardOptions::default()
    }
}

/// A forwarder in a world, whose work is compared with the model's.
pub struct Bench<'p> {
    pub world: World,
    pub forwarder: Forwarder,
    pub pool: &'p Pool,
    pub outcome: Outcome<'p>,
    burst: Vec<Packet<'p>>,
    before: Vec<(u64, u64)>,
}

pub const SLOT: u32 = 1 << 17;

fn numbers(counters: &ReasonCounters) -> Vec<(u64, u64)> {
    counters.iter().map(|(_, packets, bytes)| (packets, bytes)).collect()
}

impl<'p> Bench<'p> {
    pub fn new(pool: &'p Pool, with_default: bool) -> Self {
        let forwarder = Forwarder::new(options());
        let before = numbers(forwarder.counters());
        let world = World::new(with_default);
        Self { world, forwarder, pool, outcome: Outcome::default(), burst: Vec::new(), before }
    }

    /// Gives all packets back.
    pub fn clear(&mut self) {
        clear(self.pool, &mut self.outcome);
    }

    pub fn forward(&mut self, frames: &[(u16, &[u8])]) {
        self.clear();
        for (port, frame) in frames {
            let mut packet = self.pool.take().expect("the pool has slots");
            assert!(packet.fill(frame), "a frame of {} bytes", frame.len());
            packet.port = *port;
            self.burst.push(packet);
        }
        let view = self.world.view();
        self.forwarder.forward(
            &view,
            self.pool,
            Instant::now(),
            &mut self.burst,
            &mut self.outcome,
        );
        assert!(self.burst.is_empty());
    }

    /// Forwards the frames as one burst, and checks the whole outcome: the sent frames and their order, the frames for
    /// the host and the waiting ones, which must be unchanged, the counts, and that no slot is lost.
    pub fn check(&mut self, frames: &[(u16, &[u8])]) -> Vec<Answer> {
        self.forward(frames);
        let answers: Vec<Answer> = frames
            .iter()
            .map(|(port, frame)| self.world.model(|model| model.forward(*port, frame)))
            .collect();
        let mut expected = Expected::new(self.world.paths.description().ports.len());
        for (answer, (port, frame)) in answers.iter().zip(frames) {
            expected.add(answer, *port, frame);
        }
        let said = format!("{answers:x?} of {frames:02x?}");
        expected.compare(&self.outcome, &said);
        let after = numbers(self.forwarder.counters());
        for ((reason, before), after) in Reason::ALL.iter().zip(&self.before).zip(&after) {
            let more = (after.0 - before.0, after.1 - before.1);
            assert_eq!(more, expected.count(*reason), "{}: {said}", reason.name());
        }
        self.before = after;
        answers
    }

    /// Checks one frame.
    pub fn check_one(&mut self, port: u16, frame: &[u8]) -> Answer {
        self.check(&[(port, frame)]).pop().expect("one answer")
    }
}

/// The model's outcomes for frames.
#[derive(Default)]
pub struct Expected {
    /// By port.
    pub send: Vec<Vec<Vec<u8>>>,
    host: Vec<(u16, Vec<u8>)>,
    waiting: Vec<(u16, IpAddr, u16, Vec<u8>)>,
    pub dropped: usize,
    counts: HashMap<&'static str, (u64, u64)>,
}

impl Expected {
    pub fn new(ports: usize) -> Self {
        Self { send: vec![Vec::new(); ports], ..Self::default() }
    }

    pub fn add_count(&mut self, name: &'static str, bytes: usize) {
        let both = self.counts.entry(name).or_default();
        *both = (both.0 + 1, both.1 + bytes as u64);
    }

    /// Packets and bytes that count there.
    pub fn count(&self, reason: Reason) -> (u64, u64) {
        self.counts.get(reason.name()).copied().unwrap_or_default()
    }

    pub fn add(&mut self, answer: &Answer, port: u16, frame: &[u8]) {
        self.add_count(answer.name, frame.len());
        match &answer.error {
            ExpectedError::Nothing => {}
            ExpectedError::NoAddress => self.add_count("icmp_no_address", frame.len()),
            ExpectedError::Error(port, error) => {
                self.add_count("icmp_sent", error.len());
                self.send[usize::from(*port)].push(error.clone());
            }
        }
        match &answer.fate {
            Fate::Sent(port, frames) => {
                if answer.name == "fragmented" {
                    frames.iter().for_each(|frame| self.add_count("fragment", frame.len()));
                }
                self.send[usize::from(*port)].extend(frames.iter().cloned());
            }
            Fate::Host => self.host.push((port, frame.to_vec())),
            Fate::Waiting(out, next_hop) => {
                self.waiting.push((*out, *next_hop, port, frame.to_vec()));
            }
            Fate::Dropped => self.dropped += 1,
        }
    }

    pub fn compare(&self, outcome: &Outcome<'_>, said: &str) {
        let bytes = |packet: &Packet<'_>| packet.bytes().to_vec();
        for (port, packets) in outcome.send.iter().enumerate() {
            let sent: Vec<_> = packets.iter().map(bytes).collect();
            assert_eq!(hex(&sent), hex(&self.send[port]), "port {port}: {said}");
        }
        let at_host: Vec<_> = outcome.host.iter().map(|p| (p.port, bytes(p))).collect();
        assert_eq!(at_host, self.host, "for the host: {said}");
        let waits: Vec<_> =
            outcome.waiting.iter().map(|(w, p)| (w.port, w.next_hop, p.port, bytes(p))).collect();
        assert_eq!(waits, self.waiting, "waiting: {said}");
        assert_eq!(outcome.dropped.len(), self.dropped, "dropped: {said}");
    }
}

/// Gives all packets of an outcome back.
pub fn clear<'p>(pool: &'p Pool, outcome: &mut Outcome<'p>) {
    pool.give(outcome.send.iter_mut().flat_map(|packets| packets.drain(..)));
    pool.give(outcome.host.drain(..).chain(outcome.dropped.drain(..)));
    pool.give(outcome.waiting.drain(..).map(|(_, packet)| packet));
}

fn hex(frames: &[Vec<u8>]) -> Vec<String> {
    let digits = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect();
    frames.iter().map(digits).collect()
}
