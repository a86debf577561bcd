//! `fibula fetch`, and URLs and named sources as tables, from a server on this machine.

mod defaults;
mod formats;
mod protected;
#[path = "../../../fetch/tests/server.rs"]
pub mod server;

use std::fs;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

use self::server::{Server, Step, head, whole};
use crate::common::{CommandOutput, Files, TABLE, fibula};

/// A user with a cache and a configuration.
struct User(Files);

impl User {
    fn new(config: &str) -> Self {
        let files = Files::new();
        files.with("config.toml", config);
        Self(files)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = fibula(args);
        command
            .env("FIBULA_CONFIG", self.0.path("config.toml"))
            .env("XDG_CACHE_HOME", self.0.path("cache"))
            .env("NO_PROXY", "*");
        for name in
            ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
        {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        finished(&mut self.command(args))
    }

    /// As [`Self::run`], and it must succeed.
    fn done(&self, args: &[&str]) -> CommandOutput {
        let result = self.run(args);
        assert_eq!(result.code, 0, "{args:?}: {}{}", result.out, result.err);
        result
    }

    /// As [`Self::run`], without the network.
    fn offline(&self, args: &[&str]) -> CommandOutput {
        finished(self.command(args).env("FIBULA_OFFLINE", "1"))
    }
}

fn finished(command: &mut Command) -> CommandOutput {
    let output = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    CommandOutput { code: output.status.code().expect("no signal ends it"), out, err }
}

/// What a lookup of 10.1.2.3 in [`TABLE`] prints.
const FOUND: &str = "address\tprefix\tasn\tcountry\n10.1.2.3\t10.1.2.0/24\t64503\tNL\n";

#[test]
fn from_a_url_to_an_answer_with_and_without_the_network() {
    let user = User::new("");
    let server = Server::of(TABLE);
    let url = server.url("/lists/table.csv?key=secret");
    let first = user.done(&["lookup", "--table", &url, "10.1.2.3"]);
    assert_eq!(first.out, FOUND);
    assert!(first.err.contains("/lists/table.csv?...: fetched 203 B"), "{}", first.err);
    assert!(!first.err.contains("secret"), "{}", first.err);
    // Not asked again for an hour.
    assert_eq!(user.done(&["lookup", "--table", &url, "10.1.2.3"]).out, FOUND);
    assert_eq!(server.requests().len(), 1);
    let offline = user.offline(&["lookup", "--table", &url, "10.1.2.3"]);
    assert_eq!((offline.code, &*offline.out), (0, FOUND));
    assert!(offline.err.contains(": offline, data of 20"), "{}", offline.err);
    let never = user.offline(&["lookup", "--table", &server.url("/other.csv"), "10.1.2.3"]);
    assert_eq!(never.code, 2);
    assert!(
        never.err.contains("nothing is fetched offline") && never.err.contains("fibula fetch"),
        "{}",
        never.err
    );
    assert_eq!(server.requests().len(), 1);

    let fib = user.0.path("t.fib");
    user.done(&["build", &url, "-o", &fib]);
    let stats: Value =
        serde_json::from_str(&user.done(&["stats", "--table", &fib, "--json"]).out).unwrap();
    let name = stats["sources"][0]["name"].as_str().unwrap();
    assert_eq!(name, server.url("/lists/table.csv?..."));
}

#[test]
fn every_command_that_takes_a_table_takes_a_url() {
    let user = User::new("");
    let server = Server::of(TABLE);
    let url = server.url("/table.csv");
    let layer = format!("geo={url}");
    let both = format!("{url},embedded");
    let dated = format!("2026-01-01={url}");
    let (fib, svg) = (user.0.path("year.fib"), user.0.path("x.svg"));
    let rows = user.0.with("rows.csv", "src\n10.1.2.3\n");
    for args in [
        &["stats", "--table", &url][..],
        &["lookup", "--layer", &layer, "10.1.2.3"],
        &["lookup", "--table", &both, "10.1.2.3"],
        &["annotate", "--table", &url, &rows],
        &["annotate", "--layer", &layer, &rows],
        &["diff", &url, &url],
        &["export", &url],
        &["plot", &url, "-o", &svg],
        &["verify", "--table", &url, "--random", "1000", "--engines", "radix"],
        &["build", "--as-of", &dated, "-o", &fib],
        &["lookup", "--table", &fib, "--history", "10.1.2.3"],
        &["gen", "traffic", "--table", &url, "--count", "10"],
        &["query", "--file", &url, "10.1.2.3"],
    ] {
        let result = user.run(args);
        assert_eq!(result.code, 0, "{args:?}: {}", result.err);
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_bad_file_does_not_replace_a_good_one() {
    let user = User::new("");
    let server = Server::start(|number, _| match number {
        0 => whole(200, &[], TABLE),
        1 => whole(200, &[("Content-Type", "text/html")], "<!doctype html><title>busy</title>"),
        2 => whole(200, &[], "<!doctype html><title>busy</title>"),
        3 => whole(200, &[], "nothing\nthat is\na table\n"),
        4 => whole(200, &[], ""),
        5 => whole(200, &[], "\u{1f}\u{8b}\u{8}"),
        6 => vec![head(200, &[("Content-Length", "500")]), Step::Send(TABLE.as_bytes().to_vec())],
        _ => whole(404, &[], "not here"),
    });
    let url = server.url("/table.csv");
    let first = user.done(&["fetch", &url]);
    let path = first.out.trim_end();
    assert_eq!(fs::read_to_string(path).unwrap(), TABLE);
    assert!(path.ends_with("/table.csv"));
    for _ in 1..6 {
        let next = user.run(&["fetch", &url]);
        assert_eq!((next.code, next.out.trim_end()), (1, path), "{}", next.err);
        assert!(next.err.contains("the older file is used, data of"), "{}", next.err);
    }
    for _ in 6..8 {
        let next = user.run(&["fetch", &url, "--json"]);
        let json: Value = serde_json::from_str(&next.out).unwrap();
        assert_eq!((next.code, &json[0]["state"]), (1, &Value::from("kept")), "{}", next.err);
    }
    assert_eq!(fs::read_to_string(path).unwrap(), TABLE);
    // The same files without an older one are errors.
    let server = Server::start(|_, _| whole(200, &[], "nothing\nthat is\na table\n"));
    let failed = user.run(&["fetch", &server.url("/t.csv")]);
    assert_eq!((failed.code, &*failed.out), (2, ""), "{}", failed.err);
    assert!(failed.err.contains("the file that came cannot be used: t.csv: "), "{}", failed.err);
    assert_eq!(user.done(&["fetch", &server.url("/t.csv"), "--as", "any"]).out.lines().count(), 1);
}

#[test]
fn named_sources_of_the_configuration() {
    let server = Server::start(|_, request| match &*request.path {
        "/v4" => whole(200, &[], "10.0.0.0/8\n"),
        "/v6" => whole(200, &[], "2001:db8::/32\n"),
        "/eu/list.csv" => whole(200, &[], TABLE),
        "/vrps.csv" => {
            whole(200, &[], "ASN,IP Prefix,Max Length,Trust Anchor\nAS64503,10.1.2.0/24,24,x\n")
        }
        _ => whole(404, &[], ""),
    });
    let config = "
        [sources.both]\nurl = ['HOST/v4', 'HOST/v6']\nabout = 'two files'
        [sources.'list/REGION']\nurl = 'HOST/{REGION}/list.csv'\nevery = '1d'
        [sources.mine]\nurl = 'HOST/vrps.csv'\nuse = 'vrps'
        [sources.dated]\nurl = 'HOST/{year}-{month}-{day}.csv'\nevery = '1d'\n";
    let user = User::new(&config.replace("HOST", &server.address));
    assert_eq!(user.done(&["lookup", "--table", "fetch:list/eu", "10.1.2.3"]).out, FOUND);
    let exported = user.done(&["export", "fetch:both"]).out;
    assert!(exported.contains("10.0.0.0/8") && exported.contains("2001:db8::/32"), "{exported}");
    assert_eq!(user.done(&["fetch", "both"]).out.lines().count(), 2);
    let list = user.done(&["fetch", "--list"]).out;
    assert!(list.contains("two files") && list.contains("ris/COLLECTOR"), "{list}");
    let list: Value = serde_json::from_str(&user.done(&["fetch", "--list", "--json"]).out).unwrap();
    let both = list.as_array().unwrap().iter().find(|source| source["name"] == "both").unwrap();
    assert!(both["cached"]["bytes"] == 11, "{both}");

    let validity = user.run(&["rpki", "fetch:mine", "fetch:list/eu", "--origin", "asn", "--json"]);
    assert!(
        validity.code < 2 && validity.out.contains("\"valid\""),
        "{}{}",
        validity.out,
        validity.err
    );
    for (args, sentence) in [
        (&["lookup", "--table", "fetch:mine", "10.1.2.3"][..], "has VRPs, and no routes"),
        (&["rpki", "fetch:both", "fetch:list/eu"], "has no VRPs"),
        (&["fetch", "list/../eu"], "no source has this name"),
        (&["fetch", "bothe"], "no source has this name"),
        (&["fetch", "dated@2026-01-02"], "/2026-01-02.csv: the server has no such file"),
        (&["fetch", "both", "-o", "x"], "--output takes one file"),
        (&["lookup", "--table", "ftp://h/t.csv", "10.1.2.3"], "this is a URL"),
    ] {
        let failed = user.run(args);
        assert_eq!(failed.code, 2, "{args:?}: {}", failed.out);
        assert!(failed.err.contains(sentence), "{args:?}: {}", failed.err);
    }
}

#[test]
fn secrets_of_a_url_are_not_printed() {
    let server = Server::start(|_, request| match request.path.contains("key=verysecret") {
        true => whole(200, &[], TABLE),
        false => whole(403, &[], ""),
    });
    let url = server.url("/t.csv?key=verysecret");
    let user = User::new(&format!(
        "table = '{url}'\n[sources.mine]\nurl = '{url}'\nnames = ['prefix', 'a', 'b']\n"
    ));
    let both = format!("{url},{url}");
    for result in [
        user.done(&["fetch", &url]),
        user.done(&["fetch", "--json", &url]),
        user.done(&["fetch", "--list", "--json"]),
        user.done(&["lookup", "10.1.2.3"]),
        user.done(&["lookup", "--json", "--table", "fetch:mine", "10.1.2.3"]),
        user.done(&["stats", "--json", "--table", &url]),
        finished(user.command(&["lookup", "10.1.2.3"]).env("FIBULA_TABLE", &both)),
        user.offline(&["lookup", "10.1.2.3"]),
        user.run(&["lookup", "--table", &url.replace("verysecret", "verysecret2&x=["), "10.1.2.3"]),
        user.run(&["fetch", &url.replace("?key=", "?ky=")]),
    ] {
        let CommandOutput { out, err, .. } = result;
        assert!(!out.contains("verysecret") && !err.contains("verysecret"), "{out}{err}");
    }
}

#[test]
fn urls_that_differ_in_a_query_keep_their_columns() {
    let server = Server::start(|_, request| match request.path.contains("n=1") {
        true => whole(200, &[], "10.0.0.0/8,hq\n"),
        false => whole(200, &[], "10.0.0.0/8,hq,it\n"),
    });
    let config = "[sources.a]\nurl = 'HOST/t?n=1'\nnames = ['prefix', 'site']\n\
                  [sources.b]\nurl = 'HOST/t?n=2'\nnames = ['prefix', 'place', 'owner']\n";
    let user = User::new(&config.replace("HOST", &server.address));
    let found = user.done(&["lookup", "--layer", "x=fetch:a", "--layer", "y=fetch:b", "10.1.2.3"]);
    let header = found.out.lines().next().unwrap_or_default();
    assert!(["site", "place", "owner"].iter().all(|name| header.contains(name)), "{}", found.out);
}

#[test]
fn outputs() {
    let user = User::new("");
    let server = Server::of(TABLE);
    let (url, copy) = (server.url("/table.csv"), user.0.path("copy.csv"));
    assert_eq!(user.done(&["fetch", &url, "-o", &copy]).out.trim_end(), copy);
    assert_eq!(fs::read_to_string(&copy).unwrap(), TABLE);
    assert_eq!(user.done(&["fetch", &url, "-o", "-"]).out, TABLE);
    let json: Value = serde_json::from_str(&user.done(&["fetch", &url, "--json"]).out).unwrap();
    assert_eq!((&json[0]["state"], &json[0]["bytes"]), (&"unchanged".into(), &TABLE.len().into()));
    let again = user.done(&["fetch", &url, "--max-age", "1h", "--json"]);
    assert!(again.out.contains("\"recent\""), "{}", again.out);
    assert_eq!(
        user.run(&["fetch", &url, "--max-size", "10", "--as", "any"]).code,
        0,
        "it is not read again"
    );
    let large = user.run(&["fetch", &server.url("/other"), "--max-size", "10"]);
    assert_eq!(large.code, 2);
    assert!(
        large.err.contains("larger than 10 bytes") && large.err.contains("--max-size"),
        "{}",
        large.err
    );
    // Snapshots are mapped from the cache.
    let fib = user.0.snapshot();
    let bytes: &'static [u8] = fs::read(fib).unwrap().leak();
    let server = Server::start(move |_, _| {
        vec![head(200, &[("Content-Length", &bytes.len().to_string())]), Step::Send(bytes.to_vec())]
    });
    let found =
        user.done(&["lookup", "--load", "map", "--table", &server.url("/t.fib"), "10.1.2.3"]);
    assert_eq!(found.out, FOUND);
}

/// A process that is killed leaves what the next one needs to go on.
#[test]
fn a_killed_fetch_is_resumed() {
    let user = User::new("");
    let half = TABLE.len() / 2;
    let server = Server::start(move |_, request| match request.header("range") {
        None => {
            let length = TABLE.len().to_string();
            let head = head(200, &[("Content-Length", &length), ("ETag", "\"a\"")]);
            vec![
                head,
                Step::Send(TABLE.as_bytes()[..half].to_vec()),
                Step::Wait(Duration::from_secs(60)),
            ]
        }
        Some(_) => {
            let range = format!("bytes {half}-{}/{}", TABLE.len() - 1, TABLE.len());
            whole(206, &[("Content-Range", &range), ("ETag", "\"a\"")], &TABLE[half..])
        }
    });
    let url = server.url("/table.csv");
    let mut child = Process::new(env!("CARGO_BIN_EXE_fibula"))
        .args(["fetch", &url])
        .env("FIBULA_CONFIG", "")
        .env("XDG_CACHE_HOME", user.0.path("cache"))
        .env("NO_PROXY", "*")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let cache = user.0.path("cache/fibula");
    let arrived = || {
        let entry = fs::read_dir(&cache).ok()?.next()?.ok()?.path();
        fs::metadata(entry.join("new/table.csv")).ok().filter(|file| file.len() == half as u64)
    };
    for _ in 0..500 {
        if arrived().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(arrived().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let fetched = user.done(&["fetch", &url]);
    assert_eq!(fs::read_to_string(fetched.out.trim_end()).unwrap(), TABLE);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(server.requests()[1].header("if-range"), Some("\"a\""));
}
