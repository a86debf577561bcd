//! Keys parted by every instruction set, against one key at a time.

use fibula_filter::{Bits, Filter, Hash, Parameters, Parting, WordKey, fmix64, hash_all};
use fibula_simd::Isa;

fn check<K: WordKey>(keys: &[K], masks: [K; 2]) {
    for (hash, rate) in Hash::ALL.into_iter().flat_map(|h| [0.01, 0.3, 0.9].map(|r| (h, r))) {
        for mask in masks {
            let mut filter = Filter::new(Parameters::for_rate(keys.len() / 3, rate), hash);
            let members: Vec<K> = keys.iter().step_by(3).map(|key| *key & mask).collect();
            filter.insert_all(&members);
            for isa in Isa::available() {
                for len in (0..=70).chain([keys.len()]) {
                    let keys = &keys[keys.len() - len..];
                    let passes = |row: &usize| filter.contains(keys[*row] & mask);
                    let (passing, failing): (Vec<_>, Vec<_>) = (0..len).partition(passes);
                    let of = |rows: &[usize]| -> Vec<(K, K)> {
                        rows.iter().map(|&row| (keys[row], K::of_low(row as u32))).collect()
                    };
                    let hashes: Vec<K> = passing
                        .iter()
                        .map(|&row| K::of_low(hash.nth(keys[row] & mask, 0)))
                        .collect();

                    let mut moving = keys.to_vec();
                    let mut rows: Vec<K> = (0..len).map(|row| K::of_low(row as u32)).collect();
                    let [mut passed, mut passed_rows, mut got] = [(); 3].map(|()| keys.to_vec());
                    let job = Parting {
                        mask,
                        keys: &mut moving,
                        rows: &mut rows,
                        passed: &mut passed,
                        passed_rows: &mut passed_rows,
                        hashes: &mut got,
                    };
                    let n = filter.bits().part(isa.level(), job);
                    let label = format!("{hash} {rate} {isa} {len}");
                    let pairs = |keys: &[K], rows: &[K], n: usize| -> Vec<(K, K)> {
                        keys[..n].iter().copied().zip(rows[..n].iter().copied()).collect()
                    };
                    assert_eq!(pairs(&passed, &passed_rows, n), of(&passing), "{label}");
                    assert_eq!(pairs(&moving, &rows, len - n), of(&failing), "{label}");
                    // A lane of 64 bits has the hash in its low half.
                    let low = |keys: &[K]| keys.iter().map(|key| key.low()).collect::<Vec<_>>();
                    assert_eq!(low(&got[..n]), low(&hashes), "{label}");

                    hash_all(hash, isa.level(), mask, &passed[..n], &mut got[..n]);
                    assert_eq!(low(&got[..n]), low(&hashes), "{label}");
                }
            }
        }
    }
}

#[test]
fn keys_part_alike_on_every_instruction_set() {
    let mut keys: Vec<u64> = (0..600).map(fmix64).collect();
    keys[..3].copy_from_slice(&[0, u64::MAX, 1 << 63]);
    check(&keys, [u64::MAX, u64::MAX << 16]);
    let narrow: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
    check(&narrow, [u32::MAX, u32::MAX << 8]);
}

#[test]
fn words_of_another_number_are_no_filter() {
    let parameters = Parameters::new(65, 1);
    assert!(Bits::new(&[0; 2], parameters, Hash::H2).is_some());
    assert!(Bits::new(&[0; 1], parameters, Hash::H2).is_none());
    assert!(Bits::new(&[0; 3], parameters, Hash::H2).is_none());
}

#[test]
#[should_panic(expected = "slices of one length")]
fn unequal_slices_are_refused() {
    let filter = Filter::new(Parameters::new(64, 1), Hash::H2);
    let [mut a, mut b, mut c, mut d] = [[0u32; 20]; 4];
    let job = Parting {
        mask: 1,
        keys: &mut a,
        rows: &mut b[..19],
        passed: &mut c,
        passed_rows: &mut d,
        hashes: &mut [0; 20],
    };
    filter.bits().part(Isa::detect().level(), job);
}
