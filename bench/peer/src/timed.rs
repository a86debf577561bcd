//! The timed loop.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::{Key, NO_HOP, Table};

/// Keys that are looked up before the clock starts: other contestants have used the caches meanwhile.
const WARM_UP: usize = 1 << 18;

/// A round: each thread looks up its part of the keys. Returns the line for the harness.
pub(crate) fn run<K: Key>(
    table: &dyn Table<K>,
    keys: &[K],
    threads: usize,
    batch: usize,
) -> String {
    let parts: Vec<&[K]> = keys.chunks(keys.len() / threads).collect();
    let barrier = Barrier::new(parts.len());
    let one = |keys: &[K]| {
        let mut hops = vec![NO_HOP; batch];
        black_box(sum(table, &keys[..keys.len().min(WARM_UP)], &mut hops));
        barrier.wait();
        let (started, before) = (Instant::now(), cpu_time());
        let sum = black_box(sum(table, black_box(keys), &mut hops));
        (started, Instant::now(), cpu_time() - before, sum)
    };
    let (one, cores) = (&one, allowed());
    let runs = match parts[..] {
        [keys] => vec![one(keys)],
        _ => thread::scope(|scope| {
            let start = |(at, keys)| {
                let core = cores.get(at % cores.len().max(1)).copied();
                scope.spawn(move || {
                    core.into_iter().for_each(pin);
                    one(keys)
                })
            };
            let threads: Vec<_> = parts.into_iter().enumerate().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("lookups do not panic")).collect()
        }),
    };
    let first = runs.iter().map(|run| run.0).min().expect("there is a thread");
    let last = runs.iter().map(|run| run.1).max().expect("there is a thread");
    let cpu: u64 = runs.iter().map(|run| run.2).sum();
    let sum = runs.iter().fold(0u32, |sum, run| sum.wrapping_add(run.3));
    format!("time\t{}\t{cpu}\t{sum}", (last - first).as_nanos())
}

fn sum<K: Key>(table: &dyn Table<K>, keys: &[K], hops: &mut [u32]) -> u32 {
    let mut sum = 0u32;
    for keys in keys.chunks(hops.len()) {
        let hops = &mut hops[..keys.len()];
        table.look_up(keys, hops);
        sum = hops.iter().fold(sum, |sum, hop| sum.wrapping_add(*hop));
    }
    sum
}

/// Nanoseconds that this thread has run.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The cores that the harness leaves to this process.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Where the system refuses, the threads share the cores of the process.
    let _ = sched_setaffinity(None, &set);
}
