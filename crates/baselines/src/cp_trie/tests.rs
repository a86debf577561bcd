use fibula_core::{Engine, Hop, Lookup, Routes};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::{Config, CpTrie};

fn routes<A: fibula_core::Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table = routes::<u32>(&[("10.0.0.0/15", 0), ("10.1.0.0/18", 1), ("10.1.64.0/24", 2)]);
    let engine = CpTrie::build(&table, &Config::default()).unwrap();
    let (children, leaves) = (&engine.tables.children, &engine.tables.leaves);
    assert_eq!(children.len(), 1024 + 4);
    assert_eq!(children[40..42], [[0b10, 0], [0, 1]]);
    assert_eq!(leaves[40..42], [[0b01, 0], [0, 1]]);
    assert_eq!(leaves[1024..], [[!0, 1], [!0, 65], [!0, 129], [!0, 193]]);
    let hop = |i| engine.tables.hops.hop(i).index();
    assert_eq!([0, 1, 64, 65, 66, 256].map(hop), [0, 1, 1, 2, 0, 0].map(Some));
    let answers = [0x0a01_4101, 0x0a01_4001, 0x0a01_0001, 0x0a00_ffff, 0x0a02_0000];
    let hops = [Some(0), Some(2), Some(1), Some(0), None];
    assert_eq!(answers.map(|addr| engine.lookup(addr).index()), hops);
    // Two words of children, one of leaves, the hop; of no route the hop is missing.
    assert_eq!([0x0a01_4101, 0x0a00_0000, 0x0b00_0000].map(|addr| engine.steps(addr)), [4, 3, 2]);
}

/// A host route needs a node at every level.
#[test]
fn last_levels() {
    let engine =
        CpTrie::<u32>::build(&routes(&[("255.255.255.255/32", 3)]), &Config::default()).unwrap();
    assert_eq!((engine.chunks(), engine.leaves()), (2, 1));
    assert_eq!(engine.lookup(u32::MAX), Hop::new(3));
    let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128";
    let table = routes::<u128>(&[(longest, 3), ("::/0", 1)]);
    let engine = CpTrie::build(&table, &Config::default()).unwrap();
    assert_eq!(engine.chunks(), 14);
    assert_eq!(engine.lookup(u128::MAX), Hop::new(3));
    assert_eq!(engine.lookup(u128::MAX - 1), Hop::new(1));
    assert_eq!(engine.steps(u128::MAX), 17);
}

/// Chunks and leaves that lie in many words.
#[test]
fn counts_across_words() {
    let table = tables::dense::<u32>(61, 3000);
    let engine = CpTrie::build(&table, &Config::default()).unwrap();
    assert!(engine.chunks() > 64 && engine.leaves() > 1000);
    let report = check(&engine, &Oracle::new(&table), &mut probes::boundary(&table), 3);
    assert!(report.is_ok(), "{report}");
}
