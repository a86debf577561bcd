//! In a network namespace of its own: a real socket, real routes. It needs root; without root, the test prints this.

use std::env;
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use fibula_feeds::SourceState;
use fibula_feeds::kernel::{KernelOptions, endpoint};
use fibula_feeds::net::FeedSource;

use super::shown::{differences, fed, ip, kernel};
use crate::net::{LIMIT, Net, ms};

/// Runs an ignored test of this binary in an empty network namespace.
fn inside(test: &str) {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--"]).arg(env::current_exe().unwrap());
    unshare.args(["--exact", test, "--ignored", "--nocapture"]);
    let Ok(run) = unshare.output() else {
        println!("not tested: there is no unshare");
        return;
    };
    let (output, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if errors.contains("Operation not permitted") && !output.contains("running 1 test") {
        println!("not tested: this user may not make a network namespace");
        return;
    }
    assert!(run.status.success() && output.contains("running 1 test"), "{output}\n{errors}");
}

/// Two links, 10.9.0.1/24 and 10.9.1.1/24, fd09::1/64 and fd09:1::1/64.
fn links() {
    ip("link set lo up");
    for (name, peer, n) in [("dA", "pA", 0), ("dB", "pB", 1)] {
        ip(&format!("link add {name} type veth peer name {peer}"));
        ip(&format!("addr add 10.9.{n}.1/24 dev {name}"));
        let v6 = if n == 0 { "fd09::1/64" } else { "fd09:1::1/64" };
        ip(&format!("addr add {v6} dev {name} nodad"));
        ip(&format!("link set {name} up"));
        ip(&format!("link set {peer} up"));
    }
}

fn source(options: &KernelOptions) -> FeedSource {
    let options = KernelOptions { table: "kernel".to_owned(), ..options.clone() };
    FeedSource {
        name: "kernel".to_owned(),
        kind: "kernel",
        table: "kernel".to_owned(),
        endpoint: endpoint(options),
    }
}

/// Waits until the table is the kernel's, route by route.
#[track_caller]
fn equal(net: &Net, after: &str) {
    let began = Instant::now();
    loop {
        let different = differences(&kernel(), &fed(&net.table.0.lock().unwrap()));
        if different.is_empty() && net.state("kernel") == Some(SourceState::Up) {
            return;
        }
        let shown = &different[..different.len().min(9)];
        assert!(
            began.elapsed() < LIMIT,
            "{after}: {shown:#?}\n{:#?}\n{:?}",
            net.board.all(),
            net.reports()
        );
        thread::sleep(ms(5));
    }
}

fn remark(net: &Net, key: &str) -> u64 {
    net.status("kernel").unwrap().figures.remarks[key].parse().unwrap()
}

#[test]
fn every_route_is_the_kernels() {
    inside("kernel::namespace::in_it_every_route_is_the_kernels");
}

#[test]
#[ignore = "run by every_route_is_the_kernels"]
fn in_it_every_route_is_the_kernels() {
    links();
    ip("route add 192.0.2.0/24 via 10.9.0.2");
    ip("nexthop add id 7 via 10.9.0.3 dev dA");
    ip("route add 192.0.3.0/24 nhid 7");
    let net = Net::start(vec![source(&KernelOptions { settle: ms(50), ..Default::default() })]);
    equal(&net, "the start");
    for change in [
        "route add 198.51.100.0/24 nexthop via 10.9.0.2 weight 3 nexthop via 10.9.1.2 weight 250",
        "route replace 198.51.100.0/24 nexthop via 10.9.0.2 nexthop via 10.9.1.2",
        "route add 198.51.101.0/24 via inet6 fd09::9 dev dA",
        "route add 198.51.102.0/24 dev dB",
        "route add blackhole 203.0.113.0/25",
        "route add unreachable 203.0.113.128/25",
        "route add prohibit 203.0.113.64/26",
        "route add throw 203.0.113.0/29",
        "-6 route add blackhole 2001:db8:1::/48",
        "route add 192.0.2.0/24 via 10.9.1.7 metric 50",
        "route add 192.0.2.0/24 via 10.9.1.8 table 100",
        "route add default via 10.9.0.9 table 70000",
        "-6 route add default via fd09::2",
        "route replace 192.0.2.0/24 via 10.9.0.77",
        "route del 192.0.2.0/24 metric 0",
        "route append 192.0.2.0/24 via 10.9.1.9 metric 50",
        "route prepend 192.0.2.0/24 via 10.9.1.10 metric 50",
        "route del 192.0.2.0/24 via 10.9.1.10 metric 50",
        "route del 192.0.2.0/24 via 10.9.1.7 metric 50",
        "route replace throw 203.0.113.64/26",
        // Next-hop objects.
        "nexthop add id 8 via 10.9.1.3 dev dB",
        "nexthop add id 9 group 7,3/8,5",
        "nexthop add id 10 via fd09::10 dev dA",
        "nexthop add id 11 blackhole",
        "route add 10.50.0.0/16 nhid 9",
        "route add 10.51.0.0/16 nhid 10",
        "route add 10.52.0.0/16 nhid 11",
        "-6 route add 2001:db8:50::/48 nhid 10",
        "nexthop replace id 8 via 10.9.1.4 dev dB",
        "nexthop replace id 9 group 8",
        "nexthop replace id 7 via 10.9.0.200 dev dA",
        "nexthop del id 7",
        "nexthop del id 11",
        // Several of one metric.
        "nexthop add id 12 via fd09:1::12 dev dB",
        "-6 route append 2001:db8:50::/48 nhid 12",
        "-6 route del 2001:db8:50::/48 nhid 10",
        "-6 route append 2001:db8:50::/48 nhid 10",
        "-6 route append 2001:db8:50::/48 nexthop via fd09::2 nexthop via fd09:1::3",
        "-6 route del 2001:db8:50::/48 nhid 10",
        "-6 route del 2001:db8:50::/48 nhid 12",
        "-6 route add 2001:db8:51::/48 dev dA",
        "-6 route append 2001:db8:51::/48 dev dB",
        "-6 route del 2001:db8:51::/48 dev dA",
        "-6 route add 2001:db8:52::/48 nexthop via fd09::2",
        "-6 route append 2001:db8:52::/48 via fd09:1::2",
        // Sets of IPv6.
        "-6 route add 2001:db8:2::/48 nexthop via fd09::2 nexthop via fd09:1::3 nexthop via fd09::4",
        "-6 route del 2001:db8:2::/48 via fd09:1::3",
        "-6 route append 2001:db8:2::/48 nexthop via fd09:1::5",
        "-6 route del 2001:db8:2::/48",
        "-6 route add 2001:db8:3::/48 nexthop via fd09::2 nexthop via fd09:1::3",
        "-6 route replace 2001:db8:3::/48 via fd09::7",
        // Changes of the kernel without notifications.
        "link set dB down",
        "link set dB up",
        "addr del 10.9.1.1/24 dev dB",
        "link set pA down",
        "link set pA up",
        "route flush table 100",
        "link del dB",
    ] {
        ip(change);
        equal(&net, change);
    }
    assert!(remark(&net, "dumps") > 1);
    net.stop();
}

#[test]
fn lost_notifications_are_made_good() {
    inside("kernel::namespace::in_it_lost_notifications_are_made_good");
}

/// A batch for `ip`.
fn batch(commands: &str) {
    let mut run = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    run.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(run.wait().unwrap().success());
}

#[test]
#[ignore = "run by lost_notifications_are_made_good"]
fn in_it_lost_notifications_are_made_good() {
    const ROUTES: u32 = 3000;
    links();
    let options = KernelOptions { room: 1 << 14, settle: ms(50), ..Default::default() };
    let net = Net::start(vec![source(&options)]);
    equal(&net, "the start");
    let routes = |verb: &str, last: u32| {
        (0..ROUTES).fold(String::new(), |mut text, n| {
            let (high, low) = (n >> 8, n & 255);
            writeln!(text, "route {verb} 100.{high}.{low}.0/24 via 10.9.0.{last}").unwrap();
            text
        })
    };
    for commands in [routes("add", 2), routes("replace", 3), routes("del", 3)] {
        // The loop cannot process anything while the table is locked, so the socket overflows.
        let before = remark(&net, "overruns");
        let locked = net.table.0.lock().unwrap();
        batch(&commands);
        drop(locked);
        equal(&net, "an overrun");
        assert!(remark(&net, "overruns") > before);
    }
    // With a large buffer and an unlocked table, nothing is lost.
    let net = Net::start(vec![source(&KernelOptions { settle: ms(50), ..Default::default() })]);
    equal(&net, "another start");
    let dumps = remark(&net, "dumps");
    batch(&routes("add", 2));
    equal(&net, "a burst");
    assert_eq!((remark(&net, "dumps"), remark(&net, "overruns")), (dumps, 0));
}
