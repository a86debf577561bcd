//! Live tables with feeds: failed checkpoints that are tried again, feeds that continue from a checkpoint in the
//! middle, engines that are chosen again.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Fake, Lines, paths};
use fibula_core::{AnyPrefix, Attributes, Change, Hop, Prefix, Update, Value};
use fibula_feeds::{
    Checkpoints, Clock, Event, FeedError, LiveFeed, Protocol, Session, SessionOptions, Speed,
    churn, prefixes,
};
use fibula_fib::FibOptions;
use fibula_rib::{
    FeedMark, Listener, Live, LiveOptions, Pacing, Peer, Preference, Restored, Rib, TableError,
};
use fibula_testkit::Rng;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn live(rib: Rib) -> Live {
    let options = LiveOptions {
        pacing: Pacing { bucket: ms(1), ..Pacing::default() },
        ..LiveOptions::default()
    };
    Live::start(rib, &[0], FibOptions::default(), options, |_| {}).unwrap()
}

/// Something that happens to a table.
#[derive(Clone, Copy, Debug)]
enum Step {
    Update(u32, AnyPrefix, Option<u64>),
    Down(u32),
    Mark(u32),
    Sweep(u32),
}

fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let prefix = |rng: &mut Rng| -> AnyPrefix {
        match rng.chance(0.5) {
            true => Prefix::masked(rng.addr::<u32>() & 0xf000_0000, 8).unwrap().into(),
            false => Prefix::masked(rng.addr::<u128>() & 15 << 124, 9).unwrap().into(),
        }
    };
    let step = |_| {
        let peer = rng.below(3) as u32;
        match rng.below(20) {
            0 => Step::Down(peer),
            1..3 => Step::Mark(peer),
            3..5 => Step::Sweep(peer),
            kind => Step::Update(peer, prefix(&mut rng), (kind > 8).then(|| rng.below(5))),
        }
    };
    (0..count).map(step).collect()
}

fn play(steps: &[Step], to: &mut dyn Listener) {
    let numbers = [1, 2, 3].map(|asn| to.peer(&Peer::new(None, asn)));
    for step in steps {
        apply_step(&numbers, step, to).unwrap();
    }
}

fn apply_step(numbers: &[u32; 3], step: &Step, to: &mut dyn Listener) -> Result<(), TableError> {
    match *step {
        Step::Update(peer, prefix, value) => {
            let values = [Value::Int(value.unwrap_or(0))];
            let change = match value {
                Some(_) => Change::Announce(Attributes::Values(&values)),
                None => Change::Withdraw,
            };
            let peer = numbers[peer as usize];
            to.update(&Update { peer, ..Update::new(prefix, change) })
        }
        Step::Down(peer) => to.down(numbers[peer as usize]),
        Step::Mark(peer) => to.mark_stale(numbers[peer as usize]),
        Step::Sweep(peer) => to.sweep(numbers[peer as usize]),
    }
}

/// Checks that the live table's attributes for every prefix are those of its RIB.
fn answers_as_its_rib(live: &Live) {
    live.flush().unwrap();
    let table = live.current::<u32>(0).unwrap();
    live.with_rib(|rib| {
        for addr in (0..64u32).flat_map(|i| [i << 26 | 0x1_0203, i << 26 | 7]) {
            let mut hops = [Hop::NONE];
            table.lookup_batch(&[addr], &mut hops);
            let expected = rib.longest(0, addr).map(|(_, path)| path.attributes);
            assert_eq!(table.attributes(hops[0]).cloned(), expected, "{addr:x}");
        }
    });
}

/// A feed that is interrupted anywhere, even between a mark and its sweep, and continues from its checkpoint gives the
/// same table as an uninterrupted one.
#[test]
fn a_feed_continues_from_a_checkpoint_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rib.fib");
    let mut in_sweeps = 0;
    for seed in 0..20 {
        let steps = steps(seed, 300);
        let mut whole = Rib::default();
        play(&steps, &mut whole);
        let cut = Rng::new(seed).below(300) as usize;
        let mut begun = Rib::default();
        play(&steps[..cut], &mut begun);
        begun.checkpoint("0").write(&path).unwrap();
        in_sweeps += begun.resyncing().len();
        let restored = Rib::open(&path, Preference::default()).unwrap();
        let sequence = restored.rib.sequence();
        assert_eq!(sequence, cut as u64);

        let live = live(restored.rib);
        let mut feed = LiveFeed::new(&live).skipping(sequence);
        play(&steps, &mut feed);
        let is_update = |step: &&Step| matches!(step, Step::Update(..));
        assert_eq!(feed.applied() as usize, steps[cut..].iter().filter(is_update).count());
        answers_as_its_rib(&live);
        live.with_rib(|rib| {
            assert_eq!(paths(rib), paths(&whole));
            assert_eq!(rib.resyncing(), whole.resyncing());
            assert_eq!(rib.sequence(), 300);
        });
    }
    assert!(in_sweeps > 10, "{in_sweeps} checkpoints in the middle of a sweep");
}

/// A disk that accepts no checkpoint: events, and the feed continues; when it accepts them again, one is written
/// that can be opened. Only the failure of the last one, which is not tried again, is an error.
#[test]
fn a_checkpoint_that_fails_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let path = missing.join("rib.fib");
    let failures = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&failures);
    let live = live(Rib::default());
    let clock = Fake::default();
    let new = || {
        let events = Arc::clone(&events);
        Checkpoints::new(&path, ms(1000), "here", clock.now(), move |event| match event {
            Event::CheckpointFailed { .. } => events.lock().unwrap().push(event),
            other => panic!("{other}"),
        })
    };
    let mut checkpoints = new();
    let prefix: AnyPrefix = "10.0.0.0/8".parse().unwrap();
    for round in 1..=6 {
        let values = [Value::Int(round)];
        live.apply(&Update::new(prefix, Change::Announce(Attributes::Values(&values)))).unwrap();
        live.peer(Peer::new(None, 0));
        clock.sleep(ms(999));
        checkpoints.tick(clock.now(), &live);
        let before = (failures.lock().unwrap().len() as u64, checkpoints.written());
        if round == 4 {
            fs::create_dir(&missing).unwrap();
        }
        clock.sleep(ms(1));
        checkpoints.tick(clock.now(), &live);
        checkpoints.wait();
        let after = (failures.lock().unwrap().len() as u64, checkpoints.written());
        // One attempt each second, and none before.
        assert_eq!(before, ((round - 1).min(3), (round - 1).saturating_sub(3)));
        assert_eq!(after, (round.min(3), round.saturating_sub(3)));
        if round >= 4 {
            let restored = Rib::open(&path, Preference::default()).unwrap();
            assert_eq!((restored.rib.sequence(), &*restored.position), (round, "here"));
        }
    }
    let message = failures.lock().unwrap()[0].to_string();
    assert!(message.contains("rib.fib") && message.contains("tried when it is due"), "{message}");
    assert_eq!(checkpoints.finish(&live).unwrap(), 4);
    fs::remove_dir_all(&missing).unwrap();
    let error = new().finish(&live).unwrap_err();
    assert!(matches!(error, FeedError::Checkpoint(_)), "{error}");
}

/// A checkpoint identifies its feed: another feed is refused before anything is written, a longer one continues.
#[test]
fn another_feed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rib.fib");
    let (mut first, second) = (steps(1, 300), steps(2, 600));
    let feed = |live: &Live, known: Option<FeedMark>, names: &str, steps: &[Step]| {
        let clock = Fake::default();
        let every = ms(1 << 40);
        let checkpoints =
            Checkpoints::new(&path, every, "0", clock.now(), |event| panic!("{event}"));
        let feed = LiveFeed::with_clock(live, clock);
        let feed = match known {
            Some(known) => feed.going_on(known),
            None => feed,
        };
        let mut feed = feed.with_checkpoints(Some(checkpoints.of_feed([names])));
        let numbers = [1, 2, 3].map(|asn| feed.peer(&Peer::new(None, asn)));
        for step in steps {
            apply_step(&numbers, step, &mut feed)?;
        }
        feed.finish()
    };
    feed(&live(Rib::default()), None, "first", &first).unwrap();
    let before = fs::read(&path).unwrap();
    let restored = || Rib::open(&path, Preference::default()).unwrap();
    let mark = restored().feed.unwrap();
    assert_eq!((&*mark.names, mark.events), (&["first".to_owned()][..], 300));

    for (steps, short) in [(&second, false), (&first[..299].to_vec(), true)] {
        let Restored { rib, feed: known, .. } = restored();
        let error = feed(&live(rib), known, "second", steps).unwrap_err();
        assert!(
            matches!(&error, FeedError::Table(TableError::OtherFeed { is_short, .. }) if *is_short == short)
        );
        assert!(error.to_string().contains("300 events of first"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    // One event in the middle differs.
    let mut changed = first.clone();
    changed[17] = Step::Update(0, "99.0.0.0/8".parse().unwrap(), Some(1));
    let Restored { rib, feed: known, .. } = restored();
    assert!(feed(&live(rib), known, "first", &changed).is_err());
    // The same, and what followed.
    first.extend(steps(3, 50));
    let mut whole = Rib::default();
    play(&first, &mut whole);
    let Restored { rib, feed: known, .. } = restored();
    feed(&live(rib), known, "renamed", &first).unwrap();
    let Restored { rib, feed: Some(mark), .. } = restored() else { panic!("no feed") };
    assert_eq!((mark.events, &*mark.names), (350, &["renamed".to_owned()][..]));
    assert_eq!(prefixes(&rib, 0), prefixes(&whole, 0));
}

/// Updates of a feed are paced by its clock, without waiting for skipped ones.
#[test]
fn feeds_are_paced() {
    let live = live(Rib::default());
    let clock = Fake::default();
    let mut feed = LiveFeed::with_clock(&live, clock.clone())
        .paced(Speed::Times(2.0), Some(1000))
        .skipping(10);
    let peer = feed.peer(&Peer::new(None, 1));
    for second in 0..30 {
        let update = Update::new(Prefix::<u32>::ALL.into(), Change::Withdraw);
        let time = (100 + second) * 1_000_000;
        feed.update(&Update { peer, time, ..update }).unwrap();
    }
    assert_eq!((feed.applied(), clock.now()), (20, ms(19_000 / 2)));
    feed.down(peer).unwrap();
    assert_eq!(live.with_rib(Rib::sequence), 21);
}

/// The engine that suits the table is used: short prefixes, then mostly host routes, then short ones again, with real
/// engines, whose answers stay those of the RIB.
#[test]
fn the_engine_follows_the_shape_of_the_table() {
    let live = live(Rib::default());
    let mut feed = LiveFeed::new(&live);
    let mut session = Session::new(|| Box::new(Lines::default()), SessionOptions::default());
    session.connected(ms(0), &mut feed, &mut Vec::new()).unwrap();
    let engine = || live.current::<u128>(0).unwrap().engine_name();
    assert_eq!(engine(), "wideleaf");
    let mut feed_line =
        |line: String| session.bytes(ms(0), line.as_bytes(), &mut feed, &mut Vec::new()).unwrap();
    (0..16).for_each(|i| feed_line(format!("+ 0 2{i:03x}::/16 {i}\n")));
    answers_as_its_rib(&live);
    assert_eq!(engine(), "wideleaf");
    (0..64).for_each(|i| feed_line(format!("+ 0 2{i:03x}:0:0:1::/64 {i}\n")));
    answers_as_its_rib(&live);
    assert_eq!(engine(), "matchline");
    (0..64).for_each(|i| feed_line(format!("- 0 2{i:03x}:0:0:1::/64\n")));
    answers_as_its_rib(&live);
    assert_eq!(engine(), "wideleaf");
}

/// A table that lost its last route has engines for a while, and gets some again with its next route. Nothing wakes
/// the loop otherwise.
#[test]
fn engines_of_empty_tables_end_after_a_while() {
    let live = live(Rib::default());
    let clock = Fake::default();
    let mut feed = LiveFeed::with_clock(&live, clock.clone());
    let peer = feed.peer(&Peer::new(None, 1));
    let vrf = feed.vrf("bmp/65000:1");
    assert_eq!((live.followed(), feed.idle()), (vec![0], None));
    let announce = Change::Announce(Attributes::Values(&[Value::Int(1)]));
    for _ in 0..2 {
        for change in [announce, Change::Withdraw] {
            let update = Update::new("10.0.0.0/8".parse().unwrap(), change);
            feed.update(&Update { peer, vrf, ..update }).unwrap();
            assert_eq!(live.followed(), [0, vrf]);
        }
        live.flush().unwrap();
        let mut looks = 0;
        while let Some(wait) = feed.idle() {
            assert_eq!(wait, ms(5000));
            clock.sleep(wait);
            looks += 1;
        }
        assert_eq!((looks, live.followed()), (2, vec![0]));
    }
}

#[test]
fn churn_depends_on_the_table_and_the_seed_alone() {
    let mut tables = [(); 3].map(|()| Rib::default());
    for (seed, rib) in [1, 1, 2].into_iter().zip(&mut tables) {
        assert!(matches!(churn(1, 1, &[], rib), Err(FeedError::EmptyTable)));
        let start: Vec<AnyPrefix> = ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]
            .map(|p| p.parse::<AnyPrefix>().unwrap())
            .into();
        churn(2000, seed, &start, rib).unwrap();
        assert_eq!(rib.sequence(), 2000);
    }
    let [first, again, other] = tables.each_ref().map(paths);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let longest = prefixes(&tables[0], 0).into_iter().map(|prefix| match prefix {
        AnyPrefix::V4(prefix) => prefix.len() <= 24,
        AnyPrefix::V6(prefix) => prefix.len() <= 48,
    });
    assert!(longest.len() > 10 && longest.into_iter().all(|fits| fits));
}
