use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use crate::{Addr, Family, PrefixError};

/// A prefix (CIDR block): the addresses that share their first `len` bits with `addr`.
///
/// Always canonical: the bits beyond `len` are clear, so equal prefixes compare equal. Prefixes are ordered by first
/// address, then by length, so that a prefix sorts right before the prefixes that it covers.
///
/// ```
/// use fibula_core::{Prefix, PrefixError};
///
/// let p: Prefix<u32> = "10.1.0.0/16".parse()?;
/// assert_eq!((p.len(), p.first(), p.last()), (16, 0x0a01_0000, 0x0a01_ffff));
/// assert!(p.contains(0x0a01_2345));
///
/// // Host bits are refused or cleared, as the caller chooses.
/// assert_eq!(Prefix::new(0x0a01_0001u32, 16), Err(PrefixError::HostBits));
/// assert_eq!(Prefix::masked(0x0a01_0001u32, 16)?, p);
/// # Ok::<(), PrefixError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

#[expect(clippy::len_without_is_empty, reason = "the length counts bits; no prefix is empty")]
impl<A: Addr> Prefix<A> {
    /// The prefix of length 0, which covers every address.
    pub const ALL: Self = Self { addr: A::MIN, len: 0 };

    /// The prefix `addr/len`.
    ///
    /// # Errors
    /// [`PrefixError::Length`] beyond 32 or 128; [`PrefixError::HostBits`] if `addr` has bits set
    /// beyond `len`.
    pub fn new(addr: A, len: u8) -> Result<Self, PrefixError> {
        let prefix = Self::masked(addr, len)?;
        if prefix.addr == addr { Ok(prefix) } else { Err(PrefixError::HostBits) }
    }

    /// The prefix of length `len` that covers `addr`: bits beyond `len` are cleared.
    ///
    /// # Errors
    /// [`PrefixError::Length`] beyond 32 or 128.
    pub fn masked(addr: A, len: u8) -> Result<Self, PrefixError> {
        if len > A::BITS {
            return Err(PrefixError::Length { len: len.into(), max: A::BITS });
        }
        Ok(Self { addr: addr.and(A::netmask(len)), len })
    }

    /// The prefix of full length that covers only `addr`.
    pub fn host(addr: A) -> Self {
        Self { addr, len: A::BITS }
    }

    /// The network address, equal to [`Prefix::first`].
    #[inline]
    pub fn addr(self) -> A {
        self.addr
    }

    /// The length in bits, 0 to 32 or 128.
    #[inline]
    pub fn len(self) -> u8 {
        self.len
    }

    /// The first address of the prefix.
    #[inline]
    pub fn first(self) -> A {
        self.addr
    }

    /// The last address of the prefix (inclusive).
    #[inline]
    pub fn last(self) -> A {
        self.addr.or(A::netmask(self.len).not())
    }

    /// Whether the prefix covers the address.
    #[inline]
    pub fn contains(self, addr: A) -> bool {
        addr.and(A::netmask(self.len)) == self.addr
    }

    /// Whether the prefix covers every address of `other`. A prefix covers itself.
    #[inline]
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.addr)
    }

    /// The smallest list of prefixes that covers exactly `first..=last`, in address order; empty if `first > last`.
    /// It has at most `2 * BITS - 2` prefixes (62 or 254).
    ///
    /// ```
    /// use fibula_core::Prefix;
    /// let parts: Vec<String> = Prefix::split_range(0x0a00_0001u32, 0x0a00_0004)
    ///     .map(|p| p.to_string()).collect();
    /// assert_eq!(parts, ["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/32"]);
    /// ```
    pub fn split_range(first: A, last: A) -> impl Iterator<Item = Self> {
        let mut next = (first <= last).then_some(first);
        core::iter::from_fn(move || {
            let at = next?;
            // The shortest prefix that starts here and does not pass the end.
            let aligned = at.to_u128().trailing_zeros().min(A::BITS.into());
            let more = last.to_u128() - at.to_u128();
            let fitting = more.checked_add(1).map_or(u128::BITS, u128::ilog2);
            let len = A::BITS - aligned.min(fitting) as u8;
            let prefix = Self { addr: at, len };
            next = prefix.last().successor().filter(|&n| n <= last);
            Some(prefix)
        })
    }
}

impl<A: Addr> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr.to_ip(), self.len)
    }
}

impl<A: Addr> fmt::Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A: Addr> FromStr for Prefix<A> {
    type Err = PrefixError;

    /// Parses `address/length`; host bits are refused.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (ip, len) = split(text)?;
        Self::new(A::from_ip(ip).ok_or(PrefixError::Family { expected: A::FAMILY })?, len)
    }
}

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyPrefix {
    /// An IPv4 prefix.
    V4(Prefix<u32>),
    /// An IPv6 prefix.
    V6(Prefix<u128>),
}

impl AnyPrefix {
    /// The prefix `ip/len`; host bits are refused.
    ///
    /// # Errors
    /// As [`Prefix::new`].
    pub fn new(ip: IpAddr, len: u8) -> Result<Self, PrefixError> {
        match ip {
            IpAddr::V4(a) => Prefix::new(a.into(), len).map(Self::V4),
            IpAddr::V6(a) => Prefix::new(a.into(), len).map(Self::V6),
        }
    }

    /// The prefix of length `len` that covers `ip`: host bits are cleared.
    ///
    /// # Errors
    /// As [`Prefix::masked`].
    pub fn masked(ip: IpAddr, len: u8) -> Result<Self, PrefixError> {
        match ip {
            IpAddr::V4(a) => Prefix::masked(a.into(), len).map(Self::V4),
            IpAddr::V6(a) => Prefix::masked(a.into(), len).map(Self::V6),
        }
    }

    /// Whether it covers the other prefix: both are of one family, and all addresses of the other are in it.
    ///
    /// ```
    /// use fibula_core::AnyPrefix;
    /// let wide: AnyPrefix = "192.0.2.0/24".parse()?;
    /// assert!(wide.covers(wide) && wide.covers("192.0.2.7/32".parse()?));
    /// assert!(!wide.covers("192.0.0.0/16".parse()?) && !wide.covers("2001:db8::/32".parse()?));
    /// # Ok::<(), fibula_core::PrefixError>(())
    /// ```
    pub fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::V4(wide), Self::V4(other)) => wide.covers(other),
            (Self::V6(wide), Self::V6(other)) => wide.covers(other),
            _ => false,
        }
    }

    /// The family.
    pub fn family(self) -> Family {
        match self {
            Self::V4(_) => Family::V4,
            Self::V6(_) => Family::V6,
        }
    }
}

impl<A: Addr> From<Prefix<A>> for AnyPrefix {
    fn from(prefix: Prefix<A>) -> Self {
        A::any(prefix)
    }
}

impl fmt::Display for AnyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(p) => fmt::Display::fmt(p, f),
            Self::V6(p) => fmt::Display::fmt(p, f),
        }
    }
}

impl FromStr for AnyPrefix {
    type Err = PrefixError;

    /// Parses `address/length` of either family; host bits are refused.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (ip, len) = split(text)?;
        Self::new(ip, len)
    }
}

fn split(text: &str) -> Result<(IpAddr, u8), PrefixError> {
    let (ip, len) = text.split_once('/').ok_or(PrefixError::Syntax)?;
    let ip: IpAddr = ip.parse().map_err(|_| PrefixError::Syntax)?;
    // `u8::from_str` accepts "+8", which is not a valid length here.
    if len.is_empty() || !len.bytes().all(|b| b.is_ascii_digit()) {
        return Err(PrefixError::Syntax);
    }
    let max = if ip.is_ipv4() { 32 } else { 128 };
    match len.parse::<u32>() {
        Ok(len) if len <= max => Ok((ip, len as u8)),
        Ok(len) => Err(PrefixError::Length { len, max: max as u8 }),
        Err(_) => Err(PrefixError::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn whole_space_and_hosts_are_ordinary() {
        assert_eq!(Prefix::<u32>::ALL.last(), u32::MAX);
        assert_eq!(Prefix::<u128>::ALL.last(), u128::MAX);
        let host = Prefix::host(u128::MAX);
        assert_eq!((host.first(), host.last(), host.len()), (u128::MAX, u128::MAX, 128));
        assert!(Prefix::<u128>::ALL.covers(host));
        assert!(!host.covers(Prefix::ALL));
    }

    #[test]
    fn text_round_trips_and_bad_text_is_refused() {
        for text in ["0.0.0.0/0", "255.255.255.255/32", "::/0", "2001:db8::/32", "::1/128"] {
            assert_eq!(text.parse::<AnyPrefix>().unwrap().to_string(), text);
        }
        for (text, error) in [
            ("10.0.0.0", PrefixError::Syntax),
            ("10.0.0.0/", PrefixError::Syntax),
            ("10.0.0.0/+8", PrefixError::Syntax),
            ("10.0.0.0/33", PrefixError::Length { len: 33, max: 32 }),
            ("::/129", PrefixError::Length { len: 129, max: 128 }),
            ("10.0.0.1/8", PrefixError::HostBits),
            ("300.0.0.0/8", PrefixError::Syntax),
        ] {
            assert_eq!(text.parse::<AnyPrefix>(), Err(error), "{text}");
        }
        assert!(matches!("::/0".parse::<Prefix<u32>>(), Err(PrefixError::Family { .. })));
    }

    #[test]
    fn ranges_split_exactly() {
        let all: Vec<_> = Prefix::split_range(0u128, u128::MAX).collect();
        assert_eq!(all, [Prefix::ALL]);
        assert_eq!(Prefix::split_range(1u32, 0).count(), 0);
        // The worst case: all addresses except the first and the last.
        assert_eq!(Prefix::split_range(1u32, u32::MAX - 1).count(), 62);
        assert_eq!(Prefix::split_range(1u128, u128::MAX - 1).count(), 254);
        let starts = [0, 1, 5, 64, 0xffff_fff0, 0x8000_0000_u32];
        let ends = starts.map(|start| start.saturating_add(100_000));
        for (first, last) in starts.into_iter().flat_map(|first| ends.map(|last| (first, last))) {
            let mut next = (first <= last).then_some(first);
            for p in Prefix::split_range(first, last) {
                assert_eq!(Some(p.first()), next);
                assert!(p.last() <= last);
                // A wider one begins earlier or ends later.
                if p.len() > 0 {
                    let wider = Prefix::masked(p.first(), p.len() - 1).unwrap();
                    assert!(wider.first() < p.first() || wider.last() > last, "{p}");
                }
                next = p.last().successor().filter(|&next| next <= last);
            }
            assert_eq!(next, None);
        }
    }

    #[test]
    fn a_prefix_sorts_before_what_it_covers() {
        let a: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
        let b: Prefix<u32> = "10.0.0.0/16".parse().unwrap();
        let c: Prefix<u32> = "9.255.255.255/32".parse().unwrap();
        assert!(c < a && a < b);
    }
}
