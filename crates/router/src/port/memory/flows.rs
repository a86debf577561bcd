//! The packets that a memory port receives: given frames, or UDP packets of many flows.

use std::net::IpAddr;

use fibula_packet::checksum;
use fibula_simd::prefetch_read;

/// The frames that a port receives, in a circle.
pub struct Flows(FrameTemplates);

enum FrameTemplates {
    Frames(Vec<Box<[u8]>>),
    Udp(Udp),
}

/// One frame, and the fields in which a flow's frames differ from it. A flow takes 8 bytes (IPv4) or 20, so flows
/// displace little of the router's data in the caches.
struct Udp {
    template: Box<[u8]>,
    /// Where the destination address is, and its length: 4 or 16.
    address: (usize, usize),
    /// Where the source port is.
    port: usize,
    /// The position of the checksum that covers these fields: the header's for IPv4, UDP's for IPv6.
    checksum: usize,
    /// Of each flow the destination, the port and the checksum.
    flows: Vec<u8>,
}

/// The Ethernet header's length.
const ETHERNET: usize = 14;
/// Source addresses, of the ranges for benchmarks (RFC 2544, RFC 5180).
const SOURCE_V4: [u8; 4] = [198, 18, 0, 1];
const SOURCE_V6: [u8; 16] = [0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The port that everything is sent to: discard.
const DISCARD: [u8; 2] = 9u16.to_be_bytes();

impl Flows {
    /// These frames, as they are.
    pub fn frames(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(FrameTemplates::Frames(frames.into_iter().map(Vec::into_boxed_slice).collect()))
    }

    /// UDP packets to these destinations, one flow each, in frames of `len` bytes without Ethernet's own checksum.
    /// All destinations are of the first one's family. IPv4's have no UDP checksum, IPv6's must have one.
    ///
    /// With 64 bytes an IPv6 packet has two bytes of payload: its smallest frame has 62.
    ///
    /// # Panics
    /// If the headers do not fit the frame, it is longer than an IP packet may be, or the families differ.
    pub fn udp(
        source: [u8; 6],
        destination: [u8; 6],
        len: usize,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Self {
        let mut addresses = addresses.into_iter().peekable();
        let is_v6 = addresses.peek().is_some_and(IpAddr::is_ipv6);
        let macs = [destination, source].concat();
        let mut udp = if is_v6 { Udp::v6(&macs, len) } else { Udp::v4(&macs, len) };
        for address in addresses {
            assert_eq!(
                address.is_ipv6(),
                is_v6,
                "{address}: all destinations must have one family"
            );
            udp.add(address);
        }
        Self(FrameTemplates::Udp(udp))
    }

    /// How many frames there are in a circle.
    pub fn len(&self) -> usize {
        match &self.0 {
            FrameTemplates::Frames(frames) => frames.len(),
            FrameTemplates::Udp(udp) => udp.flows.len() / udp.flow_len(),
        }
    }

    /// Whether there is nothing to receive.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame, as it is received.
    ///
    /// # Panics
    /// If there is none of that number.
    pub fn frame(&self, at: usize) -> Vec<u8> {
        let mut frame = vec![0; self.frame_len(at)];
        self.write(at, &mut frame);
        frame
    }

    /// The length of a frame.
    pub(super) fn frame_len(&self, at: usize) -> usize {
        match &self.0 {
            FrameTemplates::Frames(frames) => frames[at].len(),
            FrameTemplates::Udp(udp) => udp.template.len(),
        }
    }

    /// Prefetches the fields of the next frames. A router that looks up random addresses between bursts hides from the
    /// processor that flows are read one after the other.
    #[inline]
    pub(super) fn prefetch(&self, at: usize, count: usize) {
        if let FrameTemplates::Udp(udp) = &self.0 {
            let len = udp.flow_len();
            for line in (at * len..(at + count) * len).step_by(64) {
                prefetch_read(&udp.flows, line);
            }
        }
    }

    /// Writes a frame.
    ///
    /// # Panics
    /// If `frame` has another length.
    #[inline]
    pub(super) fn write(&self, at: usize, frame: &mut [u8]) {
        match &self.0 {
            FrameTemplates::Frames(frames) => frame.copy_from_slice(&frames[at]),
            FrameTemplates::Udp(udp) => {
                let len = udp.flow_len();
                udp.write(&udp.flows[at * len..][..len], frame);
            }
        }
    }
}

impl Udp {
    fn v4(macs: &[u8], len: usize) -> Self {
        let total = len.checked_sub(ETHERNET).filter(|total| *total >= 28);
        let total = total.and_then(|total| u16::try_from(total).ok());
        let total = total.expect("a frame that holds Ethernet, IPv4 and UDP");
        let mut ip = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[12..16].copy_from_slice(&SOURCE_V4);
        let udp_len = (total - 20).to_be_bytes();
        let udp = [[0, 0], DISCARD, udp_len, [0, 0]].concat();
        let mut template = [macs, &[8, 0], &ip, &udp].concat();
        template.resize(len, 0);
        let template = template.into();
        Self { template, address: (30, 4), port: 34, checksum: 24, flows: Vec::new() }
    }

    fn v6(macs: &[u8], len: usize) -> Self {
        let payload = len.checked_sub(ETHERNET + 40).filter(|payload| *payload >= 8);
        let payload = payload.and_then(|payload| u16::try_from(payload).ok());
        let payload = payload.expect("a frame that holds Ethernet, IPv6 and UDP").to_be_bytes();
        let mut ip = [0; 40];
        ip[0] = 0x60;
        ip[4..6].copy_from_slice(&payload);
        (ip[6], ip[7]) = (17, 64);
        ip[8..24].copy_from_slice(&SOURCE_V6);
        let udp = [[0, 0], DISCARD, payload, [0, 0]].concat();
        let mut template = [macs, &[0x86, 0xdd], &ip, &udp].concat();
        template.resize(len, 0);
        let template = template.into();
        Self { template, address: (38, 16), port: 54, checksum: 60, flows: Vec::new() }
    }

    /// Bytes of a flow.
    #[inline]
    fn flow_len(&self) -> usize {
        self.address.1 + 4
    }

    fn add(&mut self, address: IpAddr) {
        let mut flow = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        // Several flows to one address differ in their ports.
        let number = self.flows.len() / self.flow_len();
        flow.extend((1024 + (number % 64_000) as u16).to_be_bytes());
        flow.extend([0; 2]);
        let mut frame = self.template.clone();
        self.write(&flow, &mut frame);
        let checksum = if self.address.1 == 4 {
            checksum::compute(&frame[ETHERNET..ETHERNET + 20])
        } else {
            // The pseudo-header (RFC 8200, section 8.1): addresses, length, protocol; then the segment.
            let ends = &frame[ETHERNET + 8..ETHERNET + 40];
            let len = &frame[ETHERNET + 4..ETHERNET + 6];
            let text = [ends, len, &[0, 17], &frame[ETHERNET + 40..]].concat();
            // Zero means that there is no checksum; its other form is sent.
            Some(checksum::compute(&text)).filter(|sum| *sum != 0).unwrap_or(0xffff)
        };
        flow.truncate(self.address.1 + 2);
        self.flows.extend(flow);
        self.flows.extend(checksum.to_be_bytes());
    }

    #[inline]
    fn write(&self, flow: &[u8], frame: &mut [u8]) {
        frame.copy_from_slice(&self.template);
        let (at, len) = self.address;
        frame[at..at + len].copy_from_slice(&flow[..len]);
        frame[self.port..self.port + 2].copy_from_slice(&flow[len..len + 2]);
        frame[self.checksum..self.checksum + 2].copy_from_slice(&flow[len + 2..len + 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_packet::{Frame, LinkType, checksum};

    const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

    #[test]
    fn packets_are_sound() {
        let v4 = ["192.0.2.1", "203.0.113.255", "192.0.2.1"];
        let v6 = ["2001:db8::1", "2001:db8:ffff::", "2001:db8::1"];
        for (addresses, len) in [(v4, 64), (v4, 42), (v4, 1514), (v6, 64), (v6, 62), (v6, 1514)] {
            let addresses = addresses.map(|address| address.parse::<IpAddr>().unwrap());
            let flows = Flows::udp(MACS.0, MACS.1, len, addresses);
            assert_eq!((flows.len(), flows.frame_len(2)), (3, len));
            let mut frames = vec![vec![0xff; len]; 3];
            for (at, frame) in frames.iter_mut().enumerate() {
                flows.write(at, frame);
                let parsed = Frame::parse(LinkType::Ethernet, frame);
                assert_eq!((parsed.check_forward(), parsed.fault()), (Ok(()), None));
                assert_eq!(parsed.ends().map(|(_, to)| to), Some(addresses[at]));
                assert_eq!(parsed.macs(), Some((MACS.1, MACS.0)));
                assert_eq!(
                    usize::from(parsed.udp().unwrap().len()),
                    parsed.segment().unwrap().len()
                );
                if addresses[at].is_ipv6() {
                    let (ip, segment) = (&frame[14..54], parsed.segment().unwrap());
                    let text = [&ip[8..40], &ip[4..6], &[0, 17], segment].concat();
                    assert!(checksum::verify(&text), "UDP's checksum");
                }
            }
            assert_ne!(frames[0], frames[2], "flows to one address differ");
        }
    }

    #[test]
    #[should_panic(expected = "a frame that holds")]
    fn a_frame_has_room_for_its_headers() {
        Flows::udp(MACS.0, MACS.1, 61, ["::1".parse::<IpAddr>().unwrap()]);
    }
}
