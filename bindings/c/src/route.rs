//! Routes and addresses as C has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{Addr, AnyPrefix, Prefix};

use crate::error::Outcome;

/// The value of 32 bits that stands for "no route".
pub(crate) const NONE: u32 = u32::MAX;
/// The same of 64 bits.
pub(crate) const NONE64: u64 = u64::MAX;

/// `fibula_route` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Route {
    address: [u8; 16],
    family: u8,
    length: u8,
    value: u64,
}

impl Route {
    pub(crate) fn new(prefix: AnyPrefix, value: u64) -> Self {
        let mut address = [0; 16];
        let (family, length) = match prefix {
            AnyPrefix::V4(prefix) => {
                address[..4].copy_from_slice(&prefix.addr().to_be_bytes());
                (4, prefix.len())
            }
            AnyPrefix::V6(prefix) => {
                address = prefix.addr().to_be_bytes();
                (6, prefix.len())
            }
        };
        Self { address, family, length, value }
    }

    /// The prefix.
    pub(crate) fn prefix(&self) -> Outcome<AnyPrefix> {
        Ok(AnyPrefix::new(address(self.family, &self.address)?, self.length)?)
    }

    /// The prefix, if it is of this family: of a route that was checked.
    pub(crate) fn of<A: Addr>(&self) -> Option<Prefix<A>> {
        let size = usize::from(A::BITS / 8);
        let is_family = self.family == if A::BITS == 32 { 4 } else { 6 };
        let addr = A::from_be_slice(&self.address[..size]).filter(|_| is_family)?;
        Prefix::new(addr, self.length).ok()
    }

    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// The prefix, if there is a value, of 32 bits unless the table is wide.
    pub(crate) fn checked(&self, is_wide: bool) -> Outcome<AnyPrefix> {
        match (self.value, is_wide) {
            (NONE64, _) => Err("the value is FIBULA_NONE64, which stands for no route".into()),
            (value, false) if value == u64::from(NONE) => {
                Err("the value is FIBULA_NONE, which stands for no route".into())
            }
            (value, false) if value > u64::from(NONE) => {
                Err(format!("the value is {value}; the table needs FIBULA_WIDE for it").into())
            }
            _ => self.prefix(),
        }
    }
}

/// Checks routes before one of them changes a table. An error names the first one that is wrong.
pub(crate) fn check<T>(routes: &[Route], read: impl Fn(&Route) -> Outcome<T>) -> Outcome<()> {
    routes.iter().enumerate().try_for_each(|(index, route)| match read(route) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("route {index} (counted from 0): {error}").into()),
    })
}

/// Whether a number stands for IPv6.
pub(crate) fn is_v6(family: u8) -> Outcome<bool> {
    match family {
        4 => Ok(false),
        6 => Ok(true),
        _ => Err(format!("the family is {family}, not FIBULA_IPV4 (4) or FIBULA_IPV6 (6)").into()),
    }
}

/// An address in network byte order; of IPv4 these are the first four bytes.
pub(crate) fn address(family: u8, bytes: &[u8]) -> Outcome<IpAddr> {
    match (is_v6(family)?, bytes.first_chunk::<4>(), bytes.first_chunk::<16>()) {
        (false, Some(&bytes), _) => Ok(Ipv4Addr::from(bytes).into()),
        (true, _, Some(&bytes)) => Ok(Ipv6Addr::from(bytes).into()),
        _ => Err("the address is too short".into()),
    }
}
