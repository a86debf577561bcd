//! Memory and steps of the baselines that the papers measure against. `cargo run --release -p
//! fibula-baselines --example baselines`, or with sizes: `-- 250000 1000000`.
//!
//! A step is an access to a table: a node, a code word, a slot of a hash table, a result; each module says
//! what it counts. Of `pbf` the probes of hash tables are counted, as in its paper, and its bits on the
//! chip. Keys are addresses of random prefixes (PFX), and for IPv4 random addresses (RND), too. Rates:
//! `fibula bench --table gen:v6:2024:250000:1 --engines planb,cp-trie,... --traffic PFX`.

use std::time::Instant;

use fibula_baselines::bsd_radix::BsdRadix;
use fibula_baselines::cp_trie::CpTrie;
use fibula_baselines::hbs::{self, Hbs};
use fibula_baselines::lc_trie::LcTrie;
use fibula_baselines::lulea::Lulea;
use fibula_baselines::neurotrie::Neurotrie;
use fibula_baselines::pbf::{FilterAddr, Pbf};
use fibula_baselines::tree_bitmap::{self, TreeBitmap};
use fibula_core::{Addr, BuildError, Engine, Routes};
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::traffic::{self, Traffic};

const KEYS: usize = 200_000;

fn main() -> Result<(), String> {
    let size = |text: String| match text.parse() {
        Ok(size) if (1..=4_000_000).contains(&size) => Ok(size),
        _ => Err(format!("{text} is no number of prefixes, 1 to 4000000")),
    };
    let sizes = std::env::args().skip(1).map(size).collect::<Result<Vec<usize>, _>>()?;
    let sizes = if sizes.is_empty() { vec![250_000, 500_000, 1_000_000] } else { sizes };
    for prefixes in sizes {
        let spec = FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Near(64) };
        println!("\n{spec}, IPv4");
        let routes = spec.generate::<u32>();
        let keys = keys(&routes, &[Traffic::Pfx, Traffic::Rnd]);
        row("lulea", &routes, &(), &keys, <Lulea>::steps);
        row("lulea-wide", &routes, &(), &keys, Lulea::<u32>::steps);
        both(&routes, &keys);
        println!("{spec}, IPv6");
        let routes = spec.generate::<u128>();
        both(&routes, &self::keys(&routes, &[Traffic::Pfx]));
    }
    Ok(())
}

/// The engines that both families have.
fn both<A: FilterAddr>(routes: &Routes<A>, keys: &[Vec<A>]) {
    let split = tree_bitmap::Config {
        root: if A::BITS == 32 { 8 } else { 16 },
        stride: 6,
        split: true,
        ..Default::default()
    };
    let basic = hbs::Config { heuristic: false, ..hbs::Config::default() };
    row("tree-bitmap", routes, &Default::default(), keys, TreeBitmap::steps);
    row("tree-bitmap-split", routes, &split, keys, TreeBitmap::steps);
    row("lc-trie", routes, &Default::default(), keys, <LcTrie<A>>::steps);
    row("lc-trie-wide", routes, &Default::default(), keys, LcTrie::<A, u64>::steps);
    row("hbs", routes, &Default::default(), keys, Hbs::steps);
    row("hbs-basic", routes, &basic, keys, Hbs::steps);
    row("cp-trie", routes, &Default::default(), keys, CpTrie::steps);
    row("neurotrie", routes, &Default::default(), keys, Neurotrie::steps);
    row("bsd-radix", routes, &(), keys, BsdRadix::steps);
    row("pbf", routes, &(), keys, Pbf::probes);
    if let Ok(pbf) = Pbf::build(routes, &()) {
        let bits = pbf.on_chip_bits() as f64 / routes.len() as f64;
        println!("{:<18} {} filters, {bits:.3} bits a prefix on the chip", "", pbf.filters());
    }
}

fn keys<A: Addr>(routes: &Routes<A>, kinds: &[Traffic]) -> Vec<Vec<A>> {
    kinds.iter().map(|&kind| traffic::keys(routes, kind, KEYS, 9)).collect()
}

/// Bytes, time of a build, and for each kind of keys the mean and the largest number of steps.
fn row<A: Addr, E: Engine<A>>(
    name: &str,
    routes: &Routes<A>,
    config: &E::Config,
    keys: &[Vec<A>],
    steps: fn(&E, A) -> u32,
) {
    let begun = Instant::now();
    let engine = match E::build(routes, config) {
        Ok(engine) => engine,
        Err(BuildError::Limit { what, limit, needed, .. }) => {
            return println!("{name:<18} refused: {needed} {what}, at most {limit}");
        }
        Err(error) => return println!("{name:<18} {error}"),
    };
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let bytes = engine.memory().total();
    let each = bytes as f64 / routes.len() as f64;
    print!("{name:<18} {:>7.2} MB {each:>6.1} B/prefix {ms:>6.0} ms", bytes as f64 / 1e6);
    for keys in keys {
        let counts = keys.iter().map(|&key| steps(&engine, key));
        let (sum, most) =
            counts.fold((0u64, 0), |(sum, most), n| (sum + u64::from(n), most.max(n)));
        print!("   steps {:.3}, at most {most}", sum as f64 / keys.len() as f64);
    }
    println!();
}
