//! Tests of the router.

mod control;
mod forward;
#[cfg(target_os = "linux")]
mod ports;
mod pipeline;
