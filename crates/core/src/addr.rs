use core::fmt::{Debug, Display};
use core::hash::Hash;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{AnyPrefix, FamilyType, PerFamily, Prefix};

/// The two address families of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4: 32-bit addresses, held as `u32`.
    V4,
    /// IPv6: 128-bit addresses, held as `u128`.
    V6,
}

impl Family {
    /// `"v4"` or `"v6"`, as in the command line and its JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

/// An IP address as an unsigned integer in host byte order: `u32` for IPv4, `u128` for IPv6.
///
/// Bit 0 is the most significant bit, as in prefixes. Byte order is converted once, when an address enters the
/// program ([`Addr::from_be_slice`], [`Addr::from_ip`]); after that, addresses compare and subtract as integers. The
/// trait is sealed: only these two families exist.
///
/// ```
/// use fibula_core::Addr;
/// assert_eq!(u32::netmask(24), 0xffff_ff00);
/// assert_eq!(u128::netmask(0), 0);
/// assert_eq!(0x0a00_0001u32.to_string_ip(), "10.0.0.1");
/// ```
pub trait Addr:
    sealed::Sealed + Copy + Ord + Eq + Hash + Debug + Default + Send + Sync + 'static
{
    /// Number of bits: 32 or 128.
    const BITS: u8;
    /// The family of this type.
    const FAMILY: Family;
    /// The first address of the space, all bits clear.
    const MIN: Self;
    /// The last address of the space, all bits set.
    const MAX: Self;

    /// The mask of a prefix of `len` bits (0 to [`Self::BITS`]); longer lengths count as full.
    fn netmask(len: u8) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Bitwise complement.
    fn not(self) -> Self;
    /// Number of leading zero bits, 0 to [`Self::BITS`].
    fn leading_zeros(self) -> u8;
    /// Bit `i` counted from the most significant (0 to [`Self::BITS`] - 1); `false` beyond.
    fn bit(self, i: u8) -> bool;
    /// The next address, or `None` after [`Self::MAX`].
    fn successor(self) -> Option<Self>;
    /// The previous address, or `None` before [`Self::MIN`].
    fn predecessor(self) -> Option<Self>;
    /// Widens to 128 bits; IPv4 addresses become small integers (no v4-mapping).
    fn to_u128(self) -> u128;
    /// Takes the low [`Self::BITS`] bits of `value`.
    fn from_u128(value: u128) -> Self;
    /// Reads an address in network byte order; `None` unless the slice has the family's 4 or 16 bytes.
    fn from_be_slice(bytes: &[u8]) -> Option<Self>;
    /// The address as the standard library's type.
    fn to_ip(self) -> IpAddr;
    /// The address if it is of this family. A v4-mapped IPv6 address stays IPv6.
    fn from_ip(ip: IpAddr) -> Option<Self>;
    /// This family's half; callers use [`PerFamily::get`].
    #[doc(hidden)]
    fn half<K: FamilyType>(both: &PerFamily<K>) -> &K::Of<Self>;
    /// As [`Addr::half`]; callers use [`PerFamily::get_mut`].
    #[doc(hidden)]
    fn half_mut<K: FamilyType>(both: &mut PerFamily<K>) -> &mut K::Of<Self>;
    /// Callers use `AnyPrefix::from`.
    #[doc(hidden)]
    fn any(prefix: Prefix<Self>) -> AnyPrefix;

    /// Length of the common leading part of two addresses, 0 to [`Self::BITS`].
    fn common_prefix_len(self, other: Self) -> u8 {
        self.xor(other).leading_zeros()
    }

    /// The address in its usual notation.
    fn to_string_ip(self) -> alloc::string::String {
        alloc::string::ToString::to_string(&self.to_ip())
    }
}

macro_rules! addr {
    ($t:ty, $family:expr, $std:ty, $variant:ident, $field:ident) => {
        impl Addr for $t {
            const BITS: u8 = <$t>::BITS as u8;
            const FAMILY: Family = $family;
            const MIN: Self = 0;
            const MAX: Self = <$t>::MAX;

            #[inline]
            fn netmask(len: u8) -> Self {
                // A shift by the full width is undefined, and /0 needs one, so it is done in two steps.
                match len {
                    0 => 0,
                    l if l >= <Self as Addr>::BITS => <$t>::MAX,
                    l => <$t>::MAX << (<Self as Addr>::BITS - l),
                }
            }
            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline]
            fn not(self) -> Self {
                !self
            }
            #[inline]
            fn leading_zeros(self) -> u8 {
                <$t>::leading_zeros(self) as u8
            }
            #[inline]
            fn bit(self, i: u8) -> bool {
                i < <Self as Addr>::BITS && (self >> (<Self as Addr>::BITS - 1 - i)) & 1 == 1
            }
            #[inline]
            fn successor(self) -> Option<Self> {
                self.checked_add(1)
            }
            #[inline]
            fn predecessor(self) -> Option<Self> {
                self.checked_sub(1)
            }
            #[inline]
            fn to_u128(self) -> u128 {
                self.into()
            }
            #[inline]
            fn from_u128(value: u128) -> Self {
                value as $t
            }
            #[inline]
            fn from_be_slice(bytes: &[u8]) -> Option<Self> {
                Some(<$t>::from_be_bytes(bytes.try_into().ok()?))
            }
            #[inline]
            fn to_ip(self) -> IpAddr {
                IpAddr::$variant(<$std>::from(self))
            }
            #[inline]
            fn from_ip(ip: IpAddr) -> Option<Self> {
                match ip {
                    IpAddr::$variant(ip) => Some(ip.into()),
                    _ => None,
                }
            }
            #[inline]
            fn half<K: FamilyType>(both: &PerFamily<K>) -> &K::Of<Self> {
                &both.$field
            }
            #[inline]
            fn half_mut<K: FamilyType>(both: &mut PerFamily<K>) -> &mut K::Of<Self> {
                &mut both.$field
            }
            #[inline]
            fn any(prefix: Prefix<Self>) -> AnyPrefix {
                AnyPrefix::$variant(prefix)
            }
        }
    };
}

addr!(u32, Family::V4, Ipv4Addr, V4, v4);
addr!(u128, Family::V6, Ipv6Addr, V6, v6);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_at_the_edges() {
        assert_eq!(u32::netmask(0), 0);
        assert_eq!(u32::netmask(1), 1 << 31);
        assert_eq!(u32::netmask(32), u32::MAX);
        assert_eq!(u128::netmask(0), 0);
        assert_eq!(u128::netmask(127), u128::MAX - 1);
        assert_eq!(u128::netmask(128), u128::MAX);
    }

    #[test]
    fn neighbours_stop_at_the_ends() {
        assert_eq!(<u32 as Addr>::MAX.successor(), None);
        assert_eq!(<u128 as Addr>::MIN.predecessor(), None);
        assert_eq!(7u128.successor(), Some(8));
    }

    #[test]
    fn bits_count_from_the_top() {
        assert!(0x8000_0000u32.bit(0));
        assert!(1u32.bit(31));
        assert!(!1u32.bit(32));
        assert_eq!(0x0a00_0000u32.common_prefix_len(0x0a80_0000), 8);
        assert_eq!(5u128.common_prefix_len(5), 128);
    }
}
