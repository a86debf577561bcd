//! The arguments of `fibula bench`.

use clap::builder::ArgPredicate;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use fibula_core::{Family, grouped};
use fibula_testkit::measure::TrafficInput;

use super::filter;
use super::isa::{IsaChoice, parse_isa};
use crate::engines;
use crate::failure::Failure;
use crate::source::{ReadArgs, parse_family};

const EXAMPLES: &str = "\
Examples:
  fibula bench
  fibula bench --table gen:v4:2024:900000:1 --engines dxr,radix --traffic RND,ZIPF
  fibula bench --table table.fib --engines all --family v6 --batch 64,256 --threads 4 --json
  fibula bench --table embedded --engines auto --traffic file:addresses.txt
  fibula bench --table gen:v4:2024:900000:1 --engines auto --threads 1,2,4,8
  fibula bench --table gen:v4:2024:900000:1 --updates 1,100
  fibula bench --table table.fib --device opencl:0 --with-cpu --threads 8

Before any timing, each engine's answers to all keys, singly and in batches, are compared with the
oracle's. A wrong engine is not timed, and the exit code is 1. If nothing was measured, it is 2.

Traffic:
  RND      uniform (IPv4 without reserved space, IPv6 in 2000::/3)
  PFX      uniform over the table's prefixes, random host bits
  ZIPF     a million PFX keys, drawn by Zipf's law (s = 1.0)
  REP      each RND key 16 times in a row
  SEQ      RND keys looked up one by one, each waiting for the previous result (batch 1)
  WORST    as PFX, of the 1,024 deepest prefixes: the longest ones, of equally long ones those with
           the most prefixes above them
  MATCHp   p % of the keys have a route, the others have none
  file:P   the addresses in file P, repeated

Threads: --threads 1,2,4 measures with each of these numbers. With --spread own each thread has its
own keys, as if each core served a queue of the network card; with --spread dispatch one more thread
hands batches to the N lookup threads through bounded queues. The report has the rate of all
threads, the rate of one thread alone with its own keys, measured in the same runs, and the ratio of
the two. --keys-per-prefix 100 makes the keys of each thread as many as a hundred times the table's
prefixes.

Updates: --updates 1,100 measures patches instead of lookups: how long engines that are patched in
place take for a changed prefix, one prefix at a time and 100 together. Half of the changes give a
route another hop, a quarter withdraw a route, a quarter add one again. The time does not include
the change of the routes themselves, or a build that a patch requests. Afterwards all changed
prefixes are compared with the oracle.

Accelerators: --device opencl:0 measures the engines that have a kernel: the CPU's engine in batches
of 256, the device's time for kernels, the device with all copies, and with --with-cpu the device
and the CPU's threads on one batch, which meet in it, or have shares by their rates. All hops are
compared with the oracle's. --batch is the number of keys that the device gets at a time; us/batch is
the time from the keys of one batch to its hops, with nothing else on the device. --slots 1,2,3
measures how much asynchrony gives, --shares 0,25,50,75,100 how a batch is best divided, and --passes
16 goes through the keys sixteen times. With --updates 1,10,100, it measures what is sent to the device
after so many changed prefixes, and how long that takes. --gather 64,1024,1048576 measures reads of
four bytes at random places of 64 KiB, 1 MiB and 1 GiB: the most that tables of that size allow.

dependent_ns is the latency of a lookup that waits for the previous one, over the same keys.

On Linux 6.7 and later, \"huge pages\" (JSON: huge_bytes) is the part of a table that lies on them,
for engines whose tables can be stored.";

/// Measure engines: throughput, latency, memory, build time
#[derive(ClapArgs, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", engines::list().trim_end()),
          args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub other: Option<Other>,
    /// Tables to measure: snapshots, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded (default:
    /// FIBULA_TABLE, else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    pub table: Vec<String>,
    /// Engines: names, auto, all
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = "all")]
    pub engines: Vec<String>,
    /// Address family (default: those that the table has)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    pub family: Option<Family>,
    /// Traffic: RND, PFX, ZIPF, REP, SEQ, WORST, MATCH0 to MATCH100, file:PATH
    #[arg(long, value_delimiter = ',', value_name = "KIND,...", default_value = "RND,PFX")]
    pub traffic: Vec<TrafficInput>,
    /// Number of keys in a batch; 1 looks up single keys
    #[arg(long, short, value_delimiter = ',', value_name = "N,...", default_value = "256",
          default_value_if("device", ArgPredicate::IsPresent, "1048576"),
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub batch: Vec<u32>,
    /// Lookup threads, each pinned to a core
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// How keys are distributed over the threads
    #[arg(long, value_enum, default_value = "own")]
    pub spread: Spread,
    /// Measure patches of this many changed prefixes instead of lookups
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          conflicts_with_all = ["traffic", "batch", "threads", "spread", "keys"],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub updates: Vec<u32>,
    /// Measure an accelerator beside the CPU: cuda:0, opencl:0, cpu
    #[arg(long, value_name = "NAME", conflicts_with = "spread")]
    pub device: Option<String>,
    /// Also measure the device and the CPU's threads together
    #[arg(long, requires = "device")]
    pub with_cpu: bool,
    /// Also measure the device with these shares of the keys, in percent, and the CPU's threads with the others
    #[arg(long, value_delimiter = ',', value_name = "PERCENT,...", requires = "device",
          conflicts_with = "updates", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub shares: Vec<u32>,
    /// Batches in flight on the device
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_value = "3", requires = "device",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    pub slots: Vec<u32>,
    /// Go through the keys so many times in a timed run of the device, so that it looks up more than fit into memory
    #[arg(long, value_name = "N", default_value = "1", requires = "device",
          value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub passes: u32,
    /// Measure the device's reads at random places of so many KiB instead of lookups
    #[arg(long, value_delimiter = ',', value_name = "KIB,...", requires = "device",
          conflicts_with_all = ["updates", "with_cpu", "shares"],
          value_parser = clap::value_parser!(u32).range(1..=1 << 21))]
    pub gather: Vec<u32>,
    /// Timed runs; the median is printed. Within a run the engines take turns
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Keys for each thread and run
    #[arg(long, value_name = "N", default_value_t = 1 << 22,
          value_parser = clap::value_parser!(u32).range(1..=MAX_KEYS as i64))]
    pub keys: u32,
    /// Keys for each thread and run, as a multiple of the table's prefixes
    #[arg(long, value_name = "N", conflicts_with_all = ["keys", "updates"],
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keys_per_prefix: Option<u32>,
    /// Seed of the keys
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Instruction sets to measure: scalar, avx2, avx512, neon, all (default: the best)
    #[arg(long, value_delimiter = ',', value_name = "ISA,...", value_parser = parse_isa)]
    pub isa: Vec<IsaChoice>,
    /// Print JSON instead of tables: machine, commit and command in "stamp", measurements in "rows"
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

impl Args {
    /// The largest number of lookup threads: that many parts of keys are made.
    pub fn most_threads(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1) as usize
    }

    /// The number of keys of each thread for a table of so many prefixes.
    ///
    /// # Errors
    /// If that is more than `--keys` may be.
    pub fn keys_of(&self, prefixes: usize) -> Result<usize, Failure> {
        let Some(each) = self.keys_per_prefix else { return Ok(self.keys as usize) };
        match prefixes.saturating_mul(each as usize) {
            keys @ ..=MAX_KEYS => Ok(keys),
            _ => Err(Failure::new(format_args!(
                "{each} keys for each of {} prefixes are more than {}",
                grouped(prefixes as u64),
                grouped(MAX_KEYS as u64)
            ))
            .hint("give a smaller --keys-per-prefix, or --keys")),
        }
    }
}

/// The most keys of a thread.
const MAX_KEYS: usize = 1 << 28;

/// Measurements other than engines.
#[derive(Subcommand, Debug)]
pub enum Other {
    Filter(filter::Args),
}

/// How keys come to the lookup threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Each thread has its own keys
    Own,
    /// An additional thread hands out batches
    Dispatch,
}

impl Spread {
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Dispatch => "dispatch",
        }
    }
}
