//! `fibula flow` with real exporters beside real collectors: softflowd's flows come to nfcapd, nfacctd and ours,
//! nfreplay sends again what nfcapd has stored, and fprobe watches an interface. Debian's packages `softflowd`,
//! `nfdump`, `pmacct` and `fprobe` have the programs; without them the tests say so and do nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Files, execute};
use crate::exporters::{
    PATIENCE, Running, Sums, a_minute_ago, collected, free_port, have, roomy_socket, traffic,
    wait_for_port,
};

/// The command, while it collects.
pub struct Collecting {
    child: Child,
    pub address: SocketAddr,
    /// The rest of standard error.
    err: JoinHandle<Vec<String>>,
}

impl Collecting {
    /// Starts it in a folder, at a port that the system chooses unless the arguments have one.
    pub fn start(folder: &str, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fibula"))
            .current_dir(folder)
            .env("FIBULA_CONFIG", "")
            .args(["flow", "--listen", "127.0.0.1:0", "--json"])
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines
            .find_map(|line| line.strip_prefix("receiving at ")?.parse().ok())
            .expect("it says where it receives");
        let err = std::thread::spawn(move || lines.collect());
        Self { child, address, err }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Stops it, and gives the counts that it prints, and the lines before.
    pub fn stop(mut self) -> (Value, Vec<String>) {
        self.signal("TERM");
        let code = self.child.wait().unwrap().code();
        let mut err = self.err.join().unwrap();
        assert_eq!(code, Some(0), "{err:#?}");
        (serde_json::from_str(&err.pop().unwrap()).unwrap(), err)
    }
}

/// All files below a folder.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let all = entries.map(|entry| entry.unwrap().path());
    all.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

/// The rows of the files of JSON lines in a folder.
pub fn rows(folder: &str) -> Vec<Value> {
    let text: String =
        files_of(Path::new(folder)).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The text of a flow's member, and its number.
pub fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

pub fn int(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_default()
}

/// Packets and bytes by ends, ports and protocol.
type ByKey = BTreeMap<String, (u64, u64)>;

fn by_key(rows: &[Value]) -> ByKey {
    let mut all = ByKey::new();
    for row in rows {
        let (src, dst) = (text(row, "src"), text(row, "dst"));
        let [sport, dport, protocol] =
            ["src_port", "dst_port", "protocol"].map(|name| int(row, name));
        let sums = all.entry(format!("{src} {dst} {sport} {dport} {protocol}")).or_default();
        *sums = (sums.0 + int(row, "packets"), sums.1 + int(row, "bytes"));
    }
    all
}

/// The command of the page, with another port.
#[test]
fn the_page() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/flow.md"))
        .unwrap();
    let table = page.split("```\n").nth(1).unwrap();
    let command = page.lines().find(|line| line.starts_with("fibula flow ")).unwrap();
    let args = command.strip_prefix("fibula flow --listen 127.0.0.1:2055 ").unwrap();
    let row = page.lines().find(|line| line.starts_with("{\"time\"")).unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    let files = Files::new();
    files.with("networks.csv", table);
    let folder = files.path("");
    let collecting = Collecting::start(&folder, &args.split(' ').collect::<Vec<_>>());
    let mut datagram = vec![0; 72];
    datagram[..4].copy_from_slice(&[0, 5, 0, 1]);
    datagram[24..32].copy_from_slice(&[10, 1, 0, 7, 192, 0, 2, 7]);
    (datagram[43], datagram[47], datagram[62]) = (1, 100, 17);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&datagram, collecting.address).unwrap();
    let (counts, _) = collecting.stop();
    assert_eq!((int(&counts, "rows"), int(&counts, "matched")), (1, 2), "{counts}");
    let rows = rows(&files.path("flows"));
    for (name, value) in row.as_object().unwrap().iter().filter(|(name, _)| *name != "time") {
        assert_eq!(&rows[0][name], value, "{name}");
    }
}

/// Passes the datagrams of an exporter on to collectors, until it is silent.
pub fn pass_on(from: &UdpSocket, to: &[SocketAddr]) -> u64 {
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut buffer = vec![0; 65_536];
    let (mut wait, mut passed) = (PATIENCE, 0);
    loop {
        from.set_read_timeout(Some(wait)).unwrap();
        let Ok(len) = from.recv(&mut buffer) else { return passed };
        wait = Duration::from_secs(2);
        passed += 1;
        for collector in to {
            relay.send_to(&buffer[..len], collector).unwrap();
        }
    }
}

/// What nfacctd has summed up.
fn summed(file: &str) -> ByKey {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let [src, dst] = ["SRC_IP", "DST_IP"].map(place);
    let [sport, dport, protocol] = ["SRC_PORT", "DST_PORT", "PROTOCOL"].map(place);
    let [packets, bytes] = ["PACKETS", "BYTES"].map(place);
    let mut all = ByKey::new();
    for line in lines.filter(|line| line.len() == names.len()) {
        let protocol = match line[protocol] {
            "tcp" => "6",
            "udp" => "17",
            other => other,
        };
        let key = format!("{} {} {} {} {protocol}", line[src], line[dst], line[sport], line[dport]);
        let sums = all.entry(key).or_default();
        let number = |at: usize| line[at].parse::<u64>().unwrap();
        *sums = (sums.0 + number(packets), sums.1 + number(bytes));
    }
    all
}

#[test]
fn softflowd_to_nfcapd_nfacctd_and_again_by_nfreplay() {
    if !have(&["softflowd", "nfcapd", "nfdump", "nfreplay", "nfacctd"]) {
        return;
    }
    for version in ["5", "9", "10"] {
        let (traffic, expected, _) = traffic(version != "5", a_minute_ago());
        let files = Files::new();
        let input = files.with("traffic.pcap", traffic);
        files.with(
            "networks.csv",
            "prefix,site\n10.1.0.0/16,one\n192.0.2.0/24,two\n2001:db8::/32,six\n",
        );
        let folder = files.path("nfcapd");
        fs::create_dir(&folder).unwrap();
        let [nfcapd_port, nfacctd_port] = [free_port(), free_port()];
        let args = ["-w", &folder, "-p", &nfcapd_port.to_string(), "-b", "127.0.0.1", "-t", "3600"];
        let nfcapd = Running::start(&folder, "nfcapd", &args);
        let summary = files.path("nfacctd.csv");
        let settings = files.with(
            "nfacctd.conf",
            format!(
                "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {nfacctd_port}\nplugins: print[a]\n\
                 aggregate[a]: src_host,dst_host,src_port,dst_port,proto\nprint_output[a]: csv\n\
                 print_output_file[a]: {summary}\nprint_refresh_time[a]: 3600\n"
            ),
        );
        let nfacctd = Running::start(&files.path(""), "nfacctd", &["-f", &settings]);
        let ours = Collecting::start(
            &files.path(""),
            &["--table", "networks.csv", "--add", "site", "--format", "jsonl", "-o", "flows"],
        );
        wait_for_port(nfcapd_port);
        wait_for_port(nfacctd_port);
        let socket = roomy_socket();
        let target = socket.local_addr().unwrap().to_string();
        let args =
            ["-r", &input, "-v", version, "-n", &target, "-c", "ctl", "-p", "pid", "-d", "-6"];
        let exporter = Running::start(&files.path(""), "softflowd", &args);
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let passed = pass_on(&socket, &[ours.address, local(nfcapd_port), local(nfacctd_port)]);
        drop(exporter);
        nfcapd.end();
        // It writes its sums and ends its plugin.
        nfacctd.end_by("INT");
        let (counts, _) = ours.stop();
        assert_eq!((int(&counts, "datagrams"), int(&counts, "faults")), (passed, 0), "{counts}");
        let rows = rows(&files.path("flows"));
        let mut sums = Sums { flows: rows.len() as u64, ..Sums::default() };
        for row in &rows {
            sums.packets += int(row, "packets");
            sums.bytes += int(row, "bytes");
            assert_eq!(
                text(row, "dst_site"),
                if text(row, "dst").contains(':') { "six" } else { "two" }
            );
        }
        assert_eq!(sums, expected, "version {version}: {counts}");
        assert_eq!(collected(&folder).len(), rows.len(), "version {version}");
        assert_eq!(summed(&summary), by_key(&rows), "version {version}");

        // What nfcapd has stored, sent again, and sent on to another nfcapd.
        let last = files.path("last");
        fs::create_dir(&last).unwrap();
        let last_port = free_port();
        let args = ["-w", &last, "-p", &last_port.to_string(), "-b", "127.0.0.1", "-t", "3600"];
        let nfcapd = Running::start(&last, "nfcapd", &args);
        wait_for_port(last_port);
        let forward = format!("127.0.0.1:{last_port}");
        let again = Collecting::start(
            &files.path(""),
            &[
                "--table",
                "networks.csv",
                "--add",
                "site",
                "--format",
                "jsonl",
                "-o",
                "again",
                "--ipfix",
                &forward,
            ],
        );
        let port = again.address.port().to_string();
        let [stored] = &files_of(Path::new(&folder))[..] else { panic!("{folder}") };
        let replayed = Command::new("nfreplay")
            .args([
                "-r",
                stored.to_str().unwrap(),
                "-H",
                "127.0.0.1",
                "-p",
                &port,
                "-v",
                "9",
                "-d",
                "100",
            ])
            .output()
            .unwrap();
        assert!(replayed.status.success(), "{replayed:?}");
        let (counts, _) = again.stop();
        assert_eq!(int(&counts, "faults"), 0, "{counts}");
        assert_eq!(
            by_key(&self::rows(&files.path("again"))),
            by_key(&rows),
            "version {version}: {counts}"
        );
        nfcapd.end();
        // Without the times: softflowd's are older than itself, and nfreplay gives them to an exporter of its own.
        let plain = |folder: &str| {
            let ends = |flow: &String| flow.split(' ').skip(2).collect::<Vec<_>>().join(" ");
            let mut flows: Vec<_> = collected(folder).iter().map(ends).collect();
            flows.sort();
            flows
        };
        assert_eq!((plain(&last), int(&counts, "forwarded")), (plain(&folder), rows.len() as u64));
    }
}

/// fprobe on the loopback interface of a namespace of its own.
#[test]
fn fprobe_in_a_namespace() {
    if !have(&["fprobe", "unshare", "ip"]) {
        return;
    }
    let files = Files::new();
    let table = files.with("networks.csv", "prefix,site\n127.0.0.0/8,here\n");
    let script = format!(
        "ip link set lo up\n\
         '{}' flow --listen 127.0.0.1:2055 --json --table '{table}' --format jsonl -o flows --report 1s 2>err & ours=$!\n\
         until grep -q receiving err; do sleep 0.05; done\n\
         fprobe -i lo -l 2 -s 1 -d 1 -e 1 -f 'udp and dst port 9' 127.0.0.1:2055 &\n\
         sleep 1\n\
         for flow in $(seq 20); do echo x >/dev/udp/127.0.0.1/9; done\n\
         for wait in $(seq 100); do if grep -q '^[1-9].* datagrams' err; then break; fi; sleep 0.2; done\n\
         sleep 3\n\
         kill $ours; wait $ours\n",
        env!("CARGO_BIN_EXE_fibula")
    );
    let script = files.with("run.sh", script);
    // All processes end with the first one of their namespace.
    let args = ["--net", "--pid", "--fork", "--kill-child", "bash", "-e", &script];
    let output = Command::new("unshare").args(args).current_dir(files.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("Operation not permitted") {
        eprintln!("not root: fprobe is not tested");
        return;
    }
    let err = fs::read_to_string(files.path("err")).unwrap();
    assert!(output.status.success(), "{said}{err}");
    let rows = rows(&files.path("flows"));
    // Some of the system's ports may be used twice.
    let sums = by_key(&rows).into_values().fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
    assert_eq!(sums, (20, 600), "{said}{err}");
    assert!(
        rows.iter().all(|row| text(row, "src_site") == "here" && text(row, "export") == "netflow5")
    );
}

/// A table file that is replaced is used, a damaged one is not, and HUP opens it again.
#[test]
fn a_table_is_replaced() {
    let files = Files::new();
    let site = |site: &str| {
        let new = files.with("new.csv", format!("prefix,site\n10.1.0.0/16,{site}\n"));
        fs::rename(new, files.path("networks.csv")).unwrap();
    };
    site("old");
    let ours = Collecting::start(
        &files.path(""),
        &[
            "--table",
            "networks.csv",
            "--add",
            "site",
            "--format",
            "jsonl",
            "-o",
            "flows",
            "--rotate",
            "1s",
        ],
    );
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut datagram = vec![0; 72];
    datagram[..4].copy_from_slice(&[0, 5, 0, 1]);
    datagram[24..28].copy_from_slice(&[10, 1, 0, 7]);
    let wait_for = |site: &str| {
        let until = Instant::now() + PATIENCE;
        let is_there = || rows(&files.path("flows")).iter().any(|row| row["src_site"] == site);
        while !is_there() {
            socket.send_to(&datagram, ours.address).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            assert!(Instant::now() < until, "no {site}");
        }
    };
    wait_for("old");
    site("new");
    wait_for("new");
    fs::write(files.path("new.csv"), b"\x1f\x8b no table").unwrap();
    fs::rename(files.path("new.csv"), files.path("networks.csv")).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    site("last");
    ours.signal("HUP");
    wait_for("last");
    let (counts, lines) = ours.stop();
    assert_eq!(int(&counts, "rows"), int(&counts, "datagrams"));
    assert!(lines.iter().any(|line| line.starts_with("the new table is not used")), "{lines:#?}");
}

#[test]
fn wrong_usage() {
    let files = Files::new();
    let table = files.with("networks.csv", "prefix,port\n10.1.0.0/16,80\n");
    let out = files.path("out");
    let none = files.path("none");
    let base = ["flow", "--listen", "127.0.0.1:0", "--table", &table];
    for (args, sentence) in [
        (&["-o", "-", "--format", "parquet"][..], "parquet is written into files only"),
        (&["-o", &out], "src_port"),
        (&["-o", &out, "--add", "asn"], "asn"),
        (&["-o", &out, "--dated"], "is one table"),
        (&["-o", &out, "--rotate", "0"], "at least 1s"),
        (&["-o", &out, "--queue", "3GiB"], "below 2GiB"),
        (&["-o", &table, "--add", "prefix"], "not a directory"),
        (&["-o", &none, "--add", "prefix", "--templates", "/nowhere/templates"], "/nowhere/"),
        (&["-o", &out, "--metrics", &table, "--add", "prefix"], "input and output"),
        (&["-o", &out, "--templates", &table, "--add", "prefix"], "input and output"),
    ] {
        let result = execute(&[&base[..], args].concat());
        assert_eq!(result.code, 2, "{args:?}: {}", result.err);
        assert!(result.err.contains(sentence), "{args:?}: {}", result.err);
    }
    let without = execute(&["flow", "--table", &table, "-o", &out]);
    assert_eq!(without.code, 2);
    assert!(without.err.contains("--listen"), "{}", without.err);
    assert!(!Path::new(&out).exists());
}
