//! Files of nfdump's collectors: what is given out does not depend on how much is asked for at once, and a file that is
//! cut gives the first flows of the whole one.
#![no_main]

use fibula_flows::{NFCAPD_BLOCK_LIMIT, NfcapdDecoder, NfcapdFault, NfcapdStep};
use libfuzzer_sys::fuzz_target;

/// The flows and faults of a file.
fn read(mut rest: &[u8], most: usize) -> (Vec<String>, Vec<NfcapdFault>) {
    let mut decoder = NfcapdDecoder::default();
    let (mut flows, mut faults) = (Vec::new(), Vec::new());
    loop {
        let len = match decoder.next(rest) {
            NfcapdStep::Incomplete => break,
            NfcapdStep::Skip(len) => len,
            NfcapdStep::Damaged(len, fault) => {
                faults.push(fault);
                len
            }
            NfcapdStep::Lost(fault) => {
                faults.push(fault);
                return (flows, faults);
            }
            NfcapdStep::Block(len) => {
                loop {
                    let before = flows.len();
                    let done = decoder.records(most, |record, source| {
                        flows.push(format!("{:?} {record:?}", source.exporter()));
                    });
                    assert!(flows.len() - before <= most);
                    match done {
                        Ok(true) => assert_eq!(flows.len() - before, most),
                        Ok(false) => break,
                        Err(fault) => faults.push(fault),
                    }
                }
                len
            }
        };
        assert!(len > 0 && len <= rest.len() && len <= NFCAPD_BLOCK_LIMIT + 12);
        rest = &rest[len..];
    }
    faults.extend(decoder.end(rest.len()).err());
    assert_eq!(decoder.flows(), flows.len() as u64);
    (flows, faults)
}

fuzz_target!(|data: &[u8]| {
    let (flows, faults) = read(data, usize::MAX);
    assert_eq!(read(data, 1), (flows.clone(), faults));
    let (first, _) = read(&data[..data.len() / 2], usize::MAX);
    assert!(flows.starts_with(&first));
});
