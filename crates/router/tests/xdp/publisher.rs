//! The thread that keeps the tables in the kernel up to date.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{Hop, Prefix, Routes};
use fibula_engines::BoxedEngine;
use fibula_router::forward::Side;
use fibula_router::port::xdp::{FastPath, Publisher, Stamp, Stamped, Trial};
use fibula_router::{Paths, View};
use fibula_simd::Isa;

use super::{engine, fast_path};

/// The router's current tables, and the number of times that the thread has read them.
#[derive(Default)]
struct Given {
    /// No tables yet.
    is_empty: bool,
    /// Numbers of the tables and of the ways out.
    routes: u64,
    egress: u64,
    /// Whether IPv4 has an engine without a program in the kernel.
    is_other: bool,
    asked: u64,
}

/// Tables in which all packets go to the group with the number of the routes.
struct Tables {
    given: Arc<Mutex<Given>>,
    stamp: Option<Stamp>,
    v4: BoxedEngine<u32>,
    v6: BoxedEngine<u128>,
    groups: Vec<u32>,
    paths: Paths,
}

impl Tables {
    fn new(given: &Arc<Mutex<Given>>) -> Self {
        let v6: Routes<u128> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
        let (v4, v6) = (v4(false), engine(&v6));
        let given = Arc::clone(given);
        Self { given, stamp: None, v4, v6, groups: vec![0], paths: Paths::default() }
    }

    fn view(&self) -> View<'_> {
        View {
            v4: Side { engine: &*self.v4, groups: &self.groups },
            v6: Side { engine: &*self.v6, groups: &self.groups },
            egress: &self.paths,
        }
    }
}

fn v4(is_other: bool) -> BoxedEngine<u32> {
    let routes: Routes<u32> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
    match is_other {
        false => engine(&routes),
        true => fibula_engines::Registry::product()
            .find::<u32>("radix")
            .unwrap()
            .build(&routes, Isa::detect())
            .unwrap(),
    }
}

impl Stamped for Tables {
    fn renew(&mut self, with_routes: bool) {
        let mut given = self.given.lock().unwrap();
        given.asked += 1;
        if given.is_empty {
            return;
        }
        let stamp = self.stamp.get_or_insert_default();
        stamp.egress = given.egress;
        if with_routes {
            (stamp.v4, stamp.v6) = (given.routes, given.routes);
            self.groups = vec![given.routes as u32];
            self.v4 = v4(given.is_other);
        }
    }

    fn held(&self) -> Option<(Stamp, View<'_>)> {
        Some((self.stamp?, self.view()))
    }
}

struct World {
    fast: Arc<FastPath>,
    trial: Trial,
    given: Arc<Mutex<Given>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Option<Self> {
        let fast = fast_path(1, 0)?;
        let trial = fast.trial(0, [2, 0, 0, 0, 0, 1], &[], false).unwrap();
        Some(Self { fast: Arc::new(fast), trial, given: Arc::default(), said: Arc::default() })
    }

    fn start(&self) -> Publisher {
        let said = Arc::clone(&self.said);
        let events = move |what| said.lock().unwrap().push(what);
        Publisher::start(Arc::clone(&self.fast), Tables::new(&self.given), events).unwrap()
    }

    fn groups(&self) -> [Option<u32>; 2] {
        let group = |address: &str| self.trial.group(address.parse::<IpAddr>().unwrap()).unwrap();
        [group("192.0.2.1"), group("2001:db8::1")]
    }

    fn set(&self, set: impl FnOnce(&mut Given)) {
        set(&mut self.given.lock().unwrap());
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the thread has published the current tables: it does so before it reads them for the second time.
    fn wait_for_rounds(&self) {
        let asked = self.given.lock().unwrap().asked;
        self.wait("no rounds", || self.given.lock().unwrap().asked >= asked + 2);
    }
}

#[test]
fn what_changes_is_published() {
    let Some(world) = World::new() else { return };
    world.set(|given| given.routes = 1);
    let publisher = world.start();
    assert_eq!(world.groups(), [Some(1); 2], "published before the thread starts");
    for routes in 2..12 {
        world.set(|given| given.routes = routes);
        world.wait("the routes are old", || world.groups() == [Some(routes as u32); 2]);
    }
    // Ways out are not waited for as tables of routes are.
    world.set(|given| given.egress = 5);
    world.wait_for_rounds();
    drop(publisher);
    assert_eq!(Arc::strong_count(&world.given), 1, "the thread has ended");
    // The kernel still has the last tables.
    assert_eq!(world.groups(), [Some(11); 2]);
    let tables = Tables::new(&world.given);
    let stamp = Stamp { v4: 11, v6: 11, egress: 5 };
    assert!(!world.fast.publish(stamp, &tables.view()).unwrap(), "all of it was published");
    assert!(world.fast.publish(Stamp { egress: 6, ..stamp }, &tables.view()).unwrap());
}

#[test]
fn tables_may_come_later() {
    let Some(world) = World::new() else { return };
    world.set(|given| given.is_empty = true);
    let _publisher = world.start();
    world.wait_for_rounds();
    assert_eq!(world.groups(), [None; 2]);
    world.set(|given| (given.is_empty, given.routes) = (false, 7));
    world.wait("no routes", || world.groups() == [Some(7); 2]);
    assert!(world.said.lock().unwrap().is_empty());
}

#[test]
fn each_message_for_the_operator_is_reported_once() {
    let Some(world) = World::new() else { return };
    // The loopback interface takes no packets of programs.
    world.fast.set_port(0, 1).unwrap();
    world.set(|given| (given.routes, given.is_other) = (1, true));
    let _publisher = world.start();
    world.wait("IPv6 has no program", || world.groups() == [None, Some(1)]);
    for egress in 1..4 {
        world.set(|given| given.egress = egress);
        world.wait_for_rounds();
    }
    let without = |family: &str| {
        let said = world.said.lock().unwrap();
        said.iter().filter(|said| said.contains(family) && said.contains("no fast path")).count()
    };
    assert_eq!((without("IPv4"), without("IPv6")), (1, 0), "{:?}", world.said.lock().unwrap());
    let of_port = world.said.lock().unwrap().iter().filter(|said| said.contains("port 0")).count();
    assert!(of_port <= 1, "{:?}", world.said.lock().unwrap());
    world.set(|given| (given.routes, given.is_other) = (2, false));
    world.wait("IPv4 is not back", || world.groups() == [Some(2); 2]);
    world.set(|given| (given.routes, given.is_other) = (3, true));
    world.wait("IPv4 is still there", || world.groups() == [None, Some(3)]);
    world.wait_for_rounds();
    assert_eq!(without("IPv4"), 1, "the same is not said twice in a row");
}
