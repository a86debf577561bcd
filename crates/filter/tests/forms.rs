//! Every form of every filter, on every instruction set, against the scalar one.

use fibula_filter::{Filter, Form, Hash, Parameters, Plan, Prefetch, WordKey};
use fibula_simd::Isa;

/// Keys without any pattern, by SplitMix64.
fn keys(seed: u64, count: usize) -> Vec<u64> {
    (0..count as u64)
        .map(|i| fibula_filter::fmix64((seed << 40 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect()
}

fn narrow(keys: &[u64]) -> Vec<u32> {
    keys.iter().map(|key| *key as u32).collect()
}

fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for &form in Form::ALL {
        for ways in 1..=form.max_ways() {
            plans.extend(Prefetch::ALL.map(|prefetch| Plan { form, ways, prefetch }));
        }
    }
    plans
}

fn pairs<K: WordKey>(filter: &Filter, plan: Plan, keys: &[K], payloads: &[K]) -> Vec<(K, K)> {
    let (mut out, mut out_payloads) = (vec![K::default(); keys.len()], payloads.to_vec());
    let n = filter.probe_with(plan, keys, payloads, &mut out, &mut out_payloads);
    out.truncate(n);
    out.into_iter().zip(out_payloads).collect()
}

fn check<K: WordKey>(keys: &[K], numbers: &[K]) {
    let (members, others) = keys.split_at(keys.len() / 3);
    let shapes = [
        Parameters::new(1, 1),
        Parameters::new(10 * members.len() as u32 + 7, 3),
        Parameters::for_rate(members.len(), 0.01),
        Parameters::for_rate(members.len(), 0.2).power_of_two(),
    ];
    for (parameters, hash) in shapes.into_iter().flat_map(|s| Hash::ALL.map(|h| (s, h))) {
        for isa in Isa::available() {
            let mut filter = Filter::with_isa(parameters, hash, isa);
            filter.insert_all(members);
            assert!(members.iter().all(|key| filter.contains(*key)), "{filter:?}");
            // A third are members, as in no order that a lane could know.
            let mixed: Vec<K> = (0..others.len())
                .map(|i| if i % 3 == 0 { members[i / 3] } else { others[i] })
                .collect();
            for len in (0..=70).chain([127, 128, 129, 1000, 1023, 1025, mixed.len()]) {
                // From different places, so that nothing is aligned by chance.
                let start = (len * 7) % (mixed.len() - len + 1);
                let (keys, payloads) = (&mixed[start..start + len], &numbers[..len]);
                let expected: Vec<(K, K)> = keys
                    .iter()
                    .zip(payloads)
                    .filter(|(key, _)| filter.contains(**key))
                    .map(|(key, payload)| (*key, *payload))
                    .collect();
                for plan in plans() {
                    if len > 70 && len != mixed.len() && plan.ways > 2 {
                        continue;
                    }
                    let mut got = pairs(&filter, plan, keys, payloads);
                    if !matches!(plan.form, Form::Scalar | Form::Staged) {
                        got.sort_by_key(|(_, payload)| *payload);
                    }
                    assert_eq!(got, expected, "{filter:?} {plan:?} {len}");
                }
            }
        }
    }
}

#[test]
fn narrow_keys_pass_alike_in_every_form() {
    let numbers: Vec<u32> = (0..15_000).collect();
    let mut keys = narrow(&keys(1, 15_000));
    keys[..4].copy_from_slice(&[0, u32::MAX, 1, 1 << 31]);
    check(&keys, &numbers);
}

#[test]
fn wide_keys_pass_alike_in_every_form() {
    let numbers: Vec<u64> = (0..15_000).collect();
    let mut keys = keys(2, 15_000);
    keys[..4].copy_from_slice(&[0, u64::MAX, 1, 1 << 63]);
    check(&keys, &numbers);
}

/// With fixed seeds; the bounds are six standard deviations and some for what hashes lack.
#[test]
fn rates_of_false_positives_are_as_expected() {
    const MEMBERS: usize = 20_000;
    const OTHERS: usize = 200_000;
    let all = keys(4, MEMBERS + OTHERS);
    let all32 = narrow(&all);
    for hash in Hash::ALL {
        for rate in [0.3, 0.05, 0.01] {
            for parameters in [
                Parameters::for_rate(MEMBERS, rate),
                Parameters::for_rate(MEMBERS, rate).power_of_two(),
            ] {
                let expected = parameters.rate(MEMBERS);
                let spread = 6.0 * (expected / OTHERS as f64).sqrt() + 0.06 * expected;
                let mut filter = Filter::new(parameters, hash);
                filter.insert_all(&all[..MEMBERS]);
                let passed = all[MEMBERS..].iter().filter(|key| filter.contains(**key)).count();
                let got = passed as f64 / OTHERS as f64;
                assert!((got - expected).abs() < spread, "{hash} u64 {rate}: {got} {expected}");

                let mut filter = Filter::new(parameters, hash);
                filter.insert_all(&all32[..MEMBERS]);
                let passed = all32[MEMBERS..].iter().filter(|key| filter.contains(**key)).count();
                let got = passed as f64 / OTHERS as f64;
                assert!((got - expected).abs() < spread, "{hash} u32 {rate}: {got} {expected}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "room for every key")]
fn short_outputs_are_refused() {
    let filter = Filter::new(Parameters::new(64, 1), Hash::Murmur);
    filter.probe(&[1u32; 20], &[1; 20], &mut [0; 19], &mut [0; 20]);
}
