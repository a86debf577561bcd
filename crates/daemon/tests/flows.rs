//! A server that also receives flows: they have the values of its table, as it changes.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use fibula_daemon::config::ServeConfig;
use fibula_daemon::{Serve, ServeOptions};
use serde_json::{Value, json};

use crate::alarms::{client, metric};
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
    let mut client = client(&serve);
    let mut top = |query: &str| {
        let answer = client.get(&format!("/v1/flows/top{query}"), &[]).unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, body)
    };
    let (status, by_as) = top("");
    assert_eq!(
        (status, &by_as["column"], &by_as["flows"]),
        (200, &"src_origin_as".into(), &all.into())
    );
    let columns = ["src_origin_as", "dst_origin_as", "src_prefix", "dst_prefix", "exporter"];
    assert_eq!(by_as["columns"], json!(columns));
    let counted = |answer: &Value, value: Value| {
        let top = answer["top"].as_array().unwrap();
        let of = |flow: &&Value| flow["value"] == value;
        top.iter().find(of).map_or(0, |flow| flow["flows"].as_u64().unwrap())
    };
    assert_eq!(counted(&by_as, Value::Null), all);
    let (_, by_prefix) = top("?by=dst_prefix&minutes=30");
    let matched = counted(&by_prefix, "193.0.6.0/24".into());
    assert!(matched > 0 && counted(&by_prefix, Value::Null) + matched == all, "{by_prefix}");
    let (_, none) = top("?by=exporter&limit=0");
    assert_eq!((&none["top"], &none["flows"]), (&json!([]), &all.into()));
    let (status, refused) = top("?by=dst_site");
    let sentence = refused["error"].as_str().unwrap();
    assert!(
        status == 404 && sentence.contains("dst_site") && sentence.contains("dst_prefix"),
        "{sentence}"
    );
    let (status, refused) = top("?minutes=31");
    assert!(status == 400 && refused["error"].as_str().unwrap().contains("30"), "{refused}");
    serve.stop().unwrap();
    // At the end, what was received is complete.
    assert_eq!(rows(&output).len() as u64, all);
}

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

/// Two tables have the same prefix with other origins: a flow has that of its VRF.
#[test]
fn flows_of_vrfs_have_the_values_of_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("flows");
    let sources: String = [("one", "3333"), ("two", "4444")]
        .into_iter()
        .map(|(name, origin)| {
            let path = folder.path().join(name);
            let line = crate::serve::announced("193.0.6.0/24").replace("3333", origin);
            fs::write(&path, line).unwrap();
            format!("[[ris]]\nname = '{name}'\npath = '{}'\nhold = '1d'\n", path.display())
        })
        .collect();
    let port = free_port();
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n{sources}\
         [flows]\nlisten = ['127.0.0.1:{port}']\noutput = '{}'\nformat = 'jsonl'\ntable = 'one'\n\
         add = ['origin_as']\nrefresh = '100ms'\nrotate = '1s'\n\
         [flows.vrfs]\nblue = 'two'\n7 = 'two'\n8 = 'three'\n",
        output.display()
    );
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config)).unwrap();
    let exporter = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Template 256 has the destination and the ingress VRF; VRF 5 is called blue.
    let templates = message(&[
        (2, &[1, 0, 0, 2, 0, 12, 0, 4, 0, 234, 0, 4]),
        (3, &[1, 1, 0, 2, 0, 1, 0, 234, 0, 4, 0, 236, 0, 4]),
        (257, b"\0\0\0\x05blue"),
    ]);
    let flow = |vrf: u8| [193, 0, 6, 139, 0, 0, 0, vrf];
    let flows = message(&[(256, &[flow(5), flow(6), flow(7), flow(8)].concat())]);
    let mut sent = 0;
    let origins = until("flows with the values of both tables", || {
        exporter.send_to(&templates, ("127.0.0.1", port)).unwrap();
        exporter.send_to(&flows, ("127.0.0.1", port)).unwrap();
        sent += 4;
        std::thread::sleep(Duration::from_millis(50));
        let rows = rows(&output);
        let origins = |vrf: u64| {
            let of_vrf = rows.iter().rev().filter(move |row| row["input_vrf"] == vrf);
            of_vrf.map(|row| row["dst_origin_as"].clone()).next()
        };
        let last = [5, 6, 7, 8].map(origins);
        let is_there = |origin: &Option<Value>| origin.as_ref().is_some_and(Value::is_number);
        last[..3].iter().all(is_there).then_some(last)
    });
    assert_eq!(
        origins,
        [Some(4444.into()), Some(3333.into()), Some(4444.into()), Some(Value::Null)]
    );
    serve.stop().unwrap();
    let rows = rows(&output);
    assert_eq!(rows.len(), sent);
    // Until its table was there, a flow had no value, and never one of another table.
    for row in &rows {
        let expected = match row["input_vrf"].as_u64() {
            Some(5 | 7) => 4444,
            Some(6) => 3333,
            _ => 0,
        };
        let origin = &row["dst_origin_as"];
        assert!(origin.is_null() || *origin == expected, "{row}");
    }
}

/// The own table answers before the live one does, and wins when both do; a file that is replaced is read again, and
/// one that cannot be read is not.
#[test]
fn own_tables_win() {
    let folder = tempfile::tempdir().unwrap();
    let [own, output] = ["own.csv", "flows"].map(|name| folder.path().join(name));
    let routes = TcpListener::bind("127.0.0.1:0").unwrap();
    let write = |text: &str| {
        let new = folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &own).unwrap();
    };
    write("prefix,site,origin_as\n192.0.2.0/24,lab,64512\n193.0.0.0/8,old,\n");
    let port = free_port();
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n[[ris]]\nconnect = '{}'\nhold = '1d'\n\
         [flows]\nlisten = ['127.0.0.1:{port}']\noutput = '{}'\nformat = 'jsonl'\ntable = 'ris'\n\
         own = ['{}']\nadd = ['origin_as', 'site']\nrefresh = '100ms'\nrotate = '1s'\n",
        routes.local_addr().unwrap(),
        output.display(),
        own.display()
    );
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config.clone())).unwrap();
    let mut datagram = vec![0; 72];
    datagram[..4].copy_from_slice(&[0, 5, 0, 1]);
    datagram[24..32].copy_from_slice(&[192, 0, 2, 1, 193, 0, 6, 139]);
    let exporter = UdpSocket::bind("127.0.0.1:0").unwrap();
    let last = |is_it: &dyn Fn(&Value) -> bool| {
        until("such a flow", || {
            exporter.send_to(&datagram, ("127.0.0.1", port)).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            rows(&output).into_iter().next_back().filter(|row| is_it(row))
        })
    };
    let ends = |row: &Value| {
        let names = ["src_site", "src_origin_as", "dst_site", "dst_origin_as"];
        json!(names.map(|name| &row[name]))
    };
    // There is no route yet.
    assert_eq!(ends(&last(&|_| true)), json!(["lab", 64512, "old", null]));
    let (mut feed, _) = routes.accept().unwrap();
    feed.write_all(crate::serve::announced("193.0.6.0/24").as_bytes()).unwrap();
    let found = last(&|row| row["dst_origin_as"] == 3333);
    assert_eq!(ends(&found), json!(["lab", 64512, "old", 3333]));
    write("prefix,site\n193.0.0.0/33,bad\n");
    write("prefix,site\n193.0.0.0/8,new\n");
    let found = last(&|row| row["dst_site"] == "new");
    assert_eq!(ends(&found), json!([null, null, "new", 3333]));
    write("");
    assert!(matches!(Serve::check(&config), Err(error) if error.to_string().contains("own.csv")));
    let other = folder.path().join("numbers.csv");
    fs::write(&other, "prefix,site\n10.0.0.0/8,7\n").unwrap();
    write("prefix,site\n193.0.0.0/8,newest\n10.0.0.0/33,bad\n");
    let mut two = config.clone();
    two.flows.as_mut().unwrap().own.push(other.display().to_string());
    let error = Serve::check(&two).unwrap_err().to_string();
    assert!(error.contains("flows.own") && error.contains("src_site"), "{error}");
    last(&|row| row["dst_site"] == "newest");
    // A file that does not fit the live table does not keep it from being followed.
    write("prefix,origin_as\n193.0.0.0/8,text\n");
    std::thread::sleep(Duration::from_secs(3));
    let line = crate::serve::announced("193.0.6.0/24").replace("3333", "4444");
    feed.write_all(line.as_bytes()).unwrap();
    let found = last(&|row| row["dst_origin_as"] == 4444);
    assert_eq!(ends(&found), json!([null, null, "newest", 4444]));
    write("");
    // Three looks later, the old table is still there.
    std::thread::sleep(Duration::from_secs(3));
    last(&|row| row["dst_site"] == "newest");
    serve.stop().unwrap();
    for row in rows(&output) {
        let site = row["dst_site"].as_str().unwrap();
        assert!(["old", "new", "newest"].contains(&site), "{row}");
    }
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
        ("listen = ['0.0.0.0:2055']\noutput = 'x'\nvrfs = ['blue']\n", "line 6", "map"),
        (
            "listen = ['0.0.0.0:2055']\noutput = 'x'\ntop = ['1','2','3','4','5','6','7','8','9']\n",
            "",
            "top names 9 columns; at most 8",
        ),
    ] {
        let text = format!("[[fpm]]\nlisten = '127.0.0.1:0'\n[flows]\n{settings}");
        let error = ServeConfig::parse(&text, "test.toml").unwrap_err().to_string();
        assert!(error.contains(line) && error.contains(what), "{settings}: {error}");
    }
}
