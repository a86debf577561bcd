//! The harness with contestants that are right, wrong, or fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HARNESS: &str = env!("CARGO_BIN_EXE_bench-harness");

const DEFINITION: &str = r#"
title = "A test"
family = "v4"
table = "gen:v4:2024:200:1"
traffic = ["PFX"]
keys = 1000
batch = 1000
rounds = 3
baseline = "it:honest"
contestants = ["it:honest", "it:liar", "it:fickle", "it:refuses", "other"]

[small]
table = "gen:v4:2024:100:1"
keys = 500
"#;

/// A folder with a definition, a peer that is the example, and one that this machine lacks.
struct Bench(PathBuf);

impl Bench {
    fn new(name: &str, definition: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("definitions/a.toml", definition);
        let example = Path::new(HARNESS).parent().unwrap().join("examples/contestant");
        let peer = format!("about = \"a test\"\nbuild = [\"true\"]\nrun = [{example:?}]\n");
        write("peers/it/peer.toml", &peer);
        write("peers/other/peer.toml", &format!("{peer}needs = [\"no-such-command\"]\n"));
        Self(folder)
    }

    /// Exit code and output.
    fn harness(&self, args: &str) -> (Option<i32>, String) {
        let run = Command::new(HARNESS)
            .args(args.split_whitespace())
            .arg("--bench")
            .arg(&self.0)
            .current_dir(&self.0)
            .output()
            .unwrap();
        let text = [run.stdout, run.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (run.status.code(), text)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn nobody_is_timed_who_is_wrong() {
    let bench = Bench::new("wrong", DEFINITION);
    let (code, text) = bench.harness("run a --out records");
    assert_eq!(code, Some(1), "{text}");
    let record = fs::read_to_string(bench.0.join("records/a.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let rows = record["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["contestant"] == name).unwrap();
    assert!(row("it:honest")["rate"]["mlps"].as_f64().unwrap() > 0.0);
    assert_eq!(row("it:honest")["rate"]["each"].as_array().unwrap().len(), 3);
    assert_eq!(row("it:honest")["rate"]["ratio"], 1.0);
    let wrong = |name: &str| row(name)["wrong"].as_str().unwrap().to_owned();
    assert!(wrong("it:liar").contains("first 255.255.255.255: 7, right none"), "{text}");
    assert!(wrong("it:fickle").contains("other hops when timed"), "{text}");
    for name in ["it:liar", "it:fickle"] {
        assert!(row(name)["rate"].is_null(), "{text}");
    }
    let absent = record["absent"].to_string();
    assert!(absent.contains("no room for the table") && absent.contains("no-such-command"));
    for ending in ["md", "csv", "svg"] {
        assert!(bench.0.join("records/a").with_extension(ending).exists(), "{ending}");
    }
    let work = bench.0.join("target/work");
    assert_eq!(fs::read_dir(work).unwrap().count(), 0, "files of the run were left");
}

#[test]
fn a_check_compares_and_times_nothing() {
    let bench = Bench::new("check", DEFINITION);
    let (code, text) = bench.harness("check");
    assert!(code == Some(1) && text.contains("it:liar, PFX: wrong "), "{text}");
    let (code, text) = bench.harness("check --only it:honest,other");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("1 contestants with traffic are right, 0 wrong; 1 contestants are absent")
    );
}

/// The smallest table that shows what is wrong has one route, or fewer where the answer is wrong without any.
#[test]
fn a_hunt_finds_a_small_table() {
    let bench = Bench::new("hunt", DEFINITION);
    let (code, text) = bench.harness("hunt it:honest --tables 5");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("IPv4: right on ") && !text.contains("IPv4: right on 0"), "{text}");
    assert!(text.contains("IPv6: right on 0 tables, refused "), "{text}");
    let (code, text) = bench.harness("hunt it:liar --tables 5");
    assert_eq!(code, Some(1), "{text}");
    let (_, found) = text.split_once("it:liar, IPv4: 255.255.255.255: 7, right ").expect(&text);
    let (_, table) = found.split_once("with the routes\n").expect(&text);
    assert!(table.lines().take_while(|line| line.contains('/')).count() <= 1, "{text}");
    let (code, text) = bench.harness("hunt other");
    assert!(code == Some(0) && text.contains("other, IPv4: absent: no-such-command"), "{text}");
    assert_eq!(fs::read_dir(bench.0.join("target/work")).unwrap().count(), 0, "files were left");
}

/// A table or traffic that is not the one of the definition is not measured.
#[test]
fn other_answers_than_the_definitions_are_an_error() {
    let (_, text) = Bench::new("answers", DEFINITION).harness("answers a");
    assert_eq!(text.matches("PFX = \"").count(), 2, "{text}");
    let right = format!("{DEFINITION}\n{text}");
    let small = "--only it:honest";
    let (code, text) = Bench::new("right", &right).harness(&format!("check {small}"));
    assert_eq!(code, Some(0), "{text}");
    let other = right.replace("gen:v4:2024:100:1", "gen:v4:2024:100:2");
    let (code, text) = Bench::new("other", &other).harness(&format!("check {small}"));
    assert!(code == Some(2) && text.contains("the definition says"), "{text}");
}

#[test]
fn a_table_that_is_not_there_is_skipped() {
    let definition = DEFINITION.replace("gen:v4:2024:200:1", "shared:no-such-table");
    let (code, text) = Bench::new("absent", &definition).harness("run a");
    assert!(code == Some(0) && text.contains("a: skipped: "), "{text}");
}

/// The folder of records has one name in Rust and in the developer's script.
#[test]
fn scripts_and_harness_name_the_same_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = Command::new("bash")
        .args(["-c", "source tools/lib.sh && cpu"])
        .current_dir(root)
        .output()
        .unwrap();
    let harness = Command::new(HARNESS).arg("folder").output().unwrap();
    let text = String::from_utf8(harness.stdout).unwrap();
    assert_eq!(String::from_utf8(script.stdout).unwrap(), text);
    assert!(!text.trim().is_empty());
}
