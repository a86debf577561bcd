//! The system throughput of PlanB's paper (section 4.1, figure 9): packets a second through a router.
#![forbid(unsafe_code)]

#[cfg(feature = "dpdk")]
#[allow(dead_code, reason = "the program l3fwd uses the rest")]
mod devices;
mod ports;
#[allow(dead_code, reason = "the program l3fwd uses the rest")]
mod router;
mod shape;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fibula::sources::Source;
use fibula_core::{Addr, Family};
use fibula_engines::BoxedEngine;
use fibula_papers::out::{Csv, Failure, ended, note, parse_family, table};
use fibula_simd::Isa;
use fibula_testkit::measure::{median, rounded};

use ports::Ports;
use router::{Bench, Measured, Subject};
use shape::Form;

const EXAMPLES: &str = "\
Examples:
  planb --csv planb-fig9.csv
  planb --family v4 --table gen:v4:2024:900000:1 --threads fused:1
  planb --ports memory,null,pcap --csv planb-fig9.csv
  planb --table gen:v6:2024:20000:1 --flows 10000 --seconds 0.1 --runs 1

Threads: fused:N receive, look up and transmit; R-L receive on R threads, look up and transmit on L; R-L-T
have threads for each. Ports: with memory, packets are made where they are received and counted where they are
sent; null and pcap (in builds with feature dpdk) are two devices of DPDK, net_null, into whose packets the same
flows are written, or net_pcap, which repeats a capture of its first 16,384 flows. There are no NICs. Between
threads are the rings of `fibula route`; what they have no room for is dropped there, and the rate is that of
the packets that leave.

Engine none only rewrites MAC addresses: the rate of the same ports without a router. All cases take turns in
each run, and mpps is the median. Before that, each engine's router sends a sample of the packets in every form,
and what leaves is compared with the oracle's answers; a wrong one is left out, and the exit code is 1.

Columns:
  mpps                  million packets a second that leave: the median of the runs
  mpps_min, mpps_max    the slowest run and the fastest
  of_io_only            mpps over that of engine none with the same threads and ports
  dropped               of the packets received, the part that rings had no room for
  receive_ns, lookup_ns, transmit_ns
                        nanoseconds a packet in each stage
  latency_us, latency_99_us
                        microseconds from the start of receiving to the end of sending: median, 99th percentile
  memory_bytes          the engine's tables";

/// Repeat the throughput experiment of PlanB's paper
#[derive(Parser, Debug)]
#[command(name = "planb", after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// Address family
    #[arg(long, short, value_name = "v4|v6", default_value = "v6", value_parser = parse_family)]
    family: Family,
    /// Tables (default: generated ones of 250,000, 500,000, 750,000 and 1,000,000 prefixes)
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// Engines (default: planb,wideleaf,poptrie18,radix or runmap,dxr18,dir24-8,radix)
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engines: Vec<String>,
    /// Forms of the router
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FORM,...",
        default_value = "fused:1,fused:2,1-1,1-1-1"
    )]
    threads: Vec<Form>,
    /// Ports: memory, null, pcap
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PORTS,...",
        default_value = "memory",
        value_parser = ["memory", "null", "pcap"]
    )]
    ports: Vec<String>,
    /// Packets in a burst
    #[arg(long, short, value_name = "N", default_value = "64",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,
    /// Flows: destinations drawn from the table's prefixes
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    flows: u32,
    /// Bytes of a frame
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(62..=1500))]
    bytes: u16,
    /// Seconds that each run is timed
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    seconds: f64,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the destinations
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

/// The sizes of the paper's synthetic tables.
const SIZES: [u32; 4] = [250_000, 500_000, 750_000, 1_000_000];
/// The default measurements.
const ENGINES_V4: [&str; 4] = ["runmap", "dxr18", "dir24-8", "radix"];
const ENGINES_V6: [&str; 4] = ["planb", "wideleaf", "poptrie18", "radix"];
/// The engine that is none.
const NONE: &str = "none";
/// The warm-up before the measurement, as a part of the measured time.
const WARM_UP: f64 = 0.2;

fn main() -> ExitCode {
    ended("planb", run(&Args::parse()))
}

/// Whether something was wrong.
fn run(args: &Args) -> Result<bool, Failure> {
    if !(0.001..=3600.0).contains(&args.seconds) {
        return Err(format!("--seconds {}: 0.001 to 3600 are possible", args.seconds).into());
    }
    let is_dpdk = args.ports.iter().any(|ports| ports != "memory");
    if is_dpdk && !cfg!(feature = "dpdk") {
        return Err("ports null and pcap need a build with the feature dpdk".into());
    }
    if is_dpdk && args.bytes != 64 {
        return Err("frames of ports null and pcap have 64 bytes".into());
    }
    let cores = fibula_testkit::measure::cores().len();
    for form in args.threads.iter().filter(|form| cores > 0 && form.threads() > cores) {
        let threads = form.threads();
        note(format_args!(
            "{form}: {threads} threads share {cores} cores, and so measure their scheduler"
        ));
    }
    let generated = SIZES.map(|size| format!("gen:{}:2024:{size}:1", args.family.name()));
    let tables = if args.table.is_empty() { generated.to_vec() } else { args.table.clone() };
    let tables = Source::parse_list(&tables)?;
    let mut csv = Csv::create(&args.csv)?;
    let mut is_wrong = false;
    for source in &tables {
        is_wrong |= match args.family {
            Family::V4 => measure::<u32>(args, source, &ENGINES_V4, &mut csv)?,
            Family::V6 => measure::<u128>(args, source, &ENGINES_V6, &mut csv)?,
        };
    }
    csv.finish()?;
    Ok(is_wrong)
}

/// An engine, or none, in a form of the router, between ports of a kind.
struct Case<'a, A: Addr> {
    ports: &'a Ports,
    engine: &'a str,
    memory: Option<usize>,
    subject: Subject<'a, A>,
    form: Form,
    runs: Vec<Measured>,
}

/// Measures a table. Whether an engine was wrong.
fn measure<A: Addr>(
    args: &Args,
    source: &(String, Source),
    usual: &[&str],
    csv: &mut Csv,
) -> Result<bool, Failure> {
    let (name, table) = (&source.0, table(source)?);
    let routes = table.routes::<A>();
    if routes.is_empty() {
        return Err(format!("{name}: no IP{} routes", A::FAMILY).into());
    }
    let usual: Vec<String> = usual.iter().map(|name| (*name).to_owned()).collect();
    let names = if args.engines.is_empty() { &usual } else { &args.engines };
    let mut engines: Vec<(&str, BoxedEngine<A>)> = Vec::new();
    for name in names {
        let entry = fibula_baselines::registry()
            .find::<A>(name)
            .ok_or_else(|| format!("no engine {name} for IP{}", A::FAMILY))?;
        match entry.build(routes, Isa::detect()) {
            Ok(engine) => engines.push((name, engine)),
            Err(error) => note(format_args!("{name} does not take {}: {error}", source.0)),
        }
    }
    let length = (args.flows as usize, usize::from(args.bytes));
    let bench = Bench::<A>::new(routes, length, args.seed, usize::from(args.burst))?;
    let mut cases = Vec::new();
    let ports = args.ports.iter().map(|name| Ports::new(name, &bench));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    let kinds = args.threads.iter().flat_map(|form| ports.iter().map(move |ports| (form, ports)));
    for (&form, ports) in kinds {
        let case = |engine, memory, subject| Case {
            ports,
            engine,
            memory,
            subject,
            form,
            runs: Vec::new(),
        };
        cases.push(case(NONE, None, Subject::Nothing));
        for (name, engine) in &engines {
            cases.push(case(name, Some(engine.memory().total()), Subject::Engine(engine)));
        }
    }
    let mut is_wrong = false;
    for case in &mut cases {
        if let Err(difference) = bench.check(case.subject, case.form)? {
            is_wrong = true;
            note(format_args!("{} {} is wrong and left out: {difference}", case.engine, case.form));
            case.engine = "";
        }
    }
    cases.retain(|case| !case.engine.is_empty());
    let time = Duration::from_secs_f64(args.seconds);
    for _ in 0..args.runs {
        for case in &mut cases {
            case.runs.push(case.ports.run(&bench, case.subject, case.form, time)?);
        }
    }
    let of = |case: &Case<'_, A>, figure: fn(&Measured) -> f64| {
        median(&mut case.runs.iter().map(figure).collect::<Vec<_>>())
    };
    for case in &cases {
        let is_bare = |other: &&Case<'_, A>| {
            (other.engine, other.form) == (NONE, case.form) && other.ports.name == case.ports.name
        };
        let bare = cases.iter().find(is_bare);
        let bare = bare.map(|bare| of(bare, |run| run.mpps));
        let rates = || case.runs.iter().map(|run| run.mpps);
        let number = |number: f64| rounded(number).to_string();
        csv.row(&[
            ("table", name.clone()),
            ("family", A::FAMILY.name().to_owned()),
            ("prefixes", routes.len().to_string()),
            ("isa", Isa::detect().name().to_owned()),
            ("engine", case.engine.to_owned()),
            ("threads", case.form.to_string()),
            ("burst", args.burst.to_string()),
            ("flows", case.ports.flows(&bench).to_string()),
            ("bytes", args.bytes.to_string()),
            ("mpps", number(of(case, |run| run.mpps))),
            ("mpps_min", number(rates().fold(f64::INFINITY, f64::min))),
            ("mpps_max", number(rates().fold(0.0, f64::max))),
            ("of_io_only", share(of(case, |run| run.mpps), bare)),
            ("dropped", number(of(case, |run| run.dropped))),
            ("receive_ns", number(of(case, |run| run.receive))),
            ("lookup_ns", number(of(case, |run| run.lookup))),
            ("transmit_ns", number(of(case, |run| run.transmit))),
            ("latency_us", number(of(case, |run| run.latency))),
            ("latency_99_us", number(of(case, |run| run.latency_99))),
            ("memory_bytes", case.memory.map_or(String::new(), |bytes| bytes.to_string())),
            ("ports", case.ports.name.clone()),
        ])?;
    }
    Ok(is_wrong)
}

/// A router's part of the rate of the ports alone; nothing where that was left out, or was zero.
fn share(rate: f64, bare: Option<f64>) -> String {
    let bare = bare.filter(|bare| *bare > 0.0);
    bare.map_or(String::new(), |bare| rounded(rate / bare).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the rate of the ports alone there is no share of it.
    #[test]
    fn a_share_needs_the_rate_of_the_ports() {
        assert_eq!(share(30.0, Some(40.0)), "0.75");
        assert_eq!(share(30.0, Some(0.0)), "");
        assert_eq!(share(30.0, None), "");
    }
}
