//! Real exporters and a real collector: softflowd and pmacctd export the flows of a capture, nfcapd collects the same
//! datagrams, and the rows of `fibula annotate --flows-in` have the same flows with the same sums. Debian's packages
//! `softflowd`, `nfdump` and `pmacct` have the programs; without them the tests say so and do nothing.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_packet::capture;
use rustix::net::sockopt;

use crate::common::{Files, done};

/// How long a program may take to start, or to send its next datagram.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Whether all programs are there.
pub fn have(programs: &[&str]) -> bool {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/usr/local/sbin", "/usr/local/bin"];
    for program in programs {
        if !folders.iter().any(|folder| Path::new(folder).join(program).exists()) {
            eprintln!("{program} is not installed: its exports are not tested");
            return false;
        }
    }
    true
}

/// A program that is ended with the test.
pub struct Running(Child);

impl Running {
    /// Starts a program in a folder.
    pub fn start(folder: &str, program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().unwrap_or_else(|error| panic!("{program}: {error}")))
    }

    /// Asks the program to end, and waits until it has written its files.
    pub fn end(self) {
        self.end_by("TERM");
    }

    /// The same by another signal.
    pub fn end_by(mut self, signal: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let until = Instant::now() + PATIENCE;
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "a program does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // pmacctd ends its plugins, which are processes, if it is asked to end.
        let _ = Command::new("kill").arg(self.0.id().to_string()).stderr(Stdio::null()).status();
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the flows of a capture sum up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub flows: u64,
    pub packets: u64,
    pub bytes: u64,
}

/// A capture of raw IP with TCP and UDP flows between addresses of documentation; every fifth is IPv6 if `six`. Also
/// the sums of the flows, and a line for each packet. The first packets have the time `begin`.
pub fn traffic(six: bool, begin: u32) -> (Vec<u8>, Sums, Vec<String>) {
    let (mut packets, mut sums, mut lines) = (Vec::new(), Sums::default(), Vec::new());
    for flow in 0..300u32 {
        let protocol = if flow % 3 == 0 { 17 } else { 6 };
        let six = six && flow % 5 == 4;
        sums.flows += 1;
        for at in 0..1 + flow % 12 {
            let ports = [1024 + flow as u16, [53, 443, 80][flow as usize % 3]];
            let bytes = ports.map(u16::to_be_bytes).concat();
            let len = (flow * 37 + at * 101) % 900;
            let segment = match protocol {
                17 => [&bytes[..], &(8 + len as u16).to_be_bytes(), &[0, 0]].concat(),
                _ => [&bytes[..], &[0; 8], &[0x50, 0x10, 4, 0, 0, 0, 0, 0]].concat(),
            };
            let segment = [segment, vec![0; len as usize]].concat();
            let packet = ip(six, flow, protocol, &segment);
            let ends = match six {
                true => format!("2001:db8::{flow:x} 2001:db8::9"),
                false => format!("10.1.{}.{} 192.0.2.7", flow >> 8, flow & 255),
            };
            lines.push(format!("{ends} {} {} {protocol} {}", ports[0], ports[1], packet.len()));
            sums.packets += 1;
            sums.bytes += packet.len() as u64;
            packets.push((begin + flow / 10, at * 1000 + flow % 10, packet));
        }
    }
    packets.sort();
    let mut out = capture::header(101).to_vec();
    for (seconds, micros, packet) in packets {
        out.extend(capture::record(seconds, micros, packet.len() as u32));
        out.extend(packet);
    }
    (out, sums, lines)
}

/// A minute ago, in seconds since 1970: uptimes of exporters cannot say what was long ago.
pub fn a_minute_ago() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32 - 60
}

/// A packet around a segment.
fn ip(six: bool, flow: u32, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let len = segment.len() as u16;
    let flow = (flow as u16).to_be_bytes();
    if six {
        let begin = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let head = [&[0x60, 0, 0, 0][..], &len.to_be_bytes(), &[protocol, 64]].concat();
        return [&head[..], &begin, &flow, &begin, &[0, 9], segment].concat();
    }
    let head = [&[0x45, 0][..], &(20 + len).to_be_bytes(), &[0, 0, 0, 0, 64, protocol, 0, 0]];
    [&head.concat()[..], &[10, 1], &flow, &[192, 0, 2, 7], segment].concat()
}

/// A socket with room for all that an exporter sends at once: a busy machine may not run the test meanwhile.
pub fn roomy_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let room = 16 << 20;
    if sockopt::set_socket_recv_buffer_size_force(&socket, room).is_err() {
        // Without the privilege, the system's maximum counts.
        sockopt::set_socket_recv_buffer_size(&socket, room).unwrap();
    }
    socket
}

/// Receives what an exporter sends until it is silent for two seconds, and makes a capture of it. Each datagram is
/// passed on to a collector, if there is one.
fn receive(socket: &UdpSocket, collector: Option<u16>) -> Vec<u8> {
    let mut out = capture::header(101).to_vec();
    let to = socket.local_addr().unwrap().port();
    let mut buffer = vec![0; 65_536];
    let mut wait = PATIENCE;
    loop {
        socket.set_read_timeout(Some(wait)).unwrap();
        let Ok((len, from)) = socket.recv_from(&mut buffer) else { return out };
        wait = Duration::from_secs(2);
        let content = &buffer[..len];
        if let Some(port) = collector {
            socket.send_to(content, ("127.0.0.1", port)).unwrap();
        }
        let ports = [from.port(), to, 8 + len as u16].map(u16::to_be_bytes).concat();
        let udp = [&ports[..], &[0, 0], content].concat();
        let head =
            [&[0x45, 0][..], &(20 + udp.len() as u16).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0]];
        let packet = [&head.concat()[..], &[127, 0, 0, 1], &[127, 0, 0, 1], &udp].concat();
        out.extend(capture::record(1_700_000_000, 0, packet.len() as u32));
        out.extend(packet);
    }
}

/// A port that nothing uses now.
pub fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The rows of a capture with exports: flows as nfdump writes them below, and their sums.
fn rows(files: &Files, exports: &[u8]) -> (Vec<String>, Sums, serde_json::Value) {
    let capture = files.with("exports.pcap", exports);
    let table = files.with(
        "networks.csv",
        "prefix,site\n10.1.0.0/16,one\n192.0.2.0/24,two\n2001:db8::/32,six\n",
    );
    let output = files.path("flows.jsonl");
    let args = [
        "annotate",
        "--table",
        &table,
        "--flows-in",
        "--strict",
        "--json",
        &capture,
        "-o",
        &output,
    ];
    let summary: serde_json::Value = serde_json::from_str(&done(&args).err).unwrap();
    let (mut flows, mut sums) = (Vec::new(), Sums::default());
    for line in fs::read_to_string(&output).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let int = |name: &str| row[name].as_u64().unwrap_or_default();
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| (row[name].as_f64().unwrap_or_default() * 1000.0).round() as u64;
        assert_eq!(row["dst_site"], if text("dst").contains(':') { "six" } else { "two" });
        flows.push(format!(
            "{} {} {} {} {} {} {} {} {}",
            time("first"),
            time("last").wrapping_sub(time("first")),
            text("src"),
            text("dst"),
            int("src_port"),
            int("dst_port"),
            int("protocol"),
            int("packets"),
            int("bytes")
        ));
        sums.flows += 1;
        sums.packets += int("packets");
        sums.bytes += int("bytes");
    }
    flows.sort();
    (flows, sums, summary)
}

/// The flows that nfcapd has stored.
pub fn collected(folder: &str) -> Vec<String> {
    let format = "fmt:%tsr,%td,%sa,%da,%sp,%dp,%pr,%pkt,%byt";
    let output = Command::new("nfdump")
        .args(["-q", "-6", "-N", "-R", folder, "-o", format])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let millis = |text: &str| (text.trim().parse::<f64>().unwrap() * 1000.0).round() as u64;
    let mut flows: Vec<String> = text
        .lines()
        .filter(|line| line.matches(',').count() == 8)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            format!("{} {} {}", millis(cells[0]), millis(cells[1]), cells[2..].join(" "))
        })
        .collect();
    flows.sort();
    flows
}

#[test]
fn softflowd_beside_nfcapd() {
    if !have(&["softflowd", "nfcapd", "nfdump"]) {
        return;
    }
    for version in ["5", "9", "10"] {
        let begin = a_minute_ago();
        let (traffic, expected, _) = traffic(version != "5", begin);
        let files = Files::new();
        let input = files.with("traffic.pcap", traffic);
        let folder = files.path("collected");
        fs::create_dir(&folder).unwrap();
        let port = free_port();
        let args = ["-w", &folder, "-p", &port.to_string(), "-b", "127.0.0.1", "-t", "3600"];
        let collector = Running::start(&folder, "nfcapd", &args);
        wait_for_port(port);
        let socket = roomy_socket();
        let target = socket.local_addr().unwrap().to_string();
        let args =
            ["-r", &input, "-v", version, "-n", &target, "-c", "ctl", "-p", "pid", "-d", "-6"];
        let _exporter = Running::start(&files.path(""), "softflowd", &args);
        let exports = receive(&socket, Some(port));
        collector.end();
        let (ours, sums, summary) = rows(&files, &exports);
        let theirs = collected(&folder);
        assert_eq!(sums, expected, "version {version}: {summary}");
        assert_eq!(
            (theirs.len() as u64, ours.len()),
            (expected.flows, theirs.len()),
            "version {version}"
        );
        // The packets are older than the exporter, whose uptimes wrap: nfcapd 1.7 reads those of version 9 as times of
        // the next month. So only version 5 is compared with its times, all others with the packets'.
        let plain = |flows: &[String]| {
            let cut = |flow: &String| flow.split(' ').skip(2).collect::<Vec<_>>().join(" ");
            let mut flows: Vec<String> = flows.iter().map(cut).collect();
            flows.sort();
            flows
        };
        match version {
            "5" => assert_eq!(ours, theirs),
            _ => assert_eq!(plain(&ours), plain(&theirs), "version {version}"),
        }
        let begin = u64::from(begin) * 1000;
        for flow in &ours {
            let first: u64 = flow.split(' ').next().unwrap().parse().unwrap();
            // The header of version 9 has whole seconds.
            assert!((begin - 1500..begin + 31_500).contains(&first), "version {version}: {flow}");
        }
        let exports = &summary["exports"];
        assert_eq!((&exports["faults"], &exports["without_template"]), (&0.into(), &0.into()));
        // In IPFIX, softflowd 1.1.0 numbers a message by the records up to its end instead of its beginning.
        assert!(exports["lost"] == 0 || version == "10", "version {version}: {summary}");
    }
}

/// What a probe of pmacct sends for a capture.
fn probe(files: &Files, input: &str, plugin: &str, version: u32) -> Vec<u8> {
    let socket = roomy_socket();
    let target = socket.local_addr().unwrap();
    let settings = format!(
        "daemonize: false\npcap_savefile: {input}\nplugins: {plugin}[a]\n{plugin}_receiver: {target}\n\
         nfprobe_version: {version}\nsampling_rate: 1\n\
         aggregate[a]: src_host,dst_host,src_port,dst_port,proto,tos\n\
         nfprobe_timeouts: tcp=1:udp=1:general=1:maxlife=1:expint=1\n"
    );
    let settings = files.with("pmacctd.conf", settings);
    let _exporter = Running::start(&files.path(""), "pmacctd", &["-f", &settings]);
    receive(&socket, None)
}

#[test]
fn probes_of_pmacct() {
    if !have(&["pmacctd"]) {
        return;
    }
    let (traffic, expected, mut packets) = traffic(true, a_minute_ago());
    let files = Files::new();
    let input = files.with("traffic.pcap", &traffic);
    for version in [9, 10] {
        let (_, sums, summary) = rows(&files, &probe(&files, &input, "nfprobe", version));
        let (found, expected) = ((sums.packets, sums.bytes), (expected.packets, expected.bytes));
        assert_eq!(found, expected, "version {version}: {summary}");
        assert_eq!(summary["exports"]["lost"], 0, "{summary}");
    }
    // sFlow: every packet is sampled, but pmacctd ends before its plugin has read all. The length of a frame includes
    // Ethernet's checksum.
    let (flows, sums, summary) = rows(&files, &probe(&files, &input, "sfprobe", 9));
    assert_eq!(summary["exports"]["lost"], 0, "{summary}");
    assert!(sums.flows > 100 && sums.flows <= expected.packets, "{sums:?}");
    for flow in &flows {
        // No times, the ends, one packet, its length.
        let cells: Vec<&str> = flow.split(' ').collect();
        let [_, _, ends @ .., "1", bytes] = &cells[..] else { panic!("{flow}") };
        let packet = format!("{} {}", ends.join(" "), bytes.parse::<u64>().unwrap() - 4);
        let at = packets.iter().position(|other| *other == packet);
        packets.swap_remove(at.unwrap_or_else(|| panic!("{packet} was not sent")));
    }
}

/// Waits until a program listens on a port of UDP.
pub fn wait_for_port(port: u16) {
    let until = Instant::now() + PATIENCE;
    let line = format!(":{port:04X} ");
    while !fs::read_to_string("/proc/net/udp").unwrap().contains(&line) {
        assert!(Instant::now() < until, "nothing listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}
