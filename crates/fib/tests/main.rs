//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod answers;
mod common;
mod dated;
mod mapped;
mod plain;
mod policy;
mod prefixes;
mod threads;
