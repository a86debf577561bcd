use fibula_core::{BuildError, Engine, Hop, Lookup, Routes};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::{Config, TreeBitmap};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

fn example() -> Routes<u32> {
    routes(&[("10.0.0.0/8", 0), ("10.64.0.0/10", 1), ("10.66.0.0/15", 2), ("10.66.66.0/24", 3)])
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let engine = TreeBitmap::build(&example(), &Config::default()).unwrap();
    let none = u32::MAX;
    assert_eq!(engine.tables.root[9..=11], [[none, 0], [0, 1], [none, 0]]);
    let node = |places: &[u32]| places.iter().fold(0u32, |bits, place| bits | 1 << place);
    let expected = [
        [node(&[5, 20]), 1, 0],
        [node(&[9, 18]), 2, 1],
        [node(&[20]), 3, 2],
        [node(&[0, 18]), 4, 2],
    ];
    assert_eq!(engine.tables.nodes[..], *expected.as_flattened());
    assert_eq!(engine.results(), 3);
    let answers = [0x0a42_4207, 0x0a42_4307, 0x0a41_0000, 0x0a00_0000, 0x0b00_0000];
    let hops = [Hop::new(3), Hop::new(2), Hop::new(1), Hop::new(0), Hop::NONE];
    assert_eq!(answers.map(|addr| engine.lookup(addr)), hops);
    // The array, four nodes, the result.
    assert_eq!(engine.steps(0x0a42_4207), 6);
    assert_eq!(engine.steps(0x0b00_0000), 1);
}

/// The same, split: two inner nodes where the last one has no match.
#[test]
fn split_reads_inner_nodes_last() {
    let config = Config { split: true, ..Config::default() };
    let engine = TreeBitmap::build(&example(), &config).unwrap();
    assert_eq!(engine.nodes(), 4);
    // Node 2 has no route of its own, so no inner node.
    assert_eq!(engine.tables.inner.len(), 3 * 2);
    assert_eq!(engine.lookup(0x0a42_4307), Hop::new(2));
    // The array, four nodes, the inner nodes of the last and of node 1, the result.
    assert_eq!(engine.steps(0x0a42_4307), 8);
    // The inner node of the last is enough.
    assert_eq!(engine.steps(0x0a42_4207), 7);
}

/// Every layout, with arrays from none to the largest.
#[test]
fn every_configuration() {
    fn all<A: fibula_core::Addr>(routes: &Routes<A>) {
        let oracle = Oracle::new(routes);
        for (root, stride) in [(0, 4), (1, 5), (0, 6), (7, 6), (13, 4), (16, 5), (20, 6)] {
            for split in [false, true] {
                let config = Config { root, stride, split, ..Config::default() };
                let engine = TreeBitmap::build(routes, &config).unwrap();
                let report = check(&engine, &oracle, &mut probes::boundary(routes), 3);
                assert!(report.is_ok(), "{config:?}: {report}");
            }
        }
    }
    all(&tables::dense::<u32>(21, 400));
    all(&tables::dense::<u128>(22, 400));
}

#[test]
fn parameters_out_of_range() {
    for (root, stride) in [(21, 4), (8, 3), (8, 7)] {
        let config = Config { root, stride, ..Config::default() };
        let refused = TreeBitmap::<u32>::build(&example(), &config);
        assert!(matches!(refused, Err(BuildError::Config { engine: "tree-bitmap", .. })));
    }
}
