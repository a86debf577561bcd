//! The timed loops.
//!
//! - Threads are pinned to a core each, wait for each other, and warm the engine's tables up with a
//!   part of their keys before the clock starts.
//! - [`run`] leaves each thread to its own keys; in [`dispatch`] one thread more hands batches out.
//! - Hops go into a buffer of at least 1,024 entries; each full buffer is folded into a checksum,
//!   outside the loop over batches, so that no lookup can be optimised away and every timed run is
//!   compared with the oracle once more.

use std::hint::{self, black_box};
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use fibula_core::{Addr, Hop, Lookup};

/// Keys that warm the tables up before each timed run.
const WARM_UP: usize = 1 << 18;

/// Entries of the result buffer, at least.
const BUFFER: usize = 1024;

/// The sum of the hops' bits.
pub fn fold(hops: &[Hop]) -> u32 {
    hops.iter().fold(0, |sum, hop| sum.wrapping_add(hop.to_bits()))
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct TimedRun {
    /// Time for all keys: from the first thread's start to the last one's end.
    pub time: Duration,
    /// The checksum over all threads' hops.
    pub checksum: u32,
}

/// The form of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMode {
    /// In batches of this many keys; 1 is `lookup`, more is `lookup_batch`.
    Batch(usize),
    /// One after the other, each key depending on the last result.
    Dependent,
}

/// Looks up all keys, with a thread for each slice of `keys`, and measures the time.
pub fn run<A: Addr>(
    engine: &dyn Lookup<A>,
    keys: &[&[A]],
    mode: LookupMode,
    cores: &[CoreId],
) -> TimedRun {
    let barrier = Barrier::new(keys.len());
    let pinned = |at: usize, keys: &[A]| {
        pin(cores, at);
        let mut buffer = buffer(mode);
        black_box(ask(engine, &keys[..keys.len().min(WARM_UP)], mode, &mut buffer));
        barrier.wait();
        let started = Instant::now();
        let checksum = black_box(ask(engine, black_box(keys), mode, &mut buffer));
        (started, Instant::now(), checksum)
    };
    let pinned = &pinned;
    let runs: Vec<(Instant, Instant, u32)> = thread::scope(|scope| {
        let threads: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(at, keys)| scope.spawn(move || pinned(at, keys)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("lookups do not panic")).collect()
    });
    let first = runs.iter().map(|(started, ..)| *started).min();
    let last = runs.iter().map(|(_, ended, _)| *ended).max();
    let time = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    let checksum = runs.iter().fold(0u32, |sum, (.., checksum)| sum.wrapping_add(*checksum));
    TimedRun { time, checksum }
}

/// Batches that wait in front of a lookup thread, at most.
const QUEUE: usize = 16;

/// Looks up all keys with a thread for each slice of `keys`. The threads do not own keys: one more thread hands out
/// references to batches through a bounded queue for each lookup thread. The time is that from its first batch to the
/// last answer.
pub fn dispatch<A: Addr>(
    engine: &dyn Lookup<A>,
    keys: &[&[A]],
    batch: usize,
    cores: &[CoreId],
) -> TimedRun {
    let barrier = &Barrier::new(keys.len() + 1);
    thread::scope(|scope| {
        let mut queues = Vec::new();
        let mut threads = Vec::new();
        for (at, own) in keys.iter().enumerate() {
            let (queue, batches) = sync_channel::<&[A]>(QUEUE);
            queues.push(queue);
            threads.push(scope.spawn(move || {
                pin(cores, at);
                let mut hops = vec![Hop::NONE; batch];
                let warm_up = &own[..own.len().min(WARM_UP)];
                black_box(batches_of(engine, warm_up, batch, &mut hops));
                barrier.wait();
                let mut checksum = 0u32;
                while let Some(keys) = next(&batches) {
                    let sum = batches_of(engine, black_box(keys), batch, &mut hops);
                    checksum = checksum.wrapping_add(sum);
                }
                (Instant::now(), checksum)
            }));
        }
        let dispatcher = scope.spawn(move || {
            pin(cores, keys.len());
            barrier.wait();
            let started = Instant::now();
            hand_out(keys.iter().flat_map(|keys| keys.chunks(batch)), &queues);
            // The queues end here, and with them the lookup threads.
            started
        });
        let runs: Vec<(Instant, u32)> = threads
            .into_iter()
            .map(|thread| thread.join().expect("lookups do not panic"))
            .collect();
        let started = dispatcher.join().expect("lookup threads outlive their queues");
        let time = runs.iter().map(|(ended, _)| *ended - started).max().unwrap_or_default();
        let checksum = runs.iter().fold(0u32, |sum, (_, checksum)| sum.wrapping_add(*checksum));
        TimedRun { time, checksum }
    })
}

/// Each batch to the next lookup thread whose queue has room.
fn hand_out<'k, A: Addr>(batches: impl Iterator<Item = &'k [A]>, queues: &[SyncSender<&'k [A]>]) {
    let mut turns = queues.iter().cycle();
    for batch in batches {
        let has_room = |queue: &SyncSender<&'k [A]>| match queue.try_send(batch) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => panic!("lookup threads read to the end"),
        };
        let mut patience = Patience::new();
        while !turns.by_ref().take(queues.len()).any(has_room) {
            patience.wait();
        }
    }
}

/// The next batch, by asking again and again: a thread that sleeps takes longer to wake up than a
/// batch takes to be looked up.
fn next<T>(queue: &Receiver<T>) -> Option<T> {
    let mut patience = Patience::new();
    loop {
        match queue.try_recv() {
            Ok(batch) => return Some(batch),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => patience.wait(),
        }
    }
}

/// Waits for another thread without sleeping, and leaves it the core after a while: it may need it.
struct Patience(u32);

impl Patience {
    /// Number of attempts, which take some microseconds, before the thread yields its core.
    const SPINS: u32 = 200;

    fn new() -> Self {
        Self(Self::SPINS)
    }

    fn wait(&mut self) {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                hint::spin_loop();
            }
            None => thread::yield_now(),
        }
    }
}

/// Pins this thread to the core whose turn it is.
fn pin(cores: &[CoreId], at: usize) {
    if let Some(core) = cores.get(at % cores.len().max(1)) {
        core_affinity::set_for_current(*core);
    }
}

fn buffer(mode: LookupMode) -> Vec<Hop> {
    let batch = match mode {
        LookupMode::Batch(batch) => batch,
        LookupMode::Dependent => 1,
    };
    vec![Hop::NONE; BUFFER.next_multiple_of(batch)]
}

fn ask<A: Addr>(engine: &dyn Lookup<A>, keys: &[A], mode: LookupMode, buffer: &mut [Hop]) -> u32 {
    match mode {
        LookupMode::Batch(batch) => batches_of(engine, keys, batch, buffer),
        LookupMode::Dependent => dependent(engine, keys),
    }
}

fn batches_of<A: Addr>(
    engine: &dyn Lookup<A>,
    keys: &[A],
    batch: usize,
    buffer: &mut [Hop],
) -> u32 {
    let mut checksum = 0u32;
    for block in keys.chunks(buffer.len()) {
        let hops = &mut buffer[..block.len()];
        if batch == 1 {
            for (key, hop) in block.iter().zip(hops.iter_mut()) {
                *hop = engine.lookup(*key);
            }
        } else {
            for (keys, hops) in block.chunks(batch).zip(hops.chunks_mut(batch)) {
                engine.lookup_batch(keys, hops);
            }
        }
        checksum = checksum.wrapping_add(fold(hops));
    }
    checksum
}

/// Each key is changed by the last hop and a zero that the compiler cannot know: the lookups are the
/// same, but none can begin before the last one has ended.
fn dependent<A: Addr>(engine: &dyn Lookup<A>, keys: &[A]) -> u32 {
    let zero = black_box(0u32);
    let mut change = 0u32;
    let mut checksum = 0u32;
    for key in keys {
        let hop = engine.lookup(key.xor(A::from_u128(change.into()))).to_bits();
        checksum = checksum.wrapping_add(hop);
        change = hop & zero;
    }
    checksum
}

/// The cores that this process may use, the first one last: it serves most interrupts.
pub fn cores() -> Vec<CoreId> {
    let mut cores = core_affinity::get_core_ids().unwrap_or_default();
    if !cores.is_empty() {
        cores.rotate_left(1);
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::Memory;

    /// Answers the low bits of the key.
    struct Low;

    impl Lookup<u32> for Low {
        fn lookup(&self, addr: u32) -> Hop {
            Hop::new(addr & 0xff)
        }
        fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
            assert_eq!(addrs.len(), hops.len());
            addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
        }
        fn memory(&self) -> Memory {
            Memory::default()
        }
    }

    #[test]
    fn every_mode_asks_for_every_key_once() {
        let keys: Vec<u32> = (0..10_007).collect();
        let hops: Vec<Hop> = keys.iter().map(|key| Low.lookup(*key)).collect();
        let cores = cores();
        for mode in
            [1, 7, 256, 5000].map(LookupMode::Batch).into_iter().chain([LookupMode::Dependent])
        {
            assert_eq!(run(&Low, &[&keys], mode, &cores).checksum, fold(&hops), "{mode:?}");
            let (left, right) = keys.split_at(3);
            assert_eq!(run(&Low, &[left, right], mode, &cores).checksum, fold(&hops), "{mode:?}");
        }
        for batch in [1, 7, 256, 5000] {
            let (left, right) = keys.split_at(4000);
            for keys in [&[&keys[..]][..], &[left, right], &[left, &[], right]] {
                assert_eq!(dispatch(&Low, keys, batch, &cores).checksum, fold(&hops), "{batch}");
            }
        }
    }
}
