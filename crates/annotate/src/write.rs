//! Numbers and addresses as text.

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};

use fibula_core::AnyPrefix;

/// Appends a number in decimal.
#[inline]
pub(crate) fn write_int(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an IPv4 address. The standard library's formatting goes through `fmt`, which takes several
/// times as long.
#[inline]
pub(crate) fn write_v4(addr: u32, out: &mut Vec<u8>) {
    let [a, b, c, d] = addr.to_be_bytes();
    write_int(a, out);
    for octet in [b, c, d] {
        out.push(b'.');
        write_int(octet, out);
    }
}

/// Appends an address.
pub(crate) fn write_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(v4) => write_v4(v4.into(), out),
        IpAddr::V6(v6) => write_v6(v6, out),
    }
}

fn write_v6(addr: Ipv6Addr, out: &mut Vec<u8>) {
    write!(out, "{addr}").expect("writing to memory succeeds");
}

/// Appends a prefix.
pub(crate) fn write_prefix(prefix: AnyPrefix, out: &mut Vec<u8>) {
    let len = match prefix {
        AnyPrefix::V4(prefix) => {
            write_v4(prefix.addr(), out);
            prefix.len()
        }
        AnyPrefix::V6(prefix) => {
            write_v6(prefix.addr().into(), out);
            prefix.len()
        }
    };
    out.push(b'/');
    write_int(len, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_to_display(v4: u32, v6: u128, len in 0u8..=32) {
            for ip in [IpAddr::V4(v4.into()), IpAddr::V6(v6.into())] {
                let mut out = Vec::new();
                write_ip(ip, &mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap(), ip.to_string());
                let prefix = AnyPrefix::masked(ip, len).unwrap();
                let mut out = Vec::new();
                write_prefix(prefix, &mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap(), prefix.to_string());
            }
        }
    }
}
