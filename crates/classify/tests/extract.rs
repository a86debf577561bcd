//! The words of a frame are those of its flow key.

use fibula_classify::{Batch, Context, Field, Flow, WORDS, words};
use fibula_packet::{Frame, LinkType};
use proptest::prelude::*;

use crate::flow::frame;

/// Frames of several kinds, to be changed.
fn frames() -> Vec<Vec<u8>> {
    let link = |rest: &[u8]| [&[2; 12][..], rest].concat();
    let v6 = |next: u8, rest: &[u8]| {
        let head =
            [&[0x86, 0xdd, 0x65, 0x50, 0, 0, 0, rest.len() as u8, next, 64][..], &[0x20; 32]];
        link(&[&head.concat()[..], rest].concat())
    };
    vec![
        frame(),
        link(b"\x08\x06\0\x01\x08\0\x06\x04\0\x01"),
        link(b"\x08\0\x45\0\0\x1c\0\0\0\0\x40\x01\0\0\x0a\0\0\x01\x0a\0\0\x02\x08\0\0\0\0\0\0\0"),
        link(b"\x08\0\x45\0\0\x20\0\0\x20\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\0\x35\0\x35\0\x0c\0\0abcd"),
        v6(6, b"\0\x50\x10\0\0\0\0\0\0\0\0\0\x50\x12\0\0\0\0\0\0"),
        v6(44, b"\x11\0\0\x01\0\0\0\x05\0\x35\x10\0\0\x08\0\0"),
        v6(0, b"\x3a\0\x01\x04\0\0\0\0\x80\0\0\0"),
        v6(58, b"\x87\x01\0\0"),
    ]
}

fn same(bytes: &[u8], link: LinkType, context: &Context) {
    let frame = Frame::parse(link, bytes);
    let mut expected = Flow::from(&frame.flow_key());
    assert_eq!(Flow::from(&frame), expected, "{bytes:x?}");
    expected.set(Field::InPort, context.in_port.into());
    expected.set(Field::Mark, context.mark.into());
    expected.set(Field::Metadata, context.metadata.into());
    expected.set(Field::TunnelId, context.tunnel_id.into());
    let mut extracted = [0; WORDS];
    words(&frame, context, |word, value| extracted[word] = value);
    assert_eq!(Flow::from_words(extracted), expected, "{bytes:x?}");
    {
        let mut batch = Batch::new();
        batch.push(&Flow::default());
        batch.push_frame(&frame, context);
        assert_eq!([batch.flow(0), batch.flow(1)], [Flow::default(), expected]);
        batch.clear();
        batch.push(&Flow::default());
        batch.push(&Flow::default());
        assert_eq!(batch.flow(1), Flow::default());
    }
}

#[test]
fn every_kind_of_frame() {
    for bytes in frames() {
        for len in 0..=bytes.len() {
            same(&bytes[..len], LinkType::Ethernet, &Context::default());
        }
    }
    let raw = &frames()[2][14..];
    let flow = Flow::from(&Frame::parse(LinkType::RawIp, raw));
    assert_eq!((flow.get(Field::EthType), flow.get(Field::IpVersion)), (0, 4));
    same(raw, LinkType::RawIp, &Context::default());
}

#[test]
fn packets_of_one_kind_have_the_same_words() {
    let mut bytes = frame();
    let list = |bytes: &[u8]| {
        let mut all = Vec::new();
        let frame = Frame::parse(LinkType::Ethernet, bytes);
        words(&frame, &Context::default(), |word, value| all.push((word, value)));
        all
    };
    let all = list(&bytes);
    bytes[23] = 0; // no DSCP
    bytes[55] = 0; // no flags
    let other = list(&bytes);
    assert_ne!(all, other);
    let numbers = |all: &[(usize, u64)]| all.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    assert_eq!(numbers(&all), numbers(&other));
    assert!(all.len() == 7 && numbers(&all).is_sorted());
}

proptest! {
    #[test]
    fn changed_frames(
        kind in 0..8usize,
        changes in prop::collection::vec((0..70usize, any::<u8>()), 0..6),
        cut in 0..80usize,
        in_port: u32,
        metadata in prop_oneof![Just(0), any::<u64>()],
        tunnel_id in prop_oneof![Just(0), any::<u64>()],
    ) {
        let mut bytes = frames()[kind].clone();
        for (at, byte) in changes {
            if let Some(to) = bytes.get_mut(at) {
                *to = byte;
            }
        }
        bytes.truncate(cut);
        let context = Context { in_port, mark: !in_port, metadata, tunnel_id };
        same(&bytes, LinkType::Ethernet, &context);
    }
}
