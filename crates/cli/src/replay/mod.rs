//! `fibula replay`: a table that changes while it is read.
//!
//! Updates go into a RIB, compilers follow it, a reading core looks addresses up all the time. When it
//! ends, the whole feed is read again into plain maps, and each sampled answer is compared with the map's state after
//! the same update.

pub mod feed;
mod plain;
mod reader;
pub mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use core_affinity::CoreId;
use fibula_core::{Addr, Family, PerFamily, Prefix};
use fibula_feeds::{Checkpoints, Clock, FeedError, LiveFeed, Speed, SystemClock};
use fibula_rib::{Audit, FeedMark, Live, LiveOptions, Pacing, Preference, Rib};
use fibula_testkit::traffic::{self, Traffic};

use crate::engines::AUTO;
use crate::failure::{Failure, Outcome};
use crate::progress::note;
use crate::source::{self, ReadArgs, Source, parse_family};
use feed::{Hinted, Player, Updates};
use plain::Plain;
use reader::{AllHints, Phase, Phases, Seen};
use report::{ReplayReport, memory_bytes, rounded};

const EXAMPLES: &str = "\
Examples:
  fibula replay --table rib.20260101.0000.bz2 --updates updates.20260101.00*.gz
  fibula replay --updates updates.gz --speed 10 --engine dxr18
  fibula replay --table gen:v4:2024:900000:1 --updates churn:1000000:1 --rate 200000 --json
  fibula replay --table rib.bz2 --updates updates.gz --checkpoint rib.fib --audit full

Updates are MRT, BMP or FPM files, or churn:COUNT:SEED: generated updates of the table's routes.
Of files with several routing instances one is followed (--vrf), and the report counts the updates
of the others. The updates are read twice. The second time they go into plain maps: each sampled
answer of the reader is compared with the maps' state after the same update, and the RIB is
compared at the end.

With --checkpoint FILE, the RIB is written to the file every few seconds and at the end. If the
file exists, the replay continues from it instead of reading the table. The file records which
updates it includes: if the updates given differ from these, the replay is refused and the file is
unchanged. Other commands can use it as a table.

Exit code 1: a reader's answer or the table at the end was wrong, or a build failed.";

/// Apply updates to a table while another core looks up addresses, and measure both
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table before the updates: MRT or text files, snapshots, gen:v4:2024:900000:1, embedded;
    /// empty if there is none
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// The updates: MRT, BMP or FPM files, or churn:COUNT:SEED
    #[arg(long, short, required = true, num_args = 1.., value_name = "FILE")]
    updates: Vec<String>,
    /// The routing instance of the files to follow: a view of BMP (pre-policy), a kernel's table of
    /// FPM (100), a route distinguisher [default: the main one]
    #[arg(long, value_name = "NAME")]
    vrf: Option<String>,
    /// Speed: max, or how many times real time, by the updates' own times: 1, 10
    #[arg(long, default_value = "max", value_name = "SPEED")]
    speed: Speed,
    /// Maximum number of updates a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Number of times to play the updates
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: u32,
    /// Engine, or several in order of preference: each family takes the first that supports its table
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = AUTO)]
    engine: Vec<String>,
    /// Family to look up: v4 or v6 (default: the one with more routes)
    #[arg(long, value_name = "FAMILY", value_parser = parse_family)]
    family: Option<Family>,
    /// Check the live engines against the RIB: off, sampling, full
    #[arg(long, default_value = "sampling", value_name = "MODE", value_parser = parse_audit)]
    audit: Audit,
    /// Milliseconds that the first change of a burst waits for others, if fewer than 1,024 wait
    #[arg(long, default_value = "50", value_name = "MS",
          value_parser = clap::value_parser!(u64).range(0..=60_000))]
    bucket: u64,
    /// Maximum age of a change before the feed is slowed down, in milliseconds
    #[arg(long, default_value = "1000", value_name = "MS",
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    late: u64,
    /// Write the RIB to this file, and continue from it if it exists
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Seconds between checkpoints
    #[arg(long, default_value = "10", value_name = "SECONDS", requires = "checkpoint")]
    checkpoint_every: f64,
    /// Milliseconds to measure the reader before and after the updates
    #[arg(long, default_value = "1000", value_name = "MS",
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    measure: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Stop at the first damaged record instead of counting and skipping it
    #[arg(long)]
    strict: bool,
    /// Keep AS paths as text
    #[arg(long)]
    as_path: bool,
    /// Keep communities as text
    #[arg(long)]
    communities: bool,
}

fn parse_audit(text: &str) -> Result<Audit, String> {
    match text {
        "off" => Ok(Audit::Off),
        "sampling" => Ok(Audit::Sampling),
        "full" => Ok(Audit::Full),
        _ => Err("off, sampling or full".to_owned()),
    }
}

/// What is played.
struct Plan {
    tables: Vec<Source>,
    updates: Vec<Updates>,
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    // A name that neither family has is a mistake, and is reported before a table is read.
    crate::engines::choose::<u32>(&args.engine)?;
    let tables = source::parse_list(&args.table, &ReadArgs::automatic())?;
    if tables.iter().any(|(name, _)| name == "-") {
        return Err(Failure::new("the table cannot come from standard input: it is read twice")
            .hint("write it to a file; the second reading checks the first"));
    }
    let plan = Plan {
        tables: tables.into_iter().map(|(_, source)| source).collect(),
        updates: args.updates.iter().map(|name| Updates::parse(name)).collect::<Result<_, _>>()?,
        read: ReadArgs {
            strict: args.strict,
            as_path: args.as_path,
            communities: args.communities,
            ..ReadArgs::automatic()
        },
    };
    let mut report = ReplayReport::default();
    let mut player = Player::new(&plan.read, args.vrf.as_deref(), true);
    let start = begin(args, &plan, &mut player, &mut report)?;
    let (v4, v6) = (start.rib.len::<u32>(0), start.rib.len::<u128>(0));
    report.routes_before = (v4 + v6) as u64;
    let family = args.family.unwrap_or(if v4 >= v6 { Family::V4 } else { Family::V6 });
    report.family = family.name();
    let unwritten = match family {
        Family::V4 => replay::<u32>(args, &plan, player, start, &mut report)?,
        Family::V6 => replay::<u128>(args, &plan, player, start, &mut report)?,
    };
    report.print(args.json)?;
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    let wrong = report.wrong + report.audit_differences + report.failures;
    Ok(if wrong > 0 { Outcome::Negative } else { Outcome::Done })
}

/// Where the updates begin.
struct Start {
    rib: Rib,
    /// The number of updates in the RIB when the tables were read.
    tables: u64,
    /// The feed of the checkpoint.
    feed: Option<FeedMark>,
}

/// The RIB of the checkpoint, or of the tables.
fn begin(
    args: &Args,
    plan: &Plan,
    player: &mut Player<'_>,
    report: &mut ReplayReport,
) -> Result<Start, Failure> {
    if let Some(path) = args.checkpoint.as_deref().filter(|path| path.exists()) {
        if plan.updates.iter().any(|updates| matches!(updates, Updates::Churn(..))) {
            return Err(Failure::new(format_args!(
                "{}: churn cannot go on from a checkpoint: it depends on the table at its beginning",
                path.display()
            ))
            .hint("remove the file, or give another to --checkpoint"));
        }
        let started = Instant::now();
        let restored = Rib::open(path, Preference::default())?;
        report.restore_ms = rounded(started.elapsed().as_secs_f64() * 1e3);
        let rib = restored.rib;
        let tables = restored.position.parse().ok().filter(|&tables| tables <= rib.sequence());
        let tables: u64 = tables.ok_or_else(|| {
            Failure::new(format_args!("{}: not a checkpoint of replay", path.display()))
        })?;
        report.restored_events = rib.sequence() - tables;
        let is_sound = |feed: &FeedMark| feed.events == rib.sequence() - tables;
        let feed = restored.feed.filter(is_sound);
        if feed.is_none() {
            note(format_args!(
                "{}: an older version wrote it, without its feed: that the updates are the same cannot \
                 be checked",
                path.display()
            ));
        }
        return Ok(Start { rib, tables, feed });
    }
    let mut rib = Rib::new(Preference::default());
    for table in &plan.tables {
        player.table(table, &mut rib)?;
    }
    let tables = rib.sequence();
    Ok(Start { rib, tables, feed: None })
}

/// Keys of the reader: as many as miss the caches now and then.
const KEYS: usize = 1 << 20;

/// Measures, plays, checks. Returns why the last checkpoint was not written, which is no reason to keep the
/// report back.
fn replay<A: Addr>(
    args: &Args,
    plan: &Plan,
    mut player: Player<'_>,
    start: Start,
    report: &mut ReplayReport,
) -> Result<Option<Failure>, Failure> {
    let Start { rib, tables, feed: known } = start;
    let kind = if rib.len::<A>(0) > 0 { Traffic::Pfx } else { Traffic::Rnd };
    let keys = traffic::keys(&rib.routes::<A>(0), kind, KEYS, 1);
    let skip = rib.sequence() - tables;
    let [core, others] = cores();
    if let Some(core) = others {
        core_affinity::set_for_current(core); // the compilers inherit it
    }
    let live = start_live(args, rib)?;
    let hints = PerFamily::<AllHints>::default();
    let phases = Phases::new();
    let every = Duration::try_from_secs_f64(args.checkpoint_every)
        .map_err(|error| Failure::new(format_args!("--checkpoint-every: {error}")))?;
    let reader = live.reader::<A>(0).expect("the global VRF is followed");
    let hints_read = hints.get::<A>();
    let (seen, fed) = thread::scope(|scope| {
        let (keys, phases) = (&keys, &phases);
        let reading = scope.spawn(move || reader::read(reader, keys, phases, hints_read, core));
        let measure = |phase| {
            phases.set(phase);
            thread::sleep(Duration::from_millis(args.measure));
            while !phases.is_measured(phase) {
                thread::sleep(Duration::from_millis(1));
            }
            phases.set(Phase::Idle);
        };
        thread::sleep(Duration::from_millis(args.measure / 4)); // caches warm up
        measure(Phase::Before);
        let fed =
            feed(args, plan, &mut player, &live, (skip, known), tables, &hints, every, phases);
        if fed.is_ok() {
            measure(Phase::After);
        }
        phases.set(Phase::Over);
        (reading.join().expect("lookups do not panic"), fed)
    });
    let (updates, seconds, checkpoints) = fed?;
    report.updates = updates;
    report.seconds = rounded(seconds);
    report.updates_per_second = rounded(updates as f64 / seconds.max(1e-9));
    let unwritten = match checkpoints {
        Ok(written) => {
            report.checkpoints = written;
            None
        }
        Err(error @ FeedError::Checkpoint(_)) => Some(Failure::from(error)),
        Err(error) => return Err(error.into()),
    };
    report.damaged = player.damaged;
    report.left_out = player.instances.left_out();
    if player.instances.followed() == 0 && !report.left_out.is_empty() {
        return Err(nothing_followed(args, &report.left_out));
    }
    describe(&live, &seen, report);
    report.memory_bytes = memory_bytes();
    check::<A>(args, plan, live, seen, report)?;
    Ok(unwritten)
}

/// A replay of nothing: the files have other routing instances than the one that was to be followed.
fn nothing_followed(args: &Args, left_out: &BTreeMap<String, u64>) -> Failure {
    let requested = args.vrf.as_ref().map_or("the main routing instance".to_owned(), |name| {
        format!("a routing instance {name:?}")
    });
    let name = left_out.keys().max_by_key(|name| left_out[*name]).map_or("", String::as_str);
    Failure::new(format_args!(
        "there are no updates of {requested}; of others there are: {}",
        report::left_out(left_out)
    ))
    .hint(if name.is_empty() {
        "leave --vrf out".to_owned()
    } else {
        format!("--vrf {name}")
    })
}

/// Plays the updates; returns how many were applied, in how many seconds, and how many checkpoints were
/// written.
#[expect(clippy::too_many_arguments, reason = "one step of a long function")]
fn feed(
    args: &Args,
    plan: &Plan,
    player: &mut Player<'_>,
    live: &Live,
    (skip, known): (u64, Option<FeedMark>),
    tables: u64,
    hints: &PerFamily<AllHints>,
    every: Duration,
    phases: &Phases,
) -> Result<(u64, f64, Result<u64, FeedError>), Failure> {
    phases.set(Phase::During);
    let (started, clock) = (Instant::now(), SystemClock::default());
    let checkpoints = args
        .checkpoint
        .as_ref()
        .map(|path| Checkpoints::new(path, every, tables.to_string(), clock.now(), note))
        .map(|checkpoints| checkpoints.of_feed(&args.updates));
    let feed = LiveFeed::with_clock(live, clock).paced(args.speed, args.rate);
    let feed = match known {
        Some(known) => feed.going_on(known),
        None => feed.skipping(skip),
    };
    let feed = feed.with_checkpoints(checkpoints);
    let mut hinted = Hinted { live, feed, hints };
    for _ in 0..args.repeat {
        for updates in &plan.updates {
            player.updates(updates, &mut hinted)?;
        }
        player.aloud = false; // the same damage is reported once
    }
    live.flush()?;
    let seconds = started.elapsed().as_secs_f64();
    phases.set(Phase::Idle);
    let applied = hinted.feed.applied();
    Ok((applied, seconds, hinted.feed.finish()))
}

fn start_live(args: &Args, rib: Rib) -> Result<Live, Failure> {
    let ms = Duration::from_millis;
    let pacing = Pacing { bucket: ms(args.bucket), late: ms(args.late), ..Pacing::default() };
    let options = LiveOptions { pacing, audit: args.audit, ..LiveOptions::default() };
    let engines = crate::engines::options(args.engine.iter().map(String::as_str));
    Ok(Live::start(rib, &[0], engines, options, note)?)
}

/// A core for the reader, and the one for all others if there are no more than two.
fn cores() -> [Option<CoreId>; 2] {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    match &cores[..] {
        [] | [_] => [None, None],
        [first, second] => [Some(*second), Some(*first)],
        [.., last] => [Some(*last), None],
    }
}

fn describe<A: Addr>(live: &Live, seen: &Seen<A>, report: &mut ReplayReport) {
    let counters = (live.counters::<u32>(0), live.counters::<u128>(0));
    let (v4, v6) = (counters.0.expect("followed"), counters.1.expect("followed"));
    report.add(&v4);
    report.add(&v6);
    let mut visible = v4.visible();
    visible.merge(&v6.visible());
    report.visible(&visible);
    report.making_ms = rounded(report.making_ms / report.generations.max(1) as f64);
    report.engine_v4 = live.current::<u32>(0).expect("followed").engine_name();
    report.engine_v6 = live.current::<u128>(0).expect("followed").engine_name();
    let [before, during, after] =
        [Phase::Before, Phase::During, Phase::After].map(|phase| rounded(seen.mlps(phase)));
    (report.mlps_before, report.mlps_during, report.mlps_after) = (before, during, after);
    let quiet = (before + after) / 2.0;
    report.reader_ratio = if quiet > 0.0 { rounded(during / quiet) } else { 0.0 };
    report.reader_core_during = rounded(seen.core[Phase::During as usize]);
    report.rib = live.with_rib(Rib::memory).into();
    report.routes_after = report.rib.prefixes as u64;
}

/// Reads everything once more, into plain maps, and compares.
fn check<A: Addr>(
    args: &Args,
    plan: &Plan,
    live: Live,
    mut seen: Seen<A>,
    report: &mut ReplayReport,
) -> Result<(), Failure> {
    // The table's answers at the end, at every boundary, are a sample like any other.
    let probes = live.with_rib(|rib| boundaries::<A>(rib));
    let last = live.current::<A>(0).expect("followed");
    seen.samples.extend(probes.chunks(1 << 16).map(|keys| reader::sample(&last, keys)));
    drop(last);
    let mut plain = Plain::new(seen.samples);
    let mut player = Player::new(&plan.read, args.vrf.as_deref(), false);
    for table in &plan.tables {
        player.table(table, &mut plain)?;
    }
    plain.check();
    for _ in 0..args.repeat {
        for updates in &plan.updates {
            player.updates(updates, &mut plain)?;
        }
    }
    let differences = live.with_rib(|rib| plain.differences(rib));
    report.checked = plain.checked + report.rib.prefixes as u64;
    // A sample from beyond the end of the feed is as wrong as can be.
    report.wrong = plain.wrong + differences + plain.left() as u64;
    Ok(())
}

/// Boundaries that are probed at the end, at most.
const PROBES: usize = 1 << 20;

/// The first address of each prefix, and the one before it.
fn boundaries<A: Addr>(rib: &Rib) -> Vec<A> {
    let step = (2 * rib.len::<A>(0)).div_ceil(PROBES).max(1);
    let prefixes = rib.iter::<A>(0).map(|(prefix, _)| prefix).step_by(step);
    let both = |prefix: Prefix<A>| [Some(prefix.first()), prefix.first().predecessor()];
    prefixes.flat_map(both).flatten().collect()
}
