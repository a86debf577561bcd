//! Keys of several words: every width, hash function, form and instruction set against one key at a time.

use fibula_filter::{
    BlockedFilter, Columns, Filter, Form, Hash, Key, Parameters, Plan, Prefetch, Word, fmix64,
};
use fibula_simd::Isa;

/// Columns without any pattern, or with few bits that differ.
fn columns<T: Word, const W: usize>(keys: usize, few: bool) -> [Vec<T>; W] {
    std::array::from_fn(|w| {
        let word = |i: usize| fmix64((i + (w << 32)) as u64);
        let few_bits = |i: usize| (i >> (w % 12) & 3) as u64;
        (0..keys).map(|i| T::of_u64(if few { few_bits(i) } else { word(i) })).collect()
    })
}

fn masks<T: Word, const W: usize>() -> [[T; W]; 2] {
    let some = std::array::from_fn(|w| T::of_u64(u64::MAX << (5 * w % 32)));
    [[T::of_u64(u64::MAX); W], some]
}

fn check<T: Word, const W: usize>()
where
    [T; W]: Key,
{
    let all = [columns::<T, W>(1200, false), columns::<T, W>(1200, true)];
    for (columns, mask) in all.iter().flat_map(|c| masks::<T, W>().map(|mask| (c, mask))) {
        let columns = columns.each_ref().map(|column| &column[..]);
        let keys = Columns::new(columns, mask);
        for hash in Hash::ALL {
            let digest = |i| {
                let [first, second] = [0, 1].map(|index| hash.nth(keys.key(i), index));
                (first, second.wrapping_sub(first))
            };
            for isa in Isa::available() {
                for len in (0..20).chain([1200]) {
                    let part = Columns::new(columns.map(|c| &c[1200 - len..]), mask);
                    let mut digests = vec![7; len];
                    part.digests(hash, isa.level(), &mut digests);
                    for (i, got) in digests.iter().enumerate() {
                        let got = ((got >> 32) as u32, *got as u32 | 1);
                        assert_eq!(got, digest(1200 - len + i), "{hash} {isa} {len} {i}");
                    }
                }
                probes(keys, hash, isa);
            }
        }
    }
}

/// Plain and blocked filters let the same rows pass as they do one by one, among them every member.
fn probes<T: Word, const W: usize>(keys: Columns<'_, T, W>, hash: Hash, isa: Isa)
where
    [T; W]: Key,
{
    let members: Vec<[T; W]> = (0..keys.len()).step_by(3).map(|row| keys.key(row)).collect();
    let mut filter = Filter::with_isa(Parameters::for_rate(members.len(), 0.05), hash, isa);
    let mut blocked = BlockedFilter::with_isa(20, hash, isa);
    filter.insert_all(&members);
    blocked.insert_all(&members);
    let rows: Vec<u64> = (0..keys.len() as u64).map(|i| i << 33 | 5).collect();
    let mut digests = vec![0; keys.len()];
    keys.digests(hash, isa.level(), &mut digests);
    let passing = |passes: &dyn Fn([T; W]) -> bool| -> Vec<(u64, u64)> {
        let all = (0..keys.len()).filter(|i| passes(keys.key(*i)));
        all.map(|i| (digests[i], rows[i])).collect()
    };
    let got = |probe: &dyn Fn(&mut [u64], &mut [u64]) -> usize| -> Vec<(u64, u64)> {
        let (mut out, mut out_rows) = (digests.clone(), rows.clone());
        let n = probe(&mut out, &mut out_rows);
        out.into_iter().zip(out_rows).take(n).collect()
    };
    let expected = passing(&|key| filter.contains(key));
    assert!((0..keys.len()).step_by(3).all(|i| expected.contains(&(digests[i], rows[i]))));
    for &form in Form::ALL {
        for (ways, prefetch) in [(1, Prefetch::Off), (form.max_ways(), Prefetch::L2)] {
            let plan = Plan { form, ways, prefetch };
            let mut got =
                got(&|out, out_rows| filter.probe_columns_with(plan, keys, &rows, out, out_rows));
            got.sort_by_key(|(_, row)| *row);
            assert_eq!(got, expected, "{filter:?} {plan:?}");
        }
    }
    assert_eq!(got(&|out, rows_out| filter.probe_columns(keys, &rows, out, rows_out)), expected);
    let expected = passing(&|key| blocked.contains(key));
    assert!(expected.len() >= members.len());
    let got = got(&|out, out_rows| blocked.probe_columns(keys, &rows, out, out_rows));
    assert_eq!(got, expected, "{blocked:?}");
}

macro_rules! widths {
    ($($name:ident $t:ty: $($w:literal)*;)*) => { $(
        #[test]
        fn $name() {
            $( check::<$t, $w>(); )*
        }
    )* };
}

widths! {
    keys_in_words_of_32 u32: 1 2 3 4 7 16;
    keys_in_words_of_64 u64: 1 2 3 8;
}

// Each width is kernels of its own, for which the compiler takes longer than for all other tests of the crate.
#[cfg(feature = "every-width")]
widths! {
    other_keys_of_up_to_256_bits_in_words_of_32 u32: 5 6 8;
    other_keys_of_up_to_512_bits_in_words_of_32 u32: 9 10 11 12 13 14 15;
    other_keys_of_up_to_512_bits_in_words_of_64 u64: 4 5 6 7;
}

/// Of the same bytes, least significant first.
#[test]
fn words_of_either_width_are_one_key() {
    for hash in Hash::ALL {
        for i in 0..100u64 {
            let long: [u64; 3] = std::array::from_fn(|w| fmix64(i + ((w as u64) << 40)));
            let short: [u32; 6] = std::array::from_fn(|w| (long[w / 2] >> (w % 2 * 32)) as u32);
            for index in 0..4 {
                assert_eq!(hash.nth(long, index), hash.nth(short, index), "{hash}");
            }
        }
    }
}

/// Headers of flows that differ in few bits. With fixed seeds; the bounds are six standard deviations and
/// some for what hashes lack. Knuth's keeps its promise for irregular keys alone.
#[test]
fn rates_of_false_positives_are_as_expected() {
    const MEMBERS: u32 = 20_000;
    const OTHERS: u32 = 200_000;
    let header = |i: u32| [0x0a00_0000 | i >> 8, 0xc0a8_0001, 0x0050_c000 | (i & 0xff), 6, 0];
    let irregular = |i: u32| {
        let word = fmix64(i.into());
        [word as u32, (word >> 32) as u32, 1, 2, 3]
    };
    for hash in Hash::ALL {
        let key = |i| if hash == Hash::Knuth { irregular(i) } else { header(i) };
        for rate in [0.3, 0.05, 0.01, 0.001] {
            let mut filter = Filter::new(Parameters::for_rate(MEMBERS as usize, rate), hash);
            (0..MEMBERS).for_each(|i| filter.insert(key(i)));
            let others = MEMBERS..MEMBERS + OTHERS;
            let got = others.filter(|i| filter.contains(key(*i))).count() as f64;
            let expected = f64::from(OTHERS) * filter.parameters().rate(MEMBERS as usize);
            assert!(
                (got - expected).abs() < 6.0 * expected.sqrt() + 0.06 * expected,
                "{hash} {rate}: {got} of {OTHERS}, {expected} expected"
            );
        }
    }
}

#[test]
#[should_panic(expected = "columns of one length")]
fn unequal_columns_are_refused() {
    Columns::new([&[1u32, 2][..], &[1]], [1; 2]);
}

#[test]
#[should_panic(expected = "a row for each key")]
fn missing_rows_are_refused() {
    let filter = Filter::new(Parameters::new(64, 1), Hash::Murmur);
    filter.probe_columns(Columns::new([&[1u32; 3]], [1]), &[1; 2], &mut [0; 3], &mut [0; 3]);
}

#[test]
#[should_panic(expected = "room for every key")]
fn short_outputs_are_refused() {
    let filter = Filter::new(Parameters::new(64, 1), Hash::Murmur);
    filter.probe_columns(Columns::new([&[1u32; 3]], [1]), &[1; 3], &mut [0; 2], &mut [0; 3]);
}
