//! The examples of the documentation are run: what a page shows of a command is what it prints.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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
    #[cfg(target_os = "linux")]
    ("docs/alarms.md", &[]),
    ("docs/annotate.md", &[]),
    ("docs/classify.md", &[]),
    ("docs/coming-from.md", &[]),
    ("docs/coming-from-flows.md", &[]),
    ("docs/engines.md", &[]),
    ("docs/fetch.md", &[]),
    ("docs/files.md", &[]),
    #[cfg(target_os = "linux")]
    ("docs/live.md", &[]),
    #[cfg(target_os = "linux")]
    ("docs/route.md", &[]),
    (
        "docs/rpki.md",
        &["fibula build rib.gz", "fibula lookup --table", "fibula annotate --table rib"],
    ),
    ("docs/start.md", &[]),
    ("docs/stream.md", &[]),
    ("docs/tables.md", &["fibula build late.csv"]),
];

/// The address at which the servers answer that pages start.
const ADDRESS: &str = "127.0.0.1:8080";

/// How long such a server may take to have read what the page gives it.
const PATIENCE: Duration = Duration::from_secs(20);

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
        let mut started = None;
        // Another program may have the port of the page.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = text.replace(ADDRESS, &free.to_string());
        let mut used = vec![false; skipped.len()];
        for example in text.split("\n```console\n").skip(1) {
            let example = example.split("\n```").next().unwrap();
            for command in format!("\n{example}").split("\n$ ").skip(1) {
                let (command, shown) = command.split_once('\n').unwrap_or((command, ""));
                if let Some(at) = skipped.iter().position(|begin| command.starts_with(begin)) {
                    used[at] = true;
                } else if let Some(command) = command.strip_suffix(" &") {
                    started = Some(Started::new(command, &files, &free.to_string()));
                } else {
                    // What a server reads, it reads while it answers already.
                    let patience = started.as_ref().map_or(Duration::ZERO, |_| PATIENCE);
                    let until = Instant::now() + patience;
                    while let Err(what) = run(page, command, shown, &files, &server.address) {
                        assert!(Instant::now() < until, "{what}");
                        thread::sleep(Duration::from_millis(50));
                    }
                }
            }
        }
        let unused: Vec<_> =
            skipped.iter().zip(used).filter(|(_, used)| !used).map(|(begin, _)| begin).collect();
        assert!(unused.is_empty(), "{page} has no command that begins with {unused:?}");
    }
}

/// A page with examples is one whose examples are run.
#[test]
fn every_page_with_examples_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = 0;
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let name = format!("docs/{}", path.file_name().unwrap().to_str().unwrap());
            let has_examples = fs::read_to_string(&path).unwrap().contains("\n```console\n");
            let is_listed = PAGES.iter().any(|(page, _)| *page == name);
            assert!(is_listed || !has_examples, "{name} has examples that no test runs");
            found += usize::from(has_examples);
        }
    }
    assert!(found > 8, "{found} pages with examples");
}

/// A server that a page starts in the background. It ends with the page.
struct Started(Child);

impl Started {
    fn new(command: &str, files: &Files, address: &str) -> Self {
        // The shell becomes the server, so that the process to end is the server's.
        let mut command = shell(&format!("exec {command}"), files);
        let started = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "no server at {address}");
            thread::sleep(Duration::from_millis(20));
        }
        started
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell in the folder of a page, which is the home. It finds the command.
fn shell(script: &str, files: &Files) -> Command {
    let folder = files.path("");
    let fibula = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    let path = format!("{}:{}", fibula.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .env("PATH", path)
        .env("HOME", &folder)
        .env("NO_PROXY", "*")
        .env_remove("FIBULA_ISA")
        .env_remove("FIBULA_CONFIG")
        .env_remove("FIBULA_TABLE")
        .env_remove("FIBULA_OFFLINE")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .current_dir(&folder)
        .stdin(Stdio::null());
    shell
}

/// Runs a command of a page in the folder. `cat` of a file that is not there makes it. The error is what it printed in
/// place of what the page shows.
fn run(page: &str, command: &str, shown: &str, files: &Files, server: &str) -> Result<(), String> {
    if let Some(name) = command.strip_prefix("cat ") {
        let path = Path::new(&files.path("")).join(name.trim_start_matches("~/"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{}\n", shown.replace(SERVER, server))).unwrap();
        return Ok(());
    }
    let command = command.replace(SERVER, server);
    let done = shell(&format!("{command} 2>&1"), files).output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap().replace(server, SERVER);
    // Each line of the page is printed, in this order. Messages about files and times may be between them.
    let mut lines = printed.lines().map(plain);
    for line in shown.lines().filter(|line| *line != "...") {
        let line = plain(line);
        // What a machine adds to a line.
        let begin = line.strip_suffix(" ...");
        if !lines
            .any(|printed| printed == line || begin.is_some_and(|begin| printed.starts_with(begin)))
        {
            return Err(format!(
                "{page}: $ {command}\nshows {line:?}, which is not there or comes earlier in\n{printed}"
            ));
        }
    }
    Ok(())
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
