//! The lookup engines of **fibula**: our own and the fastest published longest-prefix-match schemes, under one
//! contract, [`fibula_core::Engine`]. The crate `fibula-baselines` has more published schemes, to compare with.
//!
//! | engine | families | scheme | when to use it |
//! |---|---|---|---|
//! | [`wideleaf`] | IPv6 | ours: a direct table over 16 bits, three tables of fitted strides, then a cache line of keys | the default for IPv6, patched in place |
//! | [`matchline`] | IPv6 | ours: a direct table, tables of fitted strides, then a cache line of whole prefixes compared at once | many routes of /49 to /64; patched in place |
//! | [`planb`] | IPv6, IPv4 | elementary intervals in a linearised 9-ary (IPv4: 17-ary) B+-tree, one vector comparison a level | batches of 16 and less; the fastest published scheme for IPv6 |
//! | [`runmap`] | IPv4 | ours: a direct table over 18 bits, behind it bitmaps of runs with their hops, most often in one cache line | the default for IPv4, patched in place |
//! | [`dxr`] | IPv4 | a direct table over the first 16 to 24 bits, behind it range tables searched by bisection | small and quickly built, patched in place |
//! | [`poptrie`] | IPv4, IPv6 | a direct table over 16 or 18 bits, behind it a 64-ary trie whose nodes count bits to find children and leaves | small and fast for IPv4 where addresses hit long prefixes; patched in place |
//! | [`dir24_8`] | IPv4 | a direct table over 24 bits, behind it chunks of 256 | one load for most addresses, of tables of 32 MB; patched in place; the baseline of DXR's paper |
//! | [`radix`] | IPv4, IPv6 | path-compressed binary trie | to compare with, and the last resort: it takes any table |
//! | [`lower_bound`] | IPv6, IPv4 | the same intervals in a sorted array, branching binary search | the baseline that PlanB is compared with |
//!
//! Programs choose an engine by name at run time through a [`Registry`], to which they can add their own engines, or
//! let [`auto()`] choose the best one for the table; it gives its reason.
//!
//! Each engine has a folder: `mod.rs` explains the scheme, `build.rs` compiles routes, `lookup.rs` looks up one
//! address in plain safe code, `batch.rs` many over vector lanes. Engines never import each other.

mod auto;
pub mod common;
pub mod dir24_8;
pub mod dxr;
pub mod lower_bound;
pub mod matchline;
pub mod planb;
pub mod poptrie;
mod product;
pub mod radix;
mod registry;
pub mod runmap;
pub mod wideleaf;

pub use auto::{Auto, auto};
pub use fibula_core::{AnyEngine, BoxedEngine, unstored};
pub use registry::{Entries, Entry, Registry};

/// The caches that [`Registry::auto_for`] chooses by.
pub use fibula_simd::Caches;
/// The instruction sets that engines are built for; the default is the best of this machine.
pub use fibula_simd::Isa;
/// Measures what is built, on machines with a clock.
pub use fibula_simd::Stopwatch;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
