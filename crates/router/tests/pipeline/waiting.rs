//! Packets that wait for a neighbour.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fibula_router::pipeline::HoldOptions;

use super::*;

/// The neighbours that are known, and whether that has changed.
#[derive(Clone, Default)]
struct Known(Arc<Mutex<(BTreeSet<IpAddr>, bool)>>);

/// Sends packets to known neighbours by port 0. The neighbour is the packet's first byte.
struct ByNeighbour {
    known: Known,
    failed: Arc<Mutex<Vec<u8>>>,
}

fn neighbour(frame: &[u8]) -> IpAddr {
    [192, 0, 2, frame[0]].into()
}

impl Stage for ByNeighbour {
    fn process<'p>(
        &mut self,
        _: &'p Pool,
        _: Instant,
        burst: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        outcome.send.resize_with(outcome.send.len().max(1), Vec::new);
        let known = self.known.0.lock().unwrap();
        for packet in burst.drain(..) {
            let next_hop = neighbour(packet.bytes());
            if known.0.contains(&next_hop) {
                outcome.send[0].push(packet);
            } else {
                outcome.waiting.push((Waiting { port: 0, next_hop }, packet));
            }
        }
    }

    fn fail<'p>(
        &mut self,
        _: &'p Pool,
        _: Instant,
        packets: &mut Vec<Packet<'p>>,
        outcome: &mut Outcome<'p>,
    ) {
        self.failed.lock().unwrap().extend(packets.iter().map(|packet| packet.bytes()[1]));
        outcome.dropped.append(packets);
    }

    fn is_changed(&mut self) -> bool {
        std::mem::take(&mut self.known.0.lock().unwrap().1)
    }
}

/// The first two bytes are the neighbour, and the packet's number.
fn frames(neighbour: u8, numbers: std::ops::Range<u8>) -> Vec<Vec<u8>> {
    numbers.map(|number| vec![neighbour, number, 0, 0]).collect()
}

/// Runs it. Neighbour 1 is found when it is wanted; the others are never found.
fn wait(
    frames: Vec<Vec<u8>>,
    hold: HoldOptions,
    shape: ThreadLayout,
) -> (CounterValues, Vec<Vec<u8>>, Vec<u8>) {
    let pool = Pool::new(256, 512);
    let (known, failed, record) = (Known::default(), Arc::default(), Record::default());
    let ports = vec![port("link", Script::frames(frames), record.clone()).into()];
    let pipeline = Pipeline::new(&pool, ports, PipelineOptions { hold, ..options(shape) }).unwrap();
    let stage = || ByNeighbour { known: known.clone(), failed: Arc::clone(&failed) };
    let stages = (0..pipeline.lookups()).map(|_| Box::new(stage()) as Box<dyn Stage>).collect();
    let resolve = |waiting: Waiting| {
        assert_eq!(waiting.port, 0);
        if waiting.next_hop == neighbour(&[1]) {
            let mut known = known.0.lock().unwrap();
            let is_new = known.0.insert(waiting.next_hop);
            known.1 |= is_new;
        }
    };
    let end = pipeline.run(stages, &resolve, &|event| ignore(&event)).unwrap();
    assert_conserved(&pool, &end);
    let failed = std::mem::take(&mut *failed.lock().unwrap());
    (end, record.frames(), failed)
}

#[test]
fn they_leave_in_order_once_it_is_known() {
    for shape in SHAPES {
        let hold = HoldOptions { each: 100, ..Default::default() };
        let (end, sent, failed) = wait(frames(1, 0..90), hold, shape);
        assert_eq!(sent, frames(1, 0..90), "{shape:?}");
        assert_eq!((end.dropped, end.losses.iter().sum::<u64>(), failed.len()), (0, 0, 0));
    }
}

#[test]
fn they_are_given_up_if_it_never_is() {
    let hold = HoldOptions { nanos: 2_000_000, ..Default::default() };
    for shape in SHAPES {
        let (end, sent, mut failed) = wait(frames(2, 0..9), hold, shape);
        assert!(sent.is_empty());
        // The three newest.
        failed.sort_unstable();
        assert_eq!(
            (failed, end.dropped, end.lost(Loss::HoldFull)),
            (vec![6, 7, 8], 3, 6),
            "{shape:?}"
        );
    }
}

#[test]
fn few_wait_in_all() {
    let hold = HoldOptions { each: 3, all: 10, nanos: 2_000_000 };
    let many: Vec<_> = (2..50).flat_map(|at| frames(at, 0..2)).collect();
    let (end, _, failed) = wait(many, hold, ThreadLayout::Fused { threads: 1 });
    assert_eq!((failed.len(), end.dropped, end.lost(Loss::HoldFull)), (10, 10, 86));
}
