//! The router that is measured: two memory ports, and the forwarder between them.

use std::array;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Addr, FamilyType, Lookup, PerFamily, Routes};
use fibula_engines::BoxedEngine;
use fibula_packet::{Frame, LinkType, checksum};
use fibula_papers::out::Failure;
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member};
use fibula_router::forward::{Outcome, Side, View};
use fibula_router::pipeline::{
    Attached, CounterValues, Event, PipelineHandle, PipelineOptions, Routing, Stage, Views,
};
use fibula_router::pool::HEADROOM;
use fibula_router::port::memory::{self, Flows, MemoryOptions, Sent};
use fibula_router::{ForwardOptions, Forwarder, Packet, Paths, Pipeline, Pool};
use fibula_testkit::Oracle;
use fibula_testkit::traffic::{Traffic, keys};

use crate::WARM_UP;
use crate::shape::Form;

/// Ports of the router, and neighbours on their links: the hop `h` leads to neighbour `h % NEIGHBOURS`, who is on
/// the link of port `h % PORTS`.
pub const PORTS: usize = 2;
pub const NEIGHBOURS: usize = 16;
/// The router's MAC address, and the generator's.
pub const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const GENERATOR: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Slots of the pool: room for the rings of all forms.
const SLOTS: usize = 1 << 14;
/// From slot to slot, at least: an odd number of cache lines, so that the packets of a burst do not compete for a few
/// places of the first-level cache.
const STRIDE: u32 = 9 * 64;
/// Flows of the sample that is compared with the oracle.
const SAMPLE: usize = 20_000;

/// The sides of a view.
struct Sides<'a>(PhantomData<&'a ()>);

impl<'a> FamilyType for Sides<'a> {
    type Of<A: Addr> = Side<'a, A>;
}

/// Tables without routes.
pub struct Nothing(Oracle<u32>, Oracle<u128>);

/// The forwarder between the ports.
pub enum Subject<'a, A: Addr> {
    /// MAC addresses are rewritten, and packets leave by the other port.
    Nothing,
    /// The forwarder, with this engine.
    Engine(&'a BoxedEngine<A>),
}

impl<A: Addr> Clone for Subject<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Addr> Copy for Subject<'_, A> {}

/// The result of a run.
pub struct Measured {
    /// Million packets a second that left.
    pub mpps: f64,
    /// The share of received packets that rings dropped.
    pub dropped: f64,
    /// Nanoseconds a packet, by stage.
    pub receive: f64,
    pub lookup: f64,
    pub transmit: f64,
    /// Microseconds from receiving to transmitting: median and 99th percentile.
    pub latency: f64,
    pub latency_99: f64,
}

impl Measured {
    /// The counts of a router that sent at this rate.
    pub fn of(end: &CounterValues, mpps: f64) -> Self {
        let received: u64 = end.ports.iter().map(|port| port.received.packets).sum();
        let lost: u64 = end.losses.iter().sum();
        let stage =
            |of: fn(&fibula_router::pipeline::WorkerCounts) -> _| end.stage(of).nanos_per_packet();
        Self {
            mpps,
            dropped: lost as f64 / received.max(1) as f64,
            receive: stage(|worker| worker.receive),
            lookup: stage(|worker| worker.lookup),
            transmit: stage(|worker| worker.transmit),
            latency: end.latency.value_at_quantile(0.5) as f64 / 1e3,
            latency_99: end.latency.value_at_quantile(0.99) as f64 / 1e3,
        }
    }
}

/// Packets for a table, and the meaning of its routes.
pub struct Bench<A: Addr> {
    oracle: Oracle<A>,
    keys: Vec<A>,
    /// By port: equal parts, in order.
    flows: [Arc<Flows>; PORTS],
    groups: Vec<u32>,
    paths: Paths,
    nothing: Nothing,
    burst: usize,
    stride: u32,
}

impl<A: Addr> Bench<A> {
    pub fn new(
        routes: &Routes<A>,
        (count, bytes): (usize, usize),
        seed: u64,
        burst: usize,
    ) -> Result<Self, Failure> {
        let flows =
            |keys: &[A]| Flows::udp(GENERATOR, ROUTER, bytes, keys.iter().map(|key| key.to_ip()));
        let mut keys = keys(routes, Traffic::Pfx, count, seed);
        // Destinations that no router may forward to are no flows.
        let all = flows(&keys);
        let mut at = 0..keys.len();
        keys.retain(|key| {
            let frame = at.next().map(|at| all.frame(at)).unwrap_or_default();
            let may = Frame::parse(LinkType::Ethernet, &frame).check_forward().is_ok();
            may && !key.to_ip().is_multicast()
        });
        if keys.len() < PORTS {
            return Err("too few destinations of the table can be forwarded to".into());
        }
        let most = routes.iter().filter_map(|route| route.hop.index()).max().unwrap_or(0);
        let adjacency = |at: usize| Adjacency {
            port: (at % PORTS) as u16,
            gateway: [192, 0, 2, at as u8].into(),
            mac: Some(neighbour(at)),
        };
        let port = EgressPort { mac: ROUTER, mtu: 1500, ..EgressPort::default() };
        let gateway = |at| Group::Forward(vec![Member::Gateway(at)]);
        let egress = Egress {
            groups: (0..NEIGHBOURS as u32).map(gateway).collect(),
            adjacencies: (0..NEIGHBOURS).map(adjacency).collect(),
            ports: vec![port; PORTS],
            ..Egress::default()
        };
        Ok(Self {
            oracle: Oracle::new(routes),
            flows: array::from_fn(|port| Arc::new(flows(&keys[part(keys.len(), port)]))),
            keys,
            groups: (0..=most).map(|hop| hop % NEIGHBOURS as u32).collect(),
            paths: Paths::new(egress),
            nothing: Nothing(Oracle::new(&Routes::default()), Oracle::new(&Routes::default())),
            burst,
            stride: stride(bytes),
        })
    }

    pub fn flows(&self) -> usize {
        self.keys.len()
    }

    /// The frame of each flow that comes in by a port, and its destination.
    pub fn frames(&self, port: usize) -> impl Iterator<Item = (Vec<u8>, A)> {
        let keys = &self.keys[part(self.keys.len(), port)];
        (0..).zip(keys).map(move |(at, key)| (self.flows[port].frame(at), *key))
    }

    /// The neighbour that packets to an address go to.
    pub fn neighbour_of(&self, address: A) -> Option<u32> {
        self.oracle.lookup(address).index().map(|hop| self.groups[hop as usize])
    }

    /// Sends a sample through the router, and compares the sent packets with the expected ones.
    pub fn check(
        &self,
        subject: Subject<'_, A>,
        form: Form,
    ) -> Result<Result<(), String>, Failure> {
        let count = self.flows[0].len().min(SAMPLE / PORTS);
        let queues = form.queues();
        // Each queue has a part of the port's flows.
        let each = count / queues;
        if each == 0 {
            return Err(format!("{form} needs {queues} flows for each port, not {count}").into());
        }
        let mut expected = [(0u64, 0u64); PORTS];
        for port in 0..PORTS {
            for flow in (0..queues).flat_map(|queue| (count * queue / queues..).take(each)) {
                if let Some((to, frame)) = self.answer(subject, port, flow) {
                    expected[to].0 += 1;
                    expected[to].1 = expected[to].1.wrapping_add(memory::checksum(&frame));
                }
            }
        }
        let sample =
            |port: usize| Arc::new(Flows::frames((0..count).map(|at| self.flows[port].frame(at))));
        let (end, sent) =
            self.go(subject, form, array::from_fn(sample), Some(each as u64), |_| ())?;
        let found: Vec<_> = sent.iter().map(|sent| (sent.packets(), sent.checksum())).collect();
        let lost = end.losses.iter().sum::<u64>();
        if lost == 0 && found != expected {
            return Ok(Err(format!(
                "{found:?} packets and checksums left by port, not {expected:?}"
            )));
        }
        // A ring that was full for a moment hides what the packets would have been.
        Ok(if lost == 0 {
            Ok(())
        } else {
            Err(format!("{lost} packets of the sample were dropped"))
        })
    }

    /// The egress port of a packet of a port's flow, and the packet as it leaves.
    fn answer(
        &self,
        subject: Subject<'_, A>,
        port: usize,
        flow: usize,
    ) -> Option<(usize, Vec<u8>)> {
        let mut frame = self.flows[port].frame(flow);
        let Subject::Engine(_) = subject else {
            frame[..12].copy_from_slice(&[neighbour(0), ROUTER].concat());
            return Some((PORTS - 1 - port, frame));
        };
        let key = self.keys[part(self.keys.len(), port).start + flow];
        let hop = self.oracle.lookup(key).index()?;
        let group = self.groups[hop as usize] as usize;
        frame[..12].copy_from_slice(&[neighbour(group), ROUTER].concat());
        if A::BITS == 32 {
            frame[22] -= 1;
            frame[24..26].fill(0);
            let sum = checksum::compute(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        } else {
            frame[21] -= 1;
        }
        Some((group % PORTS, frame))
    }

    /// The same between two devices of DPDK.
    #[cfg(feature = "dpdk")]
    pub fn run_between(
        &self,
        traffic: &crate::devices::Traffic,
        subject: Subject<'_, A>,
        form: Form,
        time: Duration,
    ) -> Result<Measured, Failure> {
        let (names, queues) = (traffic.names(), form.queues());
        let pool = traffic.pool(queues);
        let ports = (0..PORTS).map(|at| traffic.open(at, &pool, queues));
        let ports = ports.collect::<Result<_, _>>()?;
        let mut mpps = Ok(0.0);
        let end = self.route(subject, form, (&pool, ports), 1024, |handle| {
            mpps = crate::devices::time(names, time);
            handle.stop();
        })?;
        Ok(Measured::of(&end, mpps?))
    }

    /// Takes the time of a router that never stops.
    pub fn run(
        &self,
        subject: Subject<'_, A>,
        form: Form,
        time: Duration,
    ) -> Result<Measured, Failure> {
        let mut mpps = 0.0;
        let (end, _) = self.go(subject, form, self.flows.clone(), None, |sent| {
            let count = || sent.iter().map(|sent| sent.packets()).sum::<u64>();
            thread::sleep(time.mul_f64(WARM_UP));
            let (before, started) = (count(), Instant::now());
            thread::sleep(time);
            let (after, took) = (count(), started.elapsed());
            mpps = (after - before) as f64 / took.as_secs_f64() / 1e6;
        })?;
        Ok(Measured::of(&end, mpps))
    }

    /// Runs a router: with a number of packets for each queue until they are through, without one while `meanwhile`
    /// lasts.
    fn go(
        &self,
        subject: Subject<'_, A>,
        form: Form,
        flows: [Arc<Flows>; PORTS],
        packets: Option<u64>,
        meanwhile: impl FnOnce(&[Arc<Sent>]),
    ) -> Result<(CounterValues, Vec<Arc<Sent>>), Failure> {
        // A sample must not be lost: pool and rings hold all of it.
        let (slots, ring) = match packets {
            Some(_) => (4 * SAMPLE, PORTS * SAMPLE),
            None => (SLOTS, 1024),
        };
        let pool = Pool::with_front(slots as u32, self.stride, 0);
        let queues = form.queues();
        let (ports, sent): (Vec<Attached<'_>>, Vec<_>) = (0..)
            .zip(flows)
            .map(|(at, flows): (usize, _)| {
                let options = MemoryOptions { mac: ROUTER, queues, flows, packets };
                memory::open(&at.to_string(), &pool, &options)
            })
            .map(|(port, sent)| (port.into(), sent))
            .unzip();
        let end = self.route(subject, form, (&pool, ports), ring, |handle| {
            meanwhile(&sent);
            if packets.is_none() {
                handle.stop();
            }
        })?;
        Ok((end, sent))
    }

    /// Runs a router between any ports: until they are over, or `meanwhile` stops it.
    pub fn route<'p>(
        &self,
        subject: Subject<'_, A>,
        form: Form,
        (pool, ports): (&'p Pool, Vec<Attached<'p>>),
        ring: usize,
        meanwhile: impl FnOnce(&PipelineHandle),
    ) -> Result<CounterValues, Failure> {
        let options =
            PipelineOptions { shape: form.0, burst: self.burst, ring, ..Default::default() };
        let pipeline = Pipeline::new(pool, ports, options)?;
        let stage = || -> Box<dyn Stage + '_> {
            match subject {
                Subject::Nothing => Box::new(Rewrite),
                Subject::Engine(engine) => {
                    let forwarder = Forwarder::new(ForwardOptions::default());
                    Box::new(Routing::new(Fixed { bench: self, engine }, forwarder))
                }
            }
        };
        let stages = (0..pipeline.lookups()).map(|_| stage()).collect();
        let handle = pipeline.handle();
        let hear = |event: Event| {
            if !matches!(event, Event::Over { .. }) {
                fibula_papers::out::note(format_args!("{event:?}"));
            }
        };
        let end = thread::scope(|scope| {
            let running = scope.spawn(|| pipeline.run(stages, &|_| (), &hear));
            meanwhile(&handle);
            running.join().expect("panics of its threads are errors")
        })?;
        Ok(end)
    }
}

/// From slot to slot of a pool for frames of that length.
fn stride(bytes: usize) -> u32 {
    let lines = (HEADROOM + bytes).div_ceil(64) | 1;
    STRIDE.max(64 * lines as u32)
}

/// The part of so many flows that comes in by a port.
fn part(flows: usize, port: usize) -> Range<usize> {
    flows * port / PORTS..flows * (port + 1) / PORTS
}

/// The MAC address of a neighbour.
pub fn neighbour(at: usize) -> [u8; 6] {
    [6, 0, 0, 0, 0, at as u8]
}

struct Fixed<'a, A: Addr> {
    bench: &'a Bench<A>,
    engine: &'a BoxedEngine<A>,
}

impl<A: Addr> Views for Fixed<'_, A> {
    fn view(&mut self) -> View<'_> {
        let Bench { groups, nothing, paths, .. } = self.bench;
        let mut sides = PerFamily::<Sides<'_>> {
            v4: Side { engine: &nothing.0, groups: &[] },
            v6: Side { engine: &nothing.1, groups: &[] },
        };
        *sides.get_mut::<A>() = Side { engine: &**self.engine, groups };
        View { v4: sides.v4, v6: sides.v6, egress: paths }
    }
}

/// The minimum work of a router: it touches each packet, and sends it by the other port.
struct Rewrite;

impl Stage for Rewrite {
    fn process<'p>(
        &mut self,
        _: &'p Pool,
        _: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        outcome.send.resize_with(outcome.send.len().max(PORTS), Vec::new);
        let macs = [neighbour(0), ROUTER];
        for mut packet in burst.drain(..) {
            packet.bytes_mut()[..12].copy_from_slice(macs.as_flattened());
            outcome.send[PORTS - 1 - usize::from(packet.port)].push(packet);
        }
    }
}
