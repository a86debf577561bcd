//! Pipelines: the threads between ports.
//!
//! ```text
//!   fused      n threads:  receive ─► look up, rewrite ─► transmit
//!
//!   staged     receive ──ring──► look up, rewrite ──ring──► transmit
//!              receive ──ring──► look up, rewrite ──ring──► transmit       any number of each; without transmitting
//!                                                                          threads, lookup threads transmit
//! ```
//!
//! - Receiving halves of queues are distributed among the receiving threads, transmitting halves among the transmitting
//!   ones; each half has one owner. Between two threads is a bounded ring without locks, in which packets keep their
//!   order. Packets that do not fit are dropped and counted: no thread waits for another one.
//! - The packets of a flow keep their order. A queue belongs to one receiving thread, and its packets are passed to one
//!   lookup thread by their queue, or by their addresses: see [`Spread`]. The packets of a lookup thread for a port are
//!   passed to one transmitting half.
//! - A thread without work spins shortly and then waits for its ports and the threads before it. An idle
//!   pipeline uses almost no CPU time.
//! - When the pipeline is stopped, or all ports have ended, the received packets are processed first: rings
//!   run empty, ports are flushed. Afterwards every received packet was sent, dropped and counted, or given to this
//!   machine, and all slots are in the pool again.
//!
//! [`PipelineHandle`] stops a pipeline and reads its counters while it runs.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use fibula_router::pipeline::{ThreadLayout, Stage};
//! use fibula_router::port::memory::{self, Flows, MemoryOptions};
//! use fibula_router::{Outcome, Packet, Pipeline, PipelineOptions, Pool};
//!
//! /// Sends everything back. `Routing` is the stage that routes.
//! struct Back;
//! impl Stage for Back {
//!     fn process<'p>(
//!         &mut self,
//!         _: &'p Pool,
//!         _: Instant,
//!         burst: &mut Vec<Packet<'p>>,
//!         outcome: &mut Outcome<'p>,
//!     ) {
//!         outcome.send.resize_with(1, Vec::new);
//!         outcome.send[0].append(burst);
//!     }
//! }
//!
//! let pool = Pool::new(4096, 2048);
//! let frames = Arc::new(Flows::frames([vec![0; 60], vec![1; 60]]));
//! let mac = [2, 0, 0, 0, 0, 1];
//! let options = MemoryOptions { mac, queues: 1, flows: frames, packets: Some(1000) };
//! let (port, sent) = memory::open("0", &pool, &options);
//!
//! let shape = ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 0 };
//! let options = PipelineOptions { shape, ring: 1000, ..PipelineOptions::default() };
//! let pipeline = Pipeline::new(&pool, vec![port.into()], options)?;
//! let end = pipeline.run(vec![Box::new(Back)], &|_| (), &|event| println!("{event:?}"))?;
//! assert_eq!((end.ports[0].received.packets, sent.packets()), (1000, 1000));
//! assert_eq!(pool.free(), 4096);
//! # Ok::<(), fibula_router::pipeline::PipelineError>(())
//! ```

mod bell;
mod build;
mod clock;
mod cores;
mod counters;
mod event;
mod exits;
mod guided;
mod hold;
#[cfg(test)]
mod model;
mod renew;
mod ring;
mod source;
mod spread;
mod stage;
mod worker;

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;

use crate::Pool;
use crate::forward::Waiting;
use crate::port::{Port, Queue};

use bell::Bell;
use counters::WorkerCounters;
use event::Events;

pub use cores::{Cores, check as check_cores, groups, list};
pub use counters::{CounterValues, FlowCounts, Loss, PortCounts, StageCounts, WorkerCounts};
pub use event::Event;
pub use guided::Guided;
pub use hold::HoldOptions;
pub use renew::Renewer;
pub use stage::{Routing, Stage, Views};

/// Called with the neighbours that packets wait for: for each new packet, and then ten times a second while they wait.
/// The answer is a new egress table: see [`Stage::is_changed`].
pub type Resolve<'r> = dyn Fn(Waiting) + Sync + 'r;

/// The threads of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadLayout {
    /// Each thread receives, looks up and transmits.
    Fused {
        /// How many, one or more.
        threads: usize,
    },
    /// Threads for each stage.
    Staged {
        /// Threads that receive, one or more.
        receive: usize,
        /// Threads that look up, one or more.
        lookup: usize,
        /// Threads that transmit. With none, lookup threads do.
        transmit: usize,
    },
}

/// The choice of the lookup thread for each packet, if lookup and receiving threads are different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// By queue if there are at least as many queues as lookup threads, else by flow.
    #[default]
    Auto,
    /// All packets of a queue go to the same thread.
    Queue,
    /// Packets with the same source and destination address, which come in by the same queue, go to the same thread.
    Flow,
}

/// Options of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineOptions {
    /// The threads.
    pub shape: ThreadLayout,
    /// Maximum size of a burst of a port: 1 to 256 packets. Bursts of several ports are looked up together, up to 128
    /// packets.
    pub burst: usize,
    /// Capacity of each ring between two threads, in packets.
    pub ring: usize,
    /// The cores of the threads.
    pub cores: Cores,
    /// The choice of the lookup thread for each packet.
    pub spread: Spread,
    /// How long a thread polls in vain before it waits.
    pub spin: Duration,
    /// Limits of packets that wait for MAC addresses of neighbours.
    pub hold: HoldOptions,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self {
            shape: ThreadLayout::Fused { threads: 1 },
            burst: 64,
            ring: 1024,
            cores: Cores::default(),
            spread: Spread::default(),
            spin: Duration::from_micros(50),
            hold: HoldOptions::default(),
        }
    }
}

/// A port, and the receiver of its packets for this machine.
pub struct Attached<'p> {
    /// The port. Its place in the list is the router's number of it.
    pub port: Port<'p>,
    /// The transmitting half gets the packets for this machine unchanged. Packets from its receiving half are sent by
    /// the port unchanged: a TAP device, on which the machine's daemons are, or a way that leads to the kernel alone
    /// ([`host`](crate::port::host)). Not used for packets of a port that [is shared](Port::is_shared).
    pub host: Option<Queue<'p>>,
}

impl<'p> From<Port<'p>> for Attached<'p> {
    fn from(port: Port<'p>) -> Self {
        Self { port, host: None }
    }
}

/// A pipeline that is not running yet.
pub struct Pipeline<'p> {
    pool: &'p Pool,
    ports: Vec<Attached<'p>>,
    options: PipelineOptions,
    shared: Arc<Shared>,
    renewer: Renewer<'p>,
}

/// The state that the threads and their readers share.
struct Shared {
    stop: AtomicBool,
    workers: Vec<WorkerInfo>,
    ports: Vec<String>,
}

struct WorkerInfo {
    name: String,
    core: Option<usize>,
    role: Role,
    bell: Arc<Bell>,
    counters: Arc<WorkerCounters>,
}

/// The role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Role {
    receives: bool,
    looks_up: bool,
    transmits: bool,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.workers.iter().for_each(|worker| worker.bell.ring());
    }

    fn counters(&self) -> CounterValues {
        let workers = self.workers.iter();
        CounterValues::of(
            workers.map(|worker| (worker.name.as_str(), worker.core, &*worker.counters)),
            &self.ports,
        )
    }
}

/// Stops a pipeline, and reads its counters.
#[derive(Clone)]
pub struct PipelineHandle(Arc<Shared>);

impl PipelineHandle {
    /// Makes the pipeline stop receiving, process the received packets, and end.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// The counters.
    pub fn counters(&self) -> CounterValues {
        self.0.counters()
    }
}

/// The error of a pipeline.
#[derive(Debug)]
pub enum PipelineError {
    /// The options do not fit the ports or the machine.
    Options(String),
    /// The system could not create a thread or a pipe.
    System(io::Error),
    /// A thread panicked: a bug. All threads were stopped. Slots that it had are lost to the pool.
    Panicked {
        /// The thread.
        worker: String,
        /// The message of the panic.
        message: String,
    },
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) => f.write_str(what),
            Self::System(error) => {
                write!(f, "the threads of the router cannot be started: {error}")
            }
            Self::Panicked { worker, message } => write!(f, "thread {worker} panicked: {message}"),
        }
    }
}

impl std::error::Error for PipelineError {}

impl<'p> Pipeline<'p> {
    /// A pipeline over these ports, all opened on this pool.
    ///
    /// # Errors
    /// [`PipelineError::Options`] if numbers are out of range, there is no port, a port has no queue, or a list of
    /// cores is shorter than the list of threads, or has cores that are not there ([`check_cores`]).
    pub fn new(
        pool: &'p Pool,
        ports: Vec<Attached<'p>>,
        options: PipelineOptions,
    ) -> Result<Self, PipelineError> {
        let workers = build::workers(&ports, &options)?;
        let ports_of = ports.iter().map(|attached| attached.port.name.clone()).collect();
        let shared = Shared { stop: AtomicBool::new(false), workers, ports: ports_of };
        let shared = Arc::new(shared);
        let renewer = Renewer::new(&shared, &ports);
        Ok(Self { pool, ports, options, shared, renewer })
    }

    /// Stops it, and reads its counters.
    pub fn handle(&self) -> PipelineHandle {
        PipelineHandle(Arc::clone(&self.shared))
    }

    /// Replaces the queues of its ports while it runs.
    pub fn renewer(&self) -> Renewer<'p> {
        self.renewer.clone()
    }

    /// Number of lookup stages that it needs: one for each thread that looks up.
    pub fn lookups(&self) -> usize {
        self.shared.workers.iter().filter(|worker| worker.role.looks_up).count()
    }

    /// The threads with their cores, in order.
    pub fn workers(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.shared.workers.iter().map(|worker| (worker.name.as_str(), worker.core))
    }

    /// Runs until it is stopped or all ports have ended, and returns the counters. Its threads report events.
    ///
    /// # Errors
    /// [`PipelineError::Options`] if there are not as many stages as [`Pipeline::lookups`], [`PipelineError::System`]
    /// if a thread cannot be started, [`PipelineError::Panicked`] if one panicked.
    pub fn run<'r>(
        self,
        stages: Vec<Box<dyn Stage + 'r>>,
        resolve: &'r Resolve<'r>,
        events: &'r (dyn Fn(Event) + Sync + 'r),
    ) -> Result<CounterValues, PipelineError> {
        let (needed, given) = (self.lookups(), stages.len());
        if needed != given {
            let what = format!(
                "the pipeline looks up on {needed} threads, for which there are {given} stages"
            );
            return Err(PipelineError::Options(what));
        }
        let (events, shared) = (&Events { to: events }, &*self.shared);
        let workers = build::connect(
            self.pool,
            self.ports,
            &self.options,
            shared,
            &self.renewer,
            (stages, resolve, events),
            Instant::now(),
        );
        thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut failed = None;
            for (info, worker) in shared.workers.iter().zip(workers) {
                let thread = thread::Builder::new().name(info.name.clone());
                let spawned = thread.spawn_scoped(scope, move || {
                    let _stop = StopIfPanicking(shared);
                    pin(info, events);
                    worker.run();
                });
                match spawned {
                    Ok(thread) => threads.push((info, thread)),
                    Err(error) => {
                        shared.stop();
                        failed = Some(PipelineError::System(error));
                        break;
                    }
                }
            }
            for (info, thread) in threads {
                if let Err(panic) = thread.join() {
                    let worker = info.name.clone();
                    let message = message(&*panic);
                    failed.get_or_insert(PipelineError::Panicked { worker, message });
                }
            }
            failed.map_or(Ok(()), Err)
        })?;
        Ok(shared.counters())
    }
}

/// Stops the other threads if a thread panics, because they could wait for it without end.
struct StopIfPanicking<'a>(&'a Shared);

impl Drop for StopIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

fn pin(info: &WorkerInfo, events: &Events<'_>) {
    if let Some(core) = info.core
        && !core_affinity::set_for_current(CoreId { id: core })
    {
        (events.to)(Event::NotPinned { worker: info.name.clone(), core });
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
