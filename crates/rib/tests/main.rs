//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod builder;
mod checkpoint;
mod engines;
mod live;
mod rib;
mod snapshot;
mod vrfs;
