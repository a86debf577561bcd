//! `fibula flow` with a table for each VRF, and with own tables.

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

/// Sends datagrams again and again, until a flow in the folder `flows` has this site.
fn send_until(files: &Files, ours: &Collecting, datagrams: &[&[u8]], site: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let until = Instant::now() + PATIENCE;
    while !rows(&files.path("flows")).iter().any(|row| row["src_site"] == site) {
        for datagram in datagrams {
            socket.send_to(datagram, ours.address).unwrap();
        }
        thread::sleep(Duration::from_millis(100));
        assert!(Instant::now() < until, "no {site}");
    }
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
    // Template 256 has the source and the ingress VRF; VRF 5 is called blue.
    let templates = message(&[
        (2, &[1, 0, 0, 2, 0, 8, 0, 4, 0, 234, 0, 4]),
        (3, &[1, 1, 0, 2, 0, 1, 0, 234, 0, 4, 0, 236, 0, 4]),
        (257, b"\0\0\0\x05blue"),
    ]);
    let flow = |vrf: u8| [10, 1, 0, 7, 0, 0, 0, vrf];
    let flows = message(&[(256, &[flow(5), flow(6), flow(7)].concat())]);
    let wait_for = |site: &str| send_until(&files, &ours, &[&templates, &flows], site);
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

/// Own tables win, whatever the VRF is, and are replaced meanwhile; the default is that of the last table.
#[test]
fn own_tables_win() {
    let files = Files::new();
    files.with("networks.csv", "prefix,site\n10.1.0.7/32,main\n");
    files.with("blue.csv", "prefix,site\n10.1.0.0/16,blue\n");
    files.with("owners.csv", "prefix,owner,site\n10.1.0.9/32,us,\n");
    let own = |site: &str| {
        let new = files.with("new.csv", format!("prefix,site\n10.0.0.0/8,{site}\n10.1.0.8/32,\n"));
        fs::rename(new, files.path("own.csv")).unwrap();
    };
    own("old");
    let args = "--table networks.csv --vrf 7=blue.csv --own owners.csv --own own.csv --add prefix,site,owner \
                --default site=none,owner=nobody --format jsonl -o flows --rotate 1s";
    let args: Vec<_> = args.split_whitespace().collect();
    let ours = Collecting::start(&files.path(""), &args);
    let templates = message(&[(2, &[1, 0, 0, 2, 0, 8, 0, 4, 0, 234, 0, 4])]);
    let flow = |from: [u8; 4], vrf: u8| [&from[..], &[0, 0, 0, vrf]].concat();
    let flows = [
        (flow([10, 1, 0, 7], 0), "own", "10.0.0.0/8", "nobody"),
        (flow([10, 1, 0, 7], 7), "own", "10.0.0.0/8", "nobody"),
        // Own prefixes without a value for the site: the next table has one, and here none.
        (flow([10, 1, 0, 8], 7), "blue", "10.1.0.8/32", "nobody"),
        (flow([10, 1, 0, 8], 0), "none", "10.1.0.8/32", "nobody"),
        (flow([10, 1, 0, 9], 7), "own", "10.1.0.9/32", "us"),
        (flow([192, 0, 2, 1], 0), "none", "", "nobody"),
    ];
    let sent: Vec<u8> = flows.iter().flat_map(|(flow, ..)| flow.clone()).collect();
    let wait_for =
        |site: &str| send_until(&files, &ours, &[&templates, &message(&[(256, &sent)])], site);
    wait_for("old");
    own("new");
    wait_for("new");
    let (counts, _) = ours.stop();
    let rows = rows(&files.path("flows"));
    assert_eq!((int(&counts, "rows"), rows.len() % 6), (rows.len() as u64, 0), "{counts}");
    assert_eq!(int(&counts, "matched"), rows.len() as u64 / 6 * 5, "{counts}");
    for block in rows.chunks(6) {
        let own = &block[0]["src_site"];
        assert!(own == "old" || own == "new", "{}", block[0]);
        for (row, (_, site, prefix, owner)) in block.iter().zip(&flows) {
            let site = if *site == "own" { own.clone() } else { (*site).into() };
            let prefix = if prefix.is_empty() { Value::Null } else { (*prefix).into() };
            let found = [&row["src_site"], &row["src_prefix"], &row["src_owner"]];
            assert_eq!(found, [&site, &prefix, &(*owner).into()], "{row}");
        }
    }
}

/// `fibula serve --check` reads own tables, and says what is damaged in them.
#[test]
fn own_tables_are_checked() {
    let files = Files::new();
    let own = files.with("own.csv", "prefix,site\n10.0.0.0/33,bad\n10.0.0.0/8,lab\n");
    let text = format!(
        "[[fpm]]\nlisten = '127.0.0.1:0'\n[flows]\nlisten = ['127.0.0.1:0']\noutput = 'flows'\nown = ['{own}']\n"
    );
    let config = files.with("serve.toml", text);
    let checked = execute(&["serve", "--config", &config, "--check"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    assert!(checked.out.contains(&format!("flows have the values of {own}")), "{}", checked.out);
    assert!(checked.err.contains("own.csv: record 2"), "{}", checked.err);
    files.with("own.csv", "");
    let checked = execute(&["serve", "--config", &config, "--check"]);
    assert_eq!(checked.code, 2, "{}", checked.err);
    assert!(checked.err.contains("own.csv"), "{}", checked.err);
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
        (&["--own", "/nowhere/own.csv"], "/nowhere/own.csv"),
        (&["--own", &numbers], "src_site as UInt"),
        (&["--own", &table, "--add", "asn"], "asn"),
        (&["--own", &table, "--at", "2024-05-01"], "--at"),
    ] {
        let result = execute(&[&base[..], args].concat());
        assert_eq!(result.code, 2, "{args:?}: {}", result.err);
        assert!(result.err.contains(sentence), "{args:?}: {}", result.err);
    }
}
