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
