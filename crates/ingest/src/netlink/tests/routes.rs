//! Routes: each attribute, each type; tables, metrics, replacements.

use super::super::NetlinkDecoder;
use super::super::wire::{flag, kind};
use super::*;

#[test]
fn gateways_of_either_family_and_interfaces() {
    let v6 = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let via =
        |family: u16, address: &[u8]| attribute(18, &[&family.to_ne_bytes()[..], address].concat());
    let sink = fpm(&[
        route(V4, &[attribute(5, &[10, 9, 0, 1]), number(4, 3)]),
        route(V6, &[attribute(5, &v6)]),
        route(V4, &[via(10, &v6), number(4, 4)]),
        route(V6, &[via(2, &[10, 9, 0, 1]), number(4, 4)]),
        route(V4, &[number(4, 5), attribute(5, &[0; 4])]),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 2001:db8::/32 via fe80::1",
            "+ 0 10.1.0.0/16 via fe80::1 interface 4",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 4",
            "+ 0 10.1.0.0/16 on the link interface 5",
        ],
    );
    let sink = fpm(&[route(V4, &[via(2, &v6)])]);
    assert_eq!(
        sink.damage[0].what,
        "RTA_VIA of family 2 has an address of 16 bytes (byte 44 of the frame)"
    );
}

/// A next hop of RTA_MULTIPATH: 10.9.0.`last` on interface 3.
fn path(last: u8, flags: u8, weight: u8) -> Vec<u8> {
    let gateway = attribute(5, &[10, 9, 0, last]);
    let len = (8 + gateway.len()) as u16;
    [&len.to_ne_bytes()[..], &[flags, weight - 1], &3u32.to_ne_bytes(), &gateway].concat()
}

#[test]
fn several_next_hops_have_weights_and_dead_ones_are_left_out() {
    let multipath = |paths: &[Vec<u8>]| attribute(0x8009, &paths.concat());
    let sink = kernel(&[
        route(V4, &[multipath(&[path(1, 0, 1), path(2, 0, 1)])]),
        route(V4, &[multipath(&[path(1, 0, 3), path(2, 4, 250)])]),
        route(V4, &[multipath(&[path(1, 1, 3), path(2, 16, 1)])]),
        route(V4, &[multipath(&[path(1, 1, 3), path(2, 1, 1)])]),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3 weight 3, via 10.9.0.2 interface 3 weight 250",
            "+ 0 10.1.0.0/16 via 10.9.0.2 interface 3",
            "- 0 10.1.0.0/16",
        ],
    );
    assert_eq!(sink.noted, ["a route without a next hop that is up counts as withdrawn"]);
    let mut dead = body(V4, UNICAST, &[number(4, 3)]);
    dead[8..12].copy_from_slice(&1u32.to_ne_bytes());
    expect_lines(&kernel(&[message(kind::NEWROUTE, &dead)]), &["- 0 10.1.0.0/16"]);
}

#[test]
fn types_that_forward_or_drop_are_kept_and_others_ignored() {
    let of = |route_kind| message(kind::NEWROUTE, &body(V6, route_kind, &[number(4, 1)]));
    let sink = kernel(&(0..=12).map(of).collect::<Vec<_>>());
    let lines = [
        "on the link interface 1",
        "local on the link interface 1",
        "blackhole",
        "unreachable",
        "prohibit",
    ];
    expect_lines(
        &sink,
        &lines.map(|line| format!("+ 0 2001:db8::/32 {line}")).each_ref().map(String::as_str),
    );
    assert_eq!(sink.ignored, 8);
}

#[test]
fn what_is_no_unicast_route_to_a_destination_is_ignored() {
    let head = |at: usize, value: u8| {
        let mut body = body(V4, UNICAST, &[number(4, 3)]);
        body[at] = value;
        message(kind::NEWROUTE, &body)
    };
    // Family MPLS, a source, a type of service, a cached copy.
    let sink = kernel(&[
        head(0, 28),
        head(2, 8),
        head(3, 4),
        head(9, 2),
        route(V6, &[attribute(2, &[0; 16])]),
    ]);
    expect_lines(&sink, &[]);
    assert_eq!(sink.ignored, 5);
}

#[derive(Default)]
struct Tables(Vec<(u32, String)>, Vec<(u32, u32)>);

impl crate::Sink for Tables {
    fn vrf(&mut self, index: u32, name: &str) {
        self.0.push((index, name.to_owned()));
    }
    fn update(&mut self, update: &fibula_core::Update<'_>) {
        self.1.push((update.vrf, update.path_id));
    }
    fn damage(&mut self, damage: &crate::Damage) -> std::ops::ControlFlow<()> {
        panic!("{damage}");
    }
}

#[test]
fn tables_are_declared_once_and_the_main_one_is_0() {
    let in_table = |table: u32| route(V4, &[number(4, 3), number(15, table), number(6, 20)]);
    let messages = [in_table(254), in_table(100), in_table(254), in_table(70_000), in_table(0)];
    let mut sink = Tables::default();
    let stream = frame(&messages);
    FpmDecoder::default().decode(&stream, Tail::End, &mut sink).unwrap();
    let declared = [(0, String::new()), (100, "100".to_owned()), (70_000, "70000".to_owned())];
    assert_eq!(sink.0, declared);
    // A daemon's metric is no path, a kernel's is.
    assert_eq!(sink.1, [(0, 0), (100, 0), (0, 0), (70_000, 0), (0, 0)]);
    let mut sink = Tables::default();
    NetlinkDecoder::default().decode(&messages.concat(), Tail::End, &mut sink).unwrap();
    assert_eq!(sink.1, [(0, 20), (100, 20), (0, 20), (70_000, 20), (0, 20)]);
}

#[test]
fn a_default_route_needs_no_destination() {
    let head = |len| [V4, len, 0, 0, 254, 186, 0, UNICAST, 0, 0, 0, 0];
    let with = |len| message(kind::NEWROUTE, &[&head(len), number(4, 3).as_slice()].concat());
    expect_lines(&fpm(&[with(0)]), &["+ 0 0.0.0.0/0 on the link interface 3"]);
    let what = &fpm(&[with(8)]).damage[0].what;
    assert_eq!(what, "a route of length 8 has no RTA_DST (byte 20 of the frame)");
    let mut long = route(V4, &[number(4, 3)]);
    long[17] = 33;
    let what = &fpm(&[long]).damage[0].what;
    assert_eq!(what, "prefix length 33 exceeds 32 (byte 20 of the frame)");
}

#[test]
fn a_withdrawal_and_a_route_of_the_same_prefix_are_one_replacement() {
    let (gone, come) = (delete(V4, &[]), route(V4, &[number(4, 3)]));
    expect_lines(&fpm(&[gone.clone(), come.clone()]), &["+ 0 10.1.0.0/16 on the link interface 3"]);
    // A next hop may stand between them, another route may not, nor another withdrawal.
    expect_lines(
        &fpm(&[gone.clone(), gateway(1, 1), come.clone()]),
        &["+ 0 10.1.0.0/16 on the link interface 3"],
    );
    let other = route(V6, &[number(4, 3)]);
    expect_lines(
        &fpm(&[gone.clone(), other, come.clone()]),
        &[
            "- 0 10.1.0.0/16",
            "+ 0 2001:db8::/32 on the link interface 3",
            "+ 0 10.1.0.0/16 on the link interface 3",
        ],
    );
    expect_lines(&fpm(&[gone.clone(), delete(V6, &[])]), &["- 0 10.1.0.0/16", "- 0 2001:db8::/32"]);
    let elsewhere = route(V4, &[number(4, 3), number(15, 100)]);
    expect_lines(
        &fpm(&[gone.clone(), elsewhere]),
        &["- 0 10.1.0.0/16", "+ 0 10.1.0.0/16 on the link interface 3 of 100"],
    );

    let (mut decoder, mut sink) = (FpmDecoder::default(), Collected::default());
    decoder.decode(&frame(&[gone]), Tail::More, &mut sink).unwrap();
    assert!(decoder.is_holding() && sink.lines.is_empty());
    decoder.flush(&mut sink);
    expect_lines(&sink, &["- 0 10.1.0.0/16"]);
    decoder.decode(&frame(&[come]), Tail::End, &mut sink).unwrap();
    assert_eq!(sink.lines.len(), 2);
}

#[test]
fn a_route_of_another_type_takes_the_place_of_one() {
    let throw = |flags| flagged(kind::NEWROUTE, flags, &body(V4, 9, &[]));
    expect_lines(&kernel(&[throw(0)]), &[]);
    expect_lines(&kernel(&[throw(flag::REPLACE)]), &["- 0 10.1.0.0/16"]);
    expect_lines(&kernel(&[delete(V4, &[]), throw(0)]), &["- 0 10.1.0.0/16"]);
    expect_lines(&kernel(&[message(kind::DELROUTE, &body(V4, 5, &[]))]), &[]);
}

#[test]
fn a_part_of_an_ipv6_set_can_be_deleted() {
    let paths =
        |lasts: &[u8]| attribute(9, &lasts.iter().flat_map(|&n| path(n, 0, 1)).collect::<Vec<_>>());
    let one = |last| [attribute(5, &[10, 9, 0, last]), number(4, 3)];
    let sink = kernel(&[
        route(V6, &[paths(&[1, 2, 3])]),
        delete(V6, &one(2)),
        delete(V6, &one(1)),
        delete(V6, &one(3)),
        route(V6, &[paths(&[1, 2])]),
        delete(V6, &[paths(&[1, 2])]),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3, via 10.9.0.3 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.3 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.3 interface 3",
            // Withdrawn and replaced.
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "- 0 2001:db8::/32",
        ],
    );
}

#[test]
fn of_routes_with_one_metric_the_first_of_a_dump_counts() {
    let mut decoder = NetlinkDecoder::default();
    let multi = |interface| {
        flagged(kind::NEWROUTE, flag::MULTI, &body(V4, UNICAST, &[number(4, interface)]))
    };
    let sink = decode(&mut decoder, &[multi(1), multi(2)].concat());
    expect_lines(&sink, &["+ 0 10.1.0.0/16 on the link interface 1"]);
    assert!(!decoder.take_notices().unsure);
    // Which of them is used now, only a dump says.
    expect_lines(&decode(&mut decoder, &delete(V4, &[number(4, 1)])), &[]);
    assert!(decoder.take_notices().unsure && !decoder.take_notices().unsure);
    expect_lines(&decode(&mut decoder, &delete(V4, &[number(4, 2)])), &["- 0 10.1.0.0/16"]);
    assert!(!decoder.take_notices().unsure);
}

/// A new route beside others of the same prefix and metric.
fn another(family: u8, flags: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    flagged(kind::NEWROUTE, flag::CREATE | flags, &body(family, UNICAST, attributes))
}

#[test]
fn of_routes_with_one_metric_the_appended_one_waits() {
    let mut decoder = NetlinkDecoder::default();
    let on = |interface| [number(4, interface)];
    let alone = another(V4, flag::EXCL, &on(1));
    let appended = another(V4, flag::APPEND, &on(2));
    let prepended = another(V4, 0, &on(3));
    expect_lines(
        &decode(&mut decoder, &[alone, appended, prepended].concat()),
        &["+ 0 10.1.0.0/16 on the link interface 1", "+ 0 10.1.0.0/16 on the link interface 3"],
    );
    assert!(!decoder.take_notices().unsure);
    expect_lines(&decode(&mut decoder, &delete(V4, &on(3))), &[]);
    assert!(decoder.take_notices().unsure);

    let done = message(kind::DONE, &[0; 4]);
    let dumped = flagged(kind::NEWROUTE, flag::MULTI, &body(V4, UNICAST, &on(1)));
    expect_lines(
        &decode(&mut decoder, &[done, dumped].concat()),
        &["+ 0 10.1.0.0/16 on the link interface 1"],
    );
}

#[test]
fn of_ipv6_routes_with_one_metric_the_first_is_used() {
    let mut decoder = NetlinkDecoder::default();
    let mut decode = |messages: &[Vec<u8>]| {
        let sink = decode(&mut decoder, &messages.concat());
        (sink, decoder.take_notices().unsure)
    };
    let object = |id: u32| {
        let hop = [number(1, id), number(5, id), attribute(6, &[10, 9, 0, id as u8])];
        message(kind::NEWNEXTHOP, &[&[V6, 0, 0, 0, 0, 0, 0, 0][..], &hop.concat()].concat())
    };
    let uses = |id| [number(30, id)];
    let (first, is_unsure) = decode(&[object(1), object(2), another(V6, flag::EXCL, &uses(1))]);
    expect_lines(&first, &["+ 0 2001:db8::/32 via 10.9.0.1 interface 1"]);
    assert!(!is_unsure);
    // As zebra does it when it was started again: the new one behind the old one, which is then deleted.
    let (second, is_unsure) = decode(&[another(V6, 0, &uses(2)), delete(V6, &uses(1))]);
    expect_lines(&second, &[]);
    assert!(is_unsure);
    let (third, _) = decode(&[delete(V6, &uses(2))]);
    expect_lines(&third, &["- 0 2001:db8::/32"]);

    // What was deleted was not the only one, which was not known.
    let (_, is_unsure) = decode(&[another(V6, flag::EXCL, &uses(1))]);
    assert!(!is_unsure);
    let (both, is_unsure) = decode(&[delete(V6, &uses(1)), another(V6, 0, &uses(2))]);
    expect_lines(&both, &[]);
    assert!(is_unsure);

    // A list of one next hop looks the same as another route.
    let one = |last: u8| [attribute(5, &[10, 9, 0, last]), number(4, 3)];
    let (list, is_unsure) = decode(&[another(V6, 0, &one(7))]);
    expect_lines(&list, &["+ 0 2001:db8::/32 via 10.9.0.7 interface 3"]);
    assert!(is_unsure);
    let (link, is_unsure) = decode(&[another(V6, 0, &[number(4, 3)])]);
    expect_lines(&link, &[]);
    assert!(!is_unsure);
}
