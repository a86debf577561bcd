//! `fibula bench filter`: Bloom filters by size, form and number of ways.

mod rows;
mod variants;

use std::hint::black_box;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_filter::{
    BlockedFilter, Filter, Hash, Parameters, Prefetch, Word, WordKey, fmix32, fmix64, h2,
};
use fibula_testkit::measure::{CacheLevel, Stamp};

use super::report;
use crate::failure::{Failure, Outcome};
use crate::progress::note;
use rows::{Row, print, rows};
use variants::{Variant, variants};

const EXAMPLES: &str = "\
Examples:
  fibula bench filter
  fibula bench filter --sizes 512K,128M --runs 9 --json
  fibula bench filter --bits 9.6 --hashes 7 --hits 5 --wide

Variants: scalar; permute, vectors of 256 bits and a table of permutations; naive, the same in 512
bits; hpbf, vectors of 512 bits with expanding loads; each for several numbers of ways. staged and
blocked are ours; the blocked filter is made so large that its rate of false positives is the
same. Variants that prefetch into the first-level cache and into the second one are measured where
the filter is larger than the second-level cache, or with --prefetch at any size.

Before any timing, each variant's answers are compared with the scalar form's. A wrong one is not
timed, and the exit code is 1. The last columns are ratios to permute of one and of two ways,
without prefetching.";

/// Measure Bloom filters by size
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Bytes of the filters, as 16K, 1M (default: within L1, L2, L3, and beyond)
    #[arg(long, value_delimiter = ',', value_name = "SIZE,...", value_parser = parse_size)]
    sizes: Vec<u64>,
    /// Hash function: murmur-seeded, murmur, knuth, h2, crc32c
    #[arg(long, value_name = "NAME", default_value = "murmur-seeded")]
    hash: Hash,
    /// Bits of the filter for each key in it
    #[arg(long, value_name = "B", default_value = "10", value_parser = parse_bits)]
    bits: f64,
    /// Positions of each key
    #[arg(long, value_name = "K", default_value = "3",
          value_parser = clap::value_parser!(u32).range(1..=Parameters::MAX_HASHES as i64))]
    hashes: u32,
    /// Percentage of the tested keys that are in the filter
    #[arg(long, value_name = "P", default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    hits: u32,
    /// Keys to test in a run
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
          value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    keys: u32,
    /// Keys of 64 bits instead of 32
    #[arg(long)]
    wide: bool,
    /// Sizes in bits that are not powers of two: a tenth less than given
    #[arg(long)]
    exact: bool,
    /// Measure prefetching at every size
    #[arg(long)]
    prefetch: bool,
    /// Timed runs; the median is printed, and the mean with its 95 % confidence interval. Within a run
    /// the variants take turns
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print JSON instead of tables: machine, commit and command in "stamp", measurements in "rows"
    #[arg(long)]
    json: bool,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        _ => (text, 0),
    };
    let most = u64::from(Parameters::MAX_BITS) / 8;
    let size: Option<u64> = number.parse().ok().filter(|n| *n > 0 && *n <= most);
    size.map(|n| n << unit)
        .filter(|size| *size <= most)
        .ok_or(format!("bytes, as 4096, 16K or 1M, at most {}M", most >> 20))
}

fn parse_bits(text: &str) -> Result<f64, String> {
    let bits: Option<f64> = text.parse().ok().filter(|bits| (0.5..=1000.0).contains(bits));
    bits.ok_or("0.5 to 1000 bits".to_owned())
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let stamp = Stamp::take();
    if let Some(core) = fibula_testkit::measure::cores().first() {
        core_affinity::set_for_current(*core);
    }
    let levels = caches(&stamp.caches);
    let sizes = match &args.sizes[..] {
        [] => levels.iter().map(|l| l / 2).chain([levels[2] * 4]).collect(),
        sizes => sizes.to_vec(),
    };
    let mut all = Vec::new();
    let mut outcome = Outcome::Done;
    if !args.json {
        report::machine(&stamp, args.runs, Some(args.keys))?;
    }
    for size in sizes {
        let rows = match args.wide {
            false => measure_size(args, size, levels[1], narrow_key, &mut outcome),
            true => measure_size(args, size, levels[1], fmix64, &mut outcome),
        };
        if !args.json {
            print(&rows, &levels)?;
        }
        all.extend(rows);
    }
    if args.json {
        report::json(&stamp, &all)?;
    }
    Ok(outcome)
}

/// The bytes of the first, second and third level's caches.
fn caches(known: &[CacheLevel]) -> [u64; 3] {
    let mut levels = [32 << 10, 1 << 20, 32 << 20];
    for cache in known.iter().filter(|cache| cache.contents != "Instruction") {
        if let level @ 1..=3 = cache.level {
            // A filter of this size must be possible.
            levels[level as usize - 1] = cache.bytes.min(u64::from(Parameters::MAX_BITS) / 8);
        }
    }
    // Twice the third-level cache must still be a valid size of a filter.
    levels[2] = levels[2].min(u64::from(Parameters::MAX_BITS) / 32);
    levels
}

/// The `i`th key: a permutation of 32 bits, and none of the hash functions.
fn narrow_key(i: u64) -> u32 {
    fmix32(h2(i as u32).wrapping_mul(0x2c1b_3c6d))
}

fn measure_size<K: WordKey + TryFrom<u64>>(
    args: &Args,
    size: u64,
    second_level: u64,
    key: impl Fn(u64) -> K,
    outcome: &mut Outcome,
) -> Vec<Row> {
    let bits = size * 8 - if args.exact { size * 8 / 10 } else { 0 };
    let parameters = Parameters::new(bits as u32, args.hashes);
    let members = ((bits as f64 / args.bits) as u64).max(1);
    let rate = parameters.rate(members as usize);
    let mut filter = Filter::new(parameters, args.hash);
    let mut blocked = BlockedFilter::for_rate(members as usize, rate, args.hash);
    let mut start = 0;
    while start < members {
        let end = members.min(start + (1 << 20));
        let keys: Vec<K> = (start..end).map(&key).collect();
        filter.insert_all(&keys);
        blocked.insert_all(&keys);
        start = end;
    }
    let keys = queries(args, members, key);
    let payloads: Vec<K> =
        (0..u64::from(args.keys)).map(|i| K::try_from(i).unwrap_or_default()).collect();
    let prefetches =
        if args.prefetch || size > second_level { &Prefetch::ALL[..] } else { &[Prefetch::Off] };
    let mut variants = variants(&filter, &blocked, prefetches);
    let scalar = [
        expected(&keys, &payloads, |key| filter.contains(key)),
        expected(&keys, &payloads, |key| blocked.contains(key)),
    ];
    let mut out = (keys.clone(), keys.clone());
    leave_wrong_out(&mut variants, &keys, &payloads, &scalar, size, outcome);
    for _ in 0..args.runs {
        for variant in &mut variants {
            let time = time(variant, &keys, &payloads, &mut out);
            variant.mops.push(keys.len() as f64 / time.as_secs_f64() / 1e6);
        }
    }
    rows(args, filter.isa(), rate, variants, size_of::<K>() * 8)
}

/// The keys to query: members and others, mixed without a pattern.
fn queries<K>(args: &Args, members: u64, key: impl Fn(u64) -> K) -> Vec<K> {
    let queries = (0..u64::from(args.keys)).map(|i| {
        let dice = fmix64(i + 0x1234_5678);
        let member = dice % 100 < args.hits.into();
        key(if member { (dice >> 8) % members } else { members + i })
    });
    queries.collect()
}

/// Leaves variants out whose answers are not those of their scalar form, plain or blocked.
fn leave_wrong_out<K: Word>(
    variants: &mut Vec<Variant<'_, K>>,
    keys: &[K],
    payloads: &[K],
    scalar: &[Vec<(K, K)>; 2],
    size: u64,
    outcome: &mut Outcome,
) {
    let mut out = (keys.to_vec(), keys.to_vec());
    variants.retain_mut(|variant| {
        let right = &scalar[usize::from(variant.name == "blocked")];
        variant.passed = (variant.probe)(keys, payloads, &mut out.0, &mut out.1);
        let n = variant.passed;
        let mut got: Vec<(K, K)> =
            out.1[..n].iter().copied().zip(out.0[..n].iter().copied()).collect();
        got.sort_unstable();
        let is_right = got == *right;
        if !is_right {
            *outcome = Outcome::Negative;
            note(format_args!(
                "{} of {} ways at {size} bytes is wrong and not timed: {n} keys pass, {} should",
                variant.name,
                variant.ways,
                right.len()
            ));
        }
        is_right
    });
}

/// The keys that pass, by payload.
fn expected<K: Word>(keys: &[K], payloads: &[K], passes: impl Fn(K) -> bool) -> Vec<(K, K)> {
    let all = payloads.iter().copied().zip(keys.iter().copied());
    all.filter(|(_, key)| passes(*key)).collect()
}

/// How long passes over the keys are repeated, to time one. Tests only check the keys that pass.
const TIMED: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 8 });

/// The time of one pass over the keys: the mean over [`TIMED`], after one that warms up.
fn time<K: Word>(
    variant: &Variant<'_, K>,
    keys: &[K],
    payloads: &[K],
    out: &mut (Vec<K>, Vec<K>),
) -> Duration {
    let mut pass = || {
        let n = (variant.probe)(black_box(keys), payloads, &mut out.0, &mut out.1);
        assert_eq!(n, variant.passed, "the same keys pass every time");
    };
    pass();
    let (started, mut passes) = (Instant::now(), 0);
    while passes == 0 || started.elapsed() < TIMED {
        pass();
        passes += 1;
    }
    started.elapsed() / passes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::{Command, FromArgMatches};

    use super::variants::Probe;
    use super::*;

    fn args(args: &str) -> Args {
        let words = args.split_whitespace();
        let command = <Args as ClapArgs>::augment_args(Command::new("filter").no_binary_name(true));
        Args::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    /// What passes is every member, and of the others the share that is to be expected. Keys are the same in
    /// every run, so the bounds of five standard deviations are met always or never.
    fn passes<K: WordKey + TryFrom<u64> + std::hash::Hash>(more: &str, key: impl Fn(u64) -> K) {
        const SIZE: u64 = 4096;
        for hits in [0, 20, 100] {
            let args = args(&format!("--runs 1 --keys 5000 --hits {hits} {more}"));
            let mut outcome = Outcome::Done;
            let rows = measure_size(&args, SIZE, 1 << 20, &key, &mut outcome);
            assert_eq!(outcome, Outcome::Done);
            let members = ((SIZE * 8) as f64 / args.bits) as u64;
            let set: HashSet<K> = (0..members).map(&key).collect();
            let keys = queries(&args, members, &key);
            let hits = keys.iter().filter(|key| set.contains(key)).count();
            let share = hits as f64 / keys.len() as f64;
            assert!((share - f64::from(args.hits) / 100.0).abs() < 0.015, "{share}");
            let others = (keys.len() - hits) as f64;
            let blocks = |row: &Row| row.bytes / 32;
            for row in &rows {
                let rate = match row.variant {
                    "blocked" => BlockedFilter::expected_rate(members as usize, blocks(row)),
                    _ => row.expected_rate,
                };
                let expected = others * rate;
                let deviation = (expected * (1.0 - rate)).sqrt();
                let positives = row.passed.checked_sub(hits).expect("every member passes") as f64;
                assert!((positives - expected).abs() <= 5.0 * deviation, "{hits} hits: {row:?}");
            }
            // The plain forms are one filter.
            let plain = rows.iter().filter(|row| row.variant != "blocked");
            let passed: HashSet<usize> = plain.map(|row| row.passed).collect();
            assert_eq!(passed.len(), 1);
        }
    }

    #[test]
    fn members_pass_and_few_others() {
        for hash in Hash::ALL {
            passes::<u32>(&format!("--hash {hash}"), narrow_key);
            passes::<u64>(&format!("--wide --hash {hash} --hashes 7 --bits 9.6"), fmix64);
        }
    }

    /// Variants that lose a key, let one more pass, or mix payloads up.
    #[test]
    fn a_wrong_variant_is_not_timed() {
        let keys: Vec<u32> = (0..1000).collect();
        let passing = |key: u32| key.is_multiple_of(3);
        let right = expected(&keys, &keys, passing);
        let scalar = [right.clone(), Vec::new()];
        type Change = fn(&mut Vec<(u32, u32)>);
        let changes: [Change; 4] = [
            |_| {},
            |passed| passed.truncate(passed.len() - 1),
            |passed| passed.push((1, 1)),
            |passed| passed[7].0 += 1,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut passed = right.clone();
            change(&mut passed);
            let probe: Box<Probe<'_, u32>> = Box::new(move |_, _, out, out_payloads| {
                for (at, (payload, key)) in passed.iter().enumerate() {
                    (out[at], out_payloads[at]) = (*key, *payload);
                }
                passed.len()
            });
            let mut variants = vec![Variant::new("permute", 1, Prefetch::Off, 0, probe)];
            let mut outcome = Outcome::Done;
            leave_wrong_out(&mut variants, &keys, &keys, &scalar, 0, &mut outcome);
            let is_right = i == 0;
            assert_eq!(variants.len(), usize::from(is_right), "change {i}");
            assert_eq!(outcome == Outcome::Done, is_right, "change {i}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("16K"), Ok(16 << 10));
        assert_eq!(parse_size("3m"), Ok(3 << 20));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in ["", "K", "0", "-1", "257M", "99999999999999999999", "9999999999M", "é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
