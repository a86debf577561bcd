//! Flow exports: the input is datagrams, each behind a byte with its sender's number and two bytes with its length. A
//! second decoder gets those of the first sender alone: its records are the same. Memory stays within the limits, and
//! saved templates can be loaded.
#![no_main]

use std::net::SocketAddr;

use fibula_flows::{FlowDecoder, FlowLimits, FlowRecord, FlowSink, FlowSource};
use libfuzzer_sys::fuzz_target;

#[derive(Default)]
struct Texts(Vec<String>);

impl FlowSink for Texts {
    fn flow(&mut self, record: &FlowRecord, source: &FlowSource<'_>) {
        self.0.push(format!("{} {} {record:?}", source.protocol(), source.domain()));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut limits = FlowLimits::default();
    (limits.exporter_bytes, limits.bytes) = (1 << 20, 2 << 20);
    let (mut all, mut alone) = (FlowDecoder::new(limits), FlowDecoder::new(limits));
    let mut rest = data;
    while let Some((&[number, high, low], tail)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([high, low])).min(tail.len());
        let (datagram, tail) = tail.split_at(len);
        rest = tail;
        let number = number % 4;
        let from = SocketAddr::from(([192, 0, 2, number], 2055));
        let mut texts = Texts::default();
        let counts = all.decode(from, datagram, &mut texts);
        assert_eq!(counts.flows, texts.0.len() as u64);
        assert!(all.memory() <= limits.bytes + (4 << 20));
        if number == 0 {
            let mut expected = Texts::default();
            alone.decode(from, datagram, &mut expected);
            // Under memory pressure by others, templates may have been forgotten, and only then.
            assert!(texts.0 == expected.0 || all.totals().forgotten > 0);
        }
    }
    FlowDecoder::new(limits).load(&all.save()).expect("what was saved can be loaded");
});
