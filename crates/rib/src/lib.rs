//! Routing tables with attributes, and the snapshot file.
//!
//! This crate has the routes of all feeds with their attributes, a file format for them that opens within
//! milliseconds, and tables that change while they are read.
//!
//! - [`TableBuilder`] takes [`Update`](fibula_core::Update)s from decoders, keeps the routes of every
//!   peer, selects one peer and gives a [`Table`].
//! - A [`Table`] is [`Routes`](fibula_core::Routes) of both families whose hops are row numbers of its
//!   [`Columns`]: the distinct combinations of attributes.
//! - [`write()`] stores a table and compiled engines as one immutable file; [`Snapshot::open`] maps it.
//!   The format is described in [`snapshot`].
//!
//! For a table that changes while it is read:
//!
//! - a [`Rib`] keeps the routes of every peer, in several VRFs, and determines the best path and the reason;
//! - a [`Live`] table follows it: a paced log, a compiler thread that patches or builds engines, and
//!   [`Reader`]s, which see one [`Generation`] for each batch; an [`Audit`] continuously compares the two;
//! - a [`Checkpoint`] writes the RIB to disk; [`Rib::open`] continues from it;
//! - a [`Plain`] table has one number for each route instead, and neither peers nor threads: its writer publishes.
//!
//! The crate does not depend on the engines: it stores and returns their tables by name, and an
//! [`EngineSource`] names the engines that suit a live table.
//!
//! ```
//! use fibula_core::{Attributes, Change, Update, Value};
//! use fibula_rib::{BuilderOptions, ColumnKind, EnginePart, Snapshot, TableBuilder};
//!
//! let mut builder = TableBuilder::new(BuilderOptions::default());
//! builder.begin_source("countries", "text", &[("country".into(), ColumnKind::Str)], false, None);
//! for (prefix, country) in [("192.0.2.0/24", "CH"), ("2001:db8::/32", "NL")] {
//!     let values = [Value::Str(country)];
//!     let change = Change::Announce(Attributes::Values(&values));
//!     builder.apply(&Update::new(prefix.parse()?, change));
//! }
//! let table = builder.finish()?;
//!
//! // Without engines here; `EnginePart` carries the tables of a compiled one.
//! let bytes = fibula_rib::to_bytes(&table, &EnginePart::none(), &EnginePart::none())?;
//! let snapshot = Snapshot::from_bytes(bytes)?;
//! let stored = snapshot.family::<u32>();
//! let index = stored.matched(0xc000_0207).unwrap(); // 192.0.2.7
//! let route = stored.get(index);
//! assert_eq!(route.prefix.to_string(), "192.0.2.0/24");
//! assert_eq!(snapshot.columns().value(0, route.hop.index().unwrap()), Value::Str("CH"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod array;
mod atomic_file;
mod audit;
mod builder;
mod checkpoint;
mod choice;
mod chunks;
mod columns;
mod compiler;
pub mod dated;
mod differences;
mod feed;
mod frozen;
mod history;
mod indexed;
mod intern;
mod layers;
mod listener;
mod live;
mod log;
mod mapping;
#[cfg(test)]
mod model;
mod plain;
mod publisher;
mod replaced;
pub mod rib;
pub mod snapshot;
mod status;
mod table;
mod typed;

fibula_publish::sync!();

pub use array::AlignedBytes;
pub use atomic_file::{AtomicFile, remove_unfinished};
pub use audit::Audit;
pub use builder::{BuilderOptions, PeerChoice, TableBuilder};
pub use checkpoint::{Checkpoint, Restored, table_choice};
pub use choice::{EngineSource, Maker, Makers};
pub use columns::{Columns, ColumnsBuilder};
pub use dated::{DatedBuilder, DatedTable, Dates, Moment, TableDate, TimeFormat, Timelines};
pub use differences::{AddressCount, Difference, Differences};
pub use feed::{FeedDigest, FeedMark};
pub use fibula_core::{ColumnKind, ScalarType};
pub use frozen::Frozen;
pub use history::{Changed, History, Since};
pub use indexed::IndexedRoutes;
pub use layers::layers;
pub use listener::{FeedEvent, Listener, PathCounts, SessionPaths};
pub use live::{Live, LiveOptions};
pub use log::Pacing;
pub use plain::{Plain, PlainCounters, PlainError, PlainGeneration, PlainMemory, PlainReader};
pub use publisher::{AttributeChunk, AttributeTable, Generation, Reader};
pub use replaced::{Mention, Replacement};
pub use rib::{
    AttributeSet, Change, Changes, Decision, Limits, Path, Peer, Preference, Rib, RibMemory,
    RibPeers, SetTexts, Step, ValueNames,
};
pub use snapshot::{
    AnySnapshot, DatedSnapshot, EnginePart, Loading, Pod, Snapshot, SnapshotError, StoredRoutes,
    Written, measure, to_bytes, write,
};
pub use status::{Count, Counters, EngineRefusal, Event, Latencies, LiveError};
pub use table::{LeftOut, Provenance, SelectedPeer, SourceRecord, Table, TableError};
pub use typed::Typed;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
