//! The counters of threads, which others read while they run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::forward::ReasonCounters as Reasons;

/// A number that one thread adds to, and others read.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(super) fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The reason why the pipeline itself dropped a packet. The lookup stage counts its own drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The ring to the lookup thread was full.
    LookupRing,
    /// The ring to the transmitting thread was full.
    TransmitRing,
    /// The port accepted no more packets.
    PortFull,
    /// The port failed.
    PortFailed,
    /// The stage sent it to a port that the pipeline does not have.
    NoPort,
    /// It is for this machine, and the port has no queue for such packets.
    NoHost,
    /// Too many packets wait for neighbours.
    HoldFull,
    /// The pipeline was stopped while it waited for a neighbour.
    Stopped,
}

impl Loss {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::LookupRing,
        Self::TransmitRing,
        Self::PortFull,
        Self::PortFailed,
        Self::NoPort,
        Self::NoHost,
        Self::HoldFull,
        Self::Stopped,
    ];

    /// The name, as metrics and records have it. It never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LookupRing => "lookup_ring",
            Self::TransmitRing => "transmit_ring",
            Self::PortFull => "port_full",
            Self::PortFailed => "port_failed",
            Self::NoPort => "no_port",
            Self::NoHost => "no_host",
            Self::HoldFull => "hold_full",
            Self::Stopped => "stopped",
        }
    }
}

/// Packets and their bytes, and the time that they took.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) bursts: Count,
    pub(super) packets: Count,
    pub(super) nanos: Count,
}

impl Stage {
    #[inline]
    pub(super) fn add(&self, packets: usize, nanos: u64) {
        self.bursts.add(1);
        self.packets.add(packets as u64);
        self.nanos.add(nanos);
    }

    fn read(&self) -> StageCounts {
        let time = Duration::from_nanos(self.nanos.get());
        StageCounts { bursts: self.bursts.get(), packets: self.packets.get(), time }
    }
}

#[derive(Default)]
pub(super) struct Flow {
    pub(super) packets: Count,
    pub(super) bytes: Count,
}

impl Flow {
    #[inline]
    pub(super) fn add(&self, packets: usize, bytes: u64) {
        self.packets.add(packets as u64);
        self.bytes.add(bytes);
    }

    fn add_to(&self, sum: &mut FlowCounts) {
        sum.packets += self.packets.get();
        sum.bytes += self.bytes.get();
    }
}

/// A thread's counts for a port.
#[derive(Default)]
pub(super) struct OfPort {
    pub(super) received: Flow,
    pub(super) sent: Flow,
    pub(super) to_host: Flow,
    pub(super) from_host: Flow,
    /// The sum of the packets that its queues of this thread lost.
    pub(super) lost_in: Count,
    pub(super) lost_out: Count,
}

/// A thread's counts. Only that thread writes them.
#[repr(align(128))]
pub(super) struct WorkerCounters {
    pub(super) receive: Stage,
    pub(super) lookup: Stage,
    pub(super) transmit: Stage,
    pub(super) ports: Box<[OfPort]>,
    losses: [Count; Loss::ALL.len()],
    /// Dropped by the lookup stage.
    pub(super) dropped: Count,
    /// For this machine, by ports whose packets the kernel sees, too.
    pub(super) shared: Count,
    /// Waiting for neighbours now.
    pub(super) held: Count,
    pub(super) latency: Mutex<Histogram<u64>>,
    pub(super) reasons: OnceLock<Arc<Reasons>>,
}

/// A histogram of latencies: 1 ns to 10 s, to two digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 10_000_000_000, 2).expect("constant bounds that are sound")
}

impl WorkerCounters {
    pub(super) fn new(ports: usize) -> Self {
        Self {
            receive: Stage::default(),
            lookup: Stage::default(),
            transmit: Stage::default(),
            ports: (0..ports).map(|_| OfPort::default()).collect(),
            losses: Default::default(),
            dropped: Count::default(),
            shared: Count::default(),
            held: Count::default(),
            latency: Mutex::new(histogram()),
            reasons: OnceLock::new(),
        }
    }

    pub(super) fn lose(&self, loss: Loss, packets: usize) {
        self.losses[loss as usize].add(packets as u64);
    }
}

/// The work of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCounts {
    /// Number of non-empty bursts.
    pub bursts: u64,
    /// Number of packets.
    pub packets: u64,
    /// The time for these bursts, without polling in vain. A thread with several stages times one burst in 17, from
    /// which this is estimated.
    pub time: Duration,
}

impl StageCounts {
    /// Nanoseconds a packet; times the clock rate in GHz it is cycles. 0 without packets.
    pub fn nanos_per_packet(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.time.as_nanos() as f64 / self.packets as f64 }
    }

    fn add(&mut self, other: Self) {
        self.bursts += other.bursts;
        self.packets += other.packets;
        self.time += other.time;
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
}

/// A port's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Its name.
    pub name: String,
    /// Received from the link.
    pub received: FlowCounts,
    /// Given to the port to be sent.
    pub sent: FlowCounts,
    /// Given to this machine.
    pub to_host: FlowCounts,
    /// Taken from this machine, to be sent.
    pub from_host: FlowCounts,
    /// Lost by the port before it delivered them.
    pub lost_in: u64,
    /// Lost by the port after it accepted them.
    pub lost_out: u64,
}

/// A thread's counters.
#[derive(Clone, Debug, Default)]
pub struct WorkerCounts {
    /// Its name: its role and its number in that role.
    pub name: String,
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// Receiving, and giving packets to lookup threads if these are others.
    pub receive: StageCounts,
    /// Looking up.
    pub lookup: StageCounts,
    /// Sending.
    pub transmit: StageCounts,
}

/// A pipeline's counters at one moment. The threads continue meanwhile, so sums agree only after it has ended.
#[derive(Clone, Debug)]
pub struct CounterValues {
    /// The threads.
    pub workers: Vec<WorkerCounts>,
    /// The ports, by number.
    pub ports: Vec<PortCounts>,
    /// Packets that the pipeline dropped, by the number of their [`Loss`].
    pub losses: [u64; Loss::ALL.len()],
    /// Packets that the lookup stages dropped.
    pub dropped: u64,
    /// Packets for this machine that the kernel receives, too.
    pub shared: u64,
    /// Packets that wait for neighbours.
    pub held: u64,
    /// Nanoseconds from the beginning of receiving to having given to ports, each burst counted with its packets. A
    /// burst that was made of several has the time of the oldest. As of at most 100 ms ago.
    pub latency: Histogram<u64>,
    /// The counts of the lookup stages, one for each.
    pub reasons: Vec<Arc<Reasons>>,
}

impl CounterValues {
    pub(super) fn of<'a>(
        workers: impl Iterator<Item = (&'a str, Option<usize>, &'a WorkerCounters)>,
        ports: &[String],
    ) -> Self {
        let mut all = Self {
            workers: Vec::new(),
            ports: ports
                .iter()
                .map(|name| PortCounts { name: name.clone(), ..PortCounts::default() })
                .collect(),
            losses: Default::default(),
            dropped: 0,
            shared: 0,
            held: 0,
            latency: histogram(),
            reasons: Vec::new(),
        };
        for (name, core, counted) in workers {
            all.workers.push(WorkerCounts {
                name: name.to_owned(),
                core,
                receive: counted.receive.read(),
                lookup: counted.lookup.read(),
                transmit: counted.transmit.read(),
            });
            for (sum, port) in all.ports.iter_mut().zip(&counted.ports) {
                port.received.add_to(&mut sum.received);
                port.sent.add_to(&mut sum.sent);
                port.to_host.add_to(&mut sum.to_host);
                port.from_host.add_to(&mut sum.from_host);
                sum.lost_in += port.lost_in.get();
                sum.lost_out += port.lost_out.get();
            }
            all.losses.iter_mut().zip(&counted.losses).for_each(|(sum, loss)| *sum += loss.get());
            all.dropped += counted.dropped.get();
            all.shared += counted.shared.get();
            all.held += counted.held.get();
            all.reasons.extend(counted.reasons.get().cloned());
            let latency = counted.latency.lock().unwrap_or_else(PoisonError::into_inner);
            all.latency.add(&*latency).expect("equal bounds");
        }
        all
    }

    /// Packets that the pipeline dropped for a reason.
    pub fn lost(&self, loss: Loss) -> u64 {
        self.losses[loss as usize]
    }

    /// A stage of all threads together: `snapshot.stage(|worker| worker.lookup)`.
    pub fn stage(&self, of: impl Fn(&WorkerCounts) -> StageCounts) -> StageCounts {
        let mut sum = StageCounts::default();
        self.workers.iter().for_each(|worker| sum.add(of(worker)));
        sum
    }
}
