//! Answers about whole tables, and answers while everything changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fibula_core::AnyPrefix;
use fibula_rib::Rib;
use serde_json::{Value, json};

use crate::common::{Lab, get, length};

#[test]
fn tables_and_their_shapes() {
    let mut lab = Lab::new(|_| {});
    lab.fill(1, 300);
    let mut client = lab.client();
    let tables = get(&mut client, "/v1/table");
    assert_eq!(tables["version"], env!("CARGO_PKG_VERSION"));
    assert!(tables["started"].as_str().unwrap().starts_with("20"));
    for (at, name) in ["bgp", "bgp/100"].into_iter().enumerate() {
        let table = &tables["tables"][at];
        assert_eq!((&table["name"], &table["complete"]), (&json!(name), &json!(true)));
        for (family, is_v4) in [("ipv4", true), ("ipv6", false)] {
            let of_family = |prefix| matches!(prefix, AnyPrefix::V4(_)) == is_v4;
            let prefixes = lab.prefixes(name, of_family);
            let status = &table[family];
            assert_eq!(status["routes"], prefixes.len());
            assert_eq!(
                (&status["failures"], &status["audit"]["differences"]),
                (&json!(0), &json!(0))
            );
            for number in ["generation", "memory_bytes", "changes"] {
                assert!(status[number].as_u64().unwrap() > 0, "{number}: {status}");
            }
            let histogram = get(&mut client, &format!("/v1/histogram?table={name}"));
            let mut lengths = vec![0_u64; if is_v4 { 33 } else { 129 }];
            prefixes.iter().for_each(|prefix| lengths[usize::from(length(*prefix))] += 1);
            assert_eq!(histogram[family], json!(lengths));
        }
    }
    let answer = client.get("/v1/hilbert?table=bgp", &[]).unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 65_536));
    let is_covered = |address: u32| {
        let host = std::net::IpAddr::from(address.to_be_bytes());
        let default = |prefix| length(prefix) == 0;
        !lab.prefixes("bgp", |wide| !default(wide) && crate::common::covers(wide, host.into()))
            .is_empty()
    };
    for block in (0..65_536).step_by(997).chain([0x0a00, 0x0a01, 0x0b00]) {
        let (first, share) = ((block as u32) << 16, answer.body[block]);
        match share {
            0 => assert!(!is_covered(first) && !is_covered(first + 0xffff), "{block}"),
            255 => assert!(is_covered(first) && is_covered(first + 0xffff), "{block}"),
            _ => {}
        }
    }
}

/// The table flips between two states all the time. A client that sends requests all the time sees one state or the
/// other.
#[test]
fn a_frequent_client_sees_only_states_that_existed() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let (client, mut bulk) = (&mut lab.client(), lab.client());
    // Each state is one route, by one update: no other one was ever there.
    let mut states = Vec::new();
    for origin in [64601, 64602] {
        lab.announce("bgp", "10.1.0.0/16", 0, (1, origin));
        let answer = get(client, "/v1/lookup/10.1.2.3");
        states.push(answer["tables"][0]["covering"].clone());
    }
    assert_ne!(states[0], states[1]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let done = &done;
        let flips = scope.spawn(|| {
            let mut flips = 0;
            while !done.load(Ordering::Relaxed) {
                lab.announce("bgp", "10.1.0.0/16", 0, (1, 64601 + flips % 2));
                flips += 1;
            }
            flips
        });
        let whole = scope.spawn(move || {
            // Rows of one answer are all of one state.
            let body = "10.1.2.3\n".repeat(2000);
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let path = "/v1/lookup?table=bgp&add=prefix,origin_as";
                let answer = bulk.post(path, "text/plain", body.clone()).unwrap();
                assert_eq!(answer.status, 200);
                let text = String::from_utf8(answer.body.to_vec()).unwrap();
                let first = text.lines().next().unwrap();
                let known = ["10.1.2.3\t10.1.0.0/16\t64601", "10.1.2.3\t10.1.0.0/16\t64602"];
                assert!(known.contains(&first), "{first}");
                assert!(text.lines().all(|line| line == first));
                seen += text.lines().count();
            }
            seen
        });
        let mut seen = [0, 0];
        for _ in 0..1500 {
            let answer = get(client, "/v1/lookup/10.1.2.3");
            let covering = &answer["tables"][0]["covering"];
            let state = states.iter().position(|state| state == covering);
            seen[state.unwrap_or_else(|| panic!("was at no time: {covering}"))] += 1;
            assert_eq!(answer["tables"][0]["match"], covering[0]);
        }
        done.store(true, Ordering::Relaxed);
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
        assert!(flips.join().unwrap() > 100);
        assert!(whole.join().unwrap() >= 2000);
    });
}

/// A copy of a table is shared while nothing changes, and a new copy includes the changes.
#[test]
fn copies_follow_the_table() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let mut client = lab.client();
    let ask = |client: &mut fibula_server::client::Client| {
        let answer = client.post("/v1/lookup?add=prefix", "text/plain", "11.0.0.1\n").unwrap();
        let generation =
            answer.headers["fibula-generation"].to_str().unwrap().parse::<u64>().unwrap();
        (generation, String::from_utf8(answer.body.to_vec()).unwrap())
    };
    let (first, text) = ask(&mut client);
    assert_eq!((first, &*text), (lab.live.with_rib(Rib::sequence), "11.0.0.1\t\n"));
    lab.announce("bgp", "11.0.0.0/8", 0, (1, 64600));
    // The answer may come from the old copy for a second, and then from a new one.
    let begin = std::time::Instant::now();
    loop {
        let (generation, text) = ask(&mut client);
        if generation > first {
            assert_eq!(text, "11.0.0.1\t11.0.0.0/8\n");
            break;
        }
        assert_eq!(text, "11.0.0.1\t\n");
        assert!(begin.elapsed().as_secs() < 20, "the copy is never renewed");
        thread::sleep(crate::common::MS * 50);
    }
    let value: Value = get(&mut client, "/v1/histogram");
    assert_eq!(value["ipv4"][8], 2);
}
