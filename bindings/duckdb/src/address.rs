//! The types of SQL that addresses have.

use fibula_annotate::Address;

/// A type of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressType {
    /// `VARCHAR`, as a cell of a log: blanks, a port or brackets around the address.
    Text,
    /// `BLOB` of 4 or 16 bytes in network order.
    Bytes,
    /// `UINTEGER`: an IPv4 address.
    V4,
    /// `BIGINT`: an IPv4 address.
    Signed,
    /// `UHUGEINT`: an IPv6 address; below 2^32 an IPv4 address.
    Number,
    /// `INET`, the type of DuckDB's extension `inet`.
    Inet,
    /// The `STRUCT` that an `INET` consists of.
    InetParts,
}

impl AddressType {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Text,
        Self::Bytes,
        Self::V4,
        Self::Signed,
        Self::Number,
        Self::Inet,
        Self::InetParts,
    ];
}

/// The address of a `BLOB`.
pub fn of_bytes(bytes: &[u8]) -> Option<Address> {
    match <[u8; 4]>::try_from(bytes) {
        Ok(v4) => Some(Address::V4(u32::from_be_bytes(v4))),
        Err(_) => {
            <[u8; 16]>::try_from(bytes).ok().map(|v6| Address::from_v6(u128::from_be_bytes(v6)))
        }
    }
}

/// The address of a number.
pub fn of_number(number: u128) -> Address {
    u32::try_from(number).map_or_else(|_| Address::from_v6(number), Address::V4)
}

/// The address of an `INET`: its family (1 for IPv4, 2 for IPv6), its number and its prefix length. A network is no address.
///
/// DuckDB flips the first bit of IPv6 addresses, so that they are ordered as signed numbers.
pub fn of_inet(family: u8, number: i128, length: u16) -> Option<Address> {
    match (family, length) {
        (1, 32) => u32::try_from(number).ok().map(Address::V4),
        (2, 128) => Some(Address::from_v6(number as u128 ^ 1 << 127)),
        _ => None,
    }
}
