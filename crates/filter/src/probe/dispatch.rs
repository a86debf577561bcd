//! From a plan to the loop that was compiled for it.

use fibula_simd::{Isa, Level};

use super::lanes::{Crc32c, Double, Family, H2Hash, Knuth, Murmur, MurmurSeeded};
use super::part::{self, Parting};
use super::refill::refill;
use super::staged::staged;
use super::{Bits, Form, Job, Plan};
use crate::{Hash, Key};

/// The same call for the [`Family`] of the hash.
macro_rules! of_family {
    ($hash:expr, $function:ident($($argument:expr),*), $key:ty) => {
        match $hash {
            Hash::MurmurSeeded => $function::<$key, MurmurSeeded>($($argument),*),
            Hash::Murmur => $function::<$key, Double<Murmur>>($($argument),*),
            Hash::Knuth => $function::<$key, Double<Knuth>>($($argument),*),
            Hash::H2 => $function::<$key, Double<H2Hash>>($($argument),*),
            Hash::Crc32c => $function::<$key, Double<Crc32c>>($($argument),*),
        }
    };
}

/// Runs the plan, unless it is the scalar one or the instructions are not there.
pub fn run<K: Key>(job: &mut Job<'_, K>, plan: Plan, level: Level) -> Option<usize> {
    // Where the wanted form is not to be had, the baseline may be.
    let form = match plan.form {
        Form::Refill if !Form::Refill.runs_on(level.isa()) => Form::Permute,
        form => form,
    };
    if form == Form::Scalar || !form.runs_on(level.isa()) {
        return None;
    }
    let plan = Plan { form, ..plan };
    Some(of_family!(job.bits.hash, by_form(job, plan, level), K))
}

/// The plan is none for a scalar loop, and the level has its form.
fn by_form<K: Key, F: Family>(job: &mut Job<'_, K>, plan: Plan, level: Level) -> usize {
    let wide = level.isa() == Isa::Avx512;
    // SAFETY of every block in here: a level is made only where the machine has its instructions;
    // `Refill` comes here with AVX-512 alone, the others with AVX2 at least.
    match (plan.form, plan.prefetch) {
        // SAFETY: as said above.
        (Form::Staged, false) if wide => unsafe { staged512::<K, F, false>(job) },
        // SAFETY: as said above.
        (Form::Staged, true) if wide => unsafe { staged512::<K, F, true>(job) },
        // SAFETY: as said above.
        (Form::Staged, false) => unsafe { staged256::<K, F, false>(job) },
        // SAFETY: as said above.
        (Form::Staged, true) => unsafe { staged256::<K, F, true>(job) },
        (Form::Refill, false) => refill_ways::<K, F, false>(job, plan.ways, level),
        (Form::Refill, true) => refill_ways::<K, F, true>(job, plan.ways, level),
        (Form::Permute | Form::Scalar, prefetch) => match (plan.ways, prefetch) {
            // SAFETY: as said above.
            (..=1, false) => unsafe { permute256::<K, F, 1, false>(job) },
            // SAFETY: as said above.
            (..=1, true) => unsafe { permute256::<K, F, 1, true>(job) },
            // SAFETY: as said above.
            (_, false) => unsafe { permute256::<K, F, 2, false>(job) },
            // SAFETY: as said above.
            (_, true) => unsafe { permute256::<K, F, 2, true>(job) },
        },
    }
}

fn refill_ways<K: Key, F: Family, const PREFETCH: bool>(
    job: &mut Job<'_, K>,
    ways: usize,
    level: Level,
) -> usize {
    assert_eq!(level.isa(), Isa::Avx512);
    // SAFETY: the level says that the machine has AVX-512, as just seen.
    unsafe {
        match ways {
            ..=1 => refill512::<K, F, 1, PREFETCH>(job),
            2 => refill512::<K, F, 2, PREFETCH>(job),
            3 => refill512::<K, F, 3, PREFETCH>(job),
            4 => refill512::<K, F, 4, PREFETCH>(job),
            5 => refill512::<K, F, 5, PREFETCH>(job),
            6 => refill512::<K, F, 6, PREFETCH>(job),
            7 => refill512::<K, F, 7, PREFETCH>(job),
            _ => refill512::<K, F, 8, PREFETCH>(job),
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn refill512<K: Key, F: Family, const WAYS: usize, const PREFETCH: bool>(
    job: &mut Job<'_, K>,
) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    refill::<K::Wide, F, WAYS, PREFETCH>(unsafe { K::wide() }, job)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn permute256<K: Key, F: Family, const WAYS: usize, const PREFETCH: bool>(
    job: &mut Job<'_, K>,
) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    refill::<K::Half, F, WAYS, PREFETCH>(unsafe { K::half() }, job)
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn staged512<K: Key, F: Family, const PREFETCH: bool>(job: &mut Job<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    staged::<K::Wide, F, PREFETCH>(unsafe { K::wide() }, job)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn staged256<K: Key, F: Family, const PREFETCH: bool>(job: &mut Job<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    staged::<K::Half, F, PREFETCH>(unsafe { K::half() }, job)
}

/// Parts the keys, unless the level has no vectors; how many pass.
pub fn part<K: Key>(bits: Bits<'_>, job: &mut Parting<'_, K>, level: Level) -> Option<usize> {
    of_family!(bits.hash, part_by(bits, job, level), K)
}

fn part_by<K: Key, F: Family>(
    bits: Bits<'_>,
    job: &mut Parting<'_, K>,
    level: Level,
) -> Option<usize> {
    // SAFETY: a level is made only where the machine has its instructions.
    unsafe {
        match level.isa() {
            Isa::Avx512 => Some(part512::<K, F>(bits, job)),
            Isa::Avx2 => Some(part256::<K, F>(bits, job)),
            Isa::Scalar => None,
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn part512<K: Key, F: Family>(bits: Bits<'_>, job: &mut Parting<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    part::part::<K::Wide, F>(unsafe { K::wide() }, bits, job)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn part256<K: Key, F: Family>(bits: Bits<'_>, job: &mut Parting<'_, K>) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    part::part::<K::Half, F>(unsafe { K::half() }, bits, job)
}

/// Hashes keys in whole vectors; how many.
pub fn hash_all<K: Key>(hash: Hash, level: Level, mask: K, keys: &[K], hashes: &mut [K]) -> usize {
    of_family!(hash, hash_by(level, mask, keys, hashes), K)
}

fn hash_by<K: Key, F: Family>(level: Level, mask: K, keys: &[K], hashes: &mut [K]) -> usize {
    // SAFETY: a level is made only where the machine has its instructions.
    unsafe {
        match level.isa() {
            Isa::Avx512 => hash512::<K, F>(mask, keys, hashes),
            Isa::Avx2 => hash256::<K, F>(mask, keys, hashes),
            Isa::Scalar => 0,
        }
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt,fma"
)]
fn hash512<K: Key, F: Family>(mask: K, keys: &[K], hashes: &mut [K]) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    part::hashes::<K::Wide, F>(unsafe { K::wide() }, mask, keys, hashes)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn hash256<K: Key, F: Family>(mask: K, keys: &[K], hashes: &mut [K]) -> usize {
    // SAFETY: whoever calls this function has the instructions.
    part::hashes::<K::Half, F>(unsafe { K::half() }, mask, keys, hashes)
}

#[cfg(test)]
mod tests {
    use super::super::Lanewise;
    use super::super::lanes::{Lanes, Reduce};
    use super::*;
    use crate::{Shape, fmix64};

    /// The hashes and positions of the keys at one index, in vectors.
    #[inline(always)]
    fn hashes<L: Lanes, F: Family>(
        l: L,
        keys: &[L::Key],
        index: u32,
        reduce: Reduce,
    ) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for at in (0..keys.len()).step_by(L::N) {
            // SAFETY: the numbers of keys below are multiples of 16, as many as any vector has.
            let hashes = F::nth(l, unsafe { l.load(keys, at) }, l.splat_lane(index));
            let mut lanes = [[L::Key::default(); 16]; 2];
            // SAFETY: no vector has more than 16 lanes.
            unsafe {
                l.store(hashes, &mut lanes[0], 0);
                l.store(reduce.positions(l, hashes), &mut lanes[1], 0);
            }
            all.extend((0..L::N).map(|lane| (lanes[0][lane].low(), lanes[1][lane].low())));
        }
        all
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2")]
    fn wide<K: Key, F: Family>(keys: &[K], index: u32, reduce: Reduce) -> Vec<(u32, u32)> {
        // SAFETY: whoever calls this function has the instructions.
        hashes::<_, F>(unsafe { <K as Lanewise>::wide() }, keys, index, reduce)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn half<K: Key, F: Family>(keys: &[K], index: u32, reduce: Reduce) -> Vec<(u32, u32)> {
        // SAFETY: whoever calls this function has the instructions.
        hashes::<_, F>(unsafe { <K as Lanewise>::half() }, keys, index, reduce)
    }

    fn check<K: Key, F: Family>(hash: Hash, keys: &[K]) {
        for (bits, index) in [1, 2, 77, 1 << 20, (1 << 31) - 1, 1 << 31]
            .into_iter()
            .flat_map(|bits| [0, 1, 2, 6, 31].map(|index| (bits, index)))
        {
            let shape = Shape::new(bits, 32);
            let expected: Vec<(u32, u32)> = keys
                .iter()
                .map(|key| hash.nth(*key, index))
                .map(|hash| (hash, shape.position(hash)))
                .collect();
            let reduce = Reduce::new(shape);
            if Isa::Avx2.is_supported() {
                // SAFETY: as just asked.
                let got = unsafe { half::<K, F>(keys, index, reduce) };
                assert_eq!(got, expected, "{hash} avx2 {index} {bits}");
            }
            if Isa::Avx512.is_supported() {
                // SAFETY: as just asked.
                let got = unsafe { wide::<K, F>(keys, index, reduce) };
                assert_eq!(got, expected, "{hash} avx512 {index} {bits}");
            }
        }
    }

    #[test]
    fn vectors_hash_as_scalars_do() {
        let mut keys: Vec<u64> = (0..2048).map(|i| fmix64(i * 0x1234_5677)).collect();
        keys[..6].copy_from_slice(&[0, 1, u64::MAX, u32::MAX.into(), 1 << 32, 1 << 63]);
        let narrow: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
        macro_rules! all {
            ($($hash:ident $family:ty),*) => { $(
                check::<u32, $family>(Hash::$hash, &narrow);
                check::<u64, $family>(Hash::$hash, &keys);
            )* };
        }
        all!(MurmurSeeded MurmurSeeded, Murmur Double<Murmur>, Knuth Double<Knuth>);
        all!(H2 Double<H2Hash>, Crc32c Double<Crc32c>);
    }
}
