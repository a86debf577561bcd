//! A server that also receives flows: they have the values of its table, as it changes.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use fibula_daemon::config::ServeConfig;
use fibula_daemon::{Serve, ServeOptions};
use serde_json::Value;

use crate::alarms::metric;
use crate::until;

/// The rows of all files in a folder.
fn rows(folder: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A port of UDP that nothing uses now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn flows_have_the_values_of_the_live_table() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, output) = (folder.path().join("lines"), folder.path().join("flows"));
    fs::write(&lines, crate::serve::announced("193.0.6.0/24")).unwrap();
    let port = free_port();
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n[[ris]]\npath = '{}'\nhold = '1d'\n\
         [flows]\nlisten = ['127.0.0.1:{port}']\noutput = '{}'\nformat = 'jsonl'\ntable = 'ris'\n\
         add = ['prefix', 'origin_as']\nrefresh = '100ms'\nrotate = '1s'\nallow = ['127.0.0.0/8']\n",
        lines.display(),
        output.display()
    );
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config)).unwrap();
    // NetFlow v5: from 192.0.2.1 to 193.0.6.139.
    let mut datagram = vec![0; 72];
    datagram[..4].copy_from_slice(&[0, 5, 0, 1]);
    datagram[24..32].copy_from_slice(&[192, 0, 2, 1, 193, 0, 6, 139]);
    let exporter = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0;
    let mut send = || {
        exporter.send_to(&datagram, ("127.0.0.1", port)).unwrap();
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
        sent
    };
    let found = until("a flow with values", || {
        send();
        rows(&output).into_iter().find(|row| row["dst_prefix"].is_string())
    });
    assert_eq!(
        (&found["dst_prefix"], &found["dst_origin_as"]),
        (&"193.0.6.0/24".into(), &3333.into())
    );
    assert_eq!(found["src_prefix"], Value::Null);
    let rows_written = || metric(&serve, "flow_rows_total", None);
    let all = send();
    until("all rows", || (rows_written() == all).then_some(()));
    assert_eq!(metric(&serve, "flow_running", None), 1);
    let dropped =
        ["flow_dropped_total", "flow_refused_total"].map(|name| metric(&serve, name, None));
    assert_eq!(dropped, [0, 0]);
    serve.stop().unwrap();
    // At the end, what was received is complete.
    assert_eq!(rows(&output).len() as u64, all);
}

#[test]
fn collectors_that_cannot_be() {
    for (settings, line, what) in [
        ("listen = []\noutput = 'x'\n", "", "listen names no address"),
        ("listen = ['2055']\noutput = 'x'\n", "line 4", "socket address"),
        ("listen = ['0.0.0.0:2055']\n", "line 3", "output"),
        ("listen = ['0.0.0.0:2055']\noutput = 'x'\nformat = 'csv'\n", "line 6", "parquet"),
        ("listen = ['0.0.0.0:2055']\noutput = 'x'\nallow = ['10.0.0.0/33']\n", "line 6", "33"),
        ("listen = ['0.0.0.0:2055']\noutput = 'x'\nrotate = '0'\n", "", "flows.rotate is 0"),
        ("listen = ['0.0.0.0:2055']\noutput = 'x'\npartition = 'year'\n", "line 6", "day or hour"),
    ] {
        let text = format!("[[fpm]]\nlisten = '127.0.0.1:0'\n[flows]\n{settings}");
        let error = ServeConfig::parse(&text, "test.toml").unwrap_err().to_string();
        assert!(error.contains(line) && error.contains(what), "{settings}: {error}");
    }
}
