//! `fibula flow` with a table for each VRF.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Files, execute};
use crate::exporters::PATIENCE;
use crate::flow::{Collecting, int, rows};

/// A message of IPFIX with sets.
fn message(sets: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = vec![0, 10, 0, 0, 0x65, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    for (id, body) in sets {
        out.extend([&id.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), body].concat());
    }
    let len = (out.len() as u16).to_be_bytes();
    out[2..4].copy_from_slice(&len);
    out
}

/// VRFs by name and number, one of them with another column, and a table that is replaced meanwhile.
#[test]
fn each_vrf_has_its_table() {
    let files = Files::new();
    files.with("networks.csv", "prefix,site\n10.1.0.0/16,main\n");
    files.with("green.csv", "prefix,owner\n10.1.0.0/16,us\n");
    let blue = |site: &str| {
        let new = files.with("new.csv", format!("prefix,site\n10.1.0.0/16,{site}\n"));
        fs::rename(new, files.path("blue.csv")).unwrap();
    };
    blue("old");
    let args = "--table networks.csv --vrf blue=blue.csv --vrf 7=green.csv --add prefix,site,owner --default site=none \
                --format jsonl -o flows --rotate 1s";
    let args: Vec<_> = args.split_whitespace().collect();
    let ours = Collecting::start(&files.path(""), &args);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Template 256 has the source and the ingress VRF; VRF 5 is called blue.
    let templates = message(&[
        (2, &[1, 0, 0, 2, 0, 8, 0, 4, 0, 234, 0, 4]),
        (3, &[1, 1, 0, 2, 0, 1, 0, 234, 0, 4, 0, 236, 0, 4]),
        (257, b"\0\0\0\x05blue"),
    ]);
    let flow = |vrf: u8| [10, 1, 0, 7, 0, 0, 0, vrf];
    let flows = message(&[(256, &[flow(5), flow(6), flow(7)].concat())]);
    let wait_for = |site: &str| {
        let until = Instant::now() + PATIENCE;
        while !rows(&files.path("flows")).iter().any(|row| row["src_site"] == site) {
            socket.send_to(&templates, ours.address).unwrap();
            socket.send_to(&flows, ours.address).unwrap();
            thread::sleep(Duration::from_millis(100));
            assert!(Instant::now() < until, "no {site}");
        }
    };
    wait_for("old");
    blue("new");
    wait_for("new");
    let (counts, _) = ours.stop();
    let rows = rows(&files.path("flows"));
    assert_eq!((int(&counts, "rows"), rows.len() % 3), (rows.len() as u64, 0), "{counts}");
    for (at, row) in rows.iter().enumerate() {
        let (vrf, site, owner) = match at % 3 {
            0 if row["src_site"] == "old" => (5, "old".into(), Value::Null),
            0 => (5, "new".into(), Value::Null),
            1 => (6, "main".into(), Value::Null),
            _ => (7, Value::Null, "us".into()),
        };
        let found = (&row["input_vrf"], &row["src_site"], &row["src_owner"], &row["src_prefix"]);
        assert_eq!(found, (&vrf.into(), &site, &owner, &"10.1.0.0/16".into()), "row {at}: {row}");
    }
}

#[test]
fn vrfs_that_cannot_be() {
    let files = Files::new();
    let table = files.with("networks.csv", "prefix,site\n10.1.0.0/16,main\n");
    let numbers = files.with("numbers.csv", "prefix,site\n10.1.0.0/16,7\n");
    let out = files.path("out");
    let (blue, number) = (format!("blue={table}"), format!("blue={numbers}"));
    let base = ["flow", "--listen", "127.0.0.1:0", "--table", &table, "-o", &out];
    for (args, sentence) in [
        (&["--vrf", "blue"][..], "NAME=TABLE"),
        (&["--vrf", &blue, "--vrf", &number], "two VRFs are called \"blue\""),
        (&["--vrf", "blue=/nowhere/blue.csv"], "/nowhere/blue.csv"),
        (&["--vrf", &blue, "--add", "asn"], "asn"),
        (&["--vrf", &number], "src_site as Utf8 and as UInt"),
        (&["--vrf", &blue, "--dated"], "--dated"),
    ] {
        let result = execute(&[&base[..], args].concat());
        assert_eq!(result.code, 2, "{args:?}: {}", result.err);
        assert!(result.err.contains(sentence), "{args:?}: {}", result.err);
    }
}
