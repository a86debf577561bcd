//! The history of routes in files: which route a prefix or an address had at a time, since when and until when.
//!
//! ```text
//!   changes ─► log ───────────────► part ─────────────────────► merged
//!              by time, appended;   the same, by key: made      the state of all prefixes at its beginning,
//!              also in memory       when the log is long        and the changes of a day, by key
//! ```
//!
//! A [`HistoryFolder`] writes; its [`HistoryReader`]s answer from any number of threads. A question about a time reads
//! one merged file, the parts behind it, at most 64, and memory, and for the end of a route the files of later days.
//! What it reads of a file is the index and a block for each prefix.
//!
//! - **Never a guess.** The files say which times they have ([`Recorded`]). A time of which a change may be missing is
//!   an error ([`HistoryError::Missing`]), and an answer names the gaps between its `since` and its `until`.
//! - **After a gap** the owner reads its tables, and [`Resync`] compares them with what was recorded last: the
//!   differences are written, not the tables.
//! - **Bounded.** Memory by the log, files by age and bytes ([`HistoryOptions`]).
//! - **Damage** is found by checksums. It is an error with the file and the byte for the questions that need this part
//!   of the file, and for no others.
//!
//! ```
//! use fibula_core::{Attributes, Value};
//! use fibula_history::{HistoryBreak, HistoryFolder, HistoryOptions, HistoryQuestion, RouteKey, RouteRecord};
//! use fibula_rib::AttributeSet;
//!
//! let folder = tempfile::tempdir()?;
//! let mut history = HistoryFolder::open(folder.path(), HistoryOptions::default())?;
//! history.begin(1_000, HistoryBreak::Begin)?;
//! let key = RouteKey { table: "bgp".into(), prefix: "192.0.2.0/24".parse()? };
//! let set = AttributeSet::new(&Attributes::Values(&[Value::Int(7)]));
//! history.write(&[(key.clone(), RouteRecord::new(2_000, None, Some(set)))])?;
//! history.write(&[(key.clone(), RouteRecord::new(5_000, None, None))])?;
//! history.cover(6_000);
//!
//! let reader = history.reader();
//! let then = |time| reader.at(HistoryQuestion::Prefix(key.prefix), time, None);
//! let route = &then(3_000)?.tables[0].routes[0];
//! assert_eq!((route.record.time, route.until), (2_000, Some(5_000)));
//! assert_eq!(then(5_500)?.tables[0].absent, Some((Some(5_000), None)));
//! assert!(then(7_000).is_err(), "nothing is known of it so far");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod block;
mod bytes;
mod error;
mod folder;
mod frame;
mod log;
mod memory;
mod merge;
mod open;
mod options;
mod pieces;
mod reader;
mod record;
mod resync;
mod search;
mod segment;

pub use error::HistoryError;
pub use folder::HistoryFolder;
pub use options::{HistoryNote, HistoryOptions};
pub use reader::{
    HistoryAnswer, HistoryQuestion, HistoryReader, PastChanges, RouteThen, TableThen,
};
pub use record::{HistoryBreak, HistoryGap, Recorded, RouteKey, RouteRecord};
pub use resync::{FoundRoute, Resync};
