//! IPv4-mapped IPv6 addresses.

use core::net::IpAddr;

use crate::{AnyPrefix, Prefix};

/// The IPv4 address of an IPv4-mapped IPv6 address (`::ffff:a.b.c.d`, RFC 4291, section 2.5.5.2); `None` for every
/// other IPv6 address.
///
/// **The policy.** A lookup of `::ffff:a.b.c.d` is a lookup of `a.b.c.d`, because dual-stack sockets write IPv4
/// addresses in this form, and routing tables have the routes under IPv4. So a mapped address is looked up only in
/// the IPv4 table, and a prefix of 96 bits or more below `::ffff:0:0/96` is the IPv4 prefix with 96 bits less
/// ([`AnyPrefix::unmapped`]). A shorter prefix, such as `::/0`, stays IPv6. All code that looks up an address or a
/// prefix calls one of these two functions.
///
/// Text tables follow the policy too: a prefix written in this form becomes the IPv4 prefix, and is counted. The
/// announcements of BGP peers are not rewritten: a route to `::ffff:0:0/96` stays an IPv6 route, and no lookup of an
/// address finds it.
///
/// ```
/// use fibula_core::mapped_v4;
/// assert_eq!(mapped_v4(0xffff_0a00_0001), Some(0x0a00_0001));
/// assert_eq!(mapped_v4(0x0a00_0001), None); // ::10.0.0.1, IPv4-compatible, is IPv6
/// assert_eq!(mapped_v4(0x0001_ffff_0a00_0001), None);
/// ```
#[inline]
pub const fn mapped_v4(addr: u128) -> Option<u32> {
    match addr >> 32 {
        0xffff => Some(addr as u32),
        _ => None,
    }
}

impl AnyPrefix {
    /// The prefix of full length that covers only this address.
    pub fn host(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(addr) => Self::V4(Prefix::host(addr.into())),
            IpAddr::V6(addr) => Self::V6(Prefix::host(addr.into())),
        }
    }

    /// The prefix to look up in a table: an IPv4-mapped prefix becomes the IPv4 prefix, and every other prefix stays
    /// unchanged; see [`mapped_v4`].
    ///
    /// ```
    /// use fibula_core::AnyPrefix;
    /// let asked = |text: &str| text.parse::<AnyPrefix>().unwrap().unmapped().to_string();
    /// assert_eq!(asked("::ffff:10.1.0.0/112"), "10.1.0.0/16");
    /// assert_eq!(asked("::ffff:0:0/96"), "0.0.0.0/0");
    /// assert_eq!(asked("::fffe:0:0/95"), "::fffe:0:0/95");
    /// assert_eq!(asked("::/0"), "::/0");
    /// ```
    #[must_use]
    pub fn unmapped(self) -> Self {
        if let Self::V6(prefix) = self
            && let Some(len) = prefix.len().checked_sub(96)
            && let Some(addr) = mapped_v4(prefix.addr())
            && let Ok(prefix) = Prefix::masked(addr, len)
        {
            return Self::V4(prefix);
        }
        self
    }
}

/// The prefix of full length, so that functions on prefixes accept addresses.
impl From<IpAddr> for AnyPrefix {
    fn from(ip: IpAddr) -> Self {
        Self::host(ip)
    }
}
