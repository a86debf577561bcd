//! OPEN messages: what is decoded and encoded again is the same, and two of them agree on an encoding.
#![no_main]

use fibula_ingest::bgp::{AfiSafi, Open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(open) = Open::decode(data) else { return };
    let _ = open.supports(AfiSafi::IPV6);
    let _ = open.encoding_to(&open);
    // What is longer than a message can be is not encoded.
    let Ok(message) = open.encode() else { return };
    let again = Open::decode(&message).expect("it was encoded");
    let encoded = again.encode().expect("it was encoded before");
    assert_eq!(Open::decode(&encoded).as_ref(), Ok(&again));
    // Unknown parameters, unused bits and a number of four bytes without its capability are left out.
    assert_eq!(again.capabilities.len(), open.capabilities.len());
    assert_eq!((again.hold_time, again.bgp_id), (open.hold_time, open.bgp_id));
});
