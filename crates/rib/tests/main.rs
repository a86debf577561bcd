//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod appear;
mod apply;
mod builder;
mod checkpoint;
mod copies;
mod engines;
mod given_up;
mod live;
mod peers;
mod refused;
mod replaced;
mod rib;
mod snapshot;
mod stopped;
mod sweep;
mod vrfs;
