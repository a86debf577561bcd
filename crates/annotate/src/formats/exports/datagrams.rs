//! Finds the datagrams with exports among packets.

use std::net::SocketAddr;

use fibula_flows::ExportProtocol;
use fibula_packet::{Frame, LinkType, protocol};

/// What a packet is.
pub(super) enum Datagram<'a> {
    /// An export, with its sender.
    Export(SocketAddr, &'a [u8]),
    /// A fragment of a datagram of UDP. Fragments are not put together.
    Fragment,
    /// Something else.
    Other,
}

/// Ports that collectors listen on: NetFlow's usual ones, IPFIX (4739), sFlow (6343). To these, a datagram of a known
/// version is an export even if its lengths do not fit, and is then reported as damaged.
const PORTS: [u16; 6] = [2055, 2056, 4739, 6343, 9995, 9996];

/// Decides what a packet is. Its link type may be unknown.
pub(super) fn datagram(link: Option<LinkType>, data: &[u8], wire_len: usize) -> Datagram<'_> {
    let Some(link) = link else { return Datagram::Other };
    let frame = Frame::parse_captured(link, data, wire_len);
    if frame.protocol() != Some(protocol::UDP) {
        return Datagram::Other;
    }
    if frame.fragment().is_some() {
        return Datagram::Fragment;
    }
    let (Some(udp), Some(segment), Some((sender, _))) =
        (frame.udp(), frame.segment(), frame.ends())
    else {
        return Datagram::Other;
    };
    // The length of UDP ends before padding that IP counts.
    let end = usize::from(udp.len()).clamp(8, segment.len().max(8));
    let Some(payload) = segment.get(8..end) else { return Datagram::Other };
    let usual = PORTS.contains(&udp.destination_port());
    let is_export = match ExportProtocol::recognise(payload) {
        Some(_) => true,
        None => usual && ExportProtocol::of_version(payload).is_some(),
    };
    match is_export {
        true => Datagram::Export(SocketAddr::new(sender, udp.source_port()), payload),
        false => Datagram::Other,
    }
}
