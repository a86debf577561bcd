//! Templates, options and times: what the standards say, case by case.

use std::net::IpAddr;

use fibula_flows::{ExportFaultKind, FlowDecoder};

use crate::common::{Field, Keep, be, decode, fields, ipfix, set, template, v5, v9};

const FROM: &str = "192.0.2.1:4739";

/// Source, bytes.
const SHORT: &[Field] = &[(8, 4, 0), (1, 4, 0)];

fn short(source: u32, bytes: u32) -> Vec<u8> {
    [source.to_be_bytes(), bytes.to_be_bytes()].concat()
}

/// An options template: scope fields first.
fn options(number: u16, scopes: &[Field], list: &[Field]) -> Vec<u8> {
    let count = be((scopes.len() + list.len()) as u64, 2);
    [be(number.into(), 2), count, be(scopes.len() as u64, 2), fields(scopes), fields(list)].concat()
}

fn options_v9(number: u16, scopes: &[Field], list: &[Field]) -> Vec<u8> {
    let lengths = [be(scopes.len() as u64 * 4, 2), be(list.len() as u64 * 4, 2)].concat();
    [be(number.into(), 2), lengths, fields(scopes), fields(list)].concat()
}

#[test]
fn netflow_v5() {
    let record: Vec<u8> = [
        vec![10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3, 0, 4, 0, 5],
        be(6, 4),
        be(777, 4),
        be(990_000, 4),
        be(999_500, 4),
        vec![0x01, 0xbb, 0x1f, 0x90, 0, 0x12, 6, 8, 0xfb, 0xf0, 0xfb, 0xf1, 24, 16, 0, 0],
    ]
    .concat();
    let mut decoder = FlowDecoder::default();
    let (flows, counts) = decode(&mut decoder, FROM, &v5(100, &[record.clone(), record.clone()]));
    assert_eq!((flows.len(), counts.faults), (2, 0));
    let (kept, record_of) = (&flows[1], &flows[1].record);
    assert_eq!(record_of.source(), Some("10.0.0.1".parse().unwrap()));
    assert_eq!(record_of.destination(), Some("10.0.0.2".parse().unwrap()));
    assert_eq!(record_of.next_hop(), Some("10.0.0.3".parse().unwrap()));
    assert_eq!((record_of.input(), record_of.output()), (Some(4), Some(5)));
    assert_eq!((record_of.packets(), record_of.bytes()), (Some(6), Some(777)));
    assert_eq!(record_of.start_ms(), Some(1_700_000_000_500 - 10_000));
    assert_eq!(record_of.end_ms(), Some(1_700_000_000_500 - 500));
    assert_eq!((record_of.source_port(), record_of.destination_port()), (Some(443), Some(8080)));
    assert_eq!(
        (record_of.tcp_flags(), record_of.protocol(), record_of.tos()),
        (Some(0x12), Some(6), Some(8))
    );
    assert_eq!((record_of.source_as(), record_of.destination_as()), (Some(64496), Some(64497)));
    assert_eq!((record_of.source_mask(), record_of.destination_mask()), (Some(24), Some(16)));
    assert_eq!(
        (record_of.sampling_rate(), record_of.vlan(), kept.domain),
        (Some(100), None, 0x102)
    );
    // Two flows later, three are missing.
    let (_, counts) = decode(&mut decoder, FROM, &v5(105, std::slice::from_ref(&record)));
    assert_eq!(counts.lost, 3);
    let cut = v5(106, &[record]);
    let mut keep = Keep::default();
    decoder.decode(FROM.parse().unwrap(), &cut[..cut.len() - 1], &mut keep);
    assert_eq!((keep.flows.len(), keep.faults[0].kind()), (0, ExportFaultKind::Length));
}

#[test]
fn templates_belong_to_a_session_and_a_domain() {
    let mut decoder = FlowDecoder::default();
    let define = |list| ipfix(0, 1, &[set(2, &template(256, list))]);
    let data = |domain| ipfix(0, domain, &[set(256, &short(0x0a00_0001, 1500))]);
    decode(&mut decoder, FROM, &define(SHORT));
    decode(&mut decoder, "192.0.2.2:4739", &define(&[(12, 4, 0), (2, 4, 0)]));
    let (flows, _) = decode(&mut decoder, FROM, &data(1));
    assert_eq!((flows[0].record.bytes(), flows[0].record.packets()), (Some(1500), None));
    let (flows, _) = decode(&mut decoder, "192.0.2.2:4739", &data(1));
    assert_eq!((flows[0].record.bytes(), flows[0].record.packets()), (None, Some(1500)));
    // Another domain, another port, another protocol: no template.
    assert_eq!(decode(&mut decoder, FROM, &data(2)).1.held, 1);
    assert_eq!(decode(&mut decoder, "192.0.2.1:4740", &data(1)).1.held, 1);
    let other = v9(0, 1, &[set(256, &short(1, 2))]);
    assert_eq!(decode(&mut decoder, FROM, &other).1.held, 1);
}

#[test]
fn sets_wait_for_their_template() {
    let mut decoder = FlowDecoder::default();
    for at in 0..3 {
        let (flows, counts) =
            decode(&mut decoder, FROM, &v9(at, 7, &[set(256, &short(at, 10 + at))]));
        assert_eq!((flows.len(), counts.held), (0, 1));
    }
    let (flows, counts) = decode(&mut decoder, FROM, &v9(3, 7, &[set(0, &template(256, SHORT))]));
    let bytes: Vec<_> = flows.iter().map(|kept| kept.record.bytes()).collect();
    assert_eq!(bytes, [Some(10), Some(11), Some(12)]);
    assert_eq!((counts.released, counts.templates, counts.dropped), (3, 1, 0));
    // Nothing waits any more.
    let (flows, _) = decode(&mut decoder, FROM, &v9(4, 7, &[set(0, &template(256, SHORT))]));
    assert!(flows.is_empty());
}

#[test]
fn withdrawn_and_redefined() {
    let mut decoder = FlowDecoder::default();
    let both = [template(256, SHORT), template(257, SHORT)].concat();
    let again = ipfix(0, 1, &[set(2, &both), set(2, &template(256, SHORT))]);
    let (_, counts) = decode(&mut decoder, FROM, &again);
    assert_eq!((counts.templates, counts.redefined), (3, 0));
    let (_, counts) =
        decode(&mut decoder, FROM, &ipfix(0, 1, &[set(2, &template(256, &SHORT[..1]))]));
    assert_eq!((counts.templates, counts.redefined), (1, 1));
    let (_, counts) = decode(&mut decoder, FROM, &ipfix(0, 1, &[set(2, &template(256, &[]))]));
    assert_eq!(counts.withdrawn, 1);
    assert_eq!(decode(&mut decoder, FROM, &ipfix(0, 1, &[set(256, &[0; 8])])).1.held, 1);
    // All of them.
    let (_, counts) = decode(&mut decoder, FROM, &ipfix(0, 1, &[set(2, &template(2, &[]))]));
    assert_eq!(counts.withdrawn, 1);
    assert_eq!(decode(&mut decoder, FROM, &ipfix(0, 1, &[set(257, &[0; 8])])).1.held, 1);
}

#[test]
fn variable_length_enterprises_and_reverse_fields() {
    let list = [
        (82, 65_535, 0),
        (8, 4, 0),
        (3, 65_535, 4000),
        (1, 3, 0),
        (1, 2, 29305),
        (2, 1, 29305),
        (5, 1, 29305),
    ];
    let long = vec![b'x'; 300];
    let body = [
        &b"\x04eth0\x0a\0\0\x01"[..],
        &[255, 1, 44],
        &long,
        &[1, 0, 0, 0, 9, 3, 7],
        &b"\xff\0\0\x0a\0\0\x02\x00\x00\x00\x05\0\x01\x02\x03"[..],
    ]
    .concat();
    let mut decoder = FlowDecoder::default();
    let message = ipfix(0, 1, &[set(2, &template(400, &list)), set(400, &body)]);
    let (flows, counts) = decode(&mut decoder, FROM, &message);
    assert_eq!((flows.len(), counts.faults), (2, 0));
    let record = &flows[0].record;
    assert_eq!(record.source(), Some("10.0.0.1".parse().unwrap()));
    assert_eq!(
        (record.bytes(), record.reverse_bytes(), record.reverse_packets()),
        (Some(65_536), Some(9), Some(3))
    );
    let record = &flows[1].record;
    assert_eq!(record.source(), Some("10.0.0.2".parse().unwrap()));
    assert_eq!(
        (record.bytes(), record.reverse_bytes(), record.reverse_packets()),
        (Some(5), Some(1), Some(2))
    );
    // The length of the last record's field leads behind the set.
    let cut = ipfix(2, 1, &[set(400, &[&body[..], b"\xff\x10\0xxxxxxxxxxxxxxxxxxxx"].concat())]);
    let mut keep = Keep::default();
    decoder.decode(FROM.parse().unwrap(), &cut, &mut keep);
    assert_eq!((keep.flows.len(), keep.faults[0].kind()), (2, ExportFaultKind::Record));
}

#[test]
fn sampling_rates_and_names_of_options() {
    let mut decoder = FlowDecoder::default();
    let list = [(8, 4, 0), (10, 4, 0), (48, 1, 0), (234, 4, 0)];
    let record = |sampler: u8| [&[10, 0, 0, 1, 0, 0, 0, 3, sampler][..], &[0, 0, 0, 2]].concat();
    let sets = [
        set(0, &template(256, &list)),
        set(1, &options_v9(257, &[(1, 4, 0)], &[(48, 1, 0), (49, 1, 0), (50, 4, 0)])),
        set(1, &options_v9(258, &[(2, 4, 0)], &[(82, 8, 0)])),
        set(1, &options_v9(259, &[(1, 4, 0)], &[(234, 4, 0), (236, 8, 0)])),
        set(
            257,
            &[&[0, 0, 0, 0, 5, 2][..], &be(1000, 4), &[0, 0, 0, 0, 6, 2], &be(64, 4)].concat(),
        ),
        set(258, b"\0\0\0\x03Gi0/3\0\0\0"),
        set(259, b"\0\0\0\0\0\0\0\x02blue\0\0\0\0"),
        set(256, &[record(5), record(6), record(9)].concat()),
    ];
    let (flows, counts) = decode(&mut decoder, FROM, &v9(0, 1, &sets));
    let rates: Vec<_> = flows.iter().map(|kept| kept.record.sampling_rate()).collect();
    assert_eq!(rates, [Some(1000), Some(64), None]);
    assert_eq!(
        (flows[0].input_name.as_deref(), flows[0].vrf_name.as_deref()),
        (Some("Gi0/3"), Some("blue"))
    );
    assert_eq!((counts.options, counts.flows, counts.faults), (4, 3, 0));

    // IPFIX: sampled and skipped packets, of the exporter's domain 0 for all domains.
    let scope = [(144, 4, 0)];
    let (run, size) = ([(305, 4, 0), (306, 4, 0)], [(309, 4, 0), (310, 4, 0)]);
    let from = "192.0.2.7:4739";
    let sets = [
        set(3, &options(300, &scope, &run)),
        set(300, &[be(0, 4), be(10, 4), be(990, 4)].concat()),
    ];
    decode(&mut decoder, from, &ipfix(0, 0, &sets));
    let sets = [set(2, &template(256, SHORT)), set(256, &short(1, 2))];
    let (flows, _) = decode(&mut decoder, from, &ipfix(0, 9, &sets));
    assert_eq!(flows[0].record.sampling_rate(), Some(100));
    // The domain's own rate is used before that.
    let sets = [
        set(3, &options(300, &scope, &size)),
        set(300, &[be(0, 4), be(3, 4), be(1000, 4)].concat()),
        set(256, &short(1, 2)),
    ];
    let (flows, _) = decode(&mut decoder, from, &ipfix(1, 9, &sets));
    assert_eq!(flows[0].record.sampling_rate(), Some(333));
}

#[test]
fn times_of_all_clocks() {
    let time = |list: &[Field], body: &[u8], export: &dyn Fn(&[Vec<u8>]) -> Vec<u8>, number| {
        let message = export(&[set(number, &template(256, list)), set(256, body)]);
        let (flows, _) = decode(&mut FlowDecoder::default(), FROM, &message);
        (flows[0].record.start_ms(), flows[0].record.end_ms())
    };
    let v9 = |sets: &[Vec<u8>]| v9(0, 1, sets);
    let ipfix = |sets: &[Vec<u8>]| ipfix(0, 1, sets);
    let export = 1_700_000_000_000;
    // The uptime is 1,000 s; a flow's time may be later than the export's.
    let body = [be(999_000, 4), be(1_000_020, 4)].concat();
    assert_eq!(
        time(&[(22, 4, 0), (21, 4, 0)], &body, &v9, 0),
        (Some(export - 1000), Some(export + 20))
    );
    let body = [be(1_600_000_000, 4), be(1_600_000_007, 4)].concat();
    assert_eq!(
        time(&[(150, 4, 0), (151, 4, 0)], &body, &ipfix, 2),
        (Some(1_600_000_000_000), Some(1_600_000_007_000))
    );
    // NTP: seconds since 1900, and half a second.
    let ntp = (1_600_000_000u64 + 2_208_988_800) << 32 | 1 << 31;
    let body = [be(ntp, 8), be(1500, 4)].concat();
    assert_eq!(
        time(&[(156, 8, 0), (161, 4, 0)], &body, &ipfix, 2),
        (Some(1_600_000_000_500), Some(1_600_000_002_000))
    );
    let body = [be(5_000_000, 4), be(2000, 4)].concat();
    assert_eq!(
        time(&[(158, 4, 0), (159, 4, 0)], &body, &ipfix, 2),
        (Some(export - 5000), Some(export - 2))
    );
    // Uptimes of IPFIX need the start of the exporter.
    let body = [be(500, 4), be(700, 4)].concat();
    assert_eq!(time(&[(22, 4, 0), (21, 4, 0)], &body, &ipfix, 2), (None, None));
    let body = [be(500, 4), be(700, 4), be(1_699_999_000_000, 8)].concat();
    assert_eq!(
        time(&[(22, 4, 0), (21, 4, 0), (160, 8, 0)], &body, &ipfix, 2),
        (Some(1_699_999_000_500), Some(1_699_999_000_700))
    );
    // An exporter that has run for sixty days: its uptime has wrapped.
    let sixty_days = 60 * 86_400_000u64;
    let first = (sixty_days - 500) as u32;
    let body = [be(first.into(), 4), be(export - sixty_days, 8)].concat();
    assert_eq!(time(&[(22, 4, 0), (160, 8, 0)], &body, &ipfix, 2), (Some(export - 500), None));
    let body = be(1_600_000_000_123, 8);
    assert_eq!(
        time(&[(323, 8, 0)], &body, &ipfix, 2),
        (Some(1_600_000_000_123), Some(1_600_000_000_123))
    );
}

#[test]
fn both_families_in_one_template() {
    let list = [(8, 4, 0), (27, 16, 0), (9, 1, 0), (29, 1, 0)];
    let four = [&[10, 0, 0, 1][..], &[0; 16], &[24, 0]].concat();
    let six = [&[0; 4][..], &[0x20; 16], &[0, 48]].concat();
    let message = ipfix(0, 1, &[set(2, &template(256, &list)), set(256, &[four, six].concat())]);
    let (flows, _) = decode(&mut FlowDecoder::default(), FROM, &message);
    let ends: Vec<(Option<IpAddr>, Option<u8>)> =
        flows.iter().map(|kept| (kept.record.source(), kept.record.source_mask())).collect();
    assert_eq!(ends[0], (Some("10.0.0.1".parse().unwrap()), Some(24)));
    assert_eq!(ends[1], (Some(IpAddr::from([0x20; 16])), Some(48)));
}

#[test]
fn labels_and_sampled_headers() {
    let list = [(70, 3, 0), (71, 3, 0), (315, 65_535, 0), (312, 2, 0)];
    let frame = crate::sflow::frame(Some(5), 0x0a00_0009, (1, 2));
    let body =
        [&[0x00, 0x06, 0x40, 0x01, 0x00, 0x11][..], &[frame.len() as u8], &frame, &be(1500, 2)]
            .concat();
    let message = ipfix(0, 1, &[set(2, &template(256, &list)), set(256, &body)]);
    let (flows, _) = decode(&mut FlowDecoder::default(), FROM, &message);
    let record = &flows[0].record;
    assert_eq!(record.labels().collect::<Vec<_>>(), [100, 4097]);
    assert_eq!(record.source(), Some("10.0.0.9".parse().unwrap()));
    assert_eq!((record.bytes(), record.packets(), record.vlan()), (Some(1500), Some(1), Some(5)));
}

#[test]
fn saved_templates_are_used_after_a_restart() {
    let mut decoder = FlowDecoder::default();
    let list = [(8, 4, 0), (10, 4, 0), (3, 65_535, 4000), (234, 4, 0), (1, 4, 0)];
    let sets = [
        set(2, &template(256, &list)),
        set(3, &options(300, &[(10, 4, 0)], &[(82, 65_535, 0), (34, 4, 0), (160, 8, 0)])),
        set(300, &[&[0, 0, 0, 3, 4][..], b"eth3", &be(50, 4), &be(1_600_000_000_000, 8)].concat()),
        set(3, &options(301, &[(234, 4, 0)], &[(236, 4, 0)])),
        set(301, b"\0\0\0\x02blue"),
    ];
    decode(&mut decoder, FROM, &ipfix(77, 1, &sets));
    decode(
        &mut decoder,
        "[2001:db8::1]:9",
        &v9(
            9,
            1,
            &[set(0, &template(256, SHORT)), set(1, &options_v9(257, &[(1, 4, 0)], &[(34, 4, 0)]))],
        ),
    );
    let saved = decoder.save();
    let mut again = FlowDecoder::default();
    again.load(&saved).unwrap();
    assert_eq!(again.save(), saved);
    assert_eq!(again.totals(), FlowDecoder::default().totals());
    assert_eq!(again.memory(), decoder.memory());
    let body = [&[10, 0, 0, 1, 0, 0, 0, 3, 2][..], b"??", &[0, 0, 0, 2], &be(99, 4)].concat();
    for decoder in [&mut decoder, &mut again] {
        let (flows, counts) = decode(decoder, FROM, &ipfix(78, 1, &[set(256, &body)]));
        let kept = &flows[0];
        assert_eq!((kept.record.bytes(), kept.record.sampling_rate()), (Some(99), Some(50)));
        assert_eq!(
            (kept.input_name.as_deref(), kept.vrf_name.as_deref()),
            (Some("eth3"), Some("blue"))
        );
        assert_eq!(counts.held + counts.faults, 0);
        let (flows, _) = decode(decoder, "[2001:db8::1]:9", &v9(10, 1, &[set(256, &short(1, 2))]));
        assert_eq!(flows[0].record.bytes(), Some(2));
    }
    // The number of the first message after the restart is not compared with anything.
    assert_eq!(again.totals().lost, 0);
    // Damage is found, wherever it is.
    for at in 0..saved.len() {
        let mut damaged = saved.clone();
        damaged[at] ^= 4;
        assert!(FlowDecoder::default().load(&damaged).is_err(), "byte {at}");
        assert!(FlowDecoder::default().load(&saved[..at]).is_err(), "cut at {at}");
    }
}
