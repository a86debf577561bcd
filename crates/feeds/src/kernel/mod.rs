//! The kernel's own forwarding tables, over its routing socket.
//!
//! ```text
//!              dump: next hops, IPv4, IPv6               all three are done
//!   connected ─────────────────────────────► Resync ─────────────────────────► Up
//!                                              ▲                               │ a dump was interrupted, a link
//!                                              └───────────────────────────────┘ changed, time has passed
//! ```
//!
//! The socket receives notifications from the beginning, so that no change between the dump and later
//! notifications is missed. While a dump runs, all earlier routes are stale but stay; at its end,
//! those that were not in the dump are withdrawn. The tables are dumped again
//!
//! - when notifications were lost because the socket's buffer was full (ENOBUFS): the device is
//!   opened again, and this is counted in the remark `overruns`;
//! - when a dump was interrupted by a change (NLM_F_DUMP_INTR; the remark `interrupted`);
//! - when an interface went up or down or an address was removed: the kernel then changes IPv4 routes without
//!   notifications. Changes within [`KernelOptions::settle`] cause one dump;
//! - when notifications did not show which of several routes with the same metric is used;
//! - and every [`KernelOptions::every`], in case of other changes without notification.
//!
//! The main table is the source's table, and the others are named by their number: `kernel`, `kernel/255`. A route's
//! metric is its path identifier, and the lowest is used. [`KernelProtocol`] is the protocol, without I/O;
//! [`KernelSocket`] is the socket; [`endpoint`] combines both for a [`Hub`](crate::net::Hub).

mod protocol;
mod request;
mod socket;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fibula_rib::Peer;

use crate::net::{Endpoint, ProtocolFactory, Retry, StreamDevice};

pub use protocol::KernelProtocol;
pub use socket::KernelSocket;

/// Options for following the kernel's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// The peer of the routes.
    pub peer: Peer,
    /// The name of the main table. The others have this name, a slash and their number. Empty for the global one.
    pub table: String,
    /// How long the routes of a lost socket stay.
    pub hold: Duration,
    /// How long a withdrawal is held back, because the next message may turn it into a replacement.
    pub holding: Duration,
    /// How long to wait for further changes before a change causes a new dump.
    pub settle: Duration,
    /// The interval of dumps without a cause; `None` for never.
    pub every: Option<Duration>,
    /// The maximum time between two parts of the kernel's answer.
    pub patience: Duration,
    /// The socket's buffer for notifications, in bytes. Without CAP_NET_ADMIN the system has a limit of its own
    /// (`net.core.rmem_max`, often 208 KiB).
    pub room: usize,
}

impl Default for KernelOptions {
    /// 2 minutes of hold time, 20 ms, half a second, every 15 minutes, 30 s of patience, 64 MiB.
    fn default() -> Self {
        Self {
            peer: Peer::new(None, 0),
            table: String::new(),
            hold: Duration::from_secs(120),
            holding: Duration::from_millis(20),
            settle: Duration::from_millis(500),
            every: Some(Duration::from_secs(15 * 60)),
            patience: Duration::from_secs(30),
            room: 64 << 20,
        }
    }
}

/// Sockets that overflowed, counted by their device for the protocol to show.
pub type Overruns = Arc<AtomicU64>;

/// The kernel's tables as a source of a [`Hub`](crate::net::Hub), in the network namespace of the thread that
/// runs it. The session's name becomes the [source](Peer::source) of the peer.
pub fn endpoint(options: KernelOptions) -> Endpoint {
    let overruns = Overruns::default();
    let (room, counted) = (options.room, Arc::clone(&overruns));
    let open = move || -> io::Result<Box<dyn StreamDevice>> {
        Ok(Box::new(KernelSocket::open(room, Arc::clone(&counted))?))
    };
    let settings = format!("{options:?}");
    let protocol = move |who: crate::net::SessionContext| -> Box<dyn crate::Protocol> {
        let peer = Peer { source: Some(who.name), ..options.peer.clone() };
        let options = KernelOptions { peer, ..options.clone() };
        Box::new(KernelProtocol::new(options, Arc::clone(&overruns)).with_events(who.events))
    };
    Endpoint::Device {
        what: "rtnetlink".to_owned(),
        open: Box::new(open),
        speaker: ProtocolFactory { settings, protocol: Arc::new(protocol) },
        retry: Retry { first: Duration::from_millis(100), longest: Duration::from_secs(10) },
    }
}
