//! Staged hijacks, leaks, withdrawals, flaps and restarts with BIRD in network namespaces, in the churn of a recorded
//! feed: each raises its alarms, and nothing else does.
//!
//! `cargo test -p fibula-daemon --test daemon hijacks:: -- --ignored` runs it as root, with Debian's package `bird2`.
//! It takes a minute; `FIBULA_ALARMS_SECONDS=600` repeats the stages for ten.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Attributes, Change, Update};
use fibula_daemon::config::ServeConfig;
use fibula_daemon::{Serve, ServeOptions};
use fibula_feeds::SourceState;
use fibula_ingest::{Damage, ReadOptions, Sink, SourceSpec, read};

use crate::alarms::metric;
use crate::until;
use crate::webhook::{Request, receiver};

const INSIDE: &str = "FIBULA_HIJACKS_INSIDE";

#[test]
#[ignore = "needs root and the packages iproute2 and bird2, and takes a minute"]
fn staged_hijacks_and_leaks_raise_their_alarms_and_no_others() {
    if std::env::var_os(INSIDE).is_some() {
        return stages();
    }
    let missing = ["ip", "unshare", "bird", "birdc"].into_iter().find(|program| {
        let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
        !folders.iter().any(|folder| Path::new(folder).join(program).exists())
    });
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if missing.is_some() || user != b"0\n" {
        return println!("SKIPPED: it needs {}", missing.unwrap_or("root"));
    }
    // Everything in it ends with the first process of the namespaces.
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("hijacks::staged_hijacks_and_leaks_raise_their_alarms_and_no_others")
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

fn run(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let out = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A BIRD in a namespace of its own.
struct Bird {
    name: &'static str,
    folder: PathBuf,
    process: Child,
}

impl Bird {
    /// Number 1 is AS 65002 and has our routes; number 2 is AS 65003 and announces what it should not.
    fn configure(folder: &Path, name: &str, number: u8, asn: u32, routes: &str) {
        let text = format!(
            "router id 10.77.{number}.2;\nprotocol device {{}}\n{routes}\n\
             protocol bgp fibula {{\n local 10.77.{number}.2 as {asn}; neighbor 10.77.{number}.1 port 1790 as 65000;\n \
             connect retry time 1; connect delay time 1; error wait time 1, 2; hold time 9;\n \
             graceful restart on; graceful restart time 20;\n \
             ipv4 {{ import none; export filter announced; }};\n}}\n"
        );
        fs::write(folder.join(format!("{name}.conf")), text).unwrap();
    }

    fn start(folder: &Path, name: &'static str, arguments: &[&str]) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, "bird", "-f"]).args(arguments);
        command.args(["-c", &format!("{name}.conf"), "-s", &format!("{name}.ctl")]);
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let bird = Self { name, folder: folder.to_owned(), process };
        until("BIRD", || {
            bird.try_ask("show status").filter(|text| text.contains("up and running"))
        });
        bird
    }

    fn try_ask(&self, line: &str) -> Option<String> {
        let mut command = Command::new("birdc");
        command.args(["-s", &format!("{}.ctl", self.name), line]).current_dir(&self.folder);
        let out = command.output().unwrap();
        out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
    }

    fn set(&self, protocol: &str, is_on: bool) {
        let verb = if is_on { "enable" } else { "disable" };
        self.try_ask(&format!("{verb} {protocol}")).unwrap_or_else(|| panic!("{verb} {protocol}"));
    }

    /// Its power fails: it says nothing.
    fn kill(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const OURS: &str = "
filter announced {
 if source != RTS_STATIC then reject;
 bgp_path.prepend(65010); bgp_path.prepend(65010); bgp_path.prepend(65010);
 accept;
}
protocol static ours { ipv4; route 10.10.0.0/16 blackhole; }
protocol static comes { ipv4; route 10.11.0.0/16 blackhole; }
protocol static shakes { ipv4; route 10.12.0.0/16 blackhole; }
";

const THEIRS: &str = "
filter announced {
 if source != RTS_STATIC then reject;
 if proto = \"leak\" then { bgp_path.prepend(65010); bgp_path.prepend(65099); } else bgp_path.prepend(65066);
 accept;
}
protocol static hijack { disabled; ipv4; route 10.10.0.0/16 blackhole; }
protocol static inside { disabled; ipv4; route 10.10.5.0/24 blackhole; }
protocol static leak { disabled; ipv4; route 10.10.0.0/16 blackhole; }
protocol static theirs { ipv4; route 10.66.0.0/16 blackhole; }
";

fn config(source: SocketAddr, hook: SocketAddr) -> String {
    let ours = "prefixes = ['10.10.0.0/16', '10.11.0.0/16', '10.12.0.0/16']";
    format!(
        "http = {{ listen = '127.0.0.1:0' }}
[[bgp]]
table = 'all'
listen = '0.0.0.0:1790'
local-as = 65000
router-id = '10.77.0.1'
neighbour = [
  {{ address = '10.77.1.2', remote-as = 65002, hold = '60s' }},
  {{ address = '10.77.2.2', remote-as = 65003, hold = '60s' }},
]
[[ris]]
table = 'all'
connect = '{source}'
[[alarm]]
name = 'origin'
kind = 'unexpected-origin'
{ours}
origins = [65010]
[[alarm]]
name = 'inside'
kind = 'more-specific'
{ours}
[[alarm]]
name = 'gone'
kind = 'withdrawn'
{ours}
after = '3s'
[[alarm]]
name = 'flaps'
kind = 'flapping'
{ours}
changes = 8
within = '8s'
[[alarm]]
name = 'leak'
kind = 'path-through'
ases = [65099]
[[alarm]]
name = 'detour'
kind = 'path-without'
{ours}
ases = [65002]
origins = [65010]
[[alarm]]
name = 'invalid'
kind = 'newly-invalid'
[webhook]
url = 'http://{hook}/'
"
    )
}

/// The alarms that begin and end, as a receiver gets them.
struct Hook(Receiver<(Request, Instant)>);

impl Hook {
    fn line(request: &Request) -> String {
        let alarm = request.alarm();
        let sign = if alarm.end.is_none() { '+' } else { '-' };
        format!("{sign} {} {}", alarm.rule, alarm.prefix)
    }

    /// Exactly these come, in any order.
    fn expect(&self, what: &str, wanted: &[&str]) {
        let mut found = BTreeSet::new();
        while found.len() < wanted.len() {
            let next = self.0.recv_timeout(Duration::from_secs(60));
            let (request, _) = next.unwrap_or_else(|_| panic!("{what}: only {found:?} came"));
            assert!(found.insert(Self::line(&request)), "{what}: twice: {}", request.body);
        }
        let wanted: BTreeSet<String> = wanted.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(found, wanted, "{what}");
    }

    /// Nothing comes for a while.
    fn expect_none(&self, what: &str, time: Duration) {
        if let Ok((request, _)) = self.0.recv_timeout(time) {
            panic!("{what}: {}", request.body);
        }
    }
}

/// Announcements and withdrawals of a recorded feed, as lines of RIS.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
}

impl Sink for Lines {
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        panic!("{damage:?}");
    }

    fn update(&mut self, update: &Update<'_>) {
        let fibula_core::AnyPrefix::V4(prefix) = update.prefix else { return };
        let peer = update.peer % 250 + 1;
        let what = match update.change {
            Change::Announce(Attributes::Bgp(bgp)) => {
                let path = bgp.as_path.replace('{', "[").replace('}', "]").replace(' ', ",");
                format!(
                    "\"path\":[{path}],\"announcements\":[{{\"next_hop\":\"198.51.100.{peer}\",\"prefixes\":[\"{prefix}\"]}}]"
                )
            }
            Change::Announce(_) => return,
            Change::Withdraw => format!("\"withdrawals\":[\"{prefix}\"]"),
        };
        self.lines.push(format!(
            "{{\"timestamp\":1.0,\"peer\":\"198.51.100.{peer}\",\"peer_asn\":\"64{:03}\",\"host\":\"rrc15\",\"origin\":\"IGP\",\
             \"type\":\"UPDATE\",{what}}}\n",
            500 + peer
        ));
    }
}

/// Sends ten recorded minutes, again and again, at the pace of `seconds` for one time.
fn churn(listener: &TcpListener, seconds: f64, stop: &AtomicBool) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/mrt/bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz");
    let mut lines = Lines::default();
    let mut options = ReadOptions { as_path: true, ..ReadOptions::default() };
    read(&SourceSpec::new(file), &mut options, &mut lines).unwrap();
    let all = lines.lines;
    assert!(all.len() > 5000, "{} updates", all.len());
    let (mut stream, _) = listener.accept().unwrap();
    let (begin, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let due = (begin.elapsed().as_secs_f64() / seconds * all.len() as f64) as usize;
        while sent < due {
            stream.write_all(all[sent % all.len()].as_bytes()).unwrap();
            sent += 1;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn stages() {
    let seconds = std::env::var("FIBULA_ALARMS_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds: f64 = seconds.unwrap_or(60.0);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The names of network namespaces are of this mount namespace alone.
    run("mount --make-rprivate /");
    run("mount -t tmpfs none /run");
    run("ip link set lo up");
    for (name, number) in [("ours", 1), ("theirs", 2)] {
        run(&format!("ip netns add {name}"));
        run(&format!("ip link add veth{number} type veth peer name veth0 netns {name}"));
        run(&format!("ip addr add 10.77.{number}.1/24 dev veth{number}"));
        run(&format!("ip link set veth{number} up"));
        run(&format!("ip -n {name} addr add 10.77.{number}.2/24 dev veth0"));
        run(&format!("ip -n {name} link set veth0 up"));
    }
    let source = TcpListener::bind("127.0.0.1:0").unwrap();
    let (hook, came) = receiver(&["200 OK"]);
    let hooked = Hook(came);
    let text = config(source.local_addr().unwrap(), hook);
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let feed = thread::spawn(move || churn(&source, seconds.min(60.0), &stopped));
    Bird::configure(folder, "ours", 1, 65002, OURS);
    Bird::configure(folder, "theirs", 2, 65003, THEIRS);
    let mut ours = Bird::start(folder, "ours", &[]);
    let theirs = Bird::start(folder, "theirs", &[]);
    let is = |name: &str, state: SourceState| {
        until(&format!("{name}: {}", state.name()), || {
            let all = serve.board().all();
            all.iter().any(|source| source.name == name && source.state == state).then_some(())
        });
    };
    is("bgp 10.77.1.2", SourceState::Up);
    is("bgp 10.77.2.2", SourceState::Up);
    hooked.expect_none("the start", Duration::from_secs(4));

    let (begin, mut rounds) = (Instant::now(), 0);
    while rounds == 0 || begin.elapsed().as_secs_f64() < seconds - 20.0 {
        theirs.set("hijack", true);
        hooked.expect("a hijack", &["+ origin 10.10.0.0/16"]);
        theirs.set("hijack", false);
        hooked.expect("its end", &["- origin 10.10.0.0/16"]);

        theirs.set("inside", true);
        hooked.expect("a longer prefix", &["+ inside 10.10.5.0/24"]);
        theirs.set("inside", false);
        hooked.expect("its end", &["- inside 10.10.5.0/24"]);

        theirs.set("leak", true);
        hooked.expect("a leak", &["+ leak 10.10.0.0/16", "+ detour 10.10.0.0/16"]);
        theirs.set("leak", false);
        hooked.expect("its end", &["- leak 10.10.0.0/16", "- detour 10.10.0.0/16"]);

        ours.set("comes", false);
        hooked.expect("a withdrawal", &["+ gone 10.11.0.0/16"]);
        ours.set("comes", true);
        hooked.expect("its end", &["- gone 10.11.0.0/16"]);

        for _ in 0..4 {
            for is_on in [false, true] {
                ours.set("shakes", is_on);
                thread::sleep(Duration::from_millis(200));
            }
        }
        hooked.expect("flapping", &["+ flaps 10.12.0.0/16"]);
        hooked.expect("its end", &["- flaps 10.12.0.0/16"]);

        // The table is sent again, by a BIRD that lost its power: that is no news.
        ours.kill();
        is("bgp 10.77.1.2", SourceState::Lost);
        ours = Bird::start(folder, "ours", &["-R"]);
        is("bgp 10.77.1.2", SourceState::Up);
        hooked.expect_none("a restart", Duration::from_secs(4));
        rounds += 1;
    }
    let count = |name| metric(&serve, name, None);
    println!(
        "{rounds} rounds in {:.0} s, {} changes judged, {} lost",
        begin.elapsed().as_secs_f64(),
        count("alarms_changes_total"),
        count("alarms_lost_changes_total")
    );
    assert!(count("alarms_changes_total") > 1000, "there was no churn");
    assert_eq!((count("alarms_lost_changes_total"), count("alarms_forgotten_total")), (0, 0));
    assert_eq!(count("webhook_sent_total"), 12 * rounds);
    stop.store(true, Ordering::Relaxed);
    feed.join().unwrap();
    serve.stop().unwrap();
}
