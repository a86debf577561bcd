//! Megaflows that come and go.

use std::collections::BTreeMap;

use fibula_classify::{Cache, Field, Flow, MISS, Mask, Match, Searcher};

use fibula_simd::Isa;
use fibula_testkit::Rng;

use crate::sets::{answers, megaflows, packet};

/// A map beside the cache, which does the same; one searcher for all of it.
#[test]
fn insertions_and_removals() {
    for isa in Isa::available() {
        let mut random = Rng::new(5);
        let all = megaflows(&mut random, 12, 60);
        let packets: Vec<Flow> = (0..64).map(|_| packet(&mut random)).collect();
        let mut cache = Cache::with(isa, 1);
        let mut map: BTreeMap<Match, u32> = BTreeMap::new();
        let mut searchers = [Searcher::new(), Searcher::with_exact()];
        for step in 0..2000u32 {
            let megaflow = random.choose(&all).unwrap();
            // Times when the cache fills, and times when it empties.
            if random.below(8) < if step / 400 % 2 == 0 { 6 } else { 2 } {
                assert_eq!(cache.insert(megaflow, step), map.insert(megaflow, step));
            } else {
                assert_eq!(cache.remove(&megaflow), map.remove(&megaflow));
            }
            assert_eq!(
                (cache.len(), cache.get(&megaflow)),
                (map.len(), map.get(&megaflow).copied())
            );
            if step % 10 > 0 {
                continue;
            }
            for searcher in &mut searchers {
                let got = answers(searcher, &cache, &packets, 64);
                for (packet, answer) in packets.iter().zip(got) {
                    let right = |(megaflow, number): (&Match, &u32)| {
                        megaflow.matches(packet) && (*number == answer)
                    };
                    let is_right = match answer {
                        MISS => !map.keys().any(|megaflow| megaflow.matches(packet)),
                        _ => map.iter().any(right),
                    };
                    assert!(is_right, "{isa} step {step}: {answer} for {packet:?}");
                }
            }
        }
        let mut listed: Vec<(Match, u32)> = cache.iter().collect();
        listed.sort_unstable();
        assert_eq!(listed, map.into_iter().collect::<Vec<_>>());
        cache.clear();
        assert_eq!((cache.len(), cache.subtables()), (0, 0));
        assert_eq!(answers(&mut searchers[0], &cache, &packets, 9), [MISS; 64]);
    }
}

/// A megaflow that gets another number: no searcher answers with the old one.
#[test]
fn another_number() {
    let mut flow = Flow::default();
    flow.set(Field::SrcPort, 5);
    let megaflow = Match::new(flow, Mask::exact(Field::SrcPort));
    for isa in Isa::available() {
        let mut cache = Cache::with(isa, 1);
        let mut searcher = Searcher::with_exact();
        for number in [1, 1, 2, 3] {
            cache.insert(megaflow, number);
            assert_eq!(answers(&mut searcher, &cache, &[flow, flow], 2), [number; 2], "{isa}");
            assert_eq!(answers(&mut searcher, &cache, &[flow, flow], 2), [number; 2], "{isa}");
        }
        assert!(searcher.counts().exact_hits >= 8, "{isa}: {:?}", searcher.counts());
        // A searcher that goes from one cache to the other, and back.
        let mut other = Cache::with(isa, 1);
        assert_eq!(answers(&mut searcher, &other, &[flow], 1), [MISS]);
        other.insert(megaflow, 9);
        assert_eq!(answers(&mut searcher, &other, &[flow], 1), [9]);
        assert_eq!(answers(&mut searcher, &cache, &[flow], 1), [3]);
    }
}

#[test]
#[should_panic(expected = "without a megaflow")]
fn a_miss_is_no_number() {
    Cache::new().insert(Match::default(), MISS);
}
