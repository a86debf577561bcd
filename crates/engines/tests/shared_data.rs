//! Every engine on every real table, each form that this machine has: prefix boundaries and random
//! addresses against the oracle.

use fibula_core::{Addr, Hop, Lookup};
use fibula_engines::{EngineFamily, engines};
use fibula_testkit::{Oracle, Rng, probes};

mod shared;

/// About as many boundaries are probed in each table; `fibula verify` probes them all.
const PROBES: usize = 300_000;
/// Random addresses in addition.
const RANDOM: usize = 100_000;
/// Odd, so that the addresses of one prefix meet all lanes.
const BATCH: usize = 251;

fn agree_on_real_tables<A: EngineFamily>() {
    for file in shared::files() {
        let (table, routes) = (shared::name(&file), shared::read::<A>(&file));
        if routes.is_empty() {
            continue;
        }
        // Six probes a prefix, and a step that does not divide it, so that none is left out.
        let step = (6 * routes.len()).div_ceil(PROBES) | 1;
        let step = if step.is_multiple_of(3) { step + 2 } else { step };
        let mut rng = Rng::new(2);
        let mut addrs: Vec<A> = probes::boundary(&routes).step_by(step).collect();
        addrs.extend((0..RANDOM).map(|_| rng.addr::<A>()));
        let oracle = Oracle::new(&routes);
        let expected: Vec<Hop> = addrs.iter().map(|&addr| oracle.lookup(addr)).collect();
        drop(oracle);
        for entry in engines::<A>() {
            for &isa in entry.isas.iter().filter(|isa| isa.is_supported()) {
                match entry.build(&routes, isa) {
                    Ok(engine) => {
                        let label = format!("{} {isa} on {table}", entry.name);
                        compare(&*engine, &addrs, &expected, &label);
                    }
                    Err(error) => println!("skipped on {table}: {error}"),
                }
            }
        }
        println!("{table} ({}): {} routes, {} addresses", A::FAMILY, routes.len(), addrs.len());
    }
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

#[test]
fn ipv4() {
    agree_on_real_tables::<u32>();
}

#[test]
fn ipv6() {
    agree_on_real_tables::<u128>();
}
