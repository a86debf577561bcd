//! rtnetlink, routes and links: the first two bytes are options and the size of the pieces, the rest is the stream.
#![no_main]

use fibula_fuzz::decode;
use fibula_ingest::Tail;
use fibula_ingest::netlink::{LinkNews, NetlinkDecoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, step], input)) = data.split_first_chunk() else { return };
    let tail = if flags & 1 != 0 { Tail::Cut } else { Tail::End };
    let whole = decode(&mut NetlinkDecoder::default(), input, (input.len(), 1), tail);
    let parts = decode(&mut NetlinkDecoder::default(), input, (0, step.into()), tail);
    assert_eq!(whole.verdict(), parts.verdict());
    let mut news = LinkNews::default();
    news.read(input);
    assert!(news.messages.len() + news.damaged as usize <= input.len() / 16 + 1);
    assert_eq!(news.damaged > 0, news.damage.is_some());
});
