use fibula_core::{Addr, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Route, Routes};
use fibula_simd::Isa;
use fibula_testkit::conform::{copies, patches};
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, StoredTables, probes, tables, traffic};

use super::deep::Deep;
use super::record::{Line, Unit};
use super::word::{BITS_MAX, BYTES_MAX, CODE_MAX, Entry, WORDS_MAX};
use super::{Config, Form, Variant, Wideleaf};

fn built(routes: &Routes<u128>) -> Wideleaf {
    Wideleaf::build(routes, &Config::default()).expect("it takes any table")
}

/// Built for records of this unit, whatever this machine prefers.
fn built_with(routes: &Routes<u128>, lines: bool) -> Wideleaf {
    let config = Config { variant: Some(Variant { lines, gathers: true }), ..Config::default() };
    Wideleaf::build(routes, &config).expect("it takes any table")
}

fn agrees(engine: &Wideleaf, routes: &Routes<u128>, more: &[u128], label: &str) {
    let oracle = Oracle::new(routes);
    let addrs: Vec<u128> = probes::boundary(routes).chain(more.iter().copied()).collect();
    let mut hops = vec![Hop::NONE; addrs.len()];
    for (addrs, hops) in addrs.chunks(1000).zip(hops.chunks_mut(1000)) {
        engine.lookup_batch(addrs, hops);
    }
    for (&addr, &hop) in addrs.iter().zip(&hops) {
        assert_eq!(hop, oracle.lookup(addr), "{label}: {}, batch", addr.to_ip());
        assert_eq!(engine.lookup(addr), hop, "{label}: {}, single", addr.to_ip());
    }
}

#[test]
fn words_decode_to_their_parts() {
    for entry in [
        Entry::Constant(0),
        Entry::Constant(CODE_MAX),
        Entry::Record { byte: 0, keys: 1 },
        Entry::Record { byte: BYTES_MAX - 4, keys: Line::KEYS_MAX },
        Entry::Table { base: 0, bits: 1 },
        Entry::Table { base: WORDS_MAX - 1, bits: BITS_MAX },
    ] {
        assert_eq!(Entry::of(entry.word()), entry);
    }
}

#[test]
fn patched_tables_answer_as_built_ones() {
    for isa in Isa::available() {
        patches::<u128, Wideleaf>(&format!("wideleaf {isa}"), &Config { isa, variant: None });
        copies::<u128, Wideleaf>(&format!("wideleaf {isa}"), &Config { isa, variant: None });
    }
}

/// Patches of a table that keeps its size leave garbage, deep blocks included, which is removed without a build.
#[test]
fn garbage_goes_without_a_build() {
    let spec = FibSpec { year: 2024, prefixes: 12_000, seed: 3, hops: HopModel::Hash(300) };
    let hosts = (0..40u128).map(|i| Prefix::host(0x2001_0db8 << 96 | i << 84));
    let mut table: Vec<Route<u128>> = spec.generate::<u128>().iter().collect();
    table.extend(hosts.map(|prefix| Route { prefix, hop: Hop::new(1) }));
    let mut routes = Routes::from_unsorted(table);
    let mut engine = built(&routes);
    let garbage = |engine: &Wideleaf| match &engine.form {
        Form::Narrow(tables) => tables.garbage,
        Form::NarrowLine(tables) => tables.garbage,
        _ => panic!("these hops have codes of 16 bits"),
    };
    // Another hop for one route in ten.
    let change = |routes: &mut Routes<u128>, round: usize| -> Vec<Prefix<u128>> {
        let others = routes.iter().skip(round % 10).step_by(10);
        let changes: Vec<Route<u128>> = others
            .map(|route| Route { hop: Hop::new((route.hop.to_bits() + 1) % 301), ..route })
            .collect();
        routes.apply(&changes);
        changes.iter().map(|change| change.prefix).collect()
    };
    let mut moved = 0;
    for round in 0..40 {
        let changed = change(&mut routes, round);
        let before = garbage(&engine);
        assert_eq!(engine.follow(&routes, &changed), Ok(Patched::Applied), "round {round}");
        if garbage(&engine) < before {
            moved += 1;
            agrees(&engine, &routes, &[], &format!("round {round}"));
        }
    }
    assert!(moved >= 1, "{moved}");
    agrees(&engine, &routes, &[], "the last round");
}

/// A table that has grown by half since it was built is rebuilt, because its strides no longer suit its routes.
#[test]
fn a_table_that_has_grown_is_built_anew() {
    let spec = FibSpec { year: 2024, prefixes: 60_000, seed: 5, hops: HopModel::Hash(300) };
    let all: Vec<Route<u128>> = spec.generate::<u128>().iter().collect();
    let mut routes = Routes::from_unsorted(all.iter().copied().step_by(4).collect());
    let mut engine = built(&routes);
    let sizes = |engine: &Wideleaf| match &engine.form {
        Form::Narrow(tables) => (tables.used(), tables.built),
        Form::NarrowLine(tables) => (tables.used(), tables.built),
        _ => panic!("these hops have codes of 16 bits"),
    };
    let at_first = sizes(&engine).1;
    // Four times as many routes, then another hop for one route in ten. Growth is checked when garbage is removed.
    let churn = (0..60).map(|round: usize| -> Vec<Route<u128>> {
        let other = |route: &Route<u128>| Hop::new((route.hop.to_bits() + 1 + round as u32) % 301);
        let some = all.iter().skip(round % 10).step_by(10);
        some.map(|route| Route { hop: other(route), ..*route }).collect()
    });
    let steps = all.chunks(800).map(<[_]>::to_vec).chain(churn);
    let follow = |engine: &mut Wideleaf, routes: &mut Routes<u128>, changes: &[Route<u128>]| {
        routes.apply(changes);
        let changed: Vec<_> = changes.iter().map(|route| route.prefix).collect();
        engine.follow(routes, &changed).unwrap()
    };
    for changes in steps {
        if follow(&mut engine, &mut routes, &changes) == Patched::Applied {
            assert_eq!(sizes(&engine).1, at_first, "growth counts from the first build");
            continue;
        }
        let (used, before) = sizes(&engine);
        assert!(used > before + before / 2, "{used} bytes, {before} at first");
        engine = built(&routes);
        agrees(&engine, &routes, &[], "built anew");
        assert!(sizes(&engine).1 > at_first);
        // Changes that keep the size are patched again.
        for changes in all.chunks(6000).take(3) {
            assert_eq!(follow(&mut engine, &mut routes, changes), Patched::Applied);
        }
        return;
    }
    panic!("{:?} bytes now and at first, and no build", sizes(&engine));
}

/// Every shape of a block: a constant, records of every size and one key over, tables before them; in
/// the middle of the space and at both ends.
#[test]
fn blocks_of_every_size() {
    for size in (1..=40).chain([63, 64, 65, 300, 1000, 3000]) {
        for (at, step) in
            [(0u128, 80), (0x2001_0db8 << 96, 80), (0xffff << 112, 83), (7 << 112, 96)]
        {
            let route = |i: u128| Route {
                prefix: Prefix::masked(at + (i << step), (128 - step) as u8).unwrap(),
                hop: Hop::new((i % 5) as u32),
            };
            let routes = Routes::from_unsorted((0..size).map(route).collect());
            for lines in [false, true] {
                let engine = built_with(&routes, lines);
                agrees(&engine, &routes, &[], &format!("{size} at {at:#x}, {lines}"));
            }
        }
    }
}

/// Intervals that no table resolves cheaply become deep blocks, and the memory stays in bounds.
#[test]
fn badly_placed_routes_cost_bounded_memory() {
    // Hundreds of neighbouring /48s in each of many far-off places, all under one root entry.
    let route = |i: u128| Route {
        prefix: Prefix::masked(0x2001 << 112 | (i / 300 * 509) << 96 | (i % 300) << 80, 48)
            .unwrap(),
        hop: Hop::new((i % 251) as u32),
    };
    let routes = Routes::from_unsorted((0..30_000).map(route).collect());
    let engine = built(&routes);
    let intervals = routes.ranges().count();
    assert!(engine.memory().total() < (1 << 19) + 1000 * intervals, "{:?}", engine.memory());
    agrees(&engine, &routes, &[], "badly placed");
}

#[test]
fn codes_are_as_wide_as_the_hops_need() {
    let form = |hops, lines| {
        let hops = HopModel::Hash(hops);
        let spec = FibSpec { year: 2024, prefixes: 60_000, seed: 3, hops };
        let routes = spec.generate::<u128>();
        let engine = built_with(&routes, lines);
        let keys = traffic::keys(&routes, traffic::Traffic::Pfx, 50_000, 1);
        agrees(&engine, &routes, &keys, &format!("{hops:?}"));
        match engine.form {
            Form::Byte(_) | Form::ByteLine(_) => 8,
            Form::Narrow(_) | Form::NarrowLine(_) => 16,
            Form::Wide(_) | Form::WideLine(_) => 32,
        }
    };
    for lines in [false, true] {
        let forms = [form(100, lines), form(300, lines), form(1_000_000, lines)];
        assert_eq!(forms, [8, 16, 32]);
    }
    let largest =
        Routes::from_unsorted(vec![Route { prefix: Prefix::ALL, hop: Hop::new(1 << 24) }]);
    agrees(&built(&largest), &largest, &[], "a large hop");
}

/// Patched tables are stored and loaded like built ones.
/// Routes and hops for which the codes are too narrow, a few at a time: each patch is applied, and the codes are wider.
#[test]
fn codes_that_run_out_become_wider() {
    for lines in [false, true] {
        let route =
            |prefix: &str, hop| Route { prefix: prefix.parse().unwrap(), hop: Hop::new(hop) };
        let mut routes: Routes<u128> =
            Routes::from_unsorted(vec![route("2001:db8::/32", 249), route("2001:db8:1::/48", 1)]);
        let mut engine = built_with(&routes, lines);
        assert!(matches!(engine.form, Form::Byte(_) | Form::ByteLine(_)));
        // Each /64 makes its /48 a deep block, for which five codes are left.
        for burst in 0..8 {
            let deep = |i: u128| {
                let prefix =
                    Prefix::masked((0x2001_0db8 << 96) | (i << 80) | (1_u128 << 64), 64).unwrap();
                Route { prefix, hop: Hop::new(i as u32 % 250) }
            };
            let changes: Vec<Route<u128>> = (3 * burst..3 * burst + 3).map(deep).collect();
            routes.apply(&changes);
            let changed: Vec<Prefix<u128>> = changes.iter().map(|route| route.prefix).collect();
            assert_eq!(engine.follow(&routes, &changed), Ok(Patched::Applied), "burst {burst}");
            agrees(&engine, &routes, &[], "deep blocks");
        }
        assert!(matches!(engine.form, Form::Narrow(_) | Form::NarrowLine(_)));
        // Then hops that need wider codes than these.
        for hop in [300, 70_000] {
            let change = route("2001:db8:2::/48", hop);
            routes.apply(&[change]);
            assert_eq!(engine.follow(&routes, &[change.prefix]), Ok(Patched::Applied));
            agrees(&engine, &routes, &[], "more hops");
        }
        assert!(matches!(engine.form, Form::Wide(_) | Form::WideLine(_)));
    }
}

#[test]
fn a_patched_table_is_stored() {
    for lines in [false, true] {
        patched_and_stored(lines);
    }
}

fn patched_and_stored(lines: bool) {
    let before = tables::dense::<u128>(4, 800);
    let mut engine = built_with(&before, lines);
    let hosts = (0..50u128).map(|i| Prefix::host(0x2001 << 112 | i << 77));
    let changed: Vec<Prefix<u128>> = hosts.collect();
    let routes: Routes<u128> = before
        .iter()
        .map(|route| (route.prefix, route.hop))
        .chain(changed.iter().map(|&prefix| (prefix, Hop::new(2))))
        .collect();
    assert_eq!(engine.follow(&routes, &changed), Ok(Patched::Applied));
    let mut loaded =
        Wideleaf::load(&StoredTables::of(&engine.tables()), routes.hop_count(), &Config::default())
            .expect("as it was stored");
    agrees(&loaded, &routes, &[], "loaded");
    // And patched again, although it lies in shared memory.
    assert_eq!(loaded.follow(&before, &changed), Ok(Patched::Applied));
    agrees(&loaded, &before, &[], "loaded and patched");
    agrees(&engine, &routes, &[], "not touched by that");
}

/// Deep blocks are numbered down from the largest code: a file with more of them than there are codes
/// is refused.
#[test]
fn more_deep_blocks_than_codes_are_refused() {
    let routes = tables::dense::<u128>(4, 800);
    let with = |blocks: usize| {
        let mut stored = StoredTables::of(&built_with(&routes, false).tables());
        stored.set("windows", &vec![0; size_of::<Deep>() * blocks]);
        Wideleaf::load(&stored, routes.hop_count(), &Config::default())
    };
    assert!(with(usize::from(u8::MAX) - routes.hop_count() as usize).is_ok());
    let error = with(1 << 8).err().expect("one too many");
    assert_eq!((error.table(), error.reason()), ("records8", "cannot name all deep blocks"));
}

/// A constant has room for more than the codes of a file's records, which number the deep blocks: beyond them it is
/// neither's, whatever the number of hops in the file.
#[test]
fn constants_beyond_the_codes_are_refused() {
    let engine = built_with(&tables::dense::<u128>(4, 800), false);
    let load = |code: u32| {
        let mut stored = StoredTables::of(&engine.tables());
        let bytes = engine.tables().into_iter().find(|table| table.name == "words").unwrap().bytes;
        let mut words: Vec<u32> = bytemuck::cast_slice(bytes).to_vec();
        words[0xffff] = code;
        stored.set("words", bytemuck::cast_slice(&words));
        Wideleaf::load(&stored, 1000, &Config::default())
    };
    let largest = u32::from(u8::MAX) - windows(&engine) as u32;
    assert!(load(largest).is_ok());
    let error = load(u32::from(u8::MAX) + 1).err().expect("it is no code");
    assert_eq!((error.table(), error.reason()), ("words", "names a hop beyond the hop count"));
}

/// Tables from before deep blocks had windows are distinguished from damaged ones.
#[test]
fn tables_of_before_windows_are_outdated() {
    let mut stored = StoredTables::of(&built(&tables::dense::<u128>(4, 800)).tables());
    let load = |stored: &StoredTables| Wideleaf::load(stored, 1000, &Config::default()).err();
    assert!(load(&stored).is_none());
    stored.remove("windows");
    assert!(!load(&stored).expect("windows are missing").is_outdated());
    stored.set("deep_starts", &[0; 4]);
    assert!(load(&stored).expect("they are of another form").is_outdated());
}

/// A stored window is taken only where it can be: narrower than the one around it, named by one code. One that no code
/// names, as patches leave them behind, is not looked at, not even for the lanes of a batch that are not in use.
#[test]
fn windows_that_cannot_be_are_refused() {
    let host = |i: u128| Prefix::host(0x2001 << 112 | i << 100 | 1);
    let few = |from: u128| (from..9).map(|i| (host(i), Hop::new(1))).collect::<Routes<u128>>();
    let (all, rest) = (few(0), few(3));
    let mut engine = built_with(&all, false);
    let gone: Vec<_> = (0..3).map(host).collect();
    assert_eq!(engine.follow(&rest, &gone), Ok(Patched::Applied));
    // A window as words of 32 bits: four of its first address, its word, its shift.
    let load = |change: &dyn Fn(&mut [[u32; 8]])| {
        let mut stored = StoredTables::of(&engine.tables());
        let bytes =
            engine.tables().into_iter().find(|table| table.name == "windows").unwrap().bytes;
        let mut windows: Vec<[u32; 8]> = bytemuck::cast_slice(bytes).to_vec();
        change(&mut windows);
        stored.set("windows", bytemuck::cast_slice(&windows));
        Wideleaf::load(&stored, rest.hop_count(), &Config::default())
    };
    // The last window is in use, the first one belonged to a host that is gone.
    let loaded = load(&|windows| windows[0][4] = u32::MAX).expect("nobody reads its word");
    agrees(&loaded, &rest, &[], "a window without a code");
    for (at, value, table) in [(4, u32::MAX, "words"), (5, 112, "windows")] {
        let error = load(&|windows| windows.last_mut().unwrap()[at] = value).err();
        assert_eq!(error.expect("it cannot be").table(), table);
    }
    // A window whose word is its own code would be an endless loop.
    let own = u32::from(u8::MAX) - windows(&engine) as u32 + 1;
    let error = load(&|windows| windows.last_mut().unwrap()[4] = own).err();
    assert_eq!(error.expect("it has no end").table(), "windows");
}

/// The number of its deep blocks.
fn windows(engine: &Wideleaf) -> usize {
    match &engine.form {
        Form::Byte(tables) => tables.windows_used,
        Form::ByteLine(tables) => tables.windows_used,
        Form::Narrow(tables) => tables.windows_used,
        Form::NarrowLine(tables) => tables.windows_used,
        Form::Wide(tables) => tables.windows_used,
        Form::WideLine(tables) => tables.windows_used,
    }
}

/// Tables of long routes: single divided cells, many in one root entry, blocks of every size, next to shorter routes.
#[test]
fn long_routes_in_batches() {
    let route = |addr: u128, i: u128| Route {
        prefix: Prefix::masked(addr, (64 + i * 7 % 65) as u8).unwrap(),
        hop: Hop::new((i % 251) as u32),
    };
    let far = |i: u128| {
        (1 << 125)
            + (i << 96 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835 >> 3)
                % (1 << 125)
    };
    let spread: Vec<_> = (0..3000).map(|i| route(far(i), i)).collect();
    let crowded: Vec<_> =
        (0..3000).map(|i| route(far(i % 40 * (i % 40)) >> 80 << 80 | far(i) >> 48, i)).collect();
    let dense = tables::dense::<u128>(6, 1000);
    let mixed: Vec<_> = dense.iter().chain(spread.iter().copied().step_by(9)).collect();
    for (label, table) in [("spread", spread), ("crowded", crowded), ("mixed", mixed)] {
        let routes = Routes::from_unsorted(table);
        let oracle = Oracle::new(&routes);
        let mut addrs = traffic::keys(&routes, traffic::Traffic::Match(80), 2000, 5);
        addrs.extend(probes::boundary(&routes).step_by(7).take(3000));
        let expected: Vec<Hop> = addrs.iter().map(|&addr| oracle.lookup(addr)).collect();
        for isa in Isa::available() {
            for (lines, gathers) in [(false, false), (false, true), (true, false), (true, true)] {
                let config = Config { isa, variant: Some(Variant { lines, gathers }) };
                let engine = Wideleaf::build(&routes, &config).unwrap();
                let blocks = windows(&engine);
                assert!(blocks > 10, "{label}: {blocks} deep blocks");
                for len in (1..=36).chain([47, 64, 65, 127, 128, 129, 150, 200, 256, 300, 1000]) {
                    let mut hops = vec![Hop::NONE; addrs.len()];
                    for (addrs, hops) in addrs.chunks(len).zip(hops.chunks_mut(len)) {
                        engine.lookup_batch(addrs, hops);
                    }
                    assert!(hops == expected, "{label}, {isa}, {config:?}, batches of {len}");
                }
            }
        }
    }
}

/// Divided cells far from each other do not cost the memory of tables that would separate them.
#[test]
fn lonely_long_routes_cost_little_memory() {
    let mut rng = fibula_testkit::Rng::new(4);
    let route = |i| Route {
        prefix: Prefix::host(rng.addr::<u128>() >> 3 | 1 << 125),
        hop: Hop::new(i % 9),
    };
    let routes = Routes::from_unsorted((0..20_000u32).map(route).collect());
    let engine = built(&routes);
    assert!(engine.memory().total() < 100 * routes.len(), "{:?}", engine.memory());
    agrees(&engine, &routes, &[], "hosts");
}
