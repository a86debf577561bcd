//! Rules of a server, fed by lines of RIS over a connection: what is raised, when, and what is not.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use fibula_daemon::config::ServeConfig;
use fibula_daemon::{Serve, ServeOptions};
use fibula_feeds::SourceState;
use fibula_server::client::{Client, ClientOptions};

use crate::until;

const RULES: &str = "
[[alarm]]
name = 'ours'
kind = 'unexpected-origin'
prefixes = ['193.0.0.0/21']
origins = [3333]
[[alarm]]
name = 'inside'
kind = 'more-specific'
prefixes = ['193.0.0.0/21']
[[alarm]]
name = 'gone'
kind = 'withdrawn'
prefixes = ['193.0.0.0/21']
after = '1s'
[[alarm]]
name = 'flaps'
kind = 'flapping'
changes = 6
within = '1h'
[[alarm]]
name = 'leak'
kind = 'path-through'
ases = [64999]
[[alarm]]
name = 'detour'
kind = 'path-without'
prefixes = ['193.0.0.0/21']
ases = [64500]
";

/// A source that the server connects to.
pub(crate) struct Source {
    listener: TcpListener,
    stream: Option<TcpStream>,
}

impl Source {
    pub(crate) fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), stream: None }
    }

    /// A server that reads it, with the rest of its configuration.
    pub(crate) fn serve(&self, more: &str) -> Serve {
        Serve::start(ServeOptions::new(self.config(more))).unwrap()
    }

    fn config(&self, more: &str) -> ServeConfig {
        let text = format!(
            "http = {{ listen = '127.0.0.1:0' }}\n[[ris]]\nconnect = '{}'\nhold = '1d'\n{more}",
            self.listener.local_addr().unwrap()
        );
        ServeConfig::parse(&text, "test.toml").unwrap()
    }

    /// Waits for the server's connection, in place of the one before.
    pub(crate) fn accept(&mut self) {
        self.stream = None;
        self.stream = Some(self.listener.accept().unwrap().0);
    }

    fn send(&mut self, line: &str) {
        let line = format!(
            "{{\"timestamp\": 1717245600.25, \"peer\": \"192.0.2.1\", \"peer_asn\": \"64500\", \
             \"host\": \"rrc00.ripe.net\", \"origin\": \"IGP\", \"type\": \"UPDATE\", {line}}}\n"
        );
        self.stream.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn announce(&mut self, prefix: &str, path: &str) {
        self.send(&format!(
            "\"path\": [{path}], \"announcements\": [{{\"next_hop\": \"192.0.2.1\", \"prefixes\": [\"{prefix}\"]}}]"
        ));
    }

    pub(crate) fn withdraw(&mut self, prefix: &str) {
        self.send(&format!("\"withdrawals\": [\"{prefix}\"]"));
    }
}

/// Waits until the source is in this state.
pub(crate) fn until_state(serve: &Serve, state: SourceState) {
    until(state.name(), || {
        serve.board().all().iter().any(|source| source.state == state).then_some(())
    });
}

pub(crate) fn client(serve: &Serve) -> Client {
    let url = format!("http://{}", serve.addresses()[0]);
    Client::new(ClientOptions::new(url)).unwrap()
}

/// A metric of a rule, or of all.
pub(crate) fn metric(serve: &Serve, name: &str, rule: Option<&str>) -> u64 {
    let body = client(serve).get("/metrics", &[]).unwrap().body;
    let text = String::from_utf8(body.to_vec()).unwrap();
    let begin = match rule {
        Some(rule) => format!("fibula_{name}{{rule=\"{rule}\""),
        None => format!("fibula_{name} "),
    };
    let line = text.lines().find(|line| line.starts_with(&begin));
    let line = line.unwrap_or_else(|| panic!("{begin}: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// How many alarms of each rule began so far, and how many have not ended.
fn all(serve: &Serve) -> Vec<(&'static str, u64, u64)> {
    let rules = ["ours", "inside", "gone", "flaps", "leak", "detour"];
    let figures = rules.map(|rule| {
        let of = |name| metric(serve, name, Some(rule));
        (rule, of("alarms_raised_total"), of("alarms_active"))
    });
    figures.into_iter().filter(|(_, raised, _)| *raised > 0).collect()
}

#[test]
fn each_rule_raises_its_alarm_and_a_resent_table_none() {
    let mut source = Source::new();
    let serve = source.serve(RULES);
    source.accept();
    // While the first table comes, the wrong route is there for a moment.
    source.announce("193.0.0.0/21", "64500, 64666");
    source.announce("193.0.0.0/21", "64500, 3333");
    source.announce("10.0.0.0/8", "64500, 1");
    until_state(&serve, SourceState::Up);

    source.announce("193.0.0.0/21", "64500, 64666");
    until("a hijack", || (all(&serve) == [("ours", 1, 1)]).then_some(()));
    source.announce("193.0.6.0/24", "64500, 64666");
    until("a longer one", || (all(&serve) == [("ours", 1, 1), ("inside", 1, 1)]).then_some(()));
    source.withdraw("193.0.6.0/24");
    source.announce("193.0.0.0/21", "64501, 64999, 3333");
    let wanted = [("ours", 1, 0), ("inside", 1, 0), ("leak", 1, 1), ("detour", 1, 1)];
    until("a leak", || (all(&serve) == wanted).then_some(()));
    source.withdraw("193.0.0.0/21");
    let wanted =
        [("ours", 1, 0), ("inside", 1, 0), ("gone", 1, 1), ("leak", 1, 0), ("detour", 1, 0)];
    until("withdrawn", || (all(&serve) == wanted).then_some(()));
    // Four changes of 10/8 so far would not flap; six do.
    let changes = || metric(&serve, "alarms_changes_total", None);
    let before = changes();
    for last in 2..7 {
        source.announce("10.0.0.0/8", &format!("64500, {last}"));
    }
    until("changes", || (changes() >= before + 5).then_some(()));
    assert_eq!(all(&serve), wanted);
    source.announce("10.0.0.0/8", "64500, 7");
    until("flapping", || all(&serve).contains(&("flaps", 1, 1)).then_some(()));

    // The connection is made anew. It sends the table in another order, and a hijack with it.
    source.accept();
    for path in ["64500, 3333", "64500, 64666", "64500, 3333", "64500, 64666"] {
        source.announce("193.0.0.0/21", path);
    }
    for last in 8..20 {
        source.announce("10.0.0.0/8", &format!("64500, {last}"));
    }
    until_state(&serve, SourceState::Resync);
    until("back", || all(&serve).contains(&("gone", 1, 0)).then_some(()));
    assert!(all(&serve).contains(&("ours", 1, 0)), "{:?}", all(&serve));
    until_state(&serve, SourceState::Up);
    until("the hijack", || all(&serve).contains(&("ours", 2, 1)).then_some(()));
    let wanted = [
        ("ours", 2, 1),
        ("inside", 1, 0),
        ("gone", 1, 0),
        ("flaps", 1, 1),
        ("leak", 1, 0),
        ("detour", 1, 0),
    ];
    assert_eq!(all(&serve), wanted);
    assert_eq!(metric(&serve, "alarms_forgotten_total", None), 0);
    serve.stop().unwrap();
}

/// A reader that was too slow reads the routes under the rules anew: here because few changes are kept.
#[test]
fn lost_changes_are_made_good_by_the_table() {
    let mut source = Source::new();
    let serve = source.serve(&format!("[tables]\nhistory = 4\n{RULES}"));
    source.accept();
    source.announce("193.0.0.0/21", "64500, 3333");
    until_state(&serve, SourceState::Up);
    for at in 0..2000 {
        source.announce(&format!("10.{}.{}.0/24", at / 256, at % 256), "64500, 1");
    }
    source.announce("193.0.0.0/21", "64500, 64666");
    until("a hijack", || all(&serve).contains(&("ours", 1, 1)).then_some(()));
    until("losses", || (metric(&serve, "alarms_lost_changes_total", None) > 0).then_some(()));
    serve.stop().unwrap();
}

/// Rules are those of the start: a reload says so.
#[test]
fn other_rules_need_a_restart() {
    let source = Source::new();
    let serve = source.serve(RULES);
    let same = source.config(RULES);
    assert!(serve.reload(&same).unwrap().restarts.is_empty());
    let other =
        source.config(&format!("{RULES}origins = [1]\n[webhook]\nurl = 'http://127.0.0.1/'"));
    assert_eq!(serve.reload(&other).unwrap().restarts, ["alarm", "webhook"]);
    serve.stop().unwrap();
}

#[test]
fn rules_that_are_wrong() {
    let rule = "[[alarm]]\nname = 'r'\nkind = ";
    for (text, line, what, hint) in [
        ("'hijack'", 3, "there is no kind \"hijack\"", "the kinds are unexpected-origin, more-"),
        ("'unexpected-origin'", 3, "a rule of this kind needs prefixes", "docs/alarms.md"),
        ("'unexpected-origin'\nprefixes = ['10.0.0.0/8']", 3, "needs origins", ""),
        ("'withdrawn'\nprefixes = ['10.0.0.1/8']", 4, "\"10.0.0.1/8\" is not a prefix: ", ""),
        ("'withdrawn'\nprefixes = [\n'10.0.0.0/8',\n'x']", 6, "\"x\" is not a prefix: ", ""),
        ("'withdrawn'\nprefixes = []", 4, "prefixes names none", ""),
        ("'withdrawn'\nprefixes = ['::/0']\nafter = '0'", 5, "after is zero", ""),
        ("'withdrawn'\nprefixes = ['::/0']\nafter = '10'", 5, "\"10\" is not a time", ""),
        ("'withdrawn'\nprefixes = ['::/0']\nafter = '400d'", 5, "longer than a year", ""),
        (
            "'newly-invalid'\norigins = [1]",
            4,
            "has no origins",
            "rules of this kind have: prefixes",
        ),
        ("'path-through'\nases = []", 4, "ases names none", ""),
        ("'flapping'\nchanges = 1", 4, "a number from 2 to 1000", ""),
        ("'flapping'\ncount = 1", 4, "unknown field `count`", ""),
        (
            "'more-specific'\nprefixes = ['10.0.0.0/8']\nmax-length = 8",
            5,
            "max-length 8 is not",
            "",
        ),
        (
            "'more-specific'\nprefixes = ['10.0.0.0/8']\nmax-length = 33",
            5,
            "length of 10.0.0.0/8",
            "",
        ),
        (
            "'more-specific'\nprefixes = ['10.0.0.0/8']\norigins = [1]",
            5,
            "no longer route is allowed",
            "give max-length",
        ),
        ("'newly-invalid'\n[tables]\nhistory = 0", 2, "need the history", "set tables.history"),
        (
            "'newly-invalid'\n[[alarm]]\nname = 'r'\nkind = 'flapping'",
            5,
            "another rule has this",
            "",
        ),
        (
            "'newly-invalid'\n[webhook]\nurl = 'alarms.example'",
            5,
            "not an address of HTTP",
            "https://",
        ),
        ("'newly-invalid'\n[webhook]\nurl = 'http://'", 5, "not an address of HTTP", ""),
    ] {
        let text = format!("{rule}{text}");
        let error = ServeConfig::parse(&text, "f.toml").expect_err(&text);
        assert_eq!(error.line(), Some(line), "{text}: {error}");
        assert!(error.to_string().contains(what), "{text}: {error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{text}: {:?}", error.hint());
    }
    let alone = ServeConfig::parse("[webhook]\nurl = 'http://127.0.0.1/'", "f.toml").unwrap_err();
    assert!(alone.to_string().contains("line 2") && alone.to_string().contains("no rule"));
    let zero = format!("{rule}'newly-invalid'\n[webhook]\nurl = 'http://a/'\nqueue = 0");
    assert!(ServeConfig::parse(&zero, "f.toml").unwrap_err().to_string().contains("webhook.queue"));
    let good = ServeConfig::parse(RULES, "f.toml").unwrap().alarm_rules().unwrap();
    let kinds: Vec<&str> = good.iter().map(|rule| rule.kind.name()).collect();
    assert_eq!(
        kinds,
        [
            "unexpected-origin",
            "more-specific",
            "withdrawn",
            "flapping",
            "path-through",
            "path-without"
        ]
    );
}
