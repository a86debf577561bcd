use std::collections::HashMap;

use fibula_core::{
    BuildError, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Route, Routes,
};
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, StoredTables, conform, probes, tables};

use super::bitmaps::{self, Bitmaps, Levels};
use super::merged::{self, Entry};
use super::{OnChip, SailB, SailL, SailL8, SailM, SailU};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|&(prefix, hop)| (prefix.parse().unwrap(), Hop::new(hop))).collect()
}

/// The example of the drawings.
fn example() -> Routes<u32> {
    routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.1.2.128/25", 3)])
}

fn bytes<'a>(engine: &'a impl Persist<u32>, table: &str) -> &'a [u8] {
    engine.tables().into_iter().find(|t| t.name == table).expect("a table").bytes
}

/// The places of the set bits.
fn set_bits(engine: &impl Persist<u32>) -> Vec<usize> {
    let bytes = bytes(engine, "B").iter().enumerate().filter(|(_, byte)| **byte != 0);
    bytes
        .flat_map(|(i, byte)| (8 * i..8 * i + 8).filter(move |k| byte >> (k % 8) & 1 != 0))
        .collect()
}

fn bitmaps<L: Levels>(routes: &Routes<u32>) -> Bitmaps<L> {
    Bitmaps::build(routes, &()).expect("a small table")
}

fn merged<E: Entry>(routes: &Routes<u32>) -> SailL<E> {
    SailL::build(routes, &merged::Config::default()).expect("a small table")
}

#[test]
fn the_drawn_tables() {
    let basic: SailB = bitmaps(&example());
    let places = [(8, 10), (16, 0x0a01), (24, 0x0a_0102)].map(|(level, node)| (1 << level) + node);
    assert_eq!(set_bits(&basic), places);
    let memory = basic.memory();
    let sizes: Vec<_> = memory.tables().iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(sizes, [4 << 20, 64 << 20, 32 << 20, 512]);

    // Pushed: a /8 to 16 nodes of level 12, a /16 to 4 of level 18.
    let update: SailU = bitmaps(&example());
    assert_eq!(set_bits(&update).len(), 16 + 4 + 1);

    let merged = merged::<u16>(&example());
    let memory = merged.memory();
    assert_eq!(memory.tables(), [("BCN16", 128 << 10), ("BCN24", 512), ("N32", 512)]);
    let entry = |table, i: usize| {
        let bytes = bytes(&merged, table);
        u16::from_ne_bytes([bytes[2 * i], bytes[2 * i + 1]])
    };
    assert_eq!([0x0a00, 0x0a01, 0x0a02, 0x0b00].map(|i| entry("BCN16", i)), [1, 0xffff, 1, 0]);
    assert_eq!([0, 1, 2, 3].map(|i| entry("BCN24", i)), [2, 2, 0xffff, 2]);
    assert_eq!([0, 127, 128, 255].map(|i| entry("N32", i)), [3, 3, 4, 4]);
}

#[test]
fn patches() {
    conform::patches::<u32, SailB>("sail-b", &());
    conform::patches::<u32, SailU>("sail-u", &());
    let config = merged::Config::default();
    conform::patches::<u32, SailL>("sail-l", &config);
    conform::patches::<u32, SailL<u32>>("sail-l-wide", &config);
    conform::patches::<u32, SailL8>("sail-l8", &config);
    conform::patches::<u32, SailM>("sail-m", &());
}

/// Folds the hops to as many as one byte holds.
fn few_hops(routes: &Routes<u32>) -> Routes<u32> {
    let fold = |route: Route<u32>| (route.prefix, Hop::new(route.hop.to_bits() % 5));
    routes.iter().map(fold).collect()
}

/// Chunks of the paper's layout and of an overlay come and go as those of `sail-l` do, and a stored table goes on.
#[test]
fn chunks_of_separate_arrays_come_and_go() {
    let pool = few_hops(&tables::dense::<u32>(95, 1500));
    let mut rng = fibula_testkit::Rng::new(7);
    let config = merged::Config::default();
    let mut routes = Routes::default();
    let mut eight = SailL8::build(&routes, &config).unwrap();
    let mut one = SailM::build(&routes, &()).unwrap();
    for share in [0.1, 1.0, 0.4, 0.0, 0.9, 0.2, 1.0] {
        let next: Routes<u32> = pool.iter().filter(|_| rng.chance(share)).collect();
        let changed: Vec<_> = routes.iter().chain(next.iter()).map(|r| r.prefix).collect();
        routes = next;
        assert_eq!(eight.follow(&routes, &changed), Ok(Patched::Applied));
        assert_eq!(one.follow(&routes, &changed), Ok(Patched::Applied));
        let built = merged::<u16>(&routes);
        assert_eq!((eight.chunks(), one.chunks()), (built.chunks(), built.chunks()));
        let oracle = Oracle::new(&routes);
        for addr in probes::boundary(&routes) {
            let expected = oracle.lookup(addr);
            assert_eq!((eight.lookup(addr), one.lookup(addr)), (expected, expected), "{addr:#x}");
        }
        let hops = pool.hop_count();
        eight = SailL8::load(&StoredTables::of(&eight.tables()), hops, &config).unwrap();
        one = SailM::load(&StoredTables::of(&one.tables()), hops, &()).unwrap();
    }
}

/// Single changes of one FIB among several: all answer as their oracles do, and the shape is that of a build.
#[test]
fn fibs_of_an_overlay_change_by_themselves() {
    let pools = [96, 97, 98].map(|seed| tables::dense::<u32>(seed, 400));
    let mut rng = fibula_testkit::Rng::new(8);
    let mut fibs: Vec<Routes<u32>> =
        pools.iter().map(|pool| pool.iter().filter(|_| rng.chance(0.5)).collect()).collect();
    let mut sail = SailM::overlay(&fibs).unwrap();
    for step in 0..150 {
        let vrf = rng.below(3) as usize;
        // Also prefixes of the others, the default route, and many at once.
        let count = if step % 15 == 0 { 200 } else { 1 + rng.below(4) };
        let mut changes = Vec::new();
        for _ in 0..count {
            let pool = &pools[rng.below(3) as usize];
            let prefix = rng.choose(pool.as_slice()).unwrap().prefix;
            let prefix = if rng.chance(0.05) { Prefix::ALL } else { prefix };
            let hop = if rng.chance(0.5) { Hop::new(rng.below(4) as u32) } else { Hop::NONE };
            changes.push(Route { prefix, hop });
        }
        changes.sort_by_key(|change| change.prefix);
        changes.dedup_by_key(|change| change.prefix);
        fibs[vrf].apply(&changes);
        let changed: Vec<_> = changes.iter().map(|change| change.prefix).collect();
        assert_eq!(sail.follow_in(vrf, &fibs[vrf], &changed), Patched::Applied);
        assert_eq!(sail.chunks(), SailM::overlay(&fibs).unwrap().chunks(), "step {step}");
        let probes: Vec<u32> = match step % 15 {
            0 => fibs.iter().flat_map(probes::boundary).collect(),
            _ => changed.iter().flat_map(|prefix| [prefix.first(), prefix.last()]).collect(),
        };
        for (vrf, fib) in fibs.iter().enumerate() {
            let oracle = Oracle::new(fib);
            for &addr in &probes {
                let hop = sail.lookup_in(vrf, addr);
                assert_eq!(hop, oracle.lookup(addr), "step {step}, FIB {vrf}, {addr:#x}");
            }
        }
    }
}

/// A patched SAIL_L has as many chunks in use as one that is built, whatever came and went.
#[test]
fn chunks_of_sail_l_come_and_go() {
    let pool = tables::dense::<u32>(94, 1500);
    let mut rng = fibula_testkit::Rng::new(6);
    let mut routes = Routes::default();
    let mut sail = merged::<u16>(&routes);
    let mut sizes = Vec::new();
    for share in [0.1, 1.0, 0.4, 0.0, 0.9, 0.2, 1.0] {
        let next: Routes<u32> = pool.iter().filter(|_| rng.chance(share)).collect();
        let changed: Vec<_> = routes.iter().chain(next.iter()).map(|r| r.prefix).collect();
        routes = next;
        assert_eq!(sail.follow(&routes, &changed), Ok(Patched::Applied));
        let built = merged::<u16>(&routes);
        assert_eq!(sail.chunks(), built.chunks());
        assert_eq!(bytes(&built, "BCN24").len(), built.chunks()[0] * 512);
        let oracle = Oracle::new(&routes);
        for addr in probes::boundary(&routes) {
            assert_eq!(sail.lookup(addr), oracle.lookup(addr), "{addr:#x}");
        }
        sizes.push(sail.memory().total());
    }
    // A change takes no chunk that it gives back itself, so the third one lets an array grow; no later one does.
    assert!(sizes[2..].iter().all(|&size| size == sizes[2]), "chunks are used again: {sizes:?}");
}

/// The paper's promise: a short route is one bit and one hop of SAIL_B, bits of one word of SAIL_U,
/// whatever longer routes it covers. And patched tables are those that a build makes.
fn one_word<L: Levels>(most: usize) {
    let all = tables::dense::<u32>(92, 300);
    let full: Bitmaps<L> = bitmaps(&all);
    let lens = [0, 1, 5, 6, 7, 8, 12, 13, 16, 18, 19, 23, 24];
    let changed = lens.map(|len| all.iter().find(|route| route.prefix.len() == len));
    assert!(changed.iter().flatten().count() > 8);
    for changed in changed.into_iter().flatten() {
        let rest: Routes<u32> = all.iter().filter(|r| r.prefix != changed.prefix).collect();
        let built: Bitmaps<L> = bitmaps(&rest);
        let mut patched = full.clone();
        assert_eq!(patched.follow(&rest, &[changed.prefix]), Ok(Patched::Applied));
        for name in ["B", "N", "C24", "N32"] {
            assert!(bytes(&patched, name) == bytes(&built, name), "{name} of {changed:?}");
        }
        for name in ["C24", "N32"] {
            assert!(bytes(&patched, name) == bytes(&full, name), "{name} of {changed:?}");
        }
        let differing = |name, size| {
            let (old, new) = (bytes(&full, name), bytes(&patched, name));
            let pages = old.chunks(4096).zip(new.chunks(4096)).filter(|(old, new)| old != new);
            let words = pages.flat_map(|(old, new)| old.chunks(size).zip(new.chunks(size)));
            words.filter(|(old, new)| old != new).count()
        };
        assert!(differing("B", 8) <= 1, "words of {changed:?}");
        assert!(differing("N", 2) <= most, "hops of {changed:?}");
    }
}

#[test]
fn a_short_route_is_one_bit_of_sail_b() {
    one_word::<bitmaps::Basic>(1);
}

#[test]
fn a_short_route_is_one_word_of_sail_u() {
    one_word::<bitmaps::Update>(64);
}

/// Chunks come, go and come again; N_32 grows when it must, and only then.
#[test]
fn chunks_are_used_again() {
    let long = |i: u32| (Prefix::host(i << 8 | 7), Hop::new(i));
    let few: Routes<u32> = (0..3).map(long).collect();
    let many: Routes<u32> = (0..40).map(long).collect();
    let changed: Vec<_> = many.iter().map(|route| route.prefix).collect();
    let mut sail: SailB = bitmaps(&few);
    let mut sizes = Vec::new();
    for routes in [&many, &few, &many, &Routes::default(), &many] {
        assert_eq!(sail.follow(routes, &changed), Ok(Patched::Applied));
        let oracle = Oracle::new(routes);
        for addr in probes::boundary(&many) {
            assert_eq!(sail.lookup(addr), oracle.lookup(addr), "{addr:#x}");
        }
        sizes.push(bytes(&sail, "N32").len());
    }
    assert!(sizes[0] >= 40 * 512 && sizes.iter().all(|&size| size == sizes[0]), "{sizes:?}");
}

/// The entry of a table that names each chunk of the next one.
fn owners(sail: &SailL, table: &str, below: &str) -> HashMap<u16, usize> {
    let first = u16::MAX as usize + 1 - bytes(sail, below).len() / 512;
    let entries = bytes(sail, table).chunks_exact(2).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let chunks = entries.enumerate().filter(|&(_, entry)| usize::from(entry) >= first);
    chunks.map(|(place, entry)| (entry, place)).collect()
}

/// A short route that changes its hop divides some blocks and makes others whole.
#[test]
fn a_chunk_does_not_change_its_owner_within_a_change() {
    let mut rng = fibula_testkit::Rng::new(5);
    let prefix = |addr: u32, len| Prefix::masked(addr, len).unwrap();
    let lens = [20, 22, 24, 24, 24, 28, 30];
    let mut list: Vec<(Prefix<u32>, Hop)> = (0..200)
        .map(|i| {
            (
                prefix(10 << 24 | rng.addr::<u32>() >> 12, lens[i % 7]),
                Hop::new(rng.addr::<u32>() % 3),
            )
        })
        .collect();
    let short = prefix(10 << 24, 11);
    list.push((short, Hop::new(0)));
    let mut table: Routes<u32> = list.into_iter().collect();
    let mut sail = merged::<u16>(&table);
    let mut kept = 0;
    for hop in [1, 2, 0, 2, 1, 0] {
        let levels = [("BCN16", "BCN24"), ("BCN24", "N32")];
        let before = levels.map(|(table, below)| owners(&sail, table, below));
        let len = bytes(&sail, "BCN24").len();
        table.apply(&[Route { prefix: short, hop: Hop::new(hop) }]);
        assert_eq!(sail.follow(&table, &[short]), Ok(Patched::Applied));
        let grown = bytes(&sail, "BCN24").len() - len;
        for ((table, below), before) in levels.into_iter().zip(before) {
            for (chunk, place) in owners(&sail, table, below) {
                // Places in the middle array count from its end.
                let moved = if table == "BCN24" { grown / 2 } else { 0 };
                if let Some(&old) = before.get(&chunk) {
                    assert_eq!(old + moved, place, "{table}, chunk {chunk:#x}");
                    kept += 1;
                }
            }
        }
    }
    assert!(kept > 0);
}

/// The needed number in the error, if there is one.
fn refused<T>(result: Result<T, BuildError>) -> Option<(&'static str, u64, u64)> {
    match result {
        Err(BuildError::Limit { what, limit, needed, .. }) => Some((what, limit, needed)),
        _ => None,
    }
}

#[test]
fn limits() {
    let hop = |hop: u32| [(Prefix::ALL, Hop::new(hop))].into_iter().collect::<Routes<u32>>();
    let config = merged::Config::default();
    let build_l = |routes: &_| refused(<SailL>::build(routes, &config));
    let build_8 = |routes: &_| refused(SailL8::build(routes, &config));
    let build_wide = |routes: &_| refused(SailL::<u32>::build(routes, &config));
    let build_b = |routes: &_| refused(SailB::build(routes, &()));
    let build_m = |routes: &Routes<u32>| refused(SailM::overlay(&[hop(0), routes.clone()]));
    let too_many = |limit: u64| Some(("next hops", limit, limit + 1));
    assert_eq!((build_8(&hop(254)), build_8(&hop(255))), (None, too_many(255)));
    assert_eq!((build_l(&hop(65_534)), build_l(&hop(65_535))), (None, too_many(65_535)));
    assert_eq!((build_b(&hop(65_534)), build_b(&hop(65_535))), (None, too_many(65_535)));
    assert_eq!((build_m(&hop(65_534)), build_m(&hop(65_535))), (None, too_many(65_535)));
    assert_eq!(build_wide(&hop(Hop::MAX_INDEX)), None);

    // As many divided nodes of level 16, or of level 24.
    let divided = |count: u32, len: u8| -> Routes<u32> {
        let block = |i: u32| Prefix::masked(i << (33 - len), len).unwrap();
        (0..count).map(|i| (block(i), Hop::new(0))).collect()
    };
    for (len, what) in [(17, "chunks of level 24"), (25, "chunks of level 32")] {
        assert_eq!(build_l(&divided(65_534, len)), None);
        let more = divided(65_535, len);
        assert_eq!(build_l(&more), Some((what, 65_534, 65_535)));
        assert_eq!(build_wide(&more), None);
    }
    let chunks = "chunks of routes longer than /24";
    assert_eq!(build_b(&divided(65_535, 25)), None);
    assert_eq!(build_b(&divided(65_536, 25)), Some((chunks, 65_535, 65_536)));
    assert_eq!(build_8(&divided(65_536, 25)), Some(("chunks of level 32", 65_535, 65_536)));
    assert_eq!(build_m(&divided(65_536, 25)), None);
    assert_eq!(build_m(&divided(65_537, 25)), Some(("chunks of level 32", 65_536, 65_537)));
}

/// A patch that exceeds the limits returns an error.
#[test]
fn limits_of_patches() {
    let mut sail: SailU = bitmaps(&example());
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    let more: Routes<u32> = [(prefix, Hop::new(65_535))].into_iter().collect();
    assert!(refused(sail.follow(&more, &[prefix])).is_some());
    // SAIL_L requires a build, also when a hop would equal the number of a chunk.
    assert_eq!(merged::<u16>(&example()).follow(&more, &[prefix]), Ok(Patched::Rebuild));
    let with_hop = |hop| {
        let mut list: Vec<_> = example().iter().map(|r| (r.prefix, r.hop)).collect();
        list.push((prefix, Hop::new(hop)));
        list.into_iter().collect::<Routes<u32>>()
    };
    for (hop, expected) in [(65_533, Patched::Applied), (65_534, Patched::Rebuild)] {
        let (mut sail, routes) = (merged::<u16>(&example()), with_hop(hop));
        assert_eq!(sail.follow(&routes, &[prefix]), Ok(expected), "{hop}");
        assert_eq!(build_fits(&routes), expected == Patched::Applied, "{hop}");
    }
    // One byte has 255 hops.
    let mut eight = SailL8::build(&example(), &merged::Config::default()).unwrap();
    assert_eq!(eight.follow(&with_hop(254), &[prefix]), Ok(Patched::Applied));
    assert_eq!(eight.follow(&with_hop(255), &[prefix]), Ok(Patched::Rebuild));
    let mut overlaid = SailM::build(&example(), &()).unwrap();
    assert_eq!(overlaid.follow(&with_hop(65_534), &[prefix]), Ok(Patched::Applied));
    assert_eq!(overlaid.follow(&with_hop(65_535), &[prefix]), Ok(Patched::Rebuild));

    // As many /17s as there is room for, one after the other.
    let mut sail = merged::<u16>(&Routes::default());
    let half = |i: u32| Prefix::masked(i << 16, 17).unwrap();
    let routes: Routes<u32> = (0..65_535).map(|i| (half(i), Hop::new(0))).collect();
    let changed: Vec<_> = routes.iter().map(|route| route.prefix).collect();
    let fitting: Routes<u32> = routes.iter().take(65_534).collect();
    assert_eq!(sail.follow(&fitting, &changed[..65_534]), Ok(Patched::Applied));
    assert_eq!(sail.lookup(65_533 << 16), Hop::new(0));
    assert_eq!(sail.follow(&routes, &changed[65_534..]), Ok(Patched::Rebuild));
    let mut eight = SailL8::build(&Routes::default(), &merged::Config::default()).unwrap();
    assert_eq!(eight.follow(&fitting, &changed[..65_534]), Ok(Patched::Applied));
    assert_eq!(eight.lookup(65_533 << 16), Hop::new(0));
    assert_eq!(eight.follow(&routes, &changed[65_534..]), Ok(Patched::Rebuild));
    // An overlay counts chunks apart from hops: one more has room.
    let mut overlaid = SailM::build(&Routes::default(), &()).unwrap();
    assert_eq!(overlaid.follow(&routes, &changed), Ok(Patched::Applied));
    assert_eq!(overlaid.lookup(65_534 << 16), Hop::new(0));
    let all: Routes<u32> = (0..65_536).map(|i| (half(i), Hop::new(0))).collect();
    assert_eq!(overlaid.follow(&all, &[half(65_535)]), Ok(Patched::Rebuild));
}

fn build_fits(routes: &Routes<u32>) -> bool {
    <SailL>::build(routes, &merged::Config::default()).is_ok()
}

/// Stored arrays of zeros.
fn zeros(tables: &[(&'static str, usize)]) -> StoredTables {
    let mut stored = StoredTables::default();
    tables.iter().for_each(|&(name, len)| stored.set(name, &vec![0; len]));
    stored
}

/// With as many chunks as there are values, the code 0 would be a chunk.
#[test]
fn stored_chunks_beyond_the_entries() {
    const CHUNK: usize = 512;
    let most = zeros(&[("BCN16", 128 << 10), ("BCN24", 65_535 * CHUNK), ("N32", 0)]);
    assert_eq!(
        <SailL>::load(&most, 1, &merged::Config::default()).expect("as many as fit").lookup(7),
        Hop::NONE
    );
    let more = zeros(&[("BCN16", 128 << 10), ("BCN24", 65_536 * CHUNK), ("N32", 0)]);
    assert_eq!(
        <SailL>::load(&more, 1, &merged::Config::default()).err().expect("too many").table(),
        "BCN24"
    );
    let more = zeros(&[("BCN16", 128 << 10), ("BCN24", 0), ("N32", 65_536 * CHUNK)]);
    assert_eq!(
        <SailL>::load(&more, 1, &merged::Config::default()).err().expect("too many").table(),
        "N32"
    );
    // The other side: a chunk of half a size.
    let half = zeros(&[("BCN16", 128 << 10), ("BCN24", CHUNK / 2), ("N32", 0)]);
    assert_eq!(
        <SailL>::load(&half, 1, &merged::Config::default()).err().expect("half a chunk").table(),
        "BCN24"
    );
}

/// Each FIB of an overlay answers as its own oracle does.
fn overlay(fibs: &[Routes<u32>]) {
    let sail = SailM::overlay(fibs).expect("small tables");
    assert_eq!(sail.fibs(), fibs.len());
    let mut rng = fibula_testkit::Rng::new(4);
    let mut addrs: Vec<u32> = fibs.iter().flat_map(probes::boundary).collect();
    addrs.extend((0..1000).map(|_| rng.addr::<u32>()));
    let (mut mixed, mut expected_mixed) = (Vec::new(), Vec::new());
    for (vrf, fib) in fibs.iter().enumerate() {
        let oracle = Oracle::new(fib);
        let mut hops = vec![Hop::new(7); addrs.len()];
        sail.lookup_batch_in(vrf, &addrs, &mut hops);
        for (&addr, &hop) in addrs.iter().zip(&hops) {
            let expected = oracle.lookup(addr);
            assert_eq!(hop, expected, "FIB {vrf}, {addr:#x}, batch");
            assert_eq!(sail.lookup_in(vrf, addr), expected, "FIB {vrf}, {addr:#x}");
            if rng.chance(0.1) {
                mixed.push((rng.below(1 << 32), vrf as u16, addr));
            }
        }
    }
    mixed.sort_unstable();
    let vrfs: Vec<u16> = mixed.iter().map(|(_, vrf, _)| *vrf).collect();
    let addrs: Vec<u32> = mixed.iter().map(|(.., addr)| *addr).collect();
    expected_mixed.extend(mixed.iter().map(|&(_, vrf, addr)| sail.lookup_in(vrf.into(), addr)));
    let mut hops = vec![Hop::new(7); addrs.len()];
    sail.lookup_batch_mixed(&vrfs, &addrs, &mut hops);
    assert_eq!(hops, expected_mixed);
}

#[test]
fn many_fibs() {
    overlay(&(0..5).map(|seed| tables::dense(seed, 200)).collect::<Vec<_>>());
    overlay(&tables::edge().into_iter().map(|(_, fib)| fib).collect::<Vec<_>>());
    let spec = |seed| FibSpec { year: 2024, prefixes: 3000, seed, hops: HopModel::Near(20) };
    overlay(&(0..3).map(|seed| spec(seed).generate()).collect::<Vec<_>>());
    overlay(&[Routes::default()]);
    overlay(&[]);
}

/// One set of bitmaps: a second equal FIB costs its hops and nothing else.
#[test]
fn overlaid_fibs_share() {
    let fib = tables::dense::<u32>(93, 500);
    let one = SailM::overlay(std::slice::from_ref(&fib)).unwrap().memory();
    let two = SailM::overlay(&[fib.clone(), fib]).unwrap().memory();
    for (&(name, one), &(_, two)) in one.tables().iter().zip(two.tables()) {
        let factor = if ["C16", "B24"].contains(&name) { 1 } else { 2 };
        assert_eq!(two, one * factor, "{name}");
    }
}

#[test]
#[should_panic(expected = "table 1 of 1")]
fn a_fib_that_is_not_there() {
    SailM::overlay(&[example()]).unwrap().lookup_in(1, 0);
}

#[test]
fn on_chip() {
    let on_chip = OnChip::of(&[&example()]);
    let basic: SailB = bitmaps(&example());
    let update: SailU = bitmaps(&example());
    assert_eq!((on_chip.sail_b, on_chip.sail_u), (basic.on_chip(), update.on_chip()));
    assert_eq!(on_chip.sail_l, (136 << 10) + 32);
    // The paper's: 2.13 MB, 18.755 bits a prefix.
    assert_eq!(OnChip::SAIL_L_MOST, (8 << 10) + (128 << 10) + (2 << 20));
    assert!((super::on_chip::PBF_BITS - 18.755).abs() < 1e-3);
    // Overlaid, a node counts once.
    let two = OnChip::of(&[&example(), &routes(&[("10.1.0.0/17", 9), ("10.9.0.0/17", 9)])]);
    assert_eq!(two.sail_l, on_chip.sail_l + 32);
    assert_eq!(two.pbf, (super::on_chip::PBF_BITS * 6.0 / 8.0) as usize);
}
