//! Age, bytes, memory, and who may write.

use std::fs;
use std::time::Duration;

use fibula_history::{
    HistoryBreak, HistoryError, HistoryFolder, HistoryNote, HistoryOptions, HistoryQuestion,
    RouteRecord,
};

use crate::{files, key, peer, set, small};

/// Writes a change each millisecond from `begin` to `end`, and tends the folder.
fn fill(history: &mut HistoryFolder, begin: u64, end: u64) {
    for at in (begin..end).step_by(1000) {
        let key = key("bgp", &format!("10.{}.0.0/16", at / 1000 % 200));
        let change = RouteRecord::new(at, peer(1), Some(set((at / 1000 % 3) as u32)));
        history.write(&[(key, change)]).unwrap();
        history.cover(at);
        history.tend(at).unwrap();
    }
}

/// Waits until nothing is being merged.
fn settle(history: &mut HistoryFolder, now: u64) {
    for _ in 0..20 {
        history.tend(now).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn files_that_are_old_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = small();
    options.keep = Duration::from_millis(400);
    let mut history = HistoryFolder::open(folder.path(), options.clone()).unwrap();
    history.begin(1_000_000, HistoryBreak::Begin).unwrap();
    fill(&mut history, 1_000_000, 3_000_000);
    settle(&mut history, 3_000_000);
    let reader = history.reader();
    let (Some((oldest, newest)), gaps) = reader.recorded() else { panic!("nothing is kept") };
    assert!((1_000_001..=2_600_000).contains(&oldest), "{oldest}");
    assert!(newest >= 2_999_000 && gaps.is_empty(), "{newest} {gaps:?}");
    // What is kept has the state before it.
    let question = HistoryQuestion::Address("10.7.0.1".parse().unwrap());
    let answer = reader.at(question, oldest, None).unwrap();
    assert!(answer.tables[0].routes[0].record.time < oldest, "{answer:?}");
    let error = reader.at(question, oldest - 1, None).unwrap_err();
    assert!(matches!(error, HistoryError::Before { oldest: at } if at == oldest), "{error}");
    assert!(history.files() < 60, "{}", history.files());
}

#[test]
fn files_beyond_the_bytes_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = small();
    options.bytes = 30_000;
    let mut history = HistoryFolder::open(folder.path(), options).unwrap();
    history.begin(1_000_000, HistoryBreak::Begin).unwrap();
    fill(&mut history, 1_000_000, 4_000_000);
    settle(&mut history, 4_000_000);
    let on_disk = |extensions: &[&str]| -> u64 {
        files(folder.path(), extensions).iter().map(|path| path.metadata().unwrap().len()).sum()
    };
    let bytes = on_disk(&["merged", "part", "log"]);
    assert_eq!(history.bytes(), bytes);
    assert!(bytes <= 30_000 && bytes > 10_000 && !history.is_over(), "{bytes}");
    assert!(history.reader().recorded().0.unwrap().0 > 1_000_000);
    assert!(history.notes().is_empty());
}

/// The newest state is never deleted: that there is no room for it is said, once.
#[test]
fn too_few_bytes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = small();
    options.bytes = 100;
    let mut history = HistoryFolder::open(folder.path(), options).unwrap();
    history.begin(1_000_000, HistoryBreak::Begin).unwrap();
    fill(&mut history, 1_000_000, 1_100_000);
    settle(&mut history, 1_100_000);
    assert!(history.is_over());
    let notes = history.notes();
    assert!(matches!(notes[..], [HistoryNote::TooSmall { bytes }] if bytes > 100), "{notes:?}");
    let question = HistoryQuestion::Address("10.7.0.1".parse().unwrap());
    assert!(history.reader().at(question, 1_099_000, None).is_ok());
}

#[test]
fn a_folder_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let first = HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    let second = HistoryFolder::open(folder.path(), HistoryOptions::default());
    assert!(matches!(second, Err(HistoryError::Locked { .. })));
    drop(first);
    HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = HistoryFolder::open(&file, HistoryOptions::default()).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

/// A log that cannot become a sorted file stays, and is tried again.
#[test]
fn a_folder_that_is_gone_is_an_error_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    let mut history = HistoryFolder::open(&path, small()).unwrap();
    history.begin(1_000_000, HistoryBreak::Begin).unwrap();
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    let mut failed = 0;
    for at in 1_000_001..1_000_020 {
        let change = RouteRecord::new(at, peer(1), Some(set(at as u32)));
        history.write(&[(key("bgp", "10.0.0.0/8"), change)]).unwrap();
        history.cover(at);
        failed += usize::from(history.tend(at).is_err());
    }
    assert!(failed > 5, "{failed}");
    fs::rename(&aside, &path).unwrap();
    history.tend(1_000_020).unwrap();
    let question = HistoryQuestion::Address("10.0.0.1".parse().unwrap());
    for at in 1_000_001..1_000_020 {
        let answer = history.reader().at(question, at, None).unwrap();
        assert_eq!(answer.tables[0].routes[0].record.time, at);
    }
    assert_eq!(files(&path, &["part"]).len(), 1);
}

/// Tables beyond a few have to be named: each is searched in each file.
#[test]
fn many_tables_have_to_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    history.begin(1_000, HistoryBreak::Begin).unwrap();
    let change = RouteRecord::new(1_001, peer(1), Some(set(1)));
    for table in 0..9 {
        history.write(&[(key(&format!("t{table}"), "10.0.0.0/8"), change.clone())]).unwrap();
    }
    history.cover(2_000);
    let reader = history.reader();
    let question = HistoryQuestion::Address("10.0.0.1".parse().unwrap());
    let error = reader.at(question, 1_500, None).unwrap_err();
    assert!(matches!(error, HistoryError::Tables { count: 9 }), "{error}");
    assert_eq!(reader.at(question, 1_500, Some("t8")).unwrap().tables.len(), 1);
    let error = reader.at(question, 1_500, Some("t9")).unwrap_err();
    assert!(matches!(error, HistoryError::NoTable { count: 9 }), "{error}");
}

/// The first log is as old as its first change, and not as 1970.
#[test]
fn a_new_history_is_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    let now = 1_790_000_000_000_000;
    history.tend(now).unwrap();
    history.begin(now, HistoryBreak::Begin).unwrap();
    let change = RouteRecord::new(now, peer(1), Some(set(1)));
    history.write(&[(key("bgp", "10.0.0.0/8"), change)]).unwrap();
    history.cover(now + 1);
    history.tend(now + 1).unwrap();
    assert_eq!(files(folder.path(), &["log", "part", "merged"]).len(), 1);
    // An hour later it is worth a sorted file.
    history.tend(now + 3_700_000_000).unwrap();
    assert_eq!(files(folder.path(), &["part"]).len(), 1);
}

/// A log that ends between a change and the time that covers it leaves no gap.
#[test]
fn sorted_files_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryFolder::open(folder.path(), small()).unwrap();
    history.begin(1_000_000, HistoryBreak::Begin).unwrap();
    for at in 1_000_001..1_000_060 {
        let change = RouteRecord::new(at, peer(1), Some(set(at as u32)));
        history.write(&[(key("bgp", "10.0.0.0/8"), change)]).unwrap();
        history.tend(at).unwrap();
    }
    history.cover(1_000_100);
    assert!(history.files() > 2);
    assert_eq!(history.reader().recorded(), (Some((1_000_000, 1_000_100)), vec![]));
}
