//! Real exports: every record as the oracle has it.

use std::net::SocketAddr;

use fibula_flows::{ExportProtocol, FlowDecoder, ipfix_len};

use crate::common::{Keep, captures, ipfix_file};
use crate::oracle::{oracle, parse};

#[test]
fn records_agree_with_the_oracle() {
    let mut records = 0;
    for (name, datagrams) in captures() {
        let (mut decoder, mut theirs) = (FlowDecoder::default(), oracle());
        for (from, datagram) in &datagrams {
            assert!(ExportProtocol::recognise(datagram).is_some(), "{name}");
            let mut keep = Keep::default();
            let counts = decoder.decode(*from, datagram, &mut keep);
            assert_eq!(keep.faults, [], "{name}");
            let (expected, missing) = parse(&mut theirs, *from, datagram);
            // The oracle drops sets without a template, which are held here.
            let more = keep.flows.len() - expected.len();
            let huawei = name.contains("106-IPFIXv10-HUAWEI");
            assert!(more == 0 || counts.released > 0 || huawei, "{name}: {more} more records");
            assert_eq!(counts.held, missing, "{name}");
            if more == 0 {
                for (ours, theirs) in keep.flows.iter().zip(&expected) {
                    theirs.compare(&ours.record);
                }
                records += expected.len();
            }
        }
        let totals = decoder.totals();
        println!("{name}: {totals:?}");
        assert_eq!(totals.datagrams, datagrams.len() as u64);
    }
    if !captures().is_empty() {
        assert!(records >= 200, "only {records} records were compared");
    }
}

/// The records of this capture end with an empty field of variable length. The oracle loses them without an error; the
/// expected values are tshark's.
#[test]
fn empty_fields_of_variable_length() {
    let captures = captures();
    let Some((_, datagrams)) =
        captures.iter().find(|(name, _)| name.contains("106-IPFIXv10-HUAWEI"))
    else {
        return;
    };
    let (mut decoder, mut keep) = (FlowDecoder::default(), Keep::default());
    // The capture is not in order of time: the templates come at its end, too.
    for (from, datagram) in datagrams {
        decoder.decode(*from, datagram, &mut keep);
    }
    let found: Vec<_> = keep
        .flows
        .iter()
        .map(|kept| {
            let record = &kept.record;
            (
                record.source().unwrap().to_string(),
                record.bytes(),
                record.protocol(),
                record.input(),
            )
        })
        .collect();
    let tunnel = ("2001:db8:53::1".to_owned(), Some(142_216), Some(4), Some(10));
    assert_eq!(
        found,
        [tunnel.clone(), tunnel, ("fd00::2".to_owned(), Some(125), Some(6), Some(65))]
    );
    assert_eq!(keep.flows[2].record.source_port(), Some(54_194));
    assert_eq!(keep.flows[2].vrf_name.as_deref(), Some("A4"));
}

#[test]
fn a_file_of_messages() {
    let Some(file) = ipfix_file() else { return };
    let (mut decoder, mut theirs, mut keep) = (FlowDecoder::default(), oracle(), Keep::default());
    let from = SocketAddr::from(([127, 0, 0, 1], 0));
    let (mut at, mut compared) = (0, 0);
    while at < file.len() {
        let len = ipfix_len(&file[at..]).unwrap().unwrap();
        let message = &file[at..at + len];
        let before = keep.flows.len();
        let counts = decoder.decode(from, message, &mut keep);
        let (expected, missing) = parse(&mut theirs, from, message);
        assert_eq!((keep.flows.len() - before, counts.held), (expected.len(), missing));
        for (ours, theirs) in keep.flows[before..].iter().zip(&expected) {
            theirs.compare(&ours.record);
            compared += 1;
        }
        at += len;
    }
    println!("{:?} {:?}", decoder.totals(), keep.flows.first());
    assert_eq!(keep.faults, []);
    assert!(compared > 100, "{compared}");
}
