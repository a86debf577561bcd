//! All 2^32 addresses, each IPv4 engine in each form, against a flat table: an array of the hops of
//! all addresses, painted route by route in order of length, so that the longest stays on top. Takes
//! minutes, so it runs on demand: `./dev exhaustive [ENGINE]`; `./dev exhaustive --skip archives`
//! leaves out the table that is not in the repository. A stretch of a real table is always compared.
//!
//! The array is made in slabs; a test holds one of them at a time.

use crate::real;
use fibula_core::{BuildError, Hop, Lookup, Routes};
use fibula_engines::{BoxedEngine, Entry, Isa};
use fibula_testkit::fib::{FibSpec, HopModel};

use crate::{engines, find};

/// Addresses of a slab: 128 MB of hops.
const SLAB: usize = 1 << 25;
/// Addresses that are looked up in mixed order, so that a batch meets several chunks.
const WINDOW: usize = 1 << 20;
const BATCH: usize = 1024;

/// 46.16.0.0/12: 916 routes of the cut touch it, of lengths 14 to 32.
const STRETCH: u32 = 0x2e10_0000;

/// A generated table, and the cut of a real one with the most next hops.
fn generated_and_cut() -> Vec<(String, Routes<u32>)> {
    let spec = FibSpec { year: 2024, prefixes: 900_000, seed: 1, hops: HopModel::Hash(256) };
    let cut = "ipasn_20140513";
    vec![(format!("generated {spec}"), spec.generate()), (format!("cut of {cut}"), real::cut(cut))]
}

/// The real table with the most next hops.
fn archive() -> Vec<(String, Routes<u32>)> {
    let file = real::archives().into_iter().find(|file| real::name(file).starts_with("pch-"));
    let file = file.expect("the table pch-* is among the real archives");
    vec![(real::name(&file), real::read(&file))]
}

/// The hops of `flat.len()` addresses from `first`, by routes that are sorted by length.
fn paint(by_length: &Routes<u32>, order: &[u32], first: u32, flat: &mut [Hop]) {
    flat.fill(Hop::NONE);
    let last = first + (flat.len() as u32 - 1);
    for route in order.iter().map(|&i| by_length.as_slice()[i as usize]) {
        let (from, to) = (route.prefix.first().max(first), route.prefix.last().min(last));
        if from <= to {
            flat[(from - first) as usize..=(to - first) as usize].fill(route.hop);
        }
    }
}

/// The table, its hops folded to as many as the engine takes if it refuses them, and every second route
/// left out until it is small enough for the engine's other limits.
fn fitting(entry: &Entry<u32>, routes: Routes<u32>) -> Routes<u32> {
    match entry.build(&routes, Isa::Scalar) {
        Err(BuildError::Limit { what: "next hops", limit, .. }) => {
            let fold = |hop: Hop| Hop::new(hop.to_bits() % limit as u32);
            let folded = routes.iter().map(|route| (route.prefix, fold(route.hop))).collect();
            fitting(entry, folded)
        }
        Err(BuildError::Limit { .. }) => {
            let half: Routes<u32> = routes.iter().step_by(2).collect();
            println!("{}: of {} routes {}", entry.name, routes.len(), half.len());
            fitting(entry, half)
        }
        _ => routes,
    }
}

/// An engine in each form that this machine has.
fn forms(entry: &Entry<u32>, routes: &Routes<u32>) -> Vec<(Isa, BoxedEngine<u32>)> {
    let isas = entry.isas.iter().filter(|isa| isa.is_supported());
    isas.map(|&isa| (isa, entry.build(routes, isa).expect("the engine takes the table"))).collect()
}

/// The places of the routes in order of length.
fn by_length(routes: &Routes<u32>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..routes.len() as u32).collect();
    order.sort_by_key(|&i| routes.as_slice()[i as usize].prefix.len());
    order
}

fn exhaustive(name: &str, tables: Vec<(String, Routes<u32>)>) {
    let entry = find::<u32>(name).expect("the registry has the engine");
    for (table, routes) in tables {
        let routes = fitting(entry, routes);
        let (order, forms) = (by_length(&routes), forms(entry, &routes));
        let mut wrong = vec![0u64; forms.len() + 1];
        let mut flat = vec![Hop::NONE; SLAB];
        for slab in 0..1u64 << 32 >> SLAB.trailing_zeros() {
            let first = (slab * SLAB as u64) as u32;
            paint(&routes, &order, first, &mut flat);
            for ((_, engine), wrong) in forms.iter().zip(&mut wrong) {
                *wrong += differing(&**engine, first, &flat);
            }
            wrong[forms.len()] += differing_singly(&*forms[0].1, first, &flat);
        }
        for ((isa, _), wrong) in forms.iter().zip(&wrong) {
            println!("{name} {isa}, batches, {table}: {} addresses, {wrong} wrong", 1u64 << 32);
        }
        let single = wrong[forms.len()];
        println!("{name}, single, {table}: {} addresses, {single} wrong", 1u64 << 32);
        assert!(wrong.iter().all(|&wrong| wrong == 0), "{name} on {table}");
    }
}

fn differing<E: Lookup<u32> + ?Sized>(engine: &E, first: u32, flat: &[Hop]) -> u64 {
    let (mut addrs, mut hops) = ([0; BATCH], [Hop::NONE; BATCH]);
    let mut wrong = 0;
    for (window, flat) in flat.chunks(WINDOW).enumerate() {
        let first = first + (window * WINDOW) as u32;
        // An odd factor visits every place of a power of two once.
        let place = |i: usize| i.wrapping_mul(0x9e37_79b1) % WINDOW;
        for begin in (0..WINDOW).step_by(BATCH) {
            for (i, addr) in addrs.iter_mut().enumerate() {
                *addr = first + place(begin + i) as u32;
            }
            engine.lookup_batch(&addrs, &mut hops);
            wrong += (0..BATCH).filter(|&i| hops[i] != flat[place(begin + i)]).count() as u64;
        }
    }
    wrong
}

fn differing_singly<E: Lookup<u32> + ?Sized>(engine: &E, first: u32, flat: &[Hop]) -> u64 {
    let addrs = (0u32..).map(|i| first + i);
    flat.iter().zip(addrs).filter(|&(&hop, addr)| engine.lookup(addr) != hop).count() as u64
}

#[test]
fn every_address_of_a_stretch_of_a_real_table() {
    let routes: Routes<u32> = real::cut("ipasn_20140513");
    let mut flat = vec![Hop::NONE; WINDOW];
    paint(&routes, &by_length(&routes), STRETCH, &mut flat);
    let changes = flat.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 471);
    for entry in engines::<u32>() {
        let routes = fitting(entry, routes.clone());
        paint(&routes, &by_length(&routes), STRETCH, &mut flat);
        for (isa, engine) in forms(entry, &routes) {
            let wrong = differing(&*engine, STRETCH, &flat);
            assert_eq!(wrong, 0, "{} {isa}, batches", entry.name);
            assert_eq!(differing_singly(&*engine, STRETCH, &flat), 0, "{} {isa}", entry.name);
        }
    }
}

macro_rules! exhaustive {
    ($($test:ident $name:literal)*) => {
        $(
            #[test]
            #[ignore = "all 2^32 addresses: ./dev exhaustive"]
            fn $test() {
                exhaustive($name, generated_and_cut());
            }
        )*

        mod archives {
            $(
                #[test]
                #[ignore = "real archives, all 2^32 addresses: ./dev exhaustive"]
                fn $test() {
                    super::exhaustive($name, super::archive());
                }
            )*
        }

        #[test]
        fn every_engine_has_a_test() {
            for entry in engines::<u32>() {
                assert!([$($name),*].contains(&entry.name), "none for {}", entry.name);
            }
        }
    };
}

exhaustive! {
    radix "radix"
    runmap "runmap"
    dxr16 "dxr16"
    dxr17 "dxr17"
    dxr18 "dxr18"
    dxr19 "dxr19"
    dxr20 "dxr20"
    dxr18_branching "dxr18-branching"
    dxr21 "dxr21"
    dxr22 "dxr22"
    dxr23 "dxr23"
    dxr24 "dxr24"
    poptrie16 "poptrie16"
    poptrie18 "poptrie18"
    poptrie18_batch "poptrie18-batch"
    dir24_8 "dir24-8"
    dir24_8_prefetch "dir24-8-prefetch"
    dir24_8_wide "dir24-8-wide"
    dir24_8_wide_prefetch "dir24-8-wide-prefetch"
    planb "planb"
    planb_single "planb-single"
    planb_compiled "planb-compiled"
    planb_128 "planb-128"
    lower_bound "lower-bound"
    miht "miht"
    miht_batch "miht-batch"
    bloomfwd "bloomfwd"
    bloomfwd_compiled "bloomfwd-compiled"
    bloomfwd_baseline "bloomfwd-baseline"
    bloomfwd_naive "bloomfwd-naive"
    sail_b "sail-b"
    sail_u "sail-u"
    sail_m "sail-m"
    sail_l "sail-l"
    sail_l8 "sail-l8"
    sail_l_wide "sail-l-wide"
    sail_l_prefetch "sail-l-prefetch"
    bsd_radix "bsd-radix"
    cp_trie "cp-trie"
    hbs "hbs"
    hbs_batch "hbs-batch"
    hbs_basic "hbs-basic"
    lc_trie "lc-trie"
    lc_trie_wide "lc-trie-wide"
    lulea "lulea"
    lulea_wide "lulea-wide"
    neurotrie "neurotrie"
    pbf "pbf"
    tree_bitmap "tree-bitmap"
    tree_bitmap_split "tree-bitmap-split"
}
