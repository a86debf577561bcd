//! The search against the linear scan.

use fibula_classify::{Batch, Cache, Counts, Field, Flow, MISS, Mask, Match, Parts, Searcher};
use fibula_simd::Isa;
use proptest::prelude::*;

use fibula_testkit::Rng;

use crate::sets::{answers, cache, check, megaflows, packet};

/// With and without the exact-match cache, twice: the second time it knows the packets. Then with some of the parts.
fn check_all(megaflows: &[Match], packets: &[Flow], together: usize) {
    for isa in Isa::available() {
        let cache = cache(isa, megaflows);
        for mut searcher in [Searcher::new(), Searcher::with_exact()] {
            for _ in 0..2 {
                let got = answers(&mut searcher, &cache, packets, together);
                check(megaflows, packets, &got, &format!("{isa}, {together} together"));
            }
        }
        for (filters, packing, lanes) in [
            (false, false, false),
            (false, true, false),
            (false, true, true),
            (true, false, false),
            (true, true, false),
            (true, false, true),
        ] {
            let parts = Parts { filters, packing, lanes };
            let got = answers(&mut Searcher::with_parts(parts), &cache, packets, together);
            check(megaflows, packets, &got, &format!("{isa}, {together} together, {parts:?}"));
        }
    }
}

fn packets(random: &mut Rng, n: usize) -> Vec<Flow> {
    (0..n).map(|_| packet(random)).collect()
}

#[test]
fn every_length_of_a_batch() {
    let mut random = Rng::new(1);
    let megaflows = megaflows(&mut random, 20, 20);
    let packets = packets(&mut random, 140);
    for together in 1..=70 {
        check_all(&megaflows, &packets, together);
    }
    for together in [71, 127, 128, 129, 255, 256] {
        check_all(&megaflows, &packets.repeat(4), together);
    }
    for isa in Isa::available() {
        let cache = cache(isa, &megaflows);
        for mut searcher in [Searcher::new(), Searcher::with_exact()] {
            searcher.search(&cache, &Batch::new(), &mut []);
            assert_eq!(searcher.counts(), Counts::default(), "{isa}");
        }
    }
}

#[test]
fn no_subtable_one_and_hundreds() {
    let mut random = Rng::new(2);
    for (masks, each) in [(0, 0), (1, 1), (1, 500), (2, 50), (7, 9), (8, 9), (9, 9), (300, 4)] {
        let megaflows = megaflows(&mut random, masks, each);
        let packets = packets(&mut random, 200);
        for together in [1, 7, 32, 70, 200] {
            check_all(&megaflows, &packets, together);
        }
    }
}

/// Batches long enough that the subtables are ranked anew several times; packets prefer a few megaflows.
#[test]
fn the_order_of_the_subtables_changes_no_answer() {
    let mut random = Rng::new(3);
    let megaflows = megaflows(&mut random, 30, 10);
    let packets: Vec<Flow> = (0..40)
        .flat_map(|_| {
            let favourite = packet(&mut random);
            (0..50)
                .map(|i| if i % 5 == 0 { packet(&mut random) } else { favourite })
                .collect::<Vec<_>>()
        })
        .collect();
    for isa in Isa::available() {
        let cache = cache(isa, &megaflows);
        let mut searcher = Searcher::new();
        check(&megaflows, &packets, &answers(&mut searcher, &cache, &packets, 2), isa.name());
        let first = searcher.counts();
        assert_eq!(first.packets, 2000);
        check(&megaflows, &packets, &answers(&mut searcher, &cache, &packets, 40), isa.name());
        assert_eq!(searcher.counts().hits, 2 * first.hits, "{isa}");
    }
}

/// A megaflow with the most hits comes first, whatever the order of insertion was.
#[test]
fn subtables_are_ranked_by_hits() {
    let mut flow = Flow::default();
    flow.set(Field::DstPort, 9);
    let fields = [Field::InPort, Field::SrcPort, Field::Mark, Field::DstPort];
    let mut other = Flow::default();
    fields.iter().for_each(|field| other.set(*field, 1));
    for isa in Isa::available() {
        let mut cache = Cache::with(isa, 1);
        for (number, field) in (0..).zip(fields) {
            let flow = if field == Field::DstPort { flow } else { other };
            cache.insert(Match::new(flow, Mask::exact(field)), number);
        }
        let mut searcher = Searcher::new();
        let traversed = |searcher: &mut Searcher| {
            let before = searcher.counts().subtables;
            assert_eq!(answers(searcher, &cache, &vec![flow; 640], 2), [3; 640]);
            searcher.counts().subtables - before
        };
        assert!(traversed(&mut searcher) > 640, "{isa}");
        assert_eq!(traversed(&mut searcher), 640, "{isa}");
    }
}

/// Flows whose sums are the same whatever their sources are: the destination is the key's half, negated, so
/// that the product is 0. All are in one bucket and its neighbours.
#[test]
fn colliding_hashes() {
    let mask = Mask::exact(Field::Ipv4Src) | Mask::exact(Field::Ipv4Dst);
    // The destination is found by trying: no key is known here, but that some destination has this is what a
    // half of a product means.
    let destination = destination_without_product();
    let mut all = Vec::new();
    for source in 0..400u32 {
        let mut flow = Flow::default();
        flow.set(Field::Ipv4Src, source.into());
        flow.set(Field::Ipv4Dst, destination.into());
        all.push(Match::new(flow, mask));
    }
    let packets: Vec<Flow> = (300..500u32)
        .map(|source| {
            let mut flow = Flow::default();
            flow.set(Field::Ipv4Src, source.into());
            flow.set(Field::Ipv4Dst, destination.into());
            flow
        })
        .collect();
    check_all(&all, &packets, 32);
    let mut cache = cache(Isa::detect(), &all);
    for (number, megaflow) in (0..).zip(&all) {
        assert_eq!(cache.remove(megaflow), Some(number));
        let rest = answers(&mut Searcher::new(), &cache, &packets, 32);
        let expected = (300..500).map(|n| if n <= number || n >= 400 { MISS } else { n });
        assert_eq!(rest, expected.collect::<Vec<u32>>());
    }
    assert!(cache.is_empty());
}

/// The destination that the keys of seed 7 turn into 0, as `hash::keys` makes them.
fn destination_without_product() -> u32 {
    let fmix = |mut x: u64| {
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        x ^ x >> 33
    };
    let word_of_the_addresses = 6;
    (fmix(7 ^ fmix(word_of_the_addresses + 1)) as u32).wrapping_neg()
}

#[test]
#[should_panic(expected = "room in the batch")]
fn a_full_batch_takes_no_more() {
    let mut batch = Batch::new();
    (0..=Batch::MAX).for_each(|_| batch.push(&Flow::default()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_set(seed: u64, masks in 0..40usize, each in 1..12usize, together in 1..=256usize) {
        let mut random = Rng::new(seed);
        let megaflows = megaflows(&mut random, masks, each);
        let packets = packets(&mut random, 300);
        check_all(&megaflows, &packets, together);
    }
}
