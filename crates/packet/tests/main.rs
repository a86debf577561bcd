//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod agreement;
mod common;
mod fields;
mod forward;
mod prefixes;
