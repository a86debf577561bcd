//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod bgp;
mod bmp;
mod common;
#[cfg(target_os = "linux")]
mod daemons;
mod fpm;
#[cfg(target_os = "linux")]
mod kernel;
mod left_behind;
mod live;
#[cfg(unix)]
mod net;
mod session;
