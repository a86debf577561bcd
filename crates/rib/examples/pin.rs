//! Measures the cost of a pin: `cargo run --release -p fibula-rib --example pin`.
//!
//! Per batch, a reader compares one number; the alternative, a load of an `ArcSwap`, is measured too.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use fibula_core::{Addr, Follow, Hop, Lookup, Memory, PerFamily};
use fibula_rib::{Live, LiveOptions, Maker, Makers, Rib};

struct Nothing;

impl<A: Addr> Lookup<A> for Nothing {
    fn lookup(&self, _: A) -> Hop {
        Hop::NONE
    }
    fn lookup_batch(&self, _: &[A], _: &mut [Hop]) {}
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl<A: Addr> Follow<A> for Nothing {}

const ROUNDS: u32 = 50_000_000;

/// Nanoseconds a round, the least of five runs.
fn time(mut round: impl FnMut()) -> f64 {
    let run = |_| {
        let started = Instant::now();
        (0..ROUNDS).for_each(|_| round());
        started.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    (0..5).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    fn maker<A: Addr>() -> Vec<Maker<A>> {
        vec![Maker::new("nothing", |_| Ok(fibula_core::unstored(Nothing)))]
    }
    let makers = PerFamily::<Makers> { v4: maker(), v6: maker() };
    let live = Live::start(Rib::default(), &[0], makers, LiveOptions::default(), |_| {});
    let live = live.expect("nothing takes any table");
    let mut reader = live.reader::<u32>(0).expect("a table is followed");
    let empty = time(|| {
        black_box(());
    });
    let pin = time(|| {
        black_box(reader.pin());
    });
    let swap = arc_swap::ArcSwap::new(Arc::new(0u64));
    let load = time(|| {
        black_box(&**swap.load());
    });
    let full = time(|| {
        black_box(&*swap.load_full());
    });
    println!(
        "empty loop {empty:.2} ns, pin {pin:.2}, ArcSwap::load {load:.2}, load_full {full:.2}"
    );
}
