//! Address text against the standard library: whatever it reads, and nothing else, is an address.
#![no_main]

use std::net::IpAddr;

use fibula_annotate::Address;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let expected = std::str::from_utf8(data).ok().and_then(|text| text.parse::<IpAddr>().ok());
    assert_eq!(Address::parse(data), expected.map(Address::from), "{}", data.escape_ascii());
    // As an address is written, it is read.
    if let Some(ip) = expected {
        let text = ip.to_string();
        assert_eq!(Address::parse(text.as_bytes()), Some(Address::from(ip)), "{text}");
    }
});
