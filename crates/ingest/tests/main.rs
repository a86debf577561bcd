//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod bgpdump;
mod bgpkit;
mod bmp;
mod common;
mod driver;
mod formats;
mod fpm;
mod misread;
mod mrt_files;
mod read;
