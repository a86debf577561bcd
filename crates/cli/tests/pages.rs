//! The examples of the documentation are run: what a page shows of a command is what it prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Files;

/// Pages with examples, and the beginnings of the commands that are not run: they need data that the page does not
/// show, minutes, or another program.
const PAGES: &[(&str, &[&str])] = &[
    (
        "README.md",
        &[
            "fibula build updates.et",
            "fibula diff yesterday.fib",
            "fibula rpki vrps.json",
            "fibula gen traffic",
            "fibula annotate --column src_ip flows-3M.csv",
            "journalctl",
            "fibula annotate --layer",
            "fibula classify rules.txt",
            "fibula serve",
            "fibula query",
            "fibula watch",
            "fibula route",
            "fibula verify",
            "fibula bench",
            "fibula replay",
        ],
    ),
    ("docs/annotate.md", &[]),
    ("docs/classify.md", &[]),
    ("docs/coming-from.md", &[]),
    ("docs/files.md", &[]),
    (
        "docs/rpki.md",
        &["fibula build rib.gz", "fibula lookup --table", "fibula annotate --table rib"],
    ),
    ("docs/tables.md", &["fibula build late.csv"]),
];

#[test]
fn the_examples_of_the_pages() {
    for (page, skipped) in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        let text = fs::read_to_string(path).unwrap();
        let files = Files::new();
        let mut used = vec![false; skipped.len()];
        for example in text.split("\n```console\n").skip(1) {
            let example = example.split("\n```").next().unwrap();
            for command in format!("\n{example}").split("\n$ ").skip(1) {
                let (command, shown) = command.split_once('\n').unwrap_or((command, ""));
                if let Some(at) = skipped.iter().position(|begin| command.starts_with(begin)) {
                    used[at] = true;
                } else {
                    run(page, command, shown, &files);
                }
            }
        }
        let unused: Vec<_> =
            skipped.iter().zip(used).filter(|(_, used)| !used).map(|(begin, _)| begin).collect();
        assert!(unused.is_empty(), "{page} has no command that begins with {unused:?}");
    }
}

/// Runs a command of a page in the folder. `cat` of a file that is not there makes it.
fn run(page: &str, command: &str, shown: &str, files: &Files) {
    let folder = files.path("");
    if let Some(name) = command.strip_prefix("cat ") {
        let path = Path::new(&folder).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, format!("{shown}\n")).unwrap();
    }
    let fibula = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    let path = format!("{}:{}", fibula.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .env("PATH", path)
        .env_remove("FIBULA_ISA")
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    // Each line of the page is printed, in this order. Messages about files and times may be between them.
    let mut lines = printed.lines().map(plain);
    for line in shown.lines().filter(|line| *line != "...") {
        let line = plain(line);
        assert!(
            lines.any(|printed| printed == line),
            "{page}: $ {command}\nshows {line:?}, which is not there or comes earlier in\n{printed}"
        );
    }
}

/// A line without what differs between runs and between a terminal and a pipe: blanks of columns, times of files.
fn plain(line: &str) -> String {
    let line = match (line.find(" UTC)"), line.rfind(", 20")) {
        (Some(end), Some(start)) if start < end => {
            format!("{}{}", &line[..start], &line[end + 4..])
        }
        _ => line.to_owned(),
    };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
