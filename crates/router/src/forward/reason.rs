//! Counts packets by the reason of their treatment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The reason of a packet's treatment. Each received packet counts under one reason with [`Reason::is_received`].
/// Packets that the router makes itself, and errors that it does not send, count under the other reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// An IPv4 packet was forwarded in one piece.
    ForwardedV4,
    /// An IPv6 packet was forwarded.
    ForwardedV6,
    /// An IPv4 packet was forwarded as several fragments.
    Fragmented,
    /// It is for this machine.
    Host,
    /// The MAC address of its next hop is unknown. It counts again when it is forwarded later.
    Waiting,
    /// The egress table has no port of the number that it came in by.
    UnknownPort,
    /// The frame ends within its link header or a VLAN tag.
    ShortFrame,
    /// The frame is addressed to another machine on the link.
    OtherMac,
    /// A VLAN tag, at a port without VLAN.
    Tagged,
    /// The frame is too short for the IP header.
    TooShort,
    /// The checksum of the IPv4 header is wrong.
    Checksum,
    /// The version field is not that of the EtherType.
    Version,
    /// IHL is below 5.
    HeaderLength,
    /// The packet claims to end within its header.
    LengthWithinHeader,
    /// A jumbo payload option with a length below 65,536.
    SmallJumbo,
    /// The packet claims more bytes than the frame has.
    LengthBeyondFrame,
    /// TTL or hop limit was 0 or 1.
    Expired,
    /// A unicast packet in a frame that was sent to all, or to a group.
    LinkBroadcast,
    /// The frame's source MAC address is that of a group.
    LinkSource,
    /// A source address that is not forwarded, or an IPv4 address of the router itself.
    Source,
    /// A destination address that is not forwarded to.
    Destination,
    /// The options of the IPv4 header are malformed.
    Options,
    /// A source routing option of IPv4.
    SourceRoute,
    /// No route covers the destination.
    NoRoute,
    /// The route is of the type unreachable, or has no usable member.
    Unreachable,
    /// The route is of the type blackhole.
    Blackhole,
    /// The route is of the type prohibit.
    Prohibited,
    /// Larger than the egress port's MTU, and not to be fragmented.
    TooBig,
    /// The neighbour did not answer: see [`Forwarder::fail`](super::Forwarder::fail).
    NoNeighbour,
    /// The route leads to a port that the egress table does not have.
    NoEgress,
    /// The pool had no slots for the fragments, or the slot no room for the link header.
    NoSlot,
    /// A [`Policy`](super::Policy) dropped it, or named a table that does not exist.
    Policy,
    /// A fragment was made and sent.
    Fragment,
    /// An ICMP or ICMPv6 error was made and sent.
    IcmpSent,
    /// An error was not sent because too many were.
    IcmpLimited,
    /// An error was not sent because the router has no address of that family to send it from.
    IcmpNoAddress,
    /// An error was not sent because the pool had no slot.
    IcmpNoSlot,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 37] = [
        Self::ForwardedV4,
        Self::ForwardedV6,
        Self::Fragmented,
        Self::Host,
        Self::Waiting,
        Self::UnknownPort,
        Self::ShortFrame,
        Self::OtherMac,
        Self::Tagged,
        Self::TooShort,
        Self::Checksum,
        Self::Version,
        Self::HeaderLength,
        Self::LengthWithinHeader,
        Self::SmallJumbo,
        Self::LengthBeyondFrame,
        Self::Expired,
        Self::LinkBroadcast,
        Self::LinkSource,
        Self::Source,
        Self::Destination,
        Self::Options,
        Self::SourceRoute,
        Self::NoRoute,
        Self::Unreachable,
        Self::Blackhole,
        Self::Prohibited,
        Self::TooBig,
        Self::NoNeighbour,
        Self::NoEgress,
        Self::NoSlot,
        Self::Policy,
        Self::Fragment,
        Self::IcmpSent,
        Self::IcmpLimited,
        Self::IcmpNoAddress,
        Self::IcmpNoSlot,
    ];

    /// The name in metrics and records. It never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForwardedV4 => "forwarded_v4",
            Self::ForwardedV6 => "forwarded_v6",
            Self::Fragmented => "fragmented",
            Self::Host => "host",
            Self::Waiting => "waiting",
            Self::UnknownPort => "unknown_port",
            Self::ShortFrame => "short_frame",
            Self::OtherMac => "other_mac",
            Self::Tagged => "tagged",
            Self::TooShort => "too_short",
            Self::Checksum => "checksum",
            Self::Version => "version",
            Self::HeaderLength => "header_length",
            Self::LengthWithinHeader => "length_within_header",
            Self::SmallJumbo => "small_jumbo",
            Self::LengthBeyondFrame => "length_beyond_frame",
            Self::Expired => "expired",
            Self::LinkBroadcast => "link_broadcast",
            Self::LinkSource => "link_source",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Options => "options",
            Self::SourceRoute => "source_route",
            Self::NoRoute => "no_route",
            Self::Unreachable => "unreachable",
            Self::Blackhole => "blackhole",
            Self::Prohibited => "prohibited",
            Self::TooBig => "too_big",
            Self::NoNeighbour => "no_neighbour",
            Self::NoEgress => "no_egress",
            Self::NoSlot => "no_slot",
            Self::Policy => "policy",
            Self::Fragment => "fragment",
            Self::IcmpSent => "icmp_sent",
            Self::IcmpLimited => "icmp_limited",
            Self::IcmpNoAddress => "icmp_no_address",
            Self::IcmpNoSlot => "icmp_no_slot",
        }
    }

    /// Whether received packets count under this reason. The sum over these reasons is the number of packets that the
    /// forwarder got.
    pub const fn is_received(self) -> bool {
        (self as u8) < Self::Fragment as u8
    }

    /// Whether a received packet with this reason was dropped.
    pub const fn is_drop(self) -> bool {
        self.is_received() && self as u8 > Self::Waiting as u8
    }
}

/// Packets and bytes by [`Reason`]. One [`Forwarder`](super::Forwarder) writes them once for each burst, and others
/// read them at any time. Bytes are the lengths of frames: received packets as they arrived, others as they are sent.
#[derive(Debug)]
pub struct ReasonCounters {
    both: [[AtomicU64; 2]; Reason::ALL.len()],
}

impl Default for ReasonCounters {
    fn default() -> Self {
        Self { both: std::array::from_fn(|_| Default::default()) }
    }
}

impl ReasonCounters {
    /// Packets so far.
    pub fn packets(&self, reason: Reason) -> u64 {
        self.both[reason as usize][0].load(Relaxed)
    }

    /// Bytes so far.
    pub fn bytes(&self, reason: Reason) -> u64 {
        self.both[reason as usize][1].load(Relaxed)
    }

    /// Every reason with packets and bytes, in the order of [`Reason::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64, u64)> {
        Reason::ALL.into_iter().map(|reason| (reason, self.packets(reason), self.bytes(reason)))
    }
}

/// The counts of a forwarder during a burst.
#[derive(Debug)]
pub(super) struct Tally {
    both: [[u64; 2]; Reason::ALL.len()],
    /// A bit for each reason that has counted anything.
    touched: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { both: [[0; 2]; Reason::ALL.len()], touched: 0 }
    }
}

const _: () = assert!(Reason::ALL.len() <= u64::BITS as usize);

impl Tally {
    /// Adds one packet.
    #[inline]
    pub(super) fn one(&mut self, reason: Reason, bytes: usize) {
        self.add(reason, 1, bytes as u64);
    }

    #[inline]
    pub(super) fn add(&mut self, reason: Reason, packets: u64, bytes: u64) {
        let both = &mut self.both[reason as usize];
        both[0] += packets;
        both[1] += bytes;
        self.touched |= 1 << reason as u8;
    }

    /// Adds everything to the counters, which only this thread writes, and starts over.
    pub(super) fn flush(&mut self, counters: &ReasonCounters) {
        while self.touched != 0 {
            let at = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            for (counter, more) in counters.both[at].iter().zip(&mut self.both[at]) {
                // One writer: a plain addition, without the lock that `fetch_add` takes on the bus.
                counter.store(counter.load(Relaxed).wrapping_add(*more), Relaxed);
                *more = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_kinds() {
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            assert!(reason.name().bytes().all(|b| b.is_ascii_lowercase() || b"_46".contains(&b)));
            assert_eq!(Reason::ALL.iter().filter(|r| r.name() == reason.name()).count(), 1);
        }
        let drops = Reason::ALL.into_iter().filter(|reason| reason.is_drop()).count();
        let received = Reason::ALL.into_iter().filter(|reason| reason.is_received()).count();
        assert_eq!((received, received - drops), (32, 5));
    }

    #[test]
    fn a_tally_is_added_once() {
        let (counters, mut tally) = (ReasonCounters::default(), Tally::default());
        tally.one(Reason::Host, 60);
        tally.add(Reason::IcmpNoSlot, 2, 20);
        for _ in 0..2 {
            tally.flush(&counters);
            let read = |reason| (counters.packets(reason), counters.bytes(reason));
            assert_eq!((read(Reason::Host), read(Reason::IcmpNoSlot)), ((1, 60), (2, 20)));
            assert_eq!(counters.iter().map(|(_, packets, _)| packets).sum::<u64>(), 3);
        }
    }
}
