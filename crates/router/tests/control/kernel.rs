//! In a network namespace of its own: real links and neighbours. It needs root, and otherwise reports that it was
//! skipped.

use std::env;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Hop, Routes};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::Table;
use fibula_router::control::{Control, ControlEvent, ControlOptions, PortLink};
use fibula_router::egress::{Group, Member};

use super::{hops, ip as address};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn links_and_neighbours_are_the_kernels() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--"]).arg(env::current_exe().unwrap());
    unshare.args([
        "--exact",
        "control::kernel::in_it_links_and_neighbours",
        "--ignored",
        "--nocapture",
    ]);
    let Ok(run) = unshare.output() else {
        println!("SKIPPED: there is no unshare");
        return;
    };
    let (said, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if errors.contains("Operation not permitted") && !said.contains("running 1 test") {
        println!("SKIPPED: this user may not make a network namespace");
        return;
    }
    assert!(run.status.success() && said.contains("running 1 test"), "{said}\n{errors}");
}

#[track_caller]
fn ip(arguments: &str) {
    let run = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2");
    assert!(run.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&run.stderr));
}

fn batch(lines: &str) {
    let mut child =
        Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().expect("iproute2");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn index(name: &str) -> u32 {
    let path = format!("/sys/class/net/{name}/ifindex");
    // /sys shows the namespace of the process that mounted it, so this queries the kernel.
    let run = Command::new("ip").args(["-o", "link", "show", name]).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    text.split(':').next().and_then(|index| index.trim().parse().ok()).expect(&path)
}

/// A namespace for the other end of the links, which goes with it.
struct Other(String);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[track_caller]
fn wait_for(what: &str, control: &Control, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < LIMIT,
            "{what}: {:#?}\n{:#?}",
            control.egress(),
            control.figures()
        );
        thread::sleep(Duration::from_millis(1));
    }
    println!("{what}: {:?}", began.elapsed());
}

#[test]
#[ignore = "run by links_and_neighbours_are_the_kernels"]
fn in_it_links_and_neighbours() {
    let other = Other(format!("fibcontrol{}", std::process::id()));
    let there = &other.0;
    ip(&format!("netns add {there}"));
    let mut ports = Vec::new();
    for (at, name) in ["dA", "dB"].into_iter().enumerate() {
        ip(&format!("link add {name} type veth peer name p{name} netns {there}"));
        ip(&format!("addr add 10.9.{at}.1/24 dev {name}"));
        ip(&format!("addr add fd09:{at}::1/64 dev {name} nodad"));
        ip(&format!("-n {there} addr add 10.9.{at}.2/24 dev p{name}"));
        ip(&format!("-n {there} addr add fd09:{at}::2/64 dev p{name} nodad"));
        ip(&format!("-n {there} link set p{name} up address 02:00:00:00:09:0{at}"));
        ip(&format!("link set {name} up"));
        ports.push(PortLink {
            name: name.to_owned(),
            interface: index(name),
            ..PortLink::default()
        });
    }
    let (said, events) = mpsc::channel();
    // Room for a handful of notifications, so that many at once are too many.
    let options = ControlOptions { room: 8 << 10, ..ControlOptions::default() };
    let control = Control::start(ports.clone(), options, move |event| {
        let _ = said.send(event);
    })
    .unwrap();
    // A group with a way over each link, and one that is on the link.
    let routes: Routes<u32> =
        [("192.0.2.0/24".parse().unwrap(), Hop::new(0))].into_iter().collect();
    let fib = Fib::of_table(Table::from_routes(routes, Routes::default()), &FibOptions::default());
    let both = format!(
        "via 10.9.0.2 dev {}, via fd09:1::2 dev {}",
        ports[0].interface, ports[1].interface
    );
    let views = control.static_views(&fib.unwrap(), [hops(&both)]).unwrap();
    let ways = || -> Vec<(u16, Option<u8>)> {
        let description = control.egress();
        let Group::Forward(members) = &description.groups[1] else { panic!("{description:?}") };
        let way = |member: &Member| match *member {
            Member::Gateway(at) => {
                let way = description.adjacencies[at as usize];
                (way.port, way.mac.map(|mac| mac[5]))
            }
            Member::OnLink(port) => (port, None),
        };
        members.iter().map(way).collect()
    };
    wait_for("both links are up", &control, || ways().len() == 2);
    let description = control.egress();
    assert_eq!(description.ports[0].addresses[..1], [address("10.9.0.1")]);
    assert!(description.ports[0].addresses.contains(&address("fd09:0::1")));
    assert_eq!(description.ports[0].mtu, 1500);

    // Wanted neighbours are found, in both families.
    let resolver = control.resolver();
    let known =
        |port: u16, at: &str| control.egress().neighbours.get(&(port, address(at))).copied();
    let find = |what: &str, port: u16, at: &str| {
        let at: IpAddr = address(at);
        wait_for(what, &control, || {
            resolver.want(port, at);
            control.egress().neighbours.contains_key(&(port, at))
        });
    };
    find("an IPv4 neighbour", 0, "10.9.0.2");
    find("an IPv6 neighbour", 1, "fd09:1::2");
    assert_eq!(ways(), [(0, Some(0)), (1, Some(1))]);
    resolver.want(0, address("10.9.0.77"));
    resolver.want(9, address("10.9.0.77"));

    // A stale one is probed again, and used meanwhile.
    let state = || {
        let run = Command::new("ip").args(["neigh", "show", "10.9.0.2"]).output().unwrap();
        String::from_utf8_lossy(&run.stdout).trim().to_owned()
    };
    ip("neigh change 10.9.0.2 dev dA nud stale");
    wait_for("a stale neighbour is asked again", &control, || !state().ends_with("STALE"));
    assert!(known(0, "10.9.0.2").is_some(), "{}", state());

    // One that changes, and one that is removed.
    ip("neigh replace 10.9.0.2 lladdr 02:00:00:00:09:77 dev dA nud permanent");
    wait_for("a new address", &control, || ways() == [(0, Some(0x77)), (1, Some(1))]);
    ip("neigh del 10.9.0.2 dev dA");
    wait_for("a lost neighbour", &control, || ways() == [(0, None), (1, Some(1))]);

    // A link goes down, at the other end and at this one.
    ip(&format!("-n {there} link set pdA down"));
    wait_for("no carrier", &control, || ways() == [(1, Some(1))]);
    ip("link set dB down");
    wait_for("no link", &control, || ways().is_empty());
    ip(&format!("-n {there} link set pdA up"));
    wait_for("a carrier", &control, || ways().iter().map(|way| way.0).eq([0]));
    find("the neighbour is found again", 0, "10.9.0.2");
    ip("addr del 10.9.0.1/24 dev dA");
    wait_for("an address less", &control, || {
        !control.egress().ports[0].addresses.contains(&address("10.9.0.1"))
    });

    // Notifications are lost, and everything is read anew.
    let add = |state: &str| -> String {
        (0..2000)
            .map(|at| {
                let (a, b) = (at / 250, at % 250 + 1);
                format!(
                    "neigh replace 10.9.{}.{b} lladdr 02:00:00:00:00:01 dev dA nud {state}\n",
                    100 + a
                )
            })
            .collect()
    };
    batch(&add("permanent"));
    wait_for("many neighbours", &control, || control.egress().neighbours.len() >= 2000);
    println!("{:#?}", control.figures());
    ip("link del dA");
    wait_for("a link that is gone", &control, || control.egress().neighbours.is_empty());
    let events: Vec<ControlEvent> = events.try_iter().collect();
    let down = ControlEvent::Port { name: "dA".to_owned(), is_up: false };
    assert!(events.contains(&down), "{events:?}");
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, ControlEvent::Refused(_) | ControlEvent::Damaged(_))),
        "{events:?}"
    );
    drop((views, control, other));
}
