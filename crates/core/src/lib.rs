//! Addresses, prefixes, routes and the engine contract of **fibula**.
//!
//! # Longest-prefix match in one page
//!
//! A *prefix* such as `10.1.0.0/16` contains all addresses that begin with the same 16 bits. A *route* gives a
//! prefix a *next hop*: the action for packets (or log lines) with an address in the prefix. Prefixes nest:
//! `10.1.0.0/16` is inside `10.0.0.0/8`, and the longer one matches an address in both. Finding the longest one
//! is *longest-prefix match* (LPM).
//!
//! Two prefixes either nest or are disjoint; they never overlap in part. So a table of *n* routes cuts the address
//! space into at most *2n + 1* *elementary intervals*, and all addresses of an interval have the same answer
//! ([`Routes::ranges`]). Interval searches (DXR, PlanB) look for the interval of an address; tries (radix, Poptrie)
//! walk the address's bits; direct tables (DIR-24-8, SAIL) expand short prefixes until an array index is enough. All
//! of them compile the same [`Routes`] and must give the same answers: the contract is [`Lookup`] and [`Engine`].
//!
//! ```
//! use fibula_core::{Hop, Prefix, Routes};
//!
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse::<Prefix<u32>>()?, Hop::new(7)),
//!     ("10.1.0.0/16".parse()?, Hop::new(9)),
//! ]
//! .into_iter()
//! .collect();
//!
//! // The elementary intervals cover the whole space, gaps included.
//! let hops: Vec<Hop> = routes.ranges().map(|r| r.hop).collect();
//! assert_eq!(hops, [Hop::NONE, Hop::new(7), Hop::new(9), Hop::new(7), Hop::NONE]);
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```
//!
//! The crate is `no_std` (with `alloc`), has no dependencies and no `unsafe` code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod addr;
mod any_engine;
mod engine;
mod error;
mod family;
mod grouped;
mod hop;
mod mapped;
mod narrow;
mod next_hops;
mod patch;
mod persist;
mod prefix;
mod ranges;
mod routes;
mod update;

pub use addr::{Addr, Family};
pub use any_engine::{AnyEngine, BoxedEngine, stored, unstored};
pub use engine::{Engine, Lookup, Memory};
pub use error::{BuildError, LoadError, PrefixError};
pub use family::{FamilyType, PerFamily};
pub use grouped::grouped;
pub use hop::Hop;
pub use mapped::mapped_v4;
pub use narrow::{Hops16, narrow_batch};
pub use next_hops::{NextHop, NextHops, RouteKind};
pub use patch::{Follow, Patched};
pub use persist::{Persist, SharedBytes, TableRef, TableSource};
pub use prefix::{AnyPrefix, Prefix};
pub use ranges::{Range, Ranges};
pub use routes::{Route, Routes};
pub use update::{
    Aggregator, Attributes, BgpAttributes, Change, ColumnKind, ScalarType, Update, Value, Vrf,
};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
