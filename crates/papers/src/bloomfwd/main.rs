//! The experiments of Bloomfwd's paper, each as a CSV.
#![forbid(unsafe_code)]

mod cases;
mod choices;
mod subjects;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use core_affinity::CoreId;
use fibula_core::{Addr, Family, Routes};

use fibula::sources::Source;
use fibula_baselines::bloomfwd::Address;
use fibula_filter::Parameters;
use fibula_papers::out;
use fibula_rib::Pod;
use fibula_testkit::measure::TrafficInput;
use fibula_testkit::traffic::Traffic;

use cases::{Case, Subject, number};
use out::{Csv, Failure, ended, note, parse_family};
use subjects::{hashes, levels, named, part};

const EXAMPLES: &str = "\
Examples:
  bloomfwd --figure 1 --csv bloomfwd-fig1.csv
  bloomfwd --figure 4 --table table.fib --addresses ipsum.txt,capture.txt
  bloomfwd --figure 8 --table one.txt,two.txt
  bloomfwd --figure table5
  bloomfwd --figure choices --table gen:v6:2024:200000:1

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
  choices the levels of expansion by the paper's greedy choice, those with the fewest prefixes, and those with the
          least expected time by a model of cost whose constants are measured first (modelled_ns); not in the paper

Figures 1 to 6 are of IPv4, 7, 8 and choices of IPv6, unless --family says otherwise. Unless --table does,
tables are generated with as many prefixes as the paper's have. A table is measured by itself.

Every engine answers all keys before it is timed, singly and in batches, and is compared with the
oracle; a wrong one is left out, and the exit code is 1. All that is measured over a table takes turns
in each run, and mlps is the median. What makes too many prefixes, as few levels do, has no rate.";

/// Repeat the experiments of Bloomfwd's paper
#[derive(Parser, Debug)]
#[command(name = "bloomfwd", after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// The experiment
    #[arg(long, value_enum, value_name = "1..8|table5|choices")]
    figure: Figure,
    /// Tables: snapshots, table files, gen:v4:2024:900000:1
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// Address family (default: the paper's)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// Figure 4: files of real addresses, one at the beginning of each line, in the order of the lookups
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
    #[value(name = "choices")]
    Choices,
}

/// The rates of false positives of figure 1 and table 5.
const RATES: [f64; 5] = [0.01, 0.1, 0.3, 0.6, 0.9];
/// The percentages of figure 3.
const MATCHING: [u8; 6] = [0, 20, 40, 60, 80, 100];
/// Figure 5 measures one part of so many.
const PARTS: [usize; 5] = [16, 8, 4, 2, 1];
/// The engines that the paper compares, its form for a CPU, and our form of MIHT.
const RIVALS: [&str; 4] = ["bloomfwd", "bloomfwd-compiled", "miht", "miht-batch"];
/// Those of other schemes.
const OTHERS: [&str; 2] = ["miht", "miht-batch"];

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
            Figure::Levels | Figure::LevelsOfTables | Figure::Choices => Family::V6,
            _ => Family::V4,
        };
        self.family.unwrap_or(papers)
    }

    /// The requested tables, or tables like the paper's.
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
            true => Err(format!("{option} is for --figure {name}")),
            false => Ok(()),
        };
        only(!self.addresses.is_empty(), "--addresses", Figure::Real, "4")?;
        only(!self.threads.is_empty(), "--threads", Figure::Threads, "2")?;
        if self.figure == Figure::Real && self.addresses.is_empty() {
            return Err("figure 4 compares with real addresses, and there are none: \
                        name files of them with --addresses"
                .into());
        }
        // Better now than after the random ones.
        for path in &self.addresses {
            File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if self.figure == Figure::Filters && !(self.table.is_empty() && self.family.is_none()) {
            return Err(
                "table5 is of the paper's own tables: leave --table and --family out".into()
            );
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    ended("bloomfwd", run(&Args::parse()))
}

/// Whether something was wrong.
fn run(args: &Args) -> Result<bool, Failure> {
    args.check()?;
    let tables = Source::parse_list(&args.tables())?;
    let csv = Csv::create(&args.csv)?;
    let mut experiment =
        Experiment { args, cores: fibula_testkit::measure::cores(), csv, is_wrong: false };
    if args.figure == Figure::Filters {
        filters(&mut experiment.csv)?;
    } else {
        for source in &tables {
            experiment.table(source)?;
        }
    }
    experiment.csv.finish()?;
    Ok(experiment.is_wrong)
}

/// Table 5, and the filter that has the rate, which is larger above one half.
fn filters(csv: &mut Csv) -> Result<(), Failure> {
    for (name, _, groups) in PAPER_V4 {
        for (group, keys) in ["G1", "G2"].into_iter().zip(groups) {
            for rate in RATES {
                let paper = Parameters::as_published(keys, rate);
                csv.row(&[
                    ("table", name.to_owned()),
                    ("group", group.to_owned()),
                    ("prefixes", keys.to_string()),
                    ("false_positives", rate.to_string()),
                    ("m_bits", paper.bits().to_string()),
                    ("k_hashes", paper.hashes().to_string()),
                    ("expected_rate", format!("{:.4}", paper.rate(keys))),
                    ("fibula_bits", Parameters::for_rate(keys, rate).bits().to_string()),
                ])?;
            }
        }
    }
    Ok(())
}

struct Experiment<'a> {
    args: &'a Args,
    cores: Vec<CoreId>,
    csv: Csv,
    /// An engine was wrong, and left out.
    is_wrong: bool,
}

impl Experiment<'_> {
    fn table(&mut self, source: &(String, Source)) -> Result<(), Failure> {
        let (name, table) = (&source.0, out::table(source)?);
        let family = self.args.family();
        let has_routes = match family {
            Family::V4 => !table.v4.is_empty(),
            Family::V6 => !table.v6.is_empty(),
        };
        if !has_routes {
            let advice = "take another table, or set --family";
            return Err(format!("{name}: no IP{family} routes; {advice}").into());
        }
        match family {
            Family::V4 => self.figure(name, table.routes::<u32>()),
            Family::V6 => self.figure(name, table.routes::<u128>()),
        }
    }

    fn figure<A: Addr + Pod + Address>(
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
                let traffic = |percent: u8| {
                    (percent.to_string(), TrafficInput::Pattern(Traffic::Match(percent)))
                };
                let traffic = MATCHING.map(traffic);
                self.traffic(table, routes, &["bloomfwd"], "matching_percent", &traffic)
            }
            Figure::Real => {
                let files = self.args.addresses.iter().cloned().map(TrafficInput::File);
                let all = [TrafficInput::Pattern(Traffic::Rnd)].into_iter().chain(files);
                let traffic: Vec<_> = all.map(|traffic| (traffic.to_string(), traffic)).collect();
                self.traffic(table, routes, &RIVALS, "traffic", &traffic)
            }
            Figure::Sizes => self.sizes(table, routes),
            Figure::Tables => {
                let subjects = named(routes, &RIVALS)?;
                self.random(table, routes, &subjects)
            }
            Figure::Levels => {
                let subjects = levels(routes, &OTHERS)?;
                self.random(table, routes, &subjects)
            }
            Figure::LevelsOfTables => {
                let subjects = levels(routes, &[])?;
                self.random(table, routes, &subjects)
            }
            Figure::Choices => self.choices(table, routes),
            Figure::Filters => unreachable!("measures no table"),
        }
    }

    /// Figure 2. Speedups are those over the same engine's one thread.
    fn threads<A: Addr>(&mut self, table: &str, routes: &Routes<A>) -> Result<(), Failure> {
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
        let engines = ["bloomfwd-baseline", "bloomfwd", "bloomfwd-compiled", "miht", "miht-batch"];
        let subjects = named(routes, &engines)?;
        let workload =
            |&threads: &u32| self.workload(routes, &TrafficInput::Pattern(Traffic::Rnd), threads);
        let workload: Vec<_> = counts.iter().map(workload).collect::<Result<_, _>>()?;
        let mut cases = Vec::new();
        for (threads, workload) in counts.iter().zip(&workload) {
            let cells = [("threads", threads.to_string())];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, workload, &cells)));
        }
        self.measure(&mut cases);
        let one = cases.iter_mut().filter(|case| case.workload.keys.len() == 1);
        let alone: Vec<_> = one.map(|case| (case.subject.cells.clone(), case.median())).collect();
        for case in &mut cases {
            let base = alone.iter().find(|(cells, _)| *cells == case.subject.cells);
            let speedup = base.and_then(|(_, base)| Some(case.median()? / (*base)?));
            case.cells.push(("speedup", number(speedup)));
        }
        self.write(table, cases)
    }

    /// Figures 3 and 4: engines over one table, by traffic.
    fn traffic<A: Addr>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        engines: &[&str],
        column: &'static str,
        traffic: &[(String, TrafficInput)],
    ) -> Result<(), Failure> {
        let subjects = named(routes, engines)?;
        let workload = traffic.iter().map(|(_, traffic)| self.workload(routes, traffic, 1));
        let workload: Vec<_> = workload.collect::<Result<_, _>>()?;
        let mut cases = Vec::new();
        for ((name, _), workload) in traffic.iter().zip(&workload) {
            let cells = [(column, name.clone())];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, workload, &cells)));
        }
        self.measure(&mut cases);
        self.write(table, cases)
    }

    /// Figure 5.
    fn sizes<A: Addr>(&mut self, table: &str, routes: &Routes<A>) -> Result<(), Failure> {
        let mut all = Vec::new();
        for parts in PARTS {
            let routes = part(routes, parts, self.args.seed);
            let workload = self.workload(&routes, &TrafficInput::Pattern(Traffic::Rnd), 1)?;
            all.push((parts, named(&routes, &["bloomfwd"])?, workload));
        }
        let mut cases = Vec::new();
        for (parts, subjects, workload) in &all {
            let cells = [("part", format!("1/{parts}"))];
            cases.extend(subjects.iter().map(|subject| Case::new(subject, workload, &cells)));
        }
        self.measure(&mut cases);
        self.write(table, cases)
    }

    /// The other figures: uniformly random addresses, one table.
    fn random<A: Addr>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        subjects: &[Subject<A>],
    ) -> Result<(), Failure> {
        let workload = self.workload(routes, &TrafficInput::Pattern(Traffic::Rnd), 1)?;
        let mut cases = subjects.iter().map(|subject| Case::new(subject, &workload, &[])).collect();
        self.measure(&mut cases);
        self.write(table, cases)
    }
}
