//! RIS Live: the first two bytes are options and the size of the pieces, the rest is the lines.
#![no_main]

use fibula_fuzz::decode;
use fibula_ingest::Tail;
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::ris::RisDecoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, step], input)) = data.split_first_chunk() else { return };
    let options = BgpOptions {
        as_path: flags & 1 != 0,
        communities: flags & 2 != 0,
        extended_communities: flags & 2 != 0,
    };
    let tail = if flags & 4 != 0 { Tail::Cut } else { Tail::End };
    let whole = decode(&mut RisDecoder::new(options), input, (input.len(), 1), tail);
    let parts = decode(&mut RisDecoder::new(options), input, (0, step.into()), tail);
    assert_eq!(whole.verdict(), parts.verdict());
});
