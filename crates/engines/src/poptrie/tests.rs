use fibula_core::{Addr, BuildError, Engine, Hop, Lookup, Prefix, Routes};

use super::load::check_nodes;
use super::node::{LEAF, Node, node};
use super::{Config, Poptrie};
use crate::common::{Answer, Values};

fn routes<A: Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

fn build<A: Addr>(routes: &Routes<A>, s: u32) -> Poptrie<A> {
    Poptrie::build(routes, &Config { s, ..Config::default() }).unwrap()
}

fn leaves<A: Addr>(poptrie: &Poptrie<A>) -> Vec<Option<u32>> {
    let hop = |i| match poptrie.tables.leaves.get(i, 0) {
        Answer::Hop(hop) => hop.index(),
        Answer::Block(_) => panic!("there are no blocks"),
    };
    (0..poptrie.leaves()).map(hop).collect()
}

/// The tables of the module's drawing: A to C are hops 0 to 2.
#[test]
fn worked_example() {
    let table = [("10.1.0.0/16", 0), ("10.1.64.0/18", 1), ("10.1.66.0/24", 2)];
    let poptrie = build::<u32>(&routes(&table), 16);
    let bits = |slots: &[u32]| slots.iter().fold(0u64, |bits, slot| bits | 1 << slot);
    let expected = [node(0, bits(&[0, 32, 48]), 0, 0), node(bits(&[16]), bits(&[0, 17, 32]), 0, 3)];
    assert_eq!(poptrie.tables.nodes[..], expected);
    assert_eq!(leaves(&poptrie), [1, 2, 1, 0, 1, 0].map(Some));
    assert_eq!(poptrie.tables.direct[0x0a00..=0x0a02], [LEAF, 1, LEAF]);
    assert_eq!(poptrie.lookup(0x0a01_4207), Hop::new(2));
    assert_eq!(poptrie.lookup(0x0a01_4401), Hop::new(1));
}

/// A node of the last level uses the slots whose bits below the address's end are zeros.
#[test]
fn last_levels() {
    for (s, slots) in [(16, 16u64), (18, 4)] {
        let poptrie = build::<u32>(&routes(&[("255.255.255.255/32", 3)]), s);
        let last_run = 64 - 64 / slots;
        assert_eq!(poptrie.tables.nodes[0], node(0, 1 | 1 << last_run, 0, 0), "s = {s}");
        assert_eq!(leaves(&poptrie)[..2], [None, Some(3)]);
        assert_eq!(poptrie.nodes(), 3);
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128";
        let poptrie = build::<u128>(&routes(&[(longest, 3), ("::/0", 1)]), s);
        assert_eq!(poptrie.nodes(), 19, "s = {s}");
        assert_eq!(poptrie.lookup(u128::MAX), Hop::new(3));
        assert_eq!(poptrie.lookup(u128::MAX - 1), Hop::new(1));
        assert_eq!(poptrie.lookup(0), Hop::new(1));
    }
}

/// A run of equal leaves continues after a child.
#[test]
fn children_do_not_end_a_run() {
    let poptrie = build::<u32>(&routes(&[("0.0.0.0/0", 5), ("10.1.66.0/24", 6)]), 16);
    assert_eq!(poptrie.tables.nodes[1][1].count_ones(), 1);
    assert_eq!(poptrie.leaves(), 4);
}

#[test]
fn leaves_are_as_wide_as_hops_need() {
    for (hop, narrow) in [(65_534, true), (65_535, false), ((1 << 31) - 2, false)] {
        let poptrie = build::<u32>(&routes(&[("10.1.66.0/24", hop), ("11.0.0.0/8", hop)]), 18);
        assert_eq!(matches!(poptrie.tables.leaves, Values::Narrow(_)), narrow, "{hop}");
        assert_eq!(poptrie.lookup(0x0a01_42ff), Hop::new(hop));
        assert_eq!(poptrie.lookup(0x0bff_ffff), Hop::new(hop));
    }
    let many: Routes<u32> = [(Prefix::ALL, Hop::new((1 << 31) - 1))].into_iter().collect();
    let refused = Poptrie::build(&many, &Config::default());
    assert!(matches!(refused, Err(BuildError::Limit { what: "next hops", .. })));
}

#[test]
fn s_out_of_range() {
    for s in [0, 15, 17, 20] {
        let refused = Poptrie::<u32>::build(&routes(&[]), &Config { s, ..Config::default() });
        assert!(matches!(refused, Err(BuildError::Config { engine: "poptrie", .. })));
    }
}

#[test]
fn nodes_that_lookups_could_not_trust() {
    let check =
        |nodes: &[Node]| check_nodes(nodes, 10, 3).map_err(|error| error.reason().to_owned());
    let leaf = node(0, 1, 0, 0);
    assert_eq!(check(&[leaf, node(1 << 63, 1, 0, 9)]), Ok(()));
    assert_eq!(
        check(&[leaf; 64].iter().copied().chain([node(!0, 0, 0, 0)]).collect::<Vec<_>>()),
        Ok(())
    );
    let no_leaf = Err("a slot has no leaf".to_owned());
    assert_eq!(check(&[node(0, 1, 0, 10)]), no_leaf);
    assert_eq!(check(&[node(0, !0, 0, 0)]), no_leaf);
    assert_eq!(check(&[node(0, 2, 0, 0)]), no_leaf);
    assert_eq!(check(&[leaf, node(1, 4, 0, 0)]), no_leaf);
    assert_eq!(check(&[leaf, node(1, 0, 0, 0)]), no_leaf);
    let of_many =
        |leafvec| check_nodes(&[node(0, leafvec, 0, u32::MAX as usize - 1)], usize::MAX, 3);
    assert!(of_many(1).is_ok() && of_many(3).is_err());
    let child = Err("a child does not lie before its parent".to_owned());
    assert_eq!(check(&[node(1, 2, 0, 0)]), child);
    assert_eq!(check(&[leaf, node(3, 4, 0, 0)]), child);
    assert_eq!(check(&[leaf, node(1, 2, u32::MAX as usize, 0)]), child);
    let chain: Vec<Node> = [leaf].into_iter().chain((0..3).map(|i| node(1, 2, i, 0))).collect();
    assert_eq!(check(&chain[..3]), Ok(()));
    assert_eq!(check(&chain), Err("has more levels than an address has bits".to_owned()));
}
