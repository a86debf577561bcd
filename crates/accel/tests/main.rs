//! The integration tests of the crate, as one binary.

mod common;
mod contract;
mod kernels;
mod pipeline;
