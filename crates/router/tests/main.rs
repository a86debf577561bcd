//! Tests of the router.

#[cfg(target_os = "linux")]
mod ports;
