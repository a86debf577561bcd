//! A router over captures and generated packets: it forwards, reloads its rules, answers, and stops.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use fibula_daemon::config::{ConfigError, Problem, RouteConfig};
use fibula_daemon::route::{NextHopsProblem, RouteFigures};
use fibula_daemon::{DaemonError, Notice, Route, RouteOptions};
use fibula_router::forward::Reason;
use fibula_router::port::memory::Flows;
use fibula_server::client::{Client, ClientOptions};

use crate::until;

const TABLE: &str = "10.0.0.0/8 a\n10.1.0.0/16 drop\n0.0.0.0/0 a\n";
const HOPS: &str = "a via 192.0.2.9\ndrop blackhole\n";
/// The port behind which the gateway is.
const OUT: &str =
    "addresses = ['192.0.2.1/24']\nneighbours = { '192.0.2.9' = '02:00:00:00:00:09' }\n";

/// A router with this table and the rest of its configuration.
fn config(folder: &Path, more: &str) -> Result<RouteConfig, ConfigError> {
    fs::write(folder.join("table.txt"), TABLE).unwrap();
    let hops = folder.join("hops.txt");
    if !hops.exists() {
        fs::write(&hops, HOPS).unwrap();
    }
    let text = format!(
        "{more}\n[router]\ntable = ['{0}/table.txt']\nnext-hops = '{0}/hops.txt'\n",
        folder.display()
    );
    RouteConfig::parse(&text.replace("RULES", &format!("{}/rules", folder.display())), "test.toml")
        .and_then(RouteConfig::checked)
}

fn packets(figures: &RouteFigures, wanted: Reason) -> u64 {
    let of = |(reason, packets, _)| if reason == wanted { packets } else { 0 };
    figures.reasons().into_iter().map(of).sum()
}

/// A capture of packets to these addresses.
fn capture(to: &[[u8; 4]], mac: [u8; 6]) -> Vec<u8> {
    let addresses = to.iter().map(|&address| Ipv4Addr::from(address).into());
    let flows = Flows::udp([2, 0, 0, 0, 0, 7], mac, 60, addresses);
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([65_535u32, 1].map(u32::to_le_bytes).concat());
    for at in 0..flows.len() {
        let frame = flows.frame(at);
        let len = frame.len() as u32;
        bytes.extend([at as u32, 0, len, len].map(u32::to_le_bytes).concat());
        bytes.extend(frame);
    }
    bytes
}

/// It ends by itself when its captures do.
#[test]
fn captures_are_forwarded_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let to = [[10, 2, 0, 1], [10, 1, 2, 3], [8, 8, 8, 8]];
    fs::write(path("in.pcap"), capture(&to, [2, 0, 0, 0, 0, 1])).unwrap();
    let ports = format!(
        "[[port]]\nport = 'pcap:{}:'\n[[port]]\nport = 'pcap::{}'\n{OUT}",
        path("in.pcap"),
        path("out.pcap")
    );
    let route = Route::start(RouteOptions::new(config(folder.path(), &ports).unwrap())).unwrap();
    let end = route.wait().unwrap();
    assert!(end.failure.is_none(), "{:?}", end.failure);
    assert_eq!(packets(&end.figures, Reason::ForwardedV4), 2);
    assert_eq!(packets(&end.figures, Reason::Blackhole), 1);
    assert_eq!(fs::read(path("out.pcap")).unwrap().len(), 24 + 2 * (16 + 60));
    // The same capture, truncated: its complete packets were forwarded.
    let whole = fs::read(path("in.pcap")).unwrap();
    fs::write(path("in.pcap"), &whole[..whole.len() - 1]).unwrap();
    let route = Route::start(RouteOptions::new(config(folder.path(), &ports).unwrap())).unwrap();
    let end = route.wait().unwrap();
    assert!(matches!(end.failure, Some(DaemonError::Capture { .. })), "{:?}", end.failure);
    assert_eq!(packets(&end.figures, Reason::ForwardedV4), 1);
}

#[test]
fn generated_packets_are_forwarded_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let ports = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n[[port]]\nport = 'memory'\n[[port]]\nport = 'memory'\n{OUT}"
    );
    let config = config(folder.path(), &ports).unwrap();
    let route = Route::start(RouteOptions::new(config.clone())).unwrap();
    until("packets", || (packets(&route.figures(), Reason::ForwardedV4) > 1000).then_some(()));
    let url = format!("http://{}", route.addresses()[0]);
    let mut client = Client::new(ClientOptions::new(url)).unwrap();
    let metrics = client.get("/metrics", &[]).unwrap();
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("router_packets_total{reason=\"forwarded_v4\"}"), "{text}");
    let end = route.stop().unwrap();
    assert!(end.failure.is_none() && packets(&end.figures, Reason::ForwardedV4) > 1000);
    let route = Route::start(RouteOptions::new(config.clone())).unwrap();
    let end = route.wait_at_most(Duration::from_millis(50)).unwrap();
    assert!(end.time >= Duration::from_millis(40), "{:?}", end.time);
    // Dropping it stops it.
    drop(Route::start(RouteOptions::new(config)).unwrap());
}

#[test]
fn rules_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    fs::write(&rules, "any -> drop\n").unwrap();
    let ports = format!("[[port]]\nport = 'memory'\n[[port]]\nport = 'memory'\n{OUT}");
    let mut config = config(folder.path(), &ports).unwrap();
    config.router.rules = Some(rules.clone());
    let route = Route::start(RouteOptions::new(config)).unwrap();
    let hits = |line: u32| {
        let rules = route.figures().rules.expect("there are rules");
        rules.iter().find(|rule| rule.line == line).map_or(0, |rule| rule.packets)
    };
    until("packets of the first rule", || (hits(1) > 0).then_some(()));
    assert_eq!(packets(&route.figures(), Reason::ForwardedV4), 0);
    // A file that is wrong changes nothing.
    fs::write(&rules, "any -> dorp\n").unwrap();
    route.notify(Notice::Reload);
    assert_eq!(packets(&route.figures(), Reason::ForwardedV4), 0);
    fs::write(&rules, "# all\nany -> allow\n").unwrap();
    route.handle().notify(Notice::Reload);
    until("packets of the other", || (hits(2) > 0).then_some(()));
    until("them sent", || (packets(&route.figures(), Reason::ForwardedV4) > 0).then_some(()));
    route.stop().unwrap();
}

/// A live table whose sources send nothing: it starts, answers and stops.
#[test]
fn a_router_of_a_live_table_stops() {
    let text = "http = { listen = '127.0.0.1:0' }\n[[fpm]]\nlisten = '127.0.0.1:0'\n[[port]]\nport = 'memory'";
    let config = RouteConfig::parse(text, "test.toml").and_then(RouteConfig::checked).unwrap();
    let options = RouteOptions::new(config).waiting(Duration::from_millis(50));
    let route = Route::start(options).unwrap();
    let end = route.stop().unwrap();
    assert!(end.failure.is_none(), "{:?}", end.failure);
}

#[test]
fn what_cannot_start_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hops.txt"), "# two lines\na via x\n").unwrap();
    let ports = "[[port]]\nport = 'memory'";
    let options = RouteOptions::new(config(folder.path(), ports).unwrap());
    let DaemonError::Config(error) = Route::start(options).unwrap_err() else { panic!() };
    assert_eq!((error.file(), error.line()), (Some(&*folder.path().join("hops.txt")), Some(2)));
    let problem = error.problem();
    assert!(matches!(problem, Problem::NextHops(NextHopsProblem::Value { .. })), "{problem:?}");
    let ports = "[[port]]\nport = 'pcap:/no/such/file:'";
    let options = RouteOptions::new(config(folder.path(), ports).unwrap());
    let error = Route::start(options).unwrap_err();
    assert!(error.to_string().starts_with("--port pcap:/no/such/file:: "), "{error}");
}
