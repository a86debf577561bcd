//! The open table: finds the routes that cover an address, with their values.
//!
//! A [`Fib`] is a table with compiled engines. It is opened from a snapshot file, or made from a
//! [`Table`](fibula_rib::Table) in memory or from a generation of a [`Live`](fibula_rib::Live) table. Clones share
//! the table, and any number of threads may use it at the same time.
//!
//! ```
//! use fibula_core::{Hop, Routes};
//! use fibula_fib::{Fib, FibOptions};
//! use fibula_rib::Table;
//!
//! # let list = [("10.0.0.0/8", 0), ("10.1.0.0/16", 1)];
//! # let v4: Routes<u32> = list.map(|(p, h)| (p.parse().unwrap(), Hop::new(h))).into_iter().collect();
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("t.fib");
//! # Fib::of_table(Table::from_routes(v4, Routes::default()), &FibOptions::default())?.write(&path)?;
//! let fib = Fib::open(path)?; // a file that `fibula build` or `Fib::write` wrote
//! let found = fib.lookup("10.1.2.3".parse()?).ok_or("no route")?;
//! assert_eq!(found.to_string(), "10.1.0.0/16 hop=1");
//! assert_eq!(fib.covering("10.1.2.3".parse::<std::net::IpAddr>()?)?.count(), 2);
//!
//! // Many addresses of a family at once, the fast way: a hop each, the row of its values.
//! let mut hops = [Hop::NONE; 2];
//! fib.lookup_batch(&[0x0a01_0203_u32, 0x0b00_0000], &mut hops);
//! assert_eq!(hops, [Hop::new(1), Hop::NONE]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Questions that each kind of table answers
//!
//! | | snapshot, table in memory | generation of a live table |
//! |---|---|---|
//! | [`Fib::lookup`] | prefix, hop, values of the table's columns | hop, attribute set, its values by name; no prefix |
//! | [`Fib::lookup_batch`] | yes | yes, by the generation's engine |
//! | [`Fib::covering`], [`Fib::covered`], [`Fib::exact`], [`Fib::overlapping`], [`Fib::routes`], [`Fib::routes_where`], [`Fib::routes_with`] | yes | [`FibError::NoRoutes`]: ask the [`Rib`](fibula_rib::Rib) |
//! | [`Fib::columns`], [`Fib::provenance`] | yes | empty: a generation has attribute sets instead of columns |
//! | [`Fib::len`], [`Fib::is_empty`] | yes | 0 and `true`, whatever its engines find |
//! | route numbers and prefix lengths | yes | no route has a number: `Hop::NONE` |
//! | follows changes | no | no: open another one, see [`Fib::of_live`]; [`FibOptions`] chooses a live table's engines |
//!
//! # IPv4-mapped addresses
//!
//! `::ffff:a.b.c.d` is looked up as `a.b.c.d`, and prefixes below `::ffff:0:0/96` are treated the same way.
//! [`mapped_v4`](fibula_core::mapped_v4) defines this policy. It applies to every lookup of an `IpAddr` or an
//! [`AnyPrefix`](fibula_core::AnyPrefix). The addresses of a `u128` batch are not converted.
#![forbid(unsafe_code)]

mod aggregate;
mod by_need;
mod candidates;
mod chosen;
mod compress;
mod dated;
mod error;
mod fib;
mod found;
mod open_family;
mod open_tables;
mod policy;
mod select;
mod space;

pub use aggregate::aggregate;
pub use chosen::Chosen;
pub use compress::compress;
pub use dated::DatedFib;
pub use error::FibError;
pub use fib::{Fib, Matches};
pub use found::Match;
pub use open_family::OpenFamily;
pub use open_tables::OpenTables;
pub use policy::{EngineChoice, FibOptions, SEARCH};
pub use space::{Blocks, prefix_lengths};

// Types in the signatures of `Fib`.
#[doc(no_inline)]
pub use fibula_engines::Isa;
#[doc(no_inline)]
pub use fibula_rib::dated::{Ask, prefix_of};
#[doc(no_inline)]
pub use fibula_rib::{
    ColumnKind, Columns, Dates, IndexedRoutes, Moment, Pod, Provenance, TimeFormat, Typed,
};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
