//! SAIL_M against one SAIL_L a FIB: what the overlay of 2, 8 and 16 tables takes, and how many lookups a second
//! both do. `cargo run --release -p fibula-baselines --example sail_many_fibs`.
//!
//! FIBs that are one table seen from different routers share most prefixes: each lacks 5 % of them, and
//! has hops of its own. Unrelated tables share few. Where the shared data is there, the same is made of
//! real tables, and two of them are overlaid as they are.
//!
//! Lookups are of addresses in random prefixes of the FIB that each is for: *mixed* have another FIB for each address,
//! *batches* of 256 addresses are for one FIB each. Medians of rounds in which both schemes take turns, on one core,
//! after all their answers were compared.

use std::hint::black_box;
use std::time::Instant;

use fibula_baselines::sail::{OnChip, SailL, SailM, merged};
use fibula_core::{Engine, Hop, Lookup, Routes};
use fibula_testkit::Rng;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::traffic::{self, Traffic};

#[path = "../../engines/tests/real/mod.rs"]
mod real;

const PREFIXES: usize = 200_000;
const HOPS: u32 = 64;
/// Prefixes that a view lacks, of 100.
const MISSING: f64 = 0.05;
const KEYS: usize = 1 << 20;
const BATCH: usize = 256;
const ROUNDS: usize = 9;

fn main() {
    println!(
        "MB (2^20 bytes), Mlps                FIBs | on chip: SAIL_M  SAIL_L a FIB | all: SAIL_M  SAIL_L a FIB | \
         mixed: SAIL_M  SAIL_L a FIB | batches: SAIL_M  SAIL_L a FIB"
    );
    let base = generated(1);
    for count in [1, 2, 8, 16] {
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
    let overlaid = SailM::overlay(fibs).expect("the tables fit");
    let config = merged::Config::default();
    let single = |fib| <SailL>::build(fib, &config).expect("the table fits");
    let single: Vec<SailL> = fibs.iter().map(single).collect();
    let rates = rates(fibs, &overlaid, &single);
    println!(
        "{name:<36} {:>5} {:>16.3} {:>13.3} {:>13.1} {:>13.1} {:>15.0} {:>13.0} {:>17.0} {:>13.0}",
        fibs.len(),
        mb(OnChip::of(&references).sail_l),
        mb(fibs.iter().map(|fib| OnChip::of(&[fib]).sail_l).sum()),
        mb(overlaid.memory().total()),
        mb(single.iter().map(|sail| sail.memory().total()).sum()),
        rates[0],
        rates[1],
        rates[2],
        rates[3],
    );
}

/// Mlps: mixed and in batches, SAIL_M before SAIL_L.
fn rates(fibs: &[Routes<u32>], overlaid: &SailM, single: &[SailL]) -> [f64; 4] {
    let mut rng = Rng::new(7);
    let part = KEYS / fibs.len();
    let mut mixed: Vec<(u64, u16, u32)> = Vec::new();
    let mut batches: Vec<(u16, Vec<u32>)> = Vec::new();
    for (vrf, fib) in (0..).zip(fibs) {
        let keys = traffic::keys(fib, Traffic::Pfx, part, 1 + u64::from(vrf));
        mixed.extend(keys.iter().map(|&key| (rng.below(u64::MAX), vrf, key)));
        batches.extend(keys.chunks_exact(BATCH).map(|keys| (vrf, keys.to_vec())));
    }
    mixed.sort_unstable();
    batches.sort_by_key(|(vrf, keys)| keys[0].wrapping_mul(0x9e37_79b1) ^ u32::from(*vrf));
    let vrfs: Vec<u16> = mixed.iter().map(|&(_, vrf, _)| vrf).collect();
    let addrs: Vec<u32> = mixed.iter().map(|&(.., addr)| addr).collect();

    for (&vrf, &addr) in vrfs.iter().zip(&addrs) {
        let vrf = usize::from(vrf);
        assert_eq!(overlaid.lookup_in(vrf, addr), single[vrf].lookup(addr), "FIB {vrf}, {addr:#x}");
    }

    let hops = &mut [Hop::NONE; BATCH];
    let sum = |hops: &[Hop]| hops.iter().fold(0u32, |sum, hop| sum.wrapping_add(hop.to_bits()));
    let mixed_keys = || vrfs.chunks_exact(BATCH).zip(addrs.chunks_exact(BATCH));
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let mut sums = [0u32; 4];
        for (what, (times, sums)) in times.iter_mut().zip(&mut sums).enumerate() {
            let started = Instant::now();
            if what < 2 {
                for (vrfs, addrs) in black_box(mixed_keys()) {
                    if what == 0 {
                        overlaid.lookup_batch_mixed(vrfs, addrs, hops);
                    } else {
                        for ((hop, &addr), &vrf) in hops.iter_mut().zip(addrs).zip(vrfs) {
                            *hop = single[usize::from(vrf)].lookup(addr);
                        }
                    }
                    *sums = sums.wrapping_add(sum(hops));
                }
            } else {
                for (vrf, addrs) in black_box(&batches) {
                    let vrf = usize::from(*vrf);
                    match what {
                        2 => overlaid.lookup_batch_in(vrf, addrs, hops),
                        _ => single[vrf].lookup_batch(addrs, hops),
                    }
                    *sums = sums.wrapping_add(sum(hops));
                }
            }
            times.push(started.elapsed().as_secs_f64());
        }
        assert_eq!((sums[0], sums[2]), (sums[1], sums[3]), "the same answers");
    }
    let keys = [part * fibs.len() / BATCH * BATCH, part / BATCH * BATCH * fibs.len()];
    let mut what = 0;
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        what += 1;
        keys[(what - 1) / 2] as f64 / times[ROUNDS / 2] / 1e6
    })
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
