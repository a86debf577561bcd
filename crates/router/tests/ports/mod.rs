//! Ports of the system, on pairs of virtual interfaces. It needs root; without, the tests say so.

mod frames;
mod host;
mod kinds;
mod lost;
mod world;
