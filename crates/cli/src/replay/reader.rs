//! A reading core: batches of keys, one generation each, before, while and after updates come.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use fibula_core::{Addr, FamilyType, Hop, Prefix};
use fibula_rib::{AttributeSet, Generation, Reader};

/// The phase of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nothing: caches warm up, a file is opened.
    Idle,
    Before,
    During,
    After,
    /// The reader ends.
    Over,
}

/// The phase that the reader is to be in, and the last one of which it has measured anything.
pub struct Phases {
    set: AtomicU8,
    measured: AtomicU8,
}

impl Phases {
    pub fn new() -> Self {
        let idle = || AtomicU8::new(Phase::Idle as u8);
        Self { set: idle(), measured: idle() }
    }

    pub fn set(&self, phase: Phase) {
        self.set.store(phase as u8, Ordering::Release);
    }

    /// Whether the reader has measured something of this phase: on a busy machine it may not have run.
    pub fn is_measured(&self, phase: Phase) -> bool {
        self.measured.load(Ordering::Acquire) == phase as u8
    }
}

/// Answers that were given out of one generation: as they were then, whatever its hops mean later.
pub struct Sample<A> {
    /// How much of the feed the generation takes in.
    pub sequence: u64,
    pub answers: Vec<(A, Option<AttributeSet>)>,
}

/// The result of a reader.
pub struct Seen<A> {
    /// Lookups and the time for them, by phase.
    pub phases: [(u64, Duration); 4],
    /// The share of its core that the reader had, by phase; 0 if the system does not report it.
    pub core: [f64; 4],
    pub samples: Vec<Sample<A>>,
    /// Batches of which a sample was taken, with those that were left out since there were too many.
    pub sampled: u64,
}

impl<A> Seen<A> {
    /// Million lookups a second in a phase.
    pub fn mlps(&self, phase: Phase) -> f64 {
        let (lookups, time) = self.phases[phase as usize];
        if time.is_zero() { 0.0 } else { lookups as f64 / time.as_secs_f64() / 1e6 }
    }
}

/// Addresses with recent changes, which the reader looks up, too.
pub struct Hints<A> {
    latest: Mutex<Vec<A>>,
}

/// Hints for both families.
pub struct AllHints;

impl FamilyType for AllHints {
    type Of<A: Addr> = Hints<A>;
}

/// Hints that are kept: half a batch.
const HINTS: usize = BATCH / 2;

impl<A> Default for Hints<A> {
    fn default() -> Self {
        Self { latest: Mutex::new(Vec::with_capacity(HINTS)) }
    }
}

impl<A: Addr> Hints<A> {
    /// The prefix changed, as number `at` of those that did.
    pub fn add(&self, prefix: Prefix<A>, at: u64) {
        let addr = if at.is_multiple_of(2) { prefix.first() } else { prefix.last() };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() < HINTS {
            latest.push(addr);
        } else {
            latest[(at % HINTS as u64) as usize] = addr;
        }
    }

    fn write(&self, keys: &mut [A]) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter_mut().zip(latest.iter()).for_each(|(key, hint)| *key = *hint);
    }
}

/// Number of keys of a batch, for each of which the reader pins a generation.
pub const BATCH: usize = 256;
/// Batches between looks at the clock.
const TURN: usize = 32;
/// Samples that are kept: 8 MB and more of memory.
const SAMPLES: usize = 2000;

/// Reads until the phase is [`Phase::Over`], and repeats the keys.
pub fn read<A: Addr>(
    mut reader: Reader<A>,
    keys: &[A],
    phases: &Phases,
    hints: &Hints<A>,
    core: Option<CoreId>,
) -> Seen<A> {
    if let Some(core) = core {
        core_affinity::set_for_current(core);
    }
    let (phases_seen, core) = Default::default();
    let mut seen = Seen { phases: phases_seen, core, samples: Vec::new(), sampled: 0 };
    let mut began = (Phase::Idle as u8, Instant::now(), on_cpu());
    let mut hops = [Hop::NONE; BATCH];
    let mut last = 0;
    let mut batches = keys.chunks_exact(BATCH).cycle();
    loop {
        let phase = phases.set.load(Ordering::Acquire);
        if phase != began.0 {
            let (wall, cpu) = (began.1.elapsed(), on_cpu().saturating_sub(began.2));
            seen.core[usize::from(began.0)] = cpu.as_secs_f64() / wall.as_secs_f64().max(1e-9);
            began = (phase, Instant::now(), on_cpu());
        }
        if phase == Phase::Over as u8 {
            return seen;
        }
        let started = Instant::now();
        for batch in batches.by_ref().take(TURN) {
            let table = reader.pin();
            table.lookup_batch(batch, &mut hops);
            std::hint::black_box(&hops);
        }
        let total = &mut seen.phases[usize::from(phase)];
        total.0 += (BATCH * TURN) as u64;
        total.1 += started.elapsed();
        phases.measured.store(phase, Ordering::Release);
        // Outside the measured time: addresses with and without changes are looked up in each new generation.
        let table = reader.pin();
        if table.number() != last {
            last = table.number();
            seen.sampled += 1;
            if seen.samples.len() < SAMPLES {
                let mut requested = [A::MIN; BATCH];
                if let Some(batch) = batches.next() {
                    requested.copy_from_slice(batch);
                }
                hints.write(&mut requested);
                seen.samples.push(sample(table, &requested));
            }
        }
    }
}

/// The answers of the generation, as attributes.
pub fn sample<A: Addr>(table: &Generation<A>, keys: &[A]) -> Sample<A> {
    let mut hops = vec![Hop::NONE; keys.len()];
    table.lookup_batch(keys, &mut hops);
    let answer = |(&key, &hop): (&A, &Hop)| (key, table.attributes(hop).cloned());
    Sample { sequence: table.sequence(), answers: keys.iter().zip(&hops).map(answer).collect() }
}

/// The running time of this thread, if the system reports it, because other processes may use its core.
fn on_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}
