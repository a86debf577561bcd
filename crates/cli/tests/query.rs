//! `fibula query` and `fibula watch` against a server in this process, and against a file.

use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_feeds::{Board, Figures, SourceState, SourceStatus};
use fibula_fib::FibOptions;
use fibula_history::{HistoryBreak, HistoryFolder, HistoryOptions, RouteKey, RouteRecord};
use fibula_rib::{AttributeSet, Live, LiveOptions, Peer, Rib};
use fibula_rpki::{Aspas, LiveVrps, Vrp, Vrps};
use fibula_server::client::{Client, ClientOptions};
use fibula_server::{HistoryOnDisk, Server, ServerOptions};
use serde_json::{Value, json};

use crate::common::{Files, done, execute};

struct Lab {
    live: Arc<Live>,
    board: Arc<Board>,
    server: Server,
    peers: [u32; 2],
}

impl Lab {
    fn new(token: Option<&str>) -> Self {
        Self::of(None, token)
    }

    /// Its peers are of this session.
    fn of(session: Option<&str>, token: Option<&str>) -> Self {
        Self::with(session, token, None)
    }

    /// It has this history.
    fn with(session: Option<&str>, token: Option<&str>, history: Option<HistoryOnDisk>) -> Self {
        let mut rib = Rib::default();
        rib.name_global("bgp");
        let peers = [1, 2].map(|last| {
            let source = session.map(Into::into);
            rib.peer(Peer { source, ..Peer::new(Some([10, 0, 0, last].into()), 64500) })
        });
        let options = LiveOptions { history: 100, ..LiveOptions::default() };
        let live = Live::start(rib, &[0], FibOptions::default(), options, |_| {}).unwrap();
        let live = Arc::new(live);
        let mut options = ServerOptions::default();
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        options.token = token.map(str::to_owned);
        options.history = history;
        let vrps = LiveVrps::default();
        let vrp = Vrp::new("193.0.0.0/21".parse().unwrap(), 21, 3333).unwrap();
        let aspas: Aspas = [(3333, vec![64500])].into_iter().collect();
        let set = Arc::new(Vrps::new([vrp]));
        vrps.replace_with_aspas(set, Arc::new(aspas), [vrp.prefix()]);
        options.vrps = Some(Arc::new(vrps));
        let board = Arc::new(Board::default());
        let server = Server::start(Arc::clone(&live), Arc::clone(&board), options).unwrap();
        let lab = Self { live, board, server, peers };
        lab.say("193.0.0.0/21", 0, 2);
        lab.say("193.0.0.0/21", 1, 3);
        lab.say("193.0.0.0/8", 0, 1);
        lab
    }

    fn say(&self, prefix: &str, peer: usize, as_path_len: u32) {
        let prefix: AnyPrefix = prefix.parse().unwrap();
        let bgp = BgpAttributes {
            as_path_len,
            as_path: "64500 3333",
            origin_as: Some(3333),
            ..BgpAttributes::default()
        };
        let change = Change::Announce(Attributes::Bgp(&bgp));
        self.live.apply(&Update { peer: self.peers[peer], ..Update::new(prefix, change) }).unwrap();
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.addresses()[0])
    }
}

/// The routes of May 2024, of which the first seconds are known.
#[test]
fn servers_answer_about_the_past() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = HistoryFolder::open(folder.path(), HistoryOptions::default()).unwrap();
    let may = 1_714_521_600_000_000;
    history.begin(may, HistoryBreak::Begin).unwrap();
    let bgp = BgpAttributes { as_path: "64500 3333", ..Default::default() };
    let set = Some(AttributeSet::new(&Attributes::Bgp(&bgp)));
    let peer = Some(Arc::new(Peer::new(Some([10, 0, 0, 1].into()), 64500)));
    for (second, prefix, best) in
        [(0, "193.0.0.0/8", &set), (1, "193.0.0.0/21", &set), (9, "193.0.0.0/21", &None)]
    {
        let key = RouteKey { table: "bgp".into(), prefix: prefix.parse().unwrap() };
        let record = RouteRecord::new(may + second * 1_000_000, peer.clone(), best.clone());
        history.write(&[(key, record)]).unwrap();
    }
    history.cover(may + 20_000_000);
    let reader = history.reader();
    let past = HistoryOnDisk(Arc::new(move || Ok(reader.clone())));
    let lab = Lab::with(None, None, Some(past));
    let url = lab.url();
    let ask = |args: &[&str]| execute(&[&["query", "--server", &url], args].concat());
    let found = ask(&["--at", "2024-05-01T00:00:05Z", "193.0.6.139"]);
    assert_eq!(
        found.out,
        "193.0.6.139 at 2024-05-01T00:00:05.000Z in bgp:\n  193.0.0.0/21  AS path 64500 3333  (AS64500 (10.0.0.1))  \
         since 2024-05-01T00:00:01.000Z until 2024-05-01T00:00:09.000Z\n  193.0.0.0/8  AS path 64500 3333  \
         (AS64500 (10.0.0.1))  since 2024-05-01T00:00:00.000Z\n"
    );
    let found = ask(&["--at", "2024-05-01T00:00:10Z", "193.0.0.0/21"]);
    let wanted = "193.0.0.0/21 at 2024-05-01T00:00:10.000Z in bgp:\n  no route since 2024-05-01T00:00:09.000Z\n";
    assert_eq!((found.code, &*found.out), (1, wanted));
    let found: Value =
        serde_json::from_str(&ask(&["--json", "--at", "2024-05-01", "193.0.0.0/8"]).out).unwrap();
    assert_eq!(found["tables"][0]["match"]["since"], "2024-05-01T00:00:00.000Z");
    for (args, message) in [
        (&["--at", "2024-05-02", "193.0.0.0/8"][..], "reaches until 2024-05-01T00:00:20.000Z"),
        (&["--at", "2024-04-30", "193.0.0.0/8"], "the history begins at 2024-05-01T00:00:00.000Z"),
        (&["--at", "2024-05-01", "AS3333"], "no address and no prefix"),
        (
            &["--at", "2024-05-01", "--view", "covered", "193.0.0.0/8"],
            "--view is for the routes of now",
        ),
        (&["--at", "2024-05-01", "--origin-as", "3333"], "--at has answers about addresses"),
    ] {
        let refused = ask(args);
        assert!(refused.code == 2 && refused.err.contains(message), "{args:?}: {}", refused.err);
    }
    let other = Lab::new(None);
    let refused = execute(&["query", "--server", &other.url(), "--at", "2024-05-01", "10.0.0.1"]);
    assert!(refused.code == 2 && refused.err.contains("[history]"), "{}", refused.err);
}

#[test]
fn servers_answer_all_queries() {
    let lab = Lab::new(None);
    let url = lab.url();
    let ask = |args: &[&str]| done(&[&["query", "--server", &url], args].concat()).out;
    assert_eq!(
        ask(&["193.0.6.139"]),
        "193.0.6.139 in bgp:\n  193.0.0.0/21  AS path 64500 3333, RPKI valid, ASPA valid  (AS64500 (10.0.0.1))\n  \
         193.0.0.0/8  AS path 64500 3333, RPKI not-found, ASPA valid  (AS64500 (10.0.0.1))\n"
    );
    assert_eq!(
        ask(&["193.0.0.0/21"]),
        "193.0.0.0/21 (exact) in bgp:\n  193.0.0.0/21\n    best: AS path 64500 3333, RPKI valid, ASPA valid  (AS64500 (10.0.0.1))\n    \
         lost by AS path length: AS path 64500 3333, RPKI valid, ASPA valid  (AS64500 (10.0.0.2))\n"
    );
    assert!(ask(&["--view", "covered", "193.0.0.0/8"]).contains("  193.0.0.0/21\n"));
    let system = ask(&["AS3333"]);
    assert!(
        system.starts_with("AS3333 originates 2 IPv4 and 0 IPv6 routes in bgp:\n  193.0.0.0/8\n"),
        "{system}"
    );
    assert_eq!(ask(&["10.0.0.2)"]), "AS64500 (10.0.0.2): up, 1 IPv4 and 0 IPv6 routes\n");
    let found: Value = serde_json::from_str(&ask(&["--json", "193.0.6.139"])).unwrap();
    assert_eq!(found["tables"][0]["match"]["prefix"], "193.0.0.0/21");

    let best = "193.0.0.0/8 in bgp  AS path 64500 3333, RPKI not-found, ASPA valid  (AS64500 (10.0.0.1))\n";
    assert_eq!(ask(&["--path-regex", "_3333$", "--limit", "1"]), best);
    assert_eq!(ask(&["--origin-as", "AS3333", "--path-regex", "^64500_"]).lines().count(), 2);
    let line: Value =
        serde_json::from_str(&ask(&["--origin-as", "3333", "--limit", "1", "--json"])).unwrap();
    assert_eq!((&line["table"], &line["route"]["prefix"]), (&"bgp".into(), &"193.0.0.0/8".into()));
    assert_eq!(execute(&["query", "--server", &url, "--community", "64500:*"]).code, 1);
    let refused = execute(&["query", "--server", &url, "--community", "64500"]);
    assert!(refused.code == 2 && refused.err.contains("a community is 64500:1"), "{}", refused.err);
    assert_eq!(execute(&["query", "--server", &url, "--community", "1:1", "AS3333"]).code, 2);

    let none = execute(&["query", "--server", &url, "10.0.0.1", "193.0.6.139"]);
    assert_eq!(
        (none.code, none.out.contains("10.0.0.1 in bgp:\n  no route\n")),
        (1, true),
        "{}",
        none.out
    );
    assert_eq!(execute(&["query", "--server", &url, "nobody"]).code, 1);
    let no_table = execute(&["query", "--server", &url, "--table", "x", "10.0.0.1"]);
    assert!(
        no_table.code == 2 && no_table.err.contains("no table \"x\"; there are: bgp"),
        "{}",
        no_table.err
    );
    let no_server = execute(&["query", "--server", "http://127.0.0.1:1", "10.0.0.1"]);
    assert!(
        no_server.code == 2
            && no_server.err.contains("connecting to 127.0.0.1:1: ")
            && no_server.err.contains("is the server there?"),
        "{}",
        no_server.err
    );
    assert_eq!(execute(&["query", "--server", "nonsense", "10.0.0.1"]).code, 2);
}

#[test]
fn tokens_are_in_a_file_or_the_environment() {
    let lab = Lab::new(Some("correct horse"));
    let (url, files) = (lab.url(), Files::new());
    let refused = execute(&["query", "--server", &url, "193.0.6.139"]);
    assert!(refused.code == 2 && refused.err.contains("--token-file"), "{}", refused.err);
    // The server takes the first line, too.
    let path = files.with("token", "correct horse\n# of 2026\n");
    assert!(
        done(&["query", "--server", &url, "--token-file", &path, "193.0.6.139"])
            .out
            .contains("193.0.0.0/21")
    );
    let of_environment = |token: &str| {
        let mut command = crate::common::fibula(&["query", "--server", &url, "193.0.6.139"]);
        command.env("FIBULA_TOKEN", token).output().unwrap()
    };
    assert!(of_environment("correct horse").status.success());
    assert!(of_environment("correct horse\n").status.success());
    let two = String::from_utf8(of_environment("correct\nhorse").stderr).unwrap();
    assert!(two.contains("the token has characters") && two.contains("FIBULA_TOKEN"), "{two}");
}

#[test]
fn files_answer_queries_for_addresses_and_prefixes() {
    let files = Files::new();
    let table = files.with("t.csv", "prefix,country\n193.0.0.0/8,CH\n193.0.0.0/21,NL\n");
    let ask = |args: &[&str]| execute(&[&["query", "--file", &table], args].concat());
    let both = "193.0.6.139:\n  193.0.0.0/21  country \"NL\"\n  193.0.0.0/8  country \"CH\"\n";
    assert_eq!(ask(&["193.0.6.139"]).out, both);
    assert_eq!(ask(&["193.0.0.0/8"]).out, "193.0.0.0/8:\n  193.0.0.0/8  country \"CH\"\n");
    assert!(ask(&["--view", "covered", "193.0.0.0/8"]).out.contains("193.0.0.0/21"));
    let found: Value = serde_json::from_str(&ask(&["--json", "193.0.0.0/21"]).out).unwrap();
    let expected = json!({ "prefix": "193.0.0.0/21", "values": { "country": "NL" } });
    assert_eq!(found, json!({ "q": "193.0.0.0/21", "routes": [expected] }));
    assert_eq!(ask(&["10.0.0.1"]).code, 1);
    assert_eq!(ask(&["AS3333"]).code, 2);
}

#[test]
fn changes_are_printed_as_they_come() {
    let lab = Lab::new(None);
    let mut child = Process::new(env!("CARGO_BIN_EXE_fibula"))
        .args(["watch", "--server", &lab.url(), "--count", "3", "--since", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // What was before, with a word that there may have been more, and then what comes.
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.ends_with("Z bgp 193.0.0.0/21  AS path 64500 3333  (AS64500 (10.0.0.1))"),
        "{first}"
    );
    lines.next().unwrap().unwrap();
    thread::sleep(Duration::from_millis(20));
    let update = Update::new("193.0.0.0/8".parse().unwrap(), Change::Withdraw);
    lab.live.apply(&Update { peer: lab.peers[0], ..update }).unwrap();
    let last = lines.next().unwrap().unwrap();
    assert!(last.ends_with(" bgp 193.0.0.0/8  gone"), "{last}");
    assert!(lines.next().is_none());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("changes were missed"));
    let refused = execute(&["watch", "--server", &lab.url(), "--table", "x"]);
    assert!(refused.code == 2 && refused.err.contains("no table"), "{}", refused.err);
}

/// The rules of `watch --until`: the exit code says whether an alarm began.
#[test]
fn changes_are_watched_until_an_alarm_begins() {
    let lab = Lab::new(None);
    let files = Files::new();
    let rule = |name: &str, text: &str| files.with(name, format!("[[alarm]]\nname = 'r'\n{text}"));
    let ours = "kind = 'unexpected-origin'\nprefixes = ['193.0.0.0/21']\norigins = ";
    let (right, wrong) = (
        rule("right.toml", &format!("{ours}[3333]")),
        rule("wrong.toml", &format!("{ours}[64500]")),
    );
    let url = lab.url();
    let watch = |rules: &str, more: &[&str]| {
        execute(&[&["watch", "--server", &url, "--until", rules], more].concat())
    };
    // Nothing is wrong, in the changes so far and in time.
    let quiet = watch(&right, &["--since", "0", "--count", "2"]);
    assert_eq!((quiet.code, &*quiet.out), (0, ""), "{}", quiet.err);
    let quiet = watch(&wrong, &["--for", "200ms"]);
    assert_eq!((quiet.code, &*quiet.out), (0, ""), "what was before is not judged: {}", quiet.err);
    // The first change that is wrong.
    let found = watch(&wrong, &["--since", "0"]);
    assert_eq!(found.code, 1, "{}", found.err);
    assert!(
        found.out.ends_with(
            "Z r (unexpected-origin): bgp 193.0.0.0/21: expected origin AS64500, \
             seen origin AS3333, by AS64500 (10.0.0.1), path 64500 3333\n"
        ),
        "{}",
        found.out
    );
    let found = watch(&wrong, &["--since", "0", "--json"]);
    let alarm: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((found.code, &alarm["rule"], &alarm["end"]), (1, &json!("r"), &Value::Null));

    // Withdrawn: time passes without a change. Newly invalid: the server has the VRPs.
    let gone = "kind = 'withdrawn'\nprefixes = ['193.0.0.0/8']\nafter = '300ms'";
    let gone = rule("gone.toml", gone);
    let invalid = rule("invalid.toml", "kind = 'newly-invalid'");
    let start = |rules: &str| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_fibula"));
        command.args(["watch", "--server", &lab.url(), "--until", rules, "--for", "60s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [start(&gone), start(&invalid)];
    // Both read changes from here on.
    let mut client = Client::new(ClientOptions::new(lab.url())).unwrap();
    let is_reading = |body: &[u8]| String::from_utf8_lossy(body).contains("fibula_watchers 2");
    while !is_reading(&client.get("/metrics", &[]).unwrap().body) {
        thread::sleep(Duration::from_millis(5));
    }
    let update = Update::new("193.0.0.0/8".parse().unwrap(), Change::Withdraw);
    lab.live.apply(&Update { peer: lab.peers[0], ..update }).unwrap();
    lab.say("193.0.0.0/24", 0, 2);
    for (child, line) in children.into_iter().zip([
        "r (withdrawn): bgp 193.0.0.0/8: expected a route, seen withdrawn, and not back after 300ms",
        "r (newly-invalid): bgp 193.0.0.0/24: expected a route that is not invalid, seen invalid-length, length 24",
    ]) {
        let ended = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.code() == Some(1) && out.contains(line), "{line}: {out}");
    }

    let refused = watch(&rule("bad.toml", "kind = 'withdrawn'\nprefixes = ['x']"), &[]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("bad.toml: line 4, alarm \"r\": \"x\" is not"), "{}", refused.err);
    let refused = watch(&files.with("none.toml", "[[kernel]]\n"), &[]);
    assert!(refused.code == 2 && refused.err.contains("has no rules"), "{}", refused.err);
    let refused = execute(&["watch", "--server", "http://127.0.0.1:1", "--until", &right]);
    assert_eq!(refused.code, 2, "{}", refused.err);
}

/// A session that sends its table again is judged at its end: what was wrong in between is no alarm.
#[test]
fn a_table_that_is_resent_is_watched_to_its_end() {
    let lab = Lab::of(Some("bgp 10.0.0.1"), None);
    let set = |state| {
        lab.board.set(SourceStatus {
            name: "bgp 10.0.0.1".to_owned(),
            kind: "bgp",
            endpoint: "10.0.0.1".to_owned(),
            table: "bgp".to_owned(),
            state,
            figures: Figures::default(),
            since: SystemTime::now(),
            until: None,
            last: None,
            trouble: None,
        });
    };
    set(SourceState::Resync);
    let files = Files::new();
    let rules = "[[alarm]]\nname = 'r'\nkind = 'path-without'\nases = [64501]";
    let rules = files.with("rules.toml", rules);
    let mut child = Process::new(env!("CARGO_BIN_EXE_fibula"))
        .args(["watch", "--server", &lab.url(), "--until", &rules, "--for", "60s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = Client::new(ClientOptions::new(lab.url())).unwrap();
    let is_reading = |body: &[u8]| String::from_utf8_lossy(body).contains("fibula_watchers 1");
    while !is_reading(&client.get("/metrics", &[]).unwrap().body) {
        thread::sleep(Duration::from_millis(5));
    }
    // This path is wrong, and is followed by its withdrawal.
    lab.say("10.1.0.0/16", 0, 2);
    let update = Update::new("10.1.0.0/16".parse().unwrap(), Change::Withdraw);
    thread::sleep(Duration::from_millis(2500));
    assert!(child.try_wait().unwrap().is_none(), "it is judged too early");
    lab.live.apply(&Update { peer: lab.peers[0], ..update }).unwrap();
    set(SourceState::Up);
    thread::sleep(Duration::from_millis(2500));
    assert!(child.try_wait().unwrap().is_none(), "the route is gone");
    // One that stays wrong is an alarm at the end of the table.
    set(SourceState::Resync);
    lab.say("10.2.0.0/16", 0, 2);
    thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none());
    set(SourceState::Up);
    let ended = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1));
    assert!(out.contains("bgp 10.2.0.0/16: expected a path through AS64501"), "{out}");
}
