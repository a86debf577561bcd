//! What SAIL keeps on the chip, beside PBF: figures 6 and 7 of the paper; and how many hash tables a lookup in PBF
//! asks, of which the paper says 1.003: for addresses of random prefixes that have a filter (9 bits or more).
//! `cargo run --release -p fibula-baselines --example sail_on_chip`, or with `-- N` the first N years alone.
//!
//! The paper's tables are RIPE's of 1 January 2008 to 2013, and of 13 collectors on 8 August 2013. They
//! are not to be had, and the text gives one number: 0.759 MB for rrc00 with 476,311 prefixes. Generated
//! tables of about their sizes stand in for them, and, where the shared data is there, real tables of the
//! time.

use fibula_baselines::pbf::{ARRAY_BITS, Pbf};
use fibula_baselines::sail::OnChip;
use fibula_core::{Engine, Routes};
use fibula_testkit::Rng;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::traffic::{self, Traffic};

#[path = "../../engines/tests/real/mod.rs"]
mod real;

/// Prefixes of a full table on 1 January, as public reports of the growth of the Internet have them.
const YEARS: [(u16, usize); 6] = [
    (2008, 245_000),
    (2009, 285_000),
    (2010, 315_000),
    (2011, 345_000),
    (2012, 395_000),
    (2013, 440_000),
];

/// The prefixes of rrc00 on 8 August 2013, and SAIL_L's bytes for them, by the paper.
const RRC00: usize = 476_311;
const RRC00_MB: f64 = 0.759;

/// The paper's megabytes: 8 KB + 128 KB + 2 MB are 2.13 of them.
const MB: f64 = 1048576.0;

fn main() -> Result<(), String> {
    let years = match std::env::args().nth(1) {
        Some(years) => years.parse().map_err(|error| format!("{years}: {error}"))?,
        None => YEARS.len(),
    };
    println!(
        "on-chip MB (2^20 bytes)                        prefixes  SAIL_L     PBF  SAIL_U  SAIL_B  PBF's probes"
    );
    println!("at most, for any table{:>41.3}", OnChip::SAIL_L_MOST as f64 / MB);
    println!("\nfigure 6: the growth from year to year");
    for &(year, prefixes) in YEARS.iter().take(years) {
        row(&format!("generated, {year}"), &generated(year, prefixes, 1));
    }
    if years < YEARS.len() {
        return Ok(());
    }
    println!("\nfigure 7: tables of August 2013");
    println!("{:<44}{RRC00:>10} {RRC00_MB:>7.3}", "paper, rrc00");
    for seed in 1..=3 {
        row(&format!("generated, seed {seed}"), &generated(2013, RRC00, seed));
    }
    for (name, routes) in real() {
        if routes.len() > RRC00 {
            row(&format!("{name}, cut"), &cut(&routes, RRC00));
        }
    }
    println!("\nreal tables");
    for (name, routes) in real() {
        row(&name, &routes);
    }
    Ok(())
}

fn row(name: &str, routes: &Routes<u32>) {
    let on_chip = OnChip::of(&[routes]);
    let [l, pbf, u, b] = [on_chip.sail_l, on_chip.pbf, on_chip.sail_u, on_chip.sail_b]
        .map(|bytes| bytes as f64 / MB);
    let probes = probes(routes);
    println!("{name:<44}{:>10} {l:>7.3} {pbf:>7.3} {u:>7.3} {b:>7.3} {probes:>9.4}", routes.len());
    assert!((1.0..=PROBES).contains(&probes), "{name}: {probes} probes");
}

/// The paper's probes of a lookup in PBF.
const PROBES: f64 = 1.003;

fn probes(routes: &Routes<u32>) -> f64 {
    let engine = Pbf::build(routes, &()).expect("a table of the Internet fits");
    let filtered: Routes<u32> = routes.iter().filter(|r| r.prefix.len() > ARRAY_BITS).collect();
    let keys = traffic::keys(&filtered, Traffic::Pfx, 500_000, 3);
    let probes: u64 = keys.iter().map(|&addr| u64::from(engine.probes(addr))).sum();
    probes as f64 / keys.len() as f64
}

fn generated(year: u16, prefixes: usize, seed: u64) -> Routes<u32> {
    FibSpec { year, prefixes, seed, hops: HopModel::Near(64) }.generate()
}

/// The real IPv4 tables of the Internet, by name and so by date.
fn real() -> impl Iterator<Item = (String, Routes<u32>)> {
    let tables =
        real::archives_if_any().into_iter().map(|file| (real::name(&file), real::read(&file)));
    tables.filter(|(_, routes)| routes.len() > 200_000)
}

/// So many of the prefixes, chosen at random.
fn cut(routes: &Routes<u32>, prefixes: usize) -> Routes<u32> {
    let mut rng = Rng::new(5);
    let mut left = prefixes as u64;
    let sizes = (1..=routes.len() as u64).rev();
    let chosen = routes.iter().zip(sizes).filter(|(_, size)| {
        let take = rng.below(*size) < left;
        left -= u64::from(take);
        take
    });
    chosen.map(|(route, _)| route).collect()
}
