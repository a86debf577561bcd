//! Sets of megaflows and packets, and the linear scan that searches are compared with.

use fibula_classify::{Batch, Cache, Field, Flow, MISS, Mask, Match, Searcher};
use fibula_simd::Isa;
use fibula_testkit::Rng;

/// A packet with the headers that packets have: a third of TCP and UDP over IPv4 and IPv6 each, and others. Few
/// different values, so that megaflows match, and many of them at the ends of fields.
pub fn packet(random: &mut Rng) -> Flow {
    let mut flow = Flow::default();
    flow.set(Field::InPort, random.below(3) as u128);
    flow.set(Field::EthDst, random.below(4) as u128);
    flow.set(Field::EthSrc, (0xffff_ffff_ff00 | random.below(4)) as u128);
    if random.below(4) == 0 {
        flow.set(Field::VlanTpid, 0x8100);
        flow.set(Field::Vlan, random.choose(&[0, 1, 0xfff]).unwrap());
    }
    let v4 = [0, 1, 0x0a00_0001, 0x0a00_00ff, 0x0aff_0001, 0x7fff_ffff, 1 << 31, u32::MAX];
    let address = |random: &mut Rng| u128::from(random.choose(&v4).unwrap());
    match random.below(8) {
        0 => flow.set(Field::EthType, 0x806),
        1..5 => {
            flow.set(Field::EthType, 0x800);
            flow.set(Field::IpVersion, 4);
            flow.set(Field::Ipv4Src, address(random));
            flow.set(Field::Ipv4Dst, address(random));
        }
        _ => {
            flow.set(Field::EthType, 0x86dd);
            flow.set(Field::IpVersion, 6);
            flow.set(Field::Ipv6Src, address(random) << 96 | address(random));
            flow.set(Field::Ipv6Dst, address(random) << 96 | address(random));
        }
    }
    if flow.get(Field::IpVersion) != 0 {
        let protocol = random.choose(&[6, 17, 1, 47]).unwrap();
        flow.set(Field::Protocol, protocol);
        if [6, 17].contains(&protocol) {
            flow.set(Field::Transport, 1);
            flow.set(Field::SrcPort, random.choose(&[0, 80, 1023, 1024, 65535]).unwrap());
            flow.set(Field::DstPort, random.choose(&[0, 80, 443, 32768, 65535]).unwrap());
        }
        if protocol == 6 {
            flow.set(Field::TcpFlags, random.choose(&[0, 2, 0x12, 0xfff]).unwrap());
        }
        flow.set(Field::Dscp, random.choose(&[0, 46, 63]).unwrap());
    }
    flow
}

/// A mask of some fields: whole ones, prefixes, single bits.
pub fn mask(random: &mut Rng) -> Mask {
    let mut mask = Mask::EMPTY;
    for _ in 0..random.below(6) {
        let field = random.choose(&Field::ALL).unwrap();
        mask |= match random.below(3) {
            0 => Mask::exact(field),
            1 => Mask::prefix(field, random.below(u64::from(field.bits()) + 1) as u32),
            _ => Mask::bits(field, 1 << random.below(field.bits().into())),
        };
    }
    mask
}

/// Megaflows of so many masks, made of packets.
pub fn megaflows(random: &mut Rng, masks: usize, each: usize) -> Vec<Match> {
    let mut all = Vec::new();
    for _ in 0..masks {
        let mask = mask(random);
        all.extend((0..each).map(|_| Match::new(packet(random), mask)));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// A cache of these megaflows, numbered by their places.
pub fn cache(isa: Isa, megaflows: &[Match]) -> Cache {
    let mut cache = Cache::with(isa, 7);
    for (number, megaflow) in (0..).zip(megaflows) {
        assert_eq!(cache.insert(*megaflow, number), None);
    }
    assert_eq!(cache.len(), megaflows.len());
    cache
}

/// The answers of a searcher, each batch of so many packets.
pub fn answers(
    searcher: &mut Searcher,
    cache: &Cache,
    packets: &[Flow],
    together: usize,
) -> Vec<u32> {
    let mut batch = Batch::new();
    let mut all = Vec::new();
    for packets in packets.chunks(together) {
        batch.clear();
        packets.iter().for_each(|packet| batch.push(packet));
        let mut numbers = vec![0; packets.len()];
        searcher.search(cache, &batch, &mut numbers);
        for (i, packet) in packets.iter().enumerate() {
            assert_eq!(batch.flow(i), *packet, "the search changed packet {i}");
        }
        all.extend(numbers);
    }
    all
}

/// Each answer is a megaflow that matches, or there is none.
pub fn check(megaflows: &[Match], packets: &[Flow], answers: &[u32], what: &str) {
    assert_eq!(packets.len(), answers.len());
    for (packet, answer) in packets.iter().zip(answers) {
        match *answer {
            MISS => {
                let first = megaflows.iter().find(|megaflow| megaflow.matches(packet));
                assert_eq!(first, None, "{what}: missed for {packet:?}");
            }
            number => {
                let megaflow = &megaflows[number as usize];
                assert!(megaflow.matches(packet), "{what}: {megaflow:?} for {packet:?}");
            }
        }
    }
}
