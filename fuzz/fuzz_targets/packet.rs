//! Frames: the first two bytes are the LINKTYPE and what the frame was longer on the wire. Offsets
//! lie inside the frame, one byte more loses nothing, and bytes behind a packet change no flow key.
#![no_main]

use fibula_packet::{Frame, Length, LinkType, checksum};
use libfuzzer_sys::fuzz_target;

const LINKS: [u32; 7] = [1, 0, 9, 104, 101, 113, 276];

fuzz_target!(|data: &[u8]| {
    let Some((&[link, longer], bytes)) = data.split_first_chunk() else { return };
    let link = LinkType::from_number(LINKS[usize::from(link) % LINKS.len()]).expect("is known");
    let wire_len = bytes.len() + usize::from(longer);
    let frame = Frame::parse_captured(link, bytes, wire_len);
    check_offsets(&frame);
    check_key(link, &frame);
    if let Some(ip) = frame.ipv4() {
        let header = bytes.get(frame.network_at().expect("a header has a place")..);
        let header = header.and_then(|bytes| bytes.get(..ip.header_len()));
        let sound = header.is_some_and(|header| header.len() >= 20 && checksum::verify(header));
        assert_eq!(ip.checksum_is_right(), sound);
    }
    if frame.check_forward().is_ok() {
        assert!(
            frame.ends().is_some()
                && !matches!(frame.length(), None | Some(Length::Beyond | Length::Cut))
        );
    }
    if let Some(shorter) = bytes.split_last().map(|(_, shorter)| shorter) {
        check_shorter(&Frame::parse_captured(link, shorter, wire_len), &frame);
    }
});

fn check_offsets(frame: &Frame<'_>) {
    let len = frame.bytes().len();
    let places = [frame.network_at(), frame.payload_at(), frame.transport_at()];
    assert!(places.iter().flatten().is_sorted() && places.iter().flatten().all(|at| *at <= len));
    let start = frame.network_at().unwrap_or_default();
    let mut end = start + 40;
    for extension in frame.extensions().into_iter().flatten() {
        assert_eq!(start + extension.at, end);
        end += extension.len;
        assert!(end <= len && extension.len >= 8);
    }
    if let (Some(segment), Some(at)) = (frame.segment(), frame.transport_at()) {
        assert_eq!(segment, &frame.bytes()[at..at + segment.len()]);
    }
    if let Some(fault) = frame.fault() {
        assert!(!fault.to_string().is_empty());
    }
}

fn check_key(link: LinkType, frame: &Frame<'_>) {
    let key = frame.flow_key();
    assert_eq!(key, Frame::parse_captured(link, frame.bytes(), frame.wire_len()).flow_key());
    if matches!(frame.length(), Some(Length::Whole | Length::WithinHeaders)) {
        let longer = [frame.bytes(), &[0x3c; 24]].concat();
        assert_eq!(Frame::parse(link, &longer).flow_key(), key);
    }
}

/// All that the shorter frame says, the longer one says too.
fn check_shorter(shorter: &Frame<'_>, longer: &Frame<'_>) {
    fn kept<T: PartialEq>(less: Option<T>, more: Option<T>) -> bool {
        less.is_none() || less == more
    }
    assert!(kept(shorter.macs(), longer.macs()));
    assert!(kept(shorter.ether_type(), longer.ether_type()));
    assert!(kept(shorter.network(), longer.network()));
    assert!(kept(shorter.network_at(), longer.network_at()));
    assert!(kept(shorter.ends(), longer.ends()));
    assert!(kept(shorter.protocol(), longer.protocol()));
    assert!(kept(shorter.fragment(), longer.fragment()));
    assert!(kept(shorter.transport_at(), longer.transport_at()));
    assert!(kept(shorter.ports(), longer.ports()));
    assert!(kept(shorter.icmp(), longer.icmp()));
    let open = matches!(shorter.length(), None | Some(Length::Cut));
    assert!(open || shorter.length() == longer.length());
    // No fault: nothing was missing.
    if shorter.fault().is_none() {
        assert_eq!(longer.fault(), None);
        assert_eq!((shorter.protocol(), shorter.ports()), (longer.protocol(), longer.ports()));
    }
}
