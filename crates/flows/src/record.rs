//! The record of a flow.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The places of integers in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Slot {
    Source4,
    Destination4,
    NextHop4,
    BgpNextHop4,
    NatSource4,
    NatDestination4,
    Exporter4,
    SourcePort,
    DestinationPort,
    NatSourcePort,
    NatDestinationPort,
    Protocol,
    TcpFlags,
    Tos,
    IpVersion,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    Bytes,
    Packets,
    ReverseBytes,
    ReversePackets,
    ReverseTcpFlags,
    Start,
    End,
    /// Times as they are in the record, in the unit of the template's [`Clock`](crate::elements::Clock).
    RawStart,
    RawEnd,
    /// In microseconds.
    Duration,
    SystemInit,
    Input,
    Output,
    SourceAs,
    DestinationAs,
    SourceMask4,
    DestinationMask4,
    SourceMask6,
    DestinationMask6,
    Direction,
    Vlan,
    PostVlan,
    InputVrf,
    OutputVrf,
    Sampler,
    /// One of so many packets is sampled.
    Rate,
    SampledRun,
    SampledGap,
    SampleSize,
    SamplePopulation,
    EndReason,
    ForwardingStatus,
    SourceMac,
    DestinationMac,
    /// The labels of MPLS follow each other, the top label first.
    Label,
    LastLabel = Slot::Label as u8 + 9,
}

/// The places of IPv6 addresses in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Wide {
    Source6,
    Destination6,
    NextHop6,
    BgpNextHop6,
    NatSource6,
    NatDestination6,
    Exporter6,
}

/// The number of places; a set of slots is a `u64`.
const INTEGERS: usize = 64;
const _: () = assert!((Slot::LastLabel as usize) < INTEGERS);

/// A flow, or a sampled packet. Methods return `None` for fields that the exporter did not send, and for values that
/// do not fit the field's type.
///
/// The numbers are those of the wire: bytes and packets are not multiplied by [`FlowRecord::sampling_rate`].
#[derive(Clone)]
pub struct FlowRecord {
    integers: [u64; INTEGERS],
    wide: [[u8; 16]; 8],
    /// Values whose bit is not set are left over from earlier records, and no method returns them.
    present: u64,
    wide_present: u8,
}

impl Default for FlowRecord {
    fn default() -> Self {
        Self { integers: [0; INTEGERS], wide: [[0; 16]; 8], present: 0, wide_present: 0 }
    }
}

/// The bit of a slot.
pub(crate) const fn bit(slot: Slot) -> u64 {
    1 << slot as u8
}

impl FlowRecord {
    /// Begins a record that will have the fields of two sets of slots.
    #[inline]
    pub(crate) fn begin(&mut self, present: u64, wide: u8) {
        self.present = present;
        self.wide_present = wide;
    }

    /// Adds the slot of an integer to those that are there.
    pub(crate) fn begin_slot(&mut self, slot: u8) {
        self.present |= 1 << (slot % 64);
    }

    /// Adds the slot of an IPv6 address to those that are there.
    pub(crate) fn begin_wide(&mut self, slot: u8) {
        self.wide_present |= 1 << (slot % 8);
    }

    /// Stores a value whose bit is set already.
    #[inline]
    pub(crate) fn store(&mut self, slot: u8, value: u64) {
        self.integers[usize::from(slot) % INTEGERS] = value;
    }

    #[inline]
    pub(crate) fn store_wide(&mut self, slot: u8, value: [u8; 16]) {
        self.wide[usize::from(slot) % 8] = value;
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: u64) {
        self.present |= bit(slot);
        self.store(slot as u8, value);
    }

    pub(crate) fn unset(&mut self, slot: Slot) {
        self.present &= !bit(slot);
    }

    pub(crate) fn set_wide(&mut self, slot: Wide, value: [u8; 16]) {
        self.wide_present |= 1 << slot as u8;
        self.store_wide(slot as u8, value);
    }

    /// Stores an address in the slot of its family.
    pub(crate) fn set_address(&mut self, (v4, v6): (Slot, Wide), address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.set(v4, u32::from(address).into()),
            IpAddr::V6(address) => self.set_wide(v6, address.octets()),
        }
    }

    #[inline]
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.present & bit(slot) != 0
    }

    /// Whether one of a set of slots is there.
    #[inline]
    pub(crate) fn has_any(&self, slots: u64) -> bool {
        self.present & slots != 0
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<u64> {
        self.has(slot).then(|| self.integers[slot as usize])
    }

    #[inline]
    fn narrow<T: TryFrom<u64>>(&self, slot: Slot) -> Option<T> {
        self.get(slot).and_then(|value| T::try_from(value).ok())
    }

    #[inline]
    fn v4(&self, slot: Slot) -> Option<IpAddr> {
        self.narrow::<u32>(slot).map(|bits| Ipv4Addr::from(bits).into())
    }

    #[inline]
    fn v6(&self, slot: Wide) -> Option<IpAddr> {
        let there = self.wide_present & (1 << slot as u8) != 0;
        there.then(|| Ipv6Addr::from(self.wide[slot as usize]).into())
    }

    /// Some templates have fields of both families; the family that is not used is zero.
    #[inline]
    fn address(&self, v4: Slot, v6: Wide) -> Option<IpAddr> {
        match (self.v4(v4), self.v6(v6)) {
            (Some(v4), Some(v6)) => {
                let four = match self.get(Slot::IpVersion) {
                    Some(4) => true,
                    Some(6) => false,
                    _ => v6.is_unspecified(),
                };
                Some(if four { v4 } else { v6 })
            }
            (v4, v6) => v4.or(v6),
        }
    }

    /// The source address, or the address of the source prefix in aggregated records.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        self.address(Slot::Source4, Wide::Source6)
    }

    /// The destination address, or the address of the destination prefix in aggregated records.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Option<IpAddr> {
        self.address(Slot::Destination4, Wide::Destination6)
    }

    /// The next hop of the exporter's route to the destination. Zero stands for none.
    #[must_use]
    pub fn next_hop(&self) -> Option<IpAddr> {
        self.address(Slot::NextHop4, Wide::NextHop6)
    }

    /// The next hop of the BGP route to the destination. Zero stands for none.
    #[must_use]
    pub fn bgp_next_hop(&self) -> Option<IpAddr> {
        self.address(Slot::BgpNextHop4, Wide::BgpNextHop6)
    }

    /// The source address after translation (NAT).
    #[must_use]
    pub fn nat_source(&self) -> Option<IpAddr> {
        self.address(Slot::NatSource4, Wide::NatSource6)
    }

    /// The destination address after translation (NAT).
    #[must_use]
    pub fn nat_destination(&self) -> Option<IpAddr> {
        self.address(Slot::NatDestination4, Wide::NatDestination6)
    }

    /// The exporter's own address as the record has it; relays keep it there.
    #[must_use]
    pub fn exporter(&self) -> Option<IpAddr> {
        self.address(Slot::Exporter4, Wide::Exporter6)
    }

    /// The length of the source prefix, 0 to 32 or 128.
    #[must_use]
    pub fn source_mask(&self) -> Option<u8> {
        self.mask(self.source(), Slot::SourceMask4, Slot::SourceMask6)
    }

    /// The length of the destination prefix, 0 to 32 or 128.
    #[must_use]
    pub fn destination_mask(&self) -> Option<u8> {
        self.mask(self.destination(), Slot::DestinationMask4, Slot::DestinationMask6)
    }

    fn mask(&self, address: Option<IpAddr>, v4: Slot, v6: Slot) -> Option<u8> {
        match address {
            Some(IpAddr::V6(_)) if self.has(v6) => self.narrow(v6),
            _ => self.narrow(v4).or_else(|| self.narrow(v6)),
        }
    }

    /// Type and code of ICMP and ICMPv6.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        match self.narrow::<u16>(Slot::IcmpTypeCode) {
            Some(both) => Some(((both >> 8) as u8, both as u8)),
            None => self.narrow(Slot::IcmpType).zip(self.narrow(Slot::IcmpCode)),
        }
    }

    /// The labels of MPLS, the top label first, without the traffic class and the bottom bit.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        (Slot::Label as u8..=Slot::LastLabel as u8)
            .take_while(|slot| self.present & (1 << slot) != 0)
            .map(|slot| (self.integers[usize::from(slot)] >> 4) as u32 & 0xf_ffff)
    }

    fn mac(&self, slot: Slot) -> Option<[u8; 6]> {
        let [0, 0, mac @ ..] = self.get(slot)?.to_be_bytes() else { return None };
        Some(mac)
    }

    /// The source MAC address.
    #[must_use]
    pub fn source_mac(&self) -> Option<[u8; 6]> {
        self.mac(Slot::SourceMac)
    }

    /// The destination MAC address.
    #[must_use]
    pub fn destination_mac(&self) -> Option<[u8; 6]> {
        self.mac(Slot::DestinationMac)
    }
}

/// Makes a method for each integer, and the list of them for `Debug`.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $slot:ident;)*) => {
        impl FlowRecord {
            $($(#[$doc])* #[inline] #[must_use] pub fn $name(&self) -> Option<$type> {
                self.narrow(Slot::$slot)
            })*

            fn debug_integers(&self, out: &mut fmt::DebugStruct<'_, '_>) {
                $(if let Some(value) = self.$name() { out.field(stringify!($name), &value); })*
            }
        }
    };
}

integers! {
    /// The source port of TCP, UDP or SCTP.
    source_port: u16 = SourcePort;
    /// The destination port. Of ICMP, NetFlow v5 has type and code here: `type * 256 + code`.
    destination_port: u16 = DestinationPort;
    /// The source port after translation.
    nat_source_port: u16 = NatSourcePort;
    /// The destination port after translation.
    nat_destination_port: u16 = NatDestinationPort;
    /// The protocol over IP.
    protocol: u8 = Protocol;
    /// The flags of all TCP segments.
    tcp_flags: u16 = TcpFlags;
    /// The type of service, or the traffic class.
    tos: u8 = Tos;
    /// Bytes; of sampled packets the length of the frame.
    bytes: u64 = Bytes;
    /// Packets; 1 for a sampled packet.
    packets: u64 = Packets;
    /// Bytes of the other direction of a biflow (RFC 5103, or a responder's bytes).
    reverse_bytes: u64 = ReverseBytes;
    /// Packets of the other direction of a biflow.
    reverse_packets: u64 = ReversePackets;
    /// TCP flags of the other direction of a biflow.
    reverse_tcp_flags: u16 = ReverseTcpFlags;
    /// The time of the first packet, in milliseconds since 1970.
    start_ms: u64 = Start;
    /// The time of the last packet, in milliseconds since 1970.
    end_ms: u64 = End;
    /// The number of the input interface.
    input: u32 = Input;
    /// The number of the output interface.
    output: u32 = Output;
    /// The AS of the source, or the peer AS there, as the exporter is configured.
    source_as: u32 = SourceAs;
    /// The AS of the destination, or the peer AS there.
    destination_as: u32 = DestinationAs;
    /// 0: the flow was measured at the input, 1: at the output.
    direction: u8 = Direction;
    /// The VLAN of received packets.
    vlan: u16 = Vlan;
    /// The VLAN of sent packets.
    post_vlan: u16 = PostVlan;
    /// The VRF of received packets.
    input_vrf: u32 = InputVrf;
    /// The VRF of sent packets.
    output_vrf: u32 = OutputVrf;
    /// The number of the sampler that took the packets.
    sampler: u64 = Sampler;
    /// One of so many packets was sampled; rounded. From the record, its datagram, or the exporter's options.
    sampling_rate: u32 = Rate;
    /// Why the flow ended (IPFIX element 136).
    end_reason: u8 = EndReason;
    /// The forwarding status (IPFIX element 89).
    forwarding_status: u32 = ForwardingStatus;
}

impl fmt::Debug for FlowRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("FlowRecord");
        for (name, address) in [
            ("source", self.source()),
            ("destination", self.destination()),
            ("next_hop", self.next_hop()),
            ("bgp_next_hop", self.bgp_next_hop()),
            ("nat_source", self.nat_source()),
            ("nat_destination", self.nat_destination()),
            ("exporter", self.exporter()),
        ] {
            if let Some(address) = address {
                out.field(name, &address);
            }
        }
        for (name, mask) in
            [("source_mask", self.source_mask()), ("destination_mask", self.destination_mask())]
        {
            if let Some(mask) = mask {
                out.field(name, &mask);
            }
        }
        self.debug_integers(&mut out);
        out.finish()
    }
}
