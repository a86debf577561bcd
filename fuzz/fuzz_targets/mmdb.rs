//! MaxMind DB: the input is the file.
#![no_main]

use fibula_fuzz::decode;
use fibula_ingest::Tail;
use fibula_ingest::mmdb::MmdbDecoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    decode(&mut MmdbDecoder::default(), data, (data.len(), 1), Tail::End);
});
