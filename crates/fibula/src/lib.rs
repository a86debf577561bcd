//! IP longest-prefix match: which route covers this address?
//!
//! Routes are compiled into an *engine*: an immutable table in memory that answers lookups, best in
//! batches, from any number of threads. IPv4 addresses are `u32`, IPv6 addresses `u128`, both in host
//! byte order, and everything is generic over the two.
//!
//! # Quick start
//!
//! ```
//! use fibula::{Hop, Lookup, Prefix, Routes, engines};
//!
//! // A route is a prefix and a hop: a small number that means something to you.
//! let routes: Routes<u32> = [
//!     ("10.0.0.0/8".parse::<Prefix<u32>>()?, Hop::new(7)),
//!     ("10.1.0.0/16".parse()?, Hop::new(9)),
//! ]
//! .into_iter()
//! .collect();
//!
//! // Compile them with the engine that is best for this table and this machine.
//! let engine = engines::auto(&routes, engines::Isa::detect()).engine;
//! assert_eq!(engine.lookup(0x0a01_0203), Hop::new(9)); // 10.1.2.3
//! assert_eq!(engine.lookup(0x0a02_0304), Hop::new(7)); // 10.2.3.4
//! assert_eq!(engine.lookup(0x0b00_0000), Hop::NONE); // 11.0.0.0
//!
//! // The fast way is to ask for many addresses at once, 64 to 1,024.
//! let addresses = [0x0a01_0203, 0x0a02_0304, 0x0b00_0000];
//! let mut hops = [Hop::NONE; 3];
//! engine.lookup_batch(&addresses, &mut hops);
//! assert_eq!(hops, [Hop::new(9), Hop::new(7), Hop::NONE]);
//! # Ok::<(), fibula::PrefixError>(())
//! ```
//!
//! Where routes carry more than a number (origin AS, country, next hop), [`rib`] keeps those as columns
//! and hops are the numbers of their rows; it also writes a table with its engines into one file that
//! opens in milliseconds:
//!
//! ```
//! use fibula::rib::{EnginePart, Snapshot, Table, to_bytes};
//! use fibula::{Hop, Lookup, Prefix, Routes, engines};
//!
//! let v6: Routes<u128> = [("2001:db8::/32".parse::<Prefix<u128>>()?, Hop::new(0))].into_iter().collect();
//! let auto = engines::auto(&v6, engines::Isa::detect());
//! let part = EnginePart::of(auto.entry.name, auto.engine.persist());
//! let table = Table::from_routes(Routes::default(), v6);
//!
//! // `rib::write` and `Snapshot::open` do the same with a file.
//! let snapshot = Snapshot::from_bytes(to_bytes(&table, &EnginePart::none(), &part)?)?;
//! let stored = snapshot.family::<u128>();
//! let entry = engines::find::<u128>(stored.engine_name()).ok_or("an unknown engine")?;
//! let engine = entry.load(stored.tables(), stored.hop_count(), engines::Isa::detect())?;
//!
//! let address = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
//! assert_eq!(engine.lookup(address), Hop::new(0));
//! let route = stored.get(stored.matched(address).ok_or("no route")?);
//! assert_eq!(route.prefix.to_string(), "2001:db8::/32");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The engines
//!
//! All of them give the same answers ([`Lookup`] is the contract, one test suite holds them to it),
//! at different cost. If in doubt take [`engines::auto`]: it chooses, falls back where a table exceeds
//! an engine's limits, and says why. The command `fibula bench --table T --engines all` measures them
//! on your table and your machine; numbers without a table and a machine mean nothing.
//!
//! **[`runmap`](engines::runmap)** (IPv4). Our own scheme: a direct table over 18 bits, behind it a
//! bitmap of runs with their hops in the same cache line. Three loads, no branch, no search. Take it
//! for IPv4: 1 to 5 MB for a full Internet table, compiled in 30 ms, patched in place. It loses its
//! advantage where most traffic goes to routes longer than /24. Limits: 4 GiB of records.
//!
//! **[`dxr`](engines::dxr)** (IPv4; `dxr16` to `dxr24`; `dxr` is `dxr18`). A direct table over
//! the first bits answers most addresses at once; the rest bisect the few ranges behind their entry.
//! Take it where memory counts most: a full table is 1 to 5 MB, compiles in tens of milliseconds and
//! patches chunk by chunk. More bits search less and miss the cache more. Limits: none that real tables
//! meet (2^31 ranges; beyond 65,535 hops, or where ranges outgrow its compact entries, it changes to a
//! wider form by itself).
//!
//! **[`dir24_8`](engines::dir24_8)** (IPv4; `dir24-8`, `dir24-8-wide`, each also `-prefetch`). An array
//! over the first 24 bits, chunks of 256 for what is longer. One load for most addresses, of a table of
//! 32 or 64 MB: take it, with prefetching, where a process has that much cache for itself. Limits:
//! 32,767 hops and 32,768 chunks, or 2^31 in the wide form.
//!
//! **[`poptrie`](engines::poptrie)** (IPv4, IPv6; `poptrie16`, `poptrie18`, `poptrie18-batch`). A direct
//! table over 16 or 18 bits, behind it a trie of six bits a level whose nodes find their children by
//! counting bits. Small, and quick for single lookups; deep for IPv6. Limits: 2^31 nodes or leaves.
//!
//! **[`sail`](engines::sail)** (IPv4; `sail-l`, `sail-l8`, `sail-l-wide`, `sail-l-prefetch`, `sail-b`,
//! `sail-u`, and SAIL_M for many tables at once). Arrays at the levels 16, 24 and 32, or bitmaps at more
//! of them. SAIL_L is two or three loads from less memory than DIR-24-8; SAIL_B and SAIL_U change a word
//! or two for a route. Limits: those of 16-bit chunk numbers and hops, but for the wide form.
//!
//! **[`wideleaf`](engines::wideleaf)** (IPv6). Ours: a direct table over 16 bits, at most three tables whose
//! strides suit the routes, then half a cache line of keys, searched by one comparison; a batch goes through
//! these stages side by side. The default for IPv6, patched in place. Routes longer than /48 cost a
//! bisection. Limits: 2^30 hops and networks with such routes together, some ten million prefixes.
//!
//! **[`planb`](engines::planb)** (IPv6, IPv4). The table's elementary intervals in a linearised B+-tree
//! with as many keys in a node as a vector register holds, so that a level costs one comparison; a
//! batch keeps many lookups in flight. `planb-single` and `planb-compiled` are steps of its paper's
//! ablation. Take it for IPv6 where batches are small or routes longer than /48
//! many. Networks that routes longer than /64 divide are searched in an extra level, which costs
//! nothing where there are none. Limits: 2^32 hops and such networks together.
//!
//! **[`bloomfwd`](engines::bloomfwd)** (IPv4, IPv6; `bloomfwd`, `bloomfwd-baseline`, `bloomfwd-naive`).
//! Prefixes expanded to a few lengths, a Bloom filter and a hash table for each; the lengths for IPv6 are
//! chosen by dynamic programming. Most of a lookup is hashing, many at a time in vectors. Take it to
//! measure hashing against tries, or where its paper is the question; patched in place. Limits: memory,
//! which expansion takes: 1 GiB unless configured.
//!
//! **[`miht`](engines::miht)** (IPv4, IPv6; `miht`, `miht-batch`). A B+ tree over the first 16 or 32 bits,
//! behind each key a priority trie: ten or more loads a lookup, but a route changes its own node and no
//! other, in a microsecond, and a build is never due. Take it where a table changes more than it is asked,
//! or as Bloomfwd's rival. Limits: 2^24 hops.
//!
//! **[`radix`](engines::radix)** (IPv4, IPv6). A path-compressed binary trie, the scheme of the BSD
//! kernels: 20 to 30 loads a lookup on a full table, each waiting for the one before, and several times
//! the memory of the others. Take it as a baseline, or for a table that everything else refuses.
//! Limits: 2^31 routes.
//!
//! **[`lower-bound`](engines::lower_bound)** (IPv6, IPv4). PlanB's intervals in a sorted array with a
//! plain binary search: the baseline that PlanB is measured against. Take it to see what the tree is
//! worth. Limits: those of `planb`.
#![forbid(unsafe_code)]

pub use fibula_core::*;

#[doc(inline)]
pub use fibula_engines as engines;
#[doc(inline)]
pub use fibula_rib as rib;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
