//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod formats;
mod mmdb;
mod types;
