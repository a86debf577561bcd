//! A router between DPDK's devices sends what the model of the RFCs sends: a real capture and generated frames, file to
//! file.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use fibula_packet::capture::{Container, Step, header, record};
use fibula_router::forward::View;
use fibula_router::pipeline::{Attached, Cores, Routing, Stage, ThreadLayout, Views};
use fibula_router::{Forwarder, Pipeline, PipelineOptions};

use super::model::{ExpectedError, Fate, mend};
use super::world::{World, mac, options};
use super::*;

/// The frames of a capture.
pub fn frames_of(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let mut container = Container::recognise(&bytes).unwrap();
    let (mut at, mut frames) = (0, Vec::new());
    while at < bytes.len() {
        at += match container.next(&bytes[at..], at == 0) {
            Step::Packet(len, packet) => {
                frames.push(packet.data.to_vec());
                len
            }
            Step::Skip(len) => len,
            other => panic!("{other:?}"),
        };
    }
    frames
}

struct Fixed<'a>(&'a World);

impl Views for Fixed<'_> {
    fn view(&mut self) -> View<'_> {
        self.0.view()
    }
}

/// The committed capture, as it is and made the router's business: to its MAC address, and to networks of its groups.
fn made() -> Vec<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tcpdump-tests.pcap");
    let mut ports = vec![Vec::new(); 3];
    for (number, frame) in frames_of(&path).into_iter().enumerate() {
        let port = number % 3;
        let mut changed = frame.clone();
        let len = changed.len().min(6);
        changed[..len].copy_from_slice(&mac(port as u16)[..len]);
        ports[port].push(frame);
        let group = number as u8 % 22;
        match changed.get(12..14) {
            Some([8, 0]) if changed.len() > 34 => {
                changed[30..33].copy_from_slice(&[10, group, 0]);
                changed[22] = if number % 9 == 0 { 1 } else { 64 };
            }
            Some([0x86, 0xdd]) if changed.len() > 54 => {
                changed[38..44].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, group]);
                changed[21] = if number % 9 == 0 { 1 } else { 64 };
            }
            _ => {}
        }
        mend(&mut changed);
        ports[port].push(changed);
    }
    ports
}

#[test]
fn what_leaves_is_what_the_model_sends() {
    for shape in [
        ThreadLayout::Fused { threads: 1 },
        ThreadLayout::Fused { threads: 2 },
        ThreadLayout::Staged { receive: 1, lookup: 1, transmit: 1 },
    ] {
        check(shape);
    }
}

fn check(shape: ThreadLayout) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(true);
    let count = world.paths.description().ports.len();
    let mut inputs = made();
    inputs.resize(count, Vec::new());
    let mut expected = vec![Vec::new(); count];
    let mut received = 0;
    for (port, frames) in inputs.iter_mut().enumerate() {
        // Those that wait for neighbours that never answer are another test's.
        frames.retain(|frame| {
            let answer = world.model(|model| model.forward(port as u16, frame));
            match answer.fate {
                Fate::Waiting(..) => return false,
                Fate::Sent(to, sent) => expected[usize::from(to)].extend(sent),
                Fate::Host | Fate::Dropped => {}
            }
            if let ExpectedError::Error(to, error) = answer.error {
                expected[usize::from(to)].push(error);
            }
            true
        });
        received += frames.len() as u64;
    }
    let file =
        |port: usize, what: &str| -> PathBuf { folder.path().join(format!("{port}.{what}")) };
    let pool = pool();
    let mut ports: Vec<Attached<'_>> = Vec::new();
    for (port, frames) in inputs.iter().enumerate() {
        let mut bytes = header(1).to_vec();
        for frame in frames {
            bytes.extend(record(1, 0, frame.len() as u32));
            bytes.extend(frame);
        }
        fs::write(file(port, "in"), bytes).unwrap();
        let (input, output) = (file(port, "in"), file(port, "out"));
        let devargs =
            format!("net_pcap_{port},rx_pcap={},tx_pcap={}", input.display(), output.display());
        ports.push(open(&devargs, &pool).into());
    }
    let ring = 1 << 14;
    let wanted = PipelineOptions { shape, cores: Cores::Free, ring, ..PipelineOptions::default() };
    let pipeline = Pipeline::new(&pool, ports, wanted).unwrap();
    let stage = |_| -> Box<dyn Stage + '_> {
        Box::new(Routing::new(Fixed(&world), Forwarder::new(options())))
    };
    let stages = (0..pipeline.lookups()).map(stage).collect();
    let handle = pipeline.handle();
    let end = thread::scope(|scope| {
        let running = scope.spawn(|| pipeline.run(stages, &|_| (), &|event| panic!("{event:?}")));
        let began = Instant::now();
        let came = || handle.counters().ports.iter().map(|port| port.received.packets).sum::<u64>();
        while came() < received && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        handle.stop();
        running.join().unwrap().unwrap()
    });
    assert_eq!(pool.free(), SLOTS as usize, "slots are back");
    assert_eq!(end.ports.iter().map(|port| port.received.packets).sum::<u64>(), received);
    let mut sent = 0;
    for (port, mut expected) in expected.into_iter().enumerate() {
        let mut found = frames_of(&file(port, "out"));
        found.sort();
        expected.sort();
        assert!(found == expected, "port {port}: {} frames, not {}", found.len(), expected.len());
        sent += found.len();
    }
    assert!(sent > 250, "{sent} of {received}");
}
