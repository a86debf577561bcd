//! Covering, covered and exact prefixes against a plain map.

use std::collections::BTreeMap;

use crate::common::dense;
use fibula_core::{Addr, AnyPrefix, Hop, Prefix, Routes};
use fibula_fib::{Fib, FibOptions, Pod};
use fibula_testkit::{Rng, probes};

fn texts<'a>(found: impl Iterator<Item = fibula_fib::Match<'a>>) -> Vec<String> {
    found.map(|found| found.to_string()).collect()
}

/// The prefixes of the table, those around and next to them, and some far from all.
fn questions<A: Addr + Pod>(routes: &Routes<A>) -> Vec<Prefix<A>> {
    let mut rng = Rng::new(3);
    let mut questions = vec![Prefix::ALL, Prefix::host(A::MIN), Prefix::host(A::MAX)];
    for route in routes.iter() {
        let (addr, len) = (route.prefix.addr(), route.prefix.len());
        questions.push(route.prefix);
        questions.push(Prefix::masked(addr, len.saturating_sub(1)).unwrap());
        questions.push(Prefix::masked(addr, len.saturating_add(1).min(A::BITS)).unwrap());
        questions
            .push(Prefix::masked(rng.addr(), rng.below(u64::from(A::BITS) + 1) as u8).unwrap());
    }
    questions.retain(|prefix| {
        matches!(AnyPrefix::from(*prefix).unmapped(), AnyPrefix::V6(_)) == (A::BITS == 128)
    });
    questions
}

fn agrees<A: Addr + Pod>(fib: &Fib, routes: &Routes<A>) {
    let map: BTreeMap<Prefix<A>, Hop> = routes.iter().map(|r| (r.prefix, r.hop)).collect();
    let text =
        |(prefix, hop): (&Prefix<A>, &Hop)| format!("{prefix} value={}", hop.index().unwrap());
    let (mut around, mut inside, mut exact) = (0, 0, 0);
    for asked in questions(routes) {
        let any = AnyPrefix::from(asked);
        let mut expected: Vec<_> = map.iter().filter(|(p, _)| p.covers(asked)).collect();
        expected.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let expected: Vec<String> = expected.into_iter().map(text).collect();
        assert_eq!(texts(fib.covering(any).unwrap()), expected, "around {asked}");
        around += expected.len();

        let expected: Vec<String> =
            map.iter().filter(|(p, _)| asked.covers(**p)).map(text).collect();
        assert_eq!(texts(fib.covered(any).unwrap()), expected, "inside {asked}");
        inside += expected.len();

        let expected = map.get_key_value(&asked).map(text);
        assert_eq!(fib.exact(any).unwrap().map(|m| m.to_string()), expected, "{asked}");
        exact += usize::from(expected.is_some());
    }
    assert!(around > 1000 && inside > 1000 && exact >= routes.len() / 2);

    // Of an address: all that match, longest first.
    for addr in probes::boundary(routes) {
        let host = Prefix::host(addr);
        if matches!(AnyPrefix::from(host).unmapped(), AnyPrefix::V6(_)) == (A::BITS == 128) {
            let mut expected: Vec<_> = map.iter().filter(|(p, _)| p.contains(addr)).collect();
            expected.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            let expected: Vec<String> = expected.into_iter().map(text).collect();
            assert_eq!(texts(fib.covering(addr.to_ip()).unwrap()), expected, "{host}");
        }
    }
}

#[test]
fn prefixes_equal_a_plain_map() {
    for seed in 10..12 {
        let table = dense(seed);
        let fib = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
        agrees(&fib, &table.v4);
        agrees(&fib, &table.v6);
    }
}
