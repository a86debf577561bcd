//! Extracts the words of a flow from a frame, without a [`FlowKey`](fibula_packet::FlowKey) in between.

use fibula_packet::{Frame, Length, Tag, Tcp, icmp, ports, protocol};

use crate::Field;

/// Fields of a packet that its bytes do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// [`Field::InPort`].
    pub in_port: u32,
    /// [`Field::Mark`].
    pub mark: u32,
    /// [`Field::Metadata`].
    pub metadata: u64,
    /// [`Field::TunnelId`].
    pub tunnel_id: u64,
}

/// The word that a field lies in.
#[inline(always)]
const fn word(field: Field) -> usize {
    field.place().0
}

/// The bits of a field's value in its word.
#[inline(always)]
fn bits(field: Field, value: impl Into<u64>) -> u64 {
    (value.into() & field.ones()) << field.place().1
}

/// An Ethernet address as a number: its first byte is the highest.
#[inline(always)]
fn mac([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[inline(always)]
fn tag(tag: Tag) -> u64 {
    u64::from(tag.tpid) << 16 | u64::from(tag.tci)
}

/// Hands out the words of a frame in ascending order. Packets with the same headers have the same words,
/// though some may be 0; a word that is not handed out is 0. [`Batch::push_frame`](crate::Batch::push_frame) stores
/// them in columns.
#[inline(always)]
pub fn words(frame: &Frame<'_>, context: &Context, mut put: impl FnMut(usize, u64)) {
    put(
        word(Field::InPort),
        bits(Field::InPort, context.in_port) | bits(Field::Mark, context.mark),
    );
    if context.metadata != 0 {
        put(word(Field::Metadata), context.metadata);
    }
    if context.tunnel_id != 0 {
        put(word(Field::TunnelId), context.tunnel_id);
    }
    if let Some((destination, source)) = frame.macs() {
        put(word(Field::EthDst), mac(destination));
        put(word(Field::EthSrc), mac(source));
    }
    let mut tags = frame.tags();
    if let Some(outer) = tags.next() {
        put(word(Field::Vlan), tag(outer) | tags.next().map_or(0, |inner| tag(inner) << 32));
    }
    let link = bits(Field::EthType, frame.ether_type().unwrap_or(0));
    // As `Frame::flow_key`: a header that is malformed, or longer than its packet, is none.
    if let Some(ip) = frame.ipv4() {
        let is_sound = ip.version() == 4
            && ip.header_len() >= 20
            && (usize::from(ip.total_len()) >= ip.header_len()
                || frame.length() == Some(Length::Offloaded));
        if is_sound {
            let ends = bits(Field::Ipv4Src, ip.source().to_bits());
            put(word(Field::Ipv4Src), ends | bits(Field::Ipv4Dst, ip.destination().to_bits()));
            let (ports, rest) = transport(frame, 4, ip.traffic_class());
            put(word(Field::EthType), link | ports);
            put(word(Field::Dscp), rest);
            return;
        }
    } else if let Some(ip) = frame.ipv6()
        && ip.version() == 6
        && frame.length() != Some(Length::WithinHeaders)
    {
        let (ports, rest) = transport(frame, 6, ip.traffic_class());
        put(word(Field::EthType), link | ports);
        put(word(Field::Dscp), rest);
        for (field, address) in [(Field::Ipv6Src, ip.source()), (Field::Ipv6Dst, ip.destination())]
        {
            let address = address.to_bits();
            put(word(field), (address >> 64) as u64);
            put(word(field) + 1, address as u64);
        }
        return;
    }
    put(word(Field::EthType), link);
}

/// The word of the ports and the next word, for a sound IP packet.
#[inline(always)]
fn transport(frame: &Frame<'_>, version: u64, class: u8) -> (u64, u64) {
    let fragment = match frame.fragment() {
        Some(fragment) if fragment.offset > 0 => 2u64,
        Some(fragment) if fragment.more => 1,
        _ => 0,
    };
    let mut ip = bits(Field::IpVersion, version) | bits(Field::Fragment, fragment);
    let mut rest = bits(Field::Dscp, class >> 2) | bits(Field::Ecn, class);
    let Some(protocol) = frame.protocol() else { return (ip, rest) };
    ip |= bits(Field::Protocol, protocol);
    let segment = frame.segment().unwrap_or_default();
    if let Some((source, destination)) = ports(protocol, segment) {
        ip |= bits(Field::Transport, 1u64)
            | bits(Field::SrcPort, source)
            | bits(Field::DstPort, destination);
        if protocol == protocol::TCP {
            rest |= bits(Field::TcpFlags, Tcp::new(segment).map_or(0, |tcp| tcp.flags()));
        }
    } else if let Some((kind, code)) = icmp(protocol, segment) {
        ip |= bits(Field::Transport, 2u64);
        rest |= bits(Field::IcmpType, kind) | bits(Field::IcmpCode, code);
    }
    (ip, rest)
}
