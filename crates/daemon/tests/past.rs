//! The history in files of a server, fed by lines of RIS over a connection: over changes, restarts and gaps.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_daemon::Serve;
use fibula_feeds::SourceState;
use fibula_history::{HistoryBreak, HistoryFolder, HistoryOptions};
use fibula_rib::Moment;
use fibula_server::api::{Attributes, RouteHistory};
use fibula_server::client::{Client, ClientError, ClientOptions};

use crate::alarms::{Source, metric, until_state};
use crate::until;

fn config(folder: &Path) -> String {
    format!("[history]\npath = '{}'\nkeep = '7d'\n", folder.display())
}

fn client(serve: &Serve) -> Client {
    Client::new(ClientOptions::new(format!("http://{}", serve.addresses()[0]))).unwrap()
}

/// The time now, as requests have it. Changes before and after it are at least some milliseconds away.
fn time() -> String {
    sleep(Duration::from_millis(5));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let day = Moment::from_unix((since.as_secs() / 86_400 * 86_400) as i64);
    let of_day = since.as_secs() % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    sleep(Duration::from_millis(5));
    format!("{day}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The answer, as soon as the history has got that far.
fn at(serve: &Serve, question: &str, time: &str) -> RouteHistory {
    until("an answer about the past", || match client(serve).history(question, time, None) {
        Ok(answer) => Some(answer),
        Err(ClientError::Refused { sentence, .. }) if sentence.contains("so far") => None,
        Err(error) => panic!("{error}"),
    })
}

/// The sentence with which a question is refused, and its status.
fn refused(serve: &Serve, question: &str, time: &str, table: Option<&str>) -> (u16, String) {
    match client(serve).history(question, time, table) {
        Err(ClientError::Refused { status, sentence }) => (status, sentence),
        other => panic!("{other:?}"),
    }
}

/// The prefixes and AS paths of the routes in the only table.
fn paths(answer: &RouteHistory) -> Vec<(&str, &str)> {
    let [table] = &answer.tables[..] else { panic!("{answer:?}") };
    fn path(attributes: &Attributes) -> &str {
        match attributes {
            Attributes::Bgp(bgp) => &bgp.as_path,
            other => panic!("{other:?}"),
        }
    }
    table.covering.iter().map(|route| (&*route.prefix, path(&route.attributes))).collect()
}

/// Waits until changes are written.
fn until_recording(serve: &Serve) {
    until("recording", || (metric(serve, "history_recording", None) == 1).then_some(()));
}

/// Waits until changes are written and no more come.
fn until_quiet(serve: &Serve) {
    let figures = || {
        let names = ["history_recording", "history_changes_total", "history_lost_changes_total"];
        names.map(|name| metric(serve, name, None))
    };
    until("quiet", || {
        let before = figures();
        sleep(Duration::from_millis(300));
        (before[0] == 1 && figures() == before).then_some(())
    });
}

fn until_changes(serve: &Serve, count: u64) {
    until("changes", || (metric(serve, "history_changes_total", None) >= count).then_some(()));
}

#[test]
fn routes_of_each_time_are_known_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("made/by/the/server");
    let mut source = Source::new();
    let serve = source.serve(&config(&history));
    until_recording(&serve);
    let empty = time();
    source.accept();
    source.announce("193.0.0.0/16", "64500, 1");
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    until_changes(&serve, 2);
    let first = time();
    source.announce("193.0.0.0/21", "64500, 64501, 3333");
    until_changes(&serve, 3);
    let second = time();
    source.withdraw("193.0.0.0/21");
    until_changes(&serve, 4);
    let third = time();

    assert_eq!(at(&serve, "193.0.6.139", &empty).tables[0].found, None);
    let check = |serve: &Serve| {
        let found = at(serve, "193.0.6.139", &first);
        let wanted = [("193.0.0.0/21", "64500 3333"), ("193.0.0.0/16", "64500 1")];
        assert_eq!(paths(&found), wanted);
        let route = found.tables[0].found.as_ref().unwrap();
        assert!(*empty < *route.since && *route.since < *first && !route.or_before);
        assert!(*first < **route.until.as_ref().unwrap(), "{route:?}");
        assert_eq!(route.peer.as_ref().unwrap().name, "AS64500 (192.0.2.1)");
        let found = at(serve, "193.0.0.0/21", &second);
        assert_eq!(paths(&found), [("193.0.0.0/21", "64500 64501 3333")]);
        let found = at(serve, "193.0.0.0/21", &third);
        assert_eq!(paths(&found), []);
        assert!(*second < **found.tables[0].since.as_ref().unwrap(), "{found:?}");
        assert_eq!(paths(&at(serve, "193.0.6.139", &third)), [("193.0.0.0/16", "64500 1")]);
    };
    check(&serve);
    assert_eq!(at(&serve, "193.0.0.0/16", &third).tables[0].found.as_ref().unwrap().until, None);
    // What is not known is not guessed.
    let (status, sentence) = refused(&serve, "193.0.0.0/21", "2020-01-01", None);
    assert!(status == 404 && sentence.starts_with("the history begins at 2"), "{sentence}");
    let refused_future = refused(&serve, "193.0.0.0/21", "2120-01-01T00:00:00Z", None);
    assert_eq!(refused_future, (400, "the time is in the future".to_owned()));
    let (status, sentence) = refused(&serve, "193.0.0.0/21", "yesterday", None);
    assert!(status == 400 && sentence.contains("2024-05-01T12:00:00Z"), "{sentence}");
    let (status, sentence) = refused(&serve, "193.0.0.0/21", &second, Some("bgp"));
    assert!(status == 404 && sentence.contains("no table \"bgp\""), "{sentence}");
    let (status, _) = refused(&serve, "193.0.0.0/99", &second, None);
    assert_eq!(status, 400);
    serve.stop().unwrap();
    let stopped = time();

    // Without a checkpoint the table begins empty: its routes were gone, and came back.
    sleep(Duration::from_millis(50));
    let serve = source.serve(&config(&history));
    until_recording(&serve);
    let again = time();
    check(&serve);
    let (status, sentence) = refused(&serve, "193.0.0.0/21", &stopped, None);
    let why = "the server was not running, or read its table";
    assert!(status == 404 && sentence.ends_with(why), "{sentence}");
    assert_eq!(paths(&at(&serve, "193.0.6.139", &again)), []);
    let found = at(&serve, "193.0.0.0/16", &third);
    assert_eq!((found.gaps.len(), &*found.gaps[0].why), (1, why), "{found:?}");
    source.accept();
    source.announce("193.0.0.0/16", "64500, 2");
    until_state(&serve, SourceState::Up);
    until_changes(&serve, 1);
    let last = time();
    assert_eq!(paths(&at(&serve, "193.0.6.139", &last)), [("193.0.0.0/16", "64500 2")]);
    serve.stop().unwrap();
}

/// A recorder that is too slow reads the tables anew: here because few changes are kept in memory.
#[test]
fn changes_that_came_too_fast_are_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Source::new();
    let more = config(folder.path());
    let serve = source.serve(&format!("[tables]\nhistory = 4\n{more}"));
    until_recording(&serve);
    source.accept();
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    let mut before = time();
    let mut count = 0;
    while metric(&serve, "history_lost_changes_total", None) == 0 {
        before = time();
        // Until the recorder has looked: what came before it is in no gap.
        sleep(Duration::from_millis(500));
        for number in 0..2000 {
            source.announce(
                &format!("10.{}.{}.0/24", number / 250, number % 250),
                &format!("64500, {count}"),
            );
        }
        count += 1;
        assert!(count < 100, "no change was lost");
        until_quiet(&serve);
    }
    // A route that is only in what was lost, or is found afterwards.
    source.announce("192.0.2.0/24", "64500, 9");
    until("the route", || {
        let found = client(&serve).lookup("192.0.2.1".parse().unwrap(), None).unwrap();
        found.tables.iter().any(|table| table.found.is_some()).then_some(())
    });
    until_quiet(&serve);
    let after = time();
    let found = at(&serve, "10.7.249.1", &after);
    let path = format!("64500 {}", count - 1);
    assert_eq!(paths(&found), [("10.7.249.0/24", &*path)]);
    assert_eq!(paths(&at(&serve, "192.0.2.0/24", &after)), [("192.0.2.0/24", "64500 9")]);
    let found = at(&serve, "193.0.0.0/21", &before);
    assert_eq!(paths(&found), [("193.0.0.0/21", "64500 3333")]);
    assert!(found.gaps.iter().any(|gap| gap.why == "changes came faster than they were recorded"));
    assert!(metric(&serve, "history_scans_total", None) >= 2);
    serve.stop().unwrap();
}

/// Files that cannot be written stop nothing else, and are tried again.
#[test]
fn a_folder_that_cannot_be_made_is_reported_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut source = Source::new();
    let serve = source.serve(&config(&file));
    source.accept();
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    let ready = || client(&serve).get("/readyz", &[]).unwrap();
    until("the reason", || (ready().status == 503).then_some(()));
    let body = String::from_utf8(ready().body.to_vec()).unwrap();
    assert!(body.contains("the history cannot be opened") && body.contains("file"), "{body}");
    let (status, sentence) = refused(&serve, "193.0.0.0/21", "2026-01-01", None);
    assert!(status == 503 && sentence.contains("cannot be opened"), "{sentence}");
    assert_eq!(metric(&serve, "history_recording", None), 0);
    assert_eq!(client(&serve).get("/healthz", &[]).unwrap().status, 200);
    let found = client(&serve).lookup("193.0.0.1".parse().unwrap(), None).unwrap();
    assert!(found.tables[0].found.is_some());
    fs::remove_file(&file).unwrap();
    until_recording(&serve);
    assert_eq!(ready().status, 200);
    let now = time();
    let found = at(&serve, "193.0.0.0/21", &now);
    assert_eq!(paths(&found), [("193.0.0.0/21", "64500 3333")]);
    assert!(found.tables[0].found.as_ref().unwrap().or_before);
    serve.stop().unwrap();
}

/// With a checkpoint a restart is a gap, and no change of the routes that stayed.
#[test]
fn routes_of_a_checkpoint_are_as_old_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("rib.fib");
    let checkpoint = format!("[checkpoint]\nfile = '{}'\n", checkpoint.display());
    let more = checkpoint + &config(&folder.path().join("history"));
    let mut source = Source::new();
    let serve = source.serve(&more);
    until_recording(&serve);
    source.accept();
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    until_changes(&serve, 1);
    let before = time();
    let since = at(&serve, "193.0.0.0/21", &before).tables[0].found.clone().unwrap().since;
    serve.stop().unwrap();
    sleep(Duration::from_millis(50));
    let serve = source.serve(&more);
    until_recording(&serve);
    let after = time();
    let found = at(&serve, "193.0.0.0/21", &after);
    let route = found.tables[0].found.as_ref().unwrap();
    assert_eq!((&route.since, route.or_before, &route.until), (&since, false, &None));
    assert_eq!(found.gaps.len(), 1, "{found:?}");
    assert_eq!(metric(&serve, "history_changes_total", None), 0);
    serve.stop().unwrap();
}

/// The newest change in the files is of tomorrow: what is written now would be before it.
#[test]
fn a_clock_that_is_behind_the_files_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    history.begin(now + 86_400_000_000, HistoryBreak::Begin).unwrap();
    history.close().unwrap();
    let mut source = Source::new();
    let serve = source.serve(&config(folder.path()));
    source.accept();
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    until("the reason", || {
        let body = client(&serve).get("/readyz", &[]).unwrap().body;
        String::from_utf8(body.to_vec()).unwrap().contains("the clock is behind").then_some(())
    });
    assert_eq!(metric(&serve, "history_recording", None), 0);
    assert_eq!(metric(&serve, "history_changes_total", None), 0);
    let found = client(&serve).lookup("193.0.0.1".parse().unwrap(), None).unwrap();
    assert!(found.tables[0].found.is_some());
    serve.stop().unwrap();
}
