use proptest::prelude::*;

use super::*;
use crate::{Collected, PeerState};

const ALL: BgpOptions = BgpOptions { as_path: true, communities: true, extended_communities: true };

fn decode(text: &str) -> Collected {
    let mut sink = Collected::default();
    RisDecoder::new(ALL).decode(text.as_bytes(), Tail::End, &mut sink).unwrap();
    sink
}

/// A message of the service about 192.0.2.1 in AS 64500, with these fields.
fn message(kind: &str, fields: &str) -> String {
    format!(
        r#"{{"type":"ris_message","data":{{"timestamp":1717245600.25,"peer":"192.0.2.1","peer_asn":"64500","id":"a-1","host":"rrc00.ripe.net","type":"{kind}"{fields}}}}}"#
    ) + "\n"
}

#[test]
fn updates() {
    let update = message(
        "UPDATE",
        r#","path":[64500,64500,[64502,64503],64504],"community":[[64500,1],[0,65535]],"origin":"igp","med":7,"aggregator":"64504:192.0.2.7",
        "announcements":[{"next_hop":"192.0.2.1","prefixes":["198.51.100.0/24","0.0.0.0/0"]},
        {"next_hop":"fe80::1,2001:db8::1","prefixes":["2001:db8:1::/48"]}],"withdrawals":["203.0.113.0/24"]"#,
    )
    .replace("\n ", " ");
    struct Texts(Vec<String>);
    impl Sink for Texts {
        fn update(&mut self, update: &fibula_core::Update<'_>) {
            assert_eq!(update.time, 1_717_245_600_250_000);
            self.0.push(format!("{} {:?}", update.prefix, update.change));
        }
        fn damage(&mut self, damage: &Damage) -> std::ops::ControlFlow<()> {
            panic!("{damage}")
        }
    }
    let mut texts = Texts(Vec::new());
    RisDecoder::new(ALL).decode(update.as_bytes(), Tail::End, &mut texts).unwrap();
    assert_eq!(texts.0[0], "203.0.113.0/24 Withdraw");
    let attributes = "origin_as: Some(64504), as_path_len: 4, as_path: \"64500 64500 {64502,64503} 64504\", \
                      local_pref: None, med: Some(7), origin: Some(0), communities: \"64500:1 0:65535\", \
                      extended_communities: \"\", \
                      aggregator: Some(Aggregator { asn: 64504, address: 192.0.2.7 }), best: None";
    for (text, head) in texts.0[1..].iter().zip([
        "198.51.100.0/24 Announce(Bgp(BgpAttributes { next_hop: Some(192.0.2.1), ",
        "0.0.0.0/0 Announce(Bgp(BgpAttributes { next_hop: Some(192.0.2.1), ",
        "2001:db8:1::/48 Announce(Bgp(BgpAttributes { next_hop: Some(2001:db8::1), ",
    ]) {
        assert_eq!(*text, format!("{head}{attributes} }}))"));
    }
    assert_eq!(texts.0.len(), 4);
}

/// As of archives in other formats.
#[test]
fn doubtful_routes_are_counted() {
    let update = |path: &str, next_hop: &str| {
        let fields = r#","path":PATH,"origin":"igp","announcements":[{"next_hop":"HOP","prefixes":["10.0.0.0/8"]}]"#;
        decode(&message("UPDATE", &fields.replace("PATH", path).replace("HOP", next_hop)))
    };
    for (path, next_hop, noted) in [
        ("[64500]", "192.0.2.9", vec![]),
        ("[64500,0]", "192.0.2.9", vec!["AS paths with AS 0, kept as they are"]),
        ("[64500,[]]", "192.0.2.9", vec!["AS paths with an empty segment, kept as they are"]),
        ("[]", "192.0.2.9", vec!["empty AS paths, kept as they are"]),
        (
            "[64500]",
            "0.0.0.0",
            vec!["next hops that are not the address of a host, kept as they are"],
        ),
    ] {
        let sink = update(path, next_hop);
        assert_eq!((sink.lines.len(), sink.noted), (1, noted), "{path} {next_hop}");
    }
}

#[test]
fn peers_and_their_states() {
    let other = message("RIS_PEER_STATE", r#","state":"down""#).replace("rrc00.ripe.net", "rrc21");
    let bare = r#"{"type":"KEEPALIVE","peer":"2001:db8::1","peer_asn":64501,"timestamp":1}"#;
    let text = [
        &message("RIS_PEER_STATE", r#","state":"connected""#),
        &other,
        &message("OPEN", r#","direction":"sent""#),
        bare,
        "\n\n{\"type\":\"pong\"}\n{\"type\":\"ris_error\",\"data\":{\"message\":\"too slow\"}}\n",
    ]
    .concat();
    let sink = decode(&text);
    let peer = |address: &str, asn, view: &str| PeerInfo {
        view: view.to_owned(),
        ..PeerInfo::new(Some(address.parse().unwrap()), asn, None)
    };
    let wanted = [
        peer("192.0.2.1", 64500, "rrc00"),
        peer("192.0.2.1", 64500, "rrc21"),
        peer("2001:db8::1", 64501, ""),
    ];
    assert_eq!(sink.peers, wanted);
    let state = |peer, old, new| PeerState { peer, time: 1_717_245_600_250_000, old, new };
    assert_eq!(sink.states, [state(0, 5, 6), state(1, 6, 1)]);
    assert!(sink.states[1].is_down());
    assert_eq!((sink.ignored, sink.remarks), (3, vec!["error: too slow".to_owned()]));
    assert_eq!(sink.damage, []);
}

#[test]
fn damage_has_the_number_of_its_line() {
    let prefixes = r#","announcements":[{"next_hop":"192.0.2.1","prefixes":["198.51.100.0/24"]}]"#;
    let update = |fields: &str| message("UPDATE", &format!("{prefixes}{fields}"));
    let cases = [
        ("{\"type\":\n".to_owned(), "no JSON, at column 8: EOF while parsing a value"),
        ("[1]\n".to_owned(), "no message of RIS Live: it has no type"),
        ("{\"type\":\"ris_message\"}\n".to_owned(), "the message's data has no type"),
        (message("UPDATE", "").replace("192.0.2.1", "x"), "peer is \"x\", an address is expected"),
        (message("UPDATE", "").replace("\"64500\"", "-1"), "peer_asn is -1, an AS number"),
        (message("UPDATE", "").replace("1717245600.25", "\"x\""), "timestamp is \"x\", a time"),
        (message("RIS_PEER_STATE", ""), "state is missing, connected or down is expected"),
        (message("UPDATE", r#","withdrawals":["10.0.0.0/33"]"#), "\"10.0.0.0/33\" is no prefix"),
        (message("UPDATE", r#","withdrawals":{}"#), "withdrawals is {}, a list is expected"),
        (update(""), "path is missing, a list is expected"),
        (update(r#","path":["1"]"#), "\"1\" in the path is neither an AS number nor a list"),
        (update(r#","path":[1],"origin":"x""#), "origin is \"x\", igp, egp or incomplete"),
        (update(r#","path":[1],"origin":"egp","med":-1"#), "med is -1, a number is expected"),
        (update(r#","path":[1],"origin":"egp","community":[[1]]"#), "[1] is no community"),
    ];
    let text: String = cases.iter().map(|(line, _)| line.as_str()).collect();
    let sink = decode(&text);
    assert_eq!(sink.damage.len(), cases.len(), "{:#?}", sink.damage);
    let mut offset = 0;
    for (number, (damage, (line, what))) in (1..).zip(sink.damage.iter().zip(&cases)) {
        assert!(damage.what.starts_with(what), "{damage}");
        assert_eq!((damage.record, damage.offset), (number, offset));
        offset += line.len() as u64;
    }
    // Routes whose attributes make no sense are withdrawn.
    assert_eq!(sink.lines, vec!["- 0 198.51.100.0/24"; 5]);
    let bad_next_hop =
        update(r#","path":[1],"origin":"egp""#).replace(":\"192.0.2.1\",\"pref", ":\"?\",\"pref");
    let sink = decode(&bad_next_hop);
    assert_eq!(sink.lines, ["- 0 198.51.100.0/24"]);
    assert_eq!(sink.damage[0].what, "next_hop is \"?\", an address is expected");
}

#[test]
fn the_last_line() {
    let line = message("UPDATE", r#","withdrawals":["10.0.0.0/8"]"#);
    let line = line.trim_end().as_bytes();
    for (tail, lines, damage) in [(Tail::End, 1, 0), (Tail::Cut, 0, 1)] {
        let (mut decoder, mut sink) = (RisDecoder::default(), Collected::default());
        assert_eq!(decoder.decode(line, Tail::More, &mut sink), Ok(0));
        assert_eq!(decoder.decode(line, tail, &mut sink), Ok(line.len()));
        assert_eq!((sink.lines.len(), sink.damage.len()), (lines, damage));
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(cuts in proptest::collection::vec(0usize..900, 0..8), at in 0usize..900, byte in any::<u8>()) {
        let mut text = [
            message("UPDATE", r#","withdrawals":["10.0.0.0/8"]"#),
            message("RIS_PEER_STATE", r#","state":"down""#),
            message("UPDATE", r#","path":[1],"origin":"igp","announcements":[{"next_hop":"::1","prefixes":["::/0"]}]"#),
        ]
        .concat()
        .into_bytes();
        let at = at.min(text.len() - 1);
        text[at] = byte;
        let run = |cuts: &[usize]| {
            let (mut decoder, mut sink, mut start) = (RisDecoder::default(), Collected::default(), 0);
            for &cut in cuts {
                let cut = cut.min(text.len());
                start += decoder.decode(&text[start..cut], Tail::More, &mut sink).unwrap();
            }
            decoder.decode(&text[start..], Tail::End, &mut sink).unwrap();
            (sink, decoder.records())
        };
        let mut cuts = cuts;
        cuts.sort_unstable();
        // The rest that was not consumed is passed again.
        prop_assert_eq!(run(&cuts), run(&[]));
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut sink = Collected::default();
        RisDecoder::new(ALL).decode(&bytes, Tail::End, &mut sink).unwrap();
    }
}
