//! Answers about prefixes and addresses, against the plain map.

use std::net::IpAddr;

use fibula_core::AnyPrefix;
use fibula_rib::FeedEvent;
use fibula_testkit::Rng;
use serde_json::{Value, json};

use crate::common::{Lab, PEERS, attributes_json, covers, get, length, peer_json, random_prefix};

/// The route of a prefix, as the API has it.
fn route(lab: &Lab, table: &'static str, prefix: AnyPrefix) -> Value {
    let (peer, path) = lab.paths(table, prefix)[0];
    json!({
        "prefix": prefix.to_string(), "peer": peer_json(peer), "path_id": 0,
        "attributes": attributes_json(peer, path),
    })
}

fn covering(lab: &Lab, table: &str, prefix: AnyPrefix) -> Vec<AnyPrefix> {
    let mut found = lab.prefixes(table, |wide| covers(wide, prefix));
    found.sort_by_key(|prefix| std::cmp::Reverse(length(*prefix)));
    found
}

fn lookup(lab: &Lab, address: IpAddr, tables: &[&'static str]) -> Value {
    let sequence = lab.live.with_rib(fibula_rib::Rib::sequence);
    let of_table = |table: &&'static str| {
        let host = AnyPrefix::host(address).unmapped();
        let found = covering(lab, table, host);
        let routes: Vec<_> = found.iter().map(|prefix| route(lab, table, *prefix)).collect();
        json!({
            "table": table, "sequence": sequence, "match": routes.first(), "covering": routes,
        })
    };
    json!({
        "address": address.to_string(),
        "tables": tables.iter().map(of_table).collect::<Vec<_>>(),
    })
}

#[test]
fn addresses_have_all_covering_routes() {
    let mut lab = Lab::new(|_| {});
    let mut client = lab.client();
    assert_eq!(get(&mut client, "/v1/lookup/10.0.0.1")["tables"], json!([]));
    lab.fill(1, 300);
    let mut rng = Rng::new(2);
    for _ in 0..150 {
        let address = match random_prefix(&mut rng) {
            AnyPrefix::V4(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
            AnyPrefix::V6(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
        };
        let answer = get(&mut client, &format!("/v1/lookup/{address}"));
        assert_eq!(answer, lookup(&lab, address, &lab.tables()), "{address}");
        if let IpAddr::V4(v4) = address {
            let mapped = get(&mut client, &format!("/v1/lookup/{}", v4.to_ipv6_mapped()));
            assert_eq!(mapped["tables"], answer["tables"]);
        }
        let answer = get(&mut client, &format!("/v1/lookup/{address}?table=bgp%2F100"));
        assert_eq!(answer, lookup(&lab, address, &["bgp/100"]));
    }
    let typed = client.lookup("10.0.0.1".parse().unwrap(), Some("bgp")).unwrap();
    assert_eq!(typed.tables.len(), 1);
    assert_eq!(serde_json::to_value(&typed).unwrap(), lookup(&lab, typed.address, &["bgp"]));
}

fn routes(lab: &Lab, table: &'static str, prefix: AnyPrefix) -> Value {
    let paths = lab.paths(table, prefix);
    let (_, (best, _)) = paths[0];
    let path = |(at, (peer, path)): (usize, &(u32, (u32, u32)))| {
        let by = if path.0 > best { "AS path length" } else { "peer order" };
        json!({
            "peer": peer_json(*peer), "path_id": 0, "attributes": attributes_json(*peer, *path),
            "best": at == 0, "lost_by": (at > 0).then_some(by),
        })
    };
    Value::from(paths.iter().enumerate().map(path).collect::<Vec<_>>())
}

#[test]
fn prefixes_have_all_paths_and_reasons() {
    let mut lab = Lab::new(|_| {});
    lab.fill(3, 400);
    let mut client = lab.client();
    let mut rng = Rng::new(4);
    for _ in 0..60 {
        let prefix = random_prefix(&mut rng);
        for (view, limit) in [("exact", 100), ("covering", 100), ("covered", 100), ("covered", 3)] {
            let path = format!("/v1/routes/{prefix}?view={view}&limit={limit}");
            let answer = get(&mut client, &path);
            assert_eq!(
                (&answer["prefix"], &answer["view"]),
                (&json!(prefix.to_string()), &json!(view))
            );
            for (at, table) in lab.tables().into_iter().enumerate() {
                let mut expected = match view {
                    "exact" => lab.prefixes(table, |known| known == prefix),
                    "covering" => covering(&lab, table, prefix),
                    _ => lab.prefixes(table, |narrow| covers(prefix, narrow)),
                };
                let found = &answer["tables"][at];
                assert_eq!(found["table"], table);
                assert_eq!(found["truncated"], expected.len() > limit, "{path}");
                expected.truncate(limit);
                let found = found["routes"].as_array().unwrap();
                assert_eq!(found.len(), expected.len(), "{path}");
                for (found, prefix) in found.iter().zip(expected) {
                    assert_eq!(found["prefix"], prefix.to_string(), "{path}");
                    assert_eq!(found["paths"], routes(&lab, table, prefix));
                    let why = found["why"].as_str().unwrap();
                    let (best, _) = lab.paths(table, prefix)[0];
                    assert!(
                        why.contains(&format!(
                            "AS{} of bmp 10.9.9.9 has the best path",
                            64500 + best
                        )),
                        "{why}"
                    );
                }
            }
        }
    }
    // An address is its host route; slashes may be escaped.
    let prefix =
        lab.prefixes("bgp", |prefix| matches!(prefix, AnyPrefix::V4(p) if p.len() == 8))[0];
    let escaped =
        get(&mut client, &format!("/v1/routes/{}", prefix.to_string().replace('/', "%2F")));
    assert_eq!(escaped, get(&mut client, &format!("/v1/routes/{prefix}")));
    assert_eq!(get(&mut client, "/v1/routes/10.0.0.1")["prefix"], "10.0.0.1/32");
    assert_eq!(get(&mut client, "/v1/routes/::ffff:10.0.0.0/104")["prefix"], "10.0.0.0/8");
}

#[test]
fn peers_have_their_counts() {
    let mut lab = Lab::new(|_| {});
    lab.fill(5, 300);
    let mut client = lab.client();
    let answer = get(&mut client, "/v1/peers");
    for number in 0..PEERS {
        let count = |is_v4: bool| {
            let of_family = lab
                .announced
                .iter()
                .filter(|((_, prefix), _)| matches!(prefix, AnyPrefix::V4(_)) == is_v4);
            of_family.filter(|(_, paths)| paths.contains_key(&number)).count()
        };
        let mut expected = peer_json(number);
        expected["routes"] = json!({ "ipv4": count(true), "ipv6": count(false) });
        let best = |is_v4: bool| {
            let of_family = lab
                .announced
                .keys()
                .filter(|(_, prefix)| matches!(prefix, AnyPrefix::V4(_)) == is_v4);
            of_family.filter(|(table, prefix)| lab.paths(table, *prefix)[0].0 == number).count()
        };
        expected["best"] = json!({ "ipv4": best(true), "ipv6": best(false) });
        expected["state"] = json!("up");
        expected["until"] = json!(null);
        assert_eq!(answer["peers"][number as usize], expected);
    }
    lab.live.event(FeedEvent::MarkStale(lab.peers[0])).unwrap();
    lab.live.event(FeedEvent::Down(lab.peers[1])).unwrap();
    let answer = get(&mut client, "/v1/peers");
    let states: Vec<_> = (0..3).map(|at| answer["peers"][at]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["resync", "down", "up"]);
    assert_eq!(answer["peers"][1]["routes"], json!({ "ipv4": 0, "ipv6": 0 }));
    assert_eq!(answer["sources"], json!([]));
}

#[test]
fn texts_are_addresses_prefixes_systems_or_peers() {
    let mut lab = Lab::new(|_| {});
    lab.fill(6, 300);
    let mut client = lab.client();
    let address = get(&mut client, "/v1/search?q=%20193.0.6.139");
    assert_eq!(
        address,
        json!({ "q": "193.0.6.139", "is": "address", "address": "193.0.6.139", "truncated": false })
    );
    let prefix = get(&mut client, "/v1/search?q=::ffff:10.0.0.0/104");
    assert_eq!((&prefix["is"], &prefix["prefix"]), (&json!("prefix"), &json!("10.0.0.0/8")));
    assert_eq!(get(&mut client, "/v1/search?q=nobody")["is"], "nothing");

    let peer = get(&mut client, "/v1/search?q=10.0.0.2)");
    assert_eq!((&peer["is"], &peer["peers"][0]["id"]), (&json!("peer"), &json!(1)));
    assert_eq!(peer["peers"].as_array().unwrap().len(), 1);
    let all = get(&mut client, "/v1/search?q=BMP&limit=2");
    assert_eq!((all["peers"].as_array().unwrap().len(), &all["truncated"]), (2, &json!(true)));

    for asn in [64600, 64604, 64999] {
        let answer = get(&mut client, &format!("/v1/search?q=AS{asn}"));
        assert_eq!((&answer["is"], &answer["asn"]), (&json!("as"), &json!(asn)));
        let mut expected = Vec::new();
        for table in lab.tables() {
            let is_origin = |prefix| lab.paths(table, prefix)[0].1.1 == asn;
            let prefixes = lab.prefixes(table, is_origin);
            if prefixes.is_empty() {
                continue;
            }
            let v4 = prefixes.iter().filter(|prefix| matches!(prefix, AnyPrefix::V4(_))).count();
            let texts: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
            expected.push(json!({
                "table": table, "routes": { "ipv4": v4, "ipv6": prefixes.len() - v4 }, "prefixes": texts,
            }));
        }
        let origins = answer.get("origins").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(origins, Value::from(expected));
        let limited = get(&mut client, &format!("/v1/search?q=as{asn}&limit=1"));
        assert_eq!(limited["truncated"], asn < 64900);
    }
    let of_peer = get(&mut client, "/v1/search?q=64501");
    assert_eq!((&of_peer["is"], &of_peer["peers"][0]["id"]), (&json!("as"), &json!(1)));
}
