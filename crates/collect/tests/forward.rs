//! Flows that are sent on as IPFIX are the flows that were received.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use fibula_annotate::AnnotateOptions;
use fibula_collect::{
    CollectOptions, Collector, FlowFormat, FlowForward, FlowOutput, FlowPlace, FlowTable,
};
use fibula_flows::{FlowDecoder, FlowRecord, FlowSink, FlowSource};
use serde_json::Value;

use crate::common::{Exporter, ipfix_flow, ipfix_template, options, rows, v5, wait};
use crate::tables::table;

/// A second collector writes what the first one sends on: the rows are equal but for how they came.
#[test]
fn a_second_collector_has_the_same_flows() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let target = Collector::start(options(second.path(), FlowFormat::JsonLines), None).unwrap();
    let mut options = options(first.path(), FlowFormat::JsonLines);
    options.forward = Some(FlowForward { to: target.addresses()[0], enterprise: None });
    let collector = Collector::start(options, None).unwrap();
    let exporter = Exporter::to(&collector);
    for at in 0..40 {
        exporter.send(&v5(at * 30, 30));
    }
    exporter.send(&ipfix_template());
    (0..3).for_each(|at| exporter.send(&ipfix_flow(at, 1 << (20 + at))));
    let counts = collector.stop().unwrap();
    assert_eq!((counts.rows, counts.forwarded, counts.unsent), (1203, 1203, 0));
    wait(&target, |counts| counts.exports.flows == 1203);
    let counts = target.stop().unwrap();
    assert_eq!((counts.exports.faults, counts.exports.lost, counts.exports.held), (0, 0, 0));
    // Two combinations of fields.
    assert_eq!(counts.exports.templates, 2);
    let without = |rows: Vec<Value>| {
        let mut rows = rows;
        for row in &mut rows {
            for name in ["export", "domain"] {
                row.as_object_mut().unwrap().remove(name);
            }
        }
        rows
    };
    assert_eq!(without(rows(second.path())), without(rows(first.path())));
}

/// Takes nothing.
struct Nothing;

impl FlowSink for Nothing {
    fn flow(&mut self, _: &FlowRecord, _: &FlowSource<'_>) {}
}

/// The table's values are elements of the enterprise, and their names and types come before the flows.
#[test]
fn values_are_named() {
    const ENTERPRISE: [u8; 4] = 32473u32.to_be_bytes();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let output = FlowOutput::new(FlowPlace::Nowhere, FlowFormat::JsonLines);
    let mut options = CollectOptions::new(vec!["127.0.0.1:0".parse().unwrap()], output);
    let to = socket.local_addr().unwrap();
    options.forward = Some(FlowForward { to, enterprise: Some(32473) });
    let mut add = AnnotateOptions::default();
    add.add = vec!["site".into(), "prefix".into()];
    let fib = table("site", &[("10.1.0.0/16", "a site with a name")]);
    let table = FlowTable::new(fib, &add, FlowFormat::JsonLines).unwrap();
    let collector = Collector::start(options, Some(Arc::new(table))).unwrap();
    Exporter::to(&collector).send(&v5(0, 2));
    let counts = collector.stop().unwrap();
    assert_eq!((counts.forwarded, counts.rows, counts.files), (2, 0, 0));
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut buffer = [0; 2000];
    let (mut decoder, mut all) = (FlowDecoder::default(), Vec::new());
    while decoder.totals().flows < 2 {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let counts = decoder.decode(from, &buffer[..len], &mut Nothing);
        assert_eq!((counts.faults, counts.lost), (0, 0));
        all.extend_from_slice(&buffer[..len]);
    }
    // An options template, four names, a template.
    assert_eq!((decoder.totals().options, decoder.totals().templates), (4, 2));
    let has = |bytes: &[u8]| all.windows(bytes.len()).any(|window| window == bytes);
    for (number, name) in [(1, "src_site"), (2, "src_prefix"), (3, "dst_site"), (4, "dst_prefix")] {
        let len = [name.len() as u8];
        let named = [&ENTERPRISE[..], &[0, number, 13], &len, name.as_bytes()].concat();
        assert!(has(&named), "{name}");
    }
    // Elements of an enterprise have the highest bit; these two have values of variable length.
    assert!(has(&[&[0x80, 1, 0xff, 0xff][..], &ENTERPRISE].concat()));
    assert!(!has(&[&[0x80, 3, 0xff, 0xff][..], &ENTERPRISE].concat()));
    assert!(has(b"\x12a site with a name\x0b10.1.0.0/16"));
}
