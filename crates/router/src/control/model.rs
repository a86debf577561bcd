//! Interactions of workers and the control thread, tried in many schedules by shuttle. A failure prints its schedule,
//! which `shuttle::replay` runs again.
//!
//! `FIBULA_MODEL_SCHEDULES` is the number of schedules.

use std::env;
use std::net::IpAddr;

use fibula_core::{NextHop, NextHops};
use fibula_ingest::netlink::{Interface, InterfaceAddress, LinkMessage};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::catalogue::{Catalogue, Token};
use super::compile::{PortLink, egress};
use super::links::Links;
use super::published::{self, Current, Retired};
use crate::Paths;
use crate::egress::{Group, Member};

/// Schedules: few enough for every run of the tests.
const SCHEDULES: usize = 500;

fn schedules() -> usize {
    match env::var("FIBULA_MODEL_SCHEDULES") {
        Ok(number) => number.parse().expect("FIBULA_MODEL_SCHEDULES is a number"),
        Err(_) => SCHEDULES,
    }
}

fn gateway(meaning: u8) -> IpAddr {
    [10, 0, 0, meaning].into()
}

fn links() -> Links {
    let mut links = Links::default();
    links.fix(LinkMessage::Interface(Interface { index: 1, is_up: true, ..Interface::default() }));
    let local = gateway(200);
    links.fix(LinkMessage::Address(InterfaceAddress {
        interface: 1,
        local,
        subnet: local,
        len: 24,
    }));
    links
}

/// The generation that a worker has adopted: the expected meaning of each hop, and the tokens.
struct Adopted {
    meanings: Vec<u8>,
    tokens: Vec<Option<Arc<Token>>>,
}

impl Adopted {
    fn of(catalogue: &Catalogue, meanings: &[u8]) -> Self {
        let next_hops = |&meaning: &u8| NextHops {
            hops: vec![NextHop::via(gateway(meaning))],
            ..NextHops::default()
        };
        let tokens = catalogue.tokens(&mut meanings.iter().map(next_hops));
        Self { meanings: meanings.to_vec(), tokens }
    }

    fn needs(&self) -> u64 {
        self.tokens.iter().flatten().map(|token| token.since).max().unwrap_or(0)
    }

    /// Checks that every number has its meaning in these paths.
    fn check(&self, paths: &Paths) {
        for (&meaning, token) in self.meanings.iter().zip(&self.tokens) {
            let description = paths.description();
            let number = token.as_ref().expect("it has a next hop").group as usize;
            let Group::Forward(members) = &description.groups[number] else {
                panic!("{meaning} is {:?}", description.groups[number])
            };
            let [Member::Gateway(at)] = members[..] else { panic!("{members:?}") };
            assert_eq!(description.adjacencies[at as usize].gateway, gateway(meaning));
        }
    }
}

/// Two workers take generations whose next hops come and go, so that numbers are given away and used again, while the
/// control thread publishes: no number ever means anything else to a worker than it should, and no worker waits
/// for ever.
#[test]
fn a_number_means_the_same_to_all() {
    shuttle::check_random(
        || {
            let catalogue = Arc::new(Catalogue::with_slack(Box::new(|| {}), 0));
            let published = Arc::new(published::nothing());
            let working = Arc::new(AtomicUsize::new(2));
            let workers: Vec<_> = (0..2u8)
                .map(|worker| {
                    let (catalogue, published) = (Arc::clone(&catalogue), Arc::clone(&published));
                    let working = Arc::clone(&working);
                    thread::spawn(move || {
                        let mut held = published.load();
                        let mut adopted = Adopted::of(&catalogue, &[]);
                        for generation in 1..4u8 {
                            let meanings = [10 * generation, 10 * generation + worker, 1];
                            let next = Adopted::of(&catalogue, &meanings);
                            while next.needs() > held.knows {
                                adopted.check(&held.paths);
                                thread::yield_now();
                                published.renew(&mut held);
                            }
                            adopted = next;
                            adopted.check(&held.paths);
                            published.renew(&mut held);
                            adopted.check(&held.paths);
                        }
                        working.fetch_sub(1, Ordering::SeqCst);
                    })
                })
                .collect();
            let (links, mut retired) = (links(), Retired::default());
            let ports = [PortLink { interface: 1, ..PortLink::default() }];
            while working.load(Ordering::SeqCst) > 0 {
                let known = catalogue.known();
                let description = egress(&links, &ports, known.groups.iter().map(Option::as_deref));
                let old = published.load();
                let (number, knows) = (old.number + 1, known.version);
                published.publish(Current { number, knows, paths: Paths::new(description) });
                retired.put(old);
                thread::yield_now();
            }
            for worker in workers {
                worker.join().unwrap();
            }
            assert!(!retired.sweep(), "nobody has old paths any more");
        },
        schedules(),
    );
}
