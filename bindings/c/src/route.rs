//! Routes and addresses as C has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::AnyPrefix;

use crate::error::Outcome;

/// The value that stands for "no route".
pub(crate) const NONE: u32 = u32::MAX;

/// `fibula_route` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Route {
    address: [u8; 16],
    family: u8,
    length: u8,
    value: u32,
}

impl Route {
    pub(crate) fn new(prefix: AnyPrefix, value: u32) -> Self {
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

    /// The first bits of the address, which order routes roughly, and equal prefixes not at all.
    pub(crate) fn start(&self) -> u64 {
        let bytes = match self.family {
            4 => self
                .address
                .first_chunk::<4>()
                .map(|&bytes| u64::from(u32::from_be_bytes(bytes)) << 32),
            _ => self.address.first_chunk().map(|&bytes| u64::from_be_bytes(bytes)),
        };
        bytes.unwrap_or_default()
    }

    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// The prefix, if there is a value.
    pub(crate) fn checked(&self) -> Outcome<AnyPrefix> {
        match self.value {
            NONE => Err("the value is FIBULA_NONE, which stands for no route".into()),
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

/// An address in network byte order; of IPv4 these are the first four bytes.
pub(crate) fn address(family: u8, bytes: &[u8]) -> Outcome<IpAddr> {
    match (family, bytes.first_chunk::<4>(), bytes.first_chunk::<16>()) {
        (4, Some(&bytes), _) => Ok(Ipv4Addr::from(bytes).into()),
        (6, _, Some(&bytes)) => Ok(Ipv6Addr::from(bytes).into()),
        _ => Err(format!("the family is {family}, not FIBULA_IPV4 (4) or FIBULA_IPV6 (6)").into()),
    }
}
