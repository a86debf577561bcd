//! Packets of a flow leave in the order in which they came in.

use super::*;

/// A UDP packet of a flow, with its number in the flow.
fn frame(flow: u16, number: u32) -> Vec<u8> {
    let flows =
        Flows::udp([2; 6], [4; 6], 64, [std::net::Ipv4Addr::from_bits(u32::from(flow)).into()]);
    let pool = Pool::new(1, 512);
    let options = memory_options(1, &Arc::new(flows), Some(1));
    let (mut port, _) = memory::open("one", &pool, &options);
    let mut burst = Vec::new();
    port.queues[0].receive.receive(&pool, &mut burst, 1).unwrap();
    let mut frame = burst[0].bytes().to_vec();
    pool.give(burst);
    frame[50..54].copy_from_slice(&number.to_be_bytes());
    frame
}

#[test]
fn flows_keep_their_order_in_every_shape() {
    const FLOWS: u16 = 40;
    const EACH: u32 = 60;
    let template: Vec<Vec<u8>> = (0..FLOWS).map(|flow| frame(flow, 0)).collect();
    let numbered = |flow: usize, number: u32| {
        let mut frame = template[flow].clone();
        frame[50..54].copy_from_slice(&number.to_be_bytes());
        frame
    };
    for shape in SHAPES {
        for spread in
            [fibula_router::pipeline::Spread::Queue, fibula_router::pipeline::Spread::Flow]
        {
            let pool = Pool::new(8192, 512);
            // Each of two ports has half of the flows, mixed.
            let frames = |from: usize| {
                let flows = move |number| {
                    (from..usize::from(FLOWS)).step_by(2).map(move |flow| (flow, number))
                };
                (0..EACH).flat_map(flows).map(|(flow, number)| numbered(flow, number))
            };
            let record = Record::default();
            let ports = vec![
                port("left", Script::frames(frames(0)), record.clone()).into(),
                port("right", Script::frames(frames(1)), Record::default()).into(),
            ];
            let options = PipelineOptions { spread, burst: 16, ..options(shape) };
            let end = run(&pool, ports, options, || Through).unwrap();
            assert_conserved(&pool, &end);
            assert_eq!(end.losses.iter().sum::<u64>(), 0, "rings are large");
            let mut next = vec![0; usize::from(FLOWS)];
            for frame in record.frames() {
                let flow = usize::from(frame[33]);
                let number = u32::from_be_bytes(frame[50..54].try_into().unwrap());
                assert_eq!(number, next[flow], "{shape:?} {spread:?}: flow {flow}");
                next[flow] += 1;
            }
            assert!(next.iter().all(|count| *count == EACH), "{next:?}");
        }
    }
}

/// Bursts of ports are looked up together, up to 128 packets, and none is larger than the burst of a port if that is
/// more.
#[test]
fn short_bursts_are_looked_up_together() {
    /// Keeps the ports of the packets of each burst.
    struct Seen(Arc<Mutex<Vec<Vec<u16>>>>);
    impl Stage for Seen {
        fn process<'p>(
            &mut self,
            pool: &'p Pool,
            now: Instant,
            burst: &mut Vec<Packet<'p>>,
            outcome: &mut Outcome<'p>,
        ) {
            self.0.lock().unwrap().push(burst.iter().map(|packet| packet.port).collect());
            Through.process(pool, now, burst, outcome);
        }
    }
    for (burst, expected) in [(64, [128, 64]), (128, [128, 128]), (200, [200, 200])] {
        let pool = Pool::new(4096, 512);
        let seen = Arc::default();
        // Three ports with two bursts each.
        let options = PipelineOptions { burst, ..options(ThreadLayout::Fused { threads: 1 }) };
        let opened = |at: usize| {
            let options = memory_options(1, &flows(9), Some(2 * burst as u64));
            memory::open(&at.to_string(), &pool, &options).0.into()
        };
        let ports: Vec<Attached<'_>> = (0..3).map(opened).collect();
        let end = run(&pool, ports, options, || Seen(Arc::clone(&seen))).unwrap();
        assert_conserved(&pool, &end);
        assert!(end.ports.iter().all(|port| port.received.packets == 2 * burst as u64), "{end:?}");
        assert_eq!(end.stage(|worker| worker.receive).bursts, 6);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let sizes: Vec<_> = seen.iter().take(2).map(Vec::len).collect();
        assert_eq!(sizes, expected);
        assert!(seen.iter().all(|ports| ports.is_sorted()), "port after port");
        assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 6 * burst);
    }
}
