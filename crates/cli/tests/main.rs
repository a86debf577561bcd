//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod bad_input;
mod checks;
mod columns;
mod common;
#[cfg(unix)]
mod crash;
mod data;
mod real_data;
mod replay;
#[cfg(unix)]
mod serve;
mod tables;
