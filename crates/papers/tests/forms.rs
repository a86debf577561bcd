//! The paper's forms find a megaflow of the same packets as the product's search does.

use fibula_classify::{Batch, Context, Field, Flow, MISS, Mask, Match};
use fibula_packet::{Frame, LinkType};
use fibula_papers::forms::{self, Cache, Form, Miniflow, Searcher};
use fibula_simd::Isa;
use fibula_testkit::Rng;

/// A packet of TCP, UDP, ICMP or ARP with few different values, so that megaflows match.
fn packet(random: &mut Rng) -> Flow {
    let mut flow = Flow::default();
    let mut set = |field, values: &[u128]| {
        flow.set(field, random.choose(values).unwrap());
    };
    set(Field::InPort, &[0, 1, 2]);
    set(Field::EthSrc, &[1, 0xffff_ffff_ffff]);
    set(Field::Vlan, &[0, 0, 0, 5]);
    set(Field::EthType, &[0x800, 0x800, 0x86dd, 0x806]);
    set(Field::Dscp, &[0, 46]);
    match flow.get(Field::EthType) {
        0x800 => {
            let mut set = |field, values: &[u128]| flow.set(field, random.choose(values).unwrap());
            set(Field::IpVersion, &[4]);
            set(Field::Ipv4Src, &[0, 1, 0x0a00_0001, u32::MAX.into()]);
            set(Field::Ipv4Dst, &[0, 0x0a00_00ff, 1 << 31]);
        }
        0x86dd => {
            let mut set = |field, values: &[u128]| flow.set(field, random.choose(values).unwrap());
            set(Field::IpVersion, &[6]);
            set(Field::Ipv6Src, &[0, 1, u128::MAX, 0x2001_0db8 << 96]);
            set(Field::Ipv6Dst, &[1, 1 << 127]);
        }
        _ => return flow,
    }
    let mut set = |field, values: &[u128]| flow.set(field, random.choose(values).unwrap());
    set(Field::Protocol, &[1, 6, 6, 17]);
    set(Field::Transport, &[0, 1]);
    set(Field::SrcPort, &[0, 80, 65535]);
    set(Field::DstPort, &[0, 443, 32768]);
    flow
}

/// Megaflows of so many masks, each once.
fn megaflows(random: &mut Rng, masks: usize, each: usize) -> Vec<Match> {
    let mut all = Vec::new();
    for _ in 0..masks {
        let mut mask = Mask::EMPTY;
        for _ in 0..random.below(6) {
            let field = random.choose(&Field::ALL).unwrap();
            mask |= match random.below(3) {
                0 => Mask::exact(field),
                1 => Mask::prefix(field, random.below(u64::from(field.bits()) + 1) as u32),
                _ => Mask::bits(field, 1 << random.below(field.bits().into())),
            };
        }
        all.extend((0..each).map(|_| Match::new(packet(random), mask)));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn product(megaflows: &[Match], packets: &[Flow]) -> Vec<u32> {
    let mut cache = fibula_classify::Cache::with(Isa::detect(), 7);
    (0..).zip(megaflows).for_each(|(number, megaflow)| {
        cache.insert(*megaflow, number);
    });
    let mut searcher = fibula_classify::Searcher::new();
    let mut all = Vec::new();
    for packets in packets.chunks(Batch::MAX) {
        let (mut batch, mut numbers) = (Batch::new(), vec![0; packets.len()]);
        packets.iter().for_each(|packet| batch.push(packet));
        searcher.search(&cache, &batch, &mut numbers);
        all.extend(numbers);
    }
    all
}

#[test]
fn all_forms_answer_as_the_product() {
    let mut random = Rng::new(1);
    for (masks, each) in [(0, 0), (1, 1), (1, 500), (3, 40), (20, 20), (200, 4)] {
        let megaflows = megaflows(&mut random, masks, each);
        let packets: Vec<Flow> = (0..600).map(|_| packet(&mut random)).collect();
        let expected = product(&megaflows, &packets);
        for form in Form::ALL.into_iter().chain([Form::Columns]) {
            for isa in Isa::available() {
                let mut cache = Cache::with(form, isa, 7);
                (0..).zip(&megaflows).for_each(|(number, megaflow)| {
                    cache.insert(*megaflow, number);
                });
                assert_eq!((cache.form(), cache.len()), (form, megaflows.len()));
                let mut searcher = Searcher::new();
                for together in [1, 2, 7, 31, 32, 33, 64, 100, 256] {
                    let mut batch = forms::Batch::new(form);
                    for (packets, expected) in
                        packets.chunks(together).zip(expected.chunks(together))
                    {
                        batch.clear();
                        packets.iter().for_each(|packet| batch.push(packet));
                        let mut numbers = vec![0; packets.len()];
                        searcher.search(&cache, &batch, &mut numbers);
                        for ((packet, number), expected) in
                            packets.iter().zip(numbers).zip(expected)
                        {
                            let is_miss = number == MISS;
                            assert_eq!(is_miss, *expected == MISS, "{form} {isa} {together}");
                            let found = megaflows.get(number as usize);
                            assert!(is_miss || found.is_some_and(|found| found.matches(packet)));
                        }
                    }
                }
                let counts = searcher.counts();
                let found = expected.iter().filter(|number| **number != MISS).count();
                assert_eq!(
                    (counts.packets, counts.hits),
                    (9 * 600, 9 * found as u64),
                    "{form} {isa}"
                );
            }
        }
    }
}

/// A subtable with the most hits comes first, whatever the order of insertion was.
#[test]
fn subtables_are_ranked_by_hits() {
    let mut flow = Flow::default();
    flow.set(Field::DstPort, 9);
    let fields = [Field::InPort, Field::SrcPort, Field::Mark, Field::DstPort];
    let mut other = Flow::default();
    fields.iter().for_each(|field| other.set(*field, 1));
    for form in Form::ALL.into_iter().chain([Form::Columns]) {
        let mut cache = Cache::with(form, Isa::detect(), 1);
        for (number, field) in (0..).zip(fields) {
            let flow = if field == Field::DstPort { flow } else { other };
            cache.insert(Match::new(flow, Mask::exact(field)), number);
        }
        let mut searcher = Searcher::new();
        let mut traversed = || {
            let before = searcher.counts().subtables;
            let mut batch = forms::Batch::new(form);
            (0..2).for_each(|_| batch.push(&flow));
            for _ in 0..320 {
                let mut numbers = [0; 2];
                searcher.search(&cache, &batch, &mut numbers);
                assert_eq!(numbers, [3; 2]);
            }
            searcher.counts().subtables - before
        };
        assert!(traversed() > 640, "{form}");
        assert_eq!(traversed(), 640, "{form}");
    }
}

/// The forms' batches have the words that the product's have.
#[test]
fn miniflows_are_flows() {
    let frame =
        b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\0\x05\x08\0\x45\xb8\0\x28\0\0\x40\0\x40\x06\0\0\
        \x0a\0\0\x01\xc0\0\x02\x01\x9c\x40\0\x16\0\0\0\0\0\0\0\0\x50\x12\0\0\0\0\0\0";
    let context = Context { in_port: 3, mark: 1, metadata: 0, tunnel_id: 9 };
    for len in 0..=frame.len() {
        let frame = Frame::parse(LinkType::Ethernet, &frame[..len]);
        let mut batch = Batch::new();
        batch.push_frame(&frame, &context);
        let miniflow = Miniflow::extract(&frame, &context);
        assert_eq!(Flow::from(&miniflow), batch.flow(0), "{len}");
        assert_eq!(Flow::from(&Miniflow::from(&batch.flow(0))), batch.flow(0));
        assert_eq!(miniflow.values().len(), miniflow.bitmap().count_ones() as usize);
    }
}

#[test]
#[should_panic(expected = "the form of the cache")]
fn a_batch_of_another_form_is_refused() {
    let cache = Cache::with(Form::Crc, Isa::detect(), 1);
    Searcher::new().search(&cache, &forms::Batch::new(Form::Gather), &mut []);
}
