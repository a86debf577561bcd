//! The framing of netlink messages and attributes.
//!
//! ```text
//! message    length 4 | type 2 | flags 2 | sequence 4 | port 4 | body, padded to 4 bytes
//! attribute  length 2 | type 2 | value, padded to 4 bytes
//! ```
//! Lengths include their own header and exclude the padding. All numbers have the byte order of the machine that
//! wrote them, which is assumed to be the order of this machine, as x86 and ARM servers have the same.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::bgp::DecodeFault;

/// Bytes of a message's header.
pub(crate) const HEADER: usize = 16;

/// Types of messages.
pub(crate) mod kind {
    pub(crate) const NOOP: u16 = 1;
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
    pub(crate) const OVERRUN: u16 = 4;
    pub(crate) const NEWLINK: u16 = 16;
    pub(crate) const DELLINK: u16 = 17;
    pub(crate) const NEWADDR: u16 = 20;
    pub(crate) const DELADDR: u16 = 21;
    pub(crate) const NEWROUTE: u16 = 24;
    pub(crate) const DELROUTE: u16 = 25;
    pub(crate) const NEWNEIGH: u16 = 28;
    pub(crate) const DELNEIGH: u16 = 29;
    pub(crate) const NEWNEXTHOP: u16 = 104;
    pub(crate) const DELNEXTHOP: u16 = 105;
    /// Beyond all types of messages that there are.
    pub(crate) const END: u16 = 256;
}

/// Flags of a message.
pub(crate) mod flag {
    /// It is one of several that answer a request.
    pub(crate) const MULTI: u16 = 2;
    /// What is dumped changed meanwhile, so that something may be missing.
    pub(crate) const DUMP_INTR: u16 = 0x10;
    /// Of a new route: it takes the place of another one.
    pub(crate) const REPLACE: u16 = 0x100;
    /// Of a new route: there is no other one of the same prefix and metric. Kernels before 4.9 do not say it, nor does
    /// any of an IPv6 route whose next hops came as a list.
    pub(crate) const EXCL: u16 = 0x200;
    /// Of a new route: it takes no other one's place.
    pub(crate) const CREATE: u16 = 0x400;
    /// Of a new route: it stands behind those that are there.
    pub(crate) const APPEND: u16 = 0x800;
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes with the header, without padding.
    pub(crate) len: usize,
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
}

impl Header {
    /// The header at the front; `None` if there are too few bytes.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER>()?;
        let u16_at = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let u32_at =
            |at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let len = usize::try_from(u32_at(0)).unwrap_or(usize::MAX);
        Some(Self { len, kind: u16_at(4), flags: u16_at(6), sequence: u32_at(8) })
    }

    /// Whether framing may rely on it.
    pub(crate) fn is_plausible(&self, longest: usize) -> bool {
        (HEADER..=longest).contains(&self.len) && (kind::NOOP..kind::END).contains(&self.kind)
    }
}

/// A length with its padding.
#[inline]
pub(crate) fn padded(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// A position in the body of a message. Every read names its field, for the fault if the body ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) data: &'a [u8],
    /// Where `data` begins in the message.
    pub(super) base: usize,
}

impl<'a> Part<'a> {
    /// A fault at this position.
    #[cold]
    pub(super) fn fault(&self, what: impl Into<Cow<'static, str>>) -> DecodeFault {
        DecodeFault { at: self.base, what: what.into() }
    }

    /// The next bytes.
    #[inline]
    pub(super) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], DecodeFault> {
        let Some((taken, rest)) = self.data.split_first_chunk() else {
            let left = self.data.len();
            return Err(self.fault(format!("{field} needs {N} bytes, {left} are left")));
        };
        self.data = rest;
        self.base += N;
        Ok(*taken)
    }

    /// A number that is all of this.
    #[inline]
    pub(super) fn u32(mut self, field: &'static str) -> Result<u32, DecodeFault> {
        self.array(field).map(u32::from_ne_bytes)
    }

    /// An address that is all of this.
    pub(super) fn address(&self, field: &'static str) -> Result<IpAddr, DecodeFault> {
        if let Ok(octets) = <[u8; 4]>::try_from(self.data) {
            return Ok(octets.into());
        }
        match <[u8; 16]>::try_from(self.data) {
            Ok(octets) => Ok(octets.into()),
            Err(_) => {
                Err(self.fault(format!("{field} of {} bytes is no address", self.data.len())))
            }
        }
    }

    /// Takes `len` bytes and the padding behind them, of which the end of the body may lack some.
    pub(super) fn take_padded(
        &mut self,
        len: usize,
        field: &'static str,
    ) -> Result<Self, DecodeFault> {
        let Some((taken, _)) = self.data.split_at_checked(len) else {
            let left = self.data.len();
            return Err(self.fault(format!("{field} has a length of {len}, {left} bytes are left")));
        };
        let taken = Self { data: taken, base: self.base };
        let whole = padded(len).min(self.data.len());
        self.data = &self.data[whole..];
        self.base += whole;
        Ok(taken)
    }

    /// The next attribute: its type without the flags, and its value. `None` at the end.
    #[inline]
    pub(super) fn attribute(&mut self) -> Result<Option<(u16, Self)>, DecodeFault> {
        const TYPE: u16 = 0x3fff;
        const HEAD: usize = 4;
        let Some(&[a, b, c, d]) = self.data.first_chunk::<HEAD>() else {
            // Fewer bytes than a header has can only be padding.
            return Ok(None);
        };
        let (len, kind) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]) & TYPE);
        if usize::from(len) < HEAD {
            return Err(self.fault(format!("an attribute has a length of {len}")));
        }
        let whole = self.take_padded(len.into(), "an attribute")?;
        Ok(Some((kind, Part { data: &whole.data[HEAD..], base: whole.base + HEAD })))
    }
}
