//! Ports of the system, on pairs of virtual interfaces. It needs root; otherwise the tests report that they were
//! skipped.

mod frames;
mod host;
mod kinds;
mod lost;
mod world;
