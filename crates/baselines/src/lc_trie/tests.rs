use fibula_core::{Addr, BuildError, Engine, Hop, Lookup, Prefix, Routes};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::{Config, LcTrie, NONE, Node, base};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table = routes(&[
        ("10.0.0.0/8", 1),
        ("10.0.0.0/16", 0),
        ("10.128.0.0/16", 2),
        ("64.0.0.0/2", 3),
        ("192.0.2.0/24", 4),
    ]);
    let config = Config { root: 2, ..Config::default() };
    let engine = <LcTrie<u32>>::build(&table, &config).unwrap();
    let node = |branch, skip, address| <u32 as Node>::new(branch, skip, address);
    let leaf = |entry| node(0, 0, entry);
    let expected = [node(2, 0, 1), node(1, 6, 5), leaf(2), leaf(3), leaf(3), leaf(0), leaf(1)];
    assert_eq!(engine.trie[..], expected);
    assert_eq!(engine.prefixes[..], [[8, NONE, 2]]);
    let entry = base::read::<u32>(&engine.base, 1);
    assert_eq!((entry.key, entry.len, entry.around, entry.code), (0x0a80_0000, 16, 0, 3));
    let answers = [0x0a03_0001, 0x8000_0001, 0x0a80_0001, 0x4000_0001, 0xc000_02ff];
    let hops = [Hop::new(1), Hop::NONE, Hop::new(2), Hop::new(3), Hop::new(4)];
    assert_eq!(answers.map(|addr| engine.lookup(addr)), hops);
    // Two nodes and the root, the base entry, the prefix entry.
    assert_eq!(engine.steps(0x0a03_0001), 5);
}

/// A node grows while half of its children have routes.
#[test]
fn fill_factor() {
    // 5 of the 8 blocks of three bits: enough for one half, not for more.
    let table: Routes<u32> = [0u32, 1, 2, 4, 6]
        .map(|block| (Prefix::new(0x0a00_0000 | block << 13, 19).unwrap(), Hop::new(block)))
        .into_iter()
        .collect();
    for (fill, branch) in [(0.5, 3), (0.7, 2), (1.0, 2)] {
        let engine = <LcTrie<u32>>::build(&table, &Config { root: 8, fill }).unwrap();
        let (_, _, children) = engine.trie[0].parts();
        assert_eq!(engine.trie[children + 10].parts().0, branch, "fill {fill}");
        assert_eq!(engine.trie[children + 10].parts().1, 8);
    }
}

/// Roots and fill factors of any kind, nodes of both widths.
#[test]
fn every_configuration() {
    fn all<A: Addr, N: Node>(routes: &Routes<A>) {
        let oracle = Oracle::new(routes);
        for (root, fill) in [(1, 0.5), (3, 0.1), (8, 1.0), (16, 0.25), (19, 0.5)] {
            let config = Config { root, fill };
            let engine = <LcTrie<A, N>>::build(routes, &config).unwrap();
            let report = check(&engine, &oracle, &mut probes::boundary(routes), 3);
            assert!(report.is_ok(), "{config:?}: {report}");
        }
    }
    all::<u32, u32>(&tables::dense(31, 500));
    all::<u32, u64>(&tables::dense(32, 500));
    all::<u128, u32>(&tables::dense(33, 500));
    all::<u128, u64>(&tables::dense(34, 500));
}

#[test]
fn limits() {
    let many: Routes<u32> =
        (0..(1u32 << 20) + 1).map(|i| (Prefix::new(i << 8, 24).unwrap(), Hop::new(0))).collect();
    let refused = <LcTrie<u32>>::build(&many, &Config::default()).err();
    let expected = BuildError::Limit {
        engine: "lc-trie",
        what: "base entries",
        limit: 1 << 20,
        needed: (1 << 20) + 1,
    };
    assert_eq!(refused, Some(expected));
    assert!(LcTrie::<u32, u64>::build(&many, &Config::default()).is_ok());
    // A root of 2^19 children, of which 2^18 - 1 have two: 1 + 2^19 + 2 (2^18 - 1) nodes.
    let table = |full: u32| -> Routes<u32> {
        (0..2 * full).map(|i| (Prefix::new(i << 12, 20).unwrap(), Hop::new(0))).collect()
    };
    let config = Config { root: 19, ..Config::default() };
    assert!(<LcTrie<u32>>::build(&table((1 << 18) - 1), &config).is_ok());
    let needed = (1 << 20) + 1;
    let refused = <LcTrie<u32>>::build(&table(1 << 18), &config).err();
    let limit = 1 << 20;
    assert_eq!(
        refused,
        Some(BuildError::Limit { engine: "lc-trie", what: "trie nodes", limit, needed })
    );
    for (root, fill) in [(0, 0.5), (25, 0.5), (16, 0.0), (16, 1.1), (16, f64::NAN)] {
        let refused = <LcTrie<u32>>::build(&Routes::default(), &Config { root, fill });
        assert!(matches!(refused, Err(BuildError::Config { engine: "lc-trie", .. })));
    }
}
