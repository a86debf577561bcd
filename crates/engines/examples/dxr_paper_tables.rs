//! Tables 1 and 3 and figure 5 of the DXR paper beside ours: `cargo run --release -p fibula-engines --example
//! dxr_paper_tables`.
//!
//! The paper's table is a BGP snapshot of LINX of April 2012 that is not to be had: 417,523 prefixes,
//! 213 next hops. A generated table of the same size stands in for it, and, where the shared data is
//! there, two real tables: a random choice of prefixes of a larger one, which leaves more gaps and so
//! more ranges than the paper has, and a smaller one with few next hops.

use fibula_core::{Engine, Hop, Lookup, Routes};
use fibula_engines::dxr::{Config, Dxr, RangeSearch};
use fibula_testkit::check::check;
use fibula_testkit::fib::{FibSpec, HopModel, synthetic_hops};
use fibula_testkit::traffic::{Traffic, keys};
use fibula_testkit::{Oracle, Rng};

#[path = "../tests/real/mod.rs"]
mod real;

/// A row of the paper's table 1: LINX.
struct Paper {
    k: u8,
    bytes: usize,
    full: usize,
    short: usize,
    long: usize,
    build_ms: f64,
}

const TABLE_1: [Paper; 2] = [
    Paper { k: 16, bytes: 800_672, full: 12_935, short: 200_436, long: 33_130, build_ms: 89.44 },
    Paper { k: 18, bytes: 1_548_700, full: 25_494, short: 211_724, long: 17_885, build_ms: 210.13 },
];

/// The paper's table 3: fractions of random addresses by steps, 0 to 6 and 7 or more (upper bounds
/// where it gives bounds).
const TABLE_3: [(u8, [f64; 8]); 3] = [
    (20, [0.945, 0.0204, 0.0255, 0.0083, 0.0011, 1e-4, 1e-4, 1e-5]),
    (18, [0.864, 0.0355, 0.0515, 0.0302, 0.0147, 0.0040, 0.0004, 0.00003]),
    (16, [0.757, 0.0400, 0.0658, 0.0546, 0.0430, 0.0268, 0.0106, 0.0022]),
];

/// The paper counts a next-hop table of 24 bytes a hop and one for "none": the rest of its sums.
const BYTES_A_HOP: usize = 24;

/// The paper's table has this many.
const PREFIXES: usize = 417_523;
const HOPS: u32 = 213;
/// Share of the generated table's /16 blocks in which the hops of neighbours are unrelated: chosen so
/// that as many ranges remain after merging as in the paper, which is a matter of the hops alone. The
/// bytes, the chunks and the steps then follow from the scheme.
const UNRELATED: f64 = 0.24;
/// Keys whose answers are compared with the oracle's before lookups are timed.
const CHECKED: usize = 1 << 18;

fn main() {
    compare("generated, calibrated by ranges", &generated());
    for file in real::archives_if_any() {
        if real::name(&file).starts_with("pch-") {
            let name = format!("{}, cut to the paper's size", real::name(&file));
            compare(&name, &cut(&real::read(&file)));
        }
        if real::name(&file).starts_with("rrc06") {
            compare(&real::name(&file), &real::read(&file));
        }
    }
}

fn generated() -> Routes<u32> {
    let spec = FibSpec { year: 2014, prefixes: PREFIXES, seed: 1, hops: HopModel::Near(HOPS) };
    let near: Routes<u32> = spec.generate();
    let hashed = synthetic_hops(&near, HopModel::Hash(HOPS), 2);
    let unrelated = |block: u32| Rng::new(block.into()).chance(UNRELATED);
    let pairs = near.iter().zip(hashed.iter());
    pairs
        .map(|(near, hashed)| if unrelated(near.prefix.addr() >> 16) { hashed } else { near })
        .collect()
}

/// A random choice of the prefixes, their hops folded to the paper's number.
fn cut(routes: &Routes<u32>) -> Routes<u32> {
    let mut rng = Rng::new(4);
    let mut left = PREFIXES as u64;
    let sizes = (1..=routes.len() as u64).rev();
    let chosen = routes.iter().zip(sizes).filter(|(_, size)| {
        let take = rng.below(*size) < left;
        left -= u64::from(take);
        take
    });
    chosen.map(|(route, _)| (route.prefix, Hop::new(route.hop.to_bits() % HOPS))).collect()
}

fn compare(name: &str, routes: &Routes<u32>) {
    println!("\n{name}: {} prefixes, {} next hops", routes.len(), routes.hop_count());
    println!("  k  table     bytes  full chunks     short      long  build ms");
    for paper in &TABLE_1 {
        let config = Config { k: paper.k, ..Config::default() };
        let start = std::time::Instant::now();
        let dxr = Dxr::build(routes, &config).expect("DXR takes the table");
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let stats = dxr.stats();
        let bytes = stats.bytes + BYTES_A_HOP * (routes.hop_count() as usize + 1);
        let row = |what, bytes, full, short, long, ms: f64| {
            println!("{:>3}  {what} {bytes:>9} {full:>12} {short:>9} {long:>9} {ms:>9.2}", paper.k);
        };
        row("paper", paper.bytes, paper.full, paper.short, paper.long, paper.build_ms);
        row("ours ", bytes, stats.full_chunks, stats.short_ranges, stats.long_ranges, build_ms);
        let percent = |ours: usize, paper: usize| 100.0 * (ours as f64 / paper as f64 - 1.0);
        println!(
            "{:>3}  ratio {:>+8.1}% {:>+11.1}% {:>+8.1}% {:>+8.1}%",
            paper.k,
            percent(bytes, paper.bytes),
            percent(stats.full_chunks, paper.full),
            percent(stats.short_ranges, paper.short),
            percent(stats.long_ranges, paper.long)
        );
    }
    for paper in &TABLE_1 {
        let dxr =
            Dxr::build(routes, &Config { k: paper.k, ..Config::default() }).expect("as above");
        let stats = dxr.stats();
        let per_range = |bytes: usize, ranges: usize| bytes as f64 / ranges as f64;
        let direct = 4 << paper.k;
        let hops = BYTES_A_HOP * (HOPS as usize + 1);
        let theirs = per_range(paper.bytes - direct - hops, paper.short + paper.long);
        let ours = per_range(stats.bytes - direct, stats.short_ranges + stats.long_ranges);
        println!(
            "{:>3}  bytes a range in the range table: paper {theirs:.2}, ours {ours:.2}",
            paper.k
        );
    }
    println!("  k  table       0      1      2      3      4      5      6     7+   search steps");
    let keys = keys(routes, Traffic::Rnd, 1 << 22, 1);
    for (k, paper) in TABLE_3 {
        let dxr = Dxr::build(routes, &Config { k, ..Config::default() }).expect("as above");
        let mut counts = [0u32; 8];
        for &key in &keys {
            counts[dxr.search_steps(key).min(7) as usize] += 1;
        }
        histogram(k, "paper", paper);
        histogram(k, "ours ", counts.map(|count| f64::from(count) / keys.len() as f64));
    }
    println!("  k  ns a lookup by search steps, one after the other with branches, and in batches");
    let searches = [RangeSearch::Branching, RangeSearch::Batched];
    let engines = searches.map(|search| {
        Dxr::build(routes, &Config { k: 18, search, ..Config::default() }).expect("as above")
    });
    let oracle = Oracle::new(routes);
    for (search, engine) in searches.iter().zip(&engines) {
        let report = check(engine, &oracle, &mut keys[..CHECKED].iter().copied(), 3);
        assert!(report.is_ok(), "{search:?}: {report}");
    }
    let mut by_steps: [Vec<u32>; 10] = Default::default();
    for &key in &keys {
        by_steps[engines[0].search_steps(key).min(9) as usize].push(key);
    }
    for (steps, keys) in by_steps.iter().enumerate().filter(|(_, keys)| keys.len() >= 10_000) {
        let [alone, batched] = engines.each_ref().map(|engine| ns_a_lookup(engine, keys));
        println!(" 18  {steps} steps, {:>7} keys: {alone:>6.1} {batched:>6.1}", keys.len());
    }
}

/// Over a million keys at least, after a round that is not timed.
fn ns_a_lookup(engine: &Dxr, keys: &[u32]) -> f64 {
    let mut hops = [Hop::NONE; 256];
    let mut round = || {
        for keys in keys.chunks(hops.len()) {
            engine.lookup_batch(keys, &mut hops[..keys.len()]);
            std::hint::black_box(&hops);
        }
    };
    round();
    let rounds = 1_000_000usize.div_ceil(keys.len());
    let start = std::time::Instant::now();
    (0..rounds).for_each(|_| round());
    start.elapsed().as_secs_f64() * 1e9 / (rounds * keys.len()) as f64
}

fn histogram(k: u8, what: &str, fractions: [f64; 8]) {
    let cells: Vec<String> = fractions.iter().map(|f| format!("{f:>6.4}")).collect();
    println!("{k:>3}  {what}  {}", cells.join(" "));
}
