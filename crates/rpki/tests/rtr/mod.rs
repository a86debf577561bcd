//! VRPs from a cache: the answers of one that behaves, drops, resets and lies, and those of a validator.

mod aspas;
mod cache;
mod fort;
mod repository;
mod serials;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fibula_rpki::rtr::{RtrEvent, RtrFollower, RtrNotify, RtrOptions};
use fibula_rpki::{CacheState, LiveVrps, Vrp};

use cache::{Cache, Connection, end, notify, origin, pdu, reset, response};

fn vrp(text: &str) -> Vrp {
    let (prefix, rest) = text.split_once('-').unwrap();
    let (max_len, asn) = rest.split_once(" AS").unwrap();
    Vrp::new(prefix.parse().unwrap(), max_len.parse().unwrap(), asn.parse().unwrap()).unwrap()
}

const A: &str = "192.0.2.0/24-24 AS64500";
const B: &str = "2001:db8::/32-48 AS64501";
const C: &str = "198.51.100.0/24-24 AS64502";

/// What a follower has: the VRPs that cover the test's prefixes, `None` if it knows none.
fn held(vrps: &LiveVrps) -> Option<Vec<String>> {
    let now = vrps.current();
    let now = now.vrps.as_ref()?;
    let covering = |text: &&str| {
        now.covering(vrp(text).prefix()).map(|vrp| vrp.to_string()).collect::<Vec<_>>()
    };
    Some([A, B, C].iter().flat_map(covering).collect())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    within(Duration::from_secs(60), what, is_so);
}

fn within(limit: Duration, what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "{what} within {limit:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn options(caches: &[&Cache]) -> RtrOptions {
    let caches = caches.iter().map(|cache| cache.endpoint.clone()).collect();
    let mut options = RtrOptions::of(caches);
    options.retry = Duration::from_millis(10);
    options
}

fn follow(options: RtrOptions) -> (Arc<LiveVrps>, RtrFollower) {
    let vrps = Arc::new(LiveVrps::default());
    let follower = RtrFollower::start(options, Arc::clone(&vrps)).unwrap();
    (vrps, follower)
}

/// The whole set, with this serial number.
fn whole(session: u16, serial: u32, set: &[&str]) -> Vec<u8> {
    let set = set.iter().flat_map(|text| origin(vrp(text), true));
    [response(session), set.collect(), end(session, serial)].concat()
}

fn first(session: u16, serial: u32, set: &'static [&str]) -> impl FnOnce(&mut Connection) {
    move |connection| {
        assert_eq!(connection.first_query(), None);
        connection.send(&whole(session, serial, set));
    }
}

#[test]
fn serial_by_serial_over_a_lost_connection() {
    let cache = Cache::new(vec![
        Box::new(|mut connection| {
            first(7, 1, &[A, B])(&mut connection);
            connection.send(&notify(7, 2));
            assert_eq!(connection.query(), Some((7, 1)));
            let changes = [origin(vrp(A), false), origin(vrp(C), true)].concat();
            connection.send(&[response(7), changes, end(7, 2)].concat());
            // Half an answer, then the end: nothing of it is used.
            connection.send(&notify(7, 3));
            assert_eq!(connection.query(), Some((7, 2)));
            connection.send(&[response(7), origin(vrp(B), false)].concat());
        }),
        Box::new(|mut connection| {
            // What it had is still known, so it asks for the difference.
            assert_eq!(connection.first_query(), Some((7, 2)));
            connection.send(&[response(7), origin(vrp(C), false), end(7, 4)].concat());
            connection.wait();
        }),
    ]);
    let (vrps, follower) = follow(options(&[&cache]));
    until("the last serial", || vrps.caches()[0].session == Some((7, 4)));
    assert_eq!(held(&vrps), Some(vec![B.to_owned()]));
    let status = &vrps.caches()[0];
    assert_eq!((status.connections, status.updates, status.resets, status.vrps), (2, 3, 1, 1));
    assert_eq!(vrps.current().number, 3, "one set for each answer, none for the half one");
    drop(follower);
    cache.done();
    assert_eq!(held(&vrps), Some(vec![B.to_owned()]), "what was received stays");
}

#[test]
fn a_cache_that_lost_its_state_sends_everything_again() {
    let cache = Cache::new(vec![
        Box::new(|mut connection| {
            first(7, 1, &[A, B])(&mut connection);
            connection.send(&notify(7, 9));
            assert_eq!(connection.query(), Some((7, 1)));
            connection.send(&reset());
            assert_eq!(connection.query(), None);
            connection.send(&whole(8, 9, &[B, C]));
            // Another session without a reset: its difference is to another set.
            connection.send(&notify(8, 10));
            assert_eq!(connection.query(), Some((8, 9)));
            connection.send(&[response(9), end(9, 10)].concat());
            connection.wait();
        }),
        Box::new(|mut connection| {
            first(9, 10, &[A])(&mut connection);
            connection.wait();
        }),
    ]);
    let (vrps, follower) = follow(options(&[&cache]));
    until("the new session", || vrps.caches()[0].session == Some((9, 10)));
    assert_eq!(held(&vrps), Some(vec![A.to_owned()]));
    drop(follower);
    cache.done();
}

/// Answers that cannot be: each ends the connection with the error of RFC 8210, leaves the set as it was, and is
/// followed by a query for the whole set if it was an answer.
#[test]
fn answers_that_contradict_what_was_sent_are_refused() {
    let bad_len = pdu(4, 0, &[1, 24, 33, 0, 192, 0, 2, 0, 0, 0, 251, 244]);
    let host_bits = pdu(4, 0, &[1, 24, 24, 0, 192, 0, 2, 1, 0, 0, 251, 244]);
    let lies: Vec<(&str, Vec<u8>, Option<u16>)> = vec![
        ("announces what is there", origin(vrp(A), true), Some(7)),
        ("withdraws what is not", origin(vrp(C), false), Some(6)),
        ("a length of 33", bad_len, None),
        ("bits behind the prefix", host_bits, None),
        ("a PDU of another kind", reset(), None),
        ("an error", pdu(10, 1, &[0; 8]), None),
        // A key for BGPsec, and an ASPA, of four gigabytes.
        ("a long key", [1, 9, 1, 0, 255, 255, 255, 255].to_vec(), None),
        ("a long ASPA", [1, 11, 1, 0, 255, 255, 255, 240].to_vec(), None),
    ];
    for (what, lie, code) in lies {
        let cache = Cache::new(vec![
            Box::new(move |mut connection| {
                first(7, 1, &[A, B])(&mut connection);
                connection.send(&notify(7, 2));
                assert_eq!(connection.query(), Some((7, 1)), "{what}");
                connection.send(&[response(7), lie, end(7, 2)].concat());
                let error = connection.error();
                if code.is_some() {
                    assert_eq!(error, code, "{what}");
                }
            }),
            Box::new(move |mut connection| {
                let query = connection.first_query();
                match (query, code) {
                    (None, _) => connection.send(&whole(7, 3, &[A, B, C])),
                    // What is no answer says nothing about what was held.
                    (Some((7, 1)), None) => {
                        connection.send(&[response(7), origin(vrp(C), true), end(7, 3)].concat());
                    }
                    _ => panic!("{what}: {query:?}"),
                }
                connection.wait();
            }),
        ]);
        let (vrps, follower) = follow(options(&[&cache]));
        until(what, || vrps.caches()[0].session == Some((7, 3)));
        let all = vec![A.to_owned(), B.to_owned(), C.to_owned()];
        assert_eq!(held(&vrps), Some(all), "{what}");
        // There was no set between those of the whole answers.
        assert_eq!(vrps.current().number, 2, "{what}");
        drop(follower);
        cache.done();
    }
}

#[test]
fn a_set_expires_and_comes_back() {
    let cache = Cache::new(vec![
        Box::new(|mut connection| first(7, 1, &[A])(&mut connection)),
        Box::new(|_| {
            // Connected, but it says nothing: longer than the set lives.
            thread::sleep(Duration::from_millis(1500));
        }),
        Box::new(|mut connection| {
            assert_eq!(connection.first_query(), None, "what has expired is not continued");
            connection.send(&whole(7, 5, &[B]));
            connection.wait();
        }),
    ]);
    let mut options = options(&[&cache]);
    options.longest = Duration::from_millis(300);
    let (vrps, follower) = follow(options);
    until("the first set", || held(&vrps) == Some(vec![A.to_owned()]));
    until("it expires", || held(&vrps).is_none());
    assert_eq!(vrps.caches()[0].expires, None);
    assert_eq!((vrps.caches()[0].vrps, vrps.caches()[0].aspas), (0, 0));
    until("the next set", || held(&vrps) == Some(vec![B.to_owned()]));
    drop(follower);
    cache.done();
}

#[test]
fn what_happens_is_told() {
    let cache = Cache::new(vec![
        Box::new(|mut connection| {
            first(7, 1, &[A, B])(&mut connection);
            connection.send(&notify(7, 2));
            assert_eq!(connection.query(), Some((7, 1)));
            connection.send(&[response(7), origin(vrp(B), false), end(7, 2)].concat());
            connection.send(&notify(7, 3));
            assert_eq!(connection.query(), Some((7, 2)));
            connection.send(&reset());
            assert_eq!(connection.query(), None);
            connection.send(&whole(8, 3, &[A, B, C]));
        }),
        // Longer than the set lives.
        Box::new(|_| thread::sleep(Duration::from_millis(2500))),
        Box::new(|mut connection| {
            first(8, 4, &[])(&mut connection);
            connection.wait();
        }),
    ]);
    let told = Arc::<Mutex<Vec<(String, bool)>>>::default();
    let mut options = options(&[&cache]);
    options.longest = Duration::from_secs(1);
    let (list, endpoint) = (Arc::clone(&told), cache.endpoint.clone());
    options.notify = Some(RtrNotify(Arc::new(move |from, event: RtrEvent<'_>| {
        assert_eq!(from, endpoint);
        list.lock().unwrap().push((event.to_string(), event.is_trouble()));
    })));
    let (_, follower) = follow(options);
    until("all", || told.lock().unwrap().len() == 6);
    drop(follower);
    let told = told.lock().unwrap();
    let expected = [
        ("connected, serial 1: 2 VRPs, 0 ASPAs", false),
        ("sent everything anew: 3 VRPs, 0 ASPAs", false),
        ("lost: the cache closed the connection", true),
        ("its VRPs have expired: routes have no validity", true),
        ("lost: no whole answer in time", true),
        ("connected, serial 4: 0 VRPs, 0 ASPAs", false),
    ];
    assert_eq!(*told, expected.map(|(text, is_trouble)| (text.to_owned(), is_trouble)));
    cache.done();
}

#[test]
fn the_next_cache_is_asked_if_one_fails() {
    let refuses = Cache::new(vec![Box::new(drop)]);
    let works = Cache::new(vec![Box::new(|mut connection| {
        first(3, 1, &[A, C])(&mut connection);
        connection.wait();
    })]);
    let (vrps, follower) = follow(options(&[&refuses, &works]));
    until("the second one", || vrps.caches()[1].state == CacheState::Up);
    let [first, second] = &vrps.caches()[..] else { panic!("two caches") };
    assert_eq!((first.state, first.vrps), (CacheState::Lost, 0));
    assert_eq!(first.trouble.as_deref(), Some("the cache closed the connection"));
    assert_eq!((second.vrps, held(&vrps).unwrap().len()), (2, 2));
    drop(follower);
    refuses.done();
    works.done();
}

#[test]
fn a_cache_that_sends_too_much_or_nothing_is_left() {
    let too_much = Cache::new(vec![Box::new(|mut connection| {
        assert_eq!(connection.first_query(), None);
        connection.send(&response(7));
        // Without an end: the client must not wait for one.
        for asn in 0..10_000 {
            let one = Vrp::new("192.0.2.0/24".parse().unwrap(), 24, asn).unwrap();
            connection.send(&origin(one, true));
        }
        connection.wait();
    })]);
    let silent = Cache::new(vec![Box::new(|mut connection| {
        let _ = connection.query();
        connection.wait();
    })]);
    let works = Cache::new(vec![Box::new(|mut connection| {
        first(3, 1, &[A])(&mut connection);
        connection.wait();
    })]);
    let mut options = options(&[&too_much, &silent, &works]);
    options.most = 2;
    options.timeout = Duration::from_millis(500);
    let (vrps, follower) = follow(options);
    until("the last one", || vrps.caches()[2].state == CacheState::Up);
    assert_eq!(held(&vrps), Some(vec![A.to_owned()]));
    let trouble = |at: usize| vrps.caches()[at].trouble.clone().unwrap_or_default();
    assert!(trouble(0).contains("too many VRPs"), "{}", trouble(0));
    assert_eq!(trouble(1), "no whole answer in time");
    drop(follower);
    [too_much, silent, works].into_iter().for_each(Cache::done);
}

/// Bytes that are not of the protocol, at the start and inside an answer.
#[test]
fn noise_is_refused() {
    let mut random = fibula_testkit::Rng::new(11);
    for round in 0..60 {
        let noise: Vec<u8> = (0..200).map(|_| random.below(256) as u8).collect();
        let at = random.below(3);
        let cache = Cache::new(vec![Box::new(move |mut connection| {
            let _ = connection.first_query();
            if at > 0 {
                connection.send(&response(7));
            }
            if at > 1 {
                connection.send(&origin(vrp(A), true));
            }
            connection.send(&noise);
        })]);
        let (vrps, follower) = follow(options(&[&cache]));
        until("refused", || vrps.caches()[0].trouble.is_some());
        assert_eq!(held(&vrps), None, "round {round}");
        drop(follower);
        cache.done();
    }
}
