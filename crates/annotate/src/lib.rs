//! Annotates columns of addresses: for every address of a CSV or TSV table, of JSON lines, of a plain
//! list or of a packet capture, what the longest matching prefix says about it.
//!
//! Rows keep their bytes and their order; columns are added to them, named after the address column:
//! `src_ip_prefix`, `src_ip_asn`. Input is read in blocks, the addresses of a block are looked up
//! together, and memory does not grow with the input, so it works in a pipe of any length.
//!
//! ```
//! use fibula_annotate::{AnnotateOptions, Annotator, Column, Format};
//! use fibula_core::{Attributes, Change, Update, Value};
//! use fibula_rib::{BuilderOptions, ColumnKind, EnginePart, Snapshot, TableBuilder};
//!
//! # struct Stored<'a>(&'a Snapshot);
//! # impl<A: fibula_rib::StoredFamily> fibula_core::Lookup<A> for Stored<'_> {
//! #     fn lookup(&self, addr: A) -> fibula_core::Hop {
//! #         let routes = self.0.family::<A>();
//! #         routes.matched(addr).map_or(fibula_core::Hop::NONE, |i| routes.get(i).hop)
//! #     }
//! #     fn lookup_batch(&self, addrs: &[A], hops: &mut [fibula_core::Hop]) {
//! #         for (addr, hop) in addrs.iter().zip(hops) { *hop = self.lookup(*addr); }
//! #     }
//! #     fn memory(&self) -> fibula_core::Memory { fibula_core::Memory::default() }
//! # }
//! let mut builder = TableBuilder::new(BuilderOptions::default());
//! builder.begin_source("countries", "text", &[("country".into(), ColumnKind::Str)], false, None);
//! let country = [Value::Str("CH")];
//! let change = Change::Announce(Attributes::Values(&country));
//! builder.apply(&Update::new("192.0.2.0/24".parse()?, change));
//! let table = builder.finish()?;
//! let bytes = fibula_rib::to_bytes(&table, &EnginePart::none(), &EnginePart::none())?;
//! let snapshot = Snapshot::from_bytes(bytes)?;
//! # let (v4, v6) = (Stored(&snapshot), Stored(&snapshot));
//!
//! let mut options = AnnotateOptions::new(Format::Csv);
//! options.columns = vec![Column::Name("src".into())];
//! options.add = vec!["prefix".into(), "country".into()];
//! // `v4` and `v6` are engines: loaded from the snapshot, or built from its routes.
//! let annotator = Annotator::new(&snapshot, &v4, &v6, options)?;
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
//! What the formats have in common: cells that are empty are empty; text that is not an address is
//! counted and gets empty values, or is an error under [`AnnotateOptions::strict`]; v4-mapped IPv6
//! addresses (`::ffff:192.0.2.7`) are looked up as the IPv4 addresses that they stand for.
#![forbid(unsafe_code)]

mod address;
mod annotator;
mod block;
mod columns;
mod engines;
mod error;
mod files;
mod formats;
mod input;
mod options;
mod render;
mod summary;
mod write;

pub use address::Address;
pub use annotator::Annotator;
pub use columns::{Annotated, ColumnAnnotator, ColumnOptions, Counts, PrefixForm, TextForm};
pub use engines::Engines;
pub use error::AnnotateError;
pub use files::{FileOptions, Progress};
pub use options::{AnnotateOptions, Column, Format, Header, UnknownFormat};
pub use summary::{Summary, Top};
