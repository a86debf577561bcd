//! Reading big-endian fields from a message or a record.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use fibula_core::{AnyPrefix, Prefix};

use super::RouteDistinguisher;

/// The reason why a message or a record cannot be decoded, and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeFault {
    /// Bytes from the beginning of the message, or of the record's body.
    pub at: usize,
    /// The error.
    pub what: Cow<'static, str>,
}

impl fmt::Display for DecodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for DecodeFault {}

/// An address family of BGP that we keep routes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afi {
    V4,
    V6,
}

impl Afi {
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Self::V4),
            2 => Some(Self::V6),
            _ => None,
        }
    }

    /// Bytes of an address.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// A position in a message or a record's body. Every read names its field, for the fault if the body ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    /// Where `data` begins in it.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, base: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The bytes that are left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.data
    }

    /// Bytes from the beginning of the message, or of the record's body.
    pub(crate) fn position(&self) -> usize {
        self.base
    }

    /// A fault at this position.
    #[cold]
    pub(crate) fn fault(&self, what: impl Into<Cow<'static, str>>) -> DecodeFault {
        DecodeFault { at: self.base, what: what.into() }
    }

    #[inline]
    pub(crate) fn bytes(
        &mut self,
        len: usize,
        field: &'static str,
    ) -> Result<&'a [u8], DecodeFault> {
        let Some((taken, rest)) = self.data.split_at_checked(len) else {
            let left = self.data.len();
            return Err(self.fault(format!("{field} needs {len} bytes, {left} are left")));
        };
        self.data = rest;
        self.base += len;
        Ok(taken)
    }

    /// The next `len` bytes as a cursor of their own.
    pub(crate) fn part(&mut self, len: usize, field: &'static str) -> Result<Self, DecodeFault> {
        let base = self.base;
        Ok(Self { data: self.bytes(len, field)?, base })
    }

    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], DecodeFault> {
        let Some((taken, rest)) = self.data.split_first_chunk() else {
            return self.bytes(N, field).map(|_| [0; N]);
        };
        self.data = rest;
        self.base += N;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeFault> {
        self.array(field).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeFault> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeFault> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn address(&mut self, afi: Afi, field: &'static str) -> Result<IpAddr, DecodeFault> {
        Ok(match afi {
            Afi::V4 => IpAddr::from(self.array::<4>(field)?),
            Afi::V6 => IpAddr::from(self.array::<16>(field)?),
        })
    }

    /// An AS number of two or four bytes.
    pub(crate) fn asn(&mut self, width: AsWidth, field: &'static str) -> Result<u32, DecodeFault> {
        match width {
            AsWidth::Two => self.u16(field).map(u32::from),
            AsWidth::Four => self.u32(field),
        }
    }

    /// A prefix: its length in bits, then as many bytes as that needs. Bits beyond the length mean
    /// nothing (RFC 4271, 4.3) and are cleared.
    #[inline]
    pub(crate) fn prefix(&mut self, afi: Afi) -> Result<AnyPrefix, DecodeFault> {
        let start = *self;
        let len = self.u8("prefix length")?;
        self.address_bits(afi, len, start)
    }

    /// A route of a VPN: its length in bits, labels, route distinguisher, prefix (RFC 4364, 4.3.4).
    pub(crate) fn vpn_prefix(
        &mut self,
        afi: Afi,
    ) -> Result<(RouteDistinguisher, AnyPrefix), DecodeFault> {
        let start = *self;
        let bits = self.u8("VPN route's length")?;
        let mut route = self.part(usize::from(bits.div_ceil(8)), "VPN route")?;
        let whole = route.data.len();
        loop {
            let label = route.array::<3>("label")?;
            // The last one has its lowest bit set, except in the values that mean "no label" (RFC 8277, 2.4).
            if label[2] & 1 != 0 || matches!(label, [0 | 0x80, 0, 0]) {
                break;
            }
        }
        let rd = RouteDistinguisher(route.array("route distinguisher")?);
        // If more was read than the length allows, no bits are left.
        let read = 8 * (whole - route.data.len());
        let len = usize::from(bits).saturating_sub(read) as u8;
        Ok((rd, route.address_bits(afi, len, start)?))
    }

    /// The first `len` bits of an address; `start` is where the length stands.
    #[inline]
    fn address_bits(&mut self, afi: Afi, len: u8, start: Self) -> Result<AnyPrefix, DecodeFault> {
        if usize::from(len) > afi.bytes() * 8 {
            let what = format!("prefix length {len} exceeds {}", afi.bytes() * 8);
            return Err(start.fault(what));
        }
        let bytes = self.bytes(usize::from(len.div_ceil(8)), "prefix")?;
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        let addr = u128::from_be_bytes(padded);
        Ok(match afi {
            // Nothing is cut off: a length up to 32 gave four bytes at most.
            Afi::V4 => {
                AnyPrefix::V4(Prefix::masked((addr >> 96) as u32, len).unwrap_or(Prefix::ALL))
            }
            Afi::V6 => AnyPrefix::V6(Prefix::masked(addr, len).unwrap_or(Prefix::ALL)),
        })
    }
}

/// Bytes of an AS number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsWidth {
    Two,
    Four,
}

impl AsWidth {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}
