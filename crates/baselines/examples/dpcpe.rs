//! Bloomfwd's table 4: the levels that DPCPE chooses for IPv6, and how many prefixes they make, beside the levels with
//! which the fewest come out, and those with which a lookup is expected to take the least time. CSV.
//! `cargo run --release -p fibula-baselines --example dpcpe`, which takes real tables where they are, or with
//! `-- gen:200000` a generated one of so many prefixes.

use fibula_baselines::bloomfwd::Config;
use fibula_baselines::bloomfwd::cost::Model;
use fibula_baselines::bloomfwd::dpcpe::Expansion;
use fibula_core::Routes;
use fibula_testkit::fib::{FibSpec, HopModel};

#[path = "../../engines/tests/real/mod.rs"]
mod real;

/// Of up to 64 bits, as the paper's tables are.
fn networks(routes: &Routes<u128>) -> Routes<u128> {
    routes.iter().filter(|route| (1..=64).contains(&route.prefix.len())).collect()
}

/// A row for each number of levels.
fn print(name: &str, routes: &Routes<u128>) {
    let text = |lengths: &[u8]| lengths.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
    let cheapest = Model::new(routes, &Config::default()).cheapest();
    let cheapest = Expansion::at(routes, 0, cheapest);
    for levels in 3..=8 {
        let Expansion { lengths, estimated, actual } = Expansion::of(routes, levels);
        let fewest = Expansion::fewest(routes, levels);
        println!(
            "{name},{},{levels},{},{estimated},{actual},{},{},{},{}",
            routes.len(),
            text(&lengths),
            text(&fewest.lengths),
            fewest.actual,
            text(&cheapest.lengths),
            cheapest.actual
        );
    }
}

fn generated(prefixes: usize) {
    let spec = FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Hash(256) };
    print(&format!("gen:v6:2024:{prefixes}:1"), &networks(&spec.generate()));
}

fn main() -> Result<(), String> {
    println!(
        "table,prefixes,levels,greedy_lengths,greedy_estimated,greedy_actual,fewest_lengths,fewest,cheapest_lengths,\
        cheapest"
    );
    if let Some(name) = std::env::args().nth(1) {
        let prefixes = name.strip_prefix("gen:").and_then(|count| count.parse().ok());
        generated(prefixes.ok_or_else(|| format!("{name:?}: gen:N is a table of N prefixes"))?);
        return Ok(());
    }
    generated(200_000);
    for file in real::archives_if_any() {
        let routes = networks(&real::read::<u128>(&file));
        if routes.len() >= 1000 {
            print(&real::name(&file), &routes);
        }
    }
    Ok(())
}
