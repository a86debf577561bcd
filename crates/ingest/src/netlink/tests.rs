//! Hand-made messages, each attribute by itself; whole, cut and damaged.

use proptest::prelude::*;

use super::wire::{flag, kind};
use super::*;
use crate::fpm::FpmDecoder;
use crate::{Collected, Decoder, Stopped, Tail};

const V4: u8 = 2;
const V6: u8 = 10;
const UNICAST: u8 = 1;

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).unwrap();
    padded([&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn flagged(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(16 + body.len()).unwrap();
    let head = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes()].concat();
    padded([&head, &7u32.to_ne_bytes()[..], &[0; 4], body].concat())
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    flagged(kind, 0, body)
}

/// The body of a route: 10.1.0.0/16 or 2001:db8::/32 in the main table.
fn body(family: u8, route_kind: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let (len, dst): (u8, &[u8]) = match family {
        V4 => (16, &[10, 1, 0, 0]),
        _ => (32, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    };
    let head = [family, len, 0, 0, 254, 186, 0, route_kind, 0, 0, 0, 0];
    [&head, attribute(1, dst).as_slice(), &attributes.concat()].concat()
}

fn route(family: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind::NEWROUTE, &body(family, UNICAST, attributes))
}

fn delete(family: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind::DELROUTE, &body(family, 0, attributes))
}

fn next_hop(kind: u16, id: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(
        kind,
        &[&[V4, 0, 11, 0, 0, 0, 0, 0], number(1, id).as_slice(), &attributes.concat()].concat(),
    )
}

/// Object `id` is the gateway 10.9.0.`last` on interface 3.
fn gateway(id: u32, last: u8) -> Vec<u8> {
    next_hop(kind::NEWNEXTHOP, id, &[attribute(6, &[10, 9, 0, last]), number(5, 3)])
}

fn group(id: u32, members: &[(u32, u16)]) -> Vec<u8> {
    let members: Vec<u8> = members
        .iter()
        .flat_map(|(id, weight)| {
            let [low, high] = (weight - 1).to_le_bytes();
            [&id.to_ne_bytes()[..], &[low, high, 0, 0]].concat()
        })
        .collect();
    next_hop(kind::NEWNEXTHOP, id, &[attribute(2, &members)])
}

fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    let body = messages.concat();
    let len = u16::try_from(4 + body.len()).unwrap();
    [&[1, 1], &len.to_be_bytes()[..], &body].concat()
}

/// What these messages say, one FPM frame each.
fn fpm(messages: &[Vec<u8>]) -> Collected {
    let stream: Vec<u8> =
        messages.iter().flat_map(|message| frame(std::slice::from_ref(message))).collect();
    decode(&mut FpmDecoder::default(), &stream)
}

fn kernel(messages: &[Vec<u8>]) -> Collected {
    decode(&mut NetlinkDecoder::default(), &messages.concat())
}

fn decode(decoder: &mut dyn Decoder, stream: &[u8]) -> Collected {
    decode_in_pieces(decoder, stream, &[], Tail::End)
}

fn decode_in_pieces(
    decoder: &mut dyn Decoder,
    stream: &[u8],
    cuts: &[usize],
    tail: Tail,
) -> Collected {
    let mut sink = Collected::default();
    let mut start = 0;
    for &cut in cuts {
        let cut = cut.clamp(start, stream.len());
        start += decoder.decode(&stream[start..cut], Tail::More, &mut sink).expect("never stopped");
    }
    let taken = decoder.decode(&stream[start..], tail, &mut sink).expect("never stopped");
    assert_eq!(start + taken, stream.len());
    assert!(!decoder.is_holding());
    sink
}

#[track_caller]
fn says(sink: &Collected, lines: &[&str]) {
    assert_eq!(sink.damage, []);
    assert_eq!(sink.lines, lines);
}

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
    says(
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
    says(
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
    says(&kernel(&[message(kind::NEWROUTE, &dead)]), &["- 0 10.1.0.0/16"]);
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
    says(
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
    says(&sink, &[]);
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
    says(&fpm(&[with(0)]), &["+ 0 0.0.0.0/0 on the link interface 3"]);
    let what = &fpm(&[with(8)]).damage[0].what;
    assert_eq!(what, "a route of length 8 has no RTA_DST (byte 20 of the frame)");
    let mut long = route(V4, &[number(4, 3)]);
    long[17] = 33;
    let what = &fpm(&[long]).damage[0].what;
    assert_eq!(what, "prefix length 33 exceeds 32 (byte 20 of the frame)");
}

#[test]
fn routes_use_next_hop_objects_and_groups() {
    let uses = |id| route(V4, &[number(30, id)]);
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(2, 1), (1, 300)]),
        next_hop(kind::NEWNEXTHOP, 4, &[attribute(4, &[])]),
        group(5, &[(4, 1)]),
        uses(1),
        uses(3),
        uses(4),
        uses(5),
    ]);
    says(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3 weight 300, via 10.9.0.2 interface 3 weight 1",
            "+ 0 10.1.0.0/16 blackhole",
            "+ 0 10.1.0.0/16 blackhole",
        ],
    );
}

#[test]
fn a_replaced_object_announces_its_routes_again() {
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(1, 1), (2, 1)]),
        route(V4, &[number(30, 1)]),
        route(V6, &[number(30, 3)]),
        // Twice, with nothing between: once. The same as before: not at all.
        gateway(1, 7),
        gateway(1, 8),
        gateway(2, 2),
        route(V4, &[number(30, 2)]),
        // Only the group uses it now.
        gateway(1, 9),
    ]);
    says(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.8 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.8 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.2 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.9 interface 3",
        ],
    );
}

#[test]
fn a_deleted_object_takes_its_routes_along() {
    let delete_object = |id| next_hop(kind::DELNEXTHOP, id, &[]);
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(1, 1), (2, 1)]),
        route(V4, &[number(30, 1)]),
        route(V6, &[number(30, 3)]),
        delete_object(1),
        delete_object(9),
        // The object is new: of the routes only the group's uses it.
        gateway(1, 5),
        route(V4, &[number(4, 3)]),
        delete_object(2),
        delete_object(1),
    ]);
    says(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "- 0 10.1.0.0/16",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.5 interface 3",
            "+ 0 10.1.0.0/16 on the link interface 3",
            // A group without members.
            "- 0 2001:db8::/32",
        ],
    );
}

#[test]
fn a_route_of_an_unknown_object_waits_for_it() {
    let sink = fpm(&[route(V4, &[number(30, 6)]), gateway(6, 1)]);
    assert_eq!(sink.lines, ["- 0 10.1.0.0/16", "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3"]);
    let what = &sink.damage[0].what;
    assert!(what.starts_with("the route's next hop was never announced"), "{what}");
    // A kernel says the next hops beside the object's number.
    says(
        &kernel(&[route(V4, &[number(30, 6), number(4, 8)])]),
        &["+ 0 10.1.0.0/16 on the link interface 8"],
    );
}

#[test]
fn a_withdrawal_and_a_route_of_the_same_prefix_are_one_replacement() {
    let (gone, come) = (delete(V4, &[]), route(V4, &[number(4, 3)]));
    says(&fpm(&[gone.clone(), come.clone()]), &["+ 0 10.1.0.0/16 on the link interface 3"]);
    // A next hop may stand between them, another route may not, nor another withdrawal.
    says(
        &fpm(&[gone.clone(), gateway(1, 1), come.clone()]),
        &["+ 0 10.1.0.0/16 on the link interface 3"],
    );
    let other = route(V6, &[number(4, 3)]);
    says(
        &fpm(&[gone.clone(), other, come.clone()]),
        &[
            "- 0 10.1.0.0/16",
            "+ 0 2001:db8::/32 on the link interface 3",
            "+ 0 10.1.0.0/16 on the link interface 3",
        ],
    );
    says(&fpm(&[gone.clone(), delete(V6, &[])]), &["- 0 10.1.0.0/16", "- 0 2001:db8::/32"]);
    let elsewhere = route(V4, &[number(4, 3), number(15, 100)]);
    says(
        &fpm(&[gone.clone(), elsewhere]),
        &["- 0 10.1.0.0/16", "+ 0 10.1.0.0/16 on the link interface 3"],
    );

    let (mut decoder, mut sink) = (FpmDecoder::default(), Collected::default());
    decoder.decode(&frame(&[gone]), Tail::More, &mut sink).unwrap();
    assert!(decoder.is_holding() && sink.lines.is_empty());
    decoder.flush(&mut sink);
    says(&sink, &["- 0 10.1.0.0/16"]);
    decoder.decode(&frame(&[come]), Tail::End, &mut sink).unwrap();
    assert_eq!(sink.lines.len(), 2);
}

#[test]
fn a_route_of_another_type_takes_the_place_of_one() {
    let throw = |flags| flagged(kind::NEWROUTE, flags, &body(V4, 9, &[]));
    says(&kernel(&[throw(0)]), &[]);
    says(&kernel(&[throw(flag::REPLACE)]), &["- 0 10.1.0.0/16"]);
    says(&kernel(&[delete(V4, &[]), throw(0)]), &["- 0 10.1.0.0/16"]);
    says(&kernel(&[message(kind::DELROUTE, &body(V4, 5, &[]))]), &[]);
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
    says(
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
    says(&sink, &["+ 0 10.1.0.0/16 on the link interface 1"]);
    assert!(!decoder.take_heard().unsure);
    let sink = decode(&mut decoder, &delete(V4, &[number(4, 1)]));
    says(&sink, &["- 0 10.1.0.0/16"]);
    assert!(decoder.take_heard().unsure && !decoder.take_heard().unsure);

    let appended = flagged(kind::NEWROUTE, flag::APPEND, &body(V4, UNICAST, &[number(4, 1)]));
    says(&decode(&mut decoder, &appended), &[]);
    let done = message(kind::DONE, &[0; 4]);
    says(
        &decode(&mut decoder, &[done, multi(1)].concat()),
        &["+ 0 10.1.0.0/16 on the link interface 1"],
    );
}

#[test]
fn answers_of_the_kernel_are_heard() {
    let done = |flags, error: i32| flagged(kind::DONE, flags, &error.to_ne_bytes());
    let mut decoder = NetlinkDecoder::new(Some(7));
    let mut sink = Ends::default();
    decoder.decode(&done(flag::DUMP_INTR, 0), Tail::More, &mut sink).unwrap();
    let reply = Reply { sequence: 7, error: 0 };
    let heard = Heard { replies: vec![reply], interrupted: true, ..Heard::default() };
    assert_eq!((sink.0, decoder.take_heard()), (0, heard));
    decoder.decode(&done(0, 0), Tail::More, &mut sink).unwrap();
    assert_eq!((sink.0, decoder.take_heard().interrupted), (1, false));
    let refused = message(kind::ERROR, &(-16i32).to_ne_bytes());
    decoder.decode(&[refused, done(0, -4)].concat(), Tail::More, &mut sink).unwrap();
    let errors: Vec<u32> = decoder.take_heard().replies.iter().map(|reply| reply.error).collect();
    assert_eq!((sink.0, errors), (1, vec![16, 4]));
    let mut other = NetlinkDecoder::new(Some(8));
    other.decode(&done(0, 0), Tail::More, &mut sink).unwrap();
    assert_eq!(sink.0, 1);
    for kind in [kind::NEWLINK, kind::DELLINK, kind::DELADDR] {
        other.decode(&message(kind, &[]), Tail::More, &mut sink).unwrap();
        assert!(other.take_heard().links);
    }
    other.decode(&message(kind::OVERRUN, &[]), Tail::More, &mut sink).unwrap();
    assert!(other.take_heard().interrupted);
}

/// Counts the ends.
#[derive(Default)]
struct Ends(u32);

impl crate::Sink for Ends {
    fn update(&mut self, _: &fibula_core::Update<'_>) {}
    fn end_of_rib(&mut self, _: u32) {
        self.0 += 1;
    }
    fn damage(&mut self, damage: &crate::Damage) -> std::ops::ControlFlow<()> {
        panic!("{damage}");
    }
}

#[test]
fn damage_is_located_and_the_rest_goes_on() {
    let good = frame(&[route(V4, &[number(4, 3)])]);
    let bad = [
        frame(&[route(V4, &[attribute(5, &[1, 2, 3])]), route(V6, &[number(4, 3)])]),
        vec![9; 30],
        good.clone(),
        vec![1, 2, 0, 8, 0, 0, 0, 0],
        good[..40].to_vec(),
    ]
    .concat();
    let sink = decode(&mut FpmDecoder::default(), &[good.clone(), bad].concat());
    assert_eq!(sink.lines.len(), 3);
    let told: Vec<String> = sink.damage.iter().map(ToString::to_string).collect();
    let second = good.len();
    let third = second + 4 + 44 + 56;
    assert_eq!(
        told,
        [
            format!(
                "record 2, byte {second}: RTA_GATEWAY of 3 bytes is no address (byte 44 of the frame)"
            ),
            format!(
                "record 3, byte {third}: no frame begins here (version 9, type 9, length 2313); 30 bytes skipped"
            ),
            format!(
                "record 5, byte {}: a frame of type 2 among those of type 1",
                third + 30 + good.len()
            ),
            format!(
                "record 6, byte {}: the last frame is cut short: 40 bytes of {}",
                third + 38 + good.len(),
                good.len()
            ),
        ]
    );
    let messages = [route(V4, &[number(4, 3)]), vec![0; 12], route(V6, &[number(4, 3)])];
    let sink = kernel(&messages);
    assert_eq!(sink.lines.len(), 2);
    let what = "record 2, byte 44: no message begins here (type 0, length 0); 12 bytes skipped";
    assert_eq!(sink.damage[0].to_string(), what);
}

#[test]
fn other_streams_are_refused() {
    let refused = |decoder: &mut dyn Decoder, stream: &[u8]| match decoder.decode(
        stream,
        Tail::More,
        &mut Collected::default(),
    ) {
        Err(Stopped::Misfit(what)) => what,
        other => panic!("{other:?}"),
    };
    let protobuf = refused(&mut FpmDecoder::default(), &[1, 2, 0, 40]);
    assert!(protobuf.contains("protobuf") && protobuf.contains("dplane_fpm_nl"), "{protobuf}");
    for stream in [
        &b"GET / HTTP/1.1\r\n\r\n......."[..],
        &[1, 1, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[1, 1, 0, 4],
    ] {
        let what = refused(&mut FpmDecoder::default(), stream);
        assert!(what.starts_with("this is no FPM stream"), "{what}");
    }
    let what = refused(&mut NetlinkDecoder::default(), b"10.0.0.0/8 1.2.3.4\n");
    assert!(what.starts_with("this is no netlink stream"), "{what}");
}

#[test]
fn what_ip_route_save_wrote_is_read() {
    let stream = [0x4531_1224u32.to_ne_bytes().to_vec(), route(V4, &[number(4, 3)])].concat();
    says(
        &decode(&mut NetlinkDecoder::default(), &stream),
        &["+ 0 10.1.0.0/16 on the link interface 3"],
    );
}

/// A stream with everything in it, some of it damaged.
fn sample() -> Vec<Vec<u8>> {
    vec![
        gateway(1, 1),
        route(V4, &[number(30, 1)]),
        route(V6, &[number(30, 2)]),
        gateway(1, 2),
        delete(V4, &[]),
        route(V4, &[number(4, 3), number(6, 20)]),
        vec![5; 20],
        group(2, &[(1, 1)]),
        route(V4, &[attribute(5, &[1])]),
        delete(V6, &[]),
    ]
}

#[test]
fn every_cut_gives_the_same() {
    let messages = sample();
    let frames = [frame(&messages[..2]), vec![0; 7], frame(&messages[2..])].concat();
    let cut_everywhere = |stream: &[u8], new: &dyn Fn() -> Box<dyn Decoder>| {
        for tail in [Tail::End, Tail::Cut] {
            let whole = decode_in_pieces(&mut *new(), stream, &[], tail);
            assert!(!whole.damage.is_empty() && whole.lines.len() >= 4);
            for cut in 0..=stream.len() {
                let all: Vec<usize> = (cut..stream.len()).collect();
                assert_eq!(decode_in_pieces(&mut *new(), stream, &[cut], tail), whole, "{cut}");
                assert_eq!(decode_in_pieces(&mut *new(), stream, &all, tail), whole, "{cut}..");
            }
        }
    };
    cut_everywhere(&frames, &|| Box::new(FpmDecoder::default()));
    cut_everywhere(&messages.concat(), &|| Box::new(NetlinkDecoder::default()));
}

proptest! {
    /// Nothing panics, whatever is changed in a stream, and the cuts make no difference.
    #[test]
    fn damaged_streams_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        mut cuts in prop::collection::vec(0..700usize, 0..6),
        framed in any::<bool>(),
    ) {
        let mut stream = if framed { frame(&sample()) } else { sample().concat() };
        for (index, value) in changes {
            let at = index.index(stream.len());
            stream[at] = value;
        }
        cuts.sort_unstable();
        let run = |cuts: &[usize]| {
            let mut decoder: Box<dyn Decoder> =
                if framed { Box::new(FpmDecoder::default()) } else { Box::new(NetlinkDecoder::default()) };
            let mut sink = Collected::default();
            let mut start = 0;
            for &cut in cuts {
                let cut = cut.clamp(start, stream.len());
                start += decoder.decode(&stream[start..cut], Tail::More, &mut sink)?;
            }
            decoder.decode(&stream[start..], Tail::End, &mut sink).map(|_| sink)
        };
        prop_assert_eq!(run(&[]), run(&cuts));
    }

    /// The table after any changes is what a plain map of objects and routes says.
    #[test]
    fn replaced_objects_agree_with_a_plain_map(
        steps in prop::collection::vec((0..5u8, 0..4u32, 0..6u8), 0..60)
    ) {
        let (mut decoder, mut table) = (FpmDecoder::default(), Latest::default());
        let (mut objects, mut routes) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        let prefix = |n: u8| attribute(1, &[10, n, 0, 0]);
        for (step, id, n) in steps {
            let id = id + 1;
            let message = match step {
                0 => {
                    objects.insert(id, n);
                    gateway(id, n)
                }
                1 => {
                    if objects.remove(&id).is_some() {
                        routes.retain(|_, used| *used != id);
                    }
                    next_hop(kind::DELNEXTHOP, id, &[])
                }
                2 => {
                    routes.remove(&n);
                    delete(V4, &[prefix(n)])
                }
                _ => {
                    routes.insert(n, id);
                    route(V4, &[prefix(n), number(30, id)])
                }
            };
            decoder.decode(&frame(&[message]), Tail::More, &mut table).unwrap();
        }
        decoder.flush(&mut table);
        let expected: std::collections::BTreeMap<String, String> = routes
            .iter()
            .filter_map(|(n, id)| {
                let last = objects.get(id)?;
                Some((format!("10.{n}.0.0/16"), format!("via 10.9.0.{last} interface 3")))
            })
            .collect();
        prop_assert_eq!(table.0, expected);
    }
}

/// The table as it is now.
#[derive(Default)]
struct Latest(std::collections::BTreeMap<String, String>);

impl crate::Sink for Latest {
    fn update(&mut self, update: &fibula_core::Update<'_>) {
        use fibula_core::{Attributes, Change};
        match update.change {
            Change::Announce(Attributes::NextHops(hops)) => {
                self.0.insert(update.prefix.to_string(), hops.to_string());
            }
            _ => {
                self.0.remove(&update.prefix.to_string());
            }
        }
    }
    fn damage(&mut self, _: &crate::Damage) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }
}
