use fibula_core::{Addr, Engine, Hop, Lookup, Routes};
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::traffic::{self, Traffic};

use super::{BITS_A_KEY, FilterAddr, HASHES, Pbf};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table =
        routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.1.3.0/24", 3)]);
    let engine = Pbf::build(&table, &()).unwrap();
    assert!(engine.rows.iter().map(|row| (row[0], row[1])).eq([(24, 38), (16, 19)]));
    let levels = engine.levels.iter().map(|level| (level.mask, level.shape.bits()));
    assert!(levels.eq([(0xffff_ff00, 38), (0xffff_0000, 19)]));
    assert_eq!(engine.array[9..=11], [0, 1, 0]);
    let answers = [0x0a01_0209, 0x0a01_0909, 0x0a02_0000, 0x0b00_0000];
    let hops = [Some(2), Some(1), Some(0), None];
    assert_eq!(answers.map(|addr| engine.lookup(addr).index()), hops);
    assert_eq!(answers.map(|addr| engine.probes(addr)), [1, 1, 0, 0]);
}

/// SAIL's derivation: 0.003 false positives over 24 filters are 2^-13 for each.
#[test]
fn sizes_of_sails_paper() {
    let each: f64 = 0.003 / 24.0;
    assert_eq!((1.0 / each).log2().round() as u32, HASHES);
    let bits = f64::from(HASHES) / std::f64::consts::LN_2;
    assert!((bits - BITS_A_KEY).abs() < 0.001, "{bits}");
}

/// The mean number of tables that a lookup probes, for addresses of random prefixes that have filters.
fn mean_probes<A: FilterAddr>(routes: &Routes<A>) -> f64 {
    let engine = Pbf::build(routes, &()).unwrap();
    let on_chip = engine.on_chip_bits() as f64;
    // Each filter rounds up.
    let (least, filters) = (BITS_A_KEY * routes.len() as f64, engine.filters() as f64);
    let short = routes.iter().filter(|route| route.prefix.len() <= 8).count() as f64;
    let least = least - BITS_A_KEY * short;
    assert!((least..=least + filters).contains(&on_chip), "{on_chip} bits, expected {least}");
    let long: Routes<A> = routes.iter().filter(|route| route.prefix.len() > 8).collect();
    let keys = traffic::keys(&long, Traffic::Pfx, 200_000, 7);
    let probes: u64 = keys.iter().map(|&addr| u64::from(engine.probes(addr))).sum();
    probes as f64 / keys.len() as f64
}

/// 1.003 probes a lookup: on a table of the size of the 2003 paper's, 116,819 prefixes, and of SAIL's first
/// and last.
#[test]
fn probes_of_the_papers() {
    for (year, prefixes) in [(2008, 116_819), (2008, 245_000), (2013, 440_000)] {
        let spec = FibSpec { year, prefixes, seed: 1, hops: HopModel::Near(32) };
        let probes = mean_probes(&spec.generate::<u32>());
        println!("{spec}: {probes} probes");
        assert!(probes > 1.0 && probes <= 1.003, "{spec}: {probes} probes");
    }
    let spec = FibSpec { year: 2024, prefixes: 50_000, seed: 1, hops: HopModel::Near(32) };
    let probes = mean_probes(&spec.generate::<u128>());
    println!("{spec}: {probes} probes");
    // A filter for each of up to 120 lengths, in place of 24.
    assert!((1.0..=1.0 + 120.0 * 0.5f64.powi(13)).contains(&probes), "{probes} probes");
}

/// 24 filters for a full table of IPv4.
#[test]
fn filters_of_a_full_table() {
    let spec = FibSpec { year: 2013, prefixes: 400_000, seed: 2, hops: HopModel::Near(4) };
    let engine = Pbf::build(&spec.generate::<u32>(), &()).unwrap();
    assert_eq!(engine.filters(), usize::from(<u32 as Addr>::BITS - 8));
}
