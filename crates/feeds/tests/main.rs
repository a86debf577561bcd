//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod bgp;
mod common;
mod live;
#[cfg(unix)]
mod net;
mod session;
