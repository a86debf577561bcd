//! Engines that follow changes of a table, in place and as copies, against the oracle; in the end their stored tables.
#![no_main]

use std::collections::BTreeMap;

use fibula_core::{Addr, BuildError, Hop, Lookup, Patched, Prefix, Route, Routes};

use fibula_fuzz::{Grown, grow};
use fibula_simd::Isa;
use fibula_testkit::{Oracle, StoredTables, check::check, probes};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[engine, family, apart], rest)) = data.split_first_chunk() else { return };
    let mut input = Unstructured::new(rest);
    // With hops far apart, codes have 8, 16 and 32 bits.
    let apart = [1, 100, 0x1001][usize::from(apart) % 3];
    let result = match family & 1 {
        0 => run::<u32>(engine, apart, &mut input),
        _ => run::<u128>(engine, apart, &mut input),
    };
    result.expect("the end of the input is no error");
});

fn run<A: Addr>(engine: u8, apart: u32, input: &mut Unstructured<'_>) -> Result<()> {
    let entry = &fibula_baselines::registry().engines::<A>()
        [usize::from(engine) % fibula_baselines::registry().engines::<A>().len()];
    let build = |routes: &Routes<A>, isa| match entry.build(routes, isa) {
        Err(BuildError::Limit { .. }) => None,
        built => Some(built.expect("a small table is taken")),
    };
    let mut routes = Routes::from_unsorted(vec![]);
    let mut prefixes = vec![];
    routes.apply(&changes(&routes, &mut prefixes, apart, 700, input)?);
    let mut forms = vec![];
    for isa in Isa::available() {
        let Some(engine) = build(&routes, isa) else { return Ok(()) };
        forms.push((isa, engine));
    }
    for _ in 0..20 {
        if input.is_empty() {
            break;
        }
        let before = Oracle::new(&routes);
        let old_probes: Vec<A> = probes::boundary(&routes).collect();
        let changes = changes(&routes, &mut prefixes, apart, 30, input)?;
        let changed: Vec<Prefix<A>> = changes.iter().map(|change| change.prefix).collect();
        routes.apply(&changes);
        let after = Oracle::new(&routes);
        let agrees = |engine: &dyn Lookup<A>, oracle: &Oracle<A>, isa: Isa, what: &str| {
            let mut probes = probes::boundary(&routes).chain(old_probes.iter().copied());
            let report = check(engine, oracle, &mut probes, 5);
            assert!(report.is_ok(), "{} {isa}, {what}: {report}\n{changes:?}", entry.name);
        };
        for (isa, engine) in &mut forms {
            if let Some(mut copy) = engine.boxed_copy()
                && copy.follow(&routes, &changed) == Ok(Patched::Applied)
            {
                agrees(&*copy, &after, *isa, "a copy that was patched");
                agrees(&**engine, &before, *isa, "the original of that copy");
            }
            match engine.follow(&routes, &changed) {
                Ok(Patched::Applied) => {}
                Ok(Patched::Rebuild) | Err(BuildError::Limit { .. }) => {
                    let Some(built) = build(&routes, *isa) else { return Ok(()) };
                    *engine = built;
                }
                Err(error) => panic!("{} {isa}: {error}", entry.name),
            }
            agrees(&**engine, &after, *isa, "patched");
        }
    }
    let oracle = Oracle::new(&routes);
    for (isa, engine) in &forms {
        let Some((_, tables)) = engine.persist() else { continue };
        // As many as have been hops at any time.
        let loaded = entry.load(&StoredTables::of(&tables), 256 * apart, *isa);
        let loaded = loaded.expect("what was stored can be loaded");
        let report = check(&*loaded, &oracle, &mut probes::boundary(&routes), 5);
        assert!(report.is_ok(), "{} {isa}, loaded: {report}\n{routes:?}", entry.name);
    }
    Ok(())
}

/// At most `most` changes in the order of their prefixes: new routes, other hops, and routes that go.
fn changes<A: Addr>(
    routes: &Routes<A>,
    prefixes: &mut Vec<Prefix<A>>,
    apart: u32,
    most: u16,
    input: &mut Unstructured<'_>,
) -> Result<Vec<Route<A>>> {
    let mut changes = BTreeMap::new();
    for _ in 0..1 + input.arbitrary::<u16>()? % most {
        if input.is_empty() {
            break;
        }
        let [what, hop]: [u8; 2] = input.arbitrary()?;
        let hop = Hop::new(u32::from(hop) * apart);
        if what % 4 < 2 {
            if let Grown::Route(route) = grow::<A>(prefixes, input)? {
                prefixes.push(route.prefix);
                changes.insert(route.prefix, hop);
            }
        } else if !routes.is_empty() {
            let at = usize::from(input.arbitrary::<u16>()?) % routes.len();
            let hop = if what % 4 == 2 { Hop::NONE } else { hop };
            changes.insert(routes.as_slice()[at].prefix, hop);
        }
    }
    Ok(changes.into_iter().map(|(prefix, hop)| Route { prefix, hop }).collect())
}
