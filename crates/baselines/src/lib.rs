//! Published longest-prefix-match schemes that the engines of **fibula** are compared with, under the same contract and
//! the same tests. The command and the programs of the papers have them; a program that only looks up addresses does
//! without.
//!
//! | scheme | families | what it is | compared in |
//! |---|---|---|---|
//! | [`sail`] | IPv4 | bitmaps and arrays at fixed levels: 16, 24, 32 for lookups, others for updates; many tables over one set | two or three loads, smaller than DIR-24-8; patched in place |
//! | [`miht`] | IPv4, IPv6 | a B+ tree over the first 16 or 32 bits, behind each key a priority trie | tables that change all the time: a changed route changes only its own node; the rival of Bloomfwd's paper |
//! | [`bloomfwd`] | IPv4, IPv6 | a Bloom filter and a hash table for each of a few lengths, which prefixes are expanded to | for measurements of hashing, as in Bloomfwd's paper; patched in place |
//! | [`bsd_radix`] | IPv4, IPv6 | the BSD routing table: single bits down, masks on the way back up | the baseline of DXR's paper; patched in place |
//! | [`cp_trie`] | IPv4, IPv6 | a trie of 16 bits and then 8 a level, its bitmaps with counts beside their words | a baseline of PlanB's paper |
//! | [`hbs`] | IPv4, IPv6 | a hash table for each length, and a binary search over the lengths by markers | a baseline of PlanB's paper; patched in place |
//! | [`lc_trie`] | IPv4, IPv6 | a trie with compressed paths and levels in nodes of 32 bits, over a sorted vector of routes | a baseline of SAIL's paper |
//! | [`lulea`] | IPv4 | the answers' changes as bits at levels 16, 24 and 32, coded through a table of all masks | a baseline of SAIL's paper |
//! | [`neurotrie`] | IPv4, IPv6 | a trie with a stride for each node, chosen within a budget of memory | a baseline of PlanB's paper |
//! | [`pbf`] | IPv4, IPv6 | a Bloom filter and a hash table for each length, 18.755 bits a prefix | a baseline of SAIL's paper, for its memory |
//! | [`tree_bitmap`] | IPv4, IPv6 | a multi-bit trie with two bitmaps a node, for its own routes and its children; nothing is pushed down | a baseline of SAIL's paper |
//!
//! **[`sail`]** (IPv4; `sail-l`, `sail-l8`, `sail-l-wide`, `sail-l-prefetch`, `sail-b`,
//! `sail-u`, and `sail-m` for many tables at once). Arrays at the levels 16, 24 and 32, or bitmaps at more
//! of them. SAIL_L is two or three loads from less memory than DIR-24-8; SAIL_B and SAIL_U change a word
//! or two for a route. All are patched in place. Limits: those of 16-bit chunk numbers and
//! hops, but for the wide form.
//!
//! **[`bloomfwd`]** (IPv4, IPv6; `bloomfwd`, `bloomfwd-compiled`, `bloomfwd-baseline`, `bloomfwd-naive`).
//! Prefixes expanded to a few lengths, a Bloom filter and a hash table for each; the lengths for IPv6 are
//! chosen by dynamic programming. Most of a lookup is hashing, done in vectors for many keys at a time. Use it to
//! compare hashing with tries, or to repeat its paper; patched in place. Limits: the memory
//! for the expanded prefixes, 1 GiB unless configured.
//!
//! **[`miht`]** (IPv4, IPv6; `miht`, `miht-batch`). A B+ tree over the first 16 or 32 bits,
//! with a priority trie for each key. A lookup makes ten or more loads, but a changed route changes only its own
//! node, in a microsecond, and a build is never due. Use it where a table has more changes than lookups,
//! or as Bloomfwd's rival. Limits: 2^24 hops.
//!
//! **[`tree_bitmap`]** (IPv4, IPv6; `tree-bitmap`, `tree-bitmap-split`). A multi-bit trie with a
//! bitmap for the routes that end in a node and one for its children; nothing is pushed down. A baseline of
//! SAIL's paper, for comparisons. Limits: 2^30 nodes.
//!
//! **[`lc_trie`]** (IPv4, IPv6; `lc-trie`, `lc-trie-wide`). A trie with compressed paths and levels,
//! which finds an entry in a sorted vector of routes. A baseline of SAIL's paper, for comparisons. Limits: 2^20 nodes
//! and such entries, but for the wide form.
//!
//! **[`lulea`]** (IPv4; `lulea`, `lulea-wide`). Where the answers change, as bits at levels 16, 24
//! and 32, coded through a table of all masks. A baseline of SAIL's paper, for comparisons. Limits: 16,383 hops and
//! 2^14 chunks of a kind; wide 22,271 hops.
//!
//! **[`hbs`]** (IPv4, IPv6; `hbs`, `hbs-batch`, `hbs-basic`). A hash table for each length of prefixes, and a binary
//! search over the lengths, led by markers; `hbs` prunes it by where markers come from, and `hbs-batch` interleaves
//! the lookups of a batch. A baseline of PlanB's paper, for comparisons; patched in place. Limits: 2^32 slots of all
//! tables.
//!
//! **[`pbf`]** (IPv4, IPv6). A Bloom filter and a hash table for each length of prefixes, in the sizes for
//! which SAIL's paper computes 1.003 probes of tables a lookup. A baseline of that paper, for its memory on a
//! chip. Limits: 2^32 slots of all tables.
//!
//! **[`cp_trie`]** (IPv4, IPv6; `cp-trie`). A trie of 16 bits and then 8 a level, whose bitmaps
//! have a count beside each word. A baseline of PlanB's paper, for comparisons. Limits: 2^32 leaves.
//!
//! **[`bsd_radix`]** (IPv4, IPv6; `bsd-radix`). The routing table of the BSD kernels: down by single bits
//! to a leaf, then back up by masks; patched in place. The baseline of DXR's paper, for comparisons. Limits: 2^31
//! addresses.
//!
//! **[`neurotrie`]** (IPv4, IPv6). A trie with a stride for each node, chosen by a dynamic program within a
//! budget of memory; the paper learns them. A baseline of PlanB's paper; it builds slowly. Limits: 2^27 records.
//!
//! ```
//! use fibula_core::{Hop, Prefix, Routes};
//! use fibula_engines::Isa;
//!
//! let routes: Routes<u32> = [(Prefix::ALL, Hop::new(7))].into_iter().collect();
//! let engine = fibula_baselines::registry().find("sail-l").expect("a baseline").build(&routes, Isa::best())?;
//! assert_eq!(engine.lookup(1), Hop::new(7));
//! # Ok::<(), fibula_core::BuildError>(())
//! ```

pub mod bloomfwd;
pub mod bsd_radix;
mod common;
pub mod cp_trie;
mod entries;
pub mod hbs;
pub mod lc_trie;
pub mod lulea;
pub mod miht;
pub mod neurotrie;
pub mod pbf;
pub mod sail;
pub mod tree_bitmap;

pub use entries::{entries, registry};
