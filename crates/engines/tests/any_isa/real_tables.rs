//! Every engine on real tables, each form that this machine has: prefix boundaries and random
//! addresses against the oracle.

use std::path::Path;

use crate::real;
use fibula_core::{Addr, BuildError, Hop, Lookup};

use fibula_testkit::{Oracle, Rng, probes};

use crate::engines;

/// About as many boundaries are probed in each table; `fibula verify` probes them all.
const PROBES: usize = 300_000;
/// Random addresses in addition, one for so many boundaries.
const RANDOM: usize = 3;
/// Odd, so that the addresses of one prefix meet all lanes.
const BATCH: usize = 251;

/// Compares all engines on a table. Returns its number of routes, how many forms of engines were
/// compared, and which engines refused it for one of their limits.
fn agree<A: Addr>(file: &Path) -> (usize, usize, Vec<&'static str>) {
    let (table, routes) = (real::name(file), real::read::<A>(file));
    if routes.is_empty() {
        return (0, 0, Vec::new());
    }
    // Six probes a prefix, and a step that does not divide it, so that none is left out.
    let step = (6 * routes.len()).div_ceil(PROBES) | 1;
    let step = if step.is_multiple_of(3) { step + 2 } else { step };
    let mut rng = Rng::new(2);
    let mut addrs: Vec<A> = probes::boundary(&routes).step_by(step).collect();
    addrs.extend((0..addrs.len() / RANDOM).map(|_| rng.addr::<A>()));
    let oracle = Oracle::new(&routes);
    let expected: Vec<Hop> = addrs.iter().map(|&addr| oracle.lookup(addr)).collect();
    drop(oracle);
    let (mut compared, mut refused) = (0, Vec::new());
    for entry in engines::<A>() {
        for &isa in entry.isas.iter().filter(|isa| isa.is_supported()) {
            match entry.build(&routes, isa) {
                Ok(engine) => {
                    let label = format!("{} {isa} on {table}", entry.name);
                    compare(&*engine, &addrs, &expected, &label);
                    compared += 1;
                }
                Err(BuildError::Limit { needed, limit, .. }) => {
                    assert!(needed > limit, "{} on {table}", entry.name);
                    refused.push(entry.name);
                }
                Err(error) => panic!("{} {isa} on {table}: {error}", entry.name),
            }
        }
    }
    refused.dedup();
    println!(
        "{table} ({}): {} routes, {} addresses, {compared} engines, refused by {refused:?}",
        A::FAMILY,
        routes.len(),
        addrs.len()
    );
    (routes.len(), compared, refused)
}

fn compare<A: Addr, E: Lookup<A> + ?Sized>(engine: &E, addrs: &[A], expected: &[Hop], label: &str) {
    let mut hops = vec![Hop::NONE; addrs.len()];
    for (addrs, hops) in addrs.chunks(BATCH).zip(hops.chunks_mut(BATCH)) {
        engine.lookup_batch(addrs, hops);
    }
    for ((&addr, &hop), &expected) in addrs.iter().zip(&hops).zip(expected) {
        assert_eq!(hop, expected, "{label}: {}, batch", addr.to_ip());
        assert_eq!(engine.lookup(addr), expected, "{label}: {}", addr.to_ip());
    }
}

/// Compares all engines on each cut, and its routes of the family and the engines that refuse it with
/// what is known.
fn agree_on_cuts<A: Addr>(known: [(&str, usize, &[&str]); 4]) {
    let files = real::cuts();
    assert_eq!(files.len(), known.len());
    for (file, (begin, routes, refusing)) in files.iter().zip(known) {
        assert!(real::name(file).starts_with(begin), "{}", real::name(file));
        let (found, compared, refused) = agree::<A>(file);
        assert_eq!((found, &refused[..]), (routes, refusing), "{begin}");
        let accepting = engines::<A>().len() - refusing.len();
        assert!(routes == 0 || compared >= accepting, "{begin}: {compared} compared");
    }
}

#[test]
fn ipv4() {
    agree_on_cuts::<u32>([
        ("ip-location-db", 6312, &["sail-l8"]),
        ("ipasn_20140513", 25_260, &["sail-l8"]),
        ("ipranges", 12_781, &[]),
        ("pyasn-rib6", 0, &[]),
    ]);
}

#[test]
fn ipv6() {
    agree_on_cuts::<u128>([
        ("ip-location-db", 0, &[]),
        ("ipasn_20140513", 0, &[]),
        ("ipranges", 14_356, &[]),
        ("pyasn-rib6", 6870, &[]),
    ]);
}

/// How many engines were compared on the whole tables.
fn agree_on_archives<A: Addr>(routes: usize) {
    let mut all = 0;
    for file in real::archives() {
        let (found, compared, _) = agree::<A>(&file);
        assert!(found == 0 || compared > 0, "{}", file.display());
        all += found;
    }
    assert!(all >= routes, "{all} routes");
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn ipv4_archives() {
    agree_on_archives::<u32>(3_000_000);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn ipv6_archives() {
    agree_on_archives::<u128>(300_000);
}
