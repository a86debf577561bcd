//! A wrong engine is not timed.

use std::path::Path;

use fibula_core::Addr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches};
use fibula_testkit::liar::{BYTES, Liar, Lie};
use fibula_testkit::tables;
use serde_json::Value;

use super::*;

const KEYS: usize = 300;

/// As if an engine of the registry had been compiled, one that cannot be patched.
pub fn built<A: Addr>(liar: Liar<A>) -> Built<A> {
    Built {
        label: format!("{:?}", liar.lie()),
        isa: Isa::Scalar,
        engine: fibula_engines::unstored(liar),
        time: Duration::from_millis(3),
        reason: None,
        name: "radix",
    }
}

/// Random keys for each thread.
fn random<A: Addr>(routes: &Routes<A>, threads: usize, kind: Traffic) -> Vec<Vec<A>> {
    let none = |_: &Path| Err("generated, not read");
    TrafficInput::Pattern(kind).keys(routes, KEYS, threads, 1, none).unwrap()
}

/// Measures engines that were compiled elsewhere. Returns the rows, and how the command ends.
fn measured<A: Addr>(args: &str, routes: &Routes<A>, built: &[Built<A>]) -> (Vec<Value>, Outcome) {
    let args = format!("bench --json --runs 2 --keys {KEYS} {args}");
    let command = Args::augment_args(Command::new("bench"));
    let args = Args::from_arg_matches(&command.get_matches_from(args.split_whitespace()));
    let args = args.unwrap();
    let mut bench = Bench {
        args: &args,
        isas: vec![Isa::Scalar],
        cores: Vec::new(),
        rows: Vec::new(),
        updates: Vec::new(),
        devices: Vec::new(),
        patches: Vec::new(),
        device: None,
        outcome: Outcome::Done,
    };
    bench.lookups("a table", routes, built).unwrap();
    let rows = bench.rows.iter().map(|row| serde_json::to_value(row).unwrap());
    (rows.collect(), bench.outcome)
}

fn refuses<A: Addr>(routes: &Routes<A>) {
    let about = random(routes, 1, Traffic::Rnd)[0][KEYS - 1];
    let new = |lie| Liar::new(routes, lie, about);
    // One key is answered wrongly, the last one: each is looked up once singly and once in a batch.
    for (lie, batch) in
        [(Lie::Singly, 64), (Lie::InBatches, 64), (Lie::InBatches, 1), (Lie::Singly, 512)]
    {
        let (liar, honest) = (new(lie), new(Lie::Honest));
        let (asked, asked_honest) = (liar.lookups(), honest.lookups());
        let both = [built(liar), built(honest)];
        let args = format!("--traffic RND --batch {batch}");
        let (rows, outcome) = measured(&args, routes, &both);
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
    let both = [built(new(Lie::Honest)), built(late)];
    let (rows, outcome) = measured("--traffic RND", routes, &both);
    assert_eq!((rows.len(), outcome), (1, Outcome::Negative));
    assert_eq!(rows[0]["engine"], "Honest");
    let honest = [built(new(Lie::Honest))];
    for (args, count) in [
        ("--traffic RND,PFX --batch 1,64", 4),
        ("--traffic RND --threads 3", 1),
        ("--traffic RND --threads 1,3,2", 3),
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

/// A number of threads at a time, with one row each; keys are as many as was asked for.
#[test]
fn threads_and_keys_of_a_table() {
    let routes = tables::dense::<u32>(5, 400);
    let honest = Liar::new(&routes, Lie::Honest, 0);
    let asked = honest.lookups();
    let engines = [built(honest)];
    let (rows, _) = measured("--traffic RND --threads 2,1", &routes, &engines);
    let threads: Vec<_> = rows.iter().map(|row| row["threads"].as_u64().unwrap()).collect();
    assert_eq!(threads, [2, 1]);
    // Both parts are checked twice. In two runs two threads warm up and look up, one does so alone, and a chain
    // follows; then one thread does so, and a chain follows.
    assert_eq!(asked.load(Ordering::Relaxed), (2 * 2 + 2 * (4 + 2 + 2 + 2 + 2)) * KEYS);

    let command = || Args::augment_args(Command::new("bench").no_binary_name(true));
    let parse = |args: &[&str]| Args::from_arg_matches(&command().get_matches_from(args)).unwrap();
    assert_eq!(parse(&["--keys", "77"]).keys_of(400).unwrap(), 77);
    let hundred = parse(&["--keys-per-prefix", "100"]);
    assert_eq!(hundred.keys_of(400).unwrap(), 40_000);
    let error = hundred.keys_of(3_000_000).unwrap_err().to_string();
    assert!(error.contains("100 keys for each of 3,000,000 prefixes"), "{error}");
    assert!(command().try_get_matches_from(["--keys-per-prefix", "1", "--keys", "9"]).is_err());
}

/// A wrong answer in any thread's keys, looked up singly and one after the other.
#[test]
fn every_thread_is_checked() {
    let routes = tables::dense::<u32>(3, 400);
    let keys = random(&routes, 3, Traffic::Rnd);
    for keys in &keys {
        let liar = Liar::new(&routes, Lie::Singly, keys[KEYS / 2]);
        let (rows, outcome) = measured("--traffic RND --threads 3", &routes, &[built(liar)]);
        assert_eq!((rows.len(), outcome), (0, Outcome::Negative));
    }
    let seq = random(&routes, 1, Traffic::Seq);
    let liar = Liar::new(&routes, Lie::Singly, seq[0][7]);
    let (rows, outcome) = measured("--traffic SEQ", &routes, &[built(liar)]);
    assert_eq!((rows.len(), outcome), (0, Outcome::Negative));
}
