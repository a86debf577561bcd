//! Frames arrive as they were sent, by every kind of port.

use std::collections::HashMap;
use std::time::Duration;

use fibula_router::Pool;

use super::world::{Opened, PortKind, frame, inside, open, open_with, pair, pool, run};

/// Both ends: a port of that kind, and a packet socket at its other end.
fn ends<'p>(kind: PortKind, pool: &'p Pool, queues: u16) -> (Opened<'p>, Opened<'p>) {
    if kind == PortKind::Tap {
        run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
        let here = open_with(kind, "tA", pool, queues, 256);
        (here, open(PortKind::Packet, "tA", pool))
    } else {
        pair(queues.into());
        let here = open_with(kind, "dA", pool, queues, 256);
        (here, open(PortKind::Packet, "dB", pool))
    }
}

/// All lengths, in both directions, with and without a VLAN tag.
#[track_caller]
fn every_length(kind: PortKind) {
    let pool = pool();
    {
        let (mut here, mut there) = ends(kind, &pool, 1);
        for tag in [None, Some(0x6064)] {
            for is_out in [true, false] {
                let (sender, receiver) =
                    if is_out { (&mut here, &mut there) } else { (&mut there, &mut here) };
                let frames: Vec<_> =
                    (60..=1514).map(|len| frame(receiver.mac, len, len as u32, tag)).collect();
                for some in frames.chunks(50) {
                    let burst = some.iter().map(|bytes| sender.packet(bytes)).collect();
                    sender.send(0, burst);
                    let found = receiver.receive(some.len());
                    assert_eq!(found.len(), some.len(), "{kind:?} {tag:?} {is_out}");
                    for (found, sent) in found.iter().zip(some) {
                        assert_eq!(found, sent, "{kind:?} {tag:?} {is_out}");
                    }
                }
            }
        }
        assert_eq!(here.queues[0].receive.lost() + there.queues[0].receive.lost(), 0);
    }
    assert_eq!(pool.free(), 16_384, "slots are back");
}

/// More packets at once than rings have places: the sender waits, and the packets arrive in order.
#[track_caller]
fn large_bursts(kind: PortKind) {
    let pool = pool();
    {
        let (mut here, mut there) = ends(kind, &pool, 1);
        // Out: the other end keeps the packets in a large buffer.
        let frames: Vec<_> = (0..2000).map(|n| frame(there.mac, 80, n, None)).collect();
        let burst = frames.iter().map(|bytes| here.packet(bytes)).collect();
        here.send(0, burst);
        let found = there.receive(2000);
        assert!(found == frames, "{kind:?}: {} of 2000", found.len());
        // In: more than the ring's 256 are lost, and counted by someone; those that come are in order and whole.
        let frames: Vec<_> = (0..2000).map(|n| frame(here.mac, 80, n, None)).collect();
        let burst = frames.iter().map(|bytes| there.packet(bytes)).collect();
        there.send_what_fits(burst);
        let found = here.receive_within(2000, Duration::from_millis(300));
        assert!(found.len() >= 250, "{kind:?}: {}", found.len());
        let mut rest = frames.iter();
        assert!(found.iter().all(|found| rest.any(|sent| sent == found)), "{kind:?}");
        // Afterwards all is as before.
        let again = frame(here.mac, 999, 7, None);
        let burst = vec![there.packet(&again)];
        there.send(0, burst);
        assert_eq!(here.receive(1), [again]);
    }
    assert_eq!(pool.free(), 16_384, "slots are back");
}

/// Many flows by several queues: each packet comes once, and those of a flow in order.
#[track_caller]
fn several_queues(kind: PortKind) {
    let pool = pool();
    {
        let (mut here, mut there) = ends(kind, &pool, 3);
        assert_eq!(here.queues.len(), 3);
        let frames: Vec<_> =
            (0..3000).map(|n| frame(here.mac, 80 + n as usize / 64, n % 64, None)).collect();
        let mut found = Vec::new();
        for some in frames.chunks(60) {
            let burst = some.iter().map(|bytes| there.packet(bytes)).collect();
            there.send(0, burst);
            found.extend(here.receive(some.len()));
        }
        assert_eq!(found.len(), 3000, "{kind:?}");
        let mut last = HashMap::new();
        for frame in &found {
            let flow = &frame[30..38];
            let before = last.insert(flow.to_vec(), frame.len());
            assert!(before.is_none_or(|before| before < frame.len()), "{kind:?}: out of order");
        }
        // Out by each of them.
        for queue in 0..3 {
            let sent = frame(there.mac, 100, queue as u32, None);
            let burst = vec![here.packet(&sent)];
            here.send(queue, burst);
            assert_eq!(there.receive(1), [sent]);
        }
    }
    assert_eq!(pool.free(), 16_384, "slots are back");
}

macro_rules! tests {
    ($($name:ident $in_it:ident: $test:ident $kind:ident;)*) => {$(
        #[test]
        fn $name() {
            inside(concat!("ports::frames::", stringify!($in_it)));
        }

        #[test]
        #[ignore = "run by the test before it, in a namespace"]
        fn $in_it() {
            $test(PortKind::$kind);
        }
    )*};
}

tests! {
    every_length_packet in_it_every_length_packet: every_length Packet;
    every_length_native in_it_every_length_native: every_length Native;
    every_length_generic in_it_every_length_generic: every_length Generic;
    every_length_tap in_it_every_length_tap: every_length Tap;
    large_bursts_packet in_it_large_bursts_packet: large_bursts Packet;
    large_bursts_native in_it_large_bursts_native: large_bursts Native;
    large_bursts_generic in_it_large_bursts_generic: large_bursts Generic;
    large_bursts_tap in_it_large_bursts_tap: large_bursts Tap;
    several_queues_packet in_it_several_queues_packet: several_queues Packet;
    several_queues_native in_it_several_queues_native: several_queues Native;
    several_queues_tap in_it_several_queues_tap: several_queues Tap;
}
