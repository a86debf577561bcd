//! Readers on threads of their own, while files are made, merged and deleted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fibula_history::{
    HistoryBreak, HistoryError, HistoryFolder, HistoryQuestion, HistoryReader, RouteRecord,
};

use crate::{Dice, key, peer, set, small};

const KEYS: u64 = 5;
const BEGIN: u64 = 1_000_000;

fn prefix(number: u64) -> String {
    format!("10.{number}.0.0/16")
}

/// Asks for random times until it is to stop, and returns how many answers there were.
fn ask(reader: &HistoryReader, seed: u64, stop: &AtomicBool) -> u64 {
    let (mut dice, mut count) = (Dice(seed), 0);
    while !stop.load(Ordering::Relaxed) {
        let (Some((oldest, newest)), gaps) = reader.recorded() else { continue };
        assert_eq!(gaps, []);
        if newest < BEGIN + 2 * KEYS {
            continue;
        }
        let time = oldest.max(BEGIN + KEYS) + dice.below(newest - oldest.max(BEGIN + KEYS) + 1);
        let number = dice.below(KEYS);
        let question = HistoryQuestion::Prefix(prefix(number).parse().unwrap());
        match reader.at(question, time, Some("bgp")) {
            Ok(answer) => {
                // The route of a key changes each fifth microsecond.
                let since = time - (time - number) % KEYS;
                let route = &answer.tables[0].routes[0];
                assert_eq!(
                    (route.record.time, &route.record.best),
                    (since, &Some(set(since as u32)))
                );
                assert!(route.until.is_none_or(|until| until == since + KEYS), "{route:?}");
                count += 1;
            }
            // It was deleted meanwhile.
            Err(HistoryError::Before { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    count
}

#[test]
fn readers_and_the_writer_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = small();
    options.keep = Duration::from_micros(4000);
    let mut history = HistoryFolder::open(folder.path(), options).unwrap();
    history.begin(BEGIN, HistoryBreak::Begin).unwrap();
    let (reader, stop, answers) = (history.reader(), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..3 {
            let (reader, stop, answers) = (&reader, &stop, &answers);
            scope.spawn(move || answers.fetch_add(ask(reader, seed, stop), Ordering::Relaxed));
        }
        for time in BEGIN..BEGIN + 6_000 {
            let change = RouteRecord::new(time, peer(1), Some(set(time as u32)));
            let written = history.write(&[(key("bgp", &prefix(time % KEYS)), change)]);
            history.cover(time);
            let tended = history.tend(time);
            if written.is_err() || tended.is_err() {
                stop.store(true, Ordering::Relaxed);
                panic!("{written:?} {tended:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let notes = history.notes();
    assert!(notes.is_empty(), "{notes:?}");
    assert!(history.reader().recorded().0.unwrap().0 > BEGIN, "nothing was deleted");
    assert!(answers.load(Ordering::Relaxed) > 100, "{answers:?} answers");
}
