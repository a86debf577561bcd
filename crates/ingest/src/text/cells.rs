//! What a single cell looks like.

use fibula_core::AnyPrefix;

use super::key::{Key, KeyError, parse_ip, parse_key};
use crate::HostBits;

/// Whether a field is meant as an address, a prefix or a range, be it a wrong one.
pub(crate) fn is_key(field: &[u8]) -> bool {
    parse_key(field, HostBits::Refuse) != Err(KeyError::Syntax)
}

/// Whether a field is meant as a prefix or a range, not as one address.
pub(super) fn is_spelled(field: &[u8]) -> bool {
    is_key(field) && parse_ip(field).is_none()
}

pub(super) fn is_ip(field: &[u8]) -> bool {
    parse_ip(field).is_some()
}

/// The prefix that a field holds, if it has more than one address.
pub(crate) fn block(field: &[u8]) -> Option<AnyPrefix> {
    match parse_key(field, HostBits::Refuse) {
        Ok(Key::Prefix(prefix)) if field.contains(&b'/') && !is_host(prefix) => Some(prefix),
        _ => None,
    }
}

fn is_host(prefix: AnyPrefix) -> bool {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len() == 32,
        AnyPrefix::V6(prefix) => prefix.len() == 128,
    }
}

/// Whether the prefix is neither a single address nor the whole space. Only such lengths are significant: a column with
/// other values may have 32, too.
pub(super) fn is_block(network: AnyPrefix) -> bool {
    let len = match network {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    };
    len != 0 && !is_host(network)
}

/// The prefix or range that a field holds, if it is not one bare address.
pub(super) fn spelled(field: &[u8]) -> Option<Key> {
    parse_key(field, HostBits::Refuse).ok().filter(|_| parse_ip(field).is_none())
}

pub(super) fn range_of(key: Key) -> Key {
    match key {
        Key::Prefix(AnyPrefix::V4(prefix)) => Key::RangeV4(prefix.first(), prefix.last()),
        Key::Prefix(AnyPrefix::V6(prefix)) => Key::RangeV6(prefix.first(), prefix.last()),
        range => range,
    }
}

/// Whether a range is wider than those of real tables, and no prefix: two addresses that have nothing to do with each
/// other mostly are.
pub(super) fn is_wide(range: Key) -> bool {
    let is_block = |width: u128, first: u128| width.is_power_of_two() && first & (width - 1) == 0;
    match range {
        Key::RangeV4(first, last) => {
            let width = u128::from(last) - u128::from(first) + 1;
            width > 1 << 24 && !is_block(width, first.into())
        }
        Key::RangeV6(first, last) => match (last - first).checked_add(1) {
            Some(width) => width > 1 << 96 && !is_block(width, first),
            None => false,
        },
        Key::Prefix(_) => false,
    }
}

/// Whether two ranges overlap, and none contains the other.
pub(super) fn cross(a: Key, b: Key) -> bool {
    fn crossing<T: Ord>((a, b): (T, T), (c, d): (T, T)) -> bool {
        (a < c && c <= b && b < d) || (c < a && a <= d && d < b)
    }
    match (a, b) {
        (Key::RangeV4(a, b), Key::RangeV4(c, d)) => crossing((a, b), (c, d)),
        (Key::RangeV6(a, b), Key::RangeV6(c, d)) => crossing((a, b), (c, d)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_crossing_ranges() {
        assert!(!is_wide(Key::RangeV4(0, u32::MAX)) && !is_wide(Key::RangeV6(0, u128::MAX)));
        assert!(is_wide(Key::RangeV4(1, u32::MAX)) && is_wide(Key::RangeV6(1, u128::MAX)));
        assert!(!is_wide(Key::RangeV4(1, 1 << 24)) && is_wide(Key::RangeV4(1, 1 + (1 << 24))));
        let [a, b, c] = [Key::RangeV4(0, 5), Key::RangeV4(3, 9), Key::RangeV4(0, 9)];
        assert!(cross(a, b) && cross(b, a) && !cross(a, c) && !cross(c, b) && !cross(a, a));
    }
}
