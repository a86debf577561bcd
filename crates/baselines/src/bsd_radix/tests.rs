use fibula_core::{Addr, Engine, Follow, Hop, Lookup, Patched, Prefix, Routes};
use fibula_testkit::{Oracle, check::check, conform, probes, tables};

use super::lookup::chain;
use super::{BsdRadix, LEAF, NONE, leaf};

fn routes<A: Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The lengths of a list, as drawn.
fn lengths<A: Addr>(engine: &BsdRadix<A>, start: u32) -> Vec<u32> {
    chain(&engine.entries, start).map(|(len, _)| len).collect()
}

/// The tree drawn in the module's page.
#[test]
fn worked_example() {
    let table = routes::<u32>(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2)]);
    let engine = BsdRadix::build(&table, &()).unwrap();
    let node = |i: usize| {
        let [bit, left, right, parent, list] = engine.nodes[i];
        (bit, left, right, parent, lengths(&engine, list))
    };
    assert_eq!(node(0), (0, 1, LEAF | 4, NONE, vec![]));
    assert_eq!(node(1), (4, LEAF, 2, 0, vec![]));
    assert_eq!(node(2), (15, LEAF | 1, 3, 1, vec![8]));
    assert_eq!(node(3), (22, LEAF | 2, LEAF | 3, 2, vec![16]));
    assert_eq!((engine.nodes(), engine.masks()), (4, 2));
    let (key, parent, list) = leaf::read::<u32>(&engine.leaves, 3);
    assert_eq!((key, parent, lengths(&engine, list)), (0x0a01_0200, 3, vec![24]));
    let answers = [0x0a01_0309, 0x0a01_02ff, 0x0a02_0000, 0x0b00_0000, 0, u32::MAX];
    let hops = [Some(1), Some(2), Some(0), None, None, None];
    assert_eq!(answers.map(|addr| engine.lookup(addr).index()), hops);
    // Four nodes, the leaf and its route; node 3 again, and its mask.
    assert_eq!(engine.steps(0x0a01_0309), 8);
}

/// Routes of one address are a chain, and those of both ends are like others.
#[test]
fn chains() {
    let table = routes::<u32>(&[
        ("0.0.0.0/0", 0),
        ("0.0.0.0/8", 1),
        ("0.0.0.0/32", 2),
        ("255.255.255.255/32", 3),
        ("255.0.0.0/8", 4),
    ]);
    let engine = BsdRadix::build(&table, &()).unwrap();
    let (_, _, list) = leaf::read::<u32>(&engine.leaves, 0);
    assert_eq!(lengths(&engine, list), [32, 8, 0]);
    assert_eq!(lengths(&engine, engine.nodes[0][4]), [0]);
    let answers = [0, 1, 0x0100_0000, 0xff00_0001, u32::MAX];
    assert_eq!(answers.map(|addr| engine.lookup(addr).index()), [2, 1, 0, 4, 3].map(Some));
}

#[test]
fn empty_table_has_both_ends() {
    let engine = BsdRadix::<u128>::build(&Routes::default(), &()).unwrap();
    assert_eq!((engine.nodes(), engine.masks()), (1, 0));
    assert_eq!(engine.lookup(u128::MAX), Hop::NONE);
    assert_eq!(engine.steps(0), 3);
}

#[test]
fn dense_tables() {
    fn all<A: Addr>(routes: &Routes<A>) {
        let engine = BsdRadix::build(routes, &()).unwrap();
        let report = check(&engine, &Oracle::new(routes), &mut probes::boundary(routes), 3);
        assert!(report.is_ok(), "{report}");
    }
    all(&tables::dense::<u32>(71, 2000));
    all(&tables::dense::<u128>(72, 2000));
}

/// The tree from the root on, with bits, keys, chains and lists: the same for the same routes, wherever they lie.
fn shape<A: Addr>(
    engine: &BsdRadix<A>,
    child: u32,
    parent: u32,
    out: &mut Vec<(u128, Vec<(u32, u32)>)>,
) {
    let listed = |start| chain(&engine.entries, start).collect::<Vec<_>>();
    if child & LEAF != 0 {
        let (key, above, list) = leaf::read::<A>(&engine.leaves, (child & !LEAF) as usize);
        assert_eq!(above, parent);
        return out.push((key.to_u128(), listed(list)));
    }
    let [bit, left, right, above, list] = engine.nodes[child as usize];
    assert_eq!(above, parent);
    out.push((bit.into(), listed(list)));
    shape(engine, left, child, out);
    shape(engine, right, child, out);
}

/// A patched tree is the one that a build makes, down to its lists, and keeps no slots that it does not need.
#[test]
fn patched_as_built() {
    fn all<A: Addr>(pool: &Routes<A>) {
        let mut rng = fibula_testkit::Rng::new(5);
        let mut engine = BsdRadix::<A>::build(&Routes::default(), &()).unwrap();
        let mut routes = Routes::default();
        for share in [0.2, 1.0, 0.5, 0.9, 0.0, 0.7] {
            let next: Routes<A> = pool.iter().filter(|_| rng.chance(share)).collect();
            let changed: Vec<Prefix<A>> =
                routes.iter().chain(next.iter()).map(|r| r.prefix).collect();
            routes = next;
            assert_eq!(engine.follow(&routes, &changed), Ok(Patched::Applied));
            let built = BsdRadix::build(&routes, &()).unwrap();
            let of = |engine| {
                let mut out = Vec::new();
                shape(engine, 0, NONE, &mut out);
                out
            };
            assert_eq!(of(&engine), of(&built));
            assert_eq!((engine.nodes(), engine.masks()), (built.nodes(), built.masks()));
            assert_eq!(engine.entries.used(), built.entries.used());
            assert_eq!(engine.leaves.used(), built.leaves.used());
        }
    }
    all(&tables::dense::<u32>(73, 1000));
    all(&tables::dense::<u128>(74, 1000));
}

#[test]
fn patches() {
    conform::patches::<u32, BsdRadix<u32>>("bsd-radix", &());
    conform::patches::<u128, BsdRadix<u128>>("bsd-radix", &());
}
