//! FRR: its `bgpd`, with a `zebra` that knows the addresses of interfaces.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use fibula_core::{Attributes, BgpAttributes, Change, Update};
use fibula_feeds::{Protocol, SourceState};
use serde_json::Value;

use super::collector::{Collector, Routes, neighbour};
use super::world::{COLLECTOR, DAEMON, DAEMON_V6, PORT, Process, World, output};

/// Defined before it is used: FRR announces nothing by a route map that it does not know yet, and looks
/// again after 5 s.
const ROUTE_MAP: &str = "ip prefix-list long seq 5 permit 0.0.0.0/0 ge 26\n\
    route-map out permit 5\n match ip address prefix-list long\n set metric 77\n \
    set as-path prepend 4200000000 65010\nroute-map out permit 10\n set as-path prepend 65011\n";

/// A running `bgpd` of AS 65003.
struct Frr<'a> {
    world: &'a World,
    process: Process,
    _zebra: Process,
}

impl<'a> Frr<'a> {
    /// Routes `skip..count` of IPv4, and half as many of IPv6.
    fn start(world: &'a World, (skip, count): (u32, u32)) -> Self {
        let mut text = format!(
            "hostname bgpd\n{ROUTE_MAP}router bgp 65003\n bgp router-id {DAEMON}\n no bgp ebgp-requires-policy\n \
             no bgp default ipv4-unicast\n no bgp network import-check\n neighbor {COLLECTOR} remote-as 65000\n \
             neighbor {COLLECTOR} port {PORT}\n neighbor {COLLECTOR} timers 3 9\n \
             neighbor {COLLECTOR} timers connect 1\n neighbor {COLLECTOR} advertisement-interval 0\n"
        );
        for family in ["ipv4", "ipv6"] {
            let _ = writeln!(
                text,
                " address-family {family} unicast\n  neighbor {COLLECTOR} activate\n  \
                 neighbor {COLLECTOR} route-map out out"
            );
            for i in if family == "ipv4" { skip..count } else { skip / 2..count / 2 } {
                let _ = match family {
                    "ipv4" => {
                        let address = std::net::Ipv4Addr::from(0x0a00_0000 + (i << 10));
                        writeln!(text, "  network {address}/{}", 22 + i % 11)
                    }
                    _ => writeln!(text, "  network 2001:db8:{:x}:{:x}::/64", i >> 16, i & 0xffff),
                };
            }
            text += " exit-address-family\n";
        }
        world.write("bgpd.conf", &text);
        world.write("zebra.conf", "hostname zebra\n");
        let dir = world.dir.path();
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).unwrap();
        let dir = dir.to_str().unwrap();
        output("chown", &["-R", "frr:frr", dir]);
        let daemon = |name: &str| {
            let (conf, pid) = (format!("{dir}/{name}.conf"), format!("{dir}/{name}.pid"));
            let zserv = format!("{dir}/zserv.api");
            let mut command = world.command(&format!("/usr/lib/frr/{name}"));
            command.args(["-f", &conf, "-i", &pid, "-z", &zserv, "--vty_socket", dir, "-P", "0"]);
            if name == "bgpd" {
                command.args(["-p", "0"]);
            }
            Process::spawn(&mut command)
        };
        let zebra = daemon("zebra");
        sleep(Duration::from_millis(500));
        let frr = Self { world, process: daemon("bgpd"), _zebra: zebra };
        for _ in 0..100 {
            sleep(Duration::from_millis(50));
            if frr.try_ask("show bgp summary").is_some() {
                return frr;
            }
        }
        panic!("bgpd does not come up");
    }

    fn try_ask(&self, line: &str) -> Option<String> {
        let dir = self.world.dir.path().to_str().unwrap();
        let mut command = self.world.command("vtysh");
        let out = command.args(["--vty_socket", dir, "-c", line]).output().unwrap();
        out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
    }

    fn ask(&self, line: &str) -> String {
        self.try_ask(line).unwrap_or_else(|| panic!("vtysh {line}"))
    }

    /// The routes that FRR reports as sent.
    fn announced(&self) -> Routes {
        let mut routes = Routes::new();
        for (family, own) in [("ipv4", DAEMON), ("ipv6", DAEMON_V6)] {
            let line =
                format!("show bgp {family} unicast neighbors {COLLECTOR} advertised-routes json");
            let json: Value = serde_json::from_str(&self.ask(&line)).unwrap();
            for (prefix, route) in json["advertisedRoutes"].as_object().unwrap() {
                let text = |name: &str| route[name].as_str().unwrap_or_default().to_owned();
                let (path, med) = (text("path"), route["metric"].as_u64());
                let med = med.map_or(String::new(), |med| med.to_string());
                routes.insert(prefix.parse().unwrap(), format!("{own} [65003 {path}] {med} "));
            }
        }
        routes
    }
}

pub fn routes_refresh_and_restart(world: &World) {
    let mut collector = Collector::new(neighbour(65003));
    let frr = Frr::start(world, (0, 4000));
    collector.until_up();
    collector.until("nothing comes any more", |c| c.is_quiet());
    assert_eq!(collector.routes_count(), 6000);
    collector.assert_routes(&frr.announced());

    // A route that FRR never announced: a refresh sweeps it.
    let attributes = BgpAttributes::default();
    let change = Change::Announce(Attributes::Bgp(&attributes));
    let update = Update::new("192.0.2.0/24".parse().unwrap(), change);
    collector.rib.apply(&update, &mut ()).unwrap();
    collector.refresh();
    collector.until("the refresh has begun", |c| c.session.state() == SourceState::Resync);
    collector.until_up();
    collector.until_logged("peer 0 has sent its whole table again");
    collector.assert_routes(&frr.announced());

    frr.ask(&format!("clear bgp {COLLECTOR}"));
    let why = collector.until_logged("it ended the session");
    assert!(why.contains("Cease/Administrative Reset"), "{why}");
    assert!(collector.rib.is_empty());
    collector.until_up();
    collector.until("nothing comes any more", |c| c.is_quiet());
    collector.assert_routes(&frr.announced());

    // FRR is killed, and comes back with other routes.
    let Frr { process, _zebra: zebra, .. } = frr;
    process.kill();
    zebra.kill();
    collector.until("it is lost", |c| c.session.state() == SourceState::Lost);
    assert_eq!(collector.routes_count(), 6000);
    let frr = Frr::start(world, (1000, 5000));
    collector.until("it is back", |c| c.session.state() == SourceState::Resync);
    assert!(collector.has("10.0.0.0/22"), "a stale route serves");
    collector.until_up();
    assert!(!collector.has("10.0.0.0/22"));
    collector.until("nothing comes any more", |c| c.is_quiet());
    collector.assert_routes(&frr.announced());

    collector.close();
    collector.until("FRR knows why", |_| {
        let neighbour = frr.ask(&format!("show bgp neighbors {COLLECTOR}"));
        let end = neighbour.lines().find(|line| line.contains("Last reset"));
        end.is_some_and(|line| line.contains("(Cease/Administrative Shutdown)"))
    });
}
