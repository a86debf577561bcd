//! Checksums that the sender's kernel left to a device that never was there.
//!
//! A kernel hands packets to an interface with checksum offload before their TCP or UDP checksum is computed: the
//! field holds the sum of the pseudo header alone. Over a virtual link (veth, tap) such a packet arrives as it is.

use std::net::IpAddr;

use fibula_packet::{Frame, LinkType, checksum};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Completes the checksum of what begins at `start`, whose field `offset` bytes later holds the sum of
/// the pseudo header. False, and nothing changes, if they are not in the frame.
pub(super) fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(field) = start.checked_add(offset).filter(|field| field + 2 <= frame.len()) else {
        return false;
    };
    let computed = match checksum::compute(&frame[start..]) {
        0 => 0xffff, // of UDP, 0 means that there is no checksum; elsewhere both are the same number
        computed => computed,
    };
    frame[field..field + 2].copy_from_slice(&computed.to_be_bytes());
    true
}

/// Completes the checksum of a frame if it looks incomplete: the TCP or UDP checksum is wrong, and the field holds
/// exactly the value that a kernel leaves there. Nothing else marks such frames. One in 65,536 packets that were
/// damaged on their way looks the same.
pub(super) fn complete_if_partial(bytes: &mut [u8]) -> bool {
    let frame = Frame::parse(LinkType::Ethernet, bytes);
    let (Some(at), Some(protocol), Some((source, destination))) =
        (frame.transport_at(), frame.protocol(), frame.ends())
    else {
        return false;
    };
    let offset = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return false,
    };
    if frame.fragment().is_some() {
        return false; // a kernel completes the checksum before it fragments
    }
    let Some(segment) = frame.segment().filter(|segment| segment.len() >= offset + 2) else {
        return false;
    };
    let field = u16::from_be_bytes([segment[offset], segment[offset + 1]]);
    let pseudo = pseudo_header(source, destination, protocol, segment.len() as u32);
    if field != pseudo || field == 0 {
        return false;
    }
    let end = at + segment.len();
    // The number may be the right checksum all the same.
    let sum = u32::from(checksum::sum(segment)) + u32::from(pseudo);
    let is_right = (sum & 0xffff) + (sum >> 16) == 0xffff;
    !is_right && complete(&mut bytes[..end], at, offset)
}

/// The sum of the pseudo header, in 16 bits.
pub(super) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: u32) -> u16 {
    let of = |address| match address {
        IpAddr::V4(address) => checksum::sum(&address.octets()),
        IpAddr::V6(address) => checksum::sum(&address.octets()),
    };
    let parts = [of(source), of(destination), u16::from(protocol), (len >> 16) as u16, len as u16];
    let mut sum: u32 = parts.into_iter().map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet with a checksum field that a kernel has prepared for offload.
    fn prepared() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend(b"\x45\0\0\x20\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02");
        frame.extend(b"\0\x07\0\x09\0\x0c\0\0data");
        let pseudo = pseudo_header([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), UDP, 12);
        frame[40..42].copy_from_slice(&pseudo.to_be_bytes());
        frame
    }

    fn is_right(frame: &[u8]) -> bool {
        let pseudo = pseudo_header([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), UDP, 12);
        checksum::verify(&[&pseudo.to_be_bytes()[..], &frame[34..46]].concat())
    }

    #[test]
    fn a_prepared_checksum_is_completed_once() {
        let mut frame = prepared();
        frame.extend([0; 14]); // padding
        assert!(!is_right(&frame));
        assert!(complete_if_partial(&mut frame));
        assert!(is_right(&frame));
        let done = frame.clone();
        assert!(!complete_if_partial(&mut frame));
        assert_eq!(frame, done);
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let mut wrong = prepared();
        wrong[41] ^= 1;
        let mut none = prepared();
        none[40..42].fill(0);
        let mut fragment = prepared();
        fragment[20] = 0x20;
        let mut cut = prepared();
        cut.truncate(39);
        for frame in [wrong, none, fragment, cut, vec![], vec![0; 60]] {
            let mut after = frame.clone();
            assert!(!complete_if_partial(&mut after));
            assert_eq!(frame, after);
        }
        assert!(!complete(&mut [0; 20], 10, 9));
        assert!(!complete(&mut [0; 20], usize::MAX, 9));
    }
}
