//! Tests of the router.

mod control;
mod forward;
mod pipeline;
#[cfg(target_os = "linux")]
mod ports;
#[cfg(target_os = "linux")]
mod xdp;
