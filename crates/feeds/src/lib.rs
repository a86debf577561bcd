//! Feeds live tables: turns bytes and generators into the updates of a
//! [`Live`](fibula_rib::Live) table.
//!
//! ```text
//!   file ─────────────► file()    ┐
//!   table ────────────► table()   ├─► Listener ─► LiveFeed: paced, what a checkpoint holds skipped,
//!   generator ────────► churn()   │               checkpoints written ─► Live
//!   bytes of a socket ► Session   │
//!   neighbour of BGP ─► BgpSession┘     (net: sockets, and the loop that owns them)
//! ```
//!
//! Each event of a table is a method of [`Listener`](fibula_rib::Listener): a peer appears, an update arrives, a
//! session ends, a peer starts over, a peer has sent its whole table. A [`Rib`](fibula_rib::Rib) and a
//! [`LiveFeed`] are listeners, and tests have others. The trait differs from [`Sink`](fibula_ingest::Sink), the methods
//! of one source: its peers are those of the table, over all sources, and a call can fail.
//!
//! - Sources that end are functions: [`file()`], [`table()`], [`churn()`].
//! - A source that does not end is a [`Session`]: the owner of the socket passes in the bytes, and calls it
//!   when a connection begins and ends. It marks the routes of a lost connection, and withdraws those that the
//!   next connection does not announce again.
//! - A neighbour that opens BGP sessions is a [`bgp::BgpSession`]: like a `Session`, but it also sends
//!   messages. Both implement [`Protocol`], the interface to the owner of their sockets.
//! - `net` owns sockets, pipes and folders, and runs all of a table's sources on one thread.
//! - [`Clock`] is the only source of time here; tests have their own.
//!
//! ```
//! use std::time::Duration;
//!
//! use fibula_feeds::{LiveFeed, Protocol, Session, SessionOptions};
//! use fibula_fib::FibOptions;
//! use fibula_rib::{Live, LiveOptions, Rib};
//! # use fibula_core::{Attributes, Change, Update};
//! # use fibula_ingest::{Decoder, Sink, StopReason, Tail};
//! # #[derive(Default)]
//! # struct OneALine;
//! # impl Decoder for OneALine {
//! #     fn decode(&mut self, input: &[u8], _: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
//! #         for line in std::str::from_utf8(input).unwrap().lines() {
//! #             let change = Change::Announce(Attributes::Values(&[]));
//! #             sink.update(&Update::new(line.parse().unwrap(), change));
//! #         }
//! #         Ok(input.len())
//! #     }
//! #     fn records(&self) -> u64 { 0 }
//! # }
//!
//! let live = Live::start(Rib::default(), &[0], FibOptions::default(), LiveOptions::default(), |_| {})?;
//! let mut feed = LiveFeed::new(&live);
//! // `OneALine` decodes a prefix a line.
//! let mut session = Session::new(|| Box::new(OneALine), SessionOptions::default());
//!
//! let at = Duration::from_secs;
//! session.connected(at(0), &mut feed, &mut Vec::new())?;
//! session.bytes(at(1), b"10.0.0.0/8\n192.0.2.0/24\n", &mut feed, &mut Vec::new())?;
//! session.disconnected(at(2));
//! // The next connection sends its table again, without 192.0.2.0/24, which stays until then.
//! session.connected(at(3), &mut feed, &mut Vec::new())?;
//! session.bytes(at(4), b"10.0.0.0/8\n", &mut feed, &mut Vec::new())?;
//! assert_eq!(live.with_rib(|rib| rib.len::<u32>(0)), 2);
//! session.tick(at(9), &mut feed, &mut Vec::new())?; // it was quiet for 5 s
//! assert_eq!(live.with_rib(|rib| rib.len::<u32>(0)), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod bgp;
mod board;
mod checkpoints;
mod churn;
mod column_map;
mod error;
mod event;
mod file;
mod instances;
#[cfg(target_os = "linux")]
pub mod kernel;
mod leftovers;
mod listen;
mod live;
mod log_limit;
#[cfg(unix)]
pub mod net;
mod pace;
mod peer_mapper;
mod positions;
mod protocol;
mod session;

pub use board::{Board, SourceStatus};
pub use checkpoints::Checkpoints;
pub use churn::churn;
pub use error::FeedError;
pub use event::{CheckpointFailure, Event};
pub use file::{DAMAGE_KEPT, FileReport, file, table};
pub use instances::{FollowInstance, Instances};
pub use listen::prefixes;
pub use live::LiveFeed;
pub use log_limit::LogLimit;
pub use pace::{Clock, Pacer, Speed, SpeedError, SystemClock};
pub use positions::Positions;
pub use protocol::{ConnectionRefusal, Figures, Protocol, SourceState};
pub use session::{Session, SessionOptions};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
