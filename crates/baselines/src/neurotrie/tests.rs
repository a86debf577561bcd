use std::collections::HashMap;

use fibula_core::{Addr, Engine, Hop, Lookup, Range, Routes};
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::strides::{best, levels, step};
use super::{Config, Neurotrie, Record, node_parts, records_of};

fn routes<A: Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

fn build<A: Addr>(routes: &Routes<A>, budget: f64) -> Neurotrie<A> {
    Neurotrie::build(routes, &Config { budget, ..Config::default() }).unwrap()
}

fn bytes<A: Addr>(engine: &Neurotrie<A>) -> usize {
    4 * engine.tables.nodes.len() + size_of::<Record>() * engine.tables.records.len()
}

/// Without a budget the trie is as flat as strides allow; with none it is the smallest.
#[test]
fn budgets() {
    let spec = FibSpec { year: 2024, prefixes: 3000, seed: 3, hops: HopModel::Near(30) };
    let table = spec.generate::<u128>();
    let (flat, middle, small) = (build(&table, 1e9), build(&table, 60.0), build(&table, 0.0));
    assert!(bytes(&middle) as f64 <= 60.0 * table.len() as f64, "{}", bytes(&middle));
    assert!(bytes(&small) < bytes(&middle) && bytes(&middle) < bytes(&flat));
    let keys: Vec<u128> = probes::boundary(&table).collect();
    let steps = |engine: &Neurotrie<u128>| -> u32 { keys.iter().map(|&a| engine.steps(a)).sum() };
    assert!(steps(&flat) < steps(&middle) && steps(&middle) < steps(&small));
    for engine in [flat, middle, small] {
        let report = check(&engine, &Oracle::new(&table), &mut keys.iter().copied(), 3);
        assert!(report.is_ok(), "{report}");
    }
}

/// The least cost of a block, by trying all strides everywhere.
fn tried<A: Addr>(
    ranges: &[Range<A>],
    block: (A, u32),
    lambda: f64,
    known: &mut HashMap<(A, u32), f64>,
) -> f64 {
    if let Some(cost) = known.get(&block) {
        return *cost;
    }
    let (first, len) = block;
    let last = first.or(A::netmask(len as u8).not());
    let changes = ranges.iter().filter(|r| r.last >= first && r.last < last).count();
    if changes == 0 {
        return 0.0;
    }
    // As the program counts: up to the first change in the next block that has one.
    let next = ranges.iter().position(|r| r.last >= first && r.last < last).unwrap();
    let behind = ranges.iter().enumerate().skip(next).find(|(_, r)| {
        let block = r.last.and(A::netmask(len as u8));
        block > first && r.last != block.or(A::netmask(len as u8).not())
    });
    let steps = (behind.map_or(ranges.len(), |(i, _)| i) - next) as f64;
    let strides = (1..=16 / step::<A>()).map(|s| s * step::<A>());
    let mut cost = |stride: u32| {
        let bytes = (4 + 24 * records_of(stride)) as f64;
        let mut cost = steps + lambda * bytes;
        let mut at = Some(first);
        while let Some(first) = at.filter(|at| *at <= last) {
            cost += tried(ranges, (first, len + stride), lambda, known);
            at = first.or(A::netmask((len + stride) as u8).not()).successor();
        }
        cost
    };
    let strides = strides.filter(|s| len + s <= A::BITS.into());
    let least = strides.map(&mut cost).fold(f64::INFINITY, f64::min);
    known.insert(block, least);
    least
}

/// The program's strides have the cost of the best of all strides.
#[test]
fn strides_are_the_best() {
    let table = routes::<u32>(&[
        ("10.0.0.0/8", 0),
        ("10.1.0.0/16", 1),
        ("10.1.128.0/18", 2),
        ("10.77.0.0/16", 3),
        ("192.168.0.0/20", 4),
        ("192.168.4.0/22", 5),
    ]);
    let ranges: Vec<_> = table.ranges().collect();
    let levels = levels(&ranges);
    for lambda in [0.0001, 0.01, 0.05, 1.0] {
        let (strides, bytes) = best(&levels, 2, ranges.len(), lambda);
        // The cost of the chosen trie, walked from the root.
        let mut cost = lambda * bytes;
        let mut open = vec![(0usize, 0usize)];
        while let Some((level, block)) = open.pop() {
            let end = levels[level].get(block + 1).map_or(ranges.len() as u32, |next| *next);
            let first = levels[level][block];
            cost += f64::from(end - first);
            let below = level + usize::from(strides[level][block]);
            for (i, &start) in levels.get(below).into_iter().flatten().enumerate() {
                if (first..end).contains(&start) {
                    open.push((below, i));
                }
            }
        }
        let least = tried(&ranges, (0u32, 0), lambda, &mut HashMap::new());
        assert!((cost - least).abs() < 1e-9 * least, "λ {lambda}: {cost}, tried {least}");
    }
}

/// The example of the module's page: runs of leaves, children by counting.
#[test]
fn worked_example() {
    let table = routes::<u32>(&[("10.0.0.0/8", 0), ("10.1.2.0/24", 1)]);
    for budget in [0.0, 20.0, 1e6] {
        let engine = build(&table, budget);
        let answers = [0x0a01_0209, 0x0a01_0309, 0x0a01_01ff, 0x0b00_0000, 0];
        let hops = [Some(1), Some(0), Some(0), None, None];
        assert_eq!(answers.map(|addr| engine.lookup(addr).index()), hops, "{budget}");
    }
    // Two nodes, a word and a record each, and the leaf.
    let flat = build(&table, 1e6);
    assert_eq!(flat.tables.nodes.len(), 2);
    assert_eq!((flat.steps(0x0a01_0209), flat.steps(0)), (5, 3));
    assert_eq!([0, 1].map(|node| node_parts(flat.tables.nodes[node])), [(0, 8), (4, 16)]);
    assert_eq!(flat.tables.records[0][..2], [1 << 10, 1]);
    assert_eq!(flat.tables.records[8][..2], [0, 0b1101]);
}

#[test]
fn edges() {
    fn all<A: Addr>(list: Vec<Routes<A>>) {
        for table in list {
            for budget in [0.0, 30.0, 1e9] {
                let engine = build(&table, budget);
                let mut keys = probes::boundary(&table);
                let report = check(&engine, &Oracle::new(&table), &mut keys, 3);
                assert!(report.is_ok(), "{budget}: {report}");
            }
        }
    }
    all::<u32>(vec![Routes::default(), tables::dense(81, 5), tables::dense(82, 900)]);
    all::<u128>(vec![Routes::default(), tables::dense(83, 5), tables::dense(84, 900)]);
}
