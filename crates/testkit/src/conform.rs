//! The conformance suite: the answers of every engine, on difficult tables.
//!
//! [`conforms!`](crate::conforms) makes a test module of it; the functions are for that macro.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use fibula_core::{Addr, BuildError, Engine, Follow, Hop, Lookup, Patched, Prefix, Route, Routes};

use crate::check::{CheckReport, LONGEST_BATCH, check, check_answers, check_batch};
use crate::fib::{FibSpec, HopModel};
use crate::traffic::{self, Traffic};
use crate::{Oracle, Rng, probes, tables};

/// Builds one form of an engine: a scheme with its parameters and its instruction set.
pub type Build<A> = Box<dyn Fn(&Routes<A>) -> Result<Box<dyn Lookup<A>>, BuildError>>;

/// The forms to be tested, each with the label under which failures are reported.
pub type Builders<A> = Vec<(String, Build<A>)>;

/// The builder of an engine with a fixed configuration.
///
/// ```
/// use fibula_testkit::{Oracle, conform};
/// let builders: conform::Builders<u32> = vec![("oracle".into(), conform::builder::<u32, Oracle<u32>>(()))];
/// ```
pub fn builder<A: Addr, E: Engine<A> + 'static>(config: E::Config) -> Build<A>
where
    E::Config: 'static,
{
    Box::new(move |routes| Ok(Box::new(E::build(routes, &config)?)))
}

/// Makes a module of tests that runs the whole suite on each form of an engine.
///
/// `conforms!(name, A, builders)`: `name` is the module's, `A` is `u32` or `u128`, `builders` an
/// expression of type [`conform::Builders<A>`](crate::conform::Builders). One form for each
/// configuration and instruction set:
///
/// ```
/// use fibula_testkit::{Oracle, conform, conforms};
///
/// conforms!(oracle_v4, u32, vec![
///     ("oracle".to_string(), conform::builder::<u32, Oracle<u32>>(())),
/// ]);
/// # fn main() {}
/// ```
///
/// An engine must take the hand-made and the dense tables. It may refuse the generated and the
/// crowded ones with [`BuildError::Limit`](fibula_core::BuildError::Limit): the case is then skipped
/// and the reason printed.
#[macro_export]
macro_rules! conforms {
    ($(#[$attr:meta])* $name:ident, $addr:ty, $builders:expr $(,)?) => {
        $(#[$attr])*
        #[cfg(test)]
        mod $name {
            #[allow(unused_imports, reason = "the expression may name what lies around")]
            use super::*;

            fn builders() -> $crate::conform::Builders<$addr> {
                $builders
            }

            #[test]
            fn edge_tables() {
                $crate::conform::edge_tables::<$addr>(&builders());
            }
            #[test]
            fn dense_tables() {
                $crate::conform::dense_tables::<$addr>(&builders());
            }
            #[test]
            fn batch_lengths() {
                $crate::conform::batch_lengths::<$addr>(&builders());
            }
            #[test]
            fn unaligned_slices() {
                $crate::conform::unaligned_slices::<$addr>(&builders());
            }
            #[test]
            fn unequal_lengths_panic() {
                $crate::conform::unequal_lengths_panic::<$addr>(&builders());
            }
            #[test]
            fn realistic_tables() {
                $crate::conform::realistic_tables::<$addr>(&builders());
            }
            #[test]
            fn crowded_tables() {
                $crate::conform::crowded_tables::<$addr>(&builders());
            }
        }
    };
}

/// Differences printed for one failure.
const KEEP: usize = 5;

/// A table, the addresses to look up, and the right answers.
struct Case<A: Addr> {
    name: String,
    routes: Routes<A>,
    /// Whether an engine may refuse the table at a limit.
    may_refuse: bool,
    addrs: Vec<A>,
    expected: Vec<Hop>,
}

impl<A: Addr> Case<A> {
    fn new(name: String, routes: Routes<A>, addrs: Vec<A>, may_refuse: bool) -> Self {
        let oracle = Oracle::new(&routes);
        let expected = addrs.iter().map(|&addr| oracle.lookup(addr)).collect();
        Self { name, routes, may_refuse, addrs, expected }
    }

    /// Looks up every boundary, then `keys`.
    fn boundaries(name: &str, routes: Routes<A>, keys: &[A], may_refuse: bool) -> Self {
        let addrs = probes::boundary(&routes).chain(keys.iter().copied()).collect();
        Self::new(name.to_owned(), routes, addrs, may_refuse)
    }

    /// Looks up boundaries with random addresses between them; at least three of the longest batches.
    fn mixed(seed: u64) -> Self {
        let routes = tables::dense::<A>(seed, 700);
        let mut rng = Rng::new(0x0a11);
        let addrs = probes::boundary(&routes).flat_map(|probe| [probe, rng.addr()]).collect();
        Self::new(format!("dense table {seed}"), routes, addrs, false)
    }

    /// The engine over the table; `None`, with a printed reason, if it refuses the table and may.
    fn build(&self, (label, build): &(String, Build<A>)) -> Option<Box<dyn Lookup<A>>> {
        match build(&self.routes) {
            Ok(engine) => Some(engine),
            Err(error @ BuildError::Limit { .. }) if self.may_refuse => {
                println!("{label}: skipped on {}: {error}", self.name);
                None
            }
            Err(error) => panic!("{label} must take {}: {error}", self.name),
        }
    }
}

/// Every address of every case, single and in batches.
fn agree<A: Addr>(builders: &Builders<A>, cases: &[Case<A>]) {
    for case in cases {
        for form in builders {
            let Some(engine) = case.build(form) else { continue };
            let report = check_answers(&*engine, &case.addrs, &case.expected, KEEP);
            assert!(report.is_ok(), "{} on {}: {report}", form.0, case.name);
            let has_memory = engine.memory().total() > 0 || case.routes.is_empty();
            assert!(has_memory, "{}: no memory", form.0);
        }
    }
}

/// Keys over the whole space, reserved or not.
fn random_keys<A: Addr>(count: usize) -> Vec<A> {
    let mut rng = Rng::new(0x5eed);
    (0..count).map(|_| rng.addr()).collect()
}

/// The cases of a family, made once a process by the first test that needs them: every engine's module needs the same
/// ones, and making them takes longer than the lookups of most engines.
struct Cases<A: Addr> {
    edge: OnceLock<Vec<Case<A>>>,
    dense: OnceLock<Vec<Case<A>>>,
    realistic: OnceLock<Vec<Case<A>>>,
    crowded: OnceLock<Vec<Case<A>>>,
    lengths: OnceLock<Case<A>>,
    unaligned: OnceLock<Case<A>>,
}

impl<A: Addr> Cases<A> {
    const fn new() -> Self {
        Self {
            edge: OnceLock::new(),
            dense: OnceLock::new(),
            realistic: OnceLock::new(),
            crowded: OnceLock::new(),
            lengths: OnceLock::new(),
            unaligned: OnceLock::new(),
        }
    }

    fn get() -> &'static Self {
        static V4: Cases<u32> = Cases::new();
        static V6: Cases<u128> = Cases::new();
        let families: [&'static dyn Any; 2] = [&V4, &V6];
        families.into_iter().find_map(|cases| cases.downcast_ref()).expect("there are two families")
    }
}

/// The hand-made tables, the empty one first.
pub fn edge_tables<A: Addr>(builders: &Builders<A>) {
    let cases = || {
        let keys = random_keys(500);
        let case = |(name, routes)| Case::boundaries(name, routes, &keys, false);
        tables::edge::<A>().into_iter().map(case).collect()
    };
    agree(builders, Cases::get().edge.get_or_init(cases));
}

/// Dense nested tables of several sizes.
pub fn dense_tables<A: Addr>(builders: &Builders<A>) {
    let cases = || {
        let keys = random_keys(2000);
        let sizes = [1, 2, 3, 5, 8, 17, 40, 64, 100, 333, 1000, 2000];
        let case = |(seed, prefixes)| {
            let routes = tables::dense(seed, prefixes);
            Case::boundaries(&format!("dense table {seed}"), routes, &keys, false)
        };
        (0..).zip(sizes).map(case).collect()
    };
    agree(builders, Cases::get().dense.get_or_init(cases));
}

/// Every batch length from 0 to 272, with boundary probes and random keys mixed.
pub fn batch_lengths<A: Addr>(builders: &Builders<A>) {
    let case = Cases::<A>::get().lengths.get_or_init(|| Case::mixed(77));
    for form in builders {
        let Some(engine) = case.build(form) else { continue };
        let mut report = CheckReport::default();
        for len in 0..=LONGEST_BATCH {
            // Three places, so that a lane does not always hold the same key.
            for start in [0, len, 2 * len + 1] {
                let at = start..start + len;
                let (addrs, expected) = (&case.addrs[at.clone()], &case.expected[at]);
                check_batch(&*engine, addrs, expected, KEEP, &mut report);
            }
        }
        assert!(report.is_ok(), "{}: {report}", form.0);
    }
}

/// Slices of addresses and of hops that begin at any element, whose neighbours must stay untouched.
pub fn unaligned_slices<A: Addr>(builders: &Builders<A>) {
    let case = Cases::<A>::get().unaligned.get_or_init(|| Case::mixed(78));
    let guard = Hop::new(Hop::MAX_INDEX);
    for form in builders {
        let Some(engine) = case.build(form) else { continue };
        for offset in 0..=16 {
            for len in [1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100] {
                // The two offsets differ, or both would be aligned alike.
                let (at, out) = (offset..offset + len, 16 - offset);
                let mut hops = vec![guard; out + len + 17];
                engine.lookup_batch(&case.addrs[at.clone()], &mut hops[out..out + len]);
                let label = || format!("{}: offset {offset}, batch of {len}", form.0);
                assert_eq!(hops[out..out + len], case.expected[at], "{}", label());
                let outside = hops[..out].iter().chain(&hops[out + len..]);
                let untouched = outside.into_iter().all(|hop| *hop == guard);
                assert!(untouched, "{}: wrote outside its slice", label());
            }
        }
    }
}

/// `lookup_batch` panics if the slices differ in length, whichever is longer.
pub fn unequal_lengths_panic<A: Addr>(builders: &Builders<A>) {
    let case = Case::new("dense table 79".to_owned(), tables::dense::<A>(79, 20), vec![], false);
    for form in builders {
        let Some(engine) = case.build(form) else { continue };
        for (addrs, hops) in [(0, 1), (1, 0), (8, 9), (64, 63), (100, 16)] {
            let (keys, mut hops) = (vec![A::MIN; addrs], vec![Hop::NONE; hops]);
            let result = catch_unwind(AssertUnwindSafe(|| engine.lookup_batch(&keys, &mut hops)));
            assert!(result.is_err(), "{}: {addrs} addresses, {} hops", form.0, hops.len());
        }
    }
}

/// Generated tables in the shape of the Internet's, and one with more hops than 16 bits number.
pub fn realistic_tables<A: Addr>(builders: &Builders<A>) {
    let case = |(year, prefixes, hops)| {
        let spec = FibSpec { year, prefixes, seed: 11, hops };
        let routes = spec.generate::<A>();
        let mut keys = random_keys(20_000);
        keys.extend(traffic::keys(&routes, Traffic::Pfx, 20_000, 12));
        Case::boundaries(&format!("generated table {spec}"), routes, &keys, true)
    };
    let specs = [
        (2010, 3_000, HopModel::Near(20)),
        (2015, 20_000, HopModel::Hash(200)),
        (2024, 40_000, HopModel::Near(64)),
        (2024, 40_000, HopModel::Hash(4_000)),
    ];
    let cases = || specs.into_iter().map(case).collect();
    agree(builders, Cases::get().realistic.get_or_init(cases));
}

/// Tables beyond some schemes' limits: very many intervals in one chunk, very large hops.
pub fn crowded_tables<A: Addr>(builders: &Builders<A>) {
    let cases = || {
        let keys = random_keys(1000);
        let tables =
            [("crowded table", tables::crowded()), ("wide hops", tables::wide_hops(80, 1500))];
        tables.map(|(name, routes)| Case::boundaries(name, routes, &keys, true)).into()
    };
    agree(builders, Cases::get().crowded.get_or_init(cases));
}

/// Patches tables step by step, each step compared with the oracle of its routes: dense small tables,
/// then a realistic one, in bursts of 1 to 40 changes.
///
/// # Panics
/// If an answer is wrong, or if fewer than half of the patches were applied: a scheme that only ever requires a build
/// does not patch.
pub fn patches<A: Addr, E: Engine<A> + Follow<A>>(label: &str, config: &E::Config) {
    let spec = FibSpec { year: 2024, prefixes: 8_000, seed: 5, hops: HopModel::Near(30) };
    let pools = [tables::dense::<A>(90, 600), tables::dense(91, 1500), spec.generate()];
    let mut applied = 0;
    let mut steps = 0;
    for pool in pools {
        let mut rng = Rng::new(0x9a7c);
        let mut table: BTreeMap<Prefix<A>, Hop> =
            pool.iter().filter(|_| rng.chance(0.5)).map(|r| (r.prefix, r.hop)).collect();
        let routes =
            |table: &BTreeMap<_, _>| -> Routes<A> { table.iter().map(|(p, h)| (*p, *h)).collect() };
        let mut engine = E::build(&routes(&table), config).expect("the table is small");
        for step in 0..150 {
            let burst = if step % 10 == 0 { 40 } else { 1 + rng.below(4) };
            let mut changed = Vec::new();
            for _ in 0..burst {
                let route = rng.choose(pool.as_slice()).expect("the pool has routes");
                let hop = Hop::new(rng.below(u64::from(pool.hop_count())) as u32);
                if rng.chance(0.5) {
                    table.insert(route.prefix, hop);
                } else {
                    table.remove(&route.prefix);
                }
                changed.push(route.prefix);
            }
            let routes = routes(&table);
            steps += 1;
            // Every other time with the routes alone that the engine says that it reads.
            let part = if step % 2 == 0 { None } else { reached(&engine, &routes, &changed) };
            let given = part.as_ref().unwrap_or(&routes);
            match engine.follow(given, &changed).expect("the table is small") {
                Patched::Applied => applied += 1,
                Patched::Rebuild => engine = E::build(&routes, config).expect("the table is small"),
            }
            let oracle = Oracle::new(&routes);
            let at = changed.iter().flat_map(|prefix| {
                let (first, last) = (prefix.first(), prefix.last());
                [
                    first.predecessor(),
                    Some(first),
                    first.successor(),
                    last.predecessor(),
                    Some(last),
                ]
                .into_iter()
                .flatten()
                .chain(last.successor())
            });
            let random = (0..50).map(|_| rng.addr()).collect::<Vec<A>>();
            let everywhere = (step % 30 == 29).then(|| probes::boundary(&routes));
            let mut keys = at.chain(random).chain(everywhere.into_iter().flatten());
            let report = check(&engine, &oracle, &mut keys, KEEP);
            assert!(report.is_ok(), "{label}, step {step}, {changed:?}: {report}");
        }
    }
    assert!(applied * 2 >= steps, "{label}: {applied} of {steps} patches applied");
}

/// The routes that the engine reads to follow these changes; `None` if it does not say.
fn reached<A: Addr>(
    engine: &impl Follow<A>,
    routes: &Routes<A>,
    changed: &[Prefix<A>],
) -> Option<Routes<A>> {
    let blocks = changed.iter().map(|&prefix| engine.reach(prefix));
    let blocks = blocks.collect::<Option<Vec<_>>>()?;
    let is_read = |route: &Route<A>| {
        blocks.iter().any(|block| block.covers(route.prefix) || route.prefix.covers(*block))
    };
    let part: Routes<A> = routes.iter().filter(is_read).collect();
    Some(part.part_of(routes.hop_count()))
}

/// Patches copies, each a copy of the one before: a copy answers as the routes are after its patch, and the one
/// that it was made of as they were before.
///
/// # Panics
/// If an answer is wrong, or if the engine makes no copies.
pub fn copies<A: Addr, E: Engine<A> + Follow<A> + 'static>(label: &str, config: &E::Config) {
    let pool = tables::dense::<A>(92, 1200);
    let mut rng = Rng::new(0x0c09);
    let mut routes: Routes<A> = pool.iter().filter(|_| rng.chance(0.5)).collect();
    let built = |routes: &Routes<A>| E::build(routes, config).expect("the table is small");
    let mut engine = built(&routes);
    for step in 0..60 {
        let mut changes = BTreeMap::new();
        for _ in 0..1 + rng.below(20) {
            let route = rng.choose(pool.as_slice()).expect("the pool has routes");
            changes.insert(route.prefix, if rng.chance(0.4) { Hop::NONE } else { route.hop });
        }
        let before = routes.clone();
        let changes: Vec<Route<A>> =
            changes.into_iter().map(|(prefix, hop)| Route { prefix, hop }).collect();
        routes.apply(&changes);
        let changed: Vec<Prefix<A>> = changes.iter().map(|change| change.prefix).collect();
        let mut copy = engine.copy().expect("the engine makes copies");
        if copy.follow(&routes, &changed) != Ok(Patched::Applied) {
            copy = built(&routes);
        }
        for (engine, routes, which) in [(&engine, &before, "original"), (&copy, &routes, "copy")] {
            let mut probes = probes::boundary(routes);
            let report = check(engine, &Oracle::new(routes), &mut probes, KEEP);
            assert!(report.is_ok(), "{label}, {which} of step {step}: {report}");
        }
        engine = copy;
    }
}
