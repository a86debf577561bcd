//! Generated templates and records, compared with the oracle.

use std::net::SocketAddr;

use fibula_flows::FlowDecoder;
use proptest::prelude::*;

use crate::common::{Field, Keep, be, ipfix, set, template, v9};
use crate::oracle::{oracle, parse};

/// Fields that both decoders know, and some that are skipped: numbers with their possible lengths.
const KNOWN: &[(u16, &[u16])] = &[
    (1, &[1, 2, 4, 8]),
    (2, &[1, 4, 8]),
    (4, &[1]),
    (5, &[1]),
    (6, &[1, 2]),
    (7, &[2]),
    (8, &[4]),
    (10, &[2, 4]),
    (11, &[2]),
    (12, &[4]),
    (14, &[2, 4]),
    (15, &[4]),
    (16, &[2, 4]),
    (17, &[2, 4]),
    (18, &[4]),
    (23, &[4, 8]),
    (27, &[16]),
    (28, &[16]),
    (58, &[2]),
    (59, &[2]),
    (60, &[1]),
    (61, &[1]),
    (62, &[16]),
    (63, &[16]),
    (85, &[4, 8]),
    (86, &[4, 8]),
    (136, &[1]),
    (210, &[1, 3, 7]),
    (225, &[4]),
    (226, &[4]),
    (234, &[4]),
    (235, &[4]),
];

fn list(most: usize) -> impl Strategy<Value = Vec<Field>> {
    let field = (0..KNOWN.len(), any::<prop::sample::Index>()).prop_map(|(at, length)| {
        let (number, lengths) = KNOWN[at];
        (number, *length.get(lengths), 0)
    });
    proptest::collection::vec(field, 1..most)
}

/// Records of any bytes for a template. A field of variable length gets up to 300 bytes.
fn records(fields: &[Field], bytes: &[u8]) -> (usize, Vec<u8>) {
    let mut source = bytes.iter().copied().cycle();
    let (mut out, mut count) = (Vec::new(), 0);
    while count < 20 {
        let mut record = Vec::new();
        for (_, len, _) in fields {
            let mut len = usize::from(*len);
            if len == 65_535 {
                // The oracle loses the records of a set from an empty field on.
                len = usize::from(source.next().unwrap()) * 300 / 255 + 1;
                match len {
                    0..255 => record.push(len as u8),
                    _ => record.extend([&[255], &be(len as u64, 2)[..]].concat()),
                }
            }
            record.extend((&mut source).take(len));
        }
        if out.len() + record.len() > 30_000 {
            break;
        }
        out.extend(record);
        count += 1;
    }
    (count, out)
}

fn check(template_message: &[u8], data: &[u8], count: usize) {
    let from = SocketAddr::from(([192, 0, 2, 1], 2055));
    let (mut decoder, mut theirs, mut keep) = (FlowDecoder::default(), oracle(), Keep::default());
    decoder.decode(from, template_message, &mut keep);
    decoder.decode(from, data, &mut keep);
    assert_eq!(keep.faults, []);
    parse(&mut theirs, from, template_message);
    let (expected, _) = parse(&mut theirs, from, data);
    assert_eq!((keep.flows.len(), expected.len()), (count, count));
    for (ours, theirs) in keep.flows.iter().zip(&expected) {
        theirs.compare(&ours.record);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn netflow_v9(fields in list(24), bytes in proptest::collection::vec(any::<u8>(), 50..400)) {
        let (count, body) = records(&fields, &bytes);
        check(&v9(1, 7, &[set(0, &template(300, &fields))]), &v9(2, 7, &[set(300, &body)]), count);
    }

    /// Also fields of variable length, of unknown enterprises, and of the reverse direction.
    #[test]
    fn ipfix_of_all_kinds(
        fields in list(20),
        others in proptest::collection::vec((0usize..20, prop_oneof![
            Just((104u16, 65_535u16, 0u32)),
            Just((1, 65_535, 9999)),
            Just((5, 3, 9999)),
            Just((1, 8, 29305)),
            Just((2, 4, 29305)),
        ]), 0..5),
        bytes in proptest::collection::vec(any::<u8>(), 50..400),
    ) {
        let mut fields = fields;
        for (at, field) in others {
            fields.insert(at.min(fields.len()), field);
        }
        let (count, body) = records(&fields, &bytes);
        // Padding is shorter than a record.
        let least: usize = fields.iter().map(|f| if f.1 == 65_535 { 1 } else { f.1.into() }).sum();
        let body = [body, vec![0; 3.min(least - 1)]].concat();
        check(&ipfix(1, 7, &[set(2, &template(300, &fields))]), &ipfix(1, 7, &[set(300, &body)]), count);
    }
}
