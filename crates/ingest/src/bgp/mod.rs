//! BGP messages (RFC 4271, RFC 4760, RFC 6793, RFC 7911), which MRT records contain, and which BMP and BGP itself
//! send over connections.
//!
//! [`framed`] finds the end of a message in a stream, and [`Messages`] decodes a message into updates. Neither does
//! I/O, reads a clock or manages sessions. A decoder borrows everything from the input, and allocates nothing for a
//! message.
//!
//! A message is decoded in the encoding of its [`PeerEncoding`]: with AS numbers of two or four bytes, with or without
//! path identifiers. In a session, the capabilities of the OPEN messages determine it ([`Open::encoding_to`]); in an
//! MRT record, the subtype.
//!
//! IPv4 and IPv6 routes are read, unicast and in VPNs. Routes in VPNs belong to the routing instance of their route
//! distinguisher. MRT records contain only unicast routes. Routes of other families are counted as ignored.
//!
//! Archives and monitored sessions (MRT, BMP) have routes that a router accepted: what can be read of them is kept. A
//! session of ours refuses routes that break one of the [`SessionRules`]; of archives and monitored sessions each
//! broken rule is counted ([`Sink::noted`](crate::Sink::noted)).
//!
//! ```
//! use fibula_ingest::{Collected, bgp::{BgpOptions, Message, Messages, PeerEncoding, framed}};
//!
//! // AS 64500 announces 198.51.100.0/24; a KEEPALIVE follows.
//! let stream = [
//!     &[0xff; 16][..], &[0, 45, 2],    // marker, length, UPDATE
//!     &[0, 0, 0, 18],                  // nothing withdrawn, 18 bytes of attributes
//!     &[0x40, 1, 1, 0],                // ORIGIN
//!     &[0x40, 2, 4, 2, 1, 0xfb, 0xf4], // AS_PATH
//!     &[0x40, 3, 4, 192, 0, 2, 1],     // NEXT_HOP
//!     &[24, 198, 51, 100],
//!     &[0xff; 16], &[0, 19, 4],
//! ]
//! .concat();
//! let (mut messages, mut sink) = (Messages::new(BgpOptions::default()), Collected::default());
//! let from = PeerEncoding { four_byte_asns: false, ..PeerEncoding::default() };
//!
//! let len = framed(&stream)?.expect("all of it is there");
//! assert_eq!(messages.decode(&stream[..len], from, 0, &mut sink)?, Message::Update);
//! assert_eq!(sink.lines, ["+ 0 198.51.100.0/24 192.0.2.1 64500"]);
//! assert_eq!(messages.decode(&stream[len..], from, 0, &mut sink)?, Message::Keepalive);
//! # Ok::<(), fibula_ingest::bgp::DecodeFault>(())
//! ```

mod as_path;
mod attributes;
mod capability;
mod code;
mod cursor;
mod extended;
mod message;
mod nlri;
mod open;
mod reset;
mod rules;
mod vrf;

pub(crate) use attributes::{AttributeContext, PathAttributes, Scratch};
pub(crate) use cursor::{Afi, AsWidth, Cursor};
pub(crate) use message::{Out, decode, ended_family, update};
pub(crate) use nlri::OTHER_FAMILY;
pub(crate) use rules::{PathFacts, RouteFacts};
pub(crate) use vrf::{Vrfs, text as vrf_name};

pub use capability::{AddPathMode, AfiSafi, Capability};
pub use cursor::DecodeFault;
pub use message::{AddPath, Message, Messages, PeerEncoding, framed};
pub use open::Open;
pub use reset::{Reset, reset};
pub use rules::SessionRules;
pub use vrf::RouteDistinguisher;

/// Optional attributes of BGP decoders, which cost more than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BgpOptions {
    /// [`BgpAttributes::as_path`](fibula_core::BgpAttributes::as_path) as text.
    pub as_path: bool,
    /// [`BgpAttributes::communities`](fibula_core::BgpAttributes::communities) as text, including large communities.
    pub communities: bool,
    /// [`BgpAttributes::extended_communities`](fibula_core::BgpAttributes::extended_communities) as text.
    pub extended_communities: bool,
}
