//! A cache by another implementation, whose set changes at random: at each serial, what is held is what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_rpki::rtr::RtrOptions;
use fibula_rpki::{Aspas, Vrp, Vrps};
use futures_util::stream::unfold;
use rpki::resources::addr::{MaxLenPrefix, Prefix};
use rpki::rtr::payload::{Action, Payload, PayloadRef, Timing};
use rpki::rtr::pdu::ProviderAsns;
use rpki::rtr::server::{NotifySender, PayloadDiff, PayloadSet, PayloadSource, Server};
use rpki::rtr::state::State;

use super::{follow, until};

/// What a cache has at a serial.
#[derive(Clone, Default)]
struct Data {
    vrps: BTreeSet<Vrp>,
    aspas: BTreeMap<u32, BTreeSet<u32>>,
}

/// The sets of all serials so far.
#[derive(Clone, Default)]
struct Source(Arc<Mutex<(Vec<Data>, State)>>);

struct Items(std::vec::IntoIter<(Payload, Action)>, Option<Payload>);

fn payload(vrp: &Vrp) -> Payload {
    let prefix = match vrp.prefix() {
        AnyPrefix::V4(prefix) => Prefix::new(Ipv4Addr::from(prefix.addr()).into(), prefix.len()),
        AnyPrefix::V6(prefix) => {
            Prefix::new(std::net::Ipv6Addr::from(prefix.addr()).into(), prefix.len())
        }
    };
    let prefix = MaxLenPrefix::new(prefix.unwrap(), Some(vrp.max_len())).unwrap();
    Payload::origin(prefix, vrp.asn().into())
}

fn aspa(customer: u32, providers: &BTreeSet<u32>) -> Payload {
    let providers = ProviderAsns::try_from_iter(providers.iter().map(|&asn| asn.into()));
    Payload::aspa(customer.into(), providers.unwrap())
}

impl Items {
    fn of(items: impl Iterator<Item = (Payload, Action)>) -> Self {
        Self(items.collect::<Vec<_>>().into_iter(), None)
    }
}

impl PayloadSet for Items {
    fn next(&mut self) -> Option<PayloadRef<'_>> {
        self.1 = self.0.next().map(|(payload, _)| payload);
        self.1.as_ref().map(Payload::as_ref)
    }
}

impl PayloadDiff for Items {
    fn next(&mut self) -> Option<(PayloadRef<'_>, Action)> {
        let (payload, action) = self.0.next()?;
        self.1 = Some(payload);
        self.1.as_ref().map(|payload| (payload.as_ref(), action))
    }
}

impl PayloadSource for Source {
    type Set = Items;
    type Diff = Items;

    fn ready(&self) -> bool {
        true
    }

    fn notify(&self) -> State {
        self.0.lock().unwrap().1
    }

    fn full(&self) -> (State, Items) {
        let all = self.0.lock().unwrap();
        let data = all.0.last().unwrap();
        let vrps = data.vrps.iter().map(payload);
        let aspas = data.aspas.iter().map(|(customer, providers)| aspa(*customer, providers));
        (all.1, Items::of(vrps.chain(aspas).map(|payload| (payload, Action::Announce))))
    }

    fn diff(&self, state: State) -> Option<(State, Items)> {
        let all = self.0.lock().unwrap();
        if state.session() != all.1.session() {
            return None;
        }
        // It keeps eight serials, and sends everything to a client that is further behind.
        let behind = all.1.serial().0.wrapping_sub(state.serial().0) as usize;
        let at = all.0.len().checked_sub(behind + 1).filter(|_| behind <= 8)?;
        let (old, new) = (&all.0[at], all.0.last().unwrap());
        let gone = old.vrps.difference(&new.vrps).map(|vrp| (payload(vrp), Action::Withdraw));
        let come = new.vrps.difference(&old.vrps).map(|vrp| (payload(vrp), Action::Announce));
        let none = BTreeSet::new();
        let withdrawn = old.aspas.keys().filter(|customer| !new.aspas.contains_key(customer));
        let withdrawn = withdrawn.map(|customer| (aspa(*customer, &none), Action::Withdraw));
        let changed =
            new.aspas.iter().filter(|(of, providers)| old.aspas.get(of) != Some(providers));
        let changed = changed.map(|(of, providers)| (aspa(*of, providers), Action::Announce));
        Some((all.1, Items::of(gone.chain(come).chain(withdrawn).chain(changed))))
    }

    fn timing(&self) -> Timing {
        Timing { refresh: 3600, retry: 600, expire: 7200 }
    }
}

#[test]
fn at_each_serial_the_set_is_that_of_the_cache() {
    let mut random = fibula_testkit::Rng::new(3);
    let mut draw = |below: u64| random.below(below);
    let source = Source::default();
    source.0.lock().unwrap().0.push(Data::default());
    let mut notify = NotifySender::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let endpoint = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let sockets = unfold(listener, async |listener| {
            let socket = listener.accept().await.map(|(socket, _)| socket);
            Some((socket, listener))
        });
        let server = Server::new(Box::pin(sockets), notify.clone(), source.clone());
        tokio::spawn(server.run());
        endpoint
    });
    let mut options = RtrOptions::of(vec![endpoint]);
    options.retry = Duration::from_millis(10);
    let (live, follower) = follow(options);
    until("the first, empty set", || live.current().vrps.is_some());

    let (mut set, mut aspas) = (BTreeSet::<Vrp>::new(), BTreeMap::<u32, BTreeSet<u32>>::new());
    for round in 0..60 {
        for _ in 0..draw(6) {
            let customer = draw(20) as u32;
            match draw(3) {
                0 => drop(aspas.remove(&customer)),
                _ => drop(aspas.insert(customer, (0..=draw(4)).map(|_| draw(30) as u32).collect())),
            }
        }
        for _ in 0..=draw(200) {
            let prefix = if draw(2) == 0 {
                AnyPrefix::masked(
                    Ipv4Addr::from((draw(1 << 12) << 20) as u32).into(),
                    12 + draw(6) as u8,
                )
            } else {
                let addr = u128::from(draw(1 << 12)) << 96 | 0x2000 << 112;
                AnyPrefix::masked(std::net::Ipv6Addr::from(addr).into(), 20 + draw(20) as u8)
            };
            let prefix = prefix.unwrap();
            let len = match prefix {
                AnyPrefix::V4(prefix) => prefix.len(),
                AnyPrefix::V6(prefix) => prefix.len(),
            };
            let vrp = Vrp::new(prefix, u64::from(len) + draw(8), draw(9) as u32).unwrap();
            if !set.remove(&vrp) {
                set.insert(vrp);
            }
        }
        let state = {
            let mut all = source.0.lock().unwrap();
            all.0.push(Data { vrps: set.clone(), aspas: aspas.clone() });
            all.1.inc();
            // Sometimes the cache forgets its session.
            if draw(15) == 0 {
                all.1 = State::new();
            }
            all.1
        };
        notify.notify();
        let here = Some((state.session(), state.serial().0));
        until("the serial", || live.caches()[0].session == here);
        let expected = Vrps::new(set.iter().copied());
        let now = live.current();
        let all = aspas.iter().map(|(of, providers)| (*of, providers.iter().copied().collect()));
        assert_eq!(*now.aspas, all.collect::<Aspas>(), "round {round}");
        assert_eq!(live.caches()[0].aspas, aspas.len(), "round {round}");
        let now = now.vrps.as_ref().unwrap();
        assert_eq!(now.len(), expected.len(), "round {round}");
        for vrp in &set {
            let (found, expected) = (now.covering(vrp.prefix()), expected.covering(vrp.prefix()));
            assert!(found.eq(expected), "round {round}: {vrp}");
        }
    }
    let status = &live.caches()[0];
    assert_eq!(status.connections, 1, "{:?}", status.trouble);
    assert!(status.resets >= 1 && status.updates >= 60, "{status:?}");
    drop(follower);
    runtime.shutdown_timeout(Duration::from_secs(5));
}
