//! Measures engines: keys of a kind of traffic, the oracle's answers to them, timed loops on
//! pinned threads. `fibula bench` and the papers' experiments use it.
//!
//! An engine's answers are checked before it is timed ([`differences`]), and the checksum of every timed run is compared
//! once more ([`fold`]).
#![forbid(unsafe_code)]

mod check;
mod loops;
mod numbers;
mod traffic;

pub use check::{answers, differences};
pub use loops::{LookupMode, TimedRun, cores, dispatch, fold, run};
pub use numbers::{median, rate, rounded};
pub use traffic::TrafficInput;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
