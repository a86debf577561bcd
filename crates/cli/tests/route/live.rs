//! Routers whose tables and packets come while they run: routes that FRR sent, metrics, signals.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::frames::{capture, captured, forwarded, frame, ip};
use crate::common::Files;
use crate::common::daemon::{Daemon, PATIENCE};
use crate::common::fpm::{self, until};

/// A router that runs.
struct Router(Daemon);

impl Router {
    fn start(args: &[&str]) -> Self {
        Self(Daemon::start(&[&["route", "--json"], args].concat()))
    }

    /// Waits for its end; gives the summary.
    fn end(mut self) -> Value {
        let (out, code) = self.0.end();
        assert_eq!(code, Some(0));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// A route of the kernel's table: its first address, its length, and its next hops as gateway and device.
type Route = (IpAddr, u8, Vec<(Option<IpAddr>, String)>);

fn routes() -> Vec<Route> {
    let text = fpm::kernel("loaded");
    let route = |line: &str| {
        let (prefix, rest) = line.split_once(' ').unwrap();
        let (address, len) = prefix.split_once('/').unwrap();
        let hop = |hop: &str| {
            let (gateway, device) = hop.split_once(' ')?;
            Some((gateway.parse().ok(), device.to_owned()))
        };
        (ip(address), len.parse().unwrap(), rest.split(", ").filter_map(hop).collect())
    };
    text.lines().filter(|line| !line.contains(" table ")).map(route).collect()
}

fn covers(route: &Route, address: IpAddr) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, true),
        IpAddr::V6(v6) => (u128::from(v6), false),
    };
    let ((a, family), (b, other)) = (bits(route.0), bits(address));
    let mask = u128::MAX.checked_shl(128 - u32::from(route.1)).unwrap_or(0);
    family == other && (a ^ b) & mask == 0
}

/// Each route that FRR sent over FPM forwards as the kernel's table says, which was written down beside it.
#[test]
fn frr_routes_by_fpm_forward_as_the_kernels() {
    let files = Files::new();
    let all = routes();
    // The gateways that there are, and the MAC addresses that they get here.
    let mut gateways: BTreeMap<(String, IpAddr), [u8; 6]> = BTreeMap::new();
    for (gateway, device) in all.iter().flat_map(|(.., hops)| hops) {
        let Some(gateway) = gateway else { continue };
        let next = gateways.len() as u8;
        gateways.entry((device.clone(), *gateway)).or_insert([2, 0, 0, 1, 0, next]);
    }
    let mut wanted: BTreeMap<u32, (u8, Vec<[u8; 6]>)> = BTreeMap::new();
    let mut frames = Vec::new();
    let first = |(address, len, _): &Route| match address {
        IpAddr::V4(v4) if *len < 31 => IpAddr::from(std::net::Ipv4Addr::from(u32::from(*v4) | 1)),
        address => *address,
    };
    for address in
        all.iter().filter(|route| route.1 > 0).map(first).chain(["8.8.8.8", "2a00::1"].map(ip))
    {
        let route = all.iter().filter(|route| covers(route, address)).max_by_key(|route| route.1);
        let (.., hops) = route.expect("there is a default route");
        // On the link nobody is known, link-local destinations are not forwarded.
        let is_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if is_local || hops.iter().any(|(gateway, _)| gateway.is_none()) {
            continue;
        }
        let number = frames.len() as u32;
        frames.push(frame(address, 0, 64, number));
        if let Some((_, device)) = hops.first() {
            let by = if device == "dA" { 1 } else { 2 };
            let macs = hops
                .iter()
                .map(|(gateway, device)| gateways[&(device.clone(), gateway.expect("seen above"))]);
            wanted.insert(number, (by, macs.collect()));
        }
    }
    assert!(wanted.len() > 1000, "{}", wanted.len());
    files.with("in.pcap", capture(&frames));
    let neighbours = |device: &str| {
        let of = gateways.iter().filter(|((on, _), _)| on == device).map(|((_, gateway), mac)| {
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            format!("\"{gateway}\" = \"{mac}\"")
        });
        of.collect::<Vec<_>>().join(", ")
    };
    let port = |name: &str, interface: u8, subnet: &str| {
        let (path, neighbours) = (files.path(&format!("{name}.pcap")), neighbours(name));
        format!(
            "[[port]]\nport = \"pcap::{path}\"\ninterface = {interface}\naddresses = [\"{subnet}\"]\nneighbours = {{ {neighbours} }}\n"
        )
    };
    let input = files.path("in.pcap");
    let config = [
        "[[fpm]]\nlisten = \"127.0.0.1:0\"\nquiet = \"300ms\"\n[pipeline]\nicmp = false\n"
            .to_owned(),
        format!("[[port]]\nport = \"pcap:{input}:\"\naddresses = [\"172.16.0.1/24\"]\n"),
        port("dA", 11, "10.9.0.1/24"),
        port("dB", 12, "10.9.1.1/24"),
    ]
    .concat();
    let config = files.with("route.toml", config);
    let router = Router::start(&["--config", &config, "--wait", "60"]);
    let listens = router.0.hear("fpm: listens on ");
    let mut zebra = TcpStream::connect(listens).unwrap();
    zebra.write_all(&until("loaded").0).unwrap();
    let summary = router.end();
    let mut seen = 0;
    for (name, by) in [("dA", 1u8), ("dB", 2)] {
        for out in captured(&files.path(&format!("{name}.pcap"))) {
            let number = u32::from_be_bytes(*out.last_chunk().unwrap());
            let to: [u8; 6] = *out.first_chunk().unwrap();
            let frame = &frames[number as usize];
            let (first, macs) = &wanted[&number];
            assert!(macs.contains(&to), "{number} went to {to:?}, not one of {macs:?}");
            assert!(macs.len() > 1 || *first == by, "{number} left by port {by}");
            assert_eq!(out, forwarded(frame, by, to));
            seen += 1;
        }
    }
    assert_eq!(seen, wanted.len(), "{summary:#}");
}

/// Two ports in two VRFs: the same destination leads to other gateways, and the default route of one is not the
/// other's.
#[test]
fn a_port_forwards_by_the_table_of_its_vrf() {
    let files = Files::new();
    let default = routes().into_iter().find(|route| route.1 == 0 && route.0.is_ipv4()).unwrap();
    assert_eq!(default.2, [(Some(ip("10.9.0.17")), "dA".to_owned())]);
    assert!(fpm::kernel("loaded").contains("\n100.67.0.0/16 10.9.0.13 dA table 100\n"));
    let (of_default, of_100) = ([2, 0, 0, 1, 0, 17], [2, 0, 0, 1, 0, 13]);
    let frames: Vec<_> = [(0, "100.67.1.1"), (0, "8.8.8.8"), (1, "100.67.1.1"), (1, "8.8.8.8")]
        .into_iter()
        .zip(0..)
        .map(|((port, to), number)| frame(ip(to), port, 64, number))
        .collect();
    let (left, right) = (
        files.with("left.pcap", capture(&frames[..2])),
        files.with("right.pcap", capture(&frames[2..])),
    );
    let config = "[[fpm]]\nlisten = \"127.0.0.1:0\"\nquiet = \"300ms\"\n[pipeline]\nicmp = false\n";
    let (config, out) = (files.with("route.toml", config), files.path("out.pcap"));
    let ports = [
        format!("pcap:{left}:"),
        format!("pcap:{right}:,vrf=fpm/100"),
        format!(
            "pcap::{out},interface=11,address=10.9.0.1/24,neighbour=10.9.0.17=02:00:00:01:00:11,\
             neighbour=10.9.0.13=02:00:00:01:00:0d"
        ),
    ];
    let mut args = vec!["--config", &config, "--wait", "60"];
    ports.iter().for_each(|port| args.extend(["--port", port]));
    let router = Router::start(&args);
    let listens = router.0.hear("fpm: listens on ");
    let mut zebra = TcpStream::connect(listens).unwrap();
    zebra.write_all(&until("loaded").0).unwrap();
    router.0.hear(&format!("pcap:{right}:: received packets are forwarded by fpm/100"));
    let summary = router.end();
    let mut sent = captured(&out);
    sent.sort_by_key(|frame| frame.last().copied());
    let to = [of_default, of_default, of_100];
    let wanted: Vec<_> = frames.iter().zip(to).map(|(frame, to)| forwarded(frame, 2, to)).collect();
    assert_eq!(sent, wanted, "{summary:#}");
    assert_eq!(summary["reasons"]["no_route"], 1, "{summary:#}");
}

/// One port, and rules that name the table: what a rule sends to VRF 100 leaves by its routes.
#[test]
fn a_rule_names_the_table_of_a_vrf() {
    let files = Files::new();
    let (of_default, of_100) = ([2, 0, 0, 1, 0, 17], [2, 0, 0, 1, 0, 13]);
    let frames: Vec<_> = ["100.67.1.1", "8.8.8.8", "100.67.9.9"]
        .into_iter()
        .zip(0..)
        .map(|(to, number)| frame(ip(to), 0, 64, number))
        .collect();
    let input = files.with("in.pcap", capture(&frames));
    let rules = files.with(
        "rules.txt",
        "dst 100.67.9.0/24 -> drop\ndst 100.67.0.0/16 -> vrf fpm/100 label tenant\nany -> allow\n",
    );
    let config = "[[fpm]]\nlisten = \"127.0.0.1:0\"\nquiet = \"300ms\"\n[pipeline]\nicmp = false\n";
    let (config, out) = (files.with("route.toml", config), files.path("out.pcap"));
    let ports = [
        format!("pcap:{input}:"),
        format!(
            "pcap::{out},interface=11,address=10.9.0.1/24,neighbour=10.9.0.17=02:00:00:01:00:11,\
             neighbour=10.9.0.13=02:00:00:01:00:0d"
        ),
    ];
    let mut args = vec!["--config", &config, "--wait", "60", "--rules", &rules];
    ports.iter().for_each(|port| args.extend(["--port", port]));
    let router = Router::start(&args);
    let listens = router.0.hear("fpm: listens on ");
    let mut zebra = TcpStream::connect(listens).unwrap();
    zebra.write_all(&until("loaded").0).unwrap();
    let summary = router.end();
    let mut sent = captured(&out);
    sent.sort_by_key(|frame| frame.last().copied());
    let wanted = [forwarded(&frames[0], 1, of_100), forwarded(&frames[1], 1, of_default)];
    assert_eq!(sent, wanted, "{summary:#}");
    let rules = summary["rules"].as_array().unwrap();
    let counted: Vec<_> = rules.iter().map(|rule| (&rule["line"], &rule["packets"])).collect();
    assert_eq!(counted, [(&1.into(), &1.into()), (&2.into(), &1.into()), (&3.into(), &1.into())]);
    assert!(rules[1]["rule"].as_str().unwrap().ends_with("label \"tenant\""), "{summary:#}");
    assert_eq!(rules[0]["bytes"], frames[2].len());
}

/// What metrics say.
fn metrics(http: &str) -> String {
    let mut stream = TcpStream::connect(http).expect("it answers");
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// SIGHUP has rules read again while packets come; a file with an error changes nothing.
#[test]
fn rules_are_read_again() {
    let files = Files::new();
    let (table, hops) =
        (files.with("table.txt", "0.0.0.0/0 a\n"), files.with("hops.txt", "a port 1\n"));
    let rules = files.with("rules.txt", "any -> drop\n");
    let tables = ["--table", &table, "--next-hops", &hops, "--rules", &rules];
    let ports = ["--port", "memory", "--port", "memory,address=1.0.0.1/4", "--shape", "fused:1"];
    let router = Router::start(&[&tables[..], &ports, &["--http", "127.0.0.1:0"]].concat());
    let http = router.0.hear("answering on http://");
    let count = |line: u32, rule: &str| -> f64 {
        let name = format!("fibula_router_rule_packets_total{{line=\"{line}\",rule=\"{rule}\"}} ");
        let answer = metrics(&http);
        answer.lines().find_map(|line| line.strip_prefix(&name)).map_or(0.0, |n| n.parse().unwrap())
    };
    let wait = |line, rule: &str, more: f64| {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = count(line, rule);
            if now > more {
                return now;
            }
            assert!(Instant::now() < until, "{}", metrics(&http));
            thread::sleep(Duration::from_millis(5));
        }
    };
    let first = wait(1, "any -> drop", 0.0);
    files.with("rules.txt", "any -> drop\nany -> dorp\n");
    router.0.signal("HUP");
    let (level, result) = router.0.hear_at("the rules are unchanged: ");
    assert_eq!(level.to_lowercase(), "warn");
    assert!(result.contains("line 2, column 8: "), "{result}");
    let second = wait(1, "any -> drop", first);

    // An editor that writes the file anew has it empty for a moment.
    files.with("rules.txt", "");
    router.0.signal("HUP");
    let (_, result) = router.0.hear_at("the rules are unchanged: ");
    assert!(result.contains("it has no rules"), "{result}");
    let second = wait(1, "any -> drop", second);

    files.with("rules.txt", "any -> vrf fpm/7\n");
    router.0.signal("HUP");
    let (_, result) = router.0.hear_at("the rules are unchanged: ");
    assert!(result.contains("line 1: --table is the only table"), "{result}");
    let second = wait(1, "any -> drop", second);

    files.with("rules.txt", "# More.\ndst 0.0.0.0/1 -> drop\nany -> drop\n");
    router.0.signal("HUP");
    router.0.hear("loaded 2 rules");
    wait(2, "dst 0.0.0.0/1 -> drop", 0.0);
    // The rule is on another line now, and goes on with its count.
    let third = wait(3, "any -> drop", second);
    assert_eq!(count(1, "any -> drop"), 0.0);
    router.0.signal("TERM");
    let summary = router.end();
    let rules = summary["rules"].as_array().unwrap();
    let line = |rule: &Value| rule["line"].as_u64().unwrap();
    assert_eq!(rules.iter().map(line).collect::<Vec<_>>(), [2, 3], "{summary:#}");
    assert!(rules[1]["packets"].as_f64().unwrap() >= third, "{summary:#}");
    let all: u64 = rules.iter().map(|rule| rule["packets"].as_u64().unwrap()).sum();
    assert_eq!(summary["reasons"]["policy"], all, "{summary:#}");
}

#[test]
fn metrics_count_packets_and_a_signal_ends_it() {
    let files = Files::new();
    let (table, hops) =
        (files.with("table.txt", "0.0.0.0/0 a\n"), files.with("hops.txt", "a port 1\n"));
    let hops_of = ["--table", &table, "--next-hops", &hops];
    let ports = ["--port", "memory", "--port", "memory,address=1.0.0.1/4"];
    let router = Router::start(&[&hops_of[..], &ports, &["--http", "127.0.0.1:0"]].concat());
    let http = router.0.hear("answering on http://");
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = metrics(&http);
        let value = |name: &str| -> f64 {
            let line = answer.lines().find(|line| line.starts_with(name));
            let line = line.unwrap_or_else(|| panic!("no {name}: {answer}"));
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let waiting = value("fibula_router_packets_total{reason=\"waiting\"}");
        let received =
            value("fibula_router_port_packets_total{port=\"memory:0\",direction=\"in\"}");
        assert_eq!(value("fibula_router_port_up{port=\"memory:1\"}"), 1.0);
        assert!(answer.contains("# TYPE fibula_router_latency_seconds summary\n"), "{answer}");
        assert!(answer.contains("fibula_generation{"), "{answer}");
        if waiting > 0.0 && received > 0.0 {
            break;
        }
        assert!(Instant::now() < until, "{answer}");
        thread::sleep(Duration::from_millis(20));
    }
    router.0.signal("TERM");
    let summary = router.end();
    let reasons = summary["reasons"].as_object().unwrap();
    let count = |name: &str| reasons[name].as_u64().unwrap();
    // Nobody is on that link: how many were given up, and how many still waited at the end, is chance.
    assert!(count("waiting") > 0 && count("forwarded_v4") == 0, "{summary:#}");
    assert!(summary["ports"][0]["in"]["packets"].as_u64().unwrap() > 0);
}
