//! Records a second of a file of nfcapd, on one core:
//!
//! ```text
//! cargo run --release -p fibula-flows --example stored -- nfcapd.202601312355
//! ```
//!
//! The file is read into memory first. The best of ten runs counts.

use std::hint::black_box;
use std::time::{Duration, Instant};
use std::{env, error, fs};

use fibula_flows::{FlowRecord, NfcapdDecoder, NfcapdFault, NfcapdSource, NfcapdStep};

/// Decodes a file, and returns its number of flows.
fn decode(mut rest: &[u8]) -> Result<u64, NfcapdFault> {
    let mut decoder = NfcapdDecoder::default();
    let mut sum = 0;
    let mut sink = |record: &FlowRecord, _: &NfcapdSource<'_>| {
        let ends = u64::from(record.source().is_some()) + u64::from(record.destination().is_some());
        sum ^= ends ^ record.bytes().unwrap_or_default() ^ record.start_ms().unwrap_or_default();
    };
    loop {
        let len = match decoder.next(rest) {
            NfcapdStep::Incomplete => break,
            NfcapdStep::Skip(len) => len,
            NfcapdStep::Block(len) => {
                decoder.records(usize::MAX, &mut sink)?;
                len
            }
            NfcapdStep::Damaged(_, fault) | NfcapdStep::Lost(fault) => return Err(fault),
        };
        rest = &rest[len..];
    }
    decoder.end(rest.len())?;
    black_box(sum);
    Ok(decoder.flows())
}

fn main() -> Result<(), Box<dyn error::Error>> {
    for path in env::args().skip(1) {
        let file = fs::read(&path)?;
        let flows = decode(&file)?;
        let mut best = Duration::MAX;
        for _ in 0..10 {
            let begin = Instant::now();
            decode(&file)?;
            best = best.min(begin.elapsed());
        }
        let rate = flows as f64 / best.as_secs_f64() / 1e6;
        println!("{path}: {} bytes, {flows} flows, {rate:.1} million records/s", file.len());
    }
    Ok(())
}
