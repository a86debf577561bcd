//! Collectors on loopback: what is sent is in the files, or counted.
#![cfg(target_os = "linux")]

mod common;
mod formats;
mod forward;
mod loss;
mod own;
mod restart;
mod tables;
mod vrfs;
