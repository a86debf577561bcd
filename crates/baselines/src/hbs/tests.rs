use std::collections::BTreeMap;

use fibula_core::{Addr, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Routes};
use fibula_testkit::conform::patches;
use fibula_testkit::{Oracle, Rng, StoredTables, check::check, probes, tables};

use super::build::entries;
use super::lookup::part;
use super::tree::{LEN, Node, RANK, balanced, markers, weighted};
use super::{Batch, Config, Hbs};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table =
        routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.9.8.0/24", 3)]);
    let engine = Hbs::build(&table, &Config { heuristic: false, ..Config::default() }).unwrap();
    let lengths: Vec<u32> = engine.tree.iter().map(|node| node[LEN]).collect();
    assert_eq!(lengths, [16, 8, 24]);
    assert_eq!(engine.entries(), 5);
    let answers = [0x0a09_0701, 0x0a03_0001, 0x0a09_0801, 0x0a01_0203, 0x0a01_0303, 0x0b00_0000];
    let hops = [Some(0), Some(0), Some(3), Some(2), Some(1), None];
    assert_eq!(answers.map(|addr| engine.lookup(addr).index()), hops);
    assert!(answers.iter().all(|&addr| engine.probes(addr) == 2));
}

/// With origins a search ends where nothing longer is, and passes over lengths that nothing has.
#[test]
fn origins_prune() {
    let table = routes(&[
        ("10.0.0.0/8", 0),
        ("10.1.0.0/16", 1),
        ("11.0.0.0/12", 2),
        ("11.0.1.0/24", 3),
        ("12.0.0.0/16", 4),
        ("12.0.0.1/32", 5),
    ]);
    let heuristic = Hbs::build(&table, &Config::default()).unwrap();
    let basic = Hbs::build(&table, &Config { heuristic: false, ..Config::default() }).unwrap();
    for (addr, hop) in [(0x0a01_0001, 1), (0x0c00_0001, 5), (0x0c00_0002, 4), (0x0b00_0101, 3)] {
        assert_eq!(heuristic.lookup(addr), Hop::new(hop));
        assert_eq!(basic.lookup(addr), Hop::new(hop));
        assert!(heuristic.probes(addr) <= basic.probes(addr), "{addr:x}");
    }
    // 10.1.0.0/16 is found at the root, and nothing is longer there.
    let root = heuristic.tree[0][LEN];
    assert_eq!(root, 16);
    assert_eq!((heuristic.probes(0x0a01_0001), basic.probes(0x0a01_0001)), (1, 3));
}

/// The weighted tree against all trees of few ranks.
#[test]
fn weighted_tree_is_the_best() {
    fn best(weights: &[u64]) -> u64 {
        let all: u64 = weights.iter().sum();
        let cost = |root: usize| best(&weights[..root]) + best(&weights[root + 1..]);
        (0..weights.len()).map(cost).min().map_or(0, |cost| cost + all)
    }
    fn depths(tree: &[Node], weights: &[u64]) -> u64 {
        fn below(tree: &[Node], at: u32, depth: u64, weights: &[u64]) -> u64 {
            let Some(node) = tree.get(at as usize) else { return 0 };
            depth * weights[node[RANK] as usize]
                + below(tree, node[1], depth + 1, weights)
                + below(tree, node[2], depth + 1, weights)
        }
        below(tree, 0, 1, weights)
    }
    for weights in [vec![], vec![3], vec![1, 9], vec![5, 1, 1, 5, 30, 2, 8], vec![1; 7]] {
        assert_eq!(depths(&weighted(&weights), &weights), best(&weights), "{weights:?}");
    }
    assert_eq!(depths(&balanced(7), &[1; 7]), 17);
    // Of seven ranks the middle one's markers are those of all above it.
    let markers = markers(&balanced(7)).unwrap();
    assert_eq!((&markers[6][..], &markers[2][..]), (&[3, 5][..], &[1][..]));
}

/// 33 or 129 lengths at once.
#[test]
fn many_lengths() {
    fn all<A: Addr>(routes: &Routes<A>) {
        let oracle = Oracle::new(routes);
        for heuristic in [false, true] {
            let engine = Hbs::build(routes, &Config { heuristic, ..Config::default() }).unwrap();
            let report = check(&engine, &oracle, &mut probes::boundary(routes), 3);
            assert!(report.is_ok(), "{heuristic}: {report}");
            let deepest = if heuristic { A::BITS.into() } else { A::BITS.ilog2() + 1 };
            let most = probes::boundary(routes).map(|addr| engine.probes(addr)).max();
            assert!(most.unwrap() <= deepest, "{most:?}");
        }
    }
    for (name, table) in tables::edge::<u32>() {
        println!("{name}");
        all(&table);
    }
    all(&tables::dense::<u32>(51, 900));
    all(&tables::dense::<u128>(52, 900));
}

/// Batches shorter than the places for lookups, of their number, and with more.
#[test]
fn interleaved_batches() {
    fn all<A: Addr>(routes: &Routes<A>, heuristic: bool) {
        let engine = Hbs::build(routes, &Config { heuristic, batch: Batch::Interleaved }).unwrap();
        let addrs: Vec<A> = probes::boundary(routes).take(700).collect();
        for len in (0..140).chain([addrs.len()]) {
            let addrs = &addrs[..len.min(addrs.len())];
            let mut hops = vec![Hop::new(77); addrs.len()];
            engine.lookup_batch(addrs, &mut hops);
            for (&addr, hop) in addrs.iter().zip(hops) {
                assert_eq!(hop, engine.lookup(addr), "{heuristic}, {len}: {}", addr.to_ip());
            }
        }
    }
    for heuristic in [false, true] {
        all(&tables::dense::<u32>(53, 900), heuristic);
        all(&tables::dense::<u128>(54, 900), heuristic);
        all(&routes(&[]), heuristic);
        all(&routes(&[("0.0.0.0/0", 3)]), heuristic);
        all(&routes(&[("0.0.0.0/0", 3), ("255.255.255.255/32", 4)]), heuristic);
    }
}

/// Each key of each table, with its code and its note.
fn contents<A: Addr>(engine: &Hbs<A>) -> Vec<BTreeMap<A, (u32, u32)>> {
    let mut nodes = engine.tree.to_vec();
    nodes.sort_unstable_by_key(|node| node[RANK]);
    let table = |node: &Node| engine.slots.items::<A>(part(node));
    let pair = |item: crate::common::Item<A>| (item.key, (item.code, item.note));
    nodes.iter().map(|node| table(node).map(pair).collect()).collect()
}

/// The same of a build over the engine's tree.
fn built<A: Addr>(engine: &Hbs<A>, routes: &Routes<A>) -> Vec<BTreeMap<A, (u32, u32)>> {
    let mut lengths: Vec<u8> = engine.tree.iter().map(|node| node[LEN] as u8).collect();
    lengths.sort_unstable();
    let tables = entries(routes, &lengths, &engine.tree);
    let pair = |item: crate::common::Item<A>| (item.key, (item.code, item.note));
    tables.into_iter().map(|items| items.into_iter().map(pair).collect()).collect()
}

#[test]
fn patched_tables_are_those_of_a_build() {
    fn all<A: Addr>(pool: &Routes<A>, heuristic: bool, seed: u64) {
        let config = Config { heuristic, ..Config::default() };
        let mut rng = Rng::new(seed);
        let mut table: BTreeMap<Prefix<A>, Hop> = pool.iter().map(|r| (r.prefix, r.hop)).collect();
        let routes = |table: &BTreeMap<Prefix<A>, Hop>| -> Routes<A> {
            table.iter().map(|(prefix, hop)| (*prefix, *hop)).collect()
        };
        let mut engine = Hbs::build(&routes(&table), &config).unwrap();
        for step in 0..120 {
            // Single changes, bursts, and everything at once, withdrawn and announced again.
            let count = [1, 3, 40, pool.len()][if step % 40 == 39 { 3 } else { step % 3 }];
            let mut changed = Vec::new();
            for i in 0..count {
                let route = pool.as_slice()
                    [if count == pool.len() { i } else { rng.below(pool.len() as u64) as usize }];
                let hop = Hop::new(rng.below(5) as u32);
                if rng.chance(0.5) {
                    table.insert(route.prefix, hop)
                } else {
                    table.remove(&route.prefix)
                };
                changed.push(route.prefix);
            }
            let routes = routes(&table);
            assert_eq!(engine.follow(&routes, &changed), Ok(Patched::Applied), "no new lengths");
            assert!(contents(&engine) == built(&engine, &routes), "{heuristic}, step {step}");
            if step % 20 == 0 {
                let report =
                    check(&engine, &Oracle::new(&routes), &mut probes::boundary(&routes), 3);
                assert!(report.is_ok(), "{heuristic}, step {step}: {report}");
                let stored = StoredTables::of(&engine.tables());
                engine = Hbs::load(&stored, routes.hop_count(), &config).unwrap();
            }
        }
    }
    for heuristic in [false, true] {
        all(&tables::dense::<u32>(55, 700), heuristic, 1);
        all(&tables::dense::<u128>(56, 700), heuristic, 2);
        all(&tables::crowded::<u32>(), heuristic, 3);
    }
}

#[test]
fn patched_tables_answer_as_built_ones() {
    for heuristic in [false, true] {
        let config = Config { heuristic, batch: Batch::Interleaved };
        patches::<u32, Hbs<u32>>(&format!("IPv4, {heuristic}"), &config);
        patches::<u128, Hbs<u128>>(&format!("IPv6, {heuristic}"), &config);
    }
}

/// The default route's answer is in markers that no other route covers; a new length, and a table without room, are
/// left to a build.
#[test]
fn patches_at_the_edges() {
    let mut table =
        routes(&[("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.9.8.0/24", 3), ("10.9.8.7/32", 4)]);
    let mut engine = Hbs::build(&table, &Config { heuristic: false, ..Config::default() }).unwrap();
    let change = |table: &mut Routes<u32>, prefix: &str, hop: Hop| {
        let prefix: Prefix<u32> = prefix.parse().unwrap();
        table.apply(&[fibula_core::Route { prefix, hop }]);
        [prefix]
    };
    for hop in [Hop::new(9), Hop::new(8), Hop::NONE] {
        let changed = change(&mut table, "0.0.0.0/0", hop);
        assert_eq!(engine.follow(&table, &changed), Ok(Patched::Applied));
        assert_eq!([0x0a09_0701, 0, u32::MAX].map(|addr| engine.lookup(addr)), [hop; 3]);
        assert_eq!(engine.lookup(0x0a09_0807), Hop::new(4));
    }
    // A length that nobody has, withdrawn; then announced.
    assert_eq!(engine.follow(&table, &["10.0.0.0/8".parse().unwrap()]), Ok(Patched::Applied));
    let changed = change(&mut table, "10.0.0.0/8", Hop::new(5));
    assert_eq!(engine.follow(&table, &changed), Ok(Patched::Rebuild));

    let mut table = routes(&[("10.0.0.0/24", 1)]);
    let mut engine = Hbs::build(&table, &Config::default()).unwrap();
    let outcomes: Vec<_> = (1..=12)
        .map(|i| {
            let changed = change(&mut table, &format!("10.0.{i}.0/24"), Hop::new(i));
            engine.follow(&table, &changed).unwrap()
        })
        .collect();
    assert_eq!(outcomes[..11], [Patched::Applied; 11]);
    assert_eq!(outcomes[11], Patched::Rebuild, "of 16 slots 12 are taken");
}

/// Ranks that no search finds, and ranks that are none, are refused: a batch would search without end.
#[test]
fn stored_trees_are_search_trees() {
    let table = routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2)]);
    let config = Config { batch: Batch::Interleaved, ..Config::default() };
    let whole = StoredTables::of(&Hbs::build(&table, &config).unwrap().tables());
    assert!(Hbs::<u32>::load(&whole, 3, &config).is_ok());
    for node in 0..3 {
        for rank in [0u32, 1, 2, 3, u32::MAX] {
            let mut stored = whole.clone();
            let at = 4 * (6 * node + RANK);
            let mut is_same = false;
            stored.edit("tree", |bytes| {
                is_same = bytes[at..at + 4] == rank.to_ne_bytes();
                bytes[at..at + 4].copy_from_slice(&rank.to_ne_bytes());
            });
            assert_eq!(Hbs::<u32>::load(&stored, 3, &config).is_ok(), is_same, "{node} {rank}");
        }
    }
}
