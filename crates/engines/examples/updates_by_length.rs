//! What a changed prefix costs by its length: the figure 7 of DXR's paper, for any engine that is patched. `cargo run
//! --release -p fibula-engines --example updates_by_length`, or with engines of the list: `-- dxr18,poptrie18`.
//!
//! As in the paper, prefixes of the full table are removed and added back in random order, one at a time. A number is
//! the median of both changes in microseconds, over at most `MOST` prefixes of a length. *all* weighs them by the
//! table's lengths; *most* is the longest change, in which an array grows. The routes are changed before the clock
//! starts. Afterwards the engine is compared with the oracle.

use std::collections::BTreeMap;
use std::time::Instant;

use fibula_core::{Hop, Patched, Prefix, Route, Routes};
use fibula_engines::{BoxedEngine, Isa};
use fibula_testkit::check::check;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, Rng, probes};

/// Prefixes of a length.
const MOST: usize = 300;
const ENGINES: &str = "dxr16,dxr18,dxr20,runmap,dir24-8,poptrie18,sail-l,sail-u,bsd-radix";

fn main() -> Result<(), String> {
    let names = std::env::args().nth(1).unwrap_or_else(|| ENGINES.to_owned());
    let spec = FibSpec { year: 2024, prefixes: 900_000, seed: 1, hops: HopModel::Hash(256) };
    let mut routes: Routes<u32> = spec.generate();
    let mut engines: Vec<(&str, BoxedEngine<u32>)> = names
        .split(',')
        .map(|name| {
            let entry = fibula_baselines::registry()
                .find::<u32>(name)
                .ok_or_else(|| format!("no engine {name} for IPv4"))?;
            let built = entry.build(&routes, Isa::detect());
            let mut engine = built.map_err(|error| error.to_string())?;
            // An engine that asks for a build even if nothing has changed would seem to take no time.
            match engine.follow(&routes, &[]) {
                Ok(Patched::Applied) => Ok((entry.name, engine)),
                _ => Err(format!("{name} is not patched but built anew")),
            }
        })
        .collect::<Result<_, String>>()?;
    let mut changes = chosen(&routes);
    let mut rng = Rng::new(3);
    let order = |route: &Route<u32>| (route.prefix.addr().wrapping_mul(0x9e37_79b1), route.prefix);
    changes.sort_by_key(order);
    let mut times: BTreeMap<u8, Vec<Vec<f64>>> = BTreeMap::new();
    let mut rebuilds = vec![0; engines.len()];
    for route in &changes {
        let none = || vec![Vec::new(); engines.len()];
        let times = times.entry(route.prefix.len()).or_insert_with(none);
        for hop in [Hop::NONE, route.hop] {
            routes.apply(&[Route { prefix: route.prefix, hop }]);
            // In another order each time: the first one finds the routes in memory, the others in the cache.
            let first = rng.below(engines.len() as u64) as usize;
            for i in 0..engines.len() {
                let at = (first + i) % engines.len();
                let (name, engine) = &mut engines[at];
                let started = Instant::now();
                let patched = engine.follow(&routes, &[route.prefix]).expect("it fits");
                times[at].push(started.elapsed().as_secs_f64() * 1e6);
                if patched == Patched::Rebuild {
                    rebuilds[at] += 1;
                    let entry = fibula_baselines::registry()
                        .find::<u32>(name)
                        .expect("it was built before");
                    *engine = entry.build(&routes, Isa::detect()).expect("it fits");
                }
            }
        }
    }
    let oracle = Oracle::new(&routes);
    for (name, engine) in &engines {
        let report = check(engine, &oracle, &mut probes::boundary(&routes), 3);
        assert!(report.is_ok(), "{name}: {report}");
    }
    println!("{spec}, us a change, removed and added back, by length of the prefix");
    print!("{:>6} {:>7}", "length", "changes");
    engines.iter().for_each(|(name, _)| print!(" {name:>10}"));
    let line = |label: &str, changes: usize, numbers: &[f64]| {
        print!("\n{label:>6} {changes:>7}");
        numbers.iter().for_each(|number| print!(" {number:>10.2}"));
    };
    let (mut all, mut most) = (vec![0.0; engines.len()], vec![0.0f64; engines.len()]);
    for (len, times) in &mut times {
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let medians: Vec<f64> = times.iter().map(|times| times[times.len() / 2]).collect();
        line(&format!("/{len}"), times[0].len(), &medians);
        let share = routes.iter().filter(|route| route.prefix.len() == *len).count() as f64;
        for (at, times) in times.iter().enumerate() {
            all[at] += share / routes.len() as f64 * medians[at];
            most[at] = most[at].max(times[times.len() - 1]);
        }
    }
    line("all", 2 * changes.len(), &all);
    line("most", 2 * changes.len(), &most);
    println!("\nbuilds: {rebuilds:?}");
    Ok(())
}

/// Random prefixes of each length.
fn chosen(routes: &Routes<u32>) -> Vec<Route<u32>> {
    let mut rng = Rng::new(2);
    let mut of_length: BTreeMap<u8, Vec<Route<u32>>> = BTreeMap::new();
    for route in routes.iter().filter(|route| route.prefix != Prefix::ALL) {
        of_length.entry(route.prefix.len()).or_default().push(route);
    }
    let mut chosen = Vec::new();
    for routes in of_length.values_mut() {
        for _ in 0..routes.len().min(MOST) {
            chosen.push(routes.swap_remove(rng.below(routes.len() as u64) as usize));
        }
    }
    chosen
}
