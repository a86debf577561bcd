//! The tools that fibula is tested and measured with.
//!
//! - [`Oracle`]: the reference engine, slow, complete and obviously right.
//! - [`PlainRib`]: the reference of a RIB, plain maps of every peer's routes.
//! - [`tables`]: small hard tables; [`probes`]: the addresses where engines are most likely wrong.
//! - [`fib`]: tables of any size with the prefix lengths and nesting of the Internet in a year.
//! - [`traffic`]: streams of keys as the papers' benchmarks use them, and replay of a file.
//! - [`case`]: answers that were worked out by hand, or reported as wrong.
//! - [`classbench`]: sets of packet filters, packets for them, and their oracle.
//! - [`StoredTables`]: an engine's tables as a file has them, to be loaded whole or damaged.
//! - [`TableShape`], [`HopShares`]: the properties of a table.
//! - [`liar`]: engines that answer wrongly, for the tests of checks.
//! - `measure` (feature `measure`): timed loops on pinned threads, over checked answers.
//! - [`check`](check::check): an engine against the oracle; [`conforms!`]: the suite that every
//!   engine passes.
//!
//! Everything is seeded and gives the same result on every machine.
#![forbid(unsafe_code)]

pub mod case;
pub mod check;
mod churn;
pub mod classbench;
pub mod conform;
pub mod fib;
mod hop_shares;
mod hops;
pub mod liar;
#[cfg(feature = "measure")]
pub mod measure;
mod oracle;
pub mod plain_rib;
pub mod probes;
mod rng;
mod shape;
mod stored;
pub mod tables;
pub mod traffic;
mod zipf;

pub use churn::RouteChurn;
pub use hop_shares::HopShares;
pub use oracle::Oracle;
pub use plain_rib::PlainRib;
pub use rng::Rng;
pub use shape::TableShape;
pub use stored::StoredTables;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
