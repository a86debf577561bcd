//! Tests of the router.

mod forward;
#[cfg(target_os = "linux")]
mod ports;
