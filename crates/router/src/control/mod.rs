//! The router's state other than routes: links, neighbours, and the egress paths of routes.
//!
//! ```text
//!   kernel ── links, addresses, neighbours ──► Links ─┐
//!                        (rtnetlink)                  ├─► egress() ─► Paths ── published ──► workers: Views
//!   workers ── next hops of new generations ──► Catalogue ─┘                                   │
//!      ▲                                                                                       │
//!      └────────────── Resolve::want: packets wait for a neighbour ◄───────────────────────────┘
//! ```
//!
//! One thread reads the kernel's socket, and makes new [`Paths`](crate::Paths) when a link goes up or down, a neighbour
//! is found or lost, or workers report new next hops. Routes do not pass through it: workers take generations
//! of a [`Live`](fibula_rib::Live) table themselves ([`LiveViews`]).
//!
//! # Neighbours
//! The kernel does ARP and neighbour discovery; the control requests it, as if the kernel had a packet to send
//! (NTF_USE), and gets the result by notification. Stale entries are requested again at once, since the kernel does not
//! see that packets use them. A stale neighbour is used meanwhile; a failed one is not. This needs CAP_NET_ADMIN;
//! without it neighbours have to be found by other means, and the refusals are counted.
//!
//! # Invariants
//! - The group of a hop is that of the worker's pinned generation, and paths are used only if they know it: see
//!   `catalogue.rs`. `model.rs` tries schedules of this.
//! - Published paths never change. Workers only move on to later ones.
//! - Requests are bounded: their number, and the rate of the same one.

mod catalogue;
mod compile;
mod figures;
#[cfg(target_os = "linux")]
mod handle;
mod links;
#[cfg(test)]
mod model;
mod published;
mod resolve;
mod run;
mod views;
mod watch;
mod weights;

pub use compile::{PortLink, egress, index_of_port};
pub use figures::{ControlError, ControlEvent, ControlFigures, ControlOptions};
#[cfg(target_os = "linux")]
pub use handle::Control;
pub use links::Links;
pub use resolve::Resolve;
pub use views::{LiveViews, StaticViews};
pub use watch::Watched;
pub use weights::shares;
