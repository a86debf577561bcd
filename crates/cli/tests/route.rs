//! `fibula route`: captures in, captures out, against what `fibula lookup` says and against routes that FRR sent; what
//! is wrong with flags and files; metrics and signals.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Files, cuts, done, said};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Where frames come from, and the router's first port.
const SENDER: [u8; 6] = [2, 0, 0, 0, 9, 9];

fn router(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port + 1]
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn sum(words: &[u8]) -> u32 {
    words.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

/// The checksum of an IPv4 header whose checksum field is zero.
fn checksum(header: &[u8]) -> [u8; 2] {
    let mut sum = sum(header);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A UDP packet to an address, with its number as payload, to the router's MAC address at a port.
fn frame(to: IpAddr, port: u8, ttl: u8, number: u32) -> Vec<u8> {
    let udp = [&[0x30, 0x39, 0, 9, 0, 12, 0, 0][..], &number.to_be_bytes()].concat();
    let (kind, mut packet) = match to {
        IpAddr::V4(to) => {
            let len = (20 + udp.len() as u16).to_be_bytes();
            let head = [0x45, 0, len[0], len[1], 0, 7, 0x40, 0, ttl, 17, 0, 0, 172, 16, 0, 9];
            let mut packet = [&head[..], &to.octets()].concat();
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum);
            ([8, 0], packet)
        }
        IpAddr::V6(to) => {
            let head = [0x60, 0, 0, 0, 0, udp.len() as u8, 17, ttl];
            let from = [0x24, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
            ([0x86, 0xdd], [&head[..], &from, &to.octets()].concat())
        }
    };
    packet.extend(udp);
    [&router(port)[..], &SENDER, &kind, &packet].concat()
}

/// What becomes of it at the next hop: addresses, TTL and checksum are others.
fn forwarded(frame: &[u8], by: u8, to: [u8; 6]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&router(by));
    if frame[12] == 8 {
        frame[22] -= 1;
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum);
    } else {
        frame[21] -= 1;
    }
    frame
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [1, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn captured(path: &str) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

const TABLE: &str = "\
10.0.0.0/8 a
10.1.0.0/16 b
10.1.2.0/24 drop
10.3.0.0/16 c
2001:db8::/32 b
2001:db8:1::/48 a
192.0.2.0/24 link
";

const HOPS: &str = "\
a via 198.51.100.2     # port 1, by its subnet
b via fe80::7 port 2
c local
link port 2
drop blackhole
";

/// The ports of the tests with this table: frames come in by port 0, `a` is behind port 1, `b` and a subnet behind port 2.
fn ports(files: &Files) -> [String; 3] {
    let path = |name| files.path(name);
    [
        format!("pcap:{}:{},address=172.16.0.1/24", path("in.pcap"), path("back.pcap")),
        format!(
            "pcap::{},address=198.51.100.1/24,neighbour=198.51.100.2=02:00:00:00:01:0a",
            path("out1.pcap")
        ),
        format!(
            "pcap::{},address=192.0.2.1/24,neighbour=fe80::7=02:00:00:00:01:0b,neighbour=192.0.2.5=02:00:00:00:01:0c",
            path("out2.pcap")
        ),
    ]
}

#[test]
fn captures_are_forwarded_by_what_lookup_says() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    let destinations = [
        "10.9.9.9",
        "10.1.9.9",
        "10.1.2.9",
        "10.3.0.1",
        "11.0.0.1",
        "192.0.2.5",
        "192.0.2.1",
        "2001:db8::1",
        "2001:db8:1::1",
        "2001:db9::1",
        "10.255.255.255",
        "10.1.0.0",
    ];
    let addresses = destinations.map(ip);
    let frames: Vec<Vec<u8>> =
        (0..).zip(addresses).map(|(number, to)| frame(to, 0, 64, number)).collect();
    files.with("in.pcap", capture(&frames));
    let ports = ports(&files);
    for shape in ["fused", "1-1-1"] {
        let mut args =
            vec!["route", "--table", &table, "--next-hops", &hops, "--json", "--shape", shape];
        ports.iter().for_each(|port| args.extend(["--port", port]));
        let summary: Value = serde_json::from_str(&done(&args).out).expect("JSON");
        // By what `fibula lookup` says of each destination.
        let mut lookup = vec!["lookup", "--table", &table, "--json"];
        lookup.extend(destinations);
        let found = said(&lookup).out;
        let (mut wanted, mut dropped) = ([vec![], vec![]], BTreeMap::<&str, u64>::new());
        for (found, frame) in found.lines().zip(&frames) {
            let found: Value = serde_json::from_str(found).expect("JSON");
            let values = found.as_object().unwrap();
            let value = values
                .values()
                .filter_map(Value::as_str)
                .find(|text| ["a", "b", "c", "drop", "link"].contains(text));
            let own = found["address"] == "192.0.2.1";
            match value {
                Some("a") => wanted[0].push(forwarded(frame, 1, [2, 0, 0, 0, 1, 10])),
                Some("b") => wanted[1].push(forwarded(frame, 2, [2, 0, 0, 0, 1, 11])),
                Some("link") if !own => wanted[1].push(forwarded(frame, 2, [2, 0, 0, 0, 1, 12])),
                Some("drop") => *dropped.entry("blackhole").or_default() += 1,
                Some("c" | "link") => *dropped.entry("host").or_default() += 1,
                _ => *dropped.entry("no_route").or_default() += 1,
            }
        }
        assert_eq!(captured(&files.path("out1.pcap")), wanted[0], "{shape}");
        assert_eq!(captured(&files.path("out2.pcap")), wanted[1], "{shape}");
        assert_eq!((wanted[0].len(), wanted[1].len()), (3, 4));
        for (reason, count) in dropped {
            assert_eq!(summary["reasons"][reason], count, "{summary:#}");
        }
        assert_eq!(summary["ports"][0]["in"]["packets"], frames.len());
        assert_eq!(summary["lost"]["no_host"], 2);
    }
}

/// A frame and what becomes of it, byte by byte, worked out by hand.
#[test]
fn a_frame_is_rewritten_as_by_hand() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    #[rustfmt::skip]
    let before = [
        2, 0, 0, 0, 0, 1,  2, 0, 0, 0, 9, 9,  8, 0,
        // 0x4500 + 0x0020 + 0x0007 + 0x4000 + 0x4011 + 0xac10 + 0x0009 + 0x0a09 + 0x0909 = 0x18463: 0x8464, its complement.
        0x45, 0, 0, 32, 0, 7, 0x40, 0, 64, 17, 0x7b, 0x9b, 172, 16, 0, 9, 10, 9, 9, 9,
        0x30, 0x39, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4,
    ];
    #[rustfmt::skip]
    let after = [
        2, 0, 0, 0, 1, 10,  2, 0, 0, 0, 0, 2,  8, 0,
        // One less in the upper byte of a word: 0x0100 more.
        0x45, 0, 0, 32, 0, 7, 0x40, 0, 63, 17, 0x7c, 0x9b, 172, 16, 0, 9, 10, 9, 9, 9,
        0x30, 0x39, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4,
    ];
    let expired = frame(ip("10.9.9.9"), 0, 1, 0);
    files.with("in.pcap", capture(&[before.to_vec(), expired]));
    let ports = ports(&files);
    let mut args = vec!["route", "--table", &table, "--next-hops", &hops];
    ports.iter().for_each(|port| args.extend(["--port", port]));
    let out = done(&args).out;
    assert_eq!(captured(&files.path("out1.pcap")), [after]);
    // Its sender hears from the router's address there that the other one has expired: ICMP 11, code 0.
    let [error] = &captured(&files.path("back.pcap"))[..] else { panic!("{out}") };
    assert_eq!((&error[..6], &error[6..12]), (&SENDER[..], &router(0)[..]));
    assert_eq!(
        (&error[26..30], &error[30..34], &error[34..36]),
        (&[172, 16, 0, 1][..], &[172, 16, 0, 9][..], &[11, 0][..])
    );
    assert!(out.contains("forwarded_v4  1\n") && out.contains("expired  1\n"), "{out}");
}

/// A router that runs, and its log.
struct Router {
    child: Child,
    log: Receiver<Value>,
}

impl Router {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fibula"))
            .env_remove("FIBULA_ISA")
            .args(["route", "--log", "json", "--json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let err = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let (send, log) = mpsc::channel();
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                let said = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if send.send(said).is_err() {
                    break;
                }
            }
        });
        Self { child, log }
    }

    /// Waits for a line of the log that begins so; gives its rest.
    fn hear(&self, begin: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let said = self.log.recv_timeout(left).unwrap_or_else(|e| panic!("no {begin:?}: {e}"));
            let text = said["message"].as_str().unwrap_or_else(|| panic!("no JSON: {said}"));
            if let Some(rest) = text.strip_prefix(begin) {
                return rest.to_owned();
            }
        }
    }

    /// Waits for its end; gives the summary.
    fn end(mut self) -> Value {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file(name: &str) -> Vec<u8> {
    let packed = fs::read(cuts().join("fpm").join(name)).unwrap();
    let mut content = Vec::new();
    lzma_rust2::XzReader::new(&packed[..], true).read_to_end(&mut content).unwrap();
    content
}

/// The bytes of a recorded connection until the kernel's table was written down.
fn loaded() -> Vec<u8> {
    let log = fs::read_to_string(cuts().join("fpm/small-nhg.fpm.tsv")).unwrap();
    let mut bytes = 0;
    for line in log.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            [_, "data", "1", count] => bytes += count.parse::<usize>().unwrap(),
            [_, "mark", _, "loaded"] => break,
            _ => {}
        }
    }
    let mut all = file("small-nhg.c1.fpm.xz");
    all.truncate(bytes);
    all
}

/// A route of the kernel's table: its first address, its length, and its next hops as gateway and device.
type Route = (IpAddr, u8, Vec<(Option<IpAddr>, String)>);

fn routes() -> Vec<Route> {
    let text = String::from_utf8(file("small.loaded.fib.xz")).unwrap();
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
    let listens = router.hear("fpm: listens on ");
    let mut zebra = TcpStream::connect(listens).unwrap();
    zebra.write_all(&loaded()).unwrap();
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

#[test]
fn metrics_count_packets_and_a_signal_ends_it() {
    let files = Files::new();
    let (table, hops) =
        (files.with("table.txt", "0.0.0.0/0 a\n"), files.with("hops.txt", "a port 1\n"));
    let hops_of = ["--table", &table, "--next-hops", &hops];
    let ports = ["--port", "memory", "--port", "memory,address=1.0.0.1/4"];
    let router = Router::start(&[&hops_of[..], &ports, &["--http", "127.0.0.1:0"]].concat());
    let http = router.hear("answering on http://");
    let until = Instant::now() + PATIENCE;
    loop {
        let mut stream = TcpStream::connect(&http).expect("it answers");
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
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
    let pid = router.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let summary = router.end();
    let reasons = summary["reasons"].as_object().unwrap();
    let count = |name: &str| reasons[name].as_u64().unwrap();
    // Nobody is on that link: how many were given up, and how many still waited at the end, is chance.
    assert!(count("waiting") > 0 && count("forwarded_v4") == 0, "{summary:#}");
    assert!(summary["ports"][0]["in"]["packets"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_wrong_with_flags_and_files_is_named() {
    let files = Files::new();
    let table = files.with("table.txt", TABLE);
    let bad_hops = files.with("bad.txt", "a via 198.51.100.2\nb past 7\n");
    let hops = files.with("hops.txt", HOPS);
    let bad_config = files
        .with("bad.toml", "[[fpm]]\nlisten = \"127.0.0.1:0\"\n[[port]]\nport = \"netmap:0\"\n");
    let (no_file, memory) = (files.path("none.pcap"), ["--port", "memory"]);
    let no_input = format!("pcap:{no_file}");
    let no_device = match cfg!(feature = "dpdk") {
        true => "net_nosuch0: finding the device and its driver",
        false => "--port dpdk:net_nosuch0: this fibula was built without DPDK",
    };
    for (args, what) in [
        (&["--port", "memory"][..], "there is nothing to forward packets by"),
        (&["--fpm"], "there is no port to forward packets by"),
        (
            &["--fpm", "--port", "memory", "--table", &table],
            "--table is a table that does not change",
        ),
        (&["--fpm", "--port", "memory", "--next-hops", &hops], "there is none"),
        (&["--table", &table, "--port", "ethernet:1"], "\"ethernet\" is no kind of port"),
        (&["--table", &table, "--port", "afxdp"], "afxdp:eth1"),
        (&["--table", &table, "--port", "memory", "--shape", "2"], "\"2\" is no shape"),
        (&["--table", &table, "--port", "memory", "--burst", "257"], "--burst 257"),
        (&["--table", &table, "--port", "memory"], "the table has no column next_hop"),
        (
            &["--table", &table, "--next-hops", &bad_hops, "--port", "memory"],
            "line 2: \"past\" is not via",
        ),
        (
            &["--table", &table, "--next-hops", &hops, "--port", "memory"],
            "line 2: there is no port 2",
        ),
        (&["--table", &table, "--next-hops", &hops, "--port", &no_input], &no_file),
        (&["--table", &table, "--port", "tap:a", "--port", "tap:a"], "--port tap:a is there twice"),
        (&["--config", &bad_config], "line 4, \"netmap\" is no kind of port"),
        (&["--table", &table, "--next-hops", &hops, "--port", "dpdk:net_nosuch0"], no_device),
        (
            &["--table", &table, "--port", "memory", "--eal", "--no-huge"],
            "--eal is for ports of DPDK",
        ),
        (&["--table", &files.path("none"), "--port", "memory"], "none"),
        (&["--table", &table, "--port", "memory", "--seconds=-1"], "no number of seconds"),
        (
            &[
                "--table",
                &table,
                "--next-hops",
                &files.with("x", "* port 0"),
                "--port",
                "memory",
                "--cores",
                "9999,1",
                "--shape",
                "1-1-1",
            ],
            "cores",
        ),
    ] {
        let said = said(&[&["route"][..], args].concat());
        assert_eq!(said.code, 2, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
    }
    let checked = done(&[&["route", "--check", "--kernel", "--http"][..], &memory].concat());
    let expected = "kernel: the kernel's forwarding tables, into table kernel\nport 0: memory\nanswers on 127.0.0.1:8080\n";
    assert_eq!(checked.out, expected);
}
