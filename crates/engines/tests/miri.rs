//! Engines on small tables, for Miri, which runs a thousandth as fast: `./dev test` runs these tests under
//! it where it is installed, and as ordinary tests too.

use fibula_core::{Addr, Hop, Lookup, Patched, Routes};

use fibula_simd::Isa;
use fibula_testkit::{Oracle, StoredTables, check::check_answers, probes, tables};

use crate::find;

/// Engines whose tables are small where there are few routes: Miri takes minutes to fill megabytes.
const SMALL: [&str; 4] = ["radix", "planb", "lower-bound", "miht-batch"];

/// Built, patched if it can be, stored and loaded: right at every boundary, single and in batches.
fn right<A: Addr>() {
    let mut routes = tables::dense::<A>(4, if cfg!(miri) { 12 } else { 500 });
    let mut answers = Answers::of(&routes);
    for name in SMALL {
        let entry = find::<A>(name).expect("the registry has the engine");
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        answers.agree(name, &*built);
        let (_, tables) = built.persist().expect("every engine of the list can be stored");
        let loaded = entry.load(&StoredTables::of(&tables), routes.hop_count(), Isa::Scalar);
        let mut engine = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        answers.agree(name, &*engine);

        let changed = routes.as_slice()[routes.len() / 2].prefix;
        routes = routes.iter().filter(|route| route.prefix != changed).collect();
        answers = Answers::of(&routes);
        if engine.follow(&routes, &[changed]) == Ok(Patched::Applied) {
            answers.agree(name, &*engine);
        }
    }
}

/// The oracle's, which takes longer than the engines.
struct Answers<A> {
    addrs: Vec<A>,
    expected: Vec<Hop>,
}

impl<A: Addr> Answers<A> {
    fn of(routes: &Routes<A>) -> Self {
        let oracle = Oracle::new(routes);
        let addrs: Vec<A> = probes::boundary(routes).collect();
        let expected = addrs.iter().map(|&addr| oracle.lookup(addr)).collect();
        Self { addrs, expected }
    }

    fn agree<E: Lookup<A> + ?Sized>(&self, name: &str, engine: &E) {
        let report = check_answers(&engine, &self.addrs, &self.expected, 3);
        assert!(report.is_ok() && report.probes > 20, "{name}: {report}");
        // Out of order.
        let last = self.addrs.len() - 1;
        let mut hops = [Hop::NONE; 3];
        engine.lookup_batch(&[0, last, 0].map(|i| self.addrs[i]), &mut hops);
        assert_eq!(hops, [0, last, 0].map(|i| self.expected[i]), "{name}");
    }
}

#[test]
fn v4() {
    right::<u32>();
}

#[test]
fn v6() {
    right::<u128>();
}
