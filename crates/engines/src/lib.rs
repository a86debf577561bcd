//! The lookup engines of **fibula**: published longest-prefix-match schemes under one contract,
//! [`fibula_core::Engine`].
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
//! | [`sail`] | IPv4 | bitmaps and arrays at fixed levels: 16, 24, 32 for lookups, others for updates; many tables over one set | two or three loads, smaller than DIR-24-8; SAIL_B, SAIL_U and SAIL_L are patched in place |
//! | [`miht`] | IPv4, IPv6 | a B+ tree over the first 16 or 32 bits, behind each key a priority trie | tables that change all the time: a changed route changes only its own node; the rival of Bloomfwd's paper |
//! | [`bloomfwd`] | IPv4, IPv6 | a Bloom filter and a hash table for each of a few lengths, which prefixes are expanded to | for measurements of hashing, as in Bloomfwd's paper; patched in place |
//! | [`bsd_radix`] | IPv4, IPv6 | the BSD routing table: single bits down, masks on the way back up | the baseline of DXR's paper; patched in place |
//! | [`cp_trie`] | IPv4, IPv6 | a trie of 16 bits and then 8 a level, its bitmaps with counts beside their words | a baseline of PlanB's paper |
//! | [`hbs`] | IPv4, IPv6 | a hash table for each length, and a binary search over the lengths by markers | a baseline of PlanB's paper |
//! | [`lc_trie`] | IPv4, IPv6 | a trie with compressed paths and levels in nodes of 32 bits, over a sorted vector of routes | a baseline of SAIL's paper |
//! | [`lulea`] | IPv4 | the answers' changes as bits at levels 16, 24 and 32, coded through a table of all masks | a baseline of SAIL's paper |
//! | [`neurotrie`] | IPv4, IPv6 | a trie with a stride for each node, chosen within a budget of memory | a baseline of PlanB's paper |
//! | [`pbf`] | IPv4, IPv6 | a Bloom filter and a hash table for each length, 18.755 bits a prefix | a baseline of SAIL's paper, for its memory |
//! | [`tree_bitmap`] | IPv4, IPv6 | a multi-bit trie with two bitmaps a node, for its own routes and its children; nothing is pushed down | a baseline of SAIL's paper |
//! | [`radix`] | IPv4, IPv6 | path-compressed binary trie | the baseline of DXR's paper, and the last resort: it takes any table |
//! | [`lower_bound`] | IPv6, IPv4 | the same intervals in a sorted array, branching binary search | the baseline that PlanB is compared with |
//!
//! Programs choose an engine by name at run time through [`engines`] and [`find`], or let [`auto()`]
//! choose the best one for the table; it gives its reason.
//!
//! Each engine has a folder: `mod.rs` explains the scheme, `build.rs` compiles routes, `lookup.rs` looks up one
//! address in plain safe code, `batch.rs` many over vector lanes. Engines never import each other.

mod auto;
pub mod bloomfwd;
pub mod bsd_radix;
mod common;
pub mod cp_trie;
pub mod dir24_8;
pub mod dxr;
pub mod hbs;
pub mod lc_trie;
pub mod lower_bound;
pub mod lulea;
pub mod matchline;
pub mod miht;
pub mod neurotrie;
pub mod pbf;
pub mod planb;
pub mod poptrie;
pub mod radix;
mod registry;
pub mod runmap;
pub mod sail;
pub mod tree_bitmap;
pub mod wideleaf;

pub use auto::{Auto, auto, auto_for, suited};
pub use registry::{AnyEngine, BoxedEngine, EngineFamily, Entry, engines, find};

/// The caches that [`auto_for()`] chooses by.
pub use fibula_simd::Caches;
/// The instruction sets that engines are built for; the default is the best of this machine.
pub use fibula_simd::Isa;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
