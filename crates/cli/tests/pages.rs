//! The examples of the documentation are run: what a page shows of a command is what it prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Files;
use crate::fetch::server::{Server, whole};

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
    ("docs/fetch.md", &[]),
    ("docs/files.md", &[]),
    (
        "docs/rpki.md",
        &["fibula build rib.gz", "fibula lookup --table", "fibula annotate --table rib"],
    ),
    ("docs/tables.md", &["fibula build late.csv"]),
];

/// The server of the pages, and its name there.
const SERVER: &str = "https://data.example";

/// What the server has, by path.
const SERVED: &[(&str, &str)] = &[(
    "/networks.csv",
    "prefix,site,owner\n10.0.0.0/8,hq,it\n10.20.0.0/16,zurich,ops\n10.20.30.0/24,zurich,lab\n",
)];

#[test]
fn the_examples_of_the_pages() {
    let server =
        Server::start(|_, request| match SERVED.iter().find(|(path, _)| *path == request.path) {
            Some((_, text)) => whole(200, &[], text),
            None => whole(404, &[], ""),
        });
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
                    run(page, command, shown, &files, &server.address);
                }
            }
        }
        let unused: Vec<_> =
            skipped.iter().zip(used).filter(|(_, used)| !used).map(|(begin, _)| begin).collect();
        assert!(unused.is_empty(), "{page} has no command that begins with {unused:?}");
    }
}

/// Runs a command of a page in the folder, which is the home. `cat` of a file that is not there makes it.
fn run(page: &str, command: &str, shown: &str, files: &Files, server: &str) {
    let folder = files.path("");
    if let Some(name) = command.strip_prefix("cat ") {
        let path = Path::new(&folder).join(name.trim_start_matches("~/"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, format!("{}\n", shown.replace(SERVER, server))).unwrap();
    }
    let command = command.replace(SERVER, server);
    let fibula = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    let path = format!("{}:{}", fibula.display(), std::env::var("PATH").unwrap_or_default());
    let done = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .env("PATH", path)
        .env("HOME", &folder)
        .env("NO_PROXY", "*")
        .env_remove("FIBULA_ISA")
        .env_remove("FIBULA_CONFIG")
        .env_remove("FIBULA_TABLE")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(done.stdout).unwrap().replace(server, SERVER);
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
