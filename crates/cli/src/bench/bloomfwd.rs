//! `fibula bench bloomfwd`: the experiments of Bloomfwd's paper, each as a CSV.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args as ClapArgs, ValueEnum};
use core_affinity::CoreId;
use fibula_core::{Addr, BuildError, Engine, Family, Hop, Lookup, Routes};
use fibula_engines::bloomfwd::dpcpe::Expansion;
use fibula_engines::bloomfwd::{Address, Bloomfwd, Config, Hashes, Levels};
use fibula_engines::{EngineFamily, find};
use fibula_filter::{Hash, Shape};
use fibula_rib::StoredFamily;
use fibula_simd::Isa;
use fibula_testkit::traffic::Traffic as Kind;
use fibula_testkit::{Oracle, Rng};

use super::measure::{self, Mode};
use super::report::{median, rounded};
use super::traffic::{Traffic, answers};
use super::{differences, parse_family, rate};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::Output;
use crate::progress::note;
use crate::source::{ReadArgs, Source};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula bench bloomfwd --figure 1 --csv bloomfwd-fig1.csv
  fibula bench bloomfwd --figure 4 --table table.fib --addresses ipsum.txt,capture.txt
  fibula bench bloomfwd --figure 8 --table one.txt,two.txt
  fibula bench bloomfwd --figure table5

Figures:
  1       pairs of hash functions by rate of false positives
  2       scaling by threads: baseline, bloomfwd, MIHT
  3       share of addresses that have a route
  4       random addresses and real ones
  5       size of the table: 1/16 of its prefixes to all of them
  6       tables: bloomfwd, MIHT
  7       levels of expansion (DPCPE), and none
  8       the same for several tables
  table5  size of the filters, by the numbers of prefixes that the paper states; measures nothing

Figures 1 to 6 are of IPv4 and 7 and 8 of IPv6, unless --family says otherwise. Unless --table does,
tables are generated with as many prefixes as the paper's have. A table is measured by itself.

Every engine answers all keys before it is timed, singly and in batches, and is compared with the
oracle; a wrong one is left out, and the exit code is 1. All that is measured over a table takes turns
in each run, and mlps is the median. What makes too many prefixes, as few levels do, has no rate.";

/// Repeat the experiments of Bloomfwd's paper
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The experiment
    #[arg(long, value_enum, value_name = "1..8|table5")]
    figure: Figure,
    /// Tables: snapshots, table files, gen:v4:2024:900000:1
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// Address family (default: the paper's)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// Figure 4: files of real addresses, one at the head of each line, in the order they are asked in
    #[arg(long, value_delimiter = ',', value_name = "FILE,...")]
    addresses: Vec<PathBuf>,
    /// Figure 2: numbers of threads (default: 1, 2, 4 and so on, up to the cores)
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Keys in a batch
    #[arg(long, short, value_name = "N", default_value = "256",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: u32,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Keys for each thread and run
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
          value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    keys: u32,
    /// Seed of the keys, and of what is left out of the table in figure 5
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
}

/// An experiment, by the number of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    #[value(name = "1")]
    Hashes,
    #[value(name = "2")]
    Threads,
    #[value(name = "3")]
    Matching,
    #[value(name = "4")]
    Real,
    #[value(name = "5")]
    Sizes,
    #[value(name = "6")]
    Tables,
    #[value(name = "7")]
    Levels,
    #[value(name = "8")]
    LevelsOfTables,
    #[value(name = "table5")]
    Filters,
}

/// The hash functions of figure 1.
const HASHES: [Hash; 3] = [Hash::Murmur, Hash::Knuth, Hash::H2];
/// The rates of false positives of figure 1 and table 5.
const RATES: [f64; 5] = [0.01, 0.1, 0.3, 0.6, 0.9];
/// The percentages of figure 3.
const MATCHING: [u8; 6] = [0, 20, 40, 60, 80, 100];
/// Figure 5 measures one part of so many.
const PARTS: [usize; 5] = [16, 8, 4, 2, 1];
/// The levels of figures 7 and 8; all lengths come before them.
const LEVELS: [u8; 6] = [8, 7, 6, 5, 4, 3];
/// The most prefixes after expansion for one before that are measured. The paper's largest four levels
/// make 148, its three levels 16,000 and more: it gives no rate for these either.
const EXPANSION_MAX: u64 = 1000;
/// What the paper compares, and our form of MIHT.
const RIVALS: [&str; 3] = ["bloomfwd", "miht", "miht-batch"];

/// The paper's tables of IPv4, with their prefixes, and those of groups 1 and 2 after expansion
/// (its table 3).
const PAPER_V4: [(&str, usize, [usize; 2]); 7] = [
    ("AS65000", 622_607, [971_555, 113_397]),
    ("SYDNEY", 667_359, [1_037_247, 67_397]),
    ("DE-CIX", 647_345, [1_007_513, 209_488]),
    ("LINX", 620_188, [982_940, 19_863]),
    ("MSK-IX", 640_812, [1_004_073, 203_360]),
    ("NYIIX", 634_177, [1_000_128, 151_391]),
    ("IX.br/SP", 652_531, [1_024_899, 147_201]),
];
/// The prefixes of the paper's tables of IPv6: AS65000-V6, EQUINIX, LINX, NWAX.
const PAPER_V6: [usize; 4] = [31_645, 42_663, 44_103, 42_227];
/// The year of generated tables: that of counts closest to the paper's.
const YEAR: u16 = 2015;

impl Args {
    fn family(&self) -> Family {
        let papers = match self.figure {
            Figure::Levels | Figure::LevelsOfTables => Family::V6,
            _ => Family::V4,
        };
        self.family.unwrap_or(papers)
    }

    /// The tables that were asked for, or such as the paper has.
    fn tables(&self) -> Vec<String> {
        if !self.table.is_empty() {
            return self.table.clone();
        }
        let sizes = match self.family() {
            Family::V4 => PAPER_V4.map(|(_, prefixes, _)| prefixes).to_vec(),
            Family::V6 => PAPER_V6.to_vec(),
        };
        let sizes = sizes.into_iter().zip(1..);
        let named =
            sizes.map(|(n, seed)| format!("gen:{}:{YEAR}:{n}:{seed}", self.family().name()));
        match self.figure {
            Figure::Tables => named.collect(),
            Figure::LevelsOfTables => named.skip(1).collect(),
            _ => named.take(1).collect(),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let only = |is_given: bool, option, figure, name| match is_given && self.figure != figure {
            true => Err(Failure::new(format_args!("{option} is for --figure {name}"))),
            false => Ok(()),
        };
        only(!self.addresses.is_empty(), "--addresses", Figure::Real, "4")?;
        only(!self.threads.is_empty(), "--threads", Figure::Threads, "2")?;
        if self.figure == Figure::Real && self.addresses.is_empty() {
            return Err(Failure::new("figure 4 compares with real addresses, and there are none")
                .hint("name files of them with --addresses"));
        }
        // Better now than after the random ones.
        for path in self.addresses.iter().filter(|path| path.as_os_str() != "-") {
            input::open(path)?;
        }
        if self.figure == Figure::Filters && !(self.table.is_empty() && self.family.is_none()) {
            return Err(Failure::new("table5 is of the paper's own tables")
                .hint("leave --table and --family out"));
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    args.check()?;
    let tables = Source::parse_list(&args.tables())?;
    let mut experiment = Experiment {
        args,
        cores: measure::cores(),
        csv: Csv { out: Output::create(&args.csv)?, names: Vec::new() },
        outcome: Outcome::Done,
    };
    if args.figure == Figure::Filters {
        filters(&mut experiment.csv)?;
    } else {
        for source in &tables {
            experiment.table(source)?;
        }
    }
    experiment.csv.out.finish()?;
    Ok(experiment.outcome)
}

/// A cell of a row, with the name of its column.
type Cell = (&'static str, String);

/// Rows whose columns have the names of the first one's.
struct Csv {
    out: Output,
    names: Vec<&'static str>,
}

impl Csv {
    fn row(&mut self, cells: &[Cell]) -> Result<(), Failure> {
        let names: Vec<_> = cells.iter().map(|(name, _)| *name).collect();
        if self.names.is_empty() {
            writeln!(self.out, "{}", names.join(","))?;
            self.names = names;
        } else {
            assert_eq!(self.names, names, "all rows have the same columns");
        }
        let quoted = |text: &String| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.clone(),
        };
        let cells: Vec<String> = cells.iter().map(|(_, text)| quoted(text)).collect();
        Ok(writeln!(self.out, "{}", cells.join(","))?)
    }
}

/// Table 5, and beside it the filter that has the rate, which above one half is larger.
fn filters(csv: &mut Csv) -> Result<(), Failure> {
    for (name, _, groups) in PAPER_V4 {
        for (group, keys) in ["G1", "G2"].into_iter().zip(groups) {
            for rate in RATES {
                let paper = Shape::as_published(keys, rate);
                csv.row(&[
                    ("table", name.to_owned()),
                    ("group", group.to_owned()),
                    ("prefixes", keys.to_string()),
                    ("false_positives", rate.to_string()),
                    ("m_bits", paper.bits().to_string()),
                    ("k_hashes", paper.hashes().to_string()),
                    ("expected_rate", format!("{:.4}", paper.rate(keys))),
                    ("fibula_bits", Shape::for_rate(keys, rate).bits().to_string()),
                ])?;
            }
        }
    }
    Ok(())
}

/// An engine over a table.
struct Subject<A: Addr> {
    /// What tells it from the others.
    cells: Vec<Cell>,
    prefixes: usize,
    /// `None` if the engine refused the table.
    built: Option<(Box<dyn Lookup<A>>, Duration)>,
}

/// The keys of each thread, and the oracle's answers.
struct Asked<A> {
    keys: Vec<Vec<A>>,
    expected: Vec<Vec<Hop>>,
}

/// A subject that is asked, and what is measured of it: a number for each run, none if it was refused.
struct Case<'a, A: Addr> {
    cells: Vec<Cell>,
    subject: &'a Subject<A>,
    asked: &'a Asked<A>,
    mlps: Vec<f64>,
    /// What it answered wrongly.
    wrong: Option<String>,
}

struct Experiment<'a> {
    args: &'a Args,
    cores: Vec<CoreId>,
    csv: Csv,
    outcome: Outcome,
}

impl Experiment<'_> {
    fn table(&mut self, source: &(String, Source)) -> Result<(), Failure> {
        let mut loaded = table::load_aloud(std::slice::from_ref(source), &self.args.read)?;
        if loaded.has_no_values() {
            loaded.replace_hops(table::DEFAULT_HOPS);
        }
        let family = self.args.family();
        if !loaded.families().contains(&family) {
            return Err(Failure::new(format_args!("{}: no IP{family} routes", loaded.name))
                .hint("take another table, or say --family"));
        }
        match family {
            Family::V4 => self.figure(&loaded.name, loaded.table.routes::<u32>()),
            Family::V6 => self.figure(&loaded.name, loaded.table.routes::<u128>()),
        }
    }

    fn figure<A: EngineFamily + StoredFamily + Address>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
    ) -> Result<(), Failure> {
        match self.args.figure {
            Figure::Hashes => {
                let subjects = hashes(routes)?;
                self.random(table, routes, &subjects)
            }
            Figure::Threads => self.threads(table, routes),
            Figure::Matching => {
                let traffic =
                    |percent: u8| (percent.to_string(), Traffic::Kind(Kind::Match(percent)));
                let traffic = MATCHING.map(traffic);
                self.traffic(table, routes, &["bloomfwd"], "matching_percent", &traffic)
            }
            Figure::Real => {
                let files = self.args.addresses.iter().cloned().map(Traffic::File);
                let all = [Traffic::Kind(Kind::Rnd)].into_iter().chain(files);
                let traffic: Vec<_> = all.map(|traffic| (traffic.to_string(), traffic)).collect();
                self.traffic(table, routes, &RIVALS, "traffic", &traffic)
            }
            Figure::Sizes => self.sizes(table, routes),
            Figure::Tables => {
                let subjects = named(routes, &RIVALS)?;
                self.random(table, routes, &subjects)
            }
            Figure::Levels => {
                let subjects = levels(routes, &RIVALS[1..])?;
                self.random(table, routes, &subjects)
            }
            Figure::LevelsOfTables => {
                let subjects = levels(routes, &[])?;
                self.random(table, routes, &subjects)
            }
            Figure::Filters => unreachable!("measures no table"),
        }
    }

    /// Figure 2. Speedups are those over the same engine's one thread.
    fn threads<A: EngineFamily>(&mut self, table: &str, routes: &Routes<A>) -> Result<(), Failure> {
        let cores = self.cores.len().max(1) as u32;
        let mut counts = match &self.args.threads[..] {
            [] => (0..).map(|i| 1 << i).take_while(|&n| n <= cores).collect(),
            counts => counts.to_vec(),
        };
        // Without one thread there is nothing to compare with.
        counts.push(1);
        counts.sort_unstable();
        counts.dedup();
        if counts.iter().any(|&count| count > cores) {
            note(format_args!("more threads than the {cores} cores: their rates do not add up"));
        }
        let subjects = named(routes, &["bloomfwd-baseline", "bloomfwd", "miht", "miht-batch"])?;
        let asked = |&threads: &u32| self.asked(routes, &Traffic::Kind(Kind::Rnd), threads);
        let asked: Vec<_> = counts.iter().map(asked).collect::<Result<_, _>>()?;
        let mut cases = Vec::new();
        for (threads, asked) in counts.iter().zip(&asked) {
            let cells = [("threads", threads.to_string())];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, asked, &cells)));
        }
        self.measure(&mut cases);
        let one = cases.iter_mut().filter(|case| case.asked.keys.len() == 1);
        let alone: Vec<_> = one.map(|case| (case.subject.cells.clone(), case.median())).collect();
        for case in &mut cases {
            let base = alone.iter().find(|(cells, _)| *cells == case.subject.cells);
            let speedup = base.and_then(|(_, base)| Some(case.median()? / (*base)?));
            case.cells.push(("speedup", number(speedup)));
        }
        self.write(table, cases)
    }

    /// Figures 3 and 4: engines over one table, by traffic.
    fn traffic<A: EngineFamily>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        engines: &[&str],
        column: &'static str,
        traffic: &[(String, Traffic)],
    ) -> Result<(), Failure> {
        let subjects = named(routes, engines)?;
        let asked = traffic.iter().map(|(_, traffic)| self.asked(routes, traffic, 1));
        let asked: Vec<_> = asked.collect::<Result<_, _>>()?;
        let mut cases = Vec::new();
        for ((name, _), asked) in traffic.iter().zip(&asked) {
            let cells = [(column, name.clone())];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, asked, &cells)));
        }
        self.measure(&mut cases);
        self.write(table, cases)
    }

    /// Figure 5.
    fn sizes<A: EngineFamily>(&mut self, table: &str, routes: &Routes<A>) -> Result<(), Failure> {
        let mut all = Vec::new();
        for parts in PARTS {
            let routes = part(routes, parts, self.args.seed);
            let asked = self.asked(&routes, &Traffic::Kind(Kind::Rnd), 1)?;
            all.push((parts, named(&routes, &["bloomfwd"])?, asked));
        }
        let mut cases = Vec::new();
        for (parts, subjects, asked) in &all {
            let cells = [("part", format!("1/{parts}"))];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, asked, &cells)));
        }
        self.measure(&mut cases);
        self.write(table, cases)
    }

    /// The other figures: uniformly random addresses, one table.
    fn random<A: EngineFamily>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        subjects: &[Subject<A>],
    ) -> Result<(), Failure> {
        let asked = self.asked(routes, &Traffic::Kind(Kind::Rnd), 1)?;
        let mut cases = subjects.iter().map(|subject| Case::new(subject, &asked, &[])).collect();
        self.measure(&mut cases);
        self.write(table, cases)
    }

    fn asked<A: Addr>(
        &self,
        routes: &Routes<A>,
        traffic: &Traffic,
        threads: u32,
    ) -> Result<Asked<A>, Failure> {
        let (count, seed) = (self.args.keys as usize, self.args.seed);
        let keys = traffic.keys(routes, count, threads as usize, seed)?;
        if keys.is_empty() {
            return Err(Failure::new(format_args!("{traffic}: no IP{} addresses", A::FAMILY)));
        }
        let oracle = Oracle::new(routes);
        let expected = keys.iter().map(|keys| answers(&oracle, keys)).collect();
        Ok(Asked { keys, expected })
    }

    /// Checks all answers, then times the cases, turn by turn. Wrong ones are left out.
    fn measure<A: Addr>(&mut self, cases: &mut Vec<Case<'_, A>>) {
        let batch = self.args.batch as usize;
        for case in &mut *cases {
            let Some((engine, _)) = &case.subject.built else { continue };
            let pairs = case.asked.keys.iter().zip(&case.asked.expected);
            let mut wrong = pairs.flat_map(|(keys, right)| differences(engine, keys, right, batch));
            case.wrong = wrong.next();
        }
        self.leave_wrong_out(cases);
        for _ in 0..self.args.runs {
            for case in &mut *cases {
                let Some((engine, _)) = &case.subject.built else { continue };
                let Asked { keys, expected } = case.asked;
                let keys: Vec<&[A]> = keys.iter().map(Vec::as_slice).collect();
                let run = measure::run(engine, &keys, Mode::Batch(batch), &self.cores);
                let sums = expected.iter().map(|hops| measure::fold(hops));
                if run.checksum != sums.fold(0, u32::wrapping_add) {
                    case.wrong = Some("other hops when timed than before".to_owned());
                }
                case.mlps.push(rate(keys.iter().map(|keys| keys.len()).sum(), run.time));
            }
        }
        self.leave_wrong_out(cases);
    }

    fn leave_wrong_out<A: Addr>(&mut self, cases: &mut Vec<Case<'_, A>>) {
        for case in cases.extract_if(.., |case| case.wrong.is_some()) {
            self.outcome = Outcome::Negative;
            let cells = case.cells.iter().map(|(_, text)| text.as_str());
            let (cells, wrong) = (cells.collect::<Vec<_>>().join(" "), case.wrong);
            note(format_args!("{cells} is wrong and left out: {}", wrong.unwrap_or_default()));
        }
    }

    fn write<A: Addr>(&mut self, table: &str, cases: Vec<Case<'_, A>>) -> Result<(), Failure> {
        for mut case in cases {
            let (rate, built) = (case.median(), case.subject.built.as_ref());
            let bytes = built.map(|(engine, _)| engine.memory().total().to_string());
            let mut cells = vec![
                ("table", table.to_owned()),
                ("family", A::FAMILY.name().to_owned()),
                ("prefixes", case.subject.prefixes.to_string()),
                ("isa", Isa::detect().name().to_owned()),
            ];
            cells.extend(case.cells);
            cells.extend([
                ("mlps", number(rate)),
                ("mlps_min", number(case.mlps.first().copied())),
                ("mlps_max", number(case.mlps.last().copied())),
                ("memory_bytes", bytes.unwrap_or_default()),
                ("build_ms", number(built.map(|(_, time)| time.as_secs_f64() * 1e3))),
            ]);
            self.csv.row(&cells)?;
        }
        Ok(())
    }
}

impl<A: Addr> Subject<A> {
    fn new(
        cells: Vec<Cell>,
        routes: &Routes<A>,
        built: Option<(impl Lookup<A> + 'static, Duration)>,
    ) -> Self {
        let boxed = |engine| Box::new(engine) as Box<dyn Lookup<A>>;
        let built = built.map(|(engine, time)| (boxed(engine), time));
        Self { cells, prefixes: routes.len(), built }
    }
}

impl<'a, A: Addr> Case<'a, A> {
    fn new(subject: &'a Subject<A>, asked: &'a Asked<A>, more: &[Cell]) -> Self {
        let cells = subject.cells.iter().chain(more).cloned().collect();
        Self { cells, subject, asked, mlps: Vec::new(), wrong: None }
    }

    /// The rate; sorts those of the runs.
    fn median(&mut self) -> Option<f64> {
        (!self.mlps.is_empty()).then(|| median(&mut self.mlps))
    }
}

/// The subjects of figure 1.
fn hashes<A: EngineFamily + Address>(routes: &Routes<A>) -> Result<Vec<Subject<A>>, Failure> {
    let pairs = HASHES.into_iter().flat_map(|filter| HASHES.map(|table| Hashes { filter, table }));
    let mut subjects = Vec::new();
    for (hashes, rate) in pairs.flat_map(|pair| RATES.map(|rate| (pair, rate))) {
        let config = Config { hashes: Some(hashes), false_positives: rate, ..Config::default() };
        let built = bloomfwd(routes, &config)?;
        let keys = built.as_ref().map_or(Vec::new(), |(engine, _)| engine.keys());
        let shapes = keys.iter().map(|&keys| Shape::for_rate(keys, rate));
        let cells = vec![
            ("filter_hash", hashes.filter.name().to_owned()),
            ("table_hash", hashes.table.name().to_owned()),
            ("false_positives", rate.to_string()),
            ("level_prefixes", spaced(&keys)),
            ("level_bits", spaced(shapes.clone().map(Shape::bits))),
            ("level_hashes", spaced(shapes.map(Shape::hashes))),
        ];
        subjects.push(Subject::new(cells, routes, built));
    }
    Ok(subjects)
}

/// The subjects of figures 7 and 8, with what the paper's table 4 says of them, and the rivals.
fn levels<A: EngineFamily + Address>(
    routes: &Routes<A>,
    rivals: &[&str],
) -> Result<Vec<Subject<A>>, Failure> {
    let mut subjects = Vec::new();
    let every = ("none".to_owned(), Expansion::at(routes, 0, lengths(routes)));
    let chosen = LEVELS.map(|levels| (levels.to_string(), Expansion::of(routes, levels.into())));
    for (levels, expansion) in [every].into_iter().chain(chosen) {
        let Expansion { lengths, estimated, actual } = expansion;
        let cells = vec![
            ("engine", "bloomfwd".to_owned()),
            ("levels", levels),
            ("lengths", spaced(&lengths)),
            ("estimated_prefixes", estimated.to_string()),
            ("actual_prefixes", actual.to_string()),
        ];
        let built = if actual <= EXPANSION_MAX * routes.len() as u64 {
            let levels = Levels::At { direct: 0, lengths };
            bloomfwd(routes, &Config { levels, ..Config::default() })?
        } else {
            note(format_args!("not measured: {} levels make {actual} prefixes", lengths.len()));
            None
        };
        subjects.push(Subject::new(cells, routes, built));
    }
    for mut subject in named(routes, rivals)? {
        let none = ["levels", "lengths", "estimated_prefixes", "actual_prefixes"];
        subject.cells.extend(none.map(|name| (name, String::new())));
        subjects.push(subject);
    }
    Ok(subjects)
}

/// The engines of these names.
fn named<A: EngineFamily>(routes: &Routes<A>, names: &[&str]) -> Result<Vec<Subject<A>>, Failure> {
    let subject = |name: &&str| {
        let entry = find::<A>(name).expect("the registry has the engine");
        let built = timed(|| (entry.build)(routes, Isa::detect()))?;
        Ok(Subject::new(vec![("engine", (*name).to_owned())], routes, built))
    };
    names.iter().map(subject).collect()
}

/// Bloomfwd over the table; none, with a note, if it refuses it.
fn bloomfwd<A: Address>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<Option<(Bloomfwd<A>, Duration)>, Failure> {
    timed(|| Bloomfwd::build(routes, config))
}

fn timed<E>(
    build: impl FnOnce() -> Result<E, BuildError>,
) -> Result<Option<(E, Duration)>, Failure> {
    let started = Instant::now();
    match build() {
        Ok(engine) => Ok(Some((engine, started.elapsed()))),
        Err(error @ BuildError::Limit { .. }) => {
            note(format_args!("not measured: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The lengths that the routes have, and the one that there has to be.
fn lengths<A: Address>(routes: &Routes<A>) -> Vec<u8> {
    let top = A::BITS.min(64);
    let mut lengths: Vec<u8> = routes.iter().map(|route| route.prefix.len()).collect();
    lengths.retain(|len| (1..top).contains(len));
    lengths.push(top);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// One of so many parts of the routes, chosen at random.
fn part<A: Addr>(routes: &Routes<A>, parts: usize, seed: u64) -> Routes<A> {
    let mut rng = Rng::new(seed);
    let (mut left, mut needed) = (routes.len(), routes.len() / parts);
    let chosen = routes.iter().filter(|_| {
        let take = rng.below(left as u64) < needed as u64;
        (left, needed) = (left - 1, needed - usize::from(take));
        take
    });
    chosen.collect()
}

fn spaced<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn number(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| rounded(number).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_testkit::tables;

    #[test]
    fn parts_are_as_large_as_asked_for() {
        let routes = tables::dense::<u32>(1, 1000);
        for parts in PARTS {
            let part = part(&routes, parts, 7);
            assert_eq!(part.len(), routes.len() / parts);
            assert!(part.iter().all(|route| routes.get(route.prefix) == Some(route.hop)));
        }
    }
}
