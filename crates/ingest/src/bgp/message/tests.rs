use super::*;
use crate::Collected;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (HEADER + body.len()) as u16;
    [&[0xff; 16][..], &len.to_be_bytes(), &[kind], body].concat()
}

fn decode(message: &[u8], from: PeerEncoding) -> (Result<Message, DecodeFault>, Vec<String>) {
    let mut sink = Collected::default();
    let result = Messages::default().decode(message, from, 7, &mut sink);
    (result, sink.lines)
}

#[test]
fn frames() {
    let two = [message(4, &[]), message(2, &[0; 4])].concat();
    for len in 0..HEADER {
        assert_eq!(framed(&two[..len]), Ok(None), "{len}");
    }
    assert_eq!(framed(&two), Ok(Some(HEADER)));
    assert_eq!(framed(&two[HEADER..HEADER + 22]), Ok(None));
    assert_eq!(framed(&two[HEADER..]), Ok(Some(23)));
    assert!(framed(b"\xff\xffGET / HTTP/1.1").is_err());
    assert!(framed(&[&[0xff; 16][..], &[0, 18, 4]].concat()).is_err());
}

#[test]
fn ends_of_ribs() {
    let ends = |body: &[u8]| decode(&message(2, body), PeerEncoding::default());
    let end = |afi, safi| (Ok(Message::EndOfRib { afi, safi }), Vec::new());
    assert_eq!(ends(&[0; 4]), end(1, 1));
    assert_eq!(ends(&[0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1]), end(2, 1));
    assert_eq!(ends(&[0, 0, 0, 7, 0x90, 15, 0, 3, 0, 1, 4]), end(1, 4));
    // Routes are withdrawn: no end.
    let withdrawal = [0, 0, 0, 7, 0x80, 15, 4, 0, 2, 1, 0];
    assert_eq!(ends(&withdrawal), (Ok(Message::Update), vec!["- 0 ::/0".to_owned()]));
    let both = [0, 1, 0, 0, 6, 0x80, 15, 3, 0, 2, 1];
    assert_eq!(ends(&both), (Ok(Message::Update), vec!["- 0 0.0.0.0/0".to_owned()]));
}

#[test]
fn path_identifiers_are_guessed_only_where_nobody_knows() {
    // Withdrawn: identifier 1, 10.0.0.0/8; or three default routes and half a prefix.
    let body = [0, 6, 0, 0, 0, 1, 8, 10, 0, 0];
    let of = |add_path_v4| {
        decode(&message(2, &body), PeerEncoding { add_path_v4, ..PeerEncoding::default() })
    };
    let identified = (Ok(Message::Update), vec!["- 0 10.0.0.0/8#1".to_owned()]);
    assert_eq!(of(AddPath::Present), identified);
    assert_eq!(of(AddPath::Unknown), identified);
    let (result, lines) = of(AddPath::Absent);
    assert!(result.is_err());
    assert_eq!(lines[..3], ["- 0 0.0.0.0/0"; 3]);
}

/// RFC 8950 and RFC 4364: the length of the next hop tells its family.
#[test]
fn next_hops_of_either_family() {
    let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let (link_local, rd) = ([0xfe; 16], [0; 8]);
    let vpn_route = [&[112, 0, 0x10, 1, 0, 0, 0xfd, 0xe8, 0, 0, 0, 1][..], &[10, 0, 0]].concat();
    let of = |safi: u8, next_hop: &[u8]| {
        let route: &[u8] = if safi == 1 { &[24, 10, 0, 0] } else { &vpn_route };
        let reach = [&[0, 1, safi, next_hop.len() as u8], next_hop, &[0], route].concat();
        let attributes = [
            &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4, 0x80, 14, reach.len() as u8][..],
            &reach,
        ]
        .concat();
        let body = [&[0, 0, 0, attributes.len() as u8], &attributes[..]].concat();
        let (result, lines) = decode(&message(2, &body), PeerEncoding::default());
        assert_eq!(result.is_ok(), lines[0].starts_with('+'), "{result:?}");
        lines.join("\n")
    };
    let plain = |next_hop: &str| format!("+ 0 10.0.0.0/24 {next_hop} 64500");
    let vpn = |next_hop: &str| format!("+ 0 10.0.0.0/24 {next_hop} 64500 of 1");
    assert_eq!(of(1, &[192, 0, 2, 1]), plain("192.0.2.1"));
    assert_eq!(of(1, &v6), plain("2001:db8::1"));
    assert_eq!(of(1, &[v6, link_local].concat()), plain("2001:db8::1"));
    assert_eq!(of(128, &[&rd[..], &[192, 0, 2, 1]].concat()), vpn("192.0.2.1"));
    assert_eq!(of(128, &[&rd[..], &v6].concat()), vpn("2001:db8::1"));
    let both = [&rd[..], &v6, &rd, &link_local].concat();
    assert_eq!(of(128, &both), vpn("2001:db8::1"));
    assert_eq!(of(1, &[0; 40]), "- 0 10.0.0.0/24");
}

/// RFC 7606: routes with a malformed attribute, or without one that they must have, are withdrawn.
#[test]
fn malformed_and_missing_attributes_withdraw() {
    let origin: &[u8] = &[0x40, 1, 1, 0];
    let path: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4];
    let next_hop: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
    let update = |attributes: &[&[u8]]| {
        let attributes = attributes.concat();
        let body = [&[0, 0, 0, attributes.len() as u8], &attributes[..], &[8, 10]].concat();
        let (result, lines) = decode(&message(2, &body), PeerEncoding::default());
        (result.err().map(|fault| fault.what.to_string()), lines)
    };
    let route = "+ 0 10.0.0.0/8 192.0.2.1 64500".to_owned();
    assert_eq!(update(&[origin, path, next_hop]), (None, vec![route]));
    for (attributes, what) in [
        (vec![path, next_hop], "ORIGIN is missing"),
        (vec![origin, next_hop], "AS_PATH is missing"),
        (vec![origin, path], "the next hop is missing"),
        (vec![&[0x40, 2, 2, 7, 0], origin, next_hop], "AS path segment of unknown kind 7"),
        (vec![&[0x40, 1, 0], path, next_hop], "ORIGIN needs 1 bytes, 0 are left"),
        (vec![origin, path, &[0x40, 3, 2, 192, 0]], "NEXT_HOP needs 4 bytes, 2 are left"),
        (vec![origin, path, next_hop, &[0x80, 4, 9, 0]], "MULTI_EXIT_DISC needs 9 bytes"),
        (vec![&[0x40, 1, 2, 0, 0], path, next_hop], "ORIGIN is 1 bytes too long"),
        (vec![&[0x40, 1, 1, 3], path, next_hop], "ORIGIN is 3, which means nothing"),
        (vec![origin, path, &[0x40, 3, 5, 192, 0, 2, 1, 0]], "NEXT_HOP is 1 bytes too long"),
        (vec![origin, path, next_hop, &[0x80, 4, 5, 0, 0, 0, 1, 0]], "MULTI_EXIT_DISC is 1"),
        (vec![origin, path, next_hop, &[0x40, 5, 6, 0, 0, 0, 1, 0, 0]], "LOCAL_PREF is 2"),
        (vec![origin, path, next_hop, &[0xc0, 8, 3, 0, 0, 0]], "COMMUNITIES is 3 bytes too"),
        (vec![origin, path, next_hop, &[0xc0, 32, 4, 0, 0, 0, 0]], "LARGE_COMMUNITY is 4"),
        (vec![origin, path, next_hop, &[0xc0, 8, 0]], "COMMUNITIES is empty"),
        (vec![origin, path, next_hop, &[0xc0, 32, 0]], "LARGE_COMMUNITY is empty"),
        (vec![origin, path, next_hop, &[0xc0, 16, 0]], "EXTENDED_COMMUNITIES is empty"),
        (
            vec![origin, path, next_hop, &[0xc0, 16, 4, 0, 2, 0, 1]],
            "EXTENDED_COMMUNITIES is 4 bytes",
        ),
        (vec![origin, path, next_hop, &[0xc0, 25, 0]], "IPV6_EXTENDED_COMMUNITIES is empty"),
        (vec![origin, path, next_hop, &[0xc0, 25, 1, 0]], "IPV6_EXTENDED_COMMUNITIES is 1 bytes"),
        (vec![origin, path, next_hop, &[0x80, 9, 3, 1, 2, 3]], "ORIGINATOR_ID needs 4 bytes, 3"),
        (vec![origin, path, next_hop, &[0x80, 9, 5, 1, 2, 3, 4, 5]], "ORIGINATOR_ID is 1 bytes"),
        (vec![origin, path, next_hop, &[0x80, 10, 0]], "CLUSTER_LIST is empty"),
        (vec![origin, path, next_hop, &[0x80, 10, 2, 1, 2]], "CLUSTER_LIST is 2 bytes too long"),
        (vec![origin, path, next_hop, &[0xc0, 35, 2, 1, 2]], "ONLY_TO_CUSTOMER needs 4 bytes, 2"),
        (vec![origin, path, next_hop, &[0xc0, 35, 5, 1, 2, 3, 4, 5]], "ONLY_TO_CUSTOMER is 1"),
    ] {
        let (fault, lines) = update(&attributes);
        assert!(fault.as_ref().is_some_and(|f| f.starts_with(what)), "{fault:?}: {what}");
        assert_eq!(lines, ["- 0 10.0.0.0/8"], "{what}");
    }
    // RFC 7606, 3.c: what is optional and what is transitive is not for the sender to say; the partial bit is.
    let med: &[u8] = &[0x80, 4, 4, 0, 0, 0, 1];
    let partial: &[u8] = &[0xe0, 8, 4, 0xfb, 0xf4, 0, 1];
    let unknown: &[u8] = &[0x00, 99, 1, 0];
    assert_eq!(update(&[origin, path, next_hop, med, partial, unknown]).0, None);
    for (attributes, what) in [
        (
            vec![&[0xc0, 1, 1, 0], path, next_hop],
            "ORIGIN is marked optional and transitive, it must be transitive and not optional",
        ),
        (vec![origin, &[0x80, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4], next_hop], "AS_PATH is marked"),
        (vec![origin, path, &[0x00, 3, 4, 192, 0, 2, 1]], "NEXT_HOP is marked neither"),
        (vec![origin, path, next_hop, &[0x40, 4, 4, 0, 0, 0, 1]], "MULTI_EXIT_DISC is marked"),
        (vec![origin, path, next_hop, &[0x80, 5, 4, 0, 0, 0, 1]], "LOCAL_PREF is marked"),
        (vec![origin, path, next_hop, &[0xc0, 6, 0]], "ATOMIC_AGGREGATE is marked"),
        (vec![origin, path, next_hop, &[0x80, 7, 8, 0, 0, 0, 1, 0, 0, 0, 1]], "AGGREGATOR is"),
        (vec![origin, path, next_hop, &[0x40, 8, 4, 0, 1, 0, 1]], "COMMUNITIES is marked"),
        (vec![origin, path, next_hop, &[0x40, 15, 3, 0, 2, 1]], "MP_UNREACH_NLRI is marked"),
        (vec![origin, path, next_hop, &[0x80, 17, 0]], "AS4_PATH is marked"),
        (vec![origin, path, next_hop, &[0x80, 16, 8, 0, 2, 0, 1, 0, 0, 0, 1]], "EXTENDED_COMM"),
        (vec![origin, path, next_hop, &[0xc0, 9, 4, 1, 2, 3, 4]], "ORIGINATOR_ID is marked"),
        (vec![origin, path, next_hop, &[0xc0, 10, 4, 1, 2, 3, 4]], "CLUSTER_LIST is marked"),
        (vec![origin, path, next_hop, &[0x80, 35, 4, 0, 0, 0, 1]], "ONLY_TO_CUSTOMER is marked"),
        (vec![origin, path, next_hop, &[&[0x80, 32, 12][..], &[0; 12]].concat()], "LARGE_COMM"),
    ] {
        let (fault, lines) = update(&attributes);
        assert!(fault.as_ref().is_some_and(|f| f.starts_with(what)), "{fault:?}: {what}");
        assert_eq!(lines, ["- 0 10.0.0.0/8"], "{what}");
    }
    // Of attributes that come twice the first one counts, but routes must not come twice.
    let other: &[u8] = &[0x40, 3, 4, 192, 0, 2, 9];
    let route = "+ 0 10.0.0.0/8 192.0.2.1 64500".to_owned();
    assert_eq!(update(&[origin, path, next_hop, other]), (None, vec![route]));
    let unreach: &[u8] = &[0x80, 15, 3, 0, 2, 1];
    let (fault, lines) = update(&[origin, path, next_hop, unreach, unreach]);
    assert_eq!(fault.unwrap(), "MP_UNREACH_NLRI comes twice");
    assert_eq!(lines, ["- 0 10.0.0.0/8"]);
}

/// RFC 7606, 7.5 to 7.7, 7.9 and 7.10, RFC 6793: of these the attribute is discarded, and the route is kept.
#[test]
fn malformed_attributes_that_are_discarded() {
    let rules = |is_external| SessionRules { local_asn: 65000, is_external, local_address: None };
    let route = |more: &[u8], rules: Option<SessionRules>, four_byte_asns| {
        let path: &[u8] = if four_byte_asns { &[0, 0, 0x5b, 0xa0] } else { &[0x5b, 0xa0] };
        let attributes = [
            &[0x40, 1, 1, 0, 0x40, 3, 4, 192, 0, 2, 1, 0x40, 2, 2 + path.len() as u8, 2, 1][..],
            path,
            more,
        ]
        .concat();
        let body = [&[0, 0, 0, attributes.len() as u8], &attributes[..], &[8, 10]].concat();
        let (mut sink, mut messages) = (Collected::default(), Messages::default());
        if let Some(rules) = rules {
            messages.judge_by(rules);
        }
        let from = PeerEncoding { four_byte_asns, ..PeerEncoding::default() };
        let result = messages.decode(&message(2, &body), from, 0, &mut sink);
        assert_eq!(result.is_ok(), sink.lines[0].starts_with('+'), "{result:?}");
        sink.lines.remove(0)
    };
    let (kept, withdrawn) = ("+ 0 10.0.0.0/8 192.0.2.1 23456", "- 0 10.0.0.0/8");
    for four_byte_asns in [false, true] {
        // ATOMIC_AGGREGATE with a value; AGGREGATOR and AS4_AGGREGATOR of any length, and of AS 0; AS4_PATH.
        for more in [
            &[0x40, 6, 1, 0][..],
            &[0xc0, 7, 0],
            &[0xc0, 7, 3, 0, 0, 1],
            &[0xc0, 7, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0],
            &[0xc0, 7, 8, 0, 0, 0, 0, 192, 0, 2, 1],
            &[0xc0, 18, 0],
            &[0xc0, 18, 8, 0, 0, 0, 0, 192, 0, 2, 1],
            &[0xc0, 17, 1, 2],
            &[0xc0, 17, 0],
        ] {
            for rules in [None, Some(rules(true)), Some(rules(false))] {
                assert_eq!(route(more, rules, four_byte_asns), kept, "{more:?}");
            }
        }
    }
    // What only routers of one AS tell each other, even with wrong flags.
    for more in [&[0x40, 5, 2, 0, 0][..], &[0xc0, 9, 1, 0], &[0x80, 10, 0], &[0x40, 10, 1, 7]] {
        assert_eq!(route(more, Some(rules(true)), true), kept, "{more:?}");
        assert_eq!(route(more, Some(rules(false)), true), withdrawn, "{more:?}");
        assert_eq!(route(more, None, true), withdrawn, "{more:?}");
    }
    // AS4_PATH is for speakers of two-byte numbers; a record of a collector may have it with four-byte ones.
    let as4_path = &[0xc0, 17, 6, 2, 1, 0, 1, 0, 0];
    let completed = "+ 0 10.0.0.0/8 192.0.2.1 65536";
    assert_eq!(route(as4_path, Some(rules(true)), false), completed);
    assert_eq!(route(as4_path, Some(rules(true)), true), kept);
    assert_eq!(route(as4_path, None, true), completed);
    // An AGGREGATOR that is no AS_TRANS makes AS4_PATH stale, if both aggregators are valid.
    let valid: &[u8] = &[0xc0, 7, 6, 0xfb, 0xf4, 192, 0, 2, 1];
    let as4: &[u8] = &[0xc0, 18, 8, 0, 1, 0, 0, 192, 0, 2, 1];
    assert_eq!(route(&[valid, as4, as4_path].concat(), Some(rules(true)), false), kept);
    let short: &[u8] = &[0xc0, 7, 5, 0xfb, 0xf4, 192, 0, 2];
    assert_eq!(route(&[short, as4, as4_path].concat(), Some(rules(true)), false), completed);
}

/// What is passed over, and counted where it has routes: other families, and attributes that are not kept. A labelled
/// route never becomes a prefix.
#[test]
fn passed_over() {
    let base = [
        &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfb, 0xf4, 0x40, 3, 4, 192, 0, 2, 1][..],
        // A community; a route target, AIGP, AGGREGATOR.
        &[0xc0, 8, 4, 0xfb, 0xf4, 0, 7, 0xc0, 16, 8, 0, 2, 0xfb, 0xf4, 0, 0, 0, 1],
        &[
            0x80, 26, 11, 1, 0, 11, 0, 0, 0, 0, 0, 0, 0, 9, 0xc0, 7, 8, 0, 0, 0xfb, 0xf4, 10, 0, 0,
            1,
        ],
    ]
    .concat();
    struct Routes(Vec<String>, Vec<&'static str>);
    impl Sink for Routes {
        fn update(&mut self, update: &fibula_core::Update<'_>) {
            self.0.push(format!("{} {:?}", update.prefix, update.change));
        }
        fn damage(&mut self, damage: &crate::Damage) -> std::ops::ControlFlow<()> {
            panic!("{damage}")
        }
        fn ignored(&mut self, what: &'static str) {
            self.1.push(what);
        }
    }
    let options = BgpOptions { as_path: true, communities: true, extended_communities: true };
    let routes = |attributes: &[u8], nlri: &[u8]| {
        let body = [&[0, 0, 0, attributes.len() as u8], attributes, nlri].concat();
        let mut sink = Routes(Vec::new(), Vec::new());
        let from = PeerEncoding::default();
        Messages::new(options).decode(&message(2, &body), from, 0, &mut sink).unwrap();
        sink
    };
    let Routes(lines, ignored) = routes(&base, &[8, 10]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(r#"communities: "64500:7""#) && ignored.is_empty(), "{lines:?}");
    // 10.0.0.0/8 and 2001::/16 with label 16 (SAFI 4), multicast (2), flow specifications (133), EVPN (25, 70).
    let v6_next_hop = [&[16, 0x20, 1][..], &[0; 13], &[9]].concat();
    for (afi, safi, next_hop, nlri) in [
        (1, 4, &[4, 192, 0, 2, 1][..], &[32, 0, 1, 1, 10][..]),
        (2, 4, &v6_next_hop, &[40, 0, 1, 1, 0x20, 1]),
        (1, 2, &[4, 192, 0, 2, 1], &[8, 10]),
        (1, 133, &[0], &[3, 1, 8, 10]),
        (25, 70, &[4, 192, 0, 2, 1], &[3, 17, 0, 0]),
    ] {
        let reach = [&[0, afi, safi], next_hop, &[0], nlri].concat();
        let reach = [&[0x80, 14, reach.len() as u8], &reach[..]].concat();
        let unreach = [&[0x80, 15, 3 + nlri.len() as u8, 0, afi, safi], nlri].concat();
        for attribute in [&reach, &unreach] {
            let Routes(lines, ignored) = routes(&[&base[..], attribute].concat(), &[]);
            assert_eq!((lines, ignored), (Vec::<String>::new(), vec![NOT_READ]), "{afi} {safi}");
        }
    }
}

/// What a session refuses, and what an archive keeps.
#[test]
fn a_session_judges() {
    let rules = SessionRules {
        local_asn: 65000,
        is_external: true,
        local_address: Some([192, 0, 2, 7].into()),
    };
    let internal = SessionRules { is_external: false, ..rules };
    let update = |path: &[u8], next_hop: [u8; 4], more: &[u8], rules: Option<SessionRules>| {
        let path = [&[0x40, 2, path.len() as u8][..], path].concat();
        let next_hop = [&[0x40, 3, 4][..], &next_hop].concat();
        let attributes = [&[0x40, 1, 1, 0][..], &path, &next_hop, more].concat();
        let body = [&[0, 0, 0, attributes.len() as u8], &attributes[..], &[8, 10]].concat();
        let (mut sink, mut messages) = (Collected::default(), Messages::default());
        if let Some(rules) = rules {
            messages.judge_by(rules);
        }
        let result = messages.decode(&message(2, &body), PeerEncoding::default(), 0, &mut sink);
        let refused = sink.lines == ["- 0 10.0.0.0/8"];
        assert_eq!(sink.lines.len(), 1);
        (result.err().map(|fault| fault.what.to_string()), refused, sink)
    };
    let (path, host) = (&[2, 1, 0, 0, 0xfb, 0xf4][..], [192, 0, 2, 1]);
    let confederation = [&[3, 1, 0, 0, 0, 9][..], path].concat();
    let as_0 = [2, 2, 0, 0, 0xfb, 0xf4, 0, 0, 0, 0];
    let empty = [&[2, 0][..], path].concat();
    let ours = [2, 2, 0, 0, 0xfb, 0xf4, 0, 0, 0xfd, 0xe8];
    for rules in [rules, internal] {
        assert!(!update(path, host, &[], Some(rules)).1);
    }
    let no_host = "the next hop is not the address of a host";
    let kept_no_host = "next hops that are not the address of a host, kept as they are";
    for (path, next_hop, what, kept) in [
        (&as_0[..], host, "AS_PATH has AS 0", "AS paths with AS 0, kept as they are"),
        (
            &empty,
            host,
            "AS_PATH has a segment without an AS",
            "AS paths with an empty segment, kept as they are",
        ),
        (
            &confederation,
            host,
            "AS_PATH of an external neighbour has a segment of a",
            "AS paths with a segment of a confederation, kept as they are",
        ),
        (
            &[],
            host,
            "AS_PATH of an external neighbour is empty",
            "empty AS paths, kept as they are",
        ),
        (path, [0, 0, 0, 0], no_host, kept_no_host),
        (path, [127, 0, 0, 1], no_host, kept_no_host),
        (path, [224, 0, 0, 5], no_host, kept_no_host),
        (path, [255; 4], no_host, kept_no_host),
    ] {
        let (fault, refused, _) = update(path, next_hop, &[], Some(rules));
        assert!(
            refused && fault.as_ref().is_some_and(|f| f.starts_with(what)),
            "{fault:?}: {what}"
        );
        let (fault, refused, sink) = update(path, next_hop, &[], None);
        assert_eq!((fault, refused, sink.noted), (None, false, vec![kept]), "an archive: {what}");
    }
    // A confederation and an empty path are those of our own AS.
    for path in [&confederation[..], &[]] {
        assert!(!update(path, host, &[], Some(internal)).1);
    }
    // A loop is no error, but the earlier route is gone.
    for (path, next_hop) in [(&ours[..], host), (path, [192, 0, 2, 7])] {
        let (fault, refused, sink) = update(path, next_hop, &[], Some(rules));
        assert_eq!((fault, refused, sink.ignored), (None, true, 1));
        assert!(!update(path, next_hop, &[], None).1);
    }
    // AS 0 in AGGREGATOR and AS4_PATH: the attribute is discarded.
    let aggregator = [0xc0, 7, 8, 0, 0, 0, 0, 192, 0, 2, 1];
    let as4_path = [0xc0, 17, 6, 2, 1, 0, 0, 0, 0];
    for more in [&aggregator[..], &as4_path] {
        let (fault, refused, sink) = update(path, host, more, Some(rules));
        assert_eq!((fault, refused), (None, false));
        assert_eq!(sink.lines, ["+ 0 10.0.0.0/8 192.0.2.1 64500"]);
    }
    // An attribute that everybody must know, and nobody does.
    let (fault, refused, _) = update(path, host, &[0x40, 99, 1, 0], Some(rules));
    assert_eq!(fault.unwrap(), "attribute 99 is marked well-known and is unknown");
    assert!(refused && !update(path, host, &[0x40, 99, 1, 0], None).1);
    assert!(!update(path, host, &[0xc0, 99, 1, 0], Some(rules)).1);
}

#[test]
fn kinds() {
    let kind = |kind| decode(&message(kind, &[]), PeerEncoding::default()).0.ok();
    let kinds = [1, 3, 4, 5, 9].map(kind);
    let wanted = [Message::Open, Message::Notification, Message::Keepalive];
    assert_eq!(kinds[..3], wanted.map(Some));
    assert_eq!(kinds[3..], [Some(Message::RouteRefresh), None]);
}
