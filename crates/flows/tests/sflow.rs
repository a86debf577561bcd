//! sFlow: built datagrams, compared with `sflow-parser` and with the packets in them.

use std::net::{IpAddr, Ipv4Addr};

use fibula_flows::{ExportProtocol, FlowDecoder};
use proptest::prelude::*;
use sflow_parser::models::{Address, FlowData, SampleData};

use crate::common::{Kept, be, decode};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Data with its format, padded to words.
pub fn part(format: u32, body: &[u8]) -> Vec<u8> {
    let pad = vec![0; body.len().wrapping_neg() % 4];
    [words(&[format, body.len() as u32]), body.to_vec(), pad].concat()
}

pub fn datagram(number: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    let head = words(&[5, 1, 0x0a00_0001, 3, number, 60_000, samples.len() as u32]);
    [head, samples.concat()].concat()
}

pub fn flow_sample(number: u32, rate: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let head = words(&[number, 7, rate, rate * number, 0, 7, 9, records.len() as u32]);
    part(1, &[head, records.concat()].concat())
}

fn expanded_sample(number: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let count = records.len() as u32;
    let head = words(&[number, 0, 70_000, 512, 0, 0, 0, 70_000, 2, 3, count]);
    part(3, &[head, records.concat()].concat())
}

/// A frame with a TCP segment; the capture has its headers only.
pub fn frame(vlan: Option<u16>, source: u32, ports: (u16, u16)) -> Vec<u8> {
    let tag = vlan.map_or(Vec::new(), |vlan| [&[0x81, 0][..], &vlan.to_be_bytes()].concat());
    let ip = [
        &[0x45, 0x28, 0, 100, 0, 0, 0, 0, 64, 6, 0, 0][..],
        &source.to_be_bytes(),
        &[198, 51, 100, 7],
    ]
    .concat();
    let tcp = [
        &be(ports.0.into(), 2)[..],
        &be(ports.1.into(), 2),
        &[0; 8],
        &[0x50, 0x18, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    [vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], tag, vec![8, 0], ip, tcp].concat()
}

pub fn header(frame: &[u8], length: u32) -> Vec<u8> {
    let head = words(&[1, length, 4, frame.len() as u32]);
    let pad = vec![0; frame.len().wrapping_neg() % 4];
    part(1, &[head, frame.to_vec(), pad].concat())
}

fn one(datagram: &[u8]) -> Kept {
    let mut decoder = FlowDecoder::default();
    let (flows, counts) = decode(&mut decoder, "192.0.2.1:6343", datagram);
    assert_eq!((flows.len(), counts.faults), (1, 0));
    flows.into_iter().next().unwrap()
}

#[test]
fn a_frame_with_what_the_agent_knows() {
    let frame = frame(None, 0xc000_0205, (443, 50_000));
    let switch = part(1001, &words(&[20, 0, 30, 0]));
    let router = part(1002, &words(&[1, 0xc633_6401, 24, 16]));
    let gateway = part(
        1003,
        &words(&[1, 0xc633_6402, 64496, 64500, 64497, 2, 2, 1, 64498, 1, 2, 64499, 64501, 0, 100]),
    );
    let sample = flow_sample(1, 1024, &[header(&frame, 118), switch, router, gateway]);
    let kept = one(&datagram(1, &[sample]));
    let record = &kept.record;
    assert_eq!(record.source(), Some(Ipv4Addr::new(192, 0, 2, 5).into()));
    assert_eq!(record.destination(), Some(Ipv4Addr::new(198, 51, 100, 7).into()));
    assert_eq!((record.source_port(), record.destination_port()), (Some(443), Some(50_000)));
    assert_eq!(
        (record.protocol(), record.tcp_flags(), record.tos()),
        (Some(6), Some(0x18), Some(0x28))
    );
    assert_eq!(
        (record.bytes(), record.packets(), record.sampling_rate()),
        (Some(118), Some(1), Some(1024))
    );
    assert_eq!((record.input(), record.output()), (Some(7), Some(9)));
    assert_eq!((record.vlan(), record.post_vlan()), (Some(20), Some(30)));
    assert_eq!(record.next_hop(), Some(Ipv4Addr::new(198, 51, 100, 1).into()));
    assert_eq!((record.source_mask(), record.destination_mask()), (Some(24), Some(16)));
    assert_eq!(record.bgp_next_hop(), Some(Ipv4Addr::new(198, 51, 100, 2).into()));
    assert_eq!((record.source_as(), record.destination_as()), (Some(64500), Some(64501)));
    assert_eq!(record.source_mac(), Some([2, 0, 0, 0, 0, 2]));
    assert_eq!((record.start_ms(), kept.domain, kept.protocol), (None, 3, ExportProtocol::Sflow));
}

#[test]
fn other_records_samples_and_losses() {
    let v4 = part(3, &words(&[60, 17, 0x0a00_0001, 0x0a00_0002, 53, 4000, 0, 0]));
    let v6 = part(4, &[words(&[80, 58]), vec![0x20; 32], words(&[1, 2, 3, 4])].concat());
    let nat = part(1007, &words(&[1, 0x0a00_0003, 0]));
    let mut decoder = FlowDecoder::default();
    let samples = [
        flow_sample(1, 0, &[v4, nat]),
        part(2, &words(&[1, 7, 0])),
        expanded_sample(10, &[v6]),
        part(0x1234_5001, b"vendor"),
        flow_sample(5, 10, &[]),
    ];
    let (flows, counts) = decode(&mut decoder, "192.0.2.1:6343", &datagram(1, &samples));
    assert_eq!((flows.len(), counts.other_samples, counts.without_addresses), (3, 2, 1));
    assert_eq!((counts.lost_samples, counts.lost), (3, 0));
    let [v4, v6, none] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!((v4.record.sampling_rate(), v4.record.bytes()), (None, Some(60)));
    assert_eq!((v4.record.source_port(), v4.record.tcp_flags()), (Some(53), None));
    assert_eq!(v4.record.nat_source(), Some(Ipv4Addr::new(10, 0, 0, 3).into()));
    assert!(matches!(v6.record.source(), Some(IpAddr::V6(_))));
    assert_eq!((v6.record.source_port(), v6.record.tos()), (None, Some(4)));
    assert_eq!((v6.record.input(), v6.record.output()), (Some(70_000), None));
    assert_eq!((none.record.source(), none.record.packets()), (None, Some(1)));
    let (_, counts) = decode(&mut decoder, "192.0.2.1:6343", &datagram(5, &[]));
    assert_eq!(counts.lost, 3);
    // A sample that claims more than the datagram has refuses all of it.
    let mut longer = datagram(6, &samples);
    let at = longer.len() - 5 * 4 - 16;
    longer[at] = 1;
    assert_eq!(ExportProtocol::recognise(&longer), None);
}

/// A sample: source, ports, VLAN, length, rate, and whether it is an expanded one.
type Sample = (u32, (u16, u16), Option<u16>, u32, u32, bool);

fn sample() -> impl Strategy<Value = Sample> {
    let vlan = proptest::option::of(0u16..4096);
    (any::<u32>(), any::<(u16, u16)>(), vlan, 64u32..1519, 0u32..10_000, any::<bool>())
}

fn build(
    at: usize,
    (source, ports, vlan, length, rate, expanded): &Sample,
    path: &[u8],
) -> Vec<u8> {
    let records = [header(&frame(*vlan, *source, *ports), *length), part(1003, path)];
    match expanded {
        true => expanded_sample(at as u32, &records),
        false => flow_sample(at as u32, *rate, &records),
    }
}

proptest! {
    #[test]
    fn agrees_with_the_oracle(
        samples in proptest::collection::vec(sample(), 1..8),
        gateway in proptest::collection::vec(any::<u32>(), 0..5),
    ) {
        let head = words(&[1, 9, 64496, 64500, 64497, 1, 2, gateway.len() as u32]);
        let path = [head, words(&gateway), words(&[0, 100])].concat();
        let built: Vec<_> =
            samples.iter().enumerate().map(|(at, sample)| build(at, sample, &path)).collect();
        let bytes = datagram(9, &built);
        let mut decoder = FlowDecoder::default();
        let (flows, counts) = decode(&mut decoder, "192.0.2.1:6343", &bytes);
        prop_assert_eq!(counts.faults, 0, "{:?}", counts);
        let theirs = sflow_parser::parse_datagram(&bytes).unwrap();
        prop_assert_eq!(flows.len(), theirs.samples.len());
        for ((ours, theirs), built) in flows.iter().zip(&theirs.samples).zip(&samples) {
            let record = &ours.record;
            let records = match &theirs.sample_data {
                SampleData::FlowSample(sample) => {
                    prop_assert_eq!(record.sampling_rate(), Some(sample.sampling_rate).filter(|rate| *rate > 0));
                    prop_assert_eq!(record.input(), Some(sample.input.value()));
                    &sample.flow_records
                }
                SampleData::FlowSampleExpanded(sample) => {
                    prop_assert_eq!(record.input(), Some(sample.input.value));
                    &sample.flow_records
                }
                other => panic!("{other:?}"),
            };
            for part in records {
                match &part.flow_data {
                    FlowData::SampledHeader(header) => {
                        prop_assert_eq!(record.bytes(), Some(header.frame_length.into()));
                    }
                    FlowData::ExtendedGateway(gateway) => {
                        let hop = match gateway.next_hop { Address::IPv4(hop) => Some(hop.into()), _ => None };
                        prop_assert_eq!(record.bgp_next_hop(), hop);
                        prop_assert_eq!(record.source_as(), Some(gateway.src_as));
                        let last = gateway.dst_as_path.iter().filter_map(|segment| segment.path.last()).next_back();
                        prop_assert_eq!(record.destination_as(), last.copied());
                    }
                    other => panic!("{other:?}"),
                }
            }
            prop_assert_eq!(record.source(), Some(Ipv4Addr::from(built.0).into()));
            prop_assert_eq!(record.source_port().zip(record.destination_port()), Some(built.1));
            prop_assert_eq!(record.vlan(), built.2);
        }
    }
}
