//! Walks through the IP headers of a frame.

use crate::fault::HeaderKind;
use crate::ipv4::Ipv4;
use crate::ipv6::{Fragment, Ipv6, Step, is_extension, step};
use crate::link::Network;

/// The result of the walk, in as many bytes as two registers hold, as [`Link`](crate::link::Link). Another walk finds
/// rarely needed facts, such as the fault of a header: [`fault`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    /// Where the protocol's bytes begin, if the walk came so far.
    payload_at: usize,
    pub(crate) fragment: Option<Fragment>,
    /// The last protocol or extension header that was announced, if there was one.
    announced: u8,
    reach: Reach,
}

const _: () = assert!(size_of::<Ip>() <= 2 * size_of::<u64>());

/// How far the walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// There is no IP header, or it is cut.
    Nothing,
    /// An extension header was announced, and is cut.
    Announced,
    /// The protocol was announced, and the headers before it are cut.
    Protocol,
    /// To the protocol's first byte.
    Payload,
}

/// The first header that is cut, or malformed (`true`), with its offset.
pub(crate) type IpFault = (HeaderKind, usize, bool);

impl Ip {
    /// Of a frame that is not IP.
    pub(crate) const NONE: Self =
        Self { payload_at: 0, fragment: None, announced: 0, reach: Reach::Nothing };

    /// Reads the IPv4 header at an offset.
    #[inline]
    pub(crate) fn of_ipv4(bytes: &[u8], at: usize) -> Self {
        let Some(ip) = bytes.get(at..).and_then(Ipv4::new) else { return Self::NONE };
        let (offset, more) = (ip.fragment_offset(), ip.more_fragments());
        let payload_at = at + ip.header_len();
        let there = ip.header_len() >= 20 && payload_at <= bytes.len();
        Self {
            payload_at,
            fragment: (more || offset > 0).then_some(Fragment { offset, more }),
            announced: ip.protocol(),
            reach: if there { Reach::Payload } else { Reach::Protocol },
        }
    }

    /// Reads the IPv6 header at an offset, and its extension headers, which most packets do not have.
    #[inline]
    pub(crate) fn of_ipv6(bytes: &[u8], at: usize) -> Self {
        match bytes.get(at..).and_then(Ipv6::new) {
            Some(ip) if !is_extension(ip.next_header()) => Self {
                payload_at: at + 40,
                fragment: None,
                announced: ip.next_header(),
                reach: Reach::Payload,
            },
            Some(_) => Self::of_chain(bytes, at),
            None => Self::NONE,
        }
    }

    #[inline(never)]
    fn of_chain(bytes: &[u8], at: usize) -> Self {
        walk_ipv6(bytes, at, |_, _| {})
    }

    /// The last protocol or extension header that was announced.
    #[inline]
    pub(crate) fn announced(&self) -> Option<u8> {
        (self.reach >= Reach::Announced).then_some(self.announced)
    }

    /// The protocol behind all extension headers.
    #[inline]
    pub(crate) fn protocol(&self) -> Option<u8> {
        (self.reach >= Reach::Protocol).then_some(self.announced)
    }

    /// Where that protocol's bytes begin, if the headers before it are there in full.
    #[inline]
    pub(crate) fn payload_at(&self) -> Option<usize> {
        (self.reach == Reach::Payload).then_some(self.payload_at)
    }
}

/// Walks an IPv6 header and its extension headers, and gives those that are cut to `cut`.
#[inline(always)]
fn walk_ipv6(bytes: &[u8], at: usize, mut cut: impl FnMut(HeaderKind, usize)) -> Ip {
    let Some(ip) = bytes.get(at..).and_then(Ipv6::new) else {
        cut(HeaderKind::Ipv6, at);
        return Ip::NONE;
    };
    let chain = bytes.get(at + 40..).unwrap_or_default();
    let (mut next, mut offset, mut fragment) = (ip.next_header(), 0, None);
    // Each header takes eight bytes at least, so the frame's length bounds the loop.
    loop {
        let header = match step(chain, next, offset) {
            Step::Extension(header) => header,
            Step::End => break,
            Step::Cut => {
                cut(HeaderKind::Extension(next), at + 40 + offset);
                return Ip { payload_at: 0, fragment, announced: next, reach: Reach::Announced };
            }
        };
        // Its length is known, so the next header's type is known, even if it is cut.
        if offset + header.len > chain.len() {
            cut(HeaderKind::Extension(next), at + 40 + offset);
        }
        offset += header.len;
        next = header.next;
        let Some(found) = header.fragment else { continue };
        // An atomic fragment (RFC 6946) within another fragment does not make it whole.
        if fragment.is_none_or(|outer: Fragment| !outer.more) || found.offset > 0 {
            fragment = Some(found);
        }
        if found.offset > 0 {
            break;
        }
    }
    let reach = if offset <= chain.len() { Reach::Payload } else { Reach::Protocol };
    Ip { payload_at: at + 40 + offset, fragment, announced: next, reach }
}

/// The first header of this IP packet that is cut or malformed.
#[cold]
pub(crate) fn fault(network: Network, bytes: &[u8], at: usize) -> Option<IpFault> {
    let rest = bytes.get(at..).unwrap_or_default();
    match network {
        Network::Ipv4 => match Ipv4::new(rest) {
            None => Some((HeaderKind::Ipv4, at, false)),
            Some(ip) if ip.version() != 4 || ip.header_len() < 20 => {
                Some((HeaderKind::Ipv4, at, true))
            }
            Some(ip) if ip.header_len() > rest.len() => {
                Some((HeaderKind::Ipv4Options, at + 20, false))
            }
            Some(_) => None,
        },
        Network::Ipv6 if Ipv6::new(rest).is_some_and(|ip| ip.version() != 6) => {
            Some((HeaderKind::Ipv6, at, true))
        }
        Network::Ipv6 => {
            let mut first = None;
            walk_ipv6(bytes, at, |header, at| {
                first.get_or_insert((header, at, false));
            });
            first
        }
    }
}
