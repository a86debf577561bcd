//! Counting filters against a plain multiset.

use std::collections::BTreeMap;

use fibula_filter::{CountingFilter, Filter, Hash, Parameters};
use proptest::prelude::*;

proptest! {
    /// Few bits and many keys, so that counters fill up and positions meet.
    #[test]
    fn no_false_negative_after_any_inserts_and_removes(
        bits in 1..200u32,
        hashes in 1..6u32,
        hash in 0..Hash::ALL.len(),
        steps in prop::collection::vec((any::<bool>(), 0..40u64), 0..600),
    ) {
        let mut filter = CountingFilter::new(Parameters::new(bits, hashes), Hash::ALL[hash]);
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        for (insert, key) in steps {
            let key = key * 0x1_0000_0001;
            if insert {
                filter.insert(key);
                *model.entry(key).or_default() += 1;
            } else if let Some(count) = model.get_mut(&key).filter(|count| **count > 0) {
                prop_assert!(filter.remove(key));
                *count -= 1;
            }
            for (key, count) in &model {
                prop_assert!(*count == 0 || filter.contains(*key), "{:#x}", key);
            }
        }
        // What is in passes in batches too.
        let keys: Vec<u64> = model.iter().filter(|(_, n)| **n > 0).map(|(key, _)| *key).collect();
        let (mut out, mut payloads) = (keys.clone(), keys.clone());
        let n = filter.filter().probe(&keys, &keys, &mut out, &mut payloads);
        prop_assert_eq!(&out[..n], &keys[..]);
        prop_assert_eq!(&payloads[..n], &keys[..]);
    }

    /// As long as no counter is full, inserting and removing a key leaves the filter unchanged.
    #[test]
    fn a_filter_is_that_of_the_keys_in_it(
        stay in prop::collection::btree_set(any::<u32>(), 0..100),
        go in prop::collection::btree_set(any::<u32>(), 0..100),
    ) {
        let parameters = Parameters::for_rate(200, 0.001);
        let mut counting = CountingFilter::new(parameters, Hash::Murmur);
        let mut plain = Filter::new(parameters, Hash::Murmur);
        stay.iter().chain(&go).for_each(|key| counting.insert(*key));
        plain.insert_all(&stay.iter().copied().collect::<Vec<_>>());
        prop_assert!(go.iter().all(|key| counting.remove(*key)));
        prop_assert_eq!(counting.filter().ones(), plain.ones());
        for key in 0..1000u32 {
            prop_assert_eq!(counting.contains(key), plain.contains(key));
        }
    }
}

/// Twenty keys on one bit: the counter is full, and the bit stays when all are gone.
#[test]
fn a_full_counter_stays() {
    let mut filter = CountingFilter::new(Parameters::new(1, 1), Hash::Knuth);
    (0..20u32).for_each(|key| filter.insert(key));
    for key in 0..20u32 {
        assert!(filter.remove(key));
        assert!((0..20u32).all(|key| filter.contains(key)));
    }
    assert_eq!(filter.filter().ones(), 1);
    assert_eq!(filter.memory(), 16);
}
