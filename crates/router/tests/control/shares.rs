//! Weights as a short table.

use fibula_router::control::shares;
use proptest::prelude::*;

#[test]
fn small_weights_are_exact() {
    for (weights, expected) in [
        (&[1][..], &[1][..]),
        (&[7], &[1]),
        (&[1, 1], &[1, 1]),
        (&[100, 200], &[1, 2]),
        (&[3, 250], &[3, 250]),
        (&[0, 5], &[0, 1]),
        (&[], &[]),
        (&[0, 0], &[0, 0]),
        (&[1 << 31, 1 << 31], &[1, 1]),
    ] {
        assert_eq!(shares(weights), expected, "{weights:?}");
    }
}

#[test]
fn as_many_as_there_are_places_and_more() {
    assert_eq!(shares(&[1; 256]), [1; 256]);
    let more = shares(&[1; 300]);
    assert_eq!((more.iter().sum::<u32>(), more[255], more[256]), (256, 1, 0));
}

proptest! {
    #[test]
    fn shares_are_close(weights in prop::collection::vec(1u32.., 1..40)) {
        let shares = shares(&weights);
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let entries: u32 = shares.iter().sum();
        prop_assert!((1..=256).contains(&entries));
        for (&weight, &share) in weights.iter().zip(&shares) {
            let (wanted, got) = (f64::from(weight) / total as f64, f64::from(share) / f64::from(entries));
            prop_assert!((wanted - got).abs() < 1.0 / 256.0, "{wanted} is {got} of {weights:?}");
        }
    }
}
