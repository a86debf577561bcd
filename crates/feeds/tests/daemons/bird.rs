//! BIRD.

use std::fmt::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_feeds::bgp::{Neighbour, set_md5_key};
use fibula_feeds::{Protocol, SourceState};

use super::collector::{Collector, Routes, neighbour};
use super::world::{COLLECTOR, DAEMON, DAEMON_V6, PORT, Process, World};

/// A running BIRD of AS 65002 with static routes.
struct Bird<'a> {
    world: &'a World,
    process: Process,
}

impl<'a> Bird<'a> {
    /// Routes `skip..count` of IPv4 and half as many of IPv6; `session` is put into the protocol.
    fn configure(world: &World, (skip, count): (u32, u32), session: &str) {
        let mut text = format!(
            "router id {DAEMON};\nprotocol device {{}}\nprotocol direct {{ ipv4; ipv6; }}\n\
             filter announced {{\n if source != RTS_STATIC then reject;\n \
             bgp_path.prepend(65010);\n bgp_community.add((65002, net.len));\n \
             if net.len > 24 then {{ bgp_med = net.len; bgp_path.prepend(4200000000); }}\n accept;\n}}\n\
             protocol bgp collector {{\n local {DAEMON} as 65002; neighbor {COLLECTOR} port {PORT} as 65000;\n \
             connect retry time 1; connect delay time 1; error wait time 1, 2; hold time 9;\n {session}\n \
             ipv4 {{ import none; export filter announced; }};\n ipv6 {{ import none; export filter announced; }};\n}}\n"
        );
        let _ = writeln!(text, "protocol static s4 {{ ipv4;");
        for i in skip..count {
            let (address, len) = (0x0a00_0000 + (i << 10), 22 + i % 11);
            let address = std::net::Ipv4Addr::from(address);
            let _ = writeln!(text, " route {address}/{len} blackhole;");
        }
        let _ = writeln!(text, "}}\nprotocol static s6 {{ ipv6;");
        for i in skip / 2..count / 2 {
            let _ =
                writeln!(text, " route 2001:db8:{:x}:{:x}::/64 blackhole;", i >> 16, i & 0xffff);
        }
        text += "}\n";
        world.write("bird.conf", &text);
    }

    fn start(world: &'a World, arguments: &[&str]) -> Self {
        let mut command = world.command("bird");
        command.args(["-f", "-c", "bird.conf", "-s", "bird.ctl"]).args(arguments);
        let process = Process::spawn(command.stderr(Stdio::null()));
        let bird = Self { world, process };
        for _ in 0..100 {
            sleep(Duration::from_millis(50));
            if bird.try_ask("show status").is_some_and(|text| text.contains("up and running")) {
                return bird;
            }
        }
        panic!("BIRD does not come up");
    }

    fn try_ask(&self, line: &str) -> Option<String> {
        let out = self.world.command("birdc").args(["-s", "bird.ctl", line]).output().unwrap();
        out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
    }

    fn ask(&self, line: &str) -> String {
        self.try_ask(line).unwrap_or_else(|| panic!("birdc {line}"))
    }

    /// The routes that BIRD reports as announced, with its AS and its address, which it adds when it sends.
    fn announced(&self) -> Routes {
        let mut routes = Routes::new();
        let mut prefix: Option<AnyPrefix> = None;
        let mut values: [String; 3] = Default::default();
        let text = self.ask("show route export collector all");
        for line in text.lines().chain(["0.0.0.0/0 end"]) {
            let word = line.split_whitespace().next().unwrap_or_default();
            if let Ok(next) = word.parse() {
                let [path, med, communities] = std::mem::take(&mut values);
                if let Some(prefix) = prefix.replace(next) {
                    let hop = if matches!(prefix, AnyPrefix::V4(_)) { DAEMON } else { DAEMON_V6 };
                    let line = format!("{hop} [65002 {path}] {med} {communities}");
                    assert!(routes.insert(prefix, line).is_none());
                }
            }
            let Some((name, value)) = line.trim().split_once(": ") else { continue };
            let value = value.trim();
            match name {
                "BGP.as_path" => values[0] = value.to_owned(),
                "BGP.med" => values[1] = value.to_owned(),
                "BGP.community" => {
                    values[2] = value.replace(['(', ')'], "").replace(',', ":");
                }
                _ => {}
            }
        }
        routes
    }

    /// Waits until BIRD's report about the session contains this.
    fn until(&self, collector: &mut Collector, part: &str) {
        collector.until(&format!("BIRD prints \"{part}\""), |_| {
            self.ask("show protocols all collector").contains(part)
        });
    }
}

/// The last route of 7,000.
const LAST: &str = "10.109.92.0/25";

/// BIRD is up, and so is the session; all routes are equal.
fn started<'a>(world: &'a World, collector: &mut Collector, arguments: &[&str]) -> Bird<'a> {
    let bird = Bird::start(world, arguments);
    collector.until_up();
    let announced = bird.announced();
    assert!(announced.len() >= 6000, "{}", announced.len());
    collector.assert_routes(&announced);
    bird
}

pub fn routes_refresh_and_farewells(world: &World) {
    Bird::configure(world, (0, 6000), "");
    let mut collector = Collector::new(neighbour(65002));
    let bird = started(world, &mut collector, &[]);

    // A route that BIRD never announced: a refresh sweeps it.
    let attributes = BgpAttributes::default();
    let change = Change::Announce(Attributes::Bgp(&attributes));
    for prefix in ["192.0.2.0/24", "2001:db8:ffff::/48"] {
        let update = Update::new(prefix.parse().unwrap(), change);
        collector.rib.apply(&update, &mut ()).unwrap();
    }
    assert_eq!(collector.routes_count(), 9002);
    collector.refresh();
    collector.until("the refresh has begun", |c| c.session.state() == SourceState::Resync);
    collector.until_up();
    collector.until_logged("peer 0 has sent its whole table again");
    collector.assert_routes(&bird.announced());

    // Routes come and go.
    Bird::configure(world, (1000, 7000), "");
    bird.ask("configure");
    collector.until("routes have changed", |c| !c.has("10.0.0.0/22") && c.has(LAST));
    collector.until("nothing comes any more", |c| c.is_quiet());
    collector.assert_routes(&bird.announced());

    bird.ask("disable collector \"new \\cables\"");
    let why = collector.until_logged("it ended the session");
    assert!(why.contains("Cease/Administrative Shutdown: \"new \\\\cables\""), "{why}");
    assert!(collector.rib.is_empty(), "the session has ended, and its routes with it");
    bird.ask("enable collector");
    collector.until_up();
    collector.assert_routes(&bird.announced());

    collector.close();
    bird.until(&mut collector, "Received: Administrative shutdown");
    collector.until_up();
    collector.assert_routes(&bird.announced());
}

/// BIRD is killed and comes back with fewer routes, gracefully: they stay in use until BIRD has sent everything.
pub fn graceful_restart(world: &World) {
    let session = "graceful restart on; graceful restart time 4;";
    Bird::configure(world, (0, 6000), session);
    let mut collector = Collector::new(neighbour(65002));
    let bird = started(world, &mut collector, &[]);
    bird.process.kill();
    collector.until("it is lost", |c| c.session.state() == SourceState::Lost);
    assert_eq!(collector.routes_count(), 9000);
    Bird::configure(world, (2000, 7000), session);
    let bird = Bird::start(world, &["-R"]);
    collector.until("it is back", |c| c.session.state() == SourceState::Resync);
    assert!(collector.has("10.0.0.0/22"), "a stale route serves");
    collector.until_up();
    collector.assert_routes(&bird.announced());
    assert!(!collector.has("10.0.0.0/22"));

    // Its machine restarts, which we cannot see, and the new connection replaces the old one.
    world.reboot(bird.process);
    assert_eq!(collector.session.state(), SourceState::Up);
    collector.log.lock().unwrap().clear();
    let bird = Bird::start(world, &["-R"]);
    collector.until("the connection is replaced", |c| c.session.figures().connections == 3);
    assert!(collector.log.lock().unwrap().is_empty(), "the old one never ended");
    assert_eq!(collector.routes_count(), 7500);
    collector.until_up();
    collector.assert_routes(&bird.announced());

    // BIRD does not come back.
    bird.process.kill();
    let lost = collector.now();
    collector.until_logged("did not come back");
    let after = (collector.now() - lost).as_secs_f64();
    assert!((4.0..6.0).contains(&after), "{after}");
    assert!(collector.rib.is_empty());
}

/// Without graceful restart a second connection is refused; what we send on the first one shows that it is dead.
pub fn plain_restart(world: &World) {
    Bird::configure(world, (0, 6000), "graceful restart off; enable extended messages on;");
    // BIRD pauses for up to 2 s before the last of its routes.
    let brief = Neighbour { quiet: Duration::from_secs(3), ..neighbour(65002) };
    let mut collector = Collector::new(brief);
    let bird = started(world, &mut collector, &[]);
    world.reboot(bird.process);
    let began = collector.now();
    let bird = Bird::start(world, &[]);
    collector.until_logged("it has an established session already");
    collector.until("it is back", |c| c.session.state() == SourceState::Resync);
    collector.until_up();
    collector.assert_routes(&bird.announced());
    let after = (collector.now() - began).as_secs_f64();
    eprintln!("           {after:.1} s after it was killed");
}

/// BIRD's reading of our NOTIFICATIONs.
pub fn refusals(world: &World) {
    Bird::configure(world, (0, 6000), "");
    let mut collector = Collector::new(neighbour(64999));
    let bird = Bird::start(world, &[]);
    collector.until_logged("it is AS65002, but AS64999 is configured");
    bird.until(&mut collector, "Received: Bad peer AS");
    let few = Neighbour {
        most_routes: Some(2000),
        limit_pause: Duration::from_secs(2),
        ..neighbour(65002)
    };
    drop(collector);
    let mut collector = Collector::new(few);
    collector.until_logged("it has more than 2000 IPv4 routes");
    assert!(collector.rib.is_empty());
    bird.until(&mut collector, "Received: Maximum number of prefixes reached");
    collector.until_logged("it exceeded its limit of routes a short while ago");
    bird.until(&mut collector, "Received: Connection rejected");
    collector.until_logged("it has more than 2000 IPv4 routes");
}

/// TCP MD5: a connection needs the right key; without a key or with a wrong one it fails.
pub fn md5(world: &World) {
    Bird::configure(world, (0, 6000), "password \"right\";");
    let mut collector = Collector::new(neighbour(65002));
    let bird = Bird::start(world, &[]);
    let from: AnyPrefix = format!("{DAEMON}/32").parse().unwrap();
    for key in [None, Some("wrong")] {
        if let Some(key) = key {
            set_md5_key(&collector.listener, from, Some(key.as_bytes())).unwrap();
        }
        let until = collector.now() + Duration::from_secs(3);
        collector.until("three seconds are over", |c| c.now() > until);
        assert_eq!(collector.session.figures().connections, 0, "{key:?}");
    }
    set_md5_key(&collector.listener, from, Some(b"right")).unwrap();
    collector.until_up();
    collector.assert_routes(&bird.announced());
}
