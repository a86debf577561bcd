//! Annotates addresses: adds the longest matching prefix and its values to every address of a CSV or TSV table, JSON
//! lines, a plain list, a packet capture, or a Parquet or Arrow file.
//!
//! Rows keep their bytes and their order. Columns are added to them, named after the address column: `src_ip_prefix`,
//! `src_ip_asn`. Input is read in blocks, and the addresses of a block are looked up together. Memory does not grow
//! with the input, so a pipe may be of any length.
//!
//! ```
//! use fibula_annotate::{AnnotateOptions, Annotator, Column, LogFormat};
//! use fibula_core::{Attributes, Change, Update, Value};
//! use fibula_fib::{Fib, FibOptions};
//! use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
//!
//! let mut builder = TableBuilder::new(BuilderOptions::default());
//! builder.begin_source("countries", "text", &[("country".into(), ColumnKind::Str)], false, None);
//! let country = [Value::Str("CH")];
//! let change = Change::Announce(Attributes::Values(&country));
//! builder.apply(&Update::new("192.0.2.0/24".parse()?, change));
//! // Or `Fib::open("table.fib")?`.
//! let fib = Fib::of_table(builder.finish()?, &FibOptions::default())?;
//!
//! let mut options = AnnotateOptions::default();
//! options.columns = vec![Column::Name("src".into())];
//! options.add = vec!["prefix".into(), "country".into()];
//! let annotator = Annotator::new(fib, LogFormat::Csv, &options)?;
//!
//! let input = "src,port\n192.0.2.7,53\n10.0.0.1,80\n";
//! let mut output = Vec::new();
//! let summary = annotator.annotate(input.as_bytes(), &mut output)?;
//! assert_eq!(
//!     String::from_utf8(output)?,
//!     "src,port,src_prefix,src_country\n192.0.2.7,53,192.0.2.0/24,CH\n10.0.0.1,80,,\n"
//! );
//! assert_eq!((summary.rows, summary.matched, summary.unmatched), (2, 1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Parquet and Arrow are the feature `columnar`, which is on by default.
//!
//! Rules for all formats: an empty cell gets empty values. Text that is not an address is counted and gets empty
//! values, or is an error with [`AnnotateOptions::strict`]. IPv4-mapped IPv6 addresses (`::ffff:192.0.2.7`) are
//! looked up as IPv4 addresses ([`mapped_v4`](fibula_core::mapped_v4)).
#![forbid(unsafe_code)]
// The parts that rows and columns share have functions for columns.
#![cfg_attr(not(feature = "columnar"), allow(dead_code))]

mod added;
mod address;
mod block;
mod clock;
#[cfg(feature = "columnar")]
mod columns;
mod error;
mod fault;
#[cfg(feature = "columnar")]
mod files;
mod format;
mod formats;
mod input;
mod options;
mod pipeline;
mod rows;
mod rules;
mod table;
mod write;

pub use address::Address;
#[cfg(feature = "columnar")]
pub use columns::{Annotated, ColumnAnnotator, PreparedTable};
pub use error::AnnotateError;
#[cfg(feature = "columnar")]
pub use files::{ColumnInput, Progress, TableBatch, TableColumn, panic_is_caught, read_table};
pub use format::{LogFormat, UnknownFormat};
pub use options::{AnnotateOptions, Column, ExportRows, Header, Only, PrefixForm, TextForm};
pub use pipeline::counts::Counts;
pub use pipeline::summary::{Summary, Top};
pub use rows::Annotator;
pub use rows::stream::{
    CellTypes, NoHost, StreamFormat, StreamHost, StreamOptions, annotate_stream,
};
pub use rules::{RuleAnnotator, RuleTotals};
#[cfg(feature = "columnar")]
pub use rules::{RuleColumnAnnotator, RuleOutput};
pub use table::{LookupFamily, LookupTable};
pub use write::{MAX_PREFIX, put_prefix, write_ip, write_prefix};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
