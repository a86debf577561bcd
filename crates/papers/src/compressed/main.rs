//! Engines over a table and over the fewest routes with the same answers: which gain memory, and which time?
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fibula::sources::Source;
use fibula_core::{Addr, Family, Hop, Lookup, Route, Routes};
use fibula_engines::BoxedEngine;
use fibula_papers::clock::timed;
use fibula_papers::lookups::in_batches;
use fibula_papers::out::{Csv, Failure, ended, note, parse_family, table};
use fibula_simd::Isa;
use fibula_testkit::measure::{answers, cores, differences, fold, median, rounded};
use fibula_testkit::traffic::{Traffic, keys};
use fibula_testkit::{Oracle, Rng};

const EXAMPLES: &str = "\
Examples:
  compressed --csv compressed.csv
  compressed --family v6 --engines planb,matchline,bloomfwd
  compressed --table gen:v4:2024:20000:1 --same 50 --keys 10000 --runs 1

Each engine is built from the table, and from the fewest routes with which every address has the same hop (ORTC), as
`fibula export --compress` writes them. Both are asked for the same addresses, in batches of 256: RND and PFX of
the whole table. They take turns in each run; times are medians of the thread's own time. All answers are
compared with the oracle's of the whole table before, and sums of hops in each run; a wrong engine is left
out, and the exit code is 1.

Hops of a generated table hardly repeat, those of a real one do: neighbours come from the same peer. `--same 90` gives 90
of 100 routes, chosen at random, the hop of the route before.

Columns:
  same                         the routes of 100 that were given the hop of the one before
  routes, fewest               routes of the table, and after compression
  compress_ms                  milliseconds of the compression
  bytes, fewest_bytes          the engine's tables from either
  ns, fewest_ns                nanoseconds of a lookup
  ns_min, ns_max, fewest_ns_min, fewest_ns_max
                               the fastest run and the slowest
  smaller, faster              bytes over fewest_bytes, ns over fewest_ns";

/// Measure engines over the fewest routes with the same answers
#[derive(Parser, Debug)]
#[command(name = "compressed", after_help = EXAMPLES, max_term_width = 116)]
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
    /// Routes of 100 that get the hop of the one before
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_value = "0",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    same: Vec<u8>,
    /// Keys of a run
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    keys: u32,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "7",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the keys
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

/// The default measurements.
const ENGINES_V4: [&str; 10] = [
    "runmap",
    "dxr18",
    "dir24-8",
    "poptrie18",
    "bloomfwd",
    "miht-batch",
    "tree-bitmap",
    "lc-trie-wide",
    "hbs",
    "radix",
];
const ENGINES_V6: [&str; 10] = [
    "planb",
    "wideleaf",
    "poptrie18",
    "matchline",
    "bloomfwd",
    "miht-batch",
    "tree-bitmap",
    "lc-trie-wide",
    "hbs",
    "radix",
];
const BATCH: usize = 256;

fn main() -> ExitCode {
    ended("compressed", run(&Args::parse()))
}

/// Whether something was wrong.
fn run(args: &Args) -> Result<bool, Failure> {
    match args.family {
        Family::V4 => measure::<u32>(args, "gen:v4:2024:900000:1", &ENGINES_V4),
        Family::V6 => measure::<u128>(args, "gen:v6:2024:200000:1", &ENGINES_V6),
    }
}

/// Addresses with the oracle's answers.
struct Workload<A> {
    name: String,
    keys: Vec<A>,
    hops: Vec<Hop>,
}

/// An engine from both tables, and the nanoseconds of the runs, by traffic.
struct Case<'a, A: Addr> {
    name: &'a str,
    engines: [BoxedEngine<A>; 2],
    times: Vec<[Vec<f64>; 2]>,
    is_wrong: bool,
}

fn measure<A: Addr>(args: &Args, usual: &str, engines: &[&str]) -> Result<bool, Failure> {
    let name = args.table.clone().unwrap_or_else(|| usual.to_owned());
    let sources = Source::parse_list(std::slice::from_ref(&name))?;
    let table = table(sources.first().ok_or("no table")?)?;
    let own = table.routes::<A>();
    if own.is_empty() {
        let family = A::FAMILY;
        let advice = "take another table, or set --family";
        return Err(format!("{name}: no IP{family} routes; {advice}").into());
    }
    if let Some(core) = cores().first() {
        core_affinity::set_for_current(*core);
    }
    let names: Vec<&str> = match args.engines.is_empty() {
        true => engines.to_vec(),
        false => args.engines.iter().map(String::as_str).collect(),
    };
    let mut csv = Csv::create(&args.csv)?;
    let mut is_wrong = false;
    for same in &args.same {
        is_wrong |=
            with_hops(args, &name, *same, &repeated(own, *same, args.seed), &names, &mut csv)?;
    }
    csv.finish()?;
    Ok(is_wrong)
}

/// So many routes of 100 with the hop of the one before.
fn repeated<A: Addr>(routes: &Routes<A>, percent: u8, seed: u64) -> Routes<A> {
    let (mut rng, mut last) = (Rng::new(seed), None);
    let hop = |route: Route<A>| {
        let takes = rng.below(100) < u64::from(percent);
        let hop = last.filter(|_| takes).unwrap_or(route.hop);
        last = Some(hop);
        (route.prefix, hop)
    };
    routes.iter().map(hop).collect()
}

/// Measures the table with these hops. Whether an engine was wrong.
fn with_hops<A: Addr>(
    args: &Args,
    name: &str,
    same: u8,
    routes: &Routes<A>,
    names: &[&str],
    csv: &mut Csv,
) -> Result<bool, Failure> {
    let (fewest, took) = timed(|| fibula_fib::compress(routes));
    let oracle = Oracle::new(routes);
    let workloads = [Traffic::Rnd, Traffic::Pfx].map(|kind| {
        let keys = keys(routes, kind, args.keys as usize, args.seed);
        Workload { name: kind.to_string(), hops: answers(&oracle, &keys), keys }
    });
    let (mut cases, mut is_wrong) = cases(names, [routes, &fewest], &workloads)?;
    for _ in 0..args.runs {
        for case in &mut cases {
            case.turn(&workloads);
        }
    }
    for case in &mut cases {
        if case.is_wrong {
            is_wrong = true;
            note(format_args!("{}: other hops when timed than before; left out", case.name));
            continue;
        }
        let bytes = case.engines.each_ref().map(|engine| engine.memory().total());
        for (workload, times) in workloads.iter().zip(&mut case.times) {
            let number = |number: f64| rounded(number).to_string();
            let [ns, fewest_ns] = times.each_mut().map(|times| median(times));
            let least = times.each_ref().map(|times| times.first().copied().unwrap_or(0.0));
            let most = times.each_ref().map(|times| times.last().copied().unwrap_or(0.0));
            csv.row(&[
                ("table", name.to_owned()),
                ("family", A::FAMILY.name().to_owned()),
                ("same", same.to_string()),
                ("routes", routes.len().to_string()),
                ("fewest", fewest.len().to_string()),
                ("compress_ms", number(1e3 * took.as_secs_f64())),
                ("isa", Isa::detect().name().to_owned()),
                ("engine", case.name.to_owned()),
                ("traffic", workload.name.clone()),
                ("bytes", bytes[0].to_string()),
                ("fewest_bytes", bytes[1].to_string()),
                ("ns", number(ns)),
                ("ns_min", number(least[0])),
                ("ns_max", number(most[0])),
                ("fewest_ns", number(fewest_ns)),
                ("fewest_ns_min", number(least[1])),
                ("fewest_ns_max", number(most[1])),
                ("smaller", number(bytes[0] as f64 / bytes[1].max(1) as f64)),
                ("faster", number(ns / fewest_ns.max(1e-9))),
            ])?;
        }
    }
    Ok(is_wrong)
}

/// The engines that take both tables and answer rightly. The second is whether one did not.
fn cases<'a, A: Addr>(
    names: &[&'a str],
    tables: [&Routes<A>; 2],
    workloads: &[Workload<A>],
) -> Result<(Vec<Case<'a, A>>, bool), Failure> {
    let (mut cases, mut is_wrong) = (Vec::new(), false);
    for name in names {
        let entry = fibula_baselines::registry()
            .find::<A>(name)
            .ok_or_else(|| format!("no engine {name} for IP{}", A::FAMILY))?;
        let build = |routes| entry.build(routes, Isa::detect());
        let engines = match (build(tables[0]), build(tables[1])) {
            (Ok(whole), Ok(fewest)) => [whole, fewest],
            (Err(error), _) | (_, Err(error)) => {
                note(format_args!("{name} does not take the table: {error}"));
                continue;
            }
        };
        let wrong = engines.iter().flat_map(|engine| {
            let engine: &dyn Lookup<A> = &**engine;
            let wrong = |workload: &Workload<A>| {
                differences(engine, &workload.keys, &workload.hops, BATCH).into_iter().next()
            };
            workloads.iter().filter_map(wrong)
        });
        if let Some(wrong) = { wrong }.next() {
            note(format_args!("{name} is wrong and left out: {wrong}"));
            is_wrong = true;
            continue;
        }
        let times = workloads.iter().map(|_| [Vec::new(), Vec::new()]).collect();
        cases.push(Case { name, engines, times, is_wrong: false });
    }
    Ok((cases, is_wrong))
}

impl<A: Addr> Case<'_, A> {
    fn turn(&mut self, workloads: &[Workload<A>]) {
        for (workload, times) in workloads.iter().zip(&mut self.times) {
            for (engine, times) in self.engines.iter().zip(times) {
                let keys = &workload.keys[..];
                in_batches(&**engine, &keys[..keys.len() / 8], BATCH);
                let (sum, took) = timed(|| in_batches(&**engine, keys, BATCH));
                self.is_wrong |= sum != fold(&workload.hops);
                times.push(1e9 * took.as_secs_f64() / keys.len() as f64);
            }
        }
    }
}
