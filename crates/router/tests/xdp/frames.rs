//! Whole frames: the programs send the same as the plain router of the tests; the frames that they do not send they
//! leave as it is.

use fibula_router::egress::{Egress, Group};
use fibula_router::forward::Side;
use fibula_router::port::xdp::{FastPath, Stamp, Trial, Tried, Why};
use fibula_router::{Paths, View};
use fibula_testkit::Rng;

use super::{engine, fast_path};
use crate::forward::frames::{V4, V6, any, ethernet};
use crate::forward::model::{Answer, Fate, mend};
use crate::forward::world::{SEED, World, mac};

/// A world of the tests of forwarding, in the kernel.
struct Bench {
    world: World,
    fast: FastPath,
    trials: Vec<Trial>,
    sent: u64,
    passed: u64,
}

impl Bench {
    fn new(with_default: bool, is_partial: bool) -> Option<Self> {
        let mut world = World::new(with_default);
        // The kernel's interfaces have a MAC address and an MTU that packets fit through; tags are written by user
        // space.
        let description: Egress = world.paths.description().clone();
        world.paths = Paths::new(description);
        let ports = world.paths.description().ports.len();
        let fast = fast_path(ports, SEED)?;
        let own: Vec<_> = world
            .paths
            .description()
            .ports
            .iter()
            .flat_map(|port| port.addresses.clone())
            .collect();
        fast.set_own(&own);
        for port in 0..ports as u16 {
            // Any interface will do: frames are not sent.
            fast.set_port(port, 1).unwrap();
        }
        let (v4, v6) = (engine(&world.routes4), engine(&world.routes6));
        let view = View {
            v4: Side { engine: &*v4, groups: &world.groups },
            v6: Side { engine: &*v6, groups: &world.groups },
            egress: &world.paths,
        };
        assert!(fast.publish(Stamp { v4: 1, v6: 1, egress: 1 }, &view).unwrap());
        let trials = (0..ports as u16)
            .map(|port| fast.trial(port, mac(port), &own, is_partial).unwrap())
            .collect();
        Some(Self { world, fast, trials, sent: 0, passed: 0 })
    }

    /// The outcome for a frame. Checks the frame if it is sent.
    fn check(&mut self, port: u16, frame: &[u8]) -> Option<(Tried, Answer)> {
        // Shorter ones the kernel refuses to try, and no link has them.
        let trial = self.trials.get(usize::from(port)).filter(|_| frame.len() >= 14)?;
        let (found, answer) =
            (trial.frame(frame).unwrap(), self.world.model(|model| model.forward(port, frame)));
        match &found {
            Tried::Sent(sent) => {
                self.sent += 1;
                let Fate::Sent(_, expected) = &answer.fate else {
                    panic!("sent {sent:02x?}, not {answer:x?}: {frame:02x?}");
                };
                assert_eq!(std::slice::from_ref(sent), &expected[..], "{frame:02x?}");
            }
            Tried::Passed => self.passed += 1,
            Tried::Dropped => panic!("dropped: {frame:02x?}"),
        }
        Some((found, answer))
    }
}

/// Whether the programs must send a packet that the plain router sends in one piece.
fn must_be_sent(world: &World, frame: &[u8], answer: &Answer) -> bool {
    let Fate::Sent(port, _) = &answer.fate else { return false };
    let own = &world.paths.description().ports[usize::from(*port)];
    let is_plain = match frame[12..14] {
        // Without options.
        [8, 0] => frame[14] == 0x45,
        // Without extension headers, which the flow's hash may need.
        [0x86, 0xdd] => [6, 17].contains(&frame[20]),
        _ => false,
    };
    is_plain && own.vlan.is_none() && answer.name.starts_with("forwarded")
}

#[test]
fn frames_of_all_kinds() {
    for with_default in [false, true] {
        let Some(mut bench) = Bench::new(with_default, false) else { return };
        let mut rng = Rng::new(41);
        let mut must = 0;
        for _ in 0..8000 {
            let (port, frame) = any(&mut rng);
            let Some((found, answer)) = bench.check(port, &frame) else { continue };
            if must_be_sent(&bench.world, &frame, &answer) {
                must += 1;
                let is_sent = matches!(found, Tried::Sent(_));
                assert!(is_sent, "port {port}: {answer:x?} of {frame:02x?}");
            }
        }
        assert!(must > 80, "{must}");
        bench.check_counts();
    }
}

/// Flows over every way out that is ready, of both families: nothing of them is passed on.
#[test]
fn plain_packets_are_sent() {
    let Some(mut bench) = Bench::new(true, false) else { return };
    let mut rng = Rng::new(47);
    let mut sent = [0; 7];
    for _ in 0..5000 {
        // One way out, several with weights, neighbours on the link; the port with a VLAN tag is left to user space.
        let group = [0, 2, 3, 6][rng.below(4) as usize];
        let protocol = [6, 17, 132][rng.below(3) as usize];
        let mut payload: Vec<u8> = (0..20 + rng.below(400)).map(|_| rng.next_u64() as u8).collect();
        payload[1] &= 0xf0;
        let frame = if rng.chance(0.5) {
            let mut packet = V4 { protocol, payload, ..V4::to(group) };
            packet.source[2..].copy_from_slice(&[rng.next_u64() as u8, rng.next_u64() as u8]);
            packet.frame(0)
        } else {
            let mut packet = V6 { next: protocol, payload, ..V6::to(group) };
            packet.source[12] = rng.next_u64() as u8;
            packet.frame(0)
        };
        let (found, answer) = bench.check(0, &frame).unwrap();
        let Fate::Sent(port, _) = answer.fate else { panic!("{answer:x?}") };
        assert_eq!(matches!(found, Tried::Sent(_)), port != 1, "{answer:x?} of {frame:02x?}");
        sent[usize::from(port)] += 1;
    }
    assert!(sent[..3].iter().all(|&count| count > 200), "{sent:?}");
}

impl Bench {
    fn check_counts(&self) {
        let counts = self.fast.counts().unwrap();
        let ports = counts.ports();
        let sent = counts.sum((0..ports).flat_map(|from| (0..ports).map(move |to| (from, to))));
        assert_eq!(sent.v4.0 + sent.v6.0, self.sent);
        let passed = (0..ports).flat_map(|from| Why::ALL.map(|why| counts.passed(from, why)));
        assert_eq!(passed.sum::<u64>(), self.passed);
    }
}

/// Every byte of sound frames changed, with the old checksum and a right one; every length; bytes that mean nothing.
#[test]
fn damaged_frames() {
    let Some(mut bench) = Bench::new(true, false) else { return };
    let mut rng = Rng::new(43);
    for round in 0..12 {
        let (port, frame) = match round % 3 {
            0 => any(&mut rng),
            1 => (0, V4::to(0).frame(0)),
            _ => (0, V6::to(0).frame(0)),
        };
        let frame = &frame[..frame.len().min(300)];
        for len in 0..frame.len().min(100) {
            bench.check(port, &frame[..len]);
        }
        for at in 0..frame.len().min(80) {
            let mut changed = frame.to_vec();
            for byte in [0, 0xff, frame[at] ^ 1, rng.next_u64() as u8] {
                changed[at] = byte;
                bench.check(port, &changed);
                let mut mended = changed.clone();
                mend(&mut mended);
                bench.check(port, &mended);
            }
        }
        let mut noise: Vec<u8> = frame.to_vec();
        noise.iter_mut().skip(14).for_each(|byte| *byte = rng.next_u64() as u8);
        bench.check(port, &noise);
    }
    assert!(bench.sent > 100 && bench.passed > 1000, "{} {}", bench.sent, bench.passed);
    bench.check_counts();
}

/// Why packets are passed on, one by one.
#[test]
fn reasons_are_counted() {
    let Some(mut bench) = Bench::new(false, true) else { return };
    let v4 = |change: &dyn Fn(&mut V4)| {
        let mut packet = V4::to(0);
        change(&mut packet);
        packet.frame(0)
    };
    let mut left_out = V4::to(0).frame(0);
    // The sum of the pseudo header: 198.18.0.5, 10.0.0.9, UDP, 12 bytes.
    let sum: u32 = 0xc612 + 5 + 0x0a00 + 9 + 17 + 12;
    left_out[40..42].copy_from_slice(&(sum as u16).to_be_bytes());
    let mut extended = V6::to(3);
    (extended.next, extended.payload) =
        (60, [&[17, 0, 1, 4, 0, 0, 0, 0][..], &extended.payload].concat());
    let cases = [
        (Why::Frame, ethernet(0, &[(0x8100, 7)], 0x0800, &V4::to(0).packet())),
        (Why::Frame, ethernet(0, &[], 0x0806, &[0; 46])),
        (Why::Frame, V4::to(0).frame(1)),
        (Why::Header, v4(&|packet| packet.ttl = 1)),
        (Why::Header, v4(&|packet| packet.options = vec![1, 1, 1, 1])),
        (Why::Header, v4(&|packet| packet.source = [127, 0, 0, 1])),
        (Why::Own, v4(&|packet| packet.destination = [192, 0, 2, 1])),
        (Why::NoRoute, v4(&|packet| packet.destination = [11, 0, 0, 1])),
        // The neighbour is not known; local; blackhole; a port with a VLAN tag.
        (Why::NoExit, V4::to(5).frame(0)),
        (Why::NoExit, V4::to(12).frame(0)),
        (Why::NoExit, V6::to(13).frame(0)),
        (Why::NoExit, V6::to(1).frame(0)),
        (Why::TooBig, v4(&|packet| packet.payload.resize(1600, 0))),
        (Why::Neighbour, v4(&|packet| packet.destination = [10, 6, 7, 7])),
        (Why::Checksum, left_out),
        (Why::Checksum, extended.frame(0)),
    ];
    for (why, frame) in cases {
        let before = bench.fast.counts().unwrap().passed(0, why);
        let (found, _) = bench.check(0, &frame).unwrap();
        assert_eq!(found, Tried::Passed, "{why:?} {frame:02x?}");
        assert_eq!(bench.fast.counts().unwrap().passed(0, why), before + 1, "{why:?}");
    }
    // On other links, extension headers only affect the hash.
    let trial = bench.fast.trial(0, mac(0), &[], false).unwrap();
    assert_eq!(trial.frame(&extended.frame(0)).unwrap(), Tried::Passed);
    assert_eq!(bench.fast.counts().unwrap().passed(0, Why::Flow), 1);
    assert_eq!(bench.world.paths.description().groups[13], Group::Blackhole);
}

/// A port that programs do not send to, or no longer.
#[test]
fn ports_that_are_not_fast_are_passed_on() {
    let Some(mut bench) = Bench::new(false, false) else { return };
    let frame = V4::to(0).frame(2);
    assert!(matches!(bench.check(2, &frame), Some((Tried::Sent(_), _))));
    let (v4, v6) = (engine(&bench.world.routes4), engine(&bench.world.routes6));
    for is_fast in [false, true] {
        bench.fast.set_fast(0, is_fast);
        let view = View {
            v4: Side { engine: &*v4, groups: &bench.world.groups },
            v6: Side { engine: &*v6, groups: &bench.world.groups },
            egress: &bench.world.paths,
        };
        assert!(bench.fast.publish(Stamp { v4: 1, v6: 1, egress: 1 }, &view).unwrap());
        let (found, _) = bench.check(2, &frame).unwrap();
        assert_eq!(matches!(found, Tried::Sent(_)), is_fast);
    }
}
