//! `fibula bench`: engines x tables x traffic x batch, checked against the oracle, then timed; or
//! engines x tables x bursts of changes. `fibula bench filter`: Bloom filters. `fibula bench bloomfwd`: a
//! paper's experiments.

mod bloomfwd;
mod filter;
#[cfg(test)]
mod liar;
mod measure;
mod report;
mod traffic;
mod updates;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use core_affinity::CoreId;
use fibula_core::{Addr, BuildError, Family, Hop, Lookup, Routes};
use fibula_engines::EngineFamily;
use fibula_rib::StoredFamily;
use fibula_simd::Isa;
use fibula_testkit::Oracle;
use fibula_testkit::traffic::Traffic as Kind;

use crate::engines::{self, Built};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::note;
use crate::source::{ReadArgs, Source};
use crate::table::{self, DEFAULT_HOPS};
use measure::Mode;
use report::Row;
use traffic::{Traffic, answers};
use updates::Updates;

const EXAMPLES: &str = "\
Examples:
  fibula bench
  fibula bench --table gen:v4:2024:900000:1 --engines dxr,radix --traffic RND,ZIPF
  fibula bench --table table.fib --engines all --family v6 --batch 64,256 --threads 4 --json
  fibula bench --table embedded --engines auto --traffic file:addresses.txt
  fibula bench --table gen:v4:2024:900000:1 --updates 1,100

Before any timing each engine answers all keys, singly and in batches, and is compared with the
oracle. A wrong engine is not timed, and the exit code is 1.

Traffic:
  RND      uniform (IPv4 without reserved space, IPv6 in 2000::/3)
  PFX      uniform over the table's prefixes, random host bits
  ZIPF     a million PFX keys, drawn by Zipf's law (s = 1.0)
  REP      each RND key 16 times in a row
  SEQ      RND keys asked singly, each waiting for the last result (so its batch is 1)
  MATCHp   p % of the keys have a route, the others have none
  file:P   the addresses in file P, again and again

Threads: --spread own gives each thread keys of its own, as cores do that serve a queue of the network
card each; --spread dispatch has one thread more that hands batches to the N lookup threads through
bounded queues. Beside the rate of all threads stands that of one alone with its own keys, measured in
the same runs, and the ratio of the two.

Updates: --updates 1,100 measures no lookups but what a changed prefix costs the engines that are
patched in place, one prefix at a time and 100 together. Half of the changes give a route another hop,
a quarter withdraws one, a quarter brings one back. The routes' own change is not counted, and a build
that a patch asks for neither; afterwards all changed prefixes are compared with the oracle.

dependent_ns is the latency of one lookup that waits for the one before, over the same keys.";

/// Measure engines: throughput, latency, memory, build time
#[derive(ClapArgs, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", engines::list().trim_end()),
          args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Tables, each measured by itself: snapshots, table files, gen:v4:2024:900000:1, embedded
    #[arg(long, short, value_name = "TABLE,...", default_value = "embedded")]
    table: Vec<String>,
    /// Engines: names, auto, all
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = "all")]
    engines: Vec<String>,
    /// Address family (default: those that the table has)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// Traffic: RND, PFX, ZIPF, REP, SEQ, MATCH0 to MATCH100, file:PATH
    #[arg(long, value_delimiter = ',', value_name = "KIND,...", default_value = "RND,PFX")]
    traffic: Vec<Traffic>,
    /// Keys in a batch; 1 asks singly
    #[arg(long, short, value_delimiter = ',', value_name = "N,...", default_value = "256",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Vec<u32>,
    /// Lookup threads, each pinned to a core
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Who gives the threads their keys
    #[arg(long, value_enum, default_value = "own")]
    spread: Spread,
    /// Measure no lookups but patches of this many changed prefixes
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          conflicts_with_all = ["traffic", "batch", "threads", "spread", "keys"],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    updates: Vec<u32>,
    /// Timed runs, of which the median is given; within a run the engines take turns
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Keys for each thread and run
    #[arg(long, value_name = "N", default_value_t = 1 << 22,
          value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    keys: u32,
    /// Seed of the keys
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Instruction sets to measure: scalar, avx2, avx512, all (default: the best)
    #[arg(long, value_delimiter = ',', value_name = "ISA,...", value_parser = parse_isa)]
    isa: Vec<IsaChoice>,
    /// Print an array of JSON objects instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// What is measured instead of engines.
#[derive(Subcommand, Debug)]
enum Other {
    Filter(filter::Args),
    Bloomfwd(Box<bloomfwd::Args>),
}

/// How keys come to the lookup threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Spread {
    /// Each thread has keys of its own
    Own,
    /// One thread more hands out batches
    Dispatch,
}

impl Spread {
    fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Dispatch => "dispatch",
        }
    }
}

/// `v4` or `v6`.
pub fn parse_family(text: &str) -> Result<Family, String> {
    [Family::V4, Family::V6].into_iter().find(|f| f.name() == text).ok_or("v4 or v6".to_owned())
}

/// An instruction set, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaChoice {
    All,
    One(Isa),
}

pub fn parse_isa(text: &str) -> Result<IsaChoice, String> {
    match text {
        "all" => Ok(IsaChoice::All),
        _ => text
            .parse()
            .map(IsaChoice::One)
            .map_err(|error: fibula_simd::IsaError| error.to_string()),
    }
}

/// The instruction sets that were asked for and that this machine has; `otherwise` if none was asked
/// for.
pub fn isas(choices: &[IsaChoice], otherwise: Vec<Isa>) -> Vec<Isa> {
    if choices.is_empty() {
        return otherwise;
    }
    let wanted = |isa: &Isa| {
        choices.iter().any(|c| matches!(c, IsaChoice::All) || *c == IsaChoice::One(*isa))
    };
    for choice in choices {
        if let IsaChoice::One(isa) = choice
            && !isa.is_supported()
        {
            note(format_args!("{isa}: this machine does not have it, skipped"));
        }
    }
    Isa::available().into_iter().filter(wanted).collect()
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.other {
        Some(Other::Filter(args)) => return filter::run(args),
        Some(Other::Bloomfwd(args)) => return bloomfwd::run(args),
        None => {}
    }
    let mut bench = Bench {
        args,
        isas: isas(&args.isa, vec![Isa::detect()]),
        cores: measure::cores(),
        rows: Vec::new(),
        updates: Vec::new(),
        outcome: Outcome::Done,
    };
    let threads = args.threads as usize + usize::from(args.spread == Spread::Dispatch);
    if bench.cores.is_empty() {
        note("threads cannot be pinned to cores here: expect wider spreads");
    } else if threads > bench.cores.len() {
        let cores = bench.cores.len();
        let (dispatcher, cores) = (
            if args.spread == Spread::Dispatch { ", one of which dispatches," } else { "" },
            format!("{cores} {}", if cores == 1 { "core" } else { "cores" }),
        );
        note(format_args!(
            "{threads} threads{dispatcher} share {cores}: their rates do not add up"
        ));
    }
    if args.spread == Spread::Dispatch && args.traffic.contains(&Traffic::Kind(Kind::Seq)) {
        return Err(Failure::new("SEQ asks key after key, so it has no batches to hand out")
            .hint("leave SEQ out of --traffic, or measure it with --spread own"));
    }
    // Unknown engines are better reported before minutes of work than after.
    engines::choose::<u32>(&args.engines)?;
    if !args.json {
        report::machine(args.runs, args.updates.is_empty().then_some(args.keys))?;
    }
    for source in Source::parse_list(&args.table)? {
        bench.table(&source)?;
    }
    if args.json {
        match args.updates[..] {
            [] => output::json(&bench.rows)?,
            _ => output::json(&bench.updates)?,
        }
    }
    Ok(bench.outcome)
}

struct Bench<'a> {
    args: &'a Args,
    isas: Vec<Isa>,
    cores: Vec<CoreId>,
    rows: Vec<Row>,
    updates: Vec<updates::Row>,
    outcome: Outcome,
}

impl Bench<'_> {
    fn table(&mut self, source: &(String, Source)) -> Result<(), Failure> {
        let mut loaded = table::load_aloud(std::slice::from_ref(source), &self.args.read)?;
        if loaded.has_no_values() {
            note(format_args!(
                "{}: no values to tell routes apart, measured with {DEFAULT_HOPS} (--synthetic-hops)",
                loaded.name
            ));
            loaded.replace_hops(DEFAULT_HOPS);
        }
        let families = loaded.families();
        let wanted = self.args.family;
        for family in families.iter().filter(|f| wanted.is_none_or(|w| w == **f)) {
            match family {
                Family::V4 => self.family::<u32>(&loaded)?,
                Family::V6 => self.family::<u128>(&loaded)?,
            }
        }
        if let Some(wanted) = wanted.filter(|wanted| !families.contains(wanted)) {
            note(format_args!("{}: no IP{wanted} routes", loaded.name));
        }
        Ok(())
    }

    fn family<A: EngineFamily + StoredFamily>(
        &mut self,
        loaded: &table::Loaded,
    ) -> Result<(), Failure> {
        let routes = loaded.table.routes::<A>();
        let built = self.build(routes)?;
        if self.args.updates.is_empty() {
            self.lookups(&loaded.name, routes, &built)
        } else {
            self.updates(&loaded.name, routes, built)
        }
    }

    fn lookups<A: EngineFamily>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        built: &[Built<A>],
    ) -> Result<(), Failure> {
        let oracle = Oracle::new(routes);
        for traffic in &self.args.traffic {
            let keys = self.keys(routes, traffic)?;
            if keys.is_empty() {
                continue;
            }
            let expected: Vec<Vec<Hop>> = keys.iter().map(|keys| answers(&oracle, keys)).collect();
            let modes: Vec<Mode> = match traffic {
                Traffic::Kind(Kind::Seq) => vec![Mode::Dependent],
                _ => self.args.batch.iter().map(|batch| Mode::Batch(*batch as usize)).collect(),
            };
            for mode in modes {
                let right = self.right(built, &keys, &expected, mode);
                let group = self.measure(&right, &keys, &expected, mode);
                let rows: Vec<Row> = group
                    .into_iter()
                    .map(|figures| Row::new(table, routes, traffic, self.args, mode, figures))
                    .collect();
                if !self.args.json {
                    report::group(&rows)?;
                }
                self.rows.extend(rows);
            }
        }
        Ok(())
    }

    fn updates<A: EngineFamily>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        built: Vec<Built<A>>,
    ) -> Result<(), Failure> {
        let mut updates = Updates::new(routes, built, self.args.seed)?;
        for burst in &self.args.updates {
            let rows =
                updates.measure(table, *burst as usize, self.args.runs, &mut self.outcome)?;
            if !self.args.json {
                updates::group(&rows)?;
            }
            self.updates.extend(rows);
        }
        Ok(())
    }

    fn build<A: EngineFamily>(&self, routes: &Routes<A>) -> Result<Vec<Built<A>>, Failure> {
        let mut all = Vec::new();
        for choice in engines::choose::<A>(&self.args.engines)? {
            for isa in choice.forms(&self.isas) {
                match choice.build(routes, isa) {
                    Ok(built) => {
                        if let Some(reason) = &built.reason {
                            note(format_args!("IP{}: auto is {reason}", A::FAMILY));
                        }
                        all.push(built);
                    }
                    Err(error @ BuildError::Limit { .. }) => note(format_args!("skipped: {error}")),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(all)
    }

    /// The keys of each thread.
    fn keys<A: Addr>(&self, routes: &Routes<A>, traffic: &Traffic) -> Result<Vec<Vec<A>>, Failure> {
        let (count, seed) = (self.args.keys as usize, self.args.seed);
        let keys = traffic.keys(routes, count, self.args.threads as usize, seed)?;
        if keys.is_empty() {
            note(format_args!("{traffic}: no IP{} addresses, skipped", A::FAMILY));
        }
        Ok(keys)
    }

    /// The engines that answer every key as the oracle does, both ways.
    fn right<'e, A: EngineFamily>(
        &mut self,
        built: &'e [Built<A>],
        keys: &[Vec<A>],
        expected: &[Vec<Hop>],
        mode: Mode,
    ) -> Vec<&'e Built<A>> {
        let batch = match mode {
            Mode::Batch(batch) => batch,
            Mode::Dependent => 1,
        };
        let mut right = Vec::new();
        for engine in built {
            let wrong: Vec<String> = keys
                .iter()
                .zip(expected)
                .flat_map(|(keys, expected)| differences(&*engine.engine, keys, expected, batch))
                .collect();
            if wrong.is_empty() {
                right.push(engine);
            } else {
                self.outcome = Outcome::Negative;
                note(format_args!("{} ({}) is wrong and not timed:", engine.label, engine.isa));
                wrong.iter().take(5).for_each(|text| note(format_args!("  {text}")));
            }
        }
        right
    }

    /// Times the engines, taking turns within each run so that whatever else the machine does hits
    /// all alike.
    fn measure<'e, A: EngineFamily>(
        &mut self,
        built: &[&'e Built<A>],
        keys: &[Vec<A>],
        expected: &[Vec<Hop>],
        mode: Mode,
    ) -> Vec<Figures<'e, A>> {
        let keys: Vec<&[A]> = keys.iter().map(Vec::as_slice).collect();
        let count: usize = keys.iter().map(|keys| keys.len()).sum();
        let checksum =
            expected.iter().fold(0u32, |sum, hops| sum.wrapping_add(measure::fold(hops)));
        let chain = &keys[0][..keys[0].len().min(CHAIN)];
        let mut figures: Vec<_> = built
            .iter()
            .map(|built| Figures {
                built,
                mlps: Vec::new(),
                alone: Vec::new(),
                dependent: Vec::new(),
                wrong: false,
            })
            .collect();
        for _ in 0..self.args.runs {
            for figures in &mut figures {
                let engine: &dyn Lookup<A> = &figures.built.engine;
                let run = match (self.args.spread, mode) {
                    (Spread::Dispatch, Mode::Batch(batch)) => {
                        measure::dispatch(engine, &keys, batch, &self.cores)
                    }
                    _ => measure::run(engine, &keys, mode, &self.cores),
                };
                figures.wrong |= run.checksum != checksum;
                figures.mlps.push(rate(count, run.time));
                let alone = if self.args.threads == 1 && self.args.spread == Spread::Own {
                    run
                } else {
                    measure::run(engine, &keys[..1], mode, &self.cores)
                };
                figures.alone.push(rate(keys[0].len(), alone.time));
                let chained = measure::run(engine, &[chain], Mode::Dependent, &self.cores);
                figures.dependent.push(chained.time.as_secs_f64() * 1e9 / chain.len() as f64);
            }
        }
        for wrong in figures.extract_if(.., |figures| figures.wrong) {
            self.outcome = Outcome::Negative;
            let Built { label, isa, .. } = wrong.built;
            note(format_args!("{label} ({isa}): other hops when timed than before, left out"));
        }
        figures
    }
}

/// Keys of the dependent chain: enough to visit the whole table, few enough for slow engines.
const CHAIN: usize = 1 << 20;

/// Million keys a second.
fn rate(keys: usize, time: Duration) -> f64 {
    keys as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

/// What was measured for an engine, a number for each run.
struct Figures<'e, A: EngineFamily> {
    built: &'e Built<A>,
    mlps: Vec<f64>,
    /// The rate of one thread with its own keys, alone.
    alone: Vec<f64>,
    dependent: Vec<f64>,
    /// Whether a timed run gave other hops than the oracle.
    wrong: bool,
}

/// The first wrong answers, in words.
fn differences<A: Addr>(
    engine: &dyn Lookup<A>,
    keys: &[A],
    expected: &[Hop],
    batch: usize,
) -> Vec<String> {
    let mut hops = vec![Hop::NONE; batch];
    let mut wrong = Vec::new();
    for (keys, expected) in keys.chunks(batch).zip(expected.chunks(batch)) {
        let hops = &mut hops[..keys.len()];
        engine.lookup_batch(keys, hops);
        for ((key, in_batch), right) in keys.iter().zip(hops).zip(expected) {
            let single = engine.lookup(*key);
            if *in_batch != *right || single != *right {
                let ip = key.to_ip();
                wrong.push(format!(
                    "{ip}: expected {right:?}, single {single:?}, batch {in_batch:?}"
                ));
            }
        }
        if wrong.len() > 5 {
            break;
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use clap::{Command, FromArgMatches};
    use fibula_testkit::tables;
    use serde_json::Value;

    use super::liar::{BYTES, Liar, Lie};
    use super::*;

    const KEYS: usize = 300;
    const RND: Traffic = Traffic::Kind(Kind::Rnd);

    /// Measures engines that were compiled somewhere else. What came out: rows, and how the command ends.
    fn measured<A: EngineFamily>(
        args: &str,
        routes: &Routes<A>,
        built: &[Built<A>],
    ) -> (Vec<Value>, Outcome) {
        let args = format!("bench --json --runs 2 --keys {KEYS} {args}");
        let command = <Args as ClapArgs>::augment_args(Command::new("bench"));
        let args = Args::from_arg_matches(&command.get_matches_from(args.split_whitespace()));
        let args = args.unwrap();
        let mut bench = Bench {
            args: &args,
            isas: vec![Isa::Scalar],
            cores: Vec::new(),
            rows: Vec::new(),
            updates: Vec::new(),
            outcome: Outcome::Done,
        };
        bench.lookups("a table", routes, built).unwrap();
        let rows = bench.rows.iter().map(|row| serde_json::to_value(row).unwrap());
        (rows.collect(), bench.outcome)
    }

    fn refuses<A: EngineFamily>(routes: &Routes<A>) {
        let about = RND.keys(routes, KEYS, 1, 1).unwrap()[0][KEYS - 1];
        let new = |lie| Liar::new(routes, lie, about);
        // One key is answered wrongly, the last one: each is asked for singly and in a batch, and that is all.
        for (lie, batch) in
            [(Lie::Singly, 64), (Lie::InBatches, 64), (Lie::InBatches, 1), (Lie::Singly, 512)]
        {
            let (liar, honest) = (new(lie), new(Lie::Honest));
            let (asked, asked_honest) = (liar.asked(), honest.asked());
            let built = [liar.built(), honest.built()];
            let args = format!("--traffic RND --batch {batch}");
            let (rows, outcome) = measured(&args, routes, &built);
            assert_eq!(outcome, Outcome::Negative, "{lie:?}");
            let engines: Vec<&Value> = rows.iter().map(|row| &row["engine"]).collect();
            assert_eq!(engines, ["Honest"], "{lie:?} in batches of {batch}");
            assert_eq!((&rows[0]["bytes"], &rows[0]["build_ms"]), (&BYTES.into(), &3.0.into()));
            assert_eq!(asked.load(Ordering::Relaxed), 2 * KEYS, "{lie:?} is not timed");
            // Twice, and in each run warmed up, measured, warmed up and measured as a chain.
            assert_eq!(asked_honest.load(Ordering::Relaxed), (2 + 2 * 4) * KEYS);
        }
        // Right until the clock runs.
        let late = new(Lie::After(2 * KEYS));
        let both = [new(Lie::Honest).built(), late.built()];
        let (rows, outcome) = measured("--traffic RND", routes, &both);
        assert_eq!((rows.len(), outcome), (1, Outcome::Negative));
        assert_eq!(rows[0]["engine"], "Honest");
        let honest = [new(Lie::Honest).built()];
        for (args, count) in [
            ("--traffic RND,PFX --batch 1,64", 4),
            ("--traffic RND --threads 3", 1),
            ("--traffic RND --threads 2 --spread dispatch", 1),
        ] {
            let (rows, outcome) = measured(args, routes, &honest);
            assert_eq!((rows.len(), outcome), (count, Outcome::Done), "{args}");
        }
    }

    #[test]
    fn a_wrong_engine_is_not_timed() {
        refuses(&tables::dense::<u32>(1, 400));
        refuses(&tables::dense::<u128>(2, 400));
    }

    /// A wrong answer in any thread's keys, asked singly and one after the other.
    #[test]
    fn every_thread_is_checked() {
        let routes = tables::dense::<u32>(3, 400);
        let keys = RND.keys(&routes, KEYS, 3, 1).unwrap();
        for keys in &keys {
            let liar = Liar::new(&routes, Lie::Singly, keys[KEYS / 2]);
            let (rows, outcome) = measured("--traffic RND --threads 3", &routes, &[liar.built()]);
            assert_eq!((rows.len(), outcome), (0, Outcome::Negative));
        }
        let seq = Traffic::Kind(Kind::Seq).keys(&routes, KEYS, 1, 1).unwrap();
        let liar = Liar::new(&routes, Lie::Singly, seq[0][7]);
        let (rows, outcome) = measured("--traffic SEQ", &routes, &[liar.built()]);
        assert_eq!((rows.len(), outcome), (0, Outcome::Negative));
    }

    #[test]
    fn differences_say_what_is_wrong() {
        let routes = tables::dense::<u32>(4, 50);
        let keys: Vec<u32> = routes.iter().map(|route| route.prefix.first()).collect();
        let right: Vec<Hop> = keys.iter().map(|key| Oracle::new(&routes).lookup(*key)).collect();
        let liar = Liar::new(&routes, Lie::InBatches, keys[3]);
        let found = differences(&liar, &keys, &right, 7);
        let expected = right[3];
        let other = Hop::from_bits(expected.to_bits() ^ 1);
        let times = keys.iter().filter(|key| **key == keys[3]).count();
        let ip = keys[3].to_ip();
        let text = format!("{ip}: expected {expected:?}, single {expected:?}, batch {other:?}");
        assert_eq!(found, vec![text; times]);
        let honest = Liar::new(&routes, Lie::Honest, 0);
        assert!(differences(&honest, &keys, &right, 7).is_empty());
    }
}
