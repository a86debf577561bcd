//! SAIL_M against one SAIL_L a FIB: what the overlay of 2, 8 and 16 tables takes. `cargo run --release -p
//! fibula-engines --example sail_many_fibs`.
//!
//! FIBs that are one table seen from different routers share most prefixes: each lacks 5 % of them, and
//! has hops of its own. Unrelated tables share few. Where the shared data is there, the same is made of
//! real tables, and two of them are overlaid as they are.

use fibula_core::{Engine, Hop, Lookup, Routes};
use fibula_engines::sail::{OnChip, SailL, SailM, merged};
use fibula_testkit::Rng;
use fibula_testkit::fib::{FibSpec, HopModel};

#[path = "../tests/real/mod.rs"]
mod real;

const PREFIXES: usize = 200_000;
const HOPS: u32 = 64;
/// Prefixes that a view lacks, of 100.
const MISSING: f64 = 0.05;

fn main() {
    println!(
        "MB (2^20 bytes)                      FIBs | on chip: SAIL_M  SAIL_L a FIB | all: SAIL_M  SAIL_L a FIB"
    );
    let base = generated(1);
    for count in [2, 8, 16] {
        row("generated, views of one table", &views(&base, count));
    }
    for count in [2, 8, 16] {
        let fibs: Vec<_> = (0..count).map(|seed| generated(seed as u64)).collect();
        row("generated, unrelated", &fibs);
    }
    let mut real = Vec::new();
    for file in real::archives_if_any() {
        let name = real::name(&file);
        if name.starts_with("pch-") || name.starts_with("ipasn_2014") {
            let routes = real::read::<u32>(&file);
            for count in [2, 8, 16] {
                row(&format!("{}, views", &name[..name.len().min(14)]), &views(&routes, count));
            }
            real.push(own_hops(&routes, 0));
        }
    }
    if real.len() == 2 {
        row("those two as they are", &real);
    }
}

fn row(name: &str, fibs: &[Routes<u32>]) {
    let mb = |bytes: usize| bytes as f64 / 1048576.0;
    let references: Vec<&Routes<u32>> = fibs.iter().collect();
    let overlaid = SailM::build(fibs).expect("the tables fit").memory().total();
    let config = merged::Config::default();
    let single = |fib| <SailL>::build(fib, &config).expect("the table fits").memory().total();
    println!(
        "{name:<36} {:>5} {:>16.3} {:>13.3} {:>13.1} {:>13.1}",
        fibs.len(),
        mb(OnChip::of(&references).sail_l),
        mb(fibs.iter().map(|fib| OnChip::of(&[fib]).sail_l).sum()),
        mb(overlaid),
        mb(fibs.iter().map(single).sum()),
    );
}

fn generated(seed: u64) -> Routes<u32> {
    FibSpec { year: 2024, prefixes: PREFIXES, seed, hops: HopModel::Near(HOPS) }.generate()
}

/// The table as several routers see it.
fn views(routes: &Routes<u32>, count: usize) -> Vec<Routes<u32>> {
    let view = |seed: usize| {
        let mut rng = Rng::new(seed as u64);
        let kept = routes.iter().filter(|_| !rng.chance(MISSING));
        own_hops(&kept.collect(), seed as u32)
    };
    (0..count).map(view).collect()
}

/// The same prefixes with few hops, other ones for each FIB.
fn own_hops(routes: &Routes<u32>, fib: u32) -> Routes<u32> {
    routes.iter().map(|r| (r.prefix, Hop::new((r.hop.to_bits() * 31 + fib) % HOPS))).collect()
}
