//! Interfaces that come and go under a router that runs: each test builds two hosts and the router between them, in
//! namespaces of their own.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::daemon::Daemon;

/// How long something that must happen may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs an ignored test of this binary in a network namespace that nothing else is in.
#[track_caller]
pub fn inside(test: &str) {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--"]).arg(env::current_exe().unwrap());
    let Ok(run) = unshare.args(["--exact", test, "--ignored", "--nocapture"]).output() else {
        return println!("SKIPPED: there is no unshare");
    };
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    if errors.contains("Operation not permitted") && !said.contains("running 1 test") {
        return println!("SKIPPED: this user may not make a network namespace");
    }
    assert!(run.status.success() && said.contains("running 1 test"), "{said}\n{errors}");
    said.lines().filter(|line| line.contains("SKIPPED")).for_each(|line| println!("{line}"));
}

#[track_caller]
fn run(command: &str) {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A process that is killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace, which a process holds.
pub struct Host(Running);

impl Host {
    fn new() -> Self {
        let child = Command::new("unshare").args(["--net", "sleep", "600"]).spawn().unwrap();
        let pid = child.id();
        let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let began = Instant::now();
        while of(&pid.to_string()).is_none_or(|theirs| Some(theirs) == of("self")) {
            assert!(began.elapsed() < LIMIT);
            thread::sleep(Duration::from_millis(1));
        }
        let host = Self(Running(child));
        host.run("ip link set lo up");
        host
    }

    fn enter(&self) -> String {
        format!("nsenter --net=/proc/{}/ns/net", self.0.0.id())
    }

    #[track_caller]
    pub fn run(&self, command: &str) {
        run(&format!("{} {command}", self.enter()));
    }

    /// Starts a test of this binary in it.
    fn start(&self, test: &str) -> Running {
        let enter = self.enter();
        let mut words = enter.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(env::current_exe().unwrap()).args(["--exact", test, "--ignored"]);
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// Whether its packets come to the other host, and answers back.
    #[track_caller]
    fn talks(&self, when: &str) {
        let status = self.start("route::interfaces::asks").0.wait().unwrap();
        assert!(status.success(), "no answers: {when}");
    }
}

/// Two hosts, each on a link of the router, whose namespace the test is in.
pub struct Town {
    pub hosts: [Host; 2],
}

impl Town {
    pub fn new() -> Self {
        for setting in [
            "net.ipv4.ip_forward=0",
            "net.ipv6.conf.default.disable_ipv6=1",
            // Hosts hear of other MAC addresses of the router.
            "net.ipv4.conf.default.arp_notify=1",
        ] {
            run(&format!("sysctl -qw {setting}"));
        }
        run("ip link set lo up");
        let town = Self { hosts: [Host::new(), Host::new()] };
        town.link(1);
        town.link(2);
        town
    }

    /// Makes the link of the first or the second host.
    fn link(&self, number: usize) {
        let host = &self.hosts[number - 1];
        let (queues, pid) = ("numtxqueues 4 numrxqueues 4", host.0.0.id());
        let peer = format!("peer name h{number} {queues} netns {pid}");
        run(&format!("ip link add r{number} {queues} type veth {peer}"));
        host.run(&format!("ip address add 10.{number}.0.2/24 dev h{number}"));
        run(&format!("ip address add 10.{number}.0.1/24 dev r{number}"));
        run(&format!("ip link set r{number} up"));
        self.connect(number);
    }

    fn connect(&self, number: usize) {
        self.hosts[number - 1].run(&format!("ip link set h{number} up"));
        self.hosts[number - 1].run(&format!("ip route replace default via 10.{number}.0.1"));
    }
}

/// The status of an answer.
fn status(http: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(http).expect("it answers");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[track_caller]
fn until_ready(http: &str, wanted: bool) {
    let began = Instant::now();
    while (status(http, "/readyz") == 200) != wanted {
        assert!(began.elapsed() < LIMIT, "ready: {}", !wanted);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Answers each datagram.
#[test]
#[ignore = "run by the tests of this file"]
fn answers() {
    let socket = UdpSocket::bind("0.0.0.0:7777").unwrap();
    let mut buffer = [0; 2048];
    while let Ok((len, from)) = socket.recv_from(&mut buffer) {
        // The way back may be missing at the moment.
        let _ = socket.send_to(&buffer[..len], from);
    }
}

/// Sends until there are twenty answers in a row.
#[test]
#[ignore = "run by the tests of this file"]
fn asks() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (began, mut answered, mut number) = (Instant::now(), 0, 0_u32);
    while answered < 20 {
        assert!(began.elapsed() < LIMIT, "{number} sent, {answered} answers in a row");
        number += 1;
        let sent = socket.send_to(&number.to_be_bytes(), "10.2.0.2:7777");
        // Answers to earlier ones may be late.
        let mut buffer = [0; 64];
        let mut is_answered = false;
        while sent.is_ok()
            && !is_answered
            && let Ok(len) = socket.recv(&mut buffer)
        {
            is_answered = buffer[..len] == number.to_be_bytes();
        }
        answered = if is_answered { answered + 1 } else { 0 };
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn packet_sockets_find_their_interface_again() {
    inside("route::interfaces::in_it_packet_sockets_find_their_interface_again");
}

#[test]
#[ignore = "run by packet_sockets_find_their_interface_again"]
fn in_it_packet_sockets_find_their_interface_again() {
    find_their_interface_again("afpacket");
}

#[test]
fn xdp_sockets_find_their_interface_again() {
    inside("route::interfaces::in_it_xdp_sockets_find_their_interface_again");
}

#[test]
#[ignore = "run by xdp_sockets_find_their_interface_again"]
fn in_it_xdp_sockets_find_their_interface_again() {
    find_their_interface_again("afxdp");
}

#[test]
fn fast_paths_find_their_interface_again() {
    inside("route::interfaces::in_it_fast_paths_find_their_interface_again");
}

#[test]
#[ignore = "run by fast_paths_find_their_interface_again"]
fn in_it_fast_paths_find_their_interface_again() {
    find_their_interface_again("xdp");
}

fn find_their_interface_again(kind: &str) {
    let town = Town::new();
    let [here, there] = &town.hosts;
    let _answers = there.start("route::interfaces::answers");
    let ports = [1, 2].map(|number| format!("{kind}:r{number}"));
    let args = ["--port", &ports[0], "--port", &ports[1], "--http", "127.0.0.1:0"];
    let router = Daemon::start(&[&["route", "--json", "--kernel"], &args[..]].concat());
    let http = router.hear("answering on http://");
    let (up, down) = (format!("port {} is up", ports[1]), format!("port {} is down: ", ports[1]));
    router.hear(&up);
    here.talks("at first");
    until_ready(&http, true);

    run("ip link del r2");
    assert!(router.hear(&down).contains("was removed"));
    assert_eq!(status(&http, "/readyz"), 503);
    thread::sleep(Duration::from_millis(1500));
    town.link(2);
    let before = router.hear_until(&up);
    here.talks("removed and added again");
    until_ready(&http, true);
    // One line for the port that is opened, and none about failures while it was not there.
    let about: Vec<_> =
        before.iter().filter(|line| line.contains("r2") || line.contains("port 1")).collect();
    assert!(about.len() == 1 && about[0].contains("opened anew"), "{before:#?}");

    run("ip link del r2");
    town.link(2);
    thread::sleep(Duration::from_millis(3));
    run("ip link set r2 address 02:00:00:00:0b:01");
    here.talks("removed, added, and another MAC address 3 ms later");
    run("ip link set r2 address 02:00:00:00:0b:02");
    here.talks("another MAC address");

    run("ip link set r2 down");
    run("ip link set r2 name wan");
    run("ip link set wan up");
    here.talks("renamed");
    run("ip link del wan");
    town.link(2);
    here.talks("removed under its other name, and added");

    run("ip link set r2 mtu 1400");
    there.run("ip link set h2 mtu 1400");
    here.talks("another MTU");

    for _ in 0..2 {
        there.run("ip link set h2 down");
        until_ready(&http, false);
        town.connect(2);
        here.talks("down and up");
    }
    let queues = Command::new("ethtool").args(["-L", "r2", "rx", "2", "tx", "2"]).output();
    match queues {
        Ok(output) if output.status.success() => here.talks("another number of queues"),
        _ => println!("SKIPPED: ethtool -L is not there, or the interface does not take it"),
    }
    let queues = Command::new("ethtool").args(["-L", "r2", "rx", "4", "tx", "4"]).output();
    if queues.is_ok_and(|output| output.status.success()) {
        here.talks("more queues");
    }
    drivers_reset(&town);
    until_ready(&http, true);
    router.signal("TERM");
    let mut router = router;
    let (out, code) = router.end();
    assert_eq!(code, Some(0), "{out}");
}

/// Resets the driver under a port, changes its rings and its offloads. Where the driver does not know these commands,
/// as virtual ones do not, the test does with `ip` what others do then: they stop the interface and open it again, its
/// carrier goes and comes, several times within milliseconds.
fn drivers_reset(town: &Town) {
    let [here, there] = &town.hosts;
    for command in [
        "ethtool -r r2",
        "ethtool -G r2 rx 256 tx 256",
        "ethtool -K r2 gro on",
        "ethtool -K r2 gro off",
        "ethtool -K r2 tx off",
        "ethtool -K r2 tx on",
    ] {
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap()).args(words).output();
        match output {
            Ok(output) if output.status.success() => here.talks(command),
            _ => println!("SKIPPED: {command} is not there, or the interface does not take it"),
        }
    }
    for pause in [0, 1, 20] {
        for _ in 0..5 {
            run("ip link set r2 down");
            thread::sleep(Duration::from_millis(pause));
            run("ip link set r2 up");
            thread::sleep(Duration::from_millis(pause));
        }
        here.talks("stopped and opened");
        for _ in 0..5 {
            there.run("ip link set h2 down");
            thread::sleep(Duration::from_millis(pause));
            there.run("ip link set h2 up");
            thread::sleep(Duration::from_millis(pause));
        }
        town.connect(2);
        here.talks("the carrier went and came");
    }
}

/// A bridge runs programs in generic mode: the router says so, and that it loses what a neighbour did not cut. Offloads
/// are as before at the end.
#[test]
fn frames_that_are_longer_than_a_slot_are_said() {
    inside("route::interfaces::in_it_frames_that_are_longer_than_a_slot_are_said");
}

#[test]
#[ignore = "run by frames_that_are_longer_than_a_slot_are_said"]
fn in_it_frames_that_are_longer_than_a_slot_are_said() {
    let town = Town::new();
    for number in [1, 2] {
        run(&format!("ip address flush dev r{number}"));
        run(&format!("ip link add b{number} type bridge"));
        run(&format!("ip link set r{number} master b{number}"));
        run(&format!("ip address add 10.{number}.0.1/24 dev b{number}"));
        run(&format!("ip link set b{number} up"));
    }
    let features = || {
        let shown = Command::new("ethtool").args(["-k", "b1"]).output();
        shown.map_or(String::new(), |shown| String::from_utf8_lossy(&shown.stdout).into_owned())
    };
    let before = features();
    let gro = |features: &str| features.contains("generic-receive-offload: on");
    let ports = ["--port", "afxdp:b1", "--port", "afxdp:b2", "--offloads", "off"];
    let mut router = Daemon::start(&[&["route", "--json", "--kernel"], &ports[..]].concat());
    let said = router.hear("afxdp:b1: its XDP program runs in generic mode");
    assert!(said.contains("tso off gso off") && !said.contains("is on here"), "{said}");
    router.hear("port afxdp:b2 is up");
    match before.is_empty() {
        true => println!("SKIPPED: there is no ethtool"),
        false => assert!(gro(&before) && !gro(&features()), "{before}"),
    }
    let [here, there] = &town.hosts;
    let answers = there.start("route::interfaces::takes");
    here.start("route::interfaces::gives").0.wait().unwrap();
    let lost = router.hear("port afxdp:b1: frames are lost before they come here");
    assert!(lost.contains("longer than a slot"), "{lost}");
    drop(answers);
    router.signal("TERM");
    assert_eq!(router.end().1, Some(0));
    assert_eq!(features(), before);

    if before.is_empty() {
        return;
    }
    here.run("ethtool -K h1 tso off gso off");
    there.run("ethtool -K h2 tso off gso off");
    let router =
        Daemon::start(&["route", "--json", "--kernel", ports[0], ports[1], ports[2], ports[3]]);
    router.hear("port afxdp:b2 is up");
    let _answers = there.start("route::interfaces::takes");
    assert!(here.start("route::interfaces::gives").0.wait().unwrap().success());
}

const BYTES: usize = 2_000_000;

#[test]
#[ignore = "run by the tests of this file"]
fn takes() {
    let (mut stream, _) = TcpListener::bind("0.0.0.0:7778").unwrap().accept().unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    stream.write_all(&(all.len() as u64).to_be_bytes()).unwrap();
}

#[test]
#[ignore = "run by the tests of this file"]
fn gives() {
    let began = Instant::now();
    let mut stream = loop {
        match TcpStream::connect_timeout(&"10.2.0.2:7778".parse().unwrap(), Duration::from_secs(1))
        {
            Ok(stream) => break stream,
            Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&stream, Some(Duration::from_secs(5))).unwrap();
    }
    stream.write_all(&[7; BYTES]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut count = [0; 8];
    stream.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_be_bytes(count), BYTES as u64);
}
