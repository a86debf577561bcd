//! Blocked filters: every instruction set against the scalar form, and their rates.

use fibula_filter::{BlockedFilter, Hash, WordKey, fmix64};
use fibula_simd::Isa;

fn check<K: WordKey>(keys: &[K], numbers: &[K]) {
    let (members, others) = keys.split_at(keys.len() / 3);
    for (blocks, hash) in [1, 2, 63, 100].into_iter().flat_map(|b| Hash::ALL.map(|h| (b, h))) {
        for isa in Isa::available() {
            let mut filter = BlockedFilter::with_isa(blocks, hash, isa);
            filter.insert_all(members);
            assert!(members.iter().all(|key| filter.contains(*key)), "{filter:?}");
            for len in (0..=140).chain([others.len()]) {
                let start = (len * 7) % (others.len() - len + 1);
                let keys: Vec<K> = (start..start + len)
                    .map(|i| if i % 3 == 0 { members[i / 3] } else { others[i] })
                    .collect();
                let expected: Vec<(K, K)> = (0..len)
                    .filter(|i| filter.contains(keys[*i]))
                    .map(|i| (keys[i], numbers[i]))
                    .collect();
                for prefetch in [false, true] {
                    let (mut out, mut payloads) = (keys.clone(), keys.clone());
                    let numbers = &numbers[..len];
                    let n = filter.probe_with(prefetch, &keys, numbers, &mut out, &mut payloads);
                    let got: Vec<(K, K)> =
                        out[..n].iter().copied().zip(payloads[..n].iter().copied()).collect();
                    assert_eq!(got, expected, "{filter:?} {prefetch} {len}");
                }
            }
        }
    }
}

#[test]
fn keys_pass_alike_on_every_instruction_set() {
    let mut keys: Vec<u64> = (0..1500).map(fmix64).collect();
    keys[..3].copy_from_slice(&[0, u64::MAX, 1 << 63]);
    check(&keys, &(0..1500).collect::<Vec<u64>>());
    let narrow: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
    check(&narrow, &(0..1500).collect::<Vec<u32>>());
}

/// With fixed seeds; the bounds are six standard deviations and some for what hashes lack.
#[test]
fn rates_of_false_positives_are_as_expected() {
    const MEMBERS: u64 = 50_000;
    const OTHERS: u64 = 200_000;
    let members: Vec<u64> = (0..MEMBERS).map(|i| fmix64(i + 1)).collect();
    for hash in Hash::ALL {
        for rate in [0.2, 0.02, 0.005] {
            let mut filter = BlockedFilter::for_rate(members.len(), rate, hash);
            let expected = BlockedFilter::expected_rate(members.len(), filter.memory() / 32);
            assert!(expected <= rate && expected > rate * 0.99);
            let spread = 6.0 * (expected / OTHERS as f64).sqrt() + 0.08 * expected;
            filter.insert_all(&members);
            let others = (0..OTHERS).map(|i| fmix64(i + 1 + MEMBERS));
            let got = others.clone().filter(|key| filter.contains(*key)).count() as f64;
            let got = got / OTHERS as f64;
            assert!((got - expected).abs() < spread, "{hash} u64: {got} {expected}");

            let mut filter = BlockedFilter::for_rate(members.len(), rate, hash);
            filter.insert_all(&members.iter().map(|key| *key as u32).collect::<Vec<_>>());
            let got = others.filter(|key| filter.contains(*key as u32)).count() as f64;
            let got = got / OTHERS as f64;
            assert!((got - expected).abs() < spread, "{hash} u32: {got} {expected}");
        }
    }
}

#[test]
fn sizes_go_to_both_ends() {
    assert_eq!(BlockedFilter::for_rate(0, 0.01, Hash::Murmur).memory(), 32);
    assert_eq!(BlockedFilter::for_rate(10, 0.999_999, Hash::Murmur).memory(), 32);
    assert!(BlockedFilter::expected_rate(1_000_000, 1) > 0.999);
    let bits = BlockedFilter::for_rate(100_000, 0.01, Hash::Murmur).memory() as f64 * 8.0 / 1e5;
    assert!((10.0..11.0).contains(&bits), "{bits} bits a key");
}

#[test]
#[should_panic(expected = "a payload for each key")]
fn missing_payloads_are_refused() {
    BlockedFilter::new(1, Hash::H2).probe(&[1u32; 20], &[1; 19], &mut [0; 20], &mut [0; 20]);
}
