//! The integration tests of the crate, as one binary.

mod cases;
mod columns;
mod files;
mod live;
#[cfg(feature = "rtr")]
mod rtr;
