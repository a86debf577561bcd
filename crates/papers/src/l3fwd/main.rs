//! The router compared with DPDK's own tables, on the same virtual devices: packets a second on one core.
#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the program planb uses the rest")]
#[path = "../planb/devices.rs"]
mod devices;
#[allow(dead_code, reason = "the program planb uses the rest")]
#[path = "../planb/router.rs"]
mod router;
#[allow(dead_code, reason = "the program planb uses the rest")]
#[path = "../planb/shape.rs"]
mod shape;

use std::array;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use fibula::sources::Source;
use fibula_core::{Addr, Family};
use fibula_engines::BoxedEngine;
use fibula_papers::out::{Csv, Failure, ended, note, parse_family, table};
use fibula_router::pipeline::ThreadLayout;
use fibula_router::port::dpdk;
use fibula_simd::Isa;
use fibula_testkit::measure::{median, rounded};
use peer_dpdk::{self as peer, Device, FRAME, NEIGHBOURS, Scheme, Table};

use devices::Traffic;
use router::{Bench, Subject};
use shape::Form;

const EXAMPLES: &str = "\
Examples:
  echo 512 > /proc/sys/vm/nr_hugepages; l3fwd; l3fwd --family v6
  l3fwd --table gen:v4:2024:20000:1 --flows 10000 --seconds 0.1 --runs 1 --eal '--no-huge --no-shconf -m 1500'

All cases forward between two net_null devices, on one core, 64-byte packets to destinations drawn from the table's
prefixes, which are written into each packet as it is received, by the same code for all. bare is a loop in C that only writes MAC
addresses, with a mempool of DPDK's own; io is fibula's pipeline with that; fibula routes. l3fwd-lpm and l3fwd-fib do
what the main loop of DPDK's example l3fwd does, in its bursts of 32, with rte_lpm or rte_fib (rte_lpm6, rte_fib6). lpm and fib
are the shortest loops in C with these tables, header checks, TTL and checksum. The cases take turns in each run,
and mpps is the median; of_bare and of_io are ratios of medians. Answers of all tables are compared with the oracle's
first; a wrong one is an error.";

/// Measure the router beside DPDK's own tables
#[derive(Parser, Debug)]
#[command(name = "l3fwd", after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// Address family
    #[arg(long, short, value_name = "v4|v6", default_value = "v4", value_parser = parse_family)]
    family: Family,
    /// The table (default: a generated one of 900,000 IPv4 or 200,000 IPv6 prefixes)
    #[arg(long, short, value_name = "TABLE")]
    table: Option<String>,
    /// fibula's engine (default: runmap or wideleaf)
    #[arg(long, short, value_name = "NAME")]
    engine: Option<String>,
    /// Packets in a burst
    #[arg(long, short, value_name = "N", default_value = "64",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,
    /// Flows
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    flows: u32,
    /// Seconds that each run is timed
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    seconds: f64,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Measure only these cases: bare, io, fibula, l3fwd-lpm, l3fwd-fib, lpm, fib
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = CASES)]
    cases: Vec<String>,
    /// Arguments of DPDK's environment
    #[arg(
        long,
        value_name = "ARGUMENTS",
        default_value = "--in-memory --force-max-simd-bitwidth=512",
        allow_hyphen_values = true
    )]
    eal: String,
    /// Where to write, - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

/// Destinations that are compared with the oracle's answers.
const SAMPLE: usize = 100_000;
/// The warm-up before the measurement, as a part of the measured time.
const WARM_UP: f64 = 0.2;
const CASES: [&str; 7] = ["bare", "io", "fibula", "l3fwd-lpm", "l3fwd-fib", "lpm", "fib"];
const FUSED: Form = Form(ThreadLayout::Fused { threads: 1 });

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.family {
        Family::V4 => measure::<u32>(&args, "gen:v4:2024:900000:1", "runmap"),
        Family::V6 => measure::<u128>(&args, "gen:v6:2024:200000:1", "wideleaf"),
    };
    ended("l3fwd", done.map(|()| false))
}

/// The forwarder between the devices.
enum Case<'a, A: Addr> {
    /// fibula's pipeline.
    Ours(Subject<'a, A>),
    /// The loop in C.
    Rival(Option<&'a Table>),
    /// The main loop of DPDK's example.
    Example(&'a Table),
}

fn measure<A: Addr>(args: &Args, usual: &str, engine: &str) -> Result<(), Failure> {
    if !(0.001..=3600.0).contains(&args.seconds) {
        return Err(format!("--seconds {}: 0.001 to 3600 are possible", args.seconds).into());
    }
    dpdk::start(&args.eal, [])?;
    let names = Source::parse_list(&[args.table.clone().unwrap_or(usual.to_owned())])?;
    let source = names.first().ok_or("a table is needed")?;
    let table = table(source)?;
    let routes = table.routes::<A>();
    if routes.is_empty() {
        return Err(format!("{}: no IP{} routes", source.0, A::FAMILY).into());
    }
    let name = args.engine.as_deref().unwrap_or(engine);
    let entry = fibula_baselines::registry()
        .find::<A>(name)
        .ok_or_else(|| format!("no engine {name} for IP{}", A::FAMILY))?;
    let engine: BoxedEngine<A> = entry.build(routes, Isa::detect())?;
    let bench = Bench::<A>::new(routes, (args.flows as usize, FRAME), 1, args.burst.into())?;
    note(format_args!("l3fwd: {} routes, {} flows; DPDK's tables", routes.len(), bench.flows()));
    let tables = [Scheme::Lpm, Scheme::Fib].map(|scheme| {
        let began = Instant::now();
        let table = Table::new(scheme, routes);
        note(format_args!("l3fwd: {scheme:?} after {:.1} s", began.elapsed().as_secs_f64()));
        table
    });
    let [lpm, fib] = tables;
    let (lpm, fib) = (lpm?, fib?);
    for (what, table) in [("rte_lpm", &lpm), ("rte_fib", &fib)] {
        for (_, key) in (0..router::PORTS).flat_map(|port| bench.frames(port).take(SAMPLE / 2)) {
            let (found, right) = (table.lookup(key.to_ip()), bench.neighbour_of(key));
            if found != right {
                let what = format!("{what}: {} leads to {found:?}, not {right:?}", key.to_ip());
                return Err(what.into());
            }
        }
    }
    bench.check(Subject::Engine(&engine), FUSED)??;

    let mut rivals = [Device::open("net_null_c,size=64")?, Device::open("net_null_d,size=64")?];
    let theirs = [rivals[0].name().to_owned(), rivals[1].name().to_owned()];
    let traffic = Traffic::null(&bench)?;
    traffic.come_in_by(&theirs)?;
    let time = Duration::from_secs_f64(args.seconds);
    let every = [
        Case::Rival(None),
        Case::Ours(Subject::Nothing),
        Case::Ours(Subject::Engine(&engine)),
        Case::Example(&lpm),
        Case::Example(&fib),
        Case::Rival(Some(&lpm)),
        Case::Rival(Some(&fib)),
    ];
    let is_wanted =
        |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    let cases: Vec<_> = CASES.into_iter().zip(every).filter(|(name, _)| is_wanted(name)).collect();
    // Both run where fibula's pipeline would.
    let core = fibula_testkit::measure::cores().first().map(|core| core.id);
    note(format_args!("l3fwd: measuring {} cases, {} times", cases.len(), args.runs));
    let mut rates = vec![Vec::new(); cases.len()];
    for _ in 0..args.runs {
        for ((_, case), rates) in cases.iter().zip(&mut rates) {
            rates.push(match case {
                Case::Rival(_) | Case::Example(_) => {
                    let run = peer::Run {
                        table: match case {
                            Case::Example(table) => Some(table),
                            Case::Rival(table) => *table,
                            Case::Ours(_) => None,
                        },
                        as_example: matches!(case, Case::Example(_)),
                        neighbours: array::from_fn(router::neighbour),
                        router: router::ROUTER,
                        burst: args.burst,
                        core,
                    };
                    let devices = [theirs[0].as_str(), theirs[1].as_str()];
                    let mut rate = Ok(0.0);
                    peer::forward(&mut rivals, &run, || rate = devices::time(devices, time))?;
                    rate?
                }
                Case::Ours(subject) => bench.run_between(&traffic, *subject, FUSED, time)?.mpps,
            });
        }
    }
    let mut csv = Csv::create(&args.csv)?;
    let medians: Vec<f64> = rates.iter().map(|rates| median(&mut rates.clone())).collect();
    let number = |number: f64| rounded(number).to_string();
    let of = |what: &str, rate: f64| {
        let other = cases.iter().zip(&medians).find(|((name, _), _)| *name == what);
        other.map_or(String::new(), |(_, &other)| number(rate / other.max(1e-9)))
    };
    for (((what, _), rates), &rate) in cases.iter().zip(&rates).zip(&medians) {
        csv.row(&[
            ("table", source.0.clone()),
            ("family", A::FAMILY.name().to_owned()),
            ("prefixes", routes.len().to_string()),
            ("isa", Isa::detect().name().to_owned()),
            ("case", (*what).to_owned()),
            ("engine", if *what == "fibula" { name.to_owned() } else { String::new() }),
            ("burst", args.burst.to_string()),
            ("flows", bench.flows().to_string()),
            ("mpps", number(rate)),
            ("mpps_min", number(rates.iter().copied().fold(f64::INFINITY, f64::min))),
            ("mpps_max", number(rates.iter().copied().fold(0.0, f64::max))),
            ("of_bare", of("bare", rate)),
            ("of_io", of("io", rate)),
        ])?;
    }
    csv.finish()
}

const _: () = assert!(NEIGHBOURS == router::NEIGHBOURS && router::PORTS == 2);
