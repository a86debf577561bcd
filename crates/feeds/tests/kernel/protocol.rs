//! The protocol without a kernel: its requests, and when it repeats them.

use std::time::Duration;

use fibula_feeds::kernel::{KernelOptions, KernelProtocol, Overruns};
use fibula_feeds::{FeedError, Protocol, SourceState};
use fibula_rib::Rib;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let len = 16 + body.len() as u32;
    [
        &len.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &sequence.to_ne_bytes(),
        &[0; 4],
        body,
    ]
    .concat()
}

/// 10.n.0.0/16 on interface 3, as a dump has it.
fn route(n: u8) -> Vec<u8> {
    let head = [2, 16, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let len = 8u16.to_ne_bytes();
    let dst = [&len[..], &1u16.to_ne_bytes(), &[10, n, 0, 0]].concat();
    let interface = [&len[..], &4u16.to_ne_bytes(), &3u32.to_ne_bytes()].concat();
    message(24, 2, 0, &[&head[..], &dst, &interface].concat())
}

fn link(flags: u32) -> Vec<u8> {
    let body = [&[0; 4][..], &3u32.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4]].concat();
    message(16, 0, 0, &body)
}

const UP: u32 = 0x1_0041;
const INTERRUPTED: u16 = 0x10;

/// A kernel that the test plays.
struct Played {
    kernel: KernelProtocol,
    rib: Rib,
    /// The requests without an answer so far: type, family, sequence number.
    requests: Vec<(u16, u8, u32)>,
}

impl Played {
    fn new() -> Self {
        let options = KernelOptions { every: None, settle: s(1), ..Default::default() };
        let kernel = KernelProtocol::new(options, Overruns::default());
        Self { kernel, rib: Rib::default(), requests: Vec::new() }
    }

    fn note(&mut self, out: &[u8]) {
        let number = |at: usize| u32::from_ne_bytes(out[at..at + 4].try_into().unwrap());
        if !out.is_empty() {
            assert_eq!(number(0) as usize, out.len(), "one request at a time");
            let kind = u16::from_ne_bytes([out[4], out[5]]);
            assert_eq!(u16::from_ne_bytes([out[6], out[7]]), 0x301);
            self.requests.push((kind, out[16], number(8)));
        }
    }

    fn connect(&mut self, now: u64) {
        let mut out = Vec::new();
        self.kernel.connected(s(now), &mut self.rib, &mut out).unwrap();
        self.note(&out);
    }

    fn bytes_arrive(&mut self, now: u64, bytes: &[u8]) -> Result<(), FeedError> {
        let mut out = Vec::new();
        let done = self.kernel.bytes(s(now), bytes, &mut self.rib, &mut out);
        self.note(&out);
        done
    }

    fn tick(&mut self, now: u64) -> Result<(), FeedError> {
        let mut out = Vec::new();
        let done = self.kernel.tick(s(now), &mut self.rib, &mut out);
        self.note(&out);
        done
    }

    /// Ends the requested part of the dump.
    fn done(&mut self, now: u64, flags: u16) {
        let (.., sequence) = self.requests.pop().expect("there is a request");
        self.bytes_arrive(now, &message(3, flags, sequence, &[0; 4])).unwrap();
    }

    /// Answers a whole dump with these routes.
    fn dump(&mut self, now: u64, routes: &[u8]) {
        let kinds = |requests: &[(u16, u8, u32)]| {
            requests.iter().map(|&(kind, family, _)| (kind, family)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&self.requests), [(106, 0)]);
        self.done(now, 0);
        assert_eq!(kinds(&self.requests), [(26, 2)]);
        for &n in routes {
            self.bytes_arrive(now, &route(n)).unwrap();
        }
        self.done(now, 0);
        assert_eq!(kinds(&self.requests), [(26, 10)]);
        self.done(now, 0);
        assert_eq!(self.requests, []);
    }

    fn len(&self) -> usize {
        self.rib.len::<u32>(0)
    }
}

#[test]
fn everything_is_requested_in_parts_and_swept_at_the_end() {
    let mut played = Played::new();
    assert_eq!((played.kernel.state(), played.kernel.deadline()), (SourceState::Idle, None));
    played.connect(0);
    assert_eq!(played.kernel.state(), SourceState::Resync);
    played.dump(1, &[1, 2, 3]);
    assert_eq!(
        (played.kernel.state(), played.len(), played.kernel.deadline()),
        (SourceState::Up, 3, None)
    );
    // The socket is lost, and its routes stay in use; the next dump lacks some of them.
    played.kernel.disconnected(s(2));
    assert_eq!((played.kernel.state(), played.len()), (SourceState::Lost, 3));
    played.connect(3);
    played.dump(4, &[2]);
    assert_eq!(played.len(), 1);
    played.kernel.disconnected(s(5));
    played.tick(124).unwrap();
    assert_eq!(played.len(), 1);
    played.tick(125).unwrap();
    assert_eq!((played.kernel.state(), played.len()), (SourceState::Idle, 0));
    let figures = played.kernel.figures();
    assert_eq!((figures.connections, &*figures.remarks["dumps"]), (2, "2"));
}

#[test]
fn an_interrupted_dump_sweeps_nothing_and_is_repeated() {
    let mut played = Played::new();
    played.connect(0);
    played.dump(1, &[1, 2]);
    assert!(played.kernel.refresh(s(2), &mut played.rib, &mut Vec::new()).unwrap());
    // The request is the fourth of all.
    played.requests.push((106, 0, 4));
    played.done(2, 0);
    played.bytes_arrive(2, &route(1)).unwrap();
    played.done(2, INTERRUPTED);
    played.done(2, 0);
    assert_eq!((played.kernel.state(), played.len()), (SourceState::Resync, 2));
    assert_eq!(played.kernel.deadline(), Some(s(3)));
    played.tick(3).unwrap();
    played.dump(4, &[1]);
    assert_eq!((played.kernel.state(), played.len()), (SourceState::Up, 1));
    assert_eq!(played.kernel.figures().remarks["interrupted"], "1");
}

#[test]
fn a_link_that_changes_is_a_reason_to_ask_again() {
    let mut played = Played::new();
    played.connect(0);
    played.dump(1, &[1]);
    for (at, flags, asks) in [(10, UP, true), (20, UP | 0x1000, false), (30, 0x1003, true)] {
        played.bytes_arrive(at, &link(flags)).unwrap();
        assert_eq!(played.kernel.deadline(), asks.then(|| s(at + 1)), "{flags:x}");
        if asks {
            assert_eq!(played.kernel.state(), SourceState::Resync);
            // Further changes do not delay the dump, and there is no new request while the kernel answers one.
            played.bytes_arrive(at, &message(21, 0, 0, &[])).unwrap();
            played.tick(at + 1).unwrap();
            played.dump(at + 2, &[1]);
            assert_eq!(played.kernel.state(), SourceState::Up);
        }
    }
    assert_eq!(played.kernel.figures().remarks["dumps"], "3");
}

#[test]
fn routes_are_requested_from_a_kernel_without_next_hop_objects() {
    let refusal = |sequence| message(2, 0, sequence, &(-95i32).to_ne_bytes());
    let mut played = Played::new();
    played.connect(0);
    let (.., sequence) = played.requests.pop().unwrap();
    played.bytes_arrive(1, &refusal(sequence)).unwrap();
    assert_eq!(played.requests, [(26, 2, 2)]);
    let error = played.bytes_arrive(1, &refusal(2)).unwrap_err();
    assert_eq!(error.to_string(), "the kernel does not dump its routes: error 95");
}

#[test]
fn a_kernel_that_does_not_answer_is_given_up() {
    let mut played = Played::new();
    played.connect(0);
    assert_eq!(played.kernel.deadline(), Some(s(30)));
    played.bytes_arrive(10, &route(1)).unwrap();
    played.tick(39).unwrap();
    assert_eq!(played.tick(40).unwrap_err().to_string(), "the kernel does not answer");
    let mut half = Played::new();
    half.connect(0);
    let error = half.bytes_arrive(1, &route(1)[..30]).unwrap_err();
    assert_eq!(error.to_string(), "a datagram of the kernel ends within a message");
}
