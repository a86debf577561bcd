//! A router whose packets displace the table from the caches: which engine, and which k of DXR, is best there?
#![forbid(unsafe_code)]

mod router;
mod stream;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;
use fibula::sources::Source;
use fibula_core::{Addr, Family, Hop, Lookup, Routes};
use fibula_engines::BoxedEngine;
use fibula_papers::clock::timed;
use fibula_papers::lookups::{in_batches, right_engines};
use fibula_papers::out::{Csv, Failure, ended, note, parse_family, table};
use fibula_simd::Isa;
use fibula_testkit::Oracle;
use fibula_testkit::measure::{answers, cores, differences, fold, median, rounded};

use router::{BURST, Bench, Nothing, Passed, Router, destinations};
use stream::Stream;

const EXAMPLES: &str = "\
Examples:
  displaced --csv router.csv
  displaced --family v6 --bytes 64,1500
  displaced --table gen:v4:2024:20000:1 --packets 10000 --runs 1 --neighbour none

A thread receives bursts of 64 packets, forwards them as `fibula route` does, and sends them. To receive is to copy a
packet from 16 MiB of memory into a slot, to send is to copy it into another 16 MiB, and a slot is used again after
4,096 packets: so a packet of 1,500 bytes displaces 4 times as many, as with ports of the system that copy. Each
packet of a run has another destination, drawn from the table's prefixes. With the neighbour `stream` a thread on
a second core adds 1 to each word of an array meanwhile, and so takes memory bandwidth and the cache that cores share.

Engine none takes the hop from the address. lookup_ns is the difference to it; alone_ns are the same lookups in
bursts of 64 without packets. Times are those of the router's thread, medians of the runs, in which all engines
take turns. Before that the frames that each engine sends are compared with the oracle's answers, and each
run's sum of neighbours, too; a wrong engine is left out, and the exit code is 1.

Columns:
  mpps, mpps_min, mpps_max    million packets a second: the median of the runs, the slowest and the fastest
  forward_ns                  nanoseconds a packet
  lookup_ns                   those of the lookup: the difference to the engine none
  lookup_ns_best              the same of the fastest runs, on which neighbours of a shared machine had the least part
  alone_ns                    nanoseconds for the lookup where there are no packets
  neighbour_gbs               gigabytes a second that the neighbour read and wrote meanwhile
  memory_bytes                the engine's tables";

/// Measure lookups in a router whose packets displace the table from the caches
#[derive(Parser, Debug)]
#[command(name = "displaced", after_help = EXAMPLES, max_term_width = 116)]
struct Args {
    /// Address family
    #[arg(long, short, value_name = "v4|v6", default_value = "v4", value_parser = parse_family)]
    family: Family,
    /// Table (default: gen:v4:2024:900000:1 or gen:v6:2024:200000:1)
    #[arg(long, short, value_name = "TABLE")]
    table: Option<String>,
    /// Engines (default: dxr16 to dxr22, runmap, dir24-8, dir24-8-prefetch, poptrie18; or planb, wideleaf, poptrie18)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engines: Vec<String>,
    /// Bytes of the frames
    #[arg(long, value_delimiter = ',', value_name = "N,...", default_value = "64,256,512,1024,1500",
          value_parser = clap::value_parser!(u16).range(64..=1514))]
    bytes: Vec<u16>,
    /// Neighbours on a second core: none, stream
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", default_value = "none,stream",
          value_parser = ["none", "stream"])]
    neighbour: Vec<String>,
    /// Megabytes of the array that the neighbour streams through
    #[arg(long, value_name = "N", default_value = "512",
          value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    array: u32,
    /// Packets of a run
    #[arg(long, value_name = "N", default_value_t = 1 << 18,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    packets: u32,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "15",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the destinations
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

/// The default measurements.
const ENGINES_V4: [&str; 11] = [
    "dxr16",
    "dxr17",
    "dxr18",
    "dxr19",
    "dxr20",
    "dxr21",
    "dxr22",
    "runmap",
    "dir24-8",
    "dir24-8-prefetch",
    "poptrie18",
];
const ENGINES_V6: [&str; 3] = ["planb", "wideleaf", "poptrie18"];
/// The engine that is none.
const NONE: &str = "none";
/// Packets whose frames are compared with the expected ones.
const SAMPLE: usize = 1 << 15;
/// A part of the packets warms the tables up before each timed run.
const WARM_UP: usize = 8;

fn main() -> ExitCode {
    ended("displaced", run(&Args::parse()))
}

/// Whether something was wrong.
fn run(args: &Args) -> Result<bool, Failure> {
    match args.family {
        Family::V4 => measure::<u32>(args, "gen:v4:2024:900000:1", &ENGINES_V4),
        Family::V6 => measure::<u128>(args, "gen:v6:2024:200000:1", &ENGINES_V6),
    }
}

/// An engine with its results.
struct Case<A: Addr> {
    name: String,
    engine: BoxedEngine<A>,
    /// The answers for all packets.
    hops: Vec<Hop>,
    /// What a run must give.
    expected: Passed,
    forward: Vec<f64>,
    alone: Vec<f64>,
    stream: Vec<f64>,
    is_wrong: bool,
}

fn measure<A: Addr>(args: &Args, usual: &str, engines: &[&str]) -> Result<bool, Failure> {
    let name = args.table.clone().unwrap_or_else(|| usual.to_owned());
    let sources = Source::parse_list(std::slice::from_ref(&name))?;
    let source = sources.first().ok_or("no table")?;
    let table = table(source)?;
    let routes = table.routes::<A>();
    let keys = match routes.is_empty() {
        true => Vec::new(),
        false => destinations(routes, args.packets as usize, args.seed),
    };
    if keys.is_empty() {
        let family = A::FAMILY;
        return Err(format!(
            "{name}: no IP{family} prefix that may be forwarded to; take another table"
        )
        .into());
    }
    let (mut cases, mut is_wrong) = cases(args, routes, &keys, engines)?;
    let mut csv = Csv::create(&args.csv)?;
    for bytes in &args.bytes {
        let bench = Bench::new(&keys, routes.hop_count(), usize::from(*bytes));
        is_wrong |= check(&bench, &mut cases);
        for neighbour in &args.neighbour {
            if neighbour == "stream" && cores().len() < 2 {
                note("stream: the neighbour needs a second core, and there is one; left out");
                continue;
            }
            turns(args, &bench, &keys, &mut cases, neighbour == "stream");
            is_wrong |= leave_wrong_out(&mut cases);
            let none = cases.iter_mut().find(|case| case.name == NONE);
            let none = none.map(|none| (median(&mut none.forward), none.forward[0]));
            for case in &mut cases {
                let forward = median(&mut case.forward);
                let ends = (case.forward.first().copied(), case.forward.last().copied());
                let number = |number: f64| rounded(number).to_string();
                let rate = |ns: Option<f64>| ns.map_or(String::new(), |ns| number(1e3 / ns));
                let none = none.filter(|_| case.name != NONE);
                let lookup = none.map(|(none, _)| number(forward - none));
                let best = none.zip(ends.0).map(|((_, none), best)| number(best - none));
                csv.row(&[
                    ("table", name.clone()),
                    ("family", A::FAMILY.name().to_owned()),
                    ("prefixes", routes.len().to_string()),
                    ("isa", Isa::detect().name().to_owned()),
                    ("engine", case.name.clone()),
                    ("bytes", bytes.to_string()),
                    ("neighbour", neighbour.clone()),
                    ("packets", keys.len().to_string()),
                    ("mpps", rate(Some(forward))),
                    ("mpps_min", rate(ends.1)),
                    ("mpps_max", rate(ends.0)),
                    ("forward_ns", number(forward)),
                    ("lookup_ns", lookup.unwrap_or_default()),
                    ("lookup_ns_best", best.unwrap_or_default()),
                    ("alone_ns", number(median(&mut case.alone))),
                    ("neighbour_gbs", number(median(&mut case.stream))),
                    ("memory_bytes", case.engine.memory().total().to_string()),
                ])?;
            }
        }
    }
    csv.finish()?;
    Ok(is_wrong)
}

/// The engines whose answers for all keys are right. The second is whether one was not.
fn cases<A: Addr>(
    args: &Args,
    routes: &Routes<A>,
    keys: &[A],
    usual: &[&str],
) -> Result<(Vec<Case<A>>, bool), Failure> {
    let names: Vec<&str> = match args.engines.is_empty() {
        true => usual.to_vec(),
        false => args.engines.iter().map(String::as_str).collect(),
    };
    let right = answers(&Oracle::new(routes), keys);
    let mut of_nothing = vec![Hop::NONE; keys.len()];
    Nothing.lookup_batch(keys, &mut of_nothing);
    let case = |name: &str, engine, hops| Case {
        name: name.to_owned(),
        engine,
        hops,
        expected: Passed::default(),
        forward: Vec::new(),
        alone: Vec::new(),
        stream: Vec::new(),
        is_wrong: false,
    };
    let nothing: BoxedEngine<A> = Box::new(Nothing);
    let mut cases = vec![case(NONE, nothing, of_nothing)];
    let (engines, is_wrong) = right_engines(&names, routes, |engine| {
        differences(engine, keys, &right, BURST).into_iter().next()
    })?;
    cases.extend(engines.into_iter().map(|(name, engine)| case(name, engine, right.clone())));
    Ok((cases, is_wrong))
}

/// Compares the frames of a sample, and leaves those out whose frames differ. Whether there were such.
fn check<A: Addr>(bench: &Bench, cases: &mut Vec<Case<A>>) -> bool {
    let pool = bench.pool();
    let mut router = Router::new(bench, &pool);
    for case in &mut *cases {
        case.expected = bench.expected(&case.hops, false);
        let sample = &case.hops[..SAMPLE.min(case.hops.len())];
        let (sent, _) = router.pass(&*case.engine, sample.len(), true);
        case.is_wrong = sent != bench.expected(sample, true);
    }
    router.end();
    leave_wrong_out(cases)
}

fn leave_wrong_out<A: Addr>(cases: &mut Vec<Case<A>>) -> bool {
    let before = cases.len();
    for case in cases.extract_if(.., |case| case.is_wrong) {
        note(format_args!("{}: the router sent other packets than expected; left out", case.name));
    }
    cases.len() < before
}

/// Times all cases in turn.
fn turns<A: Addr>(args: &Args, bench: &Bench, keys: &[A], cases: &mut [Case<A>], streams: bool) {
    let (cores, stream) = (cores(), Stream::default());
    let bytes = (args.array as usize) << 20;
    thread::scope(|scope| {
        if streams {
            let core = cores.get(1).copied();
            let stream = &stream;
            scope.spawn(move || stream.run(bytes, core));
            stream.wait(1);
        }
        let router = scope.spawn(|| {
            if let Some(core) = cores.first() {
                core_affinity::set_for_current(*core);
            }
            rounds(args, bench, keys, cases, streams.then_some(&stream));
        });
        let done = router.join();
        stream.end();
        done.expect("a router that panics is an error");
    });
}

fn rounds<A: Addr>(
    args: &Args,
    bench: &Bench,
    keys: &[A],
    cases: &mut [Case<A>],
    stream: Option<&Stream>,
) {
    let pool = bench.pool();
    let mut router = Router::new(bench, &pool);
    let of_key = |time: Duration| 1e9 * time.as_secs_f64() / keys.len() as f64;
    for case in &mut *cases {
        (case.forward, case.alone, case.stream) = (Vec::new(), Vec::new(), Vec::new());
    }
    // The memory that packets pass through is the system's until it is written for the first time.
    if let Some(case) = cases.first() {
        router.pass(&*case.engine, keys.len(), false);
    }
    for _ in 0..args.runs {
        for case in &mut *cases {
            router.pass(&*case.engine, keys.len() / WARM_UP, false);
            let mut pass = || {
                let (sent, time) = router.pass(&*case.engine, keys.len(), false);
                case.is_wrong |= sent != case.expected;
                case.forward.push(of_key(time));
            };
            match stream {
                Some(stream) => case.stream.push(stream.rate_during(pass)),
                None => pass(),
            }
        }
        for case in &mut *cases {
            in_batches(&*case.engine, &keys[..keys.len() / WARM_UP], BURST);
            let (sum, time) = timed(|| in_batches(&*case.engine, keys, BURST));
            case.is_wrong |= sum != fold(&case.hops);
            case.alone.push(of_key(time));
        }
    }
    router.end();
}
