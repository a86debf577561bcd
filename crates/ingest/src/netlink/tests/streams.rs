//! Streams: cut anywhere, damaged, refused; what a kernel answers.

use std::ops::ControlFlow;

use fibula_core::Update;
use proptest::prelude::*;

use super::super::wire::{flag, kind};
use super::super::{NetlinkDecoder, Notices, Reply};
use super::*;
use crate::{Damage, Sink, StopReason};

#[test]
fn answers_of_the_kernel_are_reported() {
    let done = |flags, error: i32| flagged(kind::DONE, flags, &error.to_ne_bytes());
    let mut decoder = NetlinkDecoder::new(Some(7));
    let mut sink = Ends::default();
    decoder.decode(&done(flag::DUMP_INTR, 0), Tail::More, &mut sink).unwrap();
    let reply = Reply { sequence: 7, error: 0 };
    let notices = Notices { replies: vec![reply], interrupted: true, ..Notices::default() };
    assert_eq!((sink.0, decoder.take_notices()), (0, notices));
    decoder.decode(&done(0, 0), Tail::More, &mut sink).unwrap();
    assert_eq!((sink.0, decoder.take_notices().interrupted), (1, false));
    let refused = message(kind::ERROR, &(-16i32).to_ne_bytes());
    decoder.decode(&[refused, done(0, -4)].concat(), Tail::More, &mut sink).unwrap();
    let errors: Vec<u32> = decoder.take_notices().replies.iter().map(|reply| reply.error).collect();
    assert_eq!((sink.0, errors), (1, vec![16, 4]));
    let mut other = NetlinkDecoder::new(Some(8));
    other.decode(&done(0, 0), Tail::More, &mut sink).unwrap();
    assert_eq!(sink.0, 1);
    let link = |kind, flags: u32| {
        let body = [&[0; 4][..], &3u32.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4]].concat();
        message(kind, &body)
    };
    let links = [
        link(kind::NEWLINK, 0x1_1043),
        link(kind::NEWLINK, 0x1003),
        link(kind::DELLINK, 0x1_1043),
        message(kind::DELADDR, &[]),
    ];
    other.decode(&links.concat(), Tail::More, &mut sink).unwrap();
    let notices = other.take_notices();
    assert_eq!(
        notices.links.iter().map(|link| (link.interface, link.is_up)).collect::<Vec<_>>(),
        [(3, true), (3, false), (3, false)]
    );
    assert!(notices.addresses);
    other.decode(&message(kind::OVERRUN, &[]), Tail::More, &mut sink).unwrap();
    assert!(other.take_notices().interrupted);
}

/// Counts the ends.
#[derive(Default)]
struct Ends(u32);

impl Sink for Ends {
    fn update(&mut self, _: &Update<'_>) {}
    fn end_of_rib(&mut self, _: u32) {
        self.0 += 1;
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
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

/// What a notification said while a dump ran is newer than what the dump says behind it.
#[test]
fn a_dump_is_older_than_a_notification_before_it() {
    let dumped = |kind, body: &[u8]| flagged(kind, flag::MULTI, body);
    let over = |interface| body(V4, UNICAST, &[number(4, interface)]);
    let object = |last| gateway(1, last)[16..].to_vec();
    let uses = body(V6, UNICAST, &[number(30, 1)]);
    let mut decoder = NetlinkDecoder::new(Some(7));
    let sink = decode(
        &mut decoder,
        &[
            // The object of this route is dumped later: it waits for it, and is not withdrawn.
            message(kind::NEWROUTE, &uses),
            dumped(kind::NEWNEXTHOP, &object(1)),
            message(kind::NEWNEXTHOP, &object(2)),
            dumped(kind::NEWNEXTHOP, &object(3)),
            message(kind::NEWROUTE, &over(4)),
            dumped(kind::NEWROUTE, &over(5)),
            message(kind::DELROUTE, &body(V4, UNICAST, &[])),
            dumped(kind::NEWROUTE, &over(5)),
            message(kind::DONE, &[0; 4]),
            // A dump by itself is believed.
            dumped(kind::NEWROUTE, &over(6)),
        ]
        .concat(),
    );
    expect_lines(
        &sink,
        &[
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3",
            "+ 0 10.1.0.0/16 on the link interface 4",
            "- 0 10.1.0.0/16",
            "+ 0 10.1.0.0/16 on the link interface 6",
        ],
    );
}

#[test]
fn other_streams_are_refused() {
    let refused = |decoder: &mut dyn Decoder, stream: &[u8]| match decoder.decode(
        stream,
        Tail::More,
        &mut Collected::default(),
    ) {
        Err(StopReason::Misfit(what)) => what,
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
    expect_lines(
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
}
