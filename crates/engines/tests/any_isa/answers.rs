//! Every engine gives the answers of `testdata/answers`: compiled from the routes, and patched to them from
//! a table without any.

use std::fs;
use std::path::Path;

use fibula_core::{Addr, Hop, Lookup, Patched, Route, Routes};
use fibula_engines::Isa;
use fibula_testkit::Oracle;
use fibula_testkit::case::Case;

use crate::engines;

/// Checks all engines of a family, in all forms. Returns how many answers there are.
fn check<A: Addr>(name: &str, case: &Case) -> usize {
    let routes: Routes<A> = case.routes::<A>().into_iter().collect();
    let answers = case.answers::<A>();
    let right = |what: &str, engine: &dyn Lookup<A>| {
        let addrs: Vec<A> = answers.iter().map(|(addr, _)| *addr).collect();
        // Each answer in each lane: in batches that begin at each address.
        for start in 0..addrs.len() {
            let mut hops = vec![Hop::NONE; addrs.len() - start];
            engine.lookup_batch(&addrs[start..], &mut hops);
            for ((addr, expected), in_batch) in answers[start..].iter().zip(hops) {
                let found = (engine.lookup(*addr), in_batch);
                assert_eq!(found, (*expected, *expected), "{name}: {what}, {}", addr.to_ip());
            }
        }
    };
    right("the oracle", &Oracle::new(&routes));
    for entry in engines::<A>() {
        for &isa in entry.isas.iter().filter(|isa| isa.is_supported()) {
            let label = format!("{} {isa}", entry.name);
            let engine = entry.build(&routes, isa).unwrap_or_else(|e| panic!("{label}: {e}"));
            right(&label, &engine);
            // Patches are the same for every form.
            if isa != Isa::detect().best_of(entry.isas) {
                continue;
            }
            let mut patched = Routes::default();
            let mut engine = entry.build(&patched, isa).unwrap_or_else(|e| panic!("{label}: {e}"));
            for (prefix, hop) in case.routes::<A>() {
                patched.apply(&[Route { prefix, hop }]);
                match engine.follow(&patched, &[prefix]) {
                    Ok(Patched::Applied) => {}
                    Ok(Patched::Rebuild) => engine = entry.build(&patched, isa).unwrap(),
                    Err(error) => panic!("{label}: {error}"),
                }
            }
            right(&format!("{label}, patched"), &engine);
        }
    }
    answers.len()
}

#[test]
fn of_all_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/answers");
    let (mut v4, mut v6, mut files) = (0, 0, 0);
    for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let case = Case::parse(&fs::read_to_string(&path).unwrap());
        let case = case.unwrap_or_else(|error| panic!("{name}: {error}"));
        v4 += check::<u32>(&name, &case);
        v6 += check::<u128>(&name, &case);
        files += 1;
    }
    assert!(files >= 3 && v4 >= 19 && v6 >= 18, "{files} files, {v4} and {v6} answers");
}
