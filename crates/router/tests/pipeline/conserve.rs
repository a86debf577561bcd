//! Every packet is accounted for.

use super::*;

/// Two ports with several queues; the flows of each are sent by both, given to the host, dropped, held, lost.
fn scatter(
    pool: &Pool,
    shape: ThreadLayout,
    burst: usize,
    queues: usize,
    packets: u64,
) -> (CounterValues, u64) {
    let flows = flows(64);
    let open = |name| memory::open(name, pool, &memory_options(queues, &flows, Some(packets)));
    let ((left, sent_left), (right, sent_right)) = (open("left"), open("right"));
    let hosts = Record::default();
    let host = Queue { receive: Box::new(nothing()), transmit: Box::new(hosts.clone()) };
    let ports = vec![Attached { port: left, host: Some(host) }, right.into()];
    let hold = fibula_router::pipeline::HoldOptions { nanos: 1_000_000, ..Default::default() };
    let end = run(pool, ports, PipelineOptions { burst, hold, ..options(shape) }, || Scatter);
    let end = end.unwrap();
    assert_eq!(end.ports[0].to_host.packets, hosts.frames().len() as u64);
    let counted = |port: usize| (end.ports[port].sent.packets, end.ports[port].sent.bytes);
    assert_eq!(counted(0), (sent_left.packets(), sent_left.bytes()));
    assert_eq!(counted(1), (sent_right.packets(), sent_right.bytes()));
    (end, sent_left.checksum().wrapping_add(sent_right.checksum()))
}

#[test]
fn every_packet_is_accounted_for_in_every_shape() {
    let mut checksums = Vec::new();
    for shape in SHAPES {
        for queues in [1, 4] {
            // Queues have flows of their own, all of them as often.
            let packets = 64 / queues as u64 * 10;
            let pool = Pool::new(4096, 512);
            let (end, checksum) = scatter(&pool, shape, 32, queues, packets);
            assert_conserved(&pool, &end);
            let [left, right] = &end.ports[..] else { panic!("{end:?}") };
            let came = packets * queues as u64;
            assert_eq!((left.received.packets, right.received.packets), (came, came));
            assert_eq!(left.received.bytes, came * 64);
            // 12 of 16 flows are sent on, one each to the host, nowhere, to a neighbour, to a third port.
            assert_eq!(left.sent.packets + right.sent.packets, 2 * came * 12 / 16, "{shape:?}");
            assert_eq!(left.to_host.packets, came / 16);
            assert_eq!(end.lost(Loss::NoHost), came / 16, "the right port has no host");
            assert_eq!(end.lost(Loss::NoPort), 2 * came / 16);
            // Held packets are dropped by the stage in the end, or by the bounded hold.
            assert_eq!(end.dropped + end.lost(Loss::HoldFull), 2 * came * 2 / 16);
            assert!(end.dropped > 2 * came / 16, "some waited");
            let looked_up = end.stage(|worker| worker.lookup).packets;
            assert!(looked_up >= 2 * came, "{looked_up}");
            assert_eq!(end.stage(|worker| worker.receive).packets, 2 * came);
            assert!(end.latency.len() >= left.sent.packets + right.sent.packets);
            checksums.push(checksum);
        }
    }
    assert!(checksums.iter().all(|checksum| *checksum == checksums[0]), "{checksums:?}");
}

#[test]
fn bursts_of_all_sizes() {
    let pool = Pool::new(4096, 512);
    for burst in 1..=256 {
        let shape = SHAPES[burst % SHAPES.len()];
        let (end, _) = scatter(&pool, shape, burst, 2, 300);
        assert_conserved(&pool, &end);
        assert_eq!(end.ports[0].received.packets, 600);
        let receive = end.stage(|worker| worker.receive);
        assert!(
            receive.bursts >= receive.packets.div_ceil(burst as u64),
            "burst {burst}: {receive:?}"
        );
    }
}

/// Lookup is slow, and the ring in front of it short.
#[test]
fn full_rings_drop_and_count() {
    struct Slow;
    impl Stage for Slow {
        fn process<'p>(
            &mut self,
            pool: &'p Pool,
            now: Instant,
            burst: &mut Vec<Packet<'p>>,
            outcome: &mut Outcome<'p>,
        ) {
            std::thread::sleep(Duration::from_millis(2));
            Through.process(pool, now, burst, outcome);
        }
    }
    let pool = Pool::new(1024, 512);
    for (shape, spread) in [
        (ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 1 }, Default::default()),
        (
            ThreadLayout::Staged { receive: 1, lookup: 2, transmit: 0 },
            fibula_router::pipeline::Spread::Flow,
        ),
    ] {
        let (port, sent) = memory::open("m", &pool, &memory_options(1, &flows(50), Some(2000)));
        let options = PipelineOptions { ring: 8, burst: 4, spread, ..options(shape) };
        let end = run(&pool, vec![port.into()], options, || Slow).unwrap();
        assert_conserved(&pool, &end);
        assert!(end.lost(Loss::LookupRing) > 0, "{end:?}");
        assert_eq!(sent.packets() + end.losses.iter().sum::<u64>(), 2000);
        assert!(sent.packets() > 0);
    }
}

/// The same between lookup and transmitting threads: the port is slow.
#[test]
fn full_rings_to_transmitting_threads_drop_and_count() {
    struct Slow(Record);
    impl<'p> Transmit<'p> for Slow {
        fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(2));
            self.0.transmit(pool, burst)
        }
        fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
            Ok(())
        }
    }
    let pool = Pool::new(4096, 512);
    let frames: Vec<_> = (0..2000u32).map(|at| at.to_be_bytes().to_vec()).collect();
    let record = Record::default();
    let port = port("slow", Script::frames(frames), Slow(record.clone()));
    // The ring to the lookup thread has room for its bursts, that to the transmitting thread soon has none.
    let shape = ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 1 };
    let options = PipelineOptions { ring: 256, burst: 64, ..options(shape) };
    let end = run(&pool, vec![port.into()], options, || Through).unwrap();
    assert_conserved(&pool, &end);
    assert!(end.lost(Loss::TransmitRing) + end.lost(Loss::LookupRing) > 0, "{end:?}");
    assert_eq!(record.frames().len() as u64, end.ports[0].sent.packets);
}
