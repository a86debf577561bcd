//! Sends flows of NetFlow v9 at a rate, to measure a collector:
//!
//! ```text
//! cargo run --release -p fibula-collect --example send -- 127.0.0.1:2055 800000 60
//! ```
//!
//! The arguments are the collector's address, flows a second, and seconds. Each datagram has 24 flows with 18 fields; a
//! fifth of the flows are IPv6. Of 100,000 different addresses, those with small numbers occur more often.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

const FLOWS: usize = 24;
/// Different datagrams.
const DATAGRAMS: u64 = 20_000;

/// Fields of a template: element and length.
const FOUR: [(u16, u16); 18] = [
    (8, 4),
    (12, 4),
    (15, 4),
    (10, 4),
    (14, 4),
    (2, 4),
    (1, 4),
    (22, 4),
    (21, 4),
    (7, 2),
    (11, 2),
    (6, 1),
    (4, 1),
    (5, 1),
    (9, 1),
    (13, 1),
    (16, 4),
    (17, 4),
];
const SIX: [(u16, u16); 18] = [
    (27, 16),
    (28, 16),
    (62, 16),
    (10, 4),
    (14, 4),
    (2, 4),
    (1, 4),
    (22, 4),
    (21, 4),
    (7, 2),
    (11, 2),
    (6, 1),
    (4, 1),
    (5, 1),
    (29, 1),
    (30, 1),
    (16, 4),
    (17, 4),
];

/// Numbers that look random (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn header(sets: &[u8]) -> Vec<u8> {
    let uptime_and_time =
        [&3_600_000u32.to_be_bytes()[..], &1_700_000_000u32.to_be_bytes()].concat();
    [&[0, 9, 0, FLOWS as u8][..], &uptime_and_time, &[0; 8], sets].concat()
}

fn template(number: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut set = [number, fields.len() as u16].map(u16::to_be_bytes).concat();
    fields.iter().for_each(|(element, len)| {
        set.extend([*element, *len].map(u16::to_be_bytes).concat());
    });
    let len = (4 + set.len()) as u16;
    [&[0, 0][..], &len.to_be_bytes(), &set].concat()
}

/// An address of one of 100,000 hosts: the lower of two numbers, so that small ones occur more often.
fn address(len: u16, state: &mut u64) -> Vec<u8> {
    let host = (random(state) % 100_000).min(random(state) % 100_000);
    let mut seed = host;
    let bits = random(&mut seed);
    match len {
        4 => (0x0100_0000 + (bits as u32 % 0xde00_0000)).to_be_bytes().to_vec(),
        _ => {
            let net = 0x2400_0000_0000_0000 | (bits & 0x0fff_ffff_ffff_0000);
            [net.to_be_bytes(), host.to_be_bytes()].concat()
        }
    }
}

fn datagram(number: u16, fields: &[(u16, u16)], state: &mut u64) -> Vec<u8> {
    let mut set = Vec::new();
    for _ in 0..FLOWS {
        for &(element, len) in fields {
            match element {
                8 | 12 | 27 | 28 => set.extend(address(len, state)),
                // Times are uptimes in milliseconds.
                22 | 21 => set.extend((3_500_000 + (random(state) % 100_000) as u32).to_be_bytes()),
                6 => set.push(24),
                4 => set.push([6, 17][(random(state) % 2) as usize]),
                _ => {
                    set.extend(&(random(state) % 5000).to_be_bytes()[8 - usize::from(len).min(8)..])
                }
            }
            if element == 62 {
                set.extend([0; 8]);
            }
        }
    }
    set.resize(set.len().next_multiple_of(4), 0);
    let len = (4 + set.len()) as u16;
    header(&[&number.to_be_bytes()[..], &len.to_be_bytes(), &set].concat())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("ADDRESS FLOWS_A_SECOND SECONDS");
    let (to, rate, seconds) = (next()?, next()?.parse::<f64>()?, next()?.parse::<f64>()?);
    let mut state = 7;
    let mut datagrams: Vec<_> = (0..DATAGRAMS)
        .map(|at| match at % 5 {
            0 => datagram(257, &SIX, &mut state),
            _ => datagram(256, &FOUR, &mut state),
        })
        .collect();
    let socket = UdpSocket::bind(if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" })?;
    socket.connect(&to)?;
    socket.send(&header(&[template(256, &FOUR), template(257, &SIX)].concat()))?;
    let total = (rate * seconds / FLOWS as f64) as u64;
    let begin = Instant::now();
    for sent in 0..total {
        let due = begin + Duration::from_secs_f64(sent as f64 * FLOWS as f64 / rate);
        // Bursts of a millisecond, as routers send them.
        let early = due.saturating_duration_since(Instant::now());
        if early > Duration::from_millis(1) {
            std::thread::sleep(early);
        }
        let datagram = &mut datagrams[(sent % DATAGRAMS) as usize];
        datagram[12..16].copy_from_slice(&(1 + sent as u32).to_be_bytes());
        socket.send(datagram)?;
    }
    let took = begin.elapsed().as_secs_f64();
    let flows = total * FLOWS as u64;
    println!(
        "{} datagrams, {flows} flows in {took:.2} s: {:.0} a second",
        total + 1,
        flows as f64 / took
    );
    Ok(())
}
