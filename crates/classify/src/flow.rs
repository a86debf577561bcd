//! The fields of a packet as words, and masks over them.

use std::fmt;
use std::net::IpAddr;
use std::ops::{BitAnd, BitOr, BitOrAssign};

use fibula_packet::{FlowKey, Fragmentation, Frame};

use crate::{Context, Field, WORDS, extract};

/// The fields of a packet, in [`WORDS`] words of 64 bits.
///
/// A field that the packet does not have is 0. If 0 is also a valid value, another field distinguishes the two, and a
/// rule or megaflow that looks at the first field must also look at the second. Addresses, [`Field::Protocol`],
/// [`Field::Dscp`], [`Field::Ecn`] and [`Field::Fragment`] need [`Field::IpVersion`]. Ports need [`Field::Transport`]
/// = 1 (and mostly the protocol). Type and code of ICMP need [`Field::Transport`] = 2. [`Field::TcpFlags`] needs
/// [`Field::Protocol`] = 6 and [`Field::Transport`] = 1. The fields of a VLAN need its TPID. Open vSwitch calls these
/// fields prerequisites. They are in the same word as the ports, so they need no further word.
///
/// ```
/// use fibula_classify::{Field, Flow, Mask, Match};
///
/// let mut flow = Flow::default();
/// flow.set(Field::IpVersion, 4);
/// flow.set(Field::Ipv4Src, 0xc000_0207); // 192.0.2.7
/// let slash24 = Mask::exact(Field::IpVersion) | Mask::prefix(Field::Ipv4Src, 24);
/// let megaflow = Match::new(flow, slash24);
/// flow.set(Field::Ipv4Src, 0xc000_0299);
/// assert!(megaflow.matches(&flow));
/// flow.set(Field::Ipv4Src, 0xc000_0307);
/// assert!(!megaflow.matches(&flow));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow(pub(crate) [u64; WORDS]);

/// A selection of the bits of a [`Flow`], in the same words.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mask(pub(crate) [u64; WORDS]);

/// All flows that agree with one flow in the bits of a mask: the flows that a rule or a megaflow matches.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    flow: Flow,
    mask: Mask,
}

impl Flow {
    /// The flow with these words.
    pub const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// The words.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// The value of a field.
    #[inline]
    pub const fn get(&self, field: Field) -> u128 {
        field.read(&self.0)
    }

    /// Sets a field. Bits of the value above the field's width are ignored.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u128) {
        field.write(&mut self.0, value);
    }
}

impl From<&Frame<'_>> for Flow {
    /// The fields of the frame's bytes.
    fn from(frame: &Frame<'_>) -> Self {
        let mut flow = Self::default();
        extract::words(frame, &Context::default(), |word, value| flow.0[word] = value);
        flow
    }
}

/// An Ethernet address as a number: its first byte is the highest.
fn mac(bytes: [u8; 6]) -> u128 {
    bytes.into_iter().fold(0, |number, byte| number << 8 | u128::from(byte))
}

impl From<&FlowKey> for Flow {
    fn from(key: &FlowKey) -> Self {
        let mut flow = Self::default();
        if let Some((destination, source)) = key.macs {
            flow.set(Field::EthDst, mac(destination));
            flow.set(Field::EthSrc, mac(source));
        }
        for (tag, word) in key.tags.into_iter().flatten().zip([0, 32]) {
            let tag = u64::from(tag.tpid) << 16 | u64::from(tag.tci);
            flow.0[Field::Vlan.place().0] |= tag << word;
        }
        flow.set(Field::EthType, key.ether_type.unwrap_or(0).into());
        match key.ends {
            Some((IpAddr::V4(source), IpAddr::V4(destination))) => {
                flow.set(Field::IpVersion, 4);
                flow.set(Field::Ipv4Src, source.to_bits().into());
                flow.set(Field::Ipv4Dst, destination.to_bits().into());
            }
            Some((IpAddr::V6(source), IpAddr::V6(destination))) => {
                flow.set(Field::IpVersion, 6);
                flow.set(Field::Ipv6Src, source.to_bits());
                flow.set(Field::Ipv6Dst, destination.to_bits());
            }
            _ => {}
        }
        flow.set(Field::Protocol, key.protocol.unwrap_or(0).into());
        flow.set(Field::Dscp, key.dscp().unwrap_or(0).into());
        flow.set(Field::Ecn, key.ecn().unwrap_or(0).into());
        flow.set(
            Field::Fragment,
            match key.fragment {
                Fragmentation::Whole => 0,
                Fragmentation::First => 1,
                Fragmentation::Later => 2,
            },
        );
        if let Some((source, destination)) = key.ports {
            flow.set(Field::Transport, 1);
            flow.set(Field::SrcPort, source.into());
            flow.set(Field::DstPort, destination.into());
        }
        flow.set(Field::TcpFlags, key.tcp_flags.unwrap_or(0).into());
        if let Some((kind, code)) = key.icmp {
            flow.set(Field::Transport, 2);
            flow.set(Field::IcmpType, kind.into());
            flow.set(Field::IcmpCode, code.into());
        }
        flow
    }
}

impl BitAnd<Mask> for Flow {
    type Output = Self;

    #[inline]
    fn bitand(mut self, mask: Mask) -> Self {
        for (word, mask) in self.0.iter_mut().zip(mask.0) {
            *word &= mask;
        }
        self
    }
}

impl Mask {
    /// The mask without bits: every flow matches.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The mask with these words.
    pub const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// All bits of a field.
    pub const fn exact(field: Field) -> Self {
        Self::bits(field, u128::MAX)
    }

    /// The first `len` bits of a field, or all of them if it has fewer.
    pub const fn prefix(field: Field, len: u32) -> Self {
        let rest = field.bits().saturating_sub(len);
        Self::bits(field, if rest > 127 { 0 } else { u128::MAX << rest })
    }

    /// Adds the first `len` bits of a field, or all of them if it has fewer.
    #[inline]
    pub(crate) fn add_prefix(&mut self, field: Field, len: u32) {
        let (word, shift) = field.place();
        let rest = field.bits().saturating_sub(len);
        if field.bits() == 128 {
            let bits = if rest > 127 { 0 } else { u128::MAX << rest };
            self.0[word] |= (bits >> 64) as u64;
            self.0[word + 1] |= bits as u64;
        } else if rest < 64 {
            self.0[word] |= (field.ones() >> rest << rest) << shift;
        }
    }

    /// The bits of a field that are set in the number.
    pub const fn bits(field: Field, bits: u128) -> Self {
        let mut mask = Self::EMPTY;
        field.write(&mut mask.0, bits);
        mask
    }

    /// The words.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// The bits of a field in the mask.
    pub const fn get(&self, field: Field) -> u128 {
        field.read(&self.0)
    }

    /// Whether all bits of the other mask are also in this one.
    pub fn contains(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(word, other)| other & !word == 0)
    }

    /// Number of set bits.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

impl BitOr for Mask {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }
}

impl Match {
    /// All flows that agree with this flow in the bits of the mask. The flow's other bits are cleared.
    pub fn new(flow: Flow, mask: Mask) -> Self {
        Self { flow: flow & mask, mask }
    }

    /// The flow, with bits outside the mask cleared.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The mask.
    pub const fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Whether the flow matches.
    #[inline]
    pub fn matches(&self, flow: &Flow) -> bool {
        let words = self.flow.0.iter().zip(self.mask.0).zip(flow.0);
        words.fold(0, |differ, ((word, mask), other)| differ | word ^ other & mask) == 0
    }
}

/// Fields that are not 0, by name.
fn list(f: &mut fmt::Formatter<'_>, name: &str, words: &[u64; WORDS]) -> fmt::Result {
    let mut list = f.debug_struct(name);
    for field in Field::ALL {
        let value = field.read(words);
        if value != 0 {
            list.field(field.name(), &format_args!("{value:#x}"));
        }
    }
    list.finish()
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, "Flow", &self.0)
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, "Mask", &self.0)
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entry(&self.flow).entry(&self.mask).finish()
    }
}
