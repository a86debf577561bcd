//! The integration tests of the crate, as one binary.

mod aspa;
mod cases;
mod columns;
mod files;
mod live;
mod paths;
#[cfg(feature = "rtr")]
mod rtr;
