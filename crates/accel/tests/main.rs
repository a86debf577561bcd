//! The integration tests of the crate, as one binary.

mod common;
mod contract;
mod cuda;
mod kernels;
mod pipeline;
mod resident;
