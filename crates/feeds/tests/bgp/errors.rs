//! The errors that end a session: the bytes of each NOTIFICATION, and its sentence.

use fibula_feeds::bgp::Neighbour;
use fibula_feeds::{Protocol, SourceState};

use super::speaker::*;

const MARKER: &str = "ffffffffffffffffffffffffffffffff";

/// These bytes end a new connection with this NOTIFICATION and this text.
fn refused(neighbour: Neighbour, bytes: &[u8]) -> (String, String) {
    let mut bench = Bench::new(neighbour);
    bench.connect();
    bench.out.clear();
    let why = bench.send(bytes).unwrap_err();
    assert_eq!(bench.state(), SourceState::Idle);
    assert_eq!(bench.send(bytes), Ok(()), "without a connection bytes mean nothing");
    let sent = bench.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    let why = why.strip_prefix("neighbour 192.0.2.9: ").unwrap();
    (sent[0].clone(), why.split(" (sent: ").next().unwrap().to_owned())
}

#[test]
fn opens() {
    let of = |text: &str| message(text);
    let internal = Neighbour { asn: None, local_asn: 64500, ..neighbour() };
    let ours = Neighbour { router_id: [192, 0, 2, 9].into(), ..internal.clone() };
    let any = Neighbour { asn: None, ..neighbour() };
    let v6_only = Neighbour { families: vec![fibula_ingest::bgp::AfiSafi::IPV6], ..neighbour() };
    for (neighbour, bytes, sent, why) in [
        (
            neighbour(),
            of("01 03 fbf4 005a c0000209 00"),
            "03 02010004",
            "its BGP version is 3, ours is 4",
        ),
        // After another version number, the rest of the OPEN may be anything.
        (
            neighbour(),
            of("01 05 fbf4 005a c0000209 ff"),
            "03 02010004",
            "its BGP version is 5, ours is 4",
        ),
        (
            neighbour(),
            of("01 04 fbf5 005a c0000209 00"),
            "03 0202",
            "it is AS64501, but AS64500 is configured",
        ),
        (
            any.clone(),
            of("01 04 0000 005a c0000209 00"),
            "03 0202",
            "its OPEN names AS0, which is reserved",
        ),
        (
            any.clone(),
            of("01 04 5ba0 005a c0000209 00"),
            "03 0202",
            "its OPEN names AS23456, which is reserved",
        ),
        (
            any,
            of("01 04 fbf4 005a c0000209 08 0206 4104 00000000"),
            "03 0202",
            "its OPEN names AS0, which is reserved",
        ),
        (
            neighbour(),
            of("01 04 fbf4 005a 00000000 00"),
            "03 0203",
            "its BGP identifier 0.0.0.0 is not valid",
        ),
        (
            ours,
            of("01 04 fbf4 005a c0000209 00"),
            "03 0203",
            "its BGP identifier 192.0.2.9 is ours, too",
        ),
        (
            neighbour(),
            of("01 04 fbf4 0001 c0000209 00"),
            "03 0206",
            "it proposes a hold time of 1 s, less than 3",
        ),
        (
            neighbour(),
            of("01 04 fbf4 0002 c0000209 00"),
            "03 0206",
            "it proposes a hold time of 2 s, less than 3",
        ),
        (
            neighbour(),
            of("01 04 fbf4 005a c0000209 03 010100"),
            "03 0204",
            "its OPEN has an optional parameter of type 1",
        ),
        (
            neighbour(),
            of("01 04 fbf4 005a c0000209 04 0206 0104"),
            "03 0200",
            "its OPEN is malformed: byte 31: optional parameter needs 6 bytes, 2 are left",
        ),
        (
            neighbour(),
            of("01 04 fbf4 005a c0000209 09 00"),
            "03 0200",
            "its OPEN is malformed: byte 29: optional parameters needs 9 bytes, 1 are left",
        ),
        // The neighbour has only IPv4, and we accept only IPv6: the missing capability is named.
        (
            v6_only,
            of("01 04 fbf4 005a c0000209 00"),
            "03 0207010400020001",
            "it takes part in none of the address families that we take",
        ),
        // Only VPN families.
        (
            neighbour(),
            open(&["0206 0104 00010080"]),
            "03 02070104000100010104 00020001",
            "it takes part in none of the address families that we take",
        ),
    ] {
        let sent = sent.replacen(' ', "_", 1).replace(' ', "").replace('_', " ");
        assert_eq!(refused(neighbour, &bytes), (sent, why.to_owned()));
    }
    // The lowest valid hold time; and an external neighbour may have our identifier.
    let mut bench = Bench::new(Neighbour { router_id: [192, 0, 2, 9].into(), ..neighbour() });
    bench.connect();
    bench.send(&message("01 04 fbf4 0003 c0000209 00")).unwrap();
    bench.send(&message(KEEPALIVE)).unwrap();
    assert_eq!(bench.session.established().unwrap().hold_time, Some(s(3)));
}

#[test]
fn headers() {
    for (bytes, sent, why) in [
        (
            b"GET / HTTP/1.1\r\n".to_vec(),
            "03 0101",
            "a message does not begin with the marker of BGP",
        ),
        (hex("ffff00"), "03 0101", "a message does not begin with the marker of BGP"),
        (
            hex(&format!("{MARKER} 0012 04")),
            "03 01020012",
            "a message of type 4 has a length of 18 bytes",
        ),
        (
            hex(&format!("{MARKER} 0000 09")),
            "03 01020000",
            "a message of type 9 has a length of 0 bytes",
        ),
        (
            hex(&format!("{MARKER} 1001 02")),
            "03 01021001",
            "a message of type 2 has a length of 4097 bytes",
        ),
        (
            hex(&format!("{MARKER} 1001 09")),
            "03 01021001",
            "a message of type 9 has a length of 4097 bytes",
        ),
        (
            hex(&format!("{MARKER} 001c 01")),
            "03 0102001c",
            "a message of type 1 has a length of 28 bytes",
        ),
        (
            hex(&format!("{MARKER} 0016 02")),
            "03 01020016",
            "a message of type 2 has a length of 22 bytes",
        ),
        (
            hex(&format!("{MARKER} 0014 03")),
            "03 01020014",
            "a message of type 3 has a length of 20 bytes",
        ),
        (
            hex(&format!("{MARKER} 0014 04")),
            "03 01020014",
            "a message of type 4 has a length of 20 bytes",
        ),
        (
            hex(&format!("{MARKER} 0016 05")),
            "03 01020016",
            "a message of type 5 has a length of 22 bytes",
        ),
        (
            hex(&format!("{MARKER} 0013 00")),
            "03 010300",
            "a message is of type 0, which is unknown",
        ),
        (
            hex(&format!("{MARKER} 0013 06")),
            "03 010306",
            "a message is of type 6, which is unknown",
        ),
    ] {
        assert_eq!(refused(neighbour(), &bytes), (sent.to_owned(), why.to_owned()));
    }
    // Nothing is checked before the header is complete; an OPEN is never long.
    let mut bench = Bench::new(neighbour());
    bench.connect();
    bench.send(&hex(&format!("{MARKER} 0012"))).unwrap();
    assert!(bench.send(&[4]).is_err());
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, "0202 0600"]);
    assert_eq!(
        bench.send(&hex(&format!("{MARKER} 1001 01"))).unwrap_err(),
        "neighbour 192.0.2.9: a message of type 1 has a length of 4097 bytes \
         (sent: Message Header Error/Bad Message Length)"
    );
}

#[test]
fn messages_out_of_place() {
    for kind in [message(KEEPALIVE), message(END_V4), message("05 00010001")] {
        let sent = format!("03 0501{:02x}", kind[18]);
        let why = format!("a message of type {} came in state OpenSent", kind[18]);
        assert_eq!(refused(neighbour(), &kind), (sent, why));
    }
    for kind in [open(&[]), message(END_V4), message("05 00010001")] {
        let mut bench = Bench::new(neighbour());
        bench.connect();
        bench.send(&open(&[IPV4, FOUR])).unwrap();
        bench.out.clear();
        let why = bench.send(&kind).unwrap_err();
        assert!(why.contains("came in state OpenConfirm"), "{why}");
        assert_eq!(bench.sent(), [format!("03 0502{:02x}", kind[18])]);
    }
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    let why = bench.send(&open(&[])).unwrap_err();
    assert_eq!(
        why,
        "neighbour 192.0.2.9: a message of type 1 came in state Established (sent: Finite State Machine \
         Error/Receive Unexpected Message in Established State)"
    );
    assert_eq!(bench.sent(), ["03 050301"]);
    assert!(bench.prefixes().is_empty(), "the session has ended, and its routes with it");
}

/// The neighbour's own NOTIFICATION is never answered; its routes are gone.
#[test]
fn notifications_of_the_neighbour() {
    for (body, text) in [
        ("0604", "Cease/Administrative Reset"),
        ("0602 05 6c61746572", "Cease/Administrative Shutdown: \"later\""),
        ("0400", "Hold Timer Expired"),
        ("0900", "code 9 subcode 0"),
    ] {
        let mut bench = Bench::established(neighbour(), &[IPV4, FOUR, RESTART]);
        bench.send(&update(PATH, "08 0a")).unwrap();
        let why = bench.send(&message(&format!("03 {body}"))).unwrap_err();
        assert_eq!(why, format!("neighbour 192.0.2.9: it ended the session: {text}"));
        assert!(bench.out.is_empty());
        assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
    }
    // Before a session was established.
    let mut bench = Bench::new(neighbour());
    bench.connect();
    bench.out.clear();
    bench.send(&message("03 0202")).unwrap_err();
    assert!(bench.out.is_empty());
}

/// Errors of a new connection do not remove the routes of the last session.
#[test]
fn routes_outlive_a_connection_that_never_became_a_session() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    bench.send(&update(PATH, "08 0a")).unwrap();
    bench.session.disconnected(bench.now);
    bench.connect();
    bench.tick(10).unwrap();
    bench.send(b"what?").unwrap_err();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 1));
    assert_eq!(bench.session.deadline(), Some(s(1030)));
    bench.tick(20).unwrap();
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Idle, 0));
}

/// A table that accepts no more: the neighbour gets a NOTIFICATION, and the existing routes stay.
#[test]
fn a_table_that_is_full() {
    let mut bench = Bench::established(neighbour(), &[IPV4, FOUR]);
    bench.rib.set_limits(fibula_rib::Limits { paths: 2, ..Default::default() });
    bench.send(&update(PATH, "08 0a 08 0b")).unwrap();
    let (now, bytes) = (bench.now, update(PATH, "08 0c"));
    let result = bench.session.bytes(now, &bytes, &mut bench.rib, &mut bench.out);
    assert!(matches!(result, Err(fibula_feeds::FeedError::Table(_))), "{result:?}");
    assert_eq!(bench.sent(), ["03 0608"]);
    assert_eq!((bench.state(), bench.prefixes().len()), (SourceState::Lost, 2));
}

#[test]
fn a_neighbour_with_too_many_routes() {
    let few = Neighbour { most_routes: Some(3), limit_pause: s(60), ..neighbour() };
    let mut bench = Bench::established(few, &[IPV4, IPV6, FOUR, RESTART]);
    // Three of each family, one of them several times.
    bench.send(&update(PATH, "08 0a 08 0b 08 0c 08 0c")).unwrap();
    bench.send(&update(PATH, "08 0c")).unwrap();
    bench.send(&update_v6("10 2001 10 2002 10 2003")).unwrap();
    // One route is withdrawn, another one is announced.
    bench.send(&message("02 0002 080a 0000")).unwrap();
    bench.send(&update(PATH, "08 0d")).unwrap();
    assert_eq!(bench.prefixes().len(), 6);
    let why = bench.send(&update_v6("10 2004")).unwrap_err();
    assert_eq!(
        why,
        "neighbour 192.0.2.9: it has more than 3 IPv6 routes, and is refused for 60 s \
         (sent: Cease/Maximum Number of Prefixes Reached)"
    );
    assert_eq!(bench.sent(), ["03 060100020100000003"]);
    assert!(bench.prefixes().is_empty());
    bench.tick(59).unwrap();
    let refusal = bench.session.admit(bench.now, &mut bench.out).unwrap_err();
    assert_eq!(split(&refusal.farewell), ["03 0605"]);
    assert!(bench.out.is_empty());
    // An owner of sockets that does not call `admit`.
    let result = bench.session.connected(bench.now, &mut bench.rib, &mut bench.out);
    assert!(result.is_err_and(|error| error.to_string() == refusal.why));
    assert_eq!((bench.sent(), bench.state()), (vec!["03 0605".to_owned()], SourceState::Idle));
    bench.tick(1).unwrap();
    assert!(bench.session.admit(bench.now, &mut bench.out).is_ok());
    bench.establish(&[IPV4, FOUR]);
    let why = bench.send(&update(PATH, "08 0a 08 0b 08 0c 08 0d")).unwrap_err();
    assert!(why.contains("more than 3 IPv4 routes"), "{why}");
    assert_eq!(bench.sent(), ["03 060100010100000003"]);
}
