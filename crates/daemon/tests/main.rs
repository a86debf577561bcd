//! Servers and routers in this process, and configurations that are wrong.

mod alarms;
mod config;
#[cfg(target_os = "linux")]
mod flows;
#[cfg(target_os = "linux")]
mod hijacks;
#[cfg(target_os = "linux")]
mod monitoring;
mod past;
#[cfg(target_os = "linux")]
mod route;
mod rtr;
mod serve;
mod webhook;

use std::thread;
use std::time::{Duration, Instant};

/// Waits until something is there; panics after a minute.
fn until<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}
