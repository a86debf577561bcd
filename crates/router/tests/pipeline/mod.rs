//! Pipelines over memory ports and files, with stages that are made for the test.

mod conserve;
mod order;
mod pcap;
mod ports;
mod routing;
mod stops;
mod waiting;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fibula_router::forward::{Outcome, Waiting};
use fibula_router::pipeline::{
    Attached, Cores, CounterValues, Event, Loss, PipelineError, PipelineOptions, Stage,
    ThreadLayout,
};
use fibula_router::port::memory::{self, Flows, MemoryOptions};
use fibula_router::port::{Port, Queue, Receive, Transmit};
use fibula_router::{Packet, Pipeline, Pool};

/// Every kind of pipeline.
const SHAPES: [ThreadLayout; 6] = [
    ThreadLayout::Fused { threads: 1 },
    ThreadLayout::Fused { threads: 3 },
    ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 1 },
    ThreadLayout::Staged { receive: 1, lookup: 2, transmit: 0 },
    ThreadLayout::Staged { receive: 2, lookup: 3, transmit: 2 },
    ThreadLayout::Staged { receive: 3, lookup: 1, transmit: 1 },
];

/// Threads are not pinned, because tests run in parallel.
fn options(shape: ThreadLayout) -> PipelineOptions {
    PipelineOptions { shape, cores: Cores::Free, ring: 1 << 14, ..PipelineOptions::default() }
}

/// Runs a pipeline with a stage of this kind on each thread, whose neighbours nobody finds.
fn run<'p, S: Stage + 'p>(
    pool: &'p Pool,
    ports: Vec<Attached<'p>>,
    options: PipelineOptions,
    stage: impl Fn() -> S,
) -> Result<CounterValues, PipelineError> {
    let pipeline = Pipeline::new(pool, ports, options)?;
    let stages = (0..pipeline.lookups()).map(|_| Box::new(stage()) as Box<dyn Stage>).collect();
    pipeline.run(stages, &|_| (), &|event| ignore(&event))
}

/// Ports report their end; no other event is expected.
fn ignore(event: &Event) {
    assert!(matches!(event, Event::Over { .. }), "{event:?}");
}

/// UDP packets to 10.0.x.y, a flow each.
fn flows(count: u32) -> Arc<Flows> {
    let address = |at: u32| std::net::Ipv4Addr::from_bits(0x0a00_0000 | at).into();
    Arc::new(Flows::udp([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1], 64, (0..count).map(address)))
}

fn memory_options(queues: usize, flows: &Arc<Flows>, packets: Option<u64>) -> MemoryOptions {
    MemoryOptions { mac: [2, 0, 0, 0, 0, 1], queues, flows: Arc::clone(flows), packets }
}

/// Sends by the last byte of the destination: to port 0 or 1, to the host, nowhere, to a neighbour that is never known,
/// to a port that is not there.
#[derive(Default)]
struct Scatter;

impl Stage for Scatter {
    fn process<'p>(
        &mut self,
        _: &'p Pool,
        _: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        outcome.send.resize_with(outcome.send.len().max(3), Vec::new);
        for packet in burst.drain(..) {
            match packet.bytes()[33] % 16 {
                0 => outcome.host.push(packet),
                1 => outcome.dropped.push(packet),
                2 => {
                    let next_hop = [10, 0, 0, packet.bytes()[33]].into();
                    outcome.waiting.push((Waiting { port: 0, next_hop }, packet));
                }
                3 => outcome.send[2].push(packet),
                other => outcome.send[usize::from(other % 2)].push(packet),
            }
        }
    }
}

/// Sends everything by port 0.
struct Through;

impl Stage for Through {
    fn process<'p>(
        &mut self,
        _: &'p Pool,
        _: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        outcome.send.resize_with(outcome.send.len().max(1), Vec::new);
        outcome.send[0].append(burst);
    }
}

/// All received packets were sent, dropped, or for the host, and the pool is complete.
fn assert_conserved(pool: &Pool, end: &CounterValues) {
    let ports = end.ports.iter();
    let came: u64 = ports.clone().map(|p| p.received.packets + p.from_host.packets).sum();
    let went: u64 = ports.map(|p| p.sent.packets + p.to_host.packets).sum();
    let lost: u64 = end.losses.iter().sum();
    assert_eq!(came, went + lost + end.dropped + end.shared, "{end:?}");
    assert_eq!((end.held, pool.free()), (0, pool.slots()));
}

/// A port with one queue of these halves.
fn port<'p>(
    name: &str,
    receive: impl Receive<'p> + 'p,
    transmit: impl Transmit<'p> + 'p,
) -> Port<'p> {
    Port {
        name: name.to_owned(),
        interface: 0,
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        is_shared: false,
        queues: vec![Queue { receive: Box::new(receive), transmit: Box::new(transmit) }],
    }
}

/// The packets that a port receives, step by step; then it ends.
struct Script(VecDeque<Step>);

enum Step {
    Frame(Vec<u8>),
    Nothing,
    Error(io::ErrorKind),
}

impl Script {
    fn frames(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(frames.into_iter().map(Step::Frame).collect())
    }
}

impl<'p> Receive<'p> for Script {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        for count in 0..most {
            match self.0.pop_front() {
                Some(Step::Frame(frame)) => {
                    let Some(mut packet) = pool.take() else {
                        self.0.push_front(Step::Frame(frame));
                        return Ok(count);
                    };
                    assert!(packet.fill(&frame));
                    burst.push(packet);
                }
                Some(Step::Error(kind)) => return Err(kind.into()),
                Some(Step::Nothing) | None => return Ok(count),
            }
        }
        Ok(most)
    }

    fn wait(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Nothing ever comes in, and that is known.
fn nothing() -> Script {
    Script(VecDeque::new())
}

/// Keeps the sent packets.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<Vec<u8>>>>);

impl Record {
    fn frames(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl<'p> Transmit<'p> for Record {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let count = burst.len();
        self.0.lock().unwrap().extend(burst.iter().map(|packet| packet.bytes().to_vec()));
        pool.give(burst.drain(..));
        Ok(count)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }
}
