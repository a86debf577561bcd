//! Reads pcap and pcapng files, and writes pcap.
//!
//! We do not use one of the known parsers, because this must hold for any input: a packet costs no allocation,
//! a damaged block is distinguished from one that has not arrived in full (the known parsers ask for more data
//! in both cases), and lengths are checked before they are used.
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
