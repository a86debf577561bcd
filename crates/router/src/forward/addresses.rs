//! Addresses that may stand in a forwarded unicast packet, by a few compares: the rules of
//! [`Frame::check_forward`](fibula_packet::Frame::check_forward).

/// Neither 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16 nor 224.0.0.0/3.
#[inline]
pub(super) fn forwards_v4(address: u32) -> bool {
    // One compare for both ends: 0 wraps around to the top.
    let inside = (address >> 24).wrapping_sub(1) < 223;
    inside & (address >> 24 != 127) & (address >> 16 != 0xa9fe)
}

/// The same of an address whose bytes were read in little-endian order.
#[inline(always)]
pub(super) fn forwards_v4_word(address: u32) -> bool {
    let first = address & 0xff;
    (first.wrapping_sub(1) < 223) & (first != 127) & (address & 0xffff != 0xfea9)
}

/// An address of IPv6 whose first eight bytes were read in little-endian order. False for all addresses in ::/64, of
/// which `::`, `::1` and ::ffff:0:0/96 are not forwarded.
#[inline(always)]
pub(super) fn forwards_v6_words(first: u32, second: u32) -> bool {
    (first & 0xff != 0xff) & (first & 0xc0ff != 0x80fe) & (first | second != 0)
}

/// Neither `::`, `::1`, ::ffff:0:0/96, fe80::/10 nor ff00::/8.
#[inline]
pub(super) fn forwards_v6(address: u128) -> bool {
    // Most addresses are global unicast, 2000::/3.
    let high = (address >> 64) as u64;
    let is_mapped = address >> 32 == 0xffff;
    high >> 61 == 1 || !(address <= 1 || is_mapped || high >> 54 == 0x3fa || high >> 56 == 0xff)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// The first and the last address of every block, and their neighbours, compared with the standard library.
    #[test]
    fn agrees_with_the_standard_library() {
        for high in 0..=0xffff_u32 {
            for address in [high << 16, high << 16 | 1, high << 16 | 0xffff] {
                let ip = Ipv4Addr::from(address);
                let [first, ..] = ip.octets();
                let not = first == 0 || ip.is_loopback() || ip.is_link_local() || first >= 224;
                assert_eq!(forwards_v4(address), !not, "{ip}");
                assert_eq!(forwards_v4_word(address.swap_bytes()), !not, "{ip}");
            }
            let block = u128::from(high) << 112;
            let mapped = [block | 0xfffe << 32, block | 0xffff << 32, block | 0x1_0000 << 32];
            let edges = [block, block | 1, block | 2, block | (u128::MAX >> 16)];
            for address in edges.into_iter().chain(mapped) {
                let ip = Ipv6Addr::from(address);
                let not = ip.is_unspecified()
                    || ip.is_loopback()
                    || ip.to_ipv4_mapped().is_some()
                    || ip.is_unicast_link_local()
                    || ip.is_multicast();
                assert_eq!(forwards_v6(address), !not, "{ip}");
            }
        }
    }
}
