//! `fibula serve`: what FRR sent over FPM, played to it, and what it answers over HTTP; restarts, reloads and
//! signals; files of configuration that are wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::daemon::{Daemon, PATIENCE};
use crate::common::fpm::{self, until};
use crate::common::{Files, done, execute};
use serde_json::Value;

/// A server that runs.
struct Server {
    daemon: Daemon,
    http: SocketAddr,
    fpm: SocketAddr,
}

impl Server {
    /// Starts one that takes FPM, on ports that the system gives.
    fn start(args: &[&str]) -> Self {
        let serve = ["serve", "--http", "127.0.0.1:0"];
        let daemon = Daemon::start(&[&serve, args].concat());
        let fpm = daemon.hear("fpm: listens on ").parse().expect("an address");
        let http = daemon.hear("answering on http://").parse().expect("an address");
        Self { daemon, http, fpm }
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.http).expect("it answers");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.0 200"), "{path}: {answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }

    /// All routes of all tables, as the expected files write them.
    fn routes(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for everything in ["0.0.0.0/0", "::/0"] {
            for table in self.get(&format!("/v1/routes/{everything}?view=covered"))["tables"]
                .as_array()
                .unwrap()
            {
                let name = table["table"].as_str().unwrap();
                let of =
                    name.strip_prefix("fpm/").map_or(String::new(), |of| format!(" table {of}"));
                self.of_table(everything, name, &mut |prefix, hops| {
                    all.insert(format!("{prefix}{of}"), hops);
                });
            }
        }
        // A route of each interface, which `ip route` has for each and FRR once.
        all.remove("fe80::/64");
        all
    }

    /// All routes of a table, page by page.
    fn of_table(&self, everything: &str, name: &str, each: &mut dyn FnMut(&str, String)) {
        let mut after = String::new();
        loop {
            let path =
                format!("/v1/routes/{everything}?view=covered&limit=1000&table={name}{after}");
            let table = &self.get(&path)["tables"][0];
            let mut last = "";
            for route in table["routes"].as_array().unwrap() {
                last = route["prefix"].as_str().unwrap();
                each(last, next_hops(&route["paths"][0]["attributes"]));
            }
            if table["truncated"] == false {
                return;
            }
            after = format!("&after={last}");
        }
    }

    /// Waits until the routes are these.
    fn comes_to(&self, wanted: &BTreeMap<String, String>) {
        let until = Instant::now() + PATIENCE;
        loop {
            let routes = self.routes();
            if routes == *wanted {
                return;
            }
            if Instant::now() > until {
                let differ = |(a, b): &(&String, &String)| routes.get(*a) != Some(b);
                let missing: Vec<_> = wanted.iter().filter(differ).take(5).collect();
                let wrong: Vec<_> =
                    routes.iter().filter(|(a, b)| wanted.get(*a) != Some(b)).take(5).collect();
                panic!("{} routes of {}: {missing:?}, not {wrong:?}", routes.len(), wanted.len());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.fpm).expect("it takes FPM")
    }
}

fn next_hops(attributes: &Value) -> String {
    let kind = attributes["type"].as_str().unwrap();
    if kind != "unicast" {
        return kind.to_owned();
    }
    let mut hops: Vec<String> = attributes["next_hops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| {
            let device = ["dA", "dB"][hop["interface"].as_u64().unwrap() as usize - 11];
            format!("{} {device}", hop["gateway"].as_str().unwrap_or("-"))
        })
        .collect();
    hops.sort();
    hops.join(", ")
}

/// The kernel's table at a moment. `resent` is without the table that FRR does not send again.
fn expected(mark: &str) -> BTreeMap<String, String> {
    let text = fpm::kernel(mark);
    let route = |line: &str| {
        let (prefix, rest) = line.split_once(' ').unwrap();
        let (hops, table) = match rest.split_once(" table ") {
            Some((hops, table)) => (hops, format!(" table {table}")),
            None => (rest, String::new()),
        };
        let mut hops: Vec<&str> = hops.split(", ").collect();
        hops.sort_unstable();
        (format!("{prefix}{table}"), hops.join(", "))
    };
    text.lines().map(route).collect()
}

/// Every route and next hop is the kernel's, at each mark; over a lost connection, a full resend, the end of
/// all sessions, `kill -9` and a restart from the checkpoint.
#[test]
fn frr_is_followed_over_losses_and_restarts() {
    let files = Files::new();
    let checkpoint = files.path("rib.fib");
    let args = ["--fpm", "127.0.0.1:0", "--checkpoint", &checkpoint, "--checkpoint-every", "100ms"];
    let server = Server::start(&args);
    let (first, rest) = until("loaded");
    let mut zebra = server.connect();
    zebra.write_all(&first).unwrap();
    server.comes_to(&expected("loaded"));
    zebra.write_all(&rest).unwrap();
    server.comes_to(&expected("churned"));
    // The connection is lost: the routes serve on.
    zebra.shutdown(Shutdown::Both).unwrap();
    server.daemon.hear("fpm 127.0.0.1: disconnected");
    assert_eq!(server.routes(), expected("churned"));

    // Killed with a checkpoint that is whole, another one goes on from it.
    thread::sleep(Duration::from_millis(500));
    drop(server);
    let mut server = Server::start(&args);
    assert_eq!(server.routes(), expected("churned"));
    // The daemon says everything again, but for table 100; then its sessions end.
    let mut zebra = server.connect();
    let second = fpm::file("small-nhg.c2.fpm.xz");
    zebra.write_all(&second).unwrap();
    server.comes_to(&{
        let mut ended = expected("ended");
        ended.retain(|prefix, _| !prefix.contains("table"));
        ended
    });
    server.daemon.signal("TERM");
    // A connection that is closed because the operator ends the server is nothing to warn of.
    let (level, rest) = server.daemon.hear_at("fpm 127.0.0.1: closed behind byte ");
    assert_eq!((&*level, rest.ends_with(": this end was stopped")), ("INFO", true), "{rest}");
    assert_eq!(server.daemon.end().1, Some(0));
    // The checkpoint is a table for other commands.
    let looked = done(&["lookup", "--table", &checkpoint, "--json", "10.9.0.7"]);
    assert!(looked.out.contains("10.9.0.0/24"), "{}", looked.out);
}

/// On SIGHUP the file is read again: unchanged sources continue, new ones start, others stop.
#[test]
fn a_reload_keeps_what_did_not_change() {
    let files = Files::new();
    let fpm = "[[fpm]]\nlisten = \"127.0.0.1:0\"\n";
    let config = files.with("serve.toml", fpm);
    let server = Server::start(&["--config", &config]);
    let mut zebra = server.connect();
    let (first, rest) = until("loaded");
    zebra.write_all(&first).unwrap();
    server.comes_to(&expected("loaded"));

    files.with("serve.toml", "[[fpm]]\nlisten = 7\n");
    server.daemon.signal("HUP");
    server.daemon.hear("the configuration is unchanged: ");
    // A port that is taken: FPM stays although the file does not have it any more.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bmp = format!("[[bmp]]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    files.with("serve.toml", bmp);
    server.daemon.signal("HUP");
    server.daemon.hear("the configuration is unchanged: bmp: cannot listen on ");
    server.comes_to(&expected("loaded"));
    files.with("serve.toml", format!("{fpm}[limits]\nroutes = 9\nconnections = 9\n"));
    server.daemon.signal("HUP");
    // It is the next line of the log.
    assert_eq!(server.daemon.hear(""), "reloaded the configuration");
    let after = server.daemon.hear("changed, but used only after a restart: ");
    assert_eq!(after, "limits.routes");
    files.with("serve.toml", format!("{fpm}[[bmp]]\nlisten = \"127.0.0.1:0\"\n"));
    server.daemon.signal("HUP");
    server.daemon.hear("bmp: listens on ");
    server.daemon.hear("reloaded the configuration");
    // The connection is there still.
    zebra.write_all(&rest).unwrap();
    server.comes_to(&expected("churned"));
    let sources = server.get("/v1/peers")["sources"].clone();
    let names: Vec<_> =
        sources.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bmp", "fpm", "fpm 127.0.0.1"]);

    files.with("serve.toml", "[[bmp]]\nlisten = \"127.0.0.1:0\"\n");
    server.daemon.signal("HUP");
    server.comes_to(&BTreeMap::new());
}

/// A log that nobody reads any more (`fibula serve 2>&1 | head`) ends no thread: sources go on, and the server stops
/// when it is asked to.
#[test]
fn a_log_without_a_reader_ends_nothing() {
    let mut server = Server::start(&["--fpm", "127.0.0.1:0"]);
    server.daemon.stop_hearing();
    for _ in 0..4 {
        let mut stranger = server.connect();
        stranger.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        // It is disconnected, which is logged.
        assert!(stranger.read(&mut [0]).map_or(true, |read| read == 0));
    }
    server.connect().write_all(&until("loaded").0).unwrap();
    server.comes_to(&expected("loaded"));
    server.daemon.signal("TERM");
    assert_eq!(server.daemon.end().1, Some(0));
}

/// What is no FPM is disconnected, the log says why, and others go on.
#[test]
fn garbage_is_disconnected() {
    let server = Server::start(&["--fpm", "127.0.0.1:0"]);
    server.connect().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let why = server.daemon.hear("fpm 127.0.0.1: disconnected behind byte ");
    assert!(why.contains("this is no FPM stream"), "{why}");
    server.connect().write_all(&until("loaded").0).unwrap();
    server.comes_to(&expected("loaded"));
}

#[test]
fn mistakes_are_reported() {
    let files = Files::new();
    let file = |text: &str| files.with("bad.toml", text);
    let check = |args: &[&str]| execute(&[&["serve", "--check"], args].concat());
    let none = check(&[]);
    assert!(none.code == 2 && none.err.contains("--fpm, --bmp, --bgp"), "{}", none.err);
    for (text, what) in [
        ("[[fmp]]\n", "bad.toml: line 1, unknown field `fmp`"),
        ("[[fpm]]\nlisten = \"x\"\n", "bad.toml: line 2, invalid socket address"),
        ("[[kernel]]\n[tables]\nengine = [\"fastest\"]\n", "fastest"),
        ("http = { token-file = \"/no/such/file\" }\n[[kernel]]\n", "token-file /no/such/file"),
        (
            "http = { tls-certificate = \"/no/cert\", tls-key = \"/no/key\" }\n[[kernel]]\n",
            "/no/cert",
        ),
        ("[fpm]\nlisten = \"127.0.0.1:1\"\n", "line 1, invalid type: a table, expected a list"),
        (
            "[[kernel]]\n[limits]\ntables = \"x\"\n",
            "line 3, invalid type: string \"x\", expected a number from 0",
        ),
        (
            "[[kernel]]\n[tables]\nbucket = 10\n",
            "line 3, invalid type: integer `10`, expected text in quotes",
        ),
        (
            "checkpoint = { file = \"/no/such/folder/rib.fib\" }\n[[kernel]]\n",
            "there is no folder /no/such/folder",
        ),
    ] {
        let result = check(&["--config", &file(text)]);
        assert!(result.code == 2 && result.err.contains(what), "{text}: {}", result.err);
    }
    for (args, what) in [
        (&["--fpm", "2620"][..], "\"2620\" is not an address with a port"),
        (&["--kernel", "--http", "localhost"], "\"localhost\" is not an address with a port"),
        (
            &[
                "--bgp",
                "--bgp-as",
                "AS0x1",
                "--bgp-id",
                "192.0.2.9",
                "--bgp-neighbour",
                "192.0.2.1",
            ],
            "\"AS0x1\" is not an AS number",
        ),
        (&["--fpm", "127.0.0.1:8080"], "fpm and http both listen on 127.0.0.1:8080"),
        (&["--config", "/no/such/file"], "--config /no/such/file: "),
    ] {
        let result = check(args);
        assert!(result.code == 2 && result.err.contains(what), "{args:?}: {}", result.err);
    }
    let good = check(&["--fpm", "--bmp", "[::1]:11019", "--kernel"]);
    assert_eq!(good.code, 0, "{}", good.err);
    let lines = "fpm: FPM on 127.0.0.1:2620, into table fpm\n\
                 bmp: BMP on [::1]:11019, into table bmp\n\
                 kernel: the kernel's forwarding tables, into table kernel\n\
                 answers on 127.0.0.1:8080\n";
    assert_eq!(good.out, lines);
    // A port that is taken, and a checkpoint that is none.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let result = execute(&["serve", "--fpm", &address, "--http", "127.0.0.1:0"]);
    assert!(
        result.code == 2 && result.err.contains(&format!("cannot listen on {address}")),
        "{}",
        result.err
    );
    let garbage = files.with("rib.fib", "no checkpoint");
    let result = execute(&["serve", "--fpm", "127.0.0.1:0", "--checkpoint", &garbage]);
    assert!(result.code == 2 && result.err.contains("rib.fib"), "{}", result.err);
    assert_eq!(fs::read(&garbage).unwrap(), b"no checkpoint");
}
