//! Files with each byte changed, cut at each length, and missing: no answer is wrong, and errors name the place.

use std::fs;
use std::path::{Path, PathBuf};

use fibula_history::{
    FoundRoute, HistoryAnswer, HistoryBreak, HistoryError, HistoryFolder, HistoryNote,
    HistoryOptions, HistoryQuestion, RouteKey, RouteRecord,
};
use tempfile::TempDir;

use crate::{Dice, copy, files, key, peer, set, small};

fn keys() -> [RouteKey; 4] {
    ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "2001:db8::/32"].map(|prefix| key("bgp", prefix))
}

const TIMES: [u64; 8] = [1_000, 1_010, 1_020, 1_035, 1_050, 1_064, 1_070, 1_079];

/// A folder with two merged files, parts and a log.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut options = small();
    options.log_records = 6;
    let mut history = HistoryFolder::open(folder.path(), options).unwrap();
    history.begin(1_000, HistoryBreak::Begin).unwrap();
    let mut dice = Dice(7);
    for time in 1_001..1_080 {
        let key = keys()[dice.below(4) as usize].clone();
        let number = dice.below(4) as u32;
        let best = (number > 0).then(|| set(number));
        history.write(&[(key, RouteRecord::new(time, peer(1), best))]).unwrap();
        history.cover(time);
        history.tend(time).unwrap();
        // Until what is being merged is there, so that the files are the same each time.
        while time % 6 == 0 && files(folder.path(), &["part"]).len() > 2 {
            history.tend(time).unwrap();
        }
    }
    history.close().unwrap();
    assert!(files(folder.path(), &["merged"]).len() >= 2, "{:?}", fs::read_dir(folder.path()));
    assert_eq!(files(folder.path(), &["log"]).len(), 1);
    assert!(!files(folder.path(), &["part"]).is_empty());
    folder
}

type Answers = Vec<Result<HistoryAnswer, HistoryError>>;

fn answers(history: &HistoryFolder) -> Answers {
    let reader = history.reader();
    let mut all = Vec::new();
    for time in TIMES {
        for key in keys() {
            all.push(reader.at(HistoryQuestion::Prefix(key.prefix), time, Some("bgp")));
        }
        all.push(reader.at(HistoryQuestion::Address("10.1.2.3".parse().unwrap()), time, None));
    }
    all
}

fn damaged_path(error: &HistoryError) -> Option<(&Path, u64)> {
    match error {
        HistoryError::Damaged { path, offset, .. } => Some((path, *offset)),
        _ => None,
    }
}

/// Compares the answers of a folder in which `file` is damaged with those of the whole one. Returns their number.
fn compare(history: &mut HistoryFolder, whole: &Answers, file: &Path, length: u64) -> usize {
    let notes = history.notes();
    for note in &notes {
        let path = match note {
            HistoryNote::Cut { path, why, .. } => {
                assert!(damaged_path(why).is_some());
                path.clone()
            }
            HistoryNote::Damaged(error) => damaged_path(error).unwrap().0.to_owned(),
            other => panic!("{other}"),
        };
        let name = |path: &Path| path.file_stem().unwrap().to_owned();
        let name = name(&path).to_string_lossy().trim_end_matches(".log").to_owned();
        assert!(file.to_string_lossy().contains(&name), "{path:?} for {file:?}");
    }
    let mut count = 0;
    for (answer, whole) in answers(history).into_iter().zip(whole) {
        let whole = whole.as_ref().unwrap();
        match answer {
            Ok(answer) => {
                count += 1;
                let has_gap = answer.gaps.len() > whole.gaps.len();
                assert_eq!(answer.tables.len(), whole.tables.len());
                for (then, whole) in answer.tables.iter().zip(&whole.tables) {
                    assert_eq!(then.routes.len(), whole.routes.len(), "{file:?}");
                    for (route, whole) in then.routes.iter().zip(&whole.routes) {
                        assert_eq!((route.prefix, &route.record), (whole.prefix, &whole.record));
                        // A change may be in what was cut off the log.
                        let is_cut = file.extension().is_some_and(|e| e == "log");
                        let is_until = route.until == whole.until;
                        assert!(
                            is_until || has_gap || (is_cut && route.until.is_none()),
                            "{file:?}"
                        );
                    }
                }
            }
            Err(HistoryError::Missing(gap)) => assert_eq!(gap.why, HistoryBreak::Damage),
            Err(HistoryError::After { .. } | HistoryError::Before { .. }) => {}
            Err(HistoryError::NoTable { .. }) => {
                panic!("{file:?}: a damaged file is no reason to know no table")
            }
            Err(error) => {
                let (path, offset) = damaged_path(&error).unwrap_or_else(|| panic!("{error}"));
                let (found, file) = (path.file_name(), file.file_name());
                assert!(
                    found == file || path.extension().is_some_and(|e| e == "damaged"),
                    "{error}"
                );
                assert!(offset <= length, "{error}");
            }
        }
    }
    count
}

/// A copy in which a file is other bytes, opened.
fn with(from: &Path, file: &Path, bytes: Option<&[u8]>) -> (TempDir, HistoryFolder) {
    let other = tempfile::tempdir().unwrap();
    copy(from, other.path());
    let path = other.path().join(file.file_name().unwrap());
    match bytes {
        Some(bytes) => fs::write(&path, bytes).unwrap(),
        None => fs::remove_file(&path).unwrap(),
    }
    let history = HistoryFolder::open(other.path(), HistoryOptions::default()).unwrap();
    (other, history)
}

fn all_files(folder: &TempDir) -> (Vec<PathBuf>, Answers) {
    let whole = {
        let copied = tempfile::tempdir().unwrap();
        copy(folder.path(), copied.path());
        answers(&HistoryFolder::open(copied.path(), HistoryOptions::default()).unwrap())
    };
    assert!(whole.iter().all(Result::is_ok));
    (files(folder.path(), &["merged", "part", "log"]), whole)
}

#[test]
fn changed_bytes_change_no_answer() {
    let folder = folder();
    let (files, whole) = all_files(&folder);
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let (mut count, mut tries) = (0, 0);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            let (_other, mut history) = with(folder.path(), &file, Some(&other));
            count += compare(&mut history, &whole, &file, bytes.len() as u64);
            tries += 1;
        }
        // The other files have answers all the same.
        assert!(count >= tries * 5, "{file:?}: {count} answers in {tries} tries");
    }
}

#[test]
fn cut_and_missing_files_change_no_answer() {
    let folder = folder();
    let (files, whole) = all_files(&folder);
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let (mut count, mut tries) = (0, 0);
        for length in (0..bytes.len()).step_by(3) {
            let (_other, mut history) = with(folder.path(), &file, Some(&bytes[..length]));
            count += compare(&mut history, &whole, &file, bytes.len() as u64);
            tries += 1;
        }
        let (_other, mut history) = with(folder.path(), &file, None);
        count += compare(&mut history, &whole, &file, bytes.len() as u64);
        assert!(count >= tries * 5, "{file:?}: {count} answers in {tries} tries");
    }
}

/// After damage the history is begun anew: new answers need no damaged file.
#[test]
fn a_history_with_damage_goes_on() {
    let folder = folder();
    let merged = files(folder.path(), &["merged"]).pop().unwrap();
    let mut bytes = fs::read(&merged).unwrap();
    bytes[20] ^= 1;
    let (_other, mut history) = with(folder.path(), &merged, Some(&bytes));
    let error = history.resync().err().expect("the state of all prefixes is damaged");
    assert_eq!(damaged_path(&error).unwrap().1, 8, "{error}");
    history.start_anew().unwrap();
    let mut resync = history.resync().unwrap();
    let found = FoundRoute { key: keys()[0].clone(), peer: peer(1), best: set(9) };
    let differences = resync.compare(None, vec![found], 2_000, |_| false).unwrap();
    assert_eq!(differences.len(), 1, "nothing is compared with what is damaged");
    history.write(&differences).unwrap();
    history.begin(2_000, HistoryBreak::Damage).unwrap();
    history.cover(2_010);
    let reader = history.reader();
    let answer = reader.at(HistoryQuestion::Prefix(keys()[0].prefix), 2_005, None).unwrap();
    let route = &answer.tables[0].routes[0];
    assert!(route.record.is_found && route.record.best == Some(set(9)) && route.until.is_none());
    assert_eq!(answer.gaps.len(), 1);
    let question = HistoryQuestion::Prefix(keys()[1].prefix);
    assert!(reader.at(question, 2_005, None).unwrap().tables[0].routes.is_empty());
    // And after a restart.
    let at = history.reader().recorded();
    history.close().unwrap();
    let mut history = HistoryFolder::open(_other.path(), HistoryOptions::default()).unwrap();
    assert_eq!(history.reader().recorded(), at);
    assert!(history.resync().is_ok());
}
