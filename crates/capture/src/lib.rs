//! The files around packets: pcap and pcapng are read, pcap is written.
//!
//! Read here and not by a crate because of what must hold on any input: a packet costs no allocation,
//! a damaged block is told from one that has not arrived in full (the known parsers ask for more data
//! in both cases), and lengths are bounded before they are believed.
#![forbid(unsafe_code)]

mod bytes;
mod container;
mod write;

pub use container::{Container, Interface, LIMIT, Packet, Step, Time};
pub use write::{header, record};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
