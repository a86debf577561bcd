//! Single rules, each by packets that differ in nothing else.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fibula_router::egress::Group;
use fibula_router::forward::{Reason, Waiting};
use fibula_router::{ForwardOptions, Forwarder, Outcome, Pool, View};
use fibula_testkit::Rng;
use proptest::prelude::*;

use super::frames::{OPTIONS, V4, V6, any};
use super::model::{ExpectedError, checksum, u16_at};
use super::world::{Bench, SLOT, World, options};

/// Forwards one frame in the world without a model. Returns the sent packets, by port.
fn sent(view: &View<'_>, options: ForwardOptions, frames: &[Vec<u8>]) -> Vec<(u16, Vec<u8>)> {
    let pool = Pool::new(frames.len() as u32 + 32, 4096);
    let mut forwarder = Forwarder::new(options);
    let mut burst: Vec<_> = frames.iter().map(|frame| filled(&pool, frame)).collect();
    let mut outcome = Outcome::default();
    forwarder.forward(view, &pool, Instant::now(), &mut burst, &mut outcome);
    let sent = outcome.send.iter().enumerate().flat_map(|(port, packets)| {
        packets.iter().map(move |packet| (port as u16, packet.bytes().to_vec()))
    });
    sent.collect()
}

fn filled<'p>(pool: &'p Pool, frame: &[u8]) -> fibula_router::Packet<'p> {
    let mut packet = pool.take().unwrap();
    assert!(packet.fill(frame));
    packet
}

/// The whole of a forwarded frame, worked out by hand: TTL 64 to 63, checksum 0x97c1 to 0x98c1.
#[test]
fn a_packet_by_hand() {
    let world = World::new(false);
    let mut frame = V4::to(0).frame(0);
    frame.extend([0xee; 14]);
    assert_eq!(frame[22..26], [64, 17, 0x97, 0xc1]);
    let mut expected = V4::to(0).frame(0);
    expected[..12].copy_from_slice(&[2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 1, 0]);
    expected[22..26].copy_from_slice(&[63, 17, 0x98, 0xc1]);
    assert_eq!(sent(&world.view(), options(), &[frame]), [(0, expected)]);
}

/// A time exceeded that was worked out by hand, but for its checksums, which are verified.
#[test]
fn an_error_by_hand() {
    let world = World::new(false);
    let packet = V4 { ttl: 1, class: 0xff, ..V4::to(0) };
    let [(port, error)] = &sent(&world.view(), options(), &[packet.frame(0)])[..] else { panic!() };
    assert_eq!(*port, 0);
    // Back to the sender, at the first address that is no link-local one.
    assert_eq!(error[..14], [2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 1, 0, 8, 0]);
    let (ip, message) = (&error[14..34], &error[34..]);
    assert_eq!(ip[..10], [0x45, 0xdc, 0, 60, 0, 0, 0x40, 0, 64, 1]);
    assert_eq!(ip[12..], [192, 0, 2, 1, 198, 18, 0, 5]);
    assert_eq!((checksum(ip), checksum(message)), (0, 0));
    assert_eq!((&message[..2], &message[4..8]), (&[11, 0][..], &[0; 4][..]));
    assert_eq!(message[8..], packet.packet());
}

/// The errors' lengths: as much of the packet as makes 576 or 1,280 bytes, and no padding of its frame.
#[test]
fn errors_quote_as_much_as_fits() {
    let world = World::new(true);
    for len in [0, 8, 520, 527, 528, 529, 1400] {
        let mut frame = V4 { ttl: 1, payload: vec![1; len], protocol: 99, ..V4::to(0) }.frame(0);
        frame.extend([0; 7]);
        let [(_, error)] = &sent(&world.view(), options(), &[frame])[..] else { panic!() };
        assert_eq!(error.len() - 14, 576.min(28 + 20 + len), "{len}");
    }
    for len in [0, 8, 1191, 1192, 1193, 1400] {
        let mut frame = V6 { limit: 1, payload: vec![1; len], next: 99, ..V6::to(0) }.frame(0);
        frame.extend([0; 7]);
        let [(_, error)] = &sent(&world.view(), options(), &[frame])[..] else { panic!() };
        assert_eq!(error.len() - 14, 1280.min(48 + 40 + len), "{len}");
    }
}

/// Source routes are ignored if the options are set so.
#[test]
fn source_routes() {
    let world = World::new(false);
    let ignore = fibula_router::forward::SourceRoutes::Ignore;
    for (option, drops) in [(6, true), (7, true), (1, false), (8, false)] {
        let packet = V4 { options: OPTIONS[option].to_vec(), ..V4::to(0) };
        let frames = [packet.frame(0)];
        assert_eq!(sent(&world.view(), options(), &frames).is_empty(), drops, "option {option}");
        let ignoring = ForwardOptions { source_routes: ignore, ..options() };
        let [(0, frame)] = &sent(&world.view(), ignoring, &frames)[..] else { panic!("{option}") };
        assert_eq!(frame[34..], packet.packet()[20..]);
    }
}

/// Each port has its own limit, time refills it, and errors that are not sent are counted.
#[test]
fn errors_are_limited() {
    let world = World::new(true);
    let pool = Pool::new(256, 2048);
    let limits = ForwardOptions { icmp_rate: 10, icmp_burst: 3, ..options() };
    let mut forwarder = Forwarder::new(limits);
    let (start, mut outcome) = (Instant::now(), Outcome::default());
    let mut errors = |ms: u64, port: u16, tries: usize| {
        let mut burst = Vec::new();
        for number in 0..tries {
            let frame = match number % 2 {
                0 => V4 { ttl: 1, ..V4::to(0) }.frame(port),
                _ => V6 { limit: 1, ..V6::to(0) }.frame(port),
            };
            let mut packet = filled(&pool, &frame);
            packet.port = port;
            burst.push(packet);
        }
        let now = start + Duration::from_millis(ms);
        forwarder.forward(&world.view(), &pool, now, &mut burst, &mut outcome);
        let sent = outcome.send[usize::from(port)].len();
        pool.give(outcome.send.iter_mut().flat_map(|sent| sent.drain(..)));
        pool.give(outcome.dropped.drain(..));
        let counters = forwarder.counters();
        (sent, counters.packets(Reason::IcmpSent), counters.packets(Reason::IcmpLimited))
    };
    assert_eq!(errors(0, 0, 8), (3, 3, 5));
    assert_eq!(errors(0, 1, 2), (2, 5, 5));
    assert_eq!(errors(99, 0, 4), (0, 5, 9));
    assert_eq!(errors(100, 0, 4), (1, 6, 12));
    assert_eq!(errors(60_000, 0, 8), (3, 9, 17));
    // Off, there are none, and none are counted.
    forwarder = Forwarder::new(ForwardOptions { icmp: false, ..options() });
    let mut burst = vec![filled(&pool, &V4 { ttl: 1, ..V4::to(0) }.frame(0))];
    forwarder.forward(&world.view(), &pool, start, &mut burst, &mut outcome);
    assert!(outcome.send.iter().all(Vec::is_empty) && outcome.dropped.len() == 1);
    assert_eq!(forwarder.counters().packets(Reason::IcmpLimited), 0);
    assert_eq!(forwarder.counters().packets(Reason::Expired), 1);
    pool.give(outcome.dropped.drain(..));
    assert_eq!(pool.free(), 256);
}

/// A pool without slots: fragments are all sent or none is, and no slot is lost.
#[test]
fn without_slots() {
    let world = World::new(false);
    for slots in 1..7 {
        let pool = Pool::new(slots, 4096);
        let mut forwarder = Forwarder::new(options());
        let mut outcome = Outcome::default();
        // Four fragments for an MTU of 576; then an error.
        let large = V4 { payload: vec![7; 2000], ..V4::to(2) };
        let mut burst = vec![filled(&pool, &large.frame(0))];
        forwarder.forward(&world.view(), &pool, Instant::now(), &mut burst, &mut outcome);
        let counters = forwarder.counters();
        let sent = if slots >= 4 { 4 } else { 0 };
        assert_eq!(outcome.send[2].len(), sent, "{slots} slots");
        assert_eq!(counters.packets(Reason::Fragment), sent as u64);
        assert_eq!(counters.packets(Reason::NoSlot), u64::from(sent == 0));
        pool.give(outcome.send[2].drain(..).chain(outcome.dropped.drain(..)));
        assert_eq!(pool.free(), slots as usize);
    }
    let pool = Pool::new(1, 2048);
    let mut burst = vec![filled(&pool, &V4 { ttl: 0, ..V4::to(0) }.frame(0))];
    let (mut forwarder, mut outcome) = (Forwarder::new(options()), Outcome::default());
    forwarder.forward(&world.view(), &pool, Instant::now(), &mut burst, &mut outcome);
    assert_eq!(forwarder.counters().packets(Reason::IcmpNoSlot), 1);
    assert!(outcome.send.iter().all(Vec::is_empty) && outcome.dropped.len() == 1);
}

/// Waiting packets are returned unchanged, and are sent once the MAC address is known; otherwise their senders get
/// errors.
#[test]
fn neighbours_that_answer_and_that_do_not() {
    let pool = Pool::new(16, SLOT);
    let mut bench = Bench::new(&pool, true);
    let frames = [V4::to(5).frame(0), V6::to(6).frame(0), V4::to(7).frame(1), V6::to(7).frame(0)];
    let mut frames = frames.each_ref().map(|frame| (0, &frame[..]));
    frames[2].0 = 1;
    bench.check(&frames);
    let waits: Vec<Waiting> = bench.outcome.waiting.iter().map(|(waiting, _)| *waiting).collect();
    let expected = [(1, "203.0.113.77"), (1, "2001:db8:7::9")]
        .map(|(port, address)| Waiting { port, next_hop: address.parse().unwrap() });
    assert_eq!(waits, expected);
    // They did not answer.
    let mut packets: Vec<_> = bench.outcome.waiting.drain(..).map(|(_, packet)| packet).collect();
    let sent_before = bench.outcome.send[0].len();
    let view = bench.world.view();
    bench.forwarder.fail(&view, &pool, Instant::now(), &mut packets, &mut bench.outcome);
    let description: Vec<_> =
        bench.outcome.send[0][sent_before..].iter().map(|p| p.bytes().to_vec()).collect();
    let expected: Vec<_> = [frames[0], frames[3]]
        .iter()
        .map(|(port, frame)| match bench.world.model(|model| model.fail(*port, frame)) {
            ExpectedError::Error(0, error) => error,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(description, expected);
    assert_eq!(bench.forwarder.counters().packets(Reason::NoNeighbour), 2);
    bench.clear();
    assert_eq!(pool.free(), 16);
    // They answered: the same tables, and a MAC address.
    let mut egress = bench.world.paths.description().clone();
    egress.adjacencies[3].mac = Some([2, 0, 0, 0, 7, 7]);
    bench.world.paths = egress.into();
    let sent = sent(&bench.world.view(), options(), &[V4::to(5).frame(0)]);
    assert_eq!((sent[0].0, &sent[0].1[..6]), (1, &[2, 0, 0, 0, 7, 7][..]));
}

/// Both paths through the forwarder treat every frame equally.
#[test]
fn bursts_and_single_packets_agree() {
    let world = World::new(true);
    let pool = Pool::new(8192, 8192);
    let mut rng = Rng::new(41);
    let mut forwarders = [Forwarder::new(options()), Forwarder::new(options())];
    for _ in 0..60 {
        let frames: Vec<_> = (0..200).map(|_| any(&mut rng)).collect();
        let mut outcomes = [Outcome::default(), Outcome::default()];
        for (which, outcome) in outcomes.iter_mut().enumerate() {
            let mut burst: Vec<_> = frames
                .iter()
                .map(|(port, frame)| {
                    let mut packet = filled(&pool, frame);
                    packet.port = *port;
                    packet
                })
                .collect();
            let (view, now) = (world.view(), Instant::now());
            match which {
                0 => forwarders[0].forward(&view, &pool, now, &mut burst, outcome),
                _ => forwarders[1].forward_one_by_one(&view, &pool, now, &mut burst, outcome),
            }
        }
        let said = outcomes.each_ref().map(|outcome| {
            let bytes = |packets: &[fibula_router::Packet<'_>]| -> Vec<_> {
                packets.iter().map(|packet| (packet.port, packet.bytes().to_vec())).collect()
            };
            let send: Vec<_> = outcome.send.iter().map(|packets| bytes(packets)).collect();
            let waiting: Vec<_> =
                outcome.waiting.iter().map(|(w, p)| (*w, p.bytes().to_vec())).collect();
            (send, bytes(&outcome.host), waiting, bytes(&outcome.dropped))
        });
        assert!(said[0] == said[1]);
        for outcome in outcomes {
            pool.give(outcome.send.into_iter().flatten().chain(outcome.host));
            pool.give(
                outcome.dropped.into_iter().chain(outcome.waiting.into_iter().map(|(_, p)| p)),
            );
        }
    }
    let counted = forwarders.each_ref().map(|f| f.counters().iter().collect::<Vec<_>>());
    assert_eq!(counted[0], counted[1]);
    assert_eq!(pool.free(), 8192);
}

/// Members get packets in proportion to how often they occur in the group.
#[test]
fn shares_follow_weights() {
    let world = World::new(false);
    let Group::Forward(members) = &world.paths.description().groups[3] else { panic!() };
    assert_eq!(members.len(), 4);
    let mut rng = Rng::new(3);
    let frames: Vec<_> = (0..4000)
        .map(|_| {
            let mut packet = V4::to(3);
            packet.source[1..].copy_from_slice(&rng.next_u64().to_le_bytes()[..3]);
            packet.payload[..4].copy_from_slice(&rng.next_u64().to_le_bytes()[..4]);
            packet.frame(0)
        })
        .collect();
    let mut counts = HashMap::<u16, usize>::new();
    for (port, _) in sent(&world.view(), options(), &frames) {
        *counts.entry(port).or_default() += 1;
    }
    for (port, expected) in [(0, 2000), (1, 1000), (2, 1000)] {
        assert!(counts[&port].abs_diff(expected) < 150, "{counts:?}");
    }
}

/// The port that a frame leaves by, if it leaves.
fn port_of(world: &World, frame: &[u8]) -> Option<u16> {
    sent(&world.view(), options(), &[frame.to_vec()]).first().map(|(port, _)| *port)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Both directions of a flow, and all its fragments, take the same way.
    #[test]
    fn flows_stay_together(from: [u8; 2], to: [u8; 2], ports: (u16, u16), protocol in prop_oneof![Just(6u8), Just(17), Just(132), Just(47)]) {
        // Both ends lie in the network of the group with shares.
        let world = World::new(false);
        let ends4 = [[10, 3, from[0], from[1]], [10, 3, to[0], to[1]]];
        let payload = |a: u16, b: u16| [a.to_be_bytes(), b.to_be_bytes(), [0; 2], [0; 2]].concat();
        let v4 = |ends: [[u8; 4]; 2], a, b, fragment| V4 {
            source: ends[0], destination: ends[1], protocol, fragment, payload: payload(a, b), ..V4::to(3)
        }.frame(0);
        let there = port_of(&world, &v4(ends4, ports.0, ports.1, 0));
        prop_assert!(there.is_some());
        prop_assert_eq!(there, port_of(&world, &v4([ends4[1], ends4[0]], ports.1, ports.0, 0)));
        let first = port_of(&world, &v4(ends4, ports.0, ports.1, 0x2000));
        prop_assert_eq!(first, port_of(&world, &v4(ends4, ports.1, 7, 0x0003)));
        prop_assert_eq!(first, port_of(&world, &v4([ends4[1], ends4[0]], 9, 7, 0x2003)));
        let base = V6::to(3).destination;
        let end = |last: [u8; 2]| { let mut end = base; end[14..].copy_from_slice(&last); end };
        let v6 = |source, destination, next, chain: &[u8], a, b| V6 {
            source, destination, next, payload: [chain, &payload(a, b)].concat(), ..V6::to(3)
        }.frame(0);
        let (a, b) = (end(from), end(to));
        let there = port_of(&world, &v6(a, b, protocol, &[], ports.0, ports.1));
        prop_assert_eq!(there, port_of(&world, &v6(b, a, protocol, &[], ports.1, ports.0)));
        prop_assert_eq!(there, port_of(&world, &v6(a, b, 60, &[protocol, 0, 1, 4, 0, 0, 0, 0], ports.0, ports.1)));
        let first = port_of(&world, &v6(a, b, 44, &[protocol, 0, 0, 1, 0, 0, 0, 7], ports.0, ports.1));
        prop_assert_eq!(first, port_of(&world, &v6(b, a, 44, &[60, 0, 0, 8, 0, 0, 0, 7], 1, 2)));
    }

    /// Fragments put together are the packet: data in place, lengths within the MTU, flags and options as they must be.
    #[test]
    fn fragments_make_the_packet(
        len in 565usize..3700, fragment in prop_oneof![Just(0u16), Just(0x2000), Just(0x2005), Just(5)], option in 0usize..5,
    ) {
        let len = if fragment & 0x2000 != 0 { len / 8 * 8 } else { len };
        let payload: Vec<u8> = (0..len).map(|at| (at * 7 / 3) as u8).collect();
        let packet = V4 { fragment, payload: payload.clone(), options: OPTIONS[option].to_vec(), ..V4::to(2) };
        let sent = sent(&World::new(false).view(), options(), &[packet.frame(0)]);
        let mut rest = &payload[..];
        let last = sent.len() - 1;
        prop_assert!(last > 0);
        for (number, (port, frame)) in sent.iter().enumerate() {
            let ip = &frame[14..];
            let header = usize::from(ip[0] & 15) * 4;
            prop_assert_eq!((*port, u16_at(ip, 2) as usize, checksum(&ip[..header])), (2, ip.len(), 0));
            prop_assert!(ip.len() <= 576 && u16_at(ip, 4) == 0x1234 && ip[8] == 63);
            let offset = (fragment & 0x1fff) as usize * 8 + payload.len() - rest.len();
            let more = number < last || fragment & 0x2000 != 0;
            prop_assert_eq!(u16_at(ip, 6) as usize, offset / 8 + (usize::from(more) << 13));
            prop_assert!(number == 0 || ip[20..header].iter().all(|kind| *kind != 7 && *kind != 0x44));
            let (now, later) = rest.split_at(ip.len() - header);
            prop_assert_eq!(&ip[header..], now);
            rest = later;
        }
        prop_assert!(rest.is_empty());
    }
}
