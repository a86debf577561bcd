//! The integration tests of the crate, as one binary.

mod common;
mod contract;
mod cuda;
mod every_kernel;
mod kernels;
mod pipeline;
mod resident;
