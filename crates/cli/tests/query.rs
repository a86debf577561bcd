//! `fibula query` and `fibula watch` against a server in this process, and against a file.

use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Peer, Rib};
use fibula_rpki::{LiveVrps, Vrp, Vrps};
use fibula_server::{Server, ServerOptions};
use serde_json::{Value, json};

use crate::common::{Files, done, execute};

struct Lab {
    live: Arc<Live>,
    server: Server,
    peers: [u32; 2],
}

impl Lab {
    fn new(token: Option<&str>) -> Self {
        let mut rib = Rib::default();
        rib.name_global("bgp");
        let peers = [1, 2].map(|last| rib.peer(Peer::new(Some([10, 0, 0, last].into()), 64500)));
        let options = LiveOptions { history: 100, ..LiveOptions::default() };
        let live = Live::start(rib, &[0], FibOptions::default(), options, |_| {}).unwrap();
        let live = Arc::new(live);
        let mut options = ServerOptions::default();
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        options.token = token.map(str::to_owned);
        let vrps = LiveVrps::default();
        let vrp = Vrp::new("193.0.0.0/21".parse().unwrap(), 21, 3333).unwrap();
        vrps.replace(Some(Vrps::new([vrp])), [vrp.prefix()]);
        options.vrps = Some(Arc::new(vrps));
        let server = Server::start(Arc::clone(&live), Arc::new(Board::default()), options).unwrap();
        let lab = Self { live, server, peers };
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

#[test]
fn servers_answer_all_queries() {
    let lab = Lab::new(None);
    let url = lab.url();
    let ask = |args: &[&str]| done(&[&["query", "--server", &url], args].concat()).out;
    assert_eq!(
        ask(&["193.0.6.139"]),
        "193.0.6.139 in bgp:\n  193.0.0.0/21  AS path 64500 3333, RPKI valid  (AS64500 (10.0.0.1))\n  \
         193.0.0.0/8  AS path 64500 3333, RPKI not-found  (AS64500 (10.0.0.1))\n"
    );
    assert_eq!(
        ask(&["193.0.0.0/21"]),
        "193.0.0.0/21 (exact) in bgp:\n  193.0.0.0/21\n    best: AS path 64500 3333, RPKI valid  (AS64500 (10.0.0.1))\n    \
         lost by AS path length: AS path 64500 3333, RPKI valid  (AS64500 (10.0.0.2))\n"
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
