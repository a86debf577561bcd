//! The fields that are understood, by their numbers in templates (IANA's registry of IPFIX elements). NetFlow v9 has
//! the same numbers up to 127, and exporters use the later ones in it, too.

use crate::record::{Slot, Wide};

/// The enterprise number of the reverse direction of a biflow (RFC 5103).
pub(crate) const REVERSE: u32 = 29305;

/// How times are given in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    #[default]
    None,
    /// Milliseconds since the exporter's start.
    Uptime,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// Seconds since 1900 in the upper 32 bits, their fraction in the lower ones.
    Ntp,
    /// Microseconds before the export.
    MicrosBefore,
}

/// What a field is for. Of several fields for one slot, a record uses that with the lowest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// An integer, or an IPv4 address.
    Integer { slot: u8, rank: u8 },
    /// An IPv6 address.
    Wide { slot: Wide, rank: u8 },
    /// A time of the first packet, of the last packet, or of both.
    Time { start: bool, end: bool, clock: Clock, rank: u8 },
    /// A duration, in so many microseconds.
    Duration { unit: u16 },
    /// The beginning of a packet, from its Ethernet header on.
    Frame,
    /// The beginning of a packet, from its IP header on.
    Packet,
    /// Anything else.
    Other,
}

const fn int(slot: Slot) -> Element {
    second(slot, 0)
}

/// A field that is used where a better one is missing.
const fn second(slot: Slot, rank: u8) -> Element {
    Element::Integer { slot: slot as u8, rank }
}

const fn wide(slot: Wide) -> Element {
    Element::Wide { slot, rank: 0 }
}

const fn start(clock: Clock, rank: u8) -> Element {
    Element::Time { start: true, end: false, clock, rank }
}

const fn end(clock: Clock, rank: u8) -> Element {
    Element::Time { start: false, end: true, clock, rank }
}

const fn observed(clock: Clock, rank: u8) -> Element {
    Element::Time { start: true, end: true, clock, rank }
}

/// What the field of a number is for.
pub(crate) fn element(enterprise: u32, number: u16) -> Element {
    match enterprise {
        0 => standard(number),
        REVERSE => reverse(number),
        _ => Element::Other,
    }
}

fn reverse(number: u16) -> Element {
    match number {
        1 => int(Slot::ReverseBytes),
        2 => int(Slot::ReversePackets),
        6 => int(Slot::ReverseTcpFlags),
        85 => second(Slot::ReverseBytes, 1),
        86 => second(Slot::ReversePackets, 1),
        _ => Element::Other,
    }
}

fn standard(number: u16) -> Element {
    match number {
        1 => int(Slot::Bytes),
        2 => int(Slot::Packets),
        4 => int(Slot::Protocol),
        5 => int(Slot::Tos),
        6 => int(Slot::TcpFlags),
        7 => int(Slot::SourcePort),
        8 => int(Slot::Source4),
        9 => int(Slot::SourceMask4),
        10 => int(Slot::Input),
        11 => int(Slot::DestinationPort),
        12 => int(Slot::Destination4),
        13 => int(Slot::DestinationMask4),
        14 => int(Slot::Output),
        15 => int(Slot::NextHop4),
        16 => int(Slot::SourceAs),
        17 => int(Slot::DestinationAs),
        18 => int(Slot::BgpNextHop4),
        21 => end(Clock::Uptime, 4),
        22 => start(Clock::Uptime, 4),
        // Counters of sent packets, where the exporter counts only those.
        23 => second(Slot::Bytes, 3),
        24 => second(Slot::Packets, 3),
        27 => wide(Wide::Source6),
        28 => wide(Wide::Destination6),
        29 => int(Slot::SourceMask6),
        30 => int(Slot::DestinationMask6),
        32 => int(Slot::IcmpTypeCode),
        34 => second(Slot::Rate, 1),
        44 => second(Slot::Source4, 1),
        45 => second(Slot::Destination4, 1),
        48 => int(Slot::Sampler),
        50 => int(Slot::Rate),
        56 => int(Slot::SourceMac),
        57 => second(Slot::DestinationMac, 1),
        58 => int(Slot::Vlan),
        59 => int(Slot::PostVlan),
        60 => int(Slot::IpVersion),
        61 => int(Slot::Direction),
        62 => wide(Wide::NextHop6),
        63 => wide(Wide::BgpNextHop6),
        70..80 => Element::Integer { slot: Slot::Label as u8 + (number - 70) as u8, rank: 0 },
        80 => int(Slot::DestinationMac),
        81 => second(Slot::SourceMac, 1),
        85 => second(Slot::Bytes, 1),
        86 => second(Slot::Packets, 1),
        89 => int(Slot::ForwardingStatus),
        130 => int(Slot::Exporter4),
        131 => wide(Wide::Exporter6),
        136 => int(Slot::EndReason),
        139 => second(Slot::IcmpTypeCode, 1),
        150 => start(Clock::Seconds, 3),
        151 => end(Clock::Seconds, 3),
        152 => start(Clock::Millis, 0),
        153 => end(Clock::Millis, 0),
        154 | 156 => start(Clock::Ntp, 1),
        155 | 157 => end(Clock::Ntp, 1),
        158 => start(Clock::MicrosBefore, 2),
        159 => end(Clock::MicrosBefore, 2),
        160 => int(Slot::SystemInit),
        161 => Element::Duration { unit: 1000 },
        162 => Element::Duration { unit: 1 },
        169 => Element::Wide { slot: Wide::Source6, rank: 1 },
        170 => Element::Wide { slot: Wide::Destination6, rank: 1 },
        176 => int(Slot::IcmpType),
        177 => int(Slot::IcmpCode),
        178 => second(Slot::IcmpType, 1),
        179 => second(Slot::IcmpCode, 1),
        180 | 182 => second(Slot::SourcePort, 1),
        181 | 183 => second(Slot::DestinationPort, 1),
        // The packet's length, where a record is a sampled packet.
        224 => second(Slot::Bytes, 8),
        225 => int(Slot::NatSource4),
        226 => int(Slot::NatDestination4),
        227 => int(Slot::NatSourcePort),
        228 => int(Slot::NatDestinationPort),
        // Of firewalls: the initiator's bytes, and the responder's.
        231 => second(Slot::Bytes, 2),
        232 => second(Slot::ReverseBytes, 2),
        234 => int(Slot::InputVrf),
        235 => int(Slot::OutputVrf),
        243 => second(Slot::Vlan, 1),
        252 => second(Slot::Input, 1),
        253 => second(Slot::Output, 1),
        254 => second(Slot::PostVlan, 1),
        281 => wide(Wide::NatSource6),
        282 => wide(Wide::NatDestination6),
        298 => second(Slot::Packets, 2),
        299 => second(Slot::ReversePackets, 2),
        302 => second(Slot::Sampler, 1),
        305 => int(Slot::SampledRun),
        306 => int(Slot::SampledGap),
        309 => int(Slot::SampleSize),
        310 => int(Slot::SamplePopulation),
        312 => second(Slot::Bytes, 9),
        313 => Element::Packet,
        315 => Element::Frame,
        322 => observed(Clock::Seconds, 8),
        323 => observed(Clock::Millis, 5),
        324 | 325 => observed(Clock::Ntp, 6),
        _ => Element::Other,
    }
}
