//! Measures engines: keys of a kind of traffic, the oracle's answers to them, timed loops on
//! pinned threads. `fibula bench` and the papers' experiments use it.
//!
//! An engine's answers are checked before it is timed ([`differences`]), and the checksum of every timed run is
//! compared once more ([`fold`]). A [`Stamp`] says on which machine, of which commit and when.
//!
//! ```
//! use fibula_core::Routes;
//! use fibula_testkit::measure::{answers, differences};
//! use fibula_testkit::{Oracle, tables};
//!
//! let routes: Routes<u32> = tables::dense(1, 100);
//! let oracle = Oracle::new(&routes);
//! let keys = [1, 2, 3];
//! assert!(differences(&oracle, &keys, &answers(&oracle, &keys), 2).is_empty());
//! ```

mod check;
mod loops;
mod numbers;
mod stamp;
mod traffic;

pub use check::{answers, differences};
pub use loops::{LookupMode, TimedRun, cores, dispatch, fold, run};
pub use numbers::{confidence, mean, median, rate, rounded};
pub use stamp::{CacheLevel, Commit, HugePages, Processor, Stamp, utc};
pub use traffic::TrafficInput;
