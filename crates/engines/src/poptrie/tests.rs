use fibula_core::{Addr, BuildError, Engine, Follow, Hop, Lookup, Patched, Prefix, Routes};
use fibula_testkit::{conform, tables};

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
    // The last one is the root.
    let check = |nodes: &[Node]| {
        let free = check_nodes([nodes.len() as u32 - 1].into_iter(), nodes, 10, 3);
        free.map(|free| free.map(|free| free.places())).map_err(|error| error.reason().to_owned())
    };
    let leaf = |place| node(0, 1, 0, place);
    assert_eq!(check(&[leaf(0), node(1 << 63, 1, 0, 9)]), Ok([0, 8]));
    // Parents may lie before their children.
    assert_eq!(
        check(&[node(1, 2, 3, 1), leaf(5), node(1, 2, 0, 2), leaf(7)][..3]).unwrap_err(),
        "a child is not there"
    );
    assert_eq!(check(&[node(1, 2, 1, 1), leaf(5), leaf(7), node(1, 2, 0, 2)]), Ok([1, 7]));
    let full = |leaves| {
        [node(0, 1, 0, 0); 64].into_iter().chain([node(!0, leaves, 0, 1)]).collect::<Vec<_>>()
    };
    assert_eq!(check(&full(0)), Err("a leaf has two nodes".to_owned()));
    let no_leaf = Err("a slot has no leaf".to_owned());
    assert_eq!(check(&[leaf(10)]), no_leaf);
    assert_eq!(check(&[node(0, !0, 0, 0)]), no_leaf);
    assert_eq!(check(&[node(0, 2, 0, 0)]), no_leaf);
    assert_eq!(check(&[leaf(0), node(1, 4, 0, 0)]), no_leaf);
    assert_eq!(check(&[leaf(0), node(1, 0, 0, 0)]), no_leaf);
    let child = Err("a child is not there".to_owned());
    assert_eq!(check(&[node(1, 2, 1, 0)]), child);
    assert_eq!(check(&[leaf(0), node(3, 4, 1, 0)]), child);
    assert_eq!(check(&[leaf(0), node(1, 2, u32::MAX as usize, 0)]), child);
    assert_eq!(check(&[leaf(0), node(7, 8, 0, 3)]), child);
    assert_eq!(check(&[leaf(0), node(3, 4, 0, 3)]), Err("a node has two parents".to_owned()));
    let twice = check_nodes([0, 0].into_iter(), &[leaf(0)], 10, 3);
    assert_eq!(twice.err().unwrap().reason(), "a node has two parents");
    let chain: Vec<Node> =
        [leaf(0)].into_iter().chain((0..3).map(|i| node(1, 2, i, i + 1))).collect();
    assert_eq!(check(&chain[..3]), Ok([0, 7]));
    assert_eq!(check(&chain), Err("has more levels than an address has bits".to_owned()));
}

#[test]
fn patches() {
    for s in [16, 18] {
        let config = Config { s, ..Config::default() };
        conform::patches::<u32, Poptrie<u32>>(&format!("s = {s}"), &config);
        conform::patches::<u128, Poptrie<u128>>(&format!("s = {s}"), &config);
    }
}

/// The reachable parts, wherever they lie: nodes with their vectors and leaves.
fn shape<A: Addr>(poptrie: &Poptrie<A>) -> Vec<(u64, u64, Vec<u32>)> {
    fn below(tables: &super::Tables, number: usize, out: &mut Vec<(u64, u64, Vec<u32>)>) {
        let [vector, leafvec, bases] = tables.nodes[number];
        let base0 = bases as u32 as usize;
        let leaves = base0..base0 + leafvec.count_ones() as usize;
        out.push((vector, leafvec, leaves.map(|leaf| tables.leaves.code(leaf)).collect()));
        let base1 = (bases >> 32) as usize;
        (0..vector.count_ones() as usize).for_each(|child| below(tables, base1 + child, out));
    }
    let mut out = Vec::new();
    for &entry in poptrie.tables.direct.iter() {
        match entry & LEAF {
            0 => below(&poptrie.tables, entry as usize, &mut out),
            _ => out.push((0, 0, vec![entry & !LEAF])),
        }
    }
    out
}

/// A patched trie is the one that a build makes but for the places, and nothing is lost of the arrays.
#[test]
fn patched_as_built() {
    fn all<A: Addr>(pool: &Routes<A>) {
        let mut rng = fibula_testkit::Rng::new(8);
        let mut poptrie = build::<A>(&Routes::default(), 18);
        let mut routes = Routes::default();
        for share in [0.1, 1.0, 0.5, 0.9, 0.0, 0.7, 0.69] {
            let next: Routes<A> = pool.iter().filter(|_| rng.chance(share)).collect();
            let changed: Vec<Prefix<A>> =
                routes.iter().chain(next.iter()).map(|r| r.prefix).collect();
            routes = next;
            assert_eq!(poptrie.follow(&routes, &changed), Ok(Patched::Applied));
            let built = build(&routes, 18);
            assert!(shape(&poptrie) == shape(&built), "{share}");
            assert_eq!((poptrie.nodes(), poptrie.leaves()), (built.nodes(), built.leaves()));
        }
    }
    all(&tables::dense::<u32>(75, 1500));
    all(&tables::dense::<u128>(76, 1500));
}

/// Hops that the leaves have no room for are left to a build.
#[test]
fn more_hops_than_leaves_hold() {
    let prefix: Prefix<u32> = "10.1.66.0/24".parse().unwrap();
    for (hop, patched) in [(65_534, Patched::Applied), (65_535, Patched::Rebuild)] {
        let mut poptrie = build::<u32>(&routes(&[("10.1.66.0/24", 1)]), 18);
        let next = routes(&[("10.1.66.0/24", hop)]);
        assert_eq!(poptrie.follow(&next, &[prefix]), Ok(patched));
        if patched == Patched::Applied {
            assert_eq!(poptrie.lookup(0x0a01_42ff), Hop::new(hop));
        }
    }
}
