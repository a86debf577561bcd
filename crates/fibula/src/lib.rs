//! IP longest-prefix match: which route covers this address?
//!
//! A [`Fib`] is an open table. [`build`] makes one of what `fibula build` takes: networks and ranges as text or CSV,
//! MRT, mmdb, plain or compressed. It answers one address with the longest matching prefix and its values:
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let (text, path) = (folder.path().join("t.csv"), folder.path().join("t.fib"));
//! # std::fs::write(&text, "prefix,asn,country\n8.8.8.0/24,15169,US\n")?;
//! # let name = text.to_str().ok_or("a name in UTF-8")?;
//! use fibula::{Fib, Value};
//!
//! let fib = fibula::build(name)?; // "t.csv", or for instance a RIB of RIPE RIS
//! let found = fib.lookup("8.8.8.8".parse()?).ok_or("no route")?;
//! assert_eq!(found.value("asn"), Some(Value::Int(15169)));
//! assert_eq!(found.to_string(), "8.8.8.0/24 asn=15169 country=US");
//!
//! fib.write(&path)?; // "t.fib", as `fibula build` writes it: mapped, and open in milliseconds
//! assert_eq!(Fib::open(&path)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`sources::TableSources`] has the settings of a build and returns reports, [`ingest`] has the decoders. Both, and
//! the embedded table, are the feature `sources`. A program that only opens snapshots, or makes tables of its own
//! routes, turns it off (`default-features = false`) and compiles half as many crates.
//!
//! Many addresses of a family are looked up at once, hundreds of millions a second on a core. IPv4 addresses are `u32`,
//! IPv6 addresses `u128`, in host byte order. The answers are *hops*, the rows of the table's columns:
//!
//! ```
//! use fibula::rib::Table;
//! use fibula::{Fib, FibOptions, Hop, Routes, Value};
//!
//! // A table can also be made of routes: a prefix and a hop each. `rib::TableBuilder` makes one with values.
//! let v4: Routes<u32> =
//!     [("10.0.0.0/8".parse()?, Hop::new(7)), ("10.1.0.0/16".parse()?, Hop::new(9))].into_iter().collect();
//! let table = Table::from_routes(v4, Routes::default());
//! let fib = Fib::of_table(table, &FibOptions::default())?;
//!
//! // Lookups are fastest in batches of 64 to 1,024 addresses.
//! let addresses = [0x0a01_0203_u32, 0x0a02_0304, 0x0b00_0000]; // 10.1.2.3, 10.2.3.4, 11.0.0.0
//! let mut hops = [Hop::NONE; 3];
//! fib.lookup_batch(&addresses, &mut hops);
//! assert_eq!(hops, [Hop::new(9), Hop::new(7), Hop::NONE]);
//! assert_eq!(fib.columns().value(0, 9), Value::Int(9));
//!
//! // All prefixes that cover an address, and all that a prefix covers.
//! assert_eq!(fib.covering("10.1.2.3".parse::<std::net::IpAddr>()?)?.count(), 2);
//! assert_eq!(fib.covered("10.0.0.0/8".parse::<fibula::AnyPrefix>()?)?.count(), 2);
//! println!("{}", fib.family::<u32>().reason()); // which engine answers, and why
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Live`](rib::Live) table changes while it is read. Changes are collected for some milliseconds; then the tables
//! are patched in threads of their own, and readers take the new ones with their next batch, without locks:
//!
//! ```
//! use fibula::rib::{Live, LiveOptions, Peer, Rib};
//! use fibula::{Attributes, Change, Fib, FibOptions, Hop, Update, Value};
//!
//! let live = Live::start(Rib::default(), &[0], FibOptions::default(), LiveOptions::default(), |_| ())?;
//! let peer = live.peer(Peer::new(None, 64500)); // who announces: each peer has routes of its own
//! let places = live.value_places(&["site"]); // where the values of this name are in an update
//! assert_eq!(places, [0]);
//! let site = Change::Announce(Attributes::Values(&[Value::Str("zurich")]));
//! live.apply(&Update { peer, ..Update::new("10.0.0.0/8".parse()?, site) })?;
//! live.flush()?; // only to see the change at once
//!
//! let mut reader = live.reader::<u32>(0).ok_or("table 0 is followed")?; // one for each thread
//! let mut hops = [Hop::NONE; 2];
//! let table = reader.pin(); // for one batch
//! table.lookup_batch(&[0x0a01_0203, 0x0b00_0000], &mut hops);
//! assert!(table.attributes(hops[0]).is_some() && hops[1] == Hop::NONE);
//!
//! let fib = Fib::of_live(&live, 0).ok_or("table 0 is followed")?; // the table at this moment, for single addresses
//! let found = fib.lookup("10.1.2.3".parse()?).ok_or("no route")?;
//! assert_eq!(found.value("site"), Some(Value::Str("zurich")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Underneath, routes are compiled into an *engine*: an immutable table in memory that answers from any number
//! of threads ([`Lookup`]). `fibula::engines::auto(&routes, Isa::detect())` makes one without a table around it.
//! [`rib`] has the tables with their columns, the snapshot file, and tables that change while they are read.
//!
//! # The engines
//!
//! All engines give the same answers ([`Lookup`] is the contract, and one test suite checks all of them),
//! at different cost. If in doubt, use [`engines::auto`]: it chooses an engine, takes another one where a table exceeds
//! the first one's limits, and gives the reason. The command `fibula bench --table T --engines all` measures them
//! on your table and your machine; rates hold only for the table and the machine that they were measured on.
//!
//! ## Which one?
//!
//! Take `auto`, unless one of these rows describes your program better. Millions of lookups a second in batches of 256,
//! nanoseconds of a lookup that waits for the previous one, and microseconds of a single changed route, all for
//! addresses of random prefixes and 256 unrelated hops, on one core of an Intel Xeon with AVX-512 (family 6, model 167;
//! 2 MB of L2) that nothing else used.
//!
//! | IPv4, 900,000 routes | take it | MB | batches | single | change |
//! |---|---|--:|--:|--:|--:|
//! | **`runmap`** | always at first: batches and single lookups, tables that change, routes of any length | 4.0 | 322 | 38 | 3.3 |
//! | `dir24-8-prefetch` | if 32 MB of cache are free: from 2 or 3 million routes on (`auto` times it there), or with a change to every 2,000 lookups | 34 | 247 | 57 | 1.1 |
//! | `dxr16`, `dxr18` | where memory is most important | 3.0, 3.6 | 97, 110 | 69, 66 | 3.4, 5.1 |
//!
//! | IPv6, 220,103 routes | | MB | batches | single | change |
//! |---|---|--:|--:|--:|--:|
//! | **`wideleaf`** | always at first | 2.7 | 267 | 20 | 6.1 |
//! | `planb` | small batches in a table of ranges with many long ones; a table that does not change: a build takes 7 ms | 3.5 | 170 | 31 | - |
//! | `miht-batch` (IPv4, too; a baseline) | with a change to every 80 lookups or less | 7.4 | 17 | 242 | 1.6 |
//!
//! `poptrie` comes second in most of these columns. `radix` takes any table that all others refuse. `lower-bound` is
//! for comparison with PlanB. The crate `fibula-baselines` has the published schemes that these engines are compared
//! with, `miht-batch` and SAIL among them. A program adds them, or [engines of its own](engines::Entry::unstored), to a
//! [`Registry`](engines::Registry), which [`FibOptions::registry`] takes.
//!
//! **[`runmap`](engines::runmap)** (IPv4). Our own scheme: a direct table over 18 bits, behind it a
//! bitmap of runs with their hops in the same cache line. Three loads, no branch, no search. Take it
//! for IPv4: 1 to 5 MB for a full Internet table, compiled in 30 ms, patched in place. Tables of
//! millions of routes are better served by prefetching DIR-24-8. Limits: 4 GiB of records.
//!
//! **[`dxr`](engines::dxr)** (IPv4; `dxr16` to `dxr24`; `dxr` is `dxr18`). A direct table over
//! the first bits answers most addresses at once; for the others, the few ranges of their entry are searched by
//! bisection. Use it where memory is most important: a full table takes 1 to 5 MB, compiles in tens of milliseconds and
//! is patched chunk by chunk. With more bits, searches are shorter and cache misses more frequent. Limits: none that
//! real tables reach (2^31 ranges; beyond 65,535 hops, or where ranges outgrow its compact entries, it changes to a
//! wider form by itself).
//!
//! **[`dir24_8`](engines::dir24_8)** (IPv4; `dir24-8`, `dir24-8-wide`, each also `-prefetch`). An array
//! over the first 24 bits, and chunks of 256 for longer prefixes. Most addresses need one load, from a table of
//! 32 or 64 MB. Use it, with prefetching, where a process has that much cache for itself. Limits:
//! 32,767 hops and 32,768 chunks, or 2^31 in the wide form.
//!
//! **[`poptrie`](engines::poptrie)** (IPv4, IPv6; `poptrie16`, `poptrie18`, `poptrie18-batch`). A direct
//! table over 16 or 18 bits, behind it a trie of six bits a level whose nodes find their children by
//! counting bits. Small, and quick for single lookups; deep for IPv6; patched in place. Limits: 2^31 nodes or leaves.
//!
//! **[`wideleaf`](engines::wideleaf)** (IPv6). Ours: a direct table over 16 bits, at most three tables whose
//! strides suit the routes, then keys in a cache line or half of one, searched by one comparison. The lookups of a
//! batch are in the same stage at the same time. How records are laid out and words are read is measured on the
//! machine. The default for IPv6, patched in place. Routes longer than /48 cost another stage. Limits: 2^30 hops and
//! networks with such routes together, some ten million prefixes.
//!
//! **[`matchline`](engines::matchline)** (IPv6). Ours: a direct table, tables whose strides suit the routes, then a
//! cache line of up to seven whole prefixes with their hops, all compared at once: the first one that covers the
//! address is the longest match. Take it where many routes are /49 to /64 long, as `auto` does: 2.3 to 3.6 MB for
//! 200,000 to 270,000 routes. It is patched in place. Limits: 2^30 hops and networks with routes longer than /64
//! together, 2^24 words of tables (some ten million prefixes).
//!
//! **[`planb`](engines::planb)** (IPv6, IPv4). The table's elementary intervals in a linearised B+-tree
//! with as many keys in a node as a vector register holds, so that a level costs one comparison; a
//! batch keeps many lookups in flight. `planb-single` and `planb-compiled` are steps of its paper's
//! ablation; `planb-128` has nodes of 128 bytes, for machines with such cache lines. Take `planb` for
//! IPv6, without fast gathers (Zen 4), where batches have 16 addresses or less. Networks that routes
//! longer than /64 divide are searched in an extra level, which costs nothing where there are none.
//! Limits: 2^32 hops and such networks together.
//!
//! **[`radix`](engines::radix)** (IPv4, IPv6). A path-compressed binary trie, the BSD scheme
//! without the way back. A lookup in a full table makes 20 to 30 loads, each waiting for the previous one, and the
//! table takes several times the memory of the others. Use it as a baseline, or for a table that all other engines
//! refuse. Limits: 2^31 routes.
//!
//! **[`lower-bound`](engines::lower_bound)** (IPv6, IPv4). PlanB's intervals in a sorted array with a
//! plain binary search: the baseline that PlanB is measured against. Use it to see how much the tree
//! gains. Limits: those of `planb`.
#![forbid(unsafe_code)]

#[cfg(feature = "sources")]
pub mod sources;

#[cfg(feature = "sources")]
pub use sources::build;

#[doc(inline)]
pub use fibula_fib::{
    EngineChoice, Fib, FibError, FibOptions, Isa, Match, OpenFamily, Pod, Typed, aggregate,
};

pub use fibula_core::*;

#[doc(inline)]
pub use fibula_engines as engines;
#[cfg(feature = "sources")]
#[doc(inline)]
pub use fibula_ingest as ingest;
#[doc(inline)]
pub use fibula_rib as rib;

/// The program in the package's README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
