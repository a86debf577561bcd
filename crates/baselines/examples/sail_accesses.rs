//! How many words of its tables a change writes: SAIL's measure of updates (section 6). `cargo run --release -p
//! fibula-baselines --example sail_accesses`, or with a number of prefixes, of changes, and engines of the list:
//! `-- 900000 500 sail-l,dxr18`.
//!
//! One prefix changes at a time: half of the changes give a route another hop, a quarter withdraw one, a quarter bring
//! one back. After each, all tables are compared with what they were before: a word of 64 bits that differs was written
//! at least once. Words that were written with what they had, and those that were only read, are not counted. In the
//! end the engine is compared with the oracle.

use std::error::Error;

use fibula_core::{BoxedEngine, Patched, Prefix, Routes};
use fibula_simd::Isa;
use fibula_testkit::check::check;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, RouteChurn, probes};

const ENGINES: &str = "sail-b,sail-u,sail-l,dir24-8,dxr18,poptrie18";
const WORD: usize = 8;
/// Blocks that are compared as a whole first.
const BLOCK: usize = 512 * WORD;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let prefixes = args.next().map_or(Ok(476_311), |text| text.parse())?;
    let changes: usize = args.next().map_or(Ok(500), |text| text.parse())?;
    let names = args.next().unwrap_or_else(|| ENGINES.to_owned());
    let spec = FibSpec { year: 2014, prefixes, seed: 1, hops: HopModel::Hash(256) };
    let built: Routes<u32> = spec.generate();
    println!("table,engine,changes,part,mean,p50,p99,most,rebuilds");
    for name in names.split(',') {
        let registry = fibula_baselines::registry();
        let entry = registry.find::<u32>(name).ok_or(format!("no engine {name} for IPv4"))?;
        let mut engine = entry.build(&built, Isa::detect())?;
        if engine.follow(&built, &[])? == Patched::Rebuild {
            return Err(format!("{name} is not patched but built anew").into());
        }
        let (mut routes, mut churn) = (built.clone(), RouteChurn::new(1));
        let mut before = parts(&engine);
        // Of each part, and of all together behind them.
        let mut counts = vec![Vec::new(); before.len() + 1];
        let mut rebuilds = 0;
        for _ in 0..changes {
            let change = churn.burst(&routes, 1);
            routes.apply(&change);
            let changed: Vec<Prefix<u32>> = change.iter().map(|change| change.prefix).collect();
            if engine.follow(&routes, &changed)? == Patched::Rebuild {
                rebuilds += 1;
                engine = entry.build(&routes, Isa::detect())?;
                before = parts(&engine);
                continue;
            }
            let mut all = 0;
            let (_, tables) = engine.persist().ok_or("it has no stored form")?;
            for ((table, (_, old)), counts) in tables.iter().zip(&mut before).zip(&mut counts) {
                let written = written(old, table.bytes);
                counts.push(written);
                all += written;
            }
            counts[before.len()].push(all);
        }
        let report = check(&engine, &Oracle::new(&routes), &mut probes::boundary(&routes), 3);
        assert!(report.is_ok(), "{name}: {report}");
        let names = before.iter().map(|(name, _)| *name).chain(["all"]);
        for (part, counts) in names.zip(&mut counts) {
            counts.sort_unstable();
            let (n, at) = (counts.len(), |share: usize| counts[(counts.len() - 1) * share / 100]);
            let mean = counts.iter().sum::<usize>() as f64 / n.max(1) as f64;
            let (p50, p99, most) = (at(50), at(99), at(100));
            println!("{spec},{name},{n},{part},{mean:.2},{p50},{p99},{most},{rebuilds}");
        }
    }
    Ok(())
}

/// Copies of the engine's tables.
fn parts(engine: &BoxedEngine<u32>) -> Vec<(&'static str, Vec<u8>)> {
    let tables = engine.persist().map_or(Vec::new(), |(_, tables)| tables);
    tables.iter().map(|table| (table.name, table.bytes.to_vec())).collect()
}

/// The number of words that differ, those that came or went included. `old` is `new` afterwards.
fn written(old: &mut Vec<u8>, new: &[u8]) -> usize {
    let mut words = old.len().abs_diff(new.len()).div_ceil(WORD);
    old.resize(new.len(), 0);
    for (old, new) in old.chunks_mut(BLOCK).zip(new.chunks(BLOCK)) {
        if old != new {
            words += old.chunks(WORD).zip(new.chunks(WORD)).filter(|(old, new)| old != new).count();
            old.copy_from_slice(new);
        }
    }
    words
}
