//! BGP as a collector: [`Neighbour`]s open sessions, we take their routes and announce nothing.
//!
//! ```text
//!             connected: OPEN           OPEN: KEEPALIVE            KEEPALIVE: End-of-RIB
//!   no link ─────────────────► OpenSent ───────────────► OpenConfirm ──────────────────► Established
//!      ▲                          │                          │                              │
//!      └──────────────────────────┴──── NOTIFICATION, silence, the connection is gone ──────┘
//! ```
//!
//! A [`BgpSession`] is that machine (RFC 4271, 8, for a speaker that opens no connections: Connect and Active do not
//! exist), and a [`Protocol`](crate::Protocol): bytes and times in, verbs to a [`Listener`](fibula_rib::Listener) and
//! bytes to be sent out. Messages are decoded by [`fibula_ingest::bgp`], which MRT and BMP use, too. Messages of
//! another library would have to be translated to its updates, with the allocations that it avoids, and the library
//! would decide which malformed UPDATE ends a session.
//!
//! **Supported**: IPv4 and IPv6 unicast (RFC 4760), four-byte AS numbers (RFC 6793), next hops of IPv6 for IPv4
//! (RFC 8950), several paths a prefix if wanted (ADD-PATH, RFC 7911), messages of 65,535 bytes (RFC 8654), route
//! refresh with and without demarcation (RFC 2918, RFC 7313), graceful restart of the neighbour (RFC 4724),
//! texts of a shutdown (RFC 9003), TCP MD5 (`set_md5_key`, on Linux). Not: long-lived graceful restart, the N bit of
//! RFC 8538, BGP roles, TCP-AO.
//!
//! # When routes are withdrawn
//!
//! | what happens | the routes |
//! |---|---|
//! | the connection is lost; the neighbour is silent for its hold time | stay: for the restart time that it announced with a family, else for [`Neighbour::hold`] |
//! | a NOTIFICATION, of theirs or ours | are withdrawn at once: the session has ended (RFC 4271, 8.2.2) |
//! | the session is established again | are stale but stay; those not announced again are withdrawn when every family has its End-of-RIB |
//! | BoRR .. EoRR | the same; the other family is requested as well, since a table marks a peer, not a family |
//! | the table is full ([`Limits`](fibula_rib::Limits)) | stay; the neighbour gets Cease/Out of Resources |
//! | our process ends ([`Protocol::close`](crate::Protocol::close)) | stay for the checkpoint |
//!
//! The F bit of graceful restart (forwarding state was kept) is ignored: no packets are forwarded by this table, and
//! sweeping at once would remove routes until the neighbour has sent them again. A neighbour without graceful restart
//! need not send an End-of-RIB; its table counts as complete when no UPDATE came for [`Neighbour::quiet`]. BIRD pauses
//! for up to two seconds before the last of its routes, so a shorter time sweeps too early.
//!
//! # Two connections
//!
//! RFC 4271, 6.8 compares BGP identifiers because both ends may open a connection at the same time. We open none, so
//! a second one always means that the neighbour has given up the first. [`Protocol::admit`](crate::Protocol::admit)
//! lets it replace the first one, unless that is established and the neighbour does not support graceful restart (RFC
//! 4724, 4.2, against RFC 4271, 6.8). Then it is refused, and a KEEPALIVE is sent on the first one: a machine that has
//! restarted resets it, and the neighbour's next attempt is accepted. A [`Hub`](crate::net::Hub) calls this before it
//! gives a connection to a session. With an owner of sockets that does not, the newest connection wins.
//!
//! # Errors
//!
//! A malformed UPDATE whose routes can all be read withdraws them and is an [`Event`](crate::Event); any other one ends
//! the session (RFC 7606; [`reset`](fibula_ingest::bgp::reset)). An UPDATE of a family that the session has not
//! negotiated is ignored. LOCAL_PREF is used only from neighbours of our own AS. Which routes are refused, such as
//! those with our own AS in their path, is a table on the page of [`SessionRules`](fibula_ingest::bgp::SessionRules).
//!
//! ```
//! use std::time::Duration;
//!
//! use fibula_feeds::bgp::{BgpSession, Neighbour};
//! use fibula_feeds::{FeedError, Protocol};
//! use fibula_rib::Rib;
//!
//! let neighbour = Neighbour::new("192.0.2.9".parse()?, 65000, "10.0.0.1".parse()?);
//! neighbour.check()?;
//! let (mut session, mut rib, mut out) = (BgpSession::new(neighbour), Rib::default(), Vec::new());
//! session.connected(Duration::ZERO, &mut rib, &mut out)?;
//! assert_eq!((out.len(), out[18]), (81, 1)); // our OPEN
//! let error = session.bytes(Duration::ZERO, b"GET / HTTP/1.1", &mut rib, &mut out).unwrap_err();
//! assert_eq!(out[81 + 18..], [3, 1, 1]); // a NOTIFICATION
//! assert_eq!(
//!     error.to_string(),
//!     "neighbour 192.0.2.9: a message does not begin with the marker of BGP \
//!      (sent: Message Header Error/Connection Not Synchronized)"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agreed;
mod link;
#[cfg(target_os = "linux")]
mod md5;
mod message;
mod neighbour;
mod notification;
mod resync;
mod routes;
mod session;

pub use agreed::{Agreed, Graceful, Refresh};
#[cfg(target_os = "linux")]
pub use md5::{LONGEST_KEY, set_md5_key};
pub use neighbour::Neighbour;
pub use notification::Notification;
pub use session::BgpSession;
