//! The fields of a flow, and their positions in its words.

use std::fmt;
use std::str::FromStr;

/// Defines [`Field`]: each line is a field's documentation, its variant, its name, its width in bits, the word it lies
/// in and the number of its lowest bit there. A field of 128 bits lies in two words, the high half first. This table is
/// the only place with the layout of fields.
macro_rules! fields {
    ($( $(#[$doc:meta])* $field:ident $name:literal $bits:literal bits, word $word:literal, bit $shift:literal; )*) => {
        /// A field of a [`Flow`](crate::Flow).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field { $( $(#[$doc])* $field, )* }

        impl Field {
            /// All fields, in the order of declaration.
            pub const ALL: [Self; [$( Self::$field ),*].len()] = [$( Self::$field ),*];

            /// The field's name in rules and reports.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$field => $name, )* }
            }

            /// The width in bits.
            #[inline(always)]
            pub const fn bits(self) -> u32 {
                // A table: the compiler makes of a match jumps that are hard to foresee.
                const BITS: [u32; Field::ALL.len()] = [$( $bits ),*];
                BITS[self as usize]
            }

            /// The first word and the lowest bit of the field in it.
            #[inline(always)]
            pub(crate) const fn place(self) -> (usize, u32) {
                const PLACES: [(usize, u32); Field::ALL.len()] = [$( ($word, $shift) ),*];
                PLACES[self as usize]
            }
        }
    };
}

fields! {
    /// The port on which the packet arrived.
    InPort "in_port" 32 bits, word 0, bit 0;
    /// A number that another program gave the packet.
    Mark "mark" 32 bits, word 0, bit 32;
    /// A register of the pipeline: the number of a VRF or a zone.
    Metadata "metadata" 64 bits, word 1, bit 0;
    /// The identifier of the tunnel that the packet left: VNI, GRE key.
    TunnelId "tunnel_id" 64 bits, word 2, bit 0;
    /// Ethernet destination.
    EthDst "eth_dst" 48 bits, word 3, bit 0;
    /// Ethernet source.
    EthSrc "eth_src" 48 bits, word 4, bit 0;
    /// VLAN identifier of the outer tag.
    Vlan "vlan" 12 bits, word 5, bit 0;
    /// Drop-eligible bit of the outer tag.
    VlanDei "vlan_dei" 1 bits, word 5, bit 12;
    /// Priority of the outer tag.
    VlanPcp "vlan_pcp" 3 bits, word 5, bit 13;
    /// EtherType of the outer tag, 0 without a tag.
    VlanTpid "vlan_tpid" 16 bits, word 5, bit 16;
    /// VLAN identifier of the second tag.
    InnerVlan "inner_vlan" 12 bits, word 5, bit 32;
    /// Drop-eligible bit of the second tag.
    InnerVlanDei "inner_vlan_dei" 1 bits, word 5, bit 44;
    /// Priority of the second tag.
    InnerVlanPcp "inner_vlan_pcp" 3 bits, word 5, bit 45;
    /// EtherType of the second tag, 0 without a second tag.
    InnerVlanTpid "inner_vlan_tpid" 16 bits, word 5, bit 48;
    /// IPv4 source address.
    Ipv4Src "ip_src" 32 bits, word 6, bit 32;
    /// IPv4 destination address.
    Ipv4Dst "ip_dst" 32 bits, word 6, bit 0;
    /// Source port of TCP, UDP, DCCP, SCTP, UDP-Lite. Present where [`Field::Transport`] is 1.
    SrcPort "src_port" 16 bits, word 7, bit 16;
    /// Destination port of the same protocols.
    DstPort "dst_port" 16 bits, word 7, bit 0;
    /// The protocol over IP, behind all extension headers.
    Protocol "protocol" 8 bits, word 7, bit 32;
    /// What is known of the transport header: 0 nothing (a later fragment, a cut packet, a protocol
    /// without ports), 1 the ports, 2 type and code of ICMP.
    Transport "transport" 2 bits, word 7, bit 40;
    /// 0 for a whole packet, 1 for the first fragment, 2 for a later one.
    Fragment "fragment" 2 bits, word 7, bit 42;
    /// 4 or 6 where the packet has a well-formed IP header, 0 elsewhere.
    IpVersion "ip_version" 4 bits, word 7, bit 44;
    /// The EtherType behind all tags. Frames of links without EtherTypes have 0.
    EthType "eth_type" 16 bits, word 7, bit 48;
    /// Differentiated services code point.
    Dscp "dscp" 6 bits, word 8, bit 2;
    /// Explicit congestion notification.
    Ecn "ecn" 2 bits, word 8, bit 0;
    /// Flags of TCP: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN (the lowest) and four reserved ones above.
    TcpFlags "tcp_flags" 12 bits, word 8, bit 8;
    /// Type of ICMP or ICMPv6. Present where [`Field::Transport`] is 2.
    IcmpType "icmp_type" 8 bits, word 8, bit 32;
    /// Code of ICMP or ICMPv6.
    IcmpCode "icmp_code" 8 bits, word 8, bit 40;
    /// IPv6 source address.
    Ipv6Src "ipv6_src" 128 bits, word 9, bit 0;
    /// IPv6 destination address.
    Ipv6Dst "ipv6_dst" 128 bits, word 11, bit 0;
}

/// The words of a [`Flow`](crate::Flow).
pub const WORDS: usize = {
    let (mut words, mut i) = (0, 0);
    while i < Field::ALL.len() {
        let field = Field::ALL[i];
        let end = field.place().0 + field.bits().div_ceil(64) as usize;
        if end > words {
            words = end;
        }
        i += 1;
    }
    words
};

/// The table is right: within 16 words, no field leaves its word, and no two overlap.
const _: () = {
    assert!(WORDS <= 16, "the bitmap of a miniflow has 16 bits");
    let mut used = [0u64; WORDS];
    let mut i = 0;
    while i < Field::ALL.len() {
        let (field, (word, shift)) = (Field::ALL[i], Field::ALL[i].place());
        if field.bits() == 128 {
            assert!(shift == 0 && used[word] == 0 && used[word + 1] == 0, "two words of its own");
            (used[word], used[word + 1]) = (u64::MAX, u64::MAX);
        } else {
            assert!(field.bits() > 0 && field.bits() + shift <= 64, "a field within its word");
            let mask = field.ones() << shift;
            assert!(used[word] & mask == 0, "fields do not overlap");
            used[word] |= mask;
        }
        i += 1;
    }
};

impl Field {
    /// A one in each of the field's bits, of those that fit a word.
    #[inline(always)]
    pub(crate) const fn ones(self) -> u64 {
        if self.bits() >= 64 { u64::MAX } else { (1 << self.bits()) - 1 }
    }

    /// The field's value in the words of a flow or mask.
    #[inline]
    pub(crate) const fn read(self, words: &[u64; WORDS]) -> u128 {
        let (word, shift) = self.place();
        if self.bits() == 128 {
            return (words[word] as u128) << 64 | words[word + 1] as u128;
        }
        (words[word] >> shift & self.ones()) as u128
    }

    /// Writes the field's value; bits above the field's width are ignored.
    #[inline]
    pub(crate) const fn write(self, words: &mut [u64; WORDS], value: u128) {
        let (word, shift) = self.place();
        if self.bits() == 128 {
            words[word] = (value >> 64) as u64;
            words[word + 1] = value as u64;
            return;
        }
        words[word] = words[word] & !(self.ones() << shift) | (value as u64 & self.ones()) << shift;
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|field| field.name() == word).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown field {word:?}: use one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_written_and_leave_the_others() {
        for field in Field::ALL {
            for background in [0, u64::MAX] {
                let mut words = [background; WORDS];
                let top = 1 << (field.bits() - 1);
                for value in [0, 1, top, top | 1] {
                    field.write(&mut words, value);
                    assert_eq!(field.read(&words), value, "{field}");
                    for other in Field::ALL.into_iter().filter(|other| *other != field) {
                        let all = if other.bits() == 128 { u128::MAX } else { other.ones().into() };
                        let expected = if background == 0 { 0 } else { all };
                        assert_eq!(other.read(&words), expected, "{other} after {field}");
                    }
                }
            }
            assert_eq!(field.name().parse(), Ok(field));
        }
        assert!("port".parse::<Field>().unwrap_err().contains("dst_port"));
    }
}
