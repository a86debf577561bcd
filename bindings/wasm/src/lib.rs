//! The reader of tables as WebAssembly: opens a table, looks addresses up in it, and annotates logs, in a page of a
//! browser. `demo/` has the page; `./dev site` builds and tests both.
//!
//! The module imports nothing: it has no clock, no files and no network, so nothing that it reads can leave the page.
//! It uses the crates of the command, so formats, detection of columns and answers are those of `fibula annotate`. A
//! table is a snapshot, or anything that `fibula build` reads but Parquet and Arrow.
//!
//! [`Reader`] is the table. [`exports`] are the functions that JavaScript calls.
#![deny(unsafe_code)]

pub mod exports;
mod reader;

pub use reader::{AnnotateRequest, Reader};
