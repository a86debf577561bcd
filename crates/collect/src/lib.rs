//! Collects exports of flows: receives the datagrams of NetFlow, IPFIX and sFlow, looks the addresses of each flow up
//! in a table, and writes the flows with the table's values.
//!
//! ```text
//! exporter -> socket -> receive: a thread that only receives
//!                         | queue, bounded by bytes; what it has no room for is dropped and counted by exporter
//!                         v
//!                       work: a thread that decodes (fibula-flows), collects columns,
//!                         | looks a batch up in one table (fibula-annotate), and writes
//!                         v
//!                       | talkers: counts the last minutes by some columns
//!                       | forward: sends them on as IPFIX
//!                       files: Parquet, Arrow, JSON lines, RowBinary; renamed into place when they are complete
//! ```
//!
//! A [`Collector`] has several such lanes if it has several sockets. Each has a decoder of its own: the system gives
//! all datagrams of an exporter's address and port to the same socket, so templates are where their records come.
//!
//! - **Invariant** Each received datagram is decoded, refused, or dropped and counted.
//! - **Invariant** Flows of a batch are looked up in one state of each table.
//! - **Invariant** A file has its name only when it is complete, and never replaces another one.
//! - **Invariant** Memory is bounded by the queues, the decoders' limits, a batch and a row group for each socket.
//!
//! Linux only: the crate is empty elsewhere.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod collector;
mod columns;
mod counts;
mod error;
mod files;
mod forward;
#[cfg(test)]
mod model;
mod options;
mod own;
mod queue;
mod receive;
mod rows;
mod table;
mod talkers;
mod templates;
mod vrfs;
mod work;

fibula_publish::sync!();

pub use collector::Collector;
pub use counts::{CollectCounts, ExporterCounts};
pub use error::CollectError;
pub use options::{CollectOptions, FlowFormat, FlowForward, FlowOutput, FlowPartition, FlowPlace};
pub use table::FlowTable;
pub use talkers::{FlowSums, Talker, Talkers, TopTalkers};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
