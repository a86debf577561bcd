//! Changes of best routes: past ones, and those that arrive during reading.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fibula_core::{Attributes, BgpAttributes, Change, Update};
use fibula_feeds::{SourceState, SourceStatus};
use fibula_rib::FeedEvent;
use fibula_rpki::{LiveVrps, Vrp, Vrps};
use fibula_server::api::{self, Lost};
use fibula_server::client::ChangeEvent;
use serde_json::{Value, json};

use crate::common::{Lab, attributes_json, get, peer_json};
use crate::health::source;

/// A change without what depends on the time.
fn bare(change: &Value) -> Value {
    let mut change = change.clone();
    let object = change.as_object_mut().unwrap();
    let time = object.remove("time").unwrap();
    let time = time.as_str().unwrap();
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    object.remove("id").unwrap();
    change
}

fn announced(table: &str, prefix: &str, peer: u32, path: (u32, u32)) -> Value {
    json!({
        "table": table, "prefix": prefix, "peer": peer_json(peer),
        "attributes": attributes_json(peer, path),
    })
}

fn gone(table: &str, prefix: &str) -> Value {
    json!({ "table": table, "prefix": prefix, "peer": null, "attributes": null })
}

/// Changes with long attributes come in order and complete, in events that are written as the reader takes them.
#[test]
fn long_attributes_come_in_parts() {
    let lab = Lab::new(|_| {});
    let mut stream = TcpStream::connect(lab.address()).unwrap();
    stream.write_all(b"GET /v1/changes HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with(": changes")));
    let communities = "64500:1 ".repeat(5000);
    let bgp = BgpAttributes { communities: &communities, ..BgpAttributes::default() };
    for number in 0..200_u8 {
        let prefix = format!("10.{number}.0.0/16").parse().unwrap();
        let change = Change::Announce(Attributes::Bgp(&bgp));
        let (vrf, peer) = (lab.live.vrf("bgp"), lab.peers[0]);
        lab.live.apply(&Update { vrf, peer, ..Update::new(prefix, change) }).unwrap();
    }
    let mut changes = lines.filter(|line| line.starts_with("data: "));
    for number in 0..200 {
        let change: Value = serde_json::from_str(&changes.next().unwrap()[6..]).unwrap();
        assert_eq!(change["prefix"], format!("10.{number}.0.0/16"));
        assert_eq!(change["attributes"]["communities"].as_str().unwrap().len(), communities.len());
    }
}

/// What a session sends while it starts over is marked, and so is what it takes with it. VRPs give the validity.
#[test]
fn changes_say_whether_they_are_news() {
    let vrps = Arc::new(LiveVrps::default());
    let shared = Arc::clone(&vrps);
    let mut lab = Lab::new(|options| options.vrps = Some(shared));
    let session = |state| SourceStatus { name: "bmp 10.9.9.9".to_owned(), ..source(state) };
    let mut stream = TcpStream::connect(lab.address()).unwrap();
    stream.write_all(b"GET /v1/changes HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with(": changes")));
    let mut changes = lines.filter(|line| line.starts_with("data: "));
    let mut next = || {
        let change: api::Change = serde_json::from_str(&changes.next().unwrap()[6..]).unwrap();
        assert!(change.micros().is_some_and(|micros| micros > 1_700_000_000_000_000));
        (change.resent, change.validity)
    };
    lab.board.set(session(SourceState::Resync));
    lab.announce("bgp", "10.0.0.0/8", 1, (3, 64600));
    assert_eq!(next(), (true, None));
    lab.board.set(session(SourceState::Up));
    let vrp = Vrp::new("10.0.0.0/8".parse().unwrap(), 8, 64600).unwrap();
    vrps.replace(Some(Vrps::new([vrp])), []);
    lab.announce("bgp", "10.0.0.0/8", 1, (2, 64600));
    assert_eq!(next(), (false, Some("valid".to_owned())));
    lab.announce("bgp", "10.0.0.0/8", 1, (2, 64601));
    assert_eq!(next(), (false, Some("invalid-origin".to_owned())));
    lab.live.event(FeedEvent::Down(lab.peers[1])).unwrap();
    assert_eq!(next(), (true, None));
}

/// A reader of a table's changes goes on when the table was given up and comes back, which gives it another number.
#[test]
fn a_reader_outlives_its_table() {
    let lab = Lab::new(|_| {});
    let apply = |change: Change<'_>| {
        let vrf = lab.live.name_vrf("bgp/200");
        let update = Update::new("10.0.0.0/8".parse().unwrap(), change);
        lab.live.apply(&Update { vrf, peer: lab.peers[0], ..update }).unwrap();
        vrf
    };
    let announce = Change::Announce(Attributes::Bgp(&BgpAttributes::default()));
    let first = apply(announce);
    let mut stream = TcpStream::connect(lab.address()).unwrap();
    stream.write_all(b"GET /v1/changes?table=bgp/200 HTTP/1.0\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with(": changes")));
    let mut changes = lines.filter(|line| line.starts_with("data: "));
    for _ in 0..2 {
        let given_up = apply(Change::Withdraw);
        lab.live.flush().unwrap();
        assert!(lab.live.tidy() && !lab.live.tidy() && lab.live.forget_vrf(given_up));
        assert_ne!(apply(announce), first);
        for is_announced in [false, true] {
            let change: Value = serde_json::from_str(&changes.next().unwrap()[6..]).unwrap();
            assert_eq!(change["attributes"].is_object(), is_announced, "{change}");
        }
    }
}

#[test]
fn the_past_is_filtered_and_newest_first() {
    let mut lab = Lab::new(|_| {});
    let mut client = lab.client();
    assert_eq!(get(&mut client, "/v1/history"), json!({ "changes": [] }));
    lab.announce("bgp", "10.0.0.0/8", 1, (3, 64600));
    lab.announce("bgp/100", "10.1.0.0/16", 0, (2, 64601));
    lab.announce("bgp", "10.0.0.0/8", 0, (5, 64602)); // not the best: no change
    lab.announce("bgp", "10.0.0.0/8", 2, (1, 64601));
    lab.announce("bgp", "2001:db8::/32", 1, (1, 64600));
    lab.withdraw("bgp/100", "10.1.0.0/16", 0);
    // Each of these but the last one is a change to the path of another AS.
    lab.withdraw("bgp", "10.0.0.0/8", 2);
    for peer in [1, 0] {
        lab.withdraw("bgp", "10.0.0.0/8", peer);
    }
    let all = [
        gone("bgp", "10.0.0.0/8"),
        announced("bgp", "10.0.0.0/8", 0, (5, 64602)),
        announced("bgp", "10.0.0.0/8", 1, (3, 64600)),
        gone("bgp/100", "10.1.0.0/16"),
        announced("bgp", "2001:db8::/32", 1, (1, 64600)),
        announced("bgp", "10.0.0.0/8", 2, (1, 64601)),
        announced("bgp/100", "10.1.0.0/16", 0, (2, 64601)),
        announced("bgp", "10.0.0.0/8", 1, (3, 64600)),
    ];
    for (query, expected) in [
        ("", &[0, 1, 2, 3, 4, 5, 6, 7][..]),
        ("?limit=2", &[0, 1]),
        ("?table=bgp", &[0, 1, 2, 4, 5, 7]),
        ("?prefix=10.0.0.0/8", &[0, 1, 2, 3, 5, 6, 7]),
        ("?prefix=10.0.0.0/8&view=covered", &[0, 1, 2, 3, 5, 6, 7]),
        ("?prefix=10.0.0.0/8&view=exact", &[0, 1, 2, 5, 7]),
        ("?prefix=10.1.0.0/16", &[3, 6]),
        ("?prefix=::/0", &[4]),
        ("?peer=1", &[2, 4, 7]),
        ("?origin_as=64600", &[2, 4, 7]),
        ("?origin_as=64601", &[3, 5, 6]),
        ("?origin_as=64601&table=bgp", &[5]),
        ("?origin_as=64602", &[0, 1]),
    ] {
        let answer = get(&mut client, &format!("/v1/history{query}"));
        let changes = answer["changes"].as_array().unwrap();
        let found: Vec<_> = changes.iter().map(bare).collect();
        let expected: Vec<_> = expected.iter().map(|&at: &usize| all[at].clone()).collect();
        assert_eq!(found, expected, "{query}");
        assert!(changes.is_sorted_by(|a, b| a["id"].as_u64() > b["id"].as_u64()));
    }
    let tables = get(&mut client, "/v1/table");
    let newest = get(&mut client, "/v1/history?limit=1&table=bgp")["changes"][0]["time"].clone();
    assert_eq!(
        (&tables["tables"][0]["name"], &tables["tables"][0]["newest_change"]),
        (&json!("bgp"), &newest)
    );
}

/// Reads events on a thread of its own, until `count` changes have come.
fn watch(
    lab: &Lab,
    query: &str,
    last: Option<u64>,
    count: usize,
) -> thread::JoinHandle<(Vec<api::Change>, Vec<Lost>)> {
    let (mut client, query) = (lab.client(), query.to_owned());
    let before = lab.watched();
    let reader = thread::spawn(move || {
        let (mut changes, mut lost) = (Vec::new(), Vec::new());
        let watched = client.watch(&query, last, |event| {
            match event {
                ChangeEvent::Change(change) => changes.push(*change),
                ChangeEvent::Lost(more) => lost.push(more),
            }
            changes.len() < count
        });
        watched.unwrap();
        (changes, lost)
    });
    while lab.watched() == before && !reader.is_finished() {
        thread::sleep(Duration::from_millis(1));
    }
    reader
}

impl Lab {
    /// Number of clients that began to read changes, from the server's metrics.
    fn watched(&self) -> Option<String> {
        let metrics = self.client().get("/metrics", &[]).unwrap().body;
        let text = String::from_utf8(metrics.to_vec()).unwrap();
        let count = text.lines().find(|line| line.contains("\"/v1/changes\",status=\"2xx\""));
        count.map(str::to_owned)
    }
}

/// While routes change all the time, three readers, one of which disconnects and continues, each see each change once,
/// in order.
#[test]
fn no_change_is_lost_or_doubled_under_churn() {
    const CHANGES: usize = 3000;
    let mut lab = Lab::with_history(4 * CHANGES, |_| {});
    lab.announce("bgp", "192.0.2.0/24", 0, (1, 1));
    let first = get(&mut lab.client(), "/v1/history")["changes"][0]["id"].as_u64().unwrap();
    let all = watch(&lab, "", None, CHANGES);
    let evens = watch(&lab, "?prefix=10.0.0.0/8", None, CHANGES / 2);
    let broken = watch(&lab, "", None, CHANGES / 10);
    for step in 0..CHANGES {
        // Each update changes the best route: two prefixes take turns, with a new path each time.
        let prefix = ["10.1.0.0/16", "11.0.0.0/8"][step % 2];
        lab.announce("bgp", prefix, 0, (1, step as u32 + 10));
    }
    let (begun, _) = broken.join().unwrap();
    let last = begun.last().unwrap().id;
    let (rest, lost) = watch(&lab, "", Some(last), CHANGES - CHANGES / 10).join().unwrap();
    assert_eq!(lost, []);
    let (all, lost) = all.join().unwrap();
    assert_eq!(lost, []);
    let ids = |changes: &[api::Change]| changes.iter().map(|change| change.id).collect::<Vec<_>>();
    let expected: Vec<u64> = (first + 1..).take(CHANGES).collect();
    assert_eq!(ids(&all), expected);
    assert_eq!(ids(&[begun, rest].concat()), expected);
    for (step, change) in all.iter().enumerate() {
        assert_eq!(change.prefix, ["10.1.0.0/16", "11.0.0.0/8"][step % 2]);
        let Some(api::Attributes::Bgp(bgp)) = &change.attributes else { panic!("{change:?}") };
        assert_eq!(bgp.origin_as, Some(step as u32 + 10));
    }
    let (evens, _) = evens.join().unwrap();
    assert_eq!(ids(&evens), expected.iter().copied().step_by(2).collect::<Vec<_>>());
}

#[test]
fn a_returning_reader_continues_or_learns_how_many_changes_it_missed() {
    let mut lab = Lab::with_history(10, |_| {});
    for asn in 0..5 {
        lab.announce("bgp", "10.0.0.0/8", 0, (1, asn));
    }
    let changes = get(&mut lab.client(), "/v1/history")["changes"].clone();
    let id = |at: usize| changes[at]["id"].as_u64().unwrap();
    let (seen, lost) = watch(&lab, "", Some(id(2)), 2).join().unwrap();
    assert_eq!((seen.iter().map(|c| c.id).collect::<Vec<_>>(), lost), (vec![id(1), id(0)], vec![]));
    let (seen, _) = watch(&lab, &format!("?since={}", id(1)), None, 1).join().unwrap();
    assert_eq!(seen[0].id, id(0));
    // A reader that was away for too long.
    for asn in 0..30 {
        lab.announce("bgp", "10.0.0.0/8", 0, (2, asn));
    }
    let (seen, lost) = watch(&lab, "", Some(id(0)), 10).join().unwrap();
    assert_eq!((seen[0].id, lost), (id(0) + 21, vec![Lost { lost: Some(20) }]));
    // Ids of an earlier start of the server, and ids that never existed.
    for unknown in [1, id(0) + 1000] {
        let (seen, lost) = watch(&lab, "", Some(unknown), 10).join().unwrap();
        assert_eq!((seen[0].id, lost), (id(0) + 21, vec![Lost { lost: None }]), "{unknown}");
    }
}

/// Reads events like a browser.
#[test]
fn events_are_lines_as_browsers_read_them() {
    let mut lab = Lab::new(|_| {});
    let mut stream = TcpStream::connect(lab.address()).unwrap();
    stream
        .write_all(
            b"GET /v1/changes HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n",
        )
        .unwrap();
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let next = |begin: &str| loop {
        let line = lines.recv_timeout(Duration::from_secs(20)).unwrap();
        if line.starts_with(begin) {
            return line;
        }
    };
    next("HTTP/1.1 200 OK");
    assert_eq!(next("content-type"), "content-type: text/event-stream");
    next(": changes");
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let id = next("id: ");
    assert_eq!(next("event"), "event: change");
    let data: Value = serde_json::from_str(next("data: ").strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(format!("id: {}", data["id"]), id);
    assert_eq!(bare(&data), announced("bgp", "10.0.0.0/8", 0, (1, 64600)));
}

/// A reader that takes nothing blocks no other reader, and needs no memory: it gets the number of lost changes.
#[test]
fn a_slow_reader_loses_changes_and_is_notified() {
    let mut lab = Lab::with_history(100, |_| {});
    let (first, hold) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    let mut client = lab.client();
    let reader = thread::spawn(move || {
        let (mut changes, mut lost) = (Vec::new(), 0);
        let done = client.watch("", None, |event| {
            match event {
                ChangeEvent::Change(change) => {
                    if changes.is_empty() {
                        first.0.send(()).unwrap();
                        hold.1.recv().unwrap();
                    }
                    changes.push(change.id);
                }
                ChangeEvent::Lost(more) => lost += more.lost.unwrap(),
            }
            changes.last().is_none_or(|last| last - changes[0] < 60_000)
        });
        done.unwrap();
        (changes, lost)
    });
    let mut sent = 0;
    let mut announce = |count: u32| {
        for _ in 0..count {
            sent += 1;
            lab.announce("bgp", "10.0.0.0/8", 0, (1, sent));
        }
    };
    while first.1.try_recv().is_err() {
        announce(1);
        thread::sleep(Duration::from_millis(1));
    }
    // More than all buffers between the two hold: 60,000 changes are 20 MB.
    announce(60_000);
    hold.0.send(()).unwrap();
    while !reader.is_finished() {
        announce(1);
        thread::sleep(Duration::from_millis(1));
    }
    let (changes, lost) = reader.join().unwrap();
    assert!(changes.is_sorted_by(|a, b| a < b));
    assert!(lost > 0);
    let span = changes.last().unwrap() - changes[0] + 1;
    assert_eq!(changes.len() as u64 + lost, span, "each change came, or was counted");
}
