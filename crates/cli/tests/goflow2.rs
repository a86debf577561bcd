//! `fibula flow` beside goflow2: softflowd's datagrams come to both, and their flows have the same fields. goflow2 is
//! named by `FIBULA_GOFLOW2` or lies where programs do; `./dev test --all` compiles it. Debian's package `softflowd`
//! has the exporter. Without them the test says so and does nothing.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Files;
use crate::exporters::{
    PATIENCE, Running, Sums, a_minute_ago, free_port, have, roomy_socket, traffic, wait_for_port,
};
use crate::flow::{Collecting, int, pass_on, rows, text};

/// A flow by what both say of it: the protocol of its export, its ends, and its counters.
type Flow = (String, [String; 2], [u64; 7]);

/// What it has of a row of ours.
fn of_ours(row: &Value) -> Flow {
    let numbers = ["src_port", "dst_port", "protocol", "packets", "bytes", "tcp_flags", "tos"];
    let ends = ["src", "dst"].map(|name| text(row, name));
    (text(row, "export"), ends, numbers.map(|name| int(row, name)))
}

/// The same of an object of goflow2.
fn of_goflow2(flow: &Value) -> Flow {
    let export = match flow["type"].as_str() {
        Some("NETFLOW_V5") => "netflow5",
        Some("NETFLOW_V9") => "netflow9",
        Some("IPFIX") => "ipfix",
        other => panic!("{other:?}"),
    };
    let protocol = match flow["proto"].as_str() {
        Some("TCP") => 6,
        Some("UDP") => 17,
        other => panic!("{other:?}"),
    };
    let ends = ["src_addr", "dst_addr"].map(|name| text(flow, name));
    let [source, destination, packets, bytes, flags, tos] =
        ["src_port", "dst_port", "packets", "bytes", "tcp_flags", "ip_tos"]
            .map(|name| int(flow, name));
    (export.to_owned(), ends, [source, destination, protocol, packets, bytes, flags, tos])
}

/// The lines of a file, when it has so many.
fn lines(path: &str, count: usize) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count || Instant::now() > until {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn softflowd_to_goflow2() {
    let named = env::var("FIBULA_GOFLOW2").ok();
    if !have(&["softflowd"]) || named.is_none() && !have(&["goflow2"]) {
        return;
    }
    let goflow2 = named.unwrap_or_else(|| "goflow2".to_owned());
    for version in ["5", "9", "10"] {
        let (traffic, expected, _) = traffic(version != "5", a_minute_ago());
        let files = Files::new();
        let input = files.with("traffic.pcap", traffic);
        files.with("networks.csv", "prefix,site\n10.1.0.0/16,one\n");
        let (port, stored) = (free_port(), files.path("goflow2.json"));
        // With several workers, records may overtake their template.
        let listen = format!("netflow://127.0.0.1:{port}?workers=1");
        let args = ["-addr", "127.0.0.1:0", "-listen", &listen, "-transport.file", &stored];
        let theirs = Running::start(&files.path(""), &goflow2, &args);
        let args = ["--table", "networks.csv", "--add", "site", "--format", "jsonl", "-o", "flows"];
        let ours = Collecting::start(&files.path(""), &args);
        wait_for_port(port);
        let socket = roomy_socket();
        let target = socket.local_addr().unwrap().to_string();
        let args =
            ["-r", &input, "-v", version, "-n", &target, "-c", "ctl", "-p", "pid", "-d", "-6"];
        let exporter = Running::start(&files.path(""), "softflowd", &args);
        let passed = pass_on(&socket, &[ours.address, SocketAddr::from(([127, 0, 0, 1], port))]);
        drop(exporter);
        let (counts, _) = ours.stop();
        assert_eq!((int(&counts, "datagrams"), int(&counts, "faults")), (passed, 0), "{counts}");
        let ours = rows(&files.path("flows"));
        let found = lines(&stored, ours.len());
        theirs.end();
        let mut sums = Sums { flows: ours.len() as u64, ..Sums::default() };
        for row in &ours {
            sums.packets += int(row, "packets");
            sums.bytes += int(row, "bytes");
        }
        assert_eq!(sums, expected, "version {version}: {counts}");
        let [mut ours, mut theirs] = [
            ours.iter().map(of_ours).collect::<Vec<_>>(),
            found.iter().map(of_goflow2).collect::<Vec<_>>(),
        ];
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "version {version}");
    }
}
