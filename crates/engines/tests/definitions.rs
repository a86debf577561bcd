//! The definitions of `bench`, at their small size: our engines give the answers whose checksums they state. The
//! harness compares all contestants in this way (`./dev bench check`), but compiles engines and rivals for it.

use std::fs;
use std::path::Path;

use fibula_baselines::registry;
use fibula_core::{Addr, Hop, Routes};
use fibula_engines::Isa;
use fibula_testkit::fib::{GenSpec, HopModel};
use fibula_testkit::traffic;
use toml::{Table, Value};

use crate::find;

#[test]
fn definitions_state_what_engines_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/definitions");
    let mut checked = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let definition: Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        checked += match definition["family"].as_str() {
            Some("v4") => check::<u32>(&name, &definition),
            Some("v6") => check::<u128>(&name, &definition),
            other => panic!("{name}: family {other:?}"),
        };
    }
    assert!(checked > 20, "{checked} engines with traffic");
}

/// Compares all engines of a definition. Returns the number of comparisons.
fn check<A: Addr>(name: &str, definition: &Table) -> usize {
    let small = &definition["small"];
    let spec: GenSpec = small["table"].as_str().unwrap().parse().unwrap();
    let routes: Routes<A> = spec.with_hops(HopModel::Hash(256)).generate();
    let number = |value: &Value| value.as_integer().unwrap() as u64;
    let of = |key: &str| definition.get(key).map_or(1, number);
    // As the harness takes the small form of a sweep over numbers of threads.
    let sweep = definition.get("sweep").and_then(|sweep| sweep.get("threads")?.as_array());
    let few = sweep.into_iter().flatten().map(number).filter(|threads| *threads <= 2).max();
    let (threads, seed) = (few.unwrap_or(of("threads")), of("seed"));
    let each = number(&small["keys"]) as usize;
    let engines = definition["contestants"].as_array().unwrap().iter();
    let engines = engines.filter_map(|engine| engine.as_str().unwrap().strip_prefix("fibula:"));
    let isa = Isa::detect();
    let built: Vec<_> = engines
        .map(|engine| match engine {
            "auto" => (engine, registry().auto(&routes, isa).engine),
            _ => {
                let entry = find::<A>(engine).unwrap_or_else(|| panic!("{name}: no {engine}"));
                (engine, entry.build(&routes, isa.best_of(entry.isas)).unwrap())
            }
        })
        .collect();
    let traffic = definition["traffic"].as_array().unwrap();
    for kind in traffic.iter().map(|kind| kind.as_str().unwrap()) {
        let part = |thread| traffic::keys(&routes, kind.parse().unwrap(), each, seed + thread);
        let keys: Vec<A> = (0..threads).flat_map(part).collect();
        for (engine, built) in &built {
            let mut hops = vec![Hop::NONE; keys.len()];
            built.lookup_batch(&keys, &mut hops);
            let stated = small["answers"][kind].as_str().unwrap();
            assert_eq!(checksum(&hops), stated, "{name}: {engine} with {kind}");
        }
    }
    built.len() * traffic.len()
}

/// FNV-1a of the hops' bytes, as the harness has it.
fn checksum(hops: &[Hop]) -> String {
    let bytes = hops.iter().flat_map(|hop| hop.to_bits().to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
