//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod answers;
mod conformance;
mod exhaustive;
mod expansion;
mod miri;
mod narrow;
mod persistence;
mod real;
mod real_tables;
