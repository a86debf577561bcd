//! Bounds: whatever is sent, memory and the number of kept things stay within the limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fibula_flows::{FlowDecoder, FlowLimits};

use crate::common::{Field, Keep, decode, ipfix, set, template};

const LIST: &[Field] = &[(8, 4, 0), (12, 4, 0), (1, 4, 0)];

fn define(domain: u32, numbers: std::ops::Range<u16>) -> Vec<u8> {
    let templates: Vec<u8> = numbers.flat_map(|number| template(number, LIST)).collect();
    ipfix(0, domain, &[set(2, &templates)])
}

fn limits(change: impl FnOnce(&mut FlowLimits)) -> FlowLimits {
    let mut limits = FlowLimits::default();
    change(&mut limits);
    limits
}

#[test]
fn templates_domains_and_exporters() {
    let mut decoder = FlowDecoder::new(limits(|limits| {
        (limits.templates, limits.domains, limits.exporters) = (10, 4, 3);
    }));
    let from = "192.0.2.1:1";
    let (_, counts) = decode(&mut decoder, from, &define(1, 256..270));
    assert_eq!((counts.templates, counts.forgotten), (14, 4));
    for domain in 2..=6 {
        decode(&mut decoder, from, &define(domain, 256..257));
    }
    assert_eq!(decoder.totals().forgotten, 4 + 2);
    assert_eq!(decoder.sources().count(), 4);
    // Another exporter's domains stay, whatever this one sends.
    decode(&mut decoder, "192.0.2.2:1", &define(1, 256..257));
    for domain in 0..50 {
        decode(&mut decoder, from, &define(domain, 256..300));
    }
    let (flows, _) = decode(&mut decoder, "192.0.2.2:1", &ipfix(0, 1, &[set(256, &[1; 12])]));
    assert_eq!(flows.len(), 1);
    decode(&mut decoder, "192.0.2.3:1", &define(1, 256..257));
    decode(&mut decoder, "192.0.2.4:1", &define(1, 256..257));
    let exporters: std::collections::BTreeSet<IpAddr> =
        decoder.sources().map(|source| source.exporter()).collect();
    assert_eq!(exporters.len(), 3);
    assert!(!exporters.contains(&IpAddr::from([192, 0, 2, 1])), "it was used least recently");
}

#[test]
fn too_many_fields() {
    let mut decoder = FlowDecoder::new(limits(|limits| limits.fields = 2));
    let mut keep = Keep::default();
    decoder.decode("192.0.2.1:1".parse().unwrap(), &define(1, 256..257), &mut keep);
    assert_eq!(keep.faults.len(), 1);
    assert_eq!(keep.faults[0].to_string(), "at byte 20: a template of 3 fields is too large");
    // Records without bytes would never end.
    let empty = ipfix(0, 1, &[set(2, &template(256, &[(8, 0, 0)]))]);
    assert_eq!(decode(&mut decoder, "192.0.2.1:1", &empty).1.faults, 1);
}

#[test]
fn sets_that_wait() {
    let mut decoder = FlowDecoder::new(limits(|limits| limits.held = 10_000));
    let body = vec![7; 1200];
    for number in 0..100 {
        decode(&mut decoder, "192.0.2.1:1", &ipfix(number, 1, &[set(256, &body)]));
    }
    let totals = *decoder.totals();
    assert_eq!(totals.held, 100);
    assert!((90..100).contains(&totals.dropped), "{totals:?}");
    let (_, counts) = decode(&mut decoder, "192.0.2.1:1", &define(1, 256..257));
    assert_eq!(counts.released + totals.dropped, 100);
    // None is held where that is off.
    let mut decoder = FlowDecoder::new(limits(|limits| limits.held = 0));
    let (_, counts) = decode(&mut decoder, "192.0.2.1:1", &ipfix(0, 1, &[set(256, &body)]));
    assert_eq!((counts.held, counts.dropped), (0, 1));
}

#[test]
fn memory_stays_within_its_bound() {
    let (bound, one) = (4 << 20, 1 << 20);
    let mut decoder = FlowDecoder::new(limits(|limits| {
        (limits.bytes, limits.exporter_bytes) = (bound, one);
    }));
    let mut most = 0;
    for exporter in 0..30u32 {
        let from = SocketAddr::new(Ipv4Addr::from(0x0a00_0000 + exporter).into(), 4739);
        let mut keep = Keep::default();
        for domain in 0..6 {
            decoder.decode(from, &define(domain, 256..1256), &mut keep);
            decoder.decode(from, &ipfix(0, domain, &[set(5000, &[1; 60_000])]), &mut keep);
            most = most.max(decoder.memory());
        }
    }
    assert!(most <= bound + 2 * one && most > bound / 2, "{most}");
    // What the decoder says is what the process has, about.
    let before = resident();
    let mut others: Vec<FlowDecoder> = Vec::new();
    for _ in 0..4 {
        let mut decoder = FlowDecoder::default();
        for domain in 0..40 {
            decode(&mut decoder, "192.0.2.1:1", &define(domain, 256..1256));
        }
        others.push(decoder);
    }
    let said: usize = others.iter().map(FlowDecoder::memory).sum();
    if let (Some(before), Some(after)) = (before, resident()) {
        let grown = after.saturating_sub(before);
        assert!(grown < said + said / 4 + (8 << 20), "{grown} bytes for {said}");
    }
}

/// The memory of this process in bytes, where the system says it.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}
