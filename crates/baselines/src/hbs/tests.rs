use fibula_core::{Addr, Engine, Hop, Lookup, Routes};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::tree::{LEN, Node, RANK, balanced, markers, weighted};
use super::{Config, Hbs};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table =
        routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.9.8.0/24", 3)]);
    let engine = Hbs::build(&table, &Config { heuristic: false }).unwrap();
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
    let basic = Hbs::build(&table, &Config { heuristic: false }).unwrap();
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
    assert_eq!(markers(&balanced(7))[6], [3, 5]);
    assert_eq!(markers(&balanced(7))[2], [1]);
}

/// 33 or 129 lengths at once.
#[test]
fn many_lengths() {
    fn all<A: Addr>(routes: &Routes<A>) {
        let oracle = Oracle::new(routes);
        for heuristic in [false, true] {
            let engine = Hbs::build(routes, &Config { heuristic }).unwrap();
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
