//! The addresses that cost each engine the most, and the rate under them.
#![forbid(unsafe_code)]

mod counts;
mod pools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fibula::sources::Source;
use fibula_core::{Addr, Family, Lookup};
use fibula_engines::BoxedEngine;
use fibula_papers::clock::timed;
use fibula_papers::lookups::right_engines;
use fibula_papers::out::{Csv, Failure, ended, note, parse_family, table};
use fibula_simd::Isa;
use fibula_testkit::measure::{differences, fold, median, rounded};

use pools::{Mode, Pool, candidates, common, slowest};

const EXAMPLES: &str = "\
Examples:
  worst --csv worst.csv
  worst --family v6 --engines planb,hbs
  worst --table gen:v4:2024:20000:1 --keys 10000 --runs 1
  worst --counts --keys 16384 --csv counts.csv

For each engine and mode the slowest of many sets of addresses is searched for:
  RND, PFX, WORST         as `fibula bench` has them; WORST are the deepest of the table, whatever the engine
  length N                in prefixes of that length
  under N others          in the prefixes inside of the most other ones
  crowded                 in the 64 blocks (a /16 of IPv4, a /32 of IPv6) that have the most prefixes
  beside                  the address before or behind a prefix
  slowest 1/N             of candidates from all of these sets those that take the engine the longest, each looked up
                          32 times in a row; few addresses, so that their tables may be in a cache
  slowest and fastest     the slowest and the fastest eighth at random, so that branches are mispredicted

The slowest set of two trials is timed again beside the first three: all engines take turns in each run, and figures
are medians of the thread's own time. Mode batch has batches of 256; dependent has single lookups, each after
the answer to the last. All answers to all sets are compared with the oracle's before, and sums of hops in each
run; a wrong engine is left out, and the exit code is 1.

With --counts nothing is timed: valgrind executes the lookups by its model of a processor, with caches of 48 KiB and
2 MiB, some hundred times slower, and has no AVX-512. Of all sets but the slowest ones, which are found by time, each
row has the one that costs the most in a mode; costs are those of one lookup, with the loop around it.

Columns:
  worst                        the slowest set
  distinct                     different addresses in it
  worst_ns, rnd_ns, pfx_ns, deepest_ns
                               nanoseconds of a lookup in it, and in RND, PFX and WORST
  worst_ns_min, worst_ns_max   the fastest run and the slowest
  to_rnd, to_deepest           worst_ns over rnd_ns and over deepest_ns
  memory_bytes                 the engine's tables
Columns with --counts:
  cost                         instructions; lines, from beyond 48 KiB; far_lines, from beyond 2 MiB; mispredicted
                               branches
  most, worst                  the most of it, and the set that costs this
  rnd, pfx, deepest            the cost in RND, PFX and WORST";

/// Search for the addresses that cost each engine the most
#[derive(Parser, Debug)]
#[command(name = "worst", after_help = EXAMPLES, max_term_width = 116)]
struct Args {
    /// Address family
    #[arg(long, short, value_name = "v4|v6", default_value = "v4", value_parser = parse_family)]
    family: Family,
    /// Table (default: gen:v4:2024:900000:1 or gen:v6:2024:200000:1)
    #[arg(long, short, value_name = "TABLE")]
    table: Option<String>,
    /// Engines (default: the product's and the papers')
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engines: Vec<String>,
    /// Keys of a set
    #[arg(long, value_name = "N", default_value_t = 1 << 18,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    keys: u32,
    /// Candidates that are timed one by one
    #[arg(long, value_name = "N", default_value_t = 1 << 17,
          value_parser = clap::value_parser!(u32).range(64..=1 << 24))]
    candidates: u32,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "7",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the addresses
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Count instructions, lines of caches and mispredicted branches, by valgrind's model of a processor
    #[arg(long)]
    counts: bool,
    /// What the program does in valgrind
    #[arg(long, hide = true, conflicts_with = "counts")]
    counted: bool,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

/// The default measurements.
const ENGINES_V4: [&str; 15] = [
    "runmap",
    "dxr16",
    "dxr18",
    "dxr20",
    "dir24-8",
    "dir24-8-prefetch",
    "poptrie18",
    "sail-l",
    "bloomfwd",
    "miht-batch",
    "lulea-wide",
    "tree-bitmap",
    "lc-trie-wide",
    "bsd-radix",
    "radix",
];
const ENGINES_V6: [&str; 10] = [
    "planb",
    "wideleaf",
    "poptrie18",
    "matchline",
    "cp-trie",
    "hbs",
    "bloomfwd",
    "miht-batch",
    "tree-bitmap",
    "radix",
];
/// Trials by which the slowest set is chosen.
const TRIALS: usize = 2;
/// The sets that all engines are timed with: RND, PFX and WORST.
const COMMON: usize = 3;

fn main() -> ExitCode {
    ended("worst", run(&Args::parse()))
}

/// Whether something was wrong.
fn run(args: &Args) -> Result<bool, Failure> {
    match args.family {
        Family::V4 => measure::<u32>(args, "gen:v4:2024:900000:1", &ENGINES_V4),
        Family::V6 => measure::<u128>(args, "gen:v6:2024:200000:1", &ENGINES_V6),
    }
}

/// An engine in a mode, with its worst addresses.
struct Case<'a, A: Addr> {
    name: &'a str,
    engine: &'a BoxedEngine<A>,
    mode: Mode,
    worst: Pool<A>,
    /// Nanoseconds of each run: with the worst addresses, and with the common ones.
    times: [Vec<f64>; 1 + COMMON],
    is_wrong: bool,
}

fn measure<A: Addr>(args: &Args, usual: &str, engines: &[&str]) -> Result<bool, Failure> {
    let name = args.table.clone().unwrap_or_else(|| usual.to_owned());
    let sources = Source::parse_list(std::slice::from_ref(&name))?;
    let table = table(sources.first().ok_or("no table")?)?;
    let routes = table.routes::<A>();
    if routes.is_empty() {
        let family = A::FAMILY;
        return Err(
            format!("{name}: no IP{family} routes; take another table, or set --family").into()
        );
    }
    let names: Vec<&str> = match args.engines.is_empty() {
        true => engines.to_vec(),
        false => args.engines.iter().map(String::as_str).collect(),
    };
    if args.counts {
        let mut csv = Csv::create(&args.csv)?;
        let [keys, seed, engines] = [args.keys.to_string(), args.seed.to_string(), names.join(",")];
        let same =
            ["--family", A::FAMILY.name(), "--table", &name, "--keys", &keys, "--seed", &seed];
        let same = [&same[..], &["--counted", "--engines", &engines]].concat();
        for row in counts::of(&name, routes, &same)? {
            csv.row(&row)?;
        }
        csv.finish()?;
        return Ok(false);
    }
    if let Some(core) = fibula_testkit::measure::cores().first() {
        core_affinity::set_for_current(*core);
    }
    let pools = common(routes, args.keys as usize, args.seed);
    if args.counted {
        let (built, is_wrong) =
            right_engines(&names, routes, |engine| wrong(engine, pools.iter()))?;
        counts::say_isa();
        counts::look_up(&built, &pools)?;
        return Ok(is_wrong);
    }
    let all = candidates(&pools, args.candidates as usize, args.seed);
    let (built, mut is_wrong) =
        right_engines(&names, routes, |engine| wrong(engine, pools.iter().chain([&all])))?;
    let mut cases = Vec::new();
    for (name, engine) in &built {
        for mode in Mode::ALL {
            let own = slowest(&**engine, mode, &all, args.keys as usize, args.seed);
            let worst = worst(&**engine, mode, pools.iter().chain(&own));
            let times = [const { Vec::new() }; 1 + COMMON];
            cases.extend(worst.map(|worst| Case {
                name,
                engine,
                mode,
                worst,
                times,
                is_wrong: false,
            }));
        }
    }
    for _ in 0..args.runs {
        for case in &mut cases {
            case.turn(&pools[..COMMON]);
        }
    }
    let mut csv = Csv::create(&args.csv)?;
    for case in &mut cases {
        if case.is_wrong {
            is_wrong = true;
            note(format_args!("{}: other hops when timed than before; left out", case.name));
            continue;
        }
        let [worst, rnd, pfx, deepest] = case.times.each_mut().map(|times| median(times));
        let ends = (case.times[0].first().copied(), case.times[0].last().copied());
        let number = |number: f64| rounded(number).to_string();
        let mut distinct = case.worst.keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        csv.row(&[
            ("table", name.clone()),
            ("family", A::FAMILY.name().to_owned()),
            ("prefixes", routes.len().to_string()),
            ("isa", Isa::detect().name().to_owned()),
            ("engine", case.name.to_owned()),
            ("mode", case.mode.name().to_owned()),
            ("worst", case.worst.name.clone()),
            ("distinct", distinct.len().to_string()),
            ("worst_ns", number(worst)),
            ("worst_ns_min", ends.0.map_or(String::new(), number)),
            ("worst_ns_max", ends.1.map_or(String::new(), number)),
            ("rnd_ns", number(rnd)),
            ("pfx_ns", number(pfx)),
            ("deepest_ns", number(deepest)),
            ("to_rnd", number(worst / rnd.max(1e-9))),
            ("to_deepest", number(worst / deepest.max(1e-9))),
            ("memory_bytes", case.engine.memory().total().to_string()),
        ])?;
    }
    csv.finish()?;
    Ok(is_wrong)
}

/// The first wrong answer to the addresses of any pool.
fn wrong<'a, A: Addr>(
    engine: &dyn Lookup<A>,
    mut pools: impl Iterator<Item = &'a Pool<A>>,
) -> Option<String> {
    pools.find_map(|pool| differences(engine, &pool.keys, &pool.hops, 256).into_iter().next())
}

/// The nanoseconds of a lookup, and whether the hops are right.
fn time<A: Addr>(engine: &dyn Lookup<A>, mode: Mode, pool: &Pool<A>) -> (f64, bool) {
    // What the last set left in the caches is not this one's.
    mode.look_up(engine, &pool.keys[..pool.keys.len() / 4]);
    let (sum, time) = timed(|| mode.look_up(engine, &pool.keys));
    (1e9 * time.as_secs_f64() / pool.keys.len() as f64, sum == fold(&pool.hops))
}

/// The slowest of the pools.
fn worst<'a, A: Addr>(
    engine: &dyn Lookup<A>,
    mode: Mode,
    pools: impl Iterator<Item = &'a Pool<A>>,
) -> Option<Pool<A>> {
    let least = |pool: &Pool<A>| {
        (0..TRIALS).map(|_| time(engine, mode, pool).0).fold(f64::INFINITY, f64::min)
    };
    let timed = pools.filter(|pool| !pool.keys.is_empty()).map(|pool| (least(pool), pool));
    timed.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pool)| pool.clone())
}

impl<A: Addr> Case<'_, A> {
    fn turn(&mut self, common: &[Pool<A>]) {
        let pools = [&self.worst].into_iter().chain(common);
        for (pool, times) in pools.zip(&mut self.times) {
            let (ns, is_right) = time(&**self.engine, self.mode, pool);
            times.push(ns);
            self.is_wrong |= !is_right;
        }
    }
}
