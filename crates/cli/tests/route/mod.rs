//! `fibula route`: captures in, captures out, against what `fibula lookup` says; what is wrong with flags and files.

mod frames;
#[cfg(target_os = "linux")]
mod interfaces;
mod live;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Files, done, execute};
use frames::{SENDER, capture, captured, forwarded, frame, ip, router};

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

/// The ports of the tests with this table: frames come in by port 0, `a` is behind port 1, `b` and a subnet behind
/// port 2.
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
fn captures_are_forwarded_as_lookup_answers() {
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
        let found = execute(&lookup).out;
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

/// What is whole is forwarded, the summary is there, and the exit code says that this was not all.
#[test]
fn a_capture_that_is_cut_off_is_an_error() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    let frames: Vec<Vec<u8>> = (0..3).map(|number| frame(ip("192.0.2.5"), 0, 64, number)).collect();
    let whole = capture(&frames);
    files.with("in.pcap", &whole[..whole.len() - 1]);
    let ports = ports(&files);
    let mut args = vec!["route", "--table", &table, "--next-hops", &hops, "--json"];
    ports.iter().for_each(|port| args.extend(["--port", port]));
    let cut = execute(&args);
    let what = "in.pcap: record 3 at byte ";
    assert!(cut.code == 2 && cut.err.contains("the file ends within a record"), "{}", cut.err);
    assert!(cut.err.contains(what) && !cut.err.contains("is tried again"), "{}", cut.err);
    let summary: Value = serde_json::from_str(&cut.out).expect("JSON");
    assert_eq!(summary["ports"][0]["in"]["packets"], 2, "{summary:#}");
    assert_eq!(captured(&files.path("out2.pcap")).len(), 2);
}

/// Rules of a file drop packets before the lookup; others go where they went.
#[test]
fn rules_drop_packets() {
    let files = Files::new();
    // A byte order mark belongs to no value.
    let table = files.with("table.txt", TABLE);
    let hops = files.with(
        "hops.txt",
        format!("\u{feff}link port 2\n{HOPS}").replacen("\nlink port 2\n", "\n", 1),
    );
    let destinations = ["10.1.9.9", "10.1.2.9", "192.0.2.5", "10.1.0.0"];
    let frames: Vec<Vec<u8>> =
        (0..).zip(destinations).map(|(number, to)| frame(ip(to), 0, 64, number)).collect();
    files.with("in.pcap", capture(&frames));
    let rules = files.with("rules.txt", "dst 10.1.0.0/16 -> drop\nany -> mark 3\n");
    let ports = ports(&files);
    let mut args = vec!["route", "--table", &table, "--next-hops", &hops, "--json"];
    ports.iter().for_each(|port| args.extend(["--port", port]));
    args.extend(["--rules", &rules]);
    let summary: Value = serde_json::from_str(&done(&args).out).expect("JSON");
    assert_eq!(summary["reasons"]["policy"], 3, "{summary:#}");
    let left = forwarded(&frames[2], 2, [2, 0, 0, 0, 1, 12]);
    assert_eq!(captured(&files.path("out2.pcap")), [left]);
    args.push("--check");
    assert!(done(&args).out.contains("rules: 2"));
    let saved = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n";
    files.with("rules.txt", saved);
    let checked = done(&args).out;
    assert!(checked.contains("rules: 1\n  rules of INPUT were left out\n"), "{checked}");
    for (text, what) in [
        ("# any -> drop\n", "rules.txt: it has no rules"),
        ("any -> drop\nany -> vrf blue\n", "line 2: --table is the only table"),
        ("any -> table 3\n", "line 1: tables have no numbers here"),
        ("any -> dorp\n", "line 1, column 8: "),
        ("10.0.0.0/8 dorp\n", "it was read as prefixes, by its first line"),
    ] {
        files.with("rules.txt", text);
        let result = execute(&args);
        assert_eq!(result.code, 2, "{}", result.err);
        assert!(result.err.contains(what), "{}", result.err);
    }
    let fast = ["route", "--fpm", "--port", "xdp:lo", "--rules", &rules, "--check"];
    assert!(execute(&fast).err.contains("does not know rules"));
}

/// A port that writes a capture does not overwrite what the router reads, however the file is called.
#[test]
fn a_capture_takes_the_place_of_no_input() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    let rules = files.with("rules.txt", "any -> drop\n");
    let frames = capture(&[frame(ip("192.0.2.5"), 0, 64, 1)]);
    let input = files.with("in.pcap", &frames);
    let port = format!("pcap:{input}:");
    for name in ["table.txt", "hops.txt", "rules.txt", "in.pcap"] {
        let before = std::fs::read(files.path(name)).unwrap();
        let link = files.path(&format!("link-{name}"));
        std::os::unix::fs::symlink(files.path(name), &link).unwrap();
        let out = format!("pcap::{link}");
        let tables = ["--table", &table, "--next-hops", &hops, "--rules", &rules];
        let ports = ["--port", &port, "--port", &out, "--port", "memory"];
        let result = execute(&[&["route"][..], &tables, &ports].concat());
        assert_eq!(result.code, 2, "{name}: {}{}", result.out, result.err);
        assert!(result.err.contains("input and output"), "{name}: {}", result.err);
        assert_eq!(std::fs::read(files.path(name)).unwrap(), before, "{name}");
    }
}

/// A capture of another link type ends the router, and what it sent before stays.
#[test]
fn a_capture_of_another_link_type_is_an_error() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    let mut bytes = capture(&[frame(ip("192.0.2.5"), 0, 64, 1), frame(ip("192.0.2.6"), 0, 64, 2)]);
    // LINKTYPE_RAW, in the byte order of the file.
    let raw = if bytes[0] == 0xd4 { [101, 0, 0, 0] } else { [0, 0, 0, 101] };
    bytes[20..24].copy_from_slice(&raw);
    let port = format!("pcap:{}:", files.with("in.pcap", bytes));
    let outs = ["a", "b"].map(|name| format!("pcap::{}", files.path(name)));
    let tables = ["route", "--table", &table, "--next-hops", &hops, "--seconds", "30"];
    let ports = ["--port", &port, "--port", &outs[0], "--port", &outs[1]];
    let result = execute(&[&tables[..], &ports].concat());
    assert_eq!(result.code, 2, "{}{}", result.out, result.err);
    assert!(result.err.contains("its link type is 101, and only Ethernet"), "{}", result.err);
}

/// A run that does not begin leaves an older capture as it was; one that does leaves nothing of it.
#[test]
fn an_older_capture_is_replaced_by_a_run() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    files.with("in.pcap", capture(&[frame(ip("192.0.2.5"), 0, 64, 1)]));
    let old = vec![7; 9000];
    let outputs = ["out1.pcap", "out2.pcap"].map(|name| files.with(name, &old));
    let run = |hops: &str| {
        let mut args = vec!["route", "--table", &table, "--next-hops", hops];
        let ports = ports(&files);
        ports.iter().for_each(|port| args.extend(["--port", port]));
        execute(&args)
    };
    assert_eq!(run(&files.path("none")).code, 2);
    assert!(outputs.iter().all(|output| std::fs::read(output).unwrap() == old));
    assert_eq!(run(&hops).code, 0);
    assert_eq!(outputs.map(|output| captured(&output).len()), [0, 1]);
}

/// A frame and what becomes of it, byte by byte, worked out by hand.
#[test]
fn a_frame_is_rewritten_as_by_hand() {
    let files = Files::new();
    let (table, hops) = (files.with("table.txt", TABLE), files.with("hops.txt", HOPS));
    #[rustfmt::skip]
    let before = [
        2, 0, 0, 0, 0, 1,  2, 0, 0, 0, 9, 9,  8, 0,
        // 0x4500 + 0x0020 + 0x0007 + 0x4000 + 0x4011 + 0xac10 + 0x0009 + 0x0a09 + 0x0909 = 0x18463: 0x8464, its
        // complement.
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
        (&["--fpm", "--port", "memory", "--next-hops", &hops], "which is missing"),
        (
            &["--fpm", "--port", "memory,vrf=fmp/100"],
            "no source feeds the table of vrf \"fmp/100\"",
        ),
        (&["--table", &table, "--port", "memory,vrf=fpm"], "vrf names a table of a source"),
        (&["--table", &table, "--port", "ethernet:1"], "\"ethernet\" is not a kind of port"),
        (&["--table", &table, "--port", "afxdp"], "afxdp:eth1"),
        (&["--table", &table, "--port", "memory", "--shape", "2"], "\"2\" is not a shape"),
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
        (
            &["--check", "--table", &table, "--next-hops", &hops, "--port", "memory"],
            "line 2: there is no port 2",
        ),
        (&["--check", "--table", &files.path("none"), "--port", "memory"], "none"),
        (&["--table", &table, "--next-hops", &hops, "--port", &no_input], &no_file),
        (&["--table", &table, "--port", "tap:a", "--port", "tap:a"], "--port tap:a occurs twice"),
        (&["--config", &bad_config], "line 4, \"netmap\" is not a kind of port"),
        (&["--table", &table, "--next-hops", &hops, "--port", "dpdk:net_nosuch0"], no_device),
        (
            &["--table", &table, "--port", "memory", "--eal", "--no-huge"],
            "--eal is for ports of DPDK",
        ),
        (&["--table", &files.path("none"), "--port", "memory"], "none"),
        (&["--table", &table, "--port", "memory", "--seconds=-1"], "is not a number of seconds"),
        (&["--kernel", "--port", "afxdp:e1", "--port", "afpacket:e1"], "are on the same interface"),
        (
            &["--kernel", "--port", "memory,interface=3", "--port", "memory,interface=3"],
            "give each its own",
        ),
        (&["--kernel", "--port", "afpacket:none"], "--port afpacket:none: No such device"),
        (&["--table", &table, "--next-hops", &no_file, "--port", "memory"], "--next-hops "),
        (&["--config", &no_file], "--config "),
        (
            &["--kernel", "--port", "memory", "--fpm", "eth1"],
            "\"eth1\" is not an address with a port",
        ),
        (
            &["--kernel", "--port", "memory", "--cores", "0,0", "--shape", "1-1-1"],
            "cores: 3 threads have 2 cores",
        ),
        (
            &["--kernel", "--port", "memory", "--cores", "9999,9999", "--shape", "fused:2"],
            "cores: there is no core 9999 for this process: it may use ",
        ),
        (
            &["--check", "--kernel", "--port", "memory", "--cores", "9999"],
            "cores: there is no core 9999 for this process: it may use ",
        ),
    ] {
        let result = execute(&[&["route"][..], args].concat());
        assert_eq!(result.code, 2, "{args:?}: {}{}", result.out, result.err);
        assert!(result.err.contains(what), "{args:?}: {}", result.err);
    }
    let checked = done(&[&["route", "--check", "--kernel", "--http"][..], &memory].concat());
    let expected = "kernel: the kernel's forwarding tables, into table kernel\nport 0: memory, forwards by kernel\nanswers on 127.0.0.1:8080\n";
    assert_eq!(checked.out, expected);
    let args =
        ["route", "--check", "--kernel", "--port", "memory", "--port", "memory,vrf=kernel/100"];
    let checked = done(&args).out;
    assert!(
        checked.ends_with(
            "port 0: memory, forwards by kernel\nport 1: memory, forwards by kernel/100\n"
        ),
        "{checked}"
    );
}
