//! Generated frames, in bursts and damaged.

use std::collections::HashMap;

use fibula_router::Pool;
use fibula_testkit::Rng;

use super::frames::{V4, V6, any};
use super::model::{ExpectedError, Fate, mend};
use super::world::{Bench, SLOT};

#[test]
fn bursts_of_all_kinds() {
    let pool = Pool::new(4096, SLOT);
    let mut seen = HashMap::<String, u32>::new();
    for with_default in [false, true] {
        let mut bench = Bench::new(&pool, with_default);
        let mut rng = Rng::new(17);
        for number in 0..300 {
            let len = [1, 7, 64, 256][number % 4];
            let frames: Vec<_> = (0..len).map(|_| any(&mut rng)).collect();
            let borrowed: Vec<_> = frames.iter().map(|(port, frame)| (*port, &frame[..])).collect();
            for answer in bench.check(&borrowed) {
                *seen.entry(answer.name.into()).or_default() += 1;
                match (answer.fate, answer.error) {
                    (Fate::Sent(..), error) => assert_eq!(error, ExpectedError::Nothing),
                    (_, ExpectedError::Error(..)) => *seen.entry("error".into()).or_default() += 1,
                    (_, ExpectedError::NoAddress) => {
                        *seen.entry("no address".into()).or_default() += 1
                    }
                    _ => {}
                }
            }
        }
        bench.clear();
    }
    assert_eq!(pool.free(), 4096);
    // Every fate is among them, and often.
    for name in [
        "forwarded_v4",
        "forwarded_v6",
        "fragmented",
        "host",
        "waiting",
        "unknown_port",
        "other_mac",
        "length_within_header",
        "length_beyond_frame",
        "expired",
        "link_broadcast",
        "link_source",
        "tagged",
        "source",
        "destination",
        "options",
        "source_route",
        "no_route",
        "unreachable",
        "blackhole",
        "prohibited",
        "too_big",
        "no_egress",
        "error",
        "no address",
    ] {
        assert!(seen.get(name).is_some_and(|count| *count >= 20), "{name}: {seen:?}");
    }
}

/// Bursts of several ports that are looked up together: plain packets of one family, in rows of each port, which may
/// have a MAC address of its own. A row may end with a frame that was sent to another port's address, or one of the
/// other family.
#[test]
fn rows_of_several_ports() {
    let pool = Pool::new(4096, SLOT);
    let mut bench = Bench::new(&pool, true);
    let mut rng = Rng::new(37);
    let mut seen = HashMap::<String, u32>::new();
    for number in 0..400 {
        let mut frames = Vec::new();
        let is_clean = number % 2 == 0;
        for _ in 0..1 + rng.below(4) {
            let port = rng.below(4) as u16;
            let row = 1 + rng.below(70) as usize;
            for at in 0..row {
                let group = rng.below(25) as u8;
                let is_odd = !is_clean && at + 1 == row;
                let to = if is_odd { (port + 1) % 4 } else { port };
                let is_v4 = (number / 2 % 2 == 0) != (is_odd && rng.chance(0.5));
                let frame = if is_v4 { V4::to(group).frame(to) } else { V6::to(group).frame(to) };
                frames.push((port, frame));
            }
        }
        let borrowed: Vec<_> = frames.iter().map(|(port, frame)| (*port, &frame[..])).collect();
        for answer in bench.check(&borrowed) {
            *seen.entry(answer.name.into()).or_default() += 1;
        }
    }
    bench.clear();
    assert_eq!(pool.free(), 4096);
    for name in ["forwarded_v4", "forwarded_v6", "other_mac"] {
        assert!(seen.get(name).is_some_and(|count| *count >= 100), "{name}: {seen:?}");
    }
}

/// Every byte of sound frames, changed in several ways, with the old checksum and with a right one; and every length.
#[test]
fn damaged_frames() {
    let pool = Pool::new(64, SLOT);
    let mut bench = Bench::new(&pool, true);
    let mut rng = Rng::new(23);
    for _ in 0..120 {
        let (port, frame) = any(&mut rng);
        let frame = &frame[..frame.len().min(400)];
        for len in 0..frame.len().min(100) {
            bench.check_one(port, &frame[..len]);
        }
        for at in 0..frame.len().min(90) {
            let mut changed = frame.to_vec();
            for byte in [0, 0xff, frame[at] ^ 1, frame[at] ^ 0x80, rng.next_u64() as u8] {
                changed[at] = byte;
                bench.check_one(port, &changed);
                let mut mended = changed.clone();
                mend(&mut mended);
                bench.check_one(port, &mended);
            }
        }
    }
}

/// Bytes that mean nothing, behind a MAC address and an EtherType that do.
#[test]
fn random_bytes() {
    let pool = Pool::new(64, SLOT);
    let mut bench = Bench::new(&pool, true);
    let mut rng = Rng::new(29);
    for _ in 0..20_000 {
        let (port, mut frame) = any(&mut rng);
        let keep = rng.below(40) as usize;
        for byte in frame.iter_mut().skip(keep) {
            *byte = rng.next_u64() as u8;
        }
        frame.truncate(rng.below(120) as usize);
        bench.check_one(port, &frame);
        mend(&mut frame);
        bench.check_one(port, &frame);
    }
}
