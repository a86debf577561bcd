//! A software router: packets in, longest-prefix match, packets out.
//!
//! ```text
//!   port ──Receive──► burst of Packets ──► Forwarder: check, look up, Egress, rewrite ──► Transmit──► port
//!                        │                     │
//!                        └── slots of a Pool   └── counted by reason: what is not sent
//! ```
//!
//! Packets lie in the slots of a [`Pool`], one area of memory; a [`Packet`] owns a slot and is handed from
//! stage to stage. A [`port`] gives bursts of them and takes bursts. What a hop of the lookup engines means is in
//! an [`Egress`] table: interfaces, MAC addresses, shares of equal-cost paths. A [`Forwarder`] does what RFC 1812 and
//! RFC 8200 say with a burst.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod control;
pub mod egress;
pub mod forward;
mod free;
mod leaving;
pub mod pipeline;
pub mod pool;
pub mod port;

pub use egress::{Egress, Paths};
pub use forward::{ForwardOptions, Forwarder, Outcome, View};
pub use pipeline::{Pipeline, PipelineOptions};
pub use pool::{Packet, Pool};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
