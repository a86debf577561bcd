//! A BGP session: the first byte is options and the size of the pieces, the rest is what the neighbour sends,
//! behind a sound OPEN and KEEPALIVE if the options say so. It ends with a NOTIFICATION, or waits; and how
//! the bytes are cut makes no difference.
#![no_main]

use std::time::Duration;

use fibula_feeds::Protocol;
use fibula_feeds::bgp::{BgpSession, Neighbour};
use fibula_rib::Rib;
use libfuzzer_sys::fuzz_target;

/// AS 64500 with both families, graceful restart, both kinds of refresh, long messages and ADD-PATH; KEEPALIVE.
const HELLO: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x5b\x01\
    \x04\xfb\xf4\x00\x5a\xc0\x00\x02\x09\x3e\
    \x02\x06\x01\x04\x00\x01\x00\x01\x02\x06\x01\x04\x00\x02\x00\x01\x02\x06\x41\x04\x00\x00\xfb\xf4\
    \x02\x0c\x40\x0a\x00\x78\x00\x01\x01\x00\x00\x02\x01\x00\x02\x02\x02\x00\x02\x02\x46\x00\
    \x02\x02\x06\x00\x02\x0a\x45\x08\x00\x01\x01\x02\x00\x02\x01\x02\
    \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x13\x04";

/// What was sent, why it ended, and how many routes there are.
fn run(flags: u8, input: &[u8], step: usize) -> (Vec<u8>, Option<String>, usize) {
    let mut neighbour = Neighbour::new([192, 0, 2, 9].into(), 65000, [10, 0, 0, 1].into());
    neighbour.add_path = flags & 2 != 0;
    neighbour.most_routes = (flags & 4 != 0).then_some(5);
    let (mut session, mut rib, mut out) = (BgpSession::new(neighbour), Rib::default(), Vec::new());
    let now = Duration::from_secs(1);
    session.connected(now, &mut rib, &mut out).expect("a table takes connections");
    if flags & 1 != 0 {
        session.bytes(now, HELLO, &mut rib, &mut out).expect("a sound beginning");
        assert!(session.established().is_some());
    }
    let mut pieces = input.chunks(step);
    let end = pieces.find_map(|piece| session.bytes(now, piece, &mut rib, &mut out).err());
    match &end {
        Some(why) if why.to_string().contains("it ended the session") => {}
        Some(_) => assert_eq!(last(&out)[18], 3),
        None => assert!(session.deadline().is_some()),
    }
    let routes = rib.memory().routes;
    session.end(&mut rib).expect("a table forgets");
    assert!(rib.is_empty());
    (out, end.map(|end| end.to_string()), routes)
}

/// The last message.
fn last(mut messages: &[u8]) -> &[u8] {
    loop {
        let len = usize::from(u16::from_be_bytes([messages[16], messages[17]]));
        match &messages[len..] {
            [] => return messages,
            rest => messages = rest,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, input)) = data.split_first() else { return };
    let whole = run(flags, input, input.len().max(1));
    assert_eq!(run(flags, input, usize::from(flags >> 3) + 1), whole);
});
