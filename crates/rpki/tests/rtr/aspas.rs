//! ASPAs from a cache of version 2: replaced, withdrawn, refused, expired.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibula_rpki::{CacheState, LiveVrps};

use super::cache::{Cache, Connection, aspa, end, in_version_2, notify, origin, response};
use super::{A, B, follow, options, until, vrp};

/// The customers and providers that are known, of those that the tests have.
fn known(vrps: &LiveVrps) -> Vec<(u32, Vec<u32>)> {
    let aspas = Arc::clone(&vrps.current().aspas);
    let of = |customer| Some((customer, aspas.providers(customer)?.to_vec()));
    let all: Vec<_> = (64500..64510).filter_map(of).collect();
    assert_eq!(all.len(), aspas.len());
    all
}

/// An answer of version 2.
fn answer(session: u16, serial: u32, vrps: &[u8], aspas: &[u8]) -> Vec<u8> {
    let (begin, end) = (in_version_2(response(session)), in_version_2(end(session, serial)));
    [begin, in_version_2(vrps.to_vec()), aspas.to_vec(), end].concat()
}

/// The first answer: two ASPAs beside a VRP.
fn first(connection: &mut Connection) {
    assert_eq!(connection.query(), None);
    let aspas = [aspa(64500, &[64502, 64501], true), aspa(64501, &[0], true)].concat();
    connection.send(&answer(7, 1, &origin(vrp(A), true), &aspas));
}

fn next(connection: &mut Connection, serial: u32, vrps: &[u8], aspas: &[u8]) {
    connection.send(&in_version_2(notify(7, serial)));
    assert_eq!(connection.query(), Some((7, serial - 1)));
    connection.send(&answer(7, serial, vrps, aspas));
}

#[test]
fn they_are_replaced_and_withdrawn_with_the_vrps() {
    let cache = Cache::new(vec![Box::new(|mut connection| {
        first(&mut connection);
        // Another list takes the place of the first; the same one again changes nothing.
        let aspas = [aspa(64500, &[64503], true), aspa(64501, &[], false)].concat();
        next(&mut connection, 2, &[], &aspas);
        next(&mut connection, 3, &[], &aspa(64500, &[64503], true));
        next(&mut connection, 4, &origin(vrp(B), true), &[]);
        connection.wait();
    })]);
    let (live, follower) = follow(options(&[&cache]));
    let at = |serial| live.caches()[0].session == Some((7, serial));
    until("the last serial", || at(4));
    assert_eq!(known(&live), [(64500, vec![64503])]);
    let status = &live.caches()[0];
    assert_eq!((status.vrps, status.aspas, status.ignored), (2, 1, 0));
    assert_eq!((status.connections, status.updates), (1, 4), "{:?}", status.trouble);
    assert_eq!(live.current().number, 3, "no set for the answer that changed nothing");
    drop(follower);
    cache.done();
}

#[test]
fn what_did_not_change_is_shared() {
    let (go, wait) = std::sync::mpsc::channel();
    let cache = Cache::new(vec![Box::new(move |mut connection| {
        first(&mut connection);
        wait.recv().unwrap();
        next(&mut connection, 2, &[], &aspa(64502, &[64500], true));
        wait.recv().unwrap();
        next(&mut connection, 3, &origin(vrp(B), true), &[]);
        connection.wait();
    })]);
    let (live, follower) = follow(options(&[&cache]));
    until("the first set", || live.current().number == 1);
    let one = live.current();
    assert_eq!(known(&live), [(64500, vec![64501, 64502]), (64501, vec![0])]);
    go.send(()).unwrap();
    until("an ASPA", || live.current().number == 2);
    let two = live.current();
    assert!(Arc::ptr_eq(one.vrps.as_ref().unwrap(), two.vrps.as_ref().unwrap()));
    go.send(()).unwrap();
    until("a VRP", || live.current().number == 3);
    let three = live.current();
    assert!(Arc::ptr_eq(&two.aspas, &three.aspas));
    assert_eq!((three.aspas.len(), three.vrps.as_ref().unwrap().len()), (3, 2));
    drop(follower);
    cache.done();
}

/// Each ends the connection, leaves VRPs and ASPAs as they were, and is followed by a query for everything.
#[test]
fn answers_that_cannot_be_are_refused() {
    let many: Vec<u32> = (1..=60).collect();
    let lies: Vec<(&str, Vec<u8>, u16)> = vec![
        ("withdraws what is not", aspa(64505, &[], false), 6),
        ("has no providers", aspa(64500, &[], true), 0),
        ("has too many providers", aspa(64500, &many, true), 0),
        ("sends too many", aspa(64500, &many[..30], true).repeat(8), 0),
    ];
    for (what, lie, code) in lies {
        let cache = Cache::new(vec![
            Box::new(move |mut connection| {
                first(&mut connection);
                // A VRP that is good does not come through either.
                next(&mut connection, 2, &origin(vrp(B), true), &lie);
                assert_eq!(connection.error(), Some(code), "{what}");
            }),
            Box::new(|mut connection| {
                first(&mut connection);
                connection.wait();
            }),
        ]);
        let mut options = options(&[&cache]);
        options.most = 50;
        let (live, follower) = follow(options);
        until(what, || {
            live.caches()[0].connections == 2 && live.caches()[0].state == CacheState::Up
        });
        assert_eq!(known(&live), [(64500, vec![64501, 64502]), (64501, vec![0])], "{what}");
        let now = live.current();
        assert_eq!((now.number, now.vrps.as_ref().unwrap().len()), (1, 1), "{what}");
        drop(follower);
        cache.done();
    }
}

/// A cache that sends them in the form of old drafts is asked in the version that has none.
#[test]
fn the_form_of_old_drafts_is_recognized() {
    // Flags and the number of providers are behind the header.
    let old: &[u8] = &[2, 11, 0, 0, 0, 0, 0, 20, 1, 0, 0, 1, 0, 0, 251, 244, 0, 0, 251, 245];
    let cache = Cache::new(vec![
        Box::new(|mut connection| {
            assert_eq!(connection.query(), None);
            connection.send(&answer(7, 1, &origin(vrp(A), true), old));
            connection.wait();
        }),
        Box::new(|mut connection| {
            assert_eq!(connection.query(), None);
            connection.send(&super::whole(7, 1, &[A]));
            connection.wait();
        }),
    ]);
    let (live, follower) = follow(options(&[&cache]));
    until("version 1", || live.caches()[0].state == CacheState::Up);
    assert_eq!((live.caches()[0].vrps, live.caches()[0].aspas), (1, 0));
    drop(follower);
    cache.done();
}

/// They expire with the VRPs, and a cache of version 1, which has none, does not keep those of another.
#[test]
fn they_expire_and_are_not_those_of_another_cache() {
    let cache = Cache::new(vec![
        Box::new(|mut connection| first(&mut connection)),
        Box::new(|_| thread::sleep(Duration::from_millis(1500))),
        Box::new(|mut connection| {
            first(&mut connection);
            connection.wait();
        }),
    ]);
    let mut of = options(&[&cache]);
    of.longest = Duration::from_millis(300);
    let (live, follower) = follow(of);
    until("the ASPAs", || live.current().aspas.len() == 2);
    until("they expire", || live.current().aspas.is_empty());
    assert!(live.current().vrps.is_none());
    assert_eq!(live.caches()[0].aspas, 0);
    until("they come back", || live.current().aspas.len() == 2);
    drop(follower);
    cache.done();

    let newer = Cache::new(vec![Box::new(|mut connection| first(&mut connection)), Box::new(drop)]);
    let older = Cache::new(vec![Box::new(|mut connection| {
        super::first(3, 1, &[B])(&mut connection);
        connection.wait();
    })]);
    let (live, follower) = follow(options(&[&newer, &older]));
    until("the older one", || live.caches()[1].state == CacheState::Up);
    assert!(live.current().aspas.is_empty());
    assert_eq!((live.caches()[1].vrps, live.caches()[1].aspas), (1, 0));
    drop(follower);
    [newer, older].into_iter().for_each(Cache::done);
}
