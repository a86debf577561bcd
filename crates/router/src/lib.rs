//! A software router: packets in, longest-prefix match, packets out.
//!
//! ```text
//!   port ──Receive──► burst of Packets ──► Forwarder: check, look up, Egress, rewrite ──► Transmit──► port
//!                        │                     │
//!                        └── slots of a Pool   └── counted by reason: what is not sent
//! ```
//!
//! Packets are stored in the slots of a [`Pool`], one area of memory. A [`Packet`] owns a slot and is passed from
//! stage to stage. A [`port`] delivers and accepts bursts of packets. An [`Egress`] table has the meaning of the lookup
//! engines' hops: interfaces, MAC addresses, shares of equal-cost paths. A [`Forwarder`] processes a burst according to
//! RFC 1812 and RFC 8200.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod control;
pub mod egress;
pub mod forward;
mod free;
mod leaving;
pub mod pipeline;
pub mod pool;
pub mod port;

fibula_publish::sync!();

pub use egress::{Egress, Paths};
pub use forward::{ForwardOptions, Forwarder, Outcome, View};
pub use pipeline::{Pipeline, PipelineOptions};
pub use pool::{Packet, Pool};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
