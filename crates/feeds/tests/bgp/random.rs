//! Random bytes: nothing panics, and each connection ends with a NOTIFICATION or waits for more.

use fibula_feeds::Protocol;
use fibula_feeds::bgp::Neighbour;
use fibula_testkit::Rng;

use super::speaker::*;

fn good(rng: &mut Rng) -> Vec<u8> {
    let sweep = ["05 00010001", "05 00010101", "05 00010201", "05 00020101", "05 00020201"];
    match rng.below(8) {
        0 => good_open(),
        1 => message(KEEPALIVE),
        2 => update(PATH, "18 c63364 08 0a"),
        3 => update_v6("20 20010db8"),
        4 => message(END_V4),
        5 => message(END_V6),
        6 => message(sweep[rng.below(5) as usize]),
        _ => message("02 0002 080a 0000"),
    }
}

#[test]
fn anything_ends_or_waits() {
    let (mut ended, mut waiting, mut established) = (0, 0, 0);
    for seed in 0..4000 {
        let mut rng = Rng::new(seed);
        let any = Neighbour { most_routes: Some(3), add_path: seed % 3 == 0, ..neighbour() };
        let mut bench = Bench::new(any);
        bench.connect();
        let mut bytes = Vec::new();
        if rng.chance(0.8) {
            bytes = [good_open(), message(KEEPALIVE)].concat();
        }
        for _ in 0..rng.below(12) {
            bytes.extend(good(&mut rng));
        }
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.below(256) as u8;
            }
        }
        if rng.chance(0.1) {
            bytes = (0..rng.below(200)).map(|_| rng.below(256) as u8).collect();
        }
        let mut rest = &bytes[..];
        let mut end = None;
        while !rest.is_empty() && end.is_none() {
            let (piece, behind) = rest.split_at((1 + rng.below(60) as usize).min(rest.len()));
            end = bench.send(piece).err();
            rest = behind;
            established += u32::from(bench.session.established().is_some());
            if end.is_none() && rng.chance(0.1) {
                end = bench.tick(rng.below(100)).err();
            }
        }
        let sent = bench.sent();
        let last = sent.last().unwrap();
        match end {
            // A NOTIFICATION of the neighbour is not answered.
            Some(why) if why.contains("it ended the session") => assert_ne!(&last[..2], "03"),
            Some(why) => {
                assert_eq!(&last[..2], "03", "{why}");
                ended += 1;
            }
            None => {
                assert!(sent.iter().all(|sent| &sent[..2] != "03"), "{sent:?}");
                assert!(bench.session.deadline().is_some(), "it waits, and not forever");
                waiting += 1;
            }
        }
        bench.session.end(&mut bench.rib).unwrap();
        assert!(bench.rib.is_empty());
    }
    assert!(ended > 500 && waiting > 300 && established > 5000, "{ended} {waiting} {established}");
}

fn good_open() -> Vec<u8> {
    open(&[IPV4, IPV6, FOUR, RESTART, ENHANCED, "020a 4508 00010102 00020103"])
}
