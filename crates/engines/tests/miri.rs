//! Engines on small tables, for Miri, which runs a thousandth as fast: `./dev test` runs these tests under
//! it where it is installed, and as ordinary tests too.

use fibula_core::{Addr, Hop, Lookup, Patched, Routes};
use fibula_engines::{EngineFamily, find};
use fibula_simd::Isa;
use fibula_testkit::{Oracle, StoredTables, check::check, probes, tables};

/// Engines whose tables are small where there are few routes: Miri takes minutes to fill megabytes.
const SMALL: [&str; 4] = ["radix", "planb", "lower-bound", "miht-batch"];

/// Built, patched if it can be, stored and loaded: right at every boundary, single and in batches.
fn right<A: EngineFamily>() {
    let mut routes = tables::dense::<A>(4, if cfg!(miri) { 12 } else { 500 });
    for name in SMALL {
        let entry = find::<A>(name).expect("the registry has the engine");
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        agree(name, &*built, &routes);
        let tables = built.persist().expect("every engine of the list can be stored");
        let loaded = entry.load(&StoredTables::of(&tables), routes.hop_count(), Isa::Scalar);
        let mut engine = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        agree(name, &*engine, &routes);

        let changed = routes.as_slice()[routes.len() / 2].prefix;
        routes = routes.iter().filter(|route| route.prefix != changed).collect();
        if engine.follow(&routes, &[changed]) == Ok(Patched::Applied) {
            agree(name, &*engine, &routes);
        }
    }
}

fn agree<A: Addr, E: Lookup<A> + ?Sized>(name: &str, engine: &E, routes: &Routes<A>) {
    let oracle = Oracle::new(routes);
    let report = check(&engine, &oracle, &mut probes::boundary(routes), 3);
    assert!(report.is_ok() && report.probes > 20, "{name}: {report}");
    let mut hops = [Hop::NONE; 3];
    engine.lookup_batch(&[A::MIN, A::MAX, A::MIN], &mut hops);
    assert_eq!(hops, [A::MIN, A::MAX, A::MIN].map(|addr| oracle.lookup(addr)), "{name}");
}

#[test]
fn v4() {
    right::<u32>();
}

#[test]
fn v6() {
    right::<u128>();
}
