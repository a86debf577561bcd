//! Routes by origin, community and AS path, in pages, compared with a reading of the whole table.

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Prefix, Update};
use fibula_server::api::Filtered;
use fibula_server::client::query;

use crate::common::{Lab, PEERS, get, refusal};

/// A table of routes with communities: large ones and small ones, a few for each origin.
fn lab() -> Lab {
    let mut lab = Lab::new(|_| {});
    lab.fill(5, 6000);
    for at in 0..5000_u32 {
        let prefix = match at % 3 {
            0 => format!("2001:db8:{at:x}::/48"),
            _ => format!("10.{}.{}.0/24", at >> 8, at & 255),
        };
        let communities = format!("64500:{} 64500:1:{}", at % 7, at % 11);
        let as_path = format!("64500 {} {}", 1 + at % 5, 64600 + at % 13);
        let bgp = BgpAttributes {
            origin_as: Some(64600 + at % 13),
            as_path_len: 3,
            as_path: &as_path,
            communities: &communities,
            ..BgpAttributes::default()
        };
        let change = Change::Announce(Attributes::Bgp(&bgp));
        let (vrf, peer) = (at % 2, lab.peers[(at % PEERS) as usize]);
        let prefix: AnyPrefix = prefix.parse().unwrap();
        lab.live.apply(&Update { vrf, peer, ..Update::new(prefix, change) }).unwrap();
    }
    lab.live.flush().unwrap();
    lab
}

/// All best routes that a function wants, in the order of answers.
fn expected(lab: &Lab, wants: impl Fn(&BgpAttributes<'_>) -> bool) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (vrf, table) in [(0, "bgp"), (1, "bgp/100")] {
        lab.live.with_rib(|rib| {
            let mut add = |prefix: AnyPrefix, set: &fibula_rib::AttributeSet| {
                if wants(&set.bgp().unwrap()) {
                    all.push((table.to_owned(), prefix.to_string()));
                }
            };
            for (prefix, path) in rib.covered::<u32>(vrf, Prefix::ALL) {
                add(prefix.into(), &path.attributes);
            }
            for (prefix, path) in rib.covered::<u128>(vrf, Prefix::ALL) {
                add(prefix.into(), &path.attributes);
            }
        });
    }
    all
}

/// The pages of an answer, one after the other.
fn pages(lab: &Lab, parameters: &[(&str, Option<&str>)], limit: usize) -> Vec<(String, String)> {
    let (mut client, mut all, mut after) = (lab.client(), Vec::new(), None::<String>);
    loop {
        let text = limit.to_string();
        let more = [("limit", Some(&*text)), ("after", after.as_deref())];
        let path = format!("/v1/filter{}", query(&[parameters, &more].concat()));
        let page: Filtered = client.json(&path).unwrap();
        assert!(page.routes.len() <= limit && page.read >= page.routes.len() as u64, "{path}");
        all.extend(page.routes.into_iter().map(|found| (found.table, found.route.prefix)));
        match page.next {
            Some(next) => assert_ne!(after.replace(next.clone()), Some(next), "{path}: it goes on"),
            None => return all,
        }
    }
}

/// Parameters of a request, and what they want.
type Case<'a> = (&'a [(&'a str, Option<&'a str>)], &'a dyn Fn(&BgpAttributes<'_>) -> bool);

#[test]
fn pages_have_what_the_whole_table_has() {
    let lab = lab();
    let has = |text: &str, word: &str| text.split(' ').any(|part| part == word);
    let cases: [Case<'_>; 7] = [
        (&[], &|_| true),
        (&[("origin_as", Some("64603"))], &|bgp| bgp.origin_as == Some(64603)),
        (&[("community", Some("64500:3"))], &|bgp| has(bgp.communities, "64500:3")),
        (&[("community", Some("64500:1:*,64500:2"))], &|bgp| !bgp.communities.is_empty()),
        (&[("path_regex", Some("_2_"))], &|bgp| has(bgp.as_path, "2")),
        (&[("path_regex", Some("^64500_3 64604$"))], &|bgp| bgp.as_path == "64500 3 64604"),
        (
            &[
                ("origin_as", Some("64604")),
                ("community", Some("64500:1:4")),
                ("path_regex", Some("^64500_")),
            ],
            &|bgp| bgp.origin_as == Some(64604) && has(bgp.communities, "64500:1:4"),
        ),
    ];
    for (parameters, wants) in cases {
        let expected = expected(&lab, wants);
        assert!(expected.len() > 10, "{parameters:?}: {}", expected.len());
        for limit in [7, 100, 1000] {
            if expected.len() / limit > 100 {
                continue;
            }
            assert_eq!(pages(&lab, parameters, limit), expected, "{parameters:?} by {limit}");
        }
        let one: Vec<_> =
            expected.iter().filter(|(table, _)| table == "bgp/100").cloned().collect();
        let of_table = [parameters, &[("table", Some("bgp/100"))]].concat();
        assert_eq!(pages(&lab, &of_table, 1000), one, "{parameters:?} of one table");
    }
    let none = pages(&lab, &[("community", Some("65000:*"))], 10);
    assert_eq!(none, []);
    // A route as other answers have it.
    let mut client = lab.client();
    let found = get(&mut client, "/v1/filter?community=64500:1:4&limit=1");
    let route = &found["routes"][0]["route"];
    let prefix = route["prefix"].as_str().unwrap();
    let address = prefix.split('/').next().unwrap();
    let looked_up = get(&mut client, &format!("/v1/lookup/{address}?table=bgp"));
    let all = looked_up["tables"][0]["covering"].as_array().unwrap();
    assert!(all.contains(route), "{route} in {looked_up}");
}

/// All routes of a peer with their places among the paths of their prefixes, in the order of answers.
fn of_peer(lab: &Lab, peer: u32) -> Vec<(String, String, bool)> {
    let mut all = Vec::new();
    for (vrf, table) in [(0, "bgp"), (1, "bgp/100")] {
        lab.live.with_rib(|rib| {
            let mut add = |prefix: AnyPrefix, paths: Vec<fibula_rib::Path>| {
                if let Some(place) = paths.iter().position(|path| path.peer == peer) {
                    all.push((table.to_owned(), prefix.to_string(), place == 0));
                }
            };
            for (prefix, _) in rib.covered::<u32>(vrf, Prefix::ALL) {
                add(prefix.into(), rib.paths(vrf, prefix));
            }
            for (prefix, _) in rib.covered::<u128>(vrf, Prefix::ALL) {
                add(prefix.into(), rib.paths(vrf, prefix));
            }
        });
    }
    all
}

#[test]
fn a_peer_has_all_its_routes() {
    let lab = lab();
    let mut client = lab.client();
    for &peer in &lab.peers {
        let expected = of_peer(&lab, peer);
        let best = expected.iter().filter(|(.., best)| *best).count();
        assert!(best > 10 && best + 10 < expected.len(), "{best} of {}", expected.len());
        let number = peer.to_string();
        let plain: Vec<_> =
            expected.iter().map(|(table, prefix, _)| (table.clone(), prefix.clone())).collect();
        for limit in [100, 1000] {
            assert_eq!(pages(&lab, &[("peer", Some(&number))], limit), plain, "{peer} by {limit}");
        }
        let page: Filtered =
            client.json(&format!("/v1/filter?peer={peer}&limit=1000&table=bgp")).unwrap();
        for (found, (_, prefix, best)) in page.routes.iter().zip(&expected) {
            assert_eq!(
                (&found.route.prefix, found.best, found.route.peer.id),
                (prefix, *best, peer)
            );
        }
        let of_one = pages(&lab, &[("peer", Some(&number)), ("origin_as", Some("64603"))], 1000);
        assert!(!of_one.is_empty() && of_one.len() < plain.len());
    }
}

#[test]
fn filters_that_are_none_are_refused() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let mut client = lab.client();
    let long = "a".repeat(1001);
    for (parameters, status, part) in [
        (("community", "64500"), 400, "a community is 64500:1"),
        (("community", "64500:1,"), 400, "a community is 64500:1"),
        (("path_regex", "("), 400, "path_regex"),
        (("path_regex", "(?:[0-9]{99}){999}"), 400, "path_regex"),
        (("path_regex", &long), 400, "at most 1000 bytes"),
        (("origin_as", "4294967296"), 400, "not a number from 0 to 4294967295"),
        (("limit", "1001"), 400, "not a number from 1 to 1000"),
        (("after", "10.0.0.0/8"), 400, "`next` in the previous answer"),
        (("after", "bgp,x"), 400, "is not a prefix"),
        (("after", "other,10.0.0.0/8"), 404, "no table \"other\""),
        (("table", "other"), 404, "no table \"other\""),
        (("peer", "4000000000"), 404, "no peer has the number 4000000000"),
    ] {
        let path = format!("/v1/filter{}", query(&[(parameters.0, Some(parameters.1))]));
        let (found, text) = refusal(&client.get(&path, &[]).unwrap());
        assert!(found == status && text.contains(part), "{path}: {found} {text}");
    }
}
