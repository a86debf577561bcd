//! Streaming decoders: routing data in, [`fibula_core::Update`]s out.
//! | format | description | decoder |
//! |---|---|---|
//! | text | `prefix value...` lines, CSV and TSV with named columns, `start,end,value` ranges | [`text::TextDecoder`] |
//! | MRT | files of route collectors and daemons: TABLE_DUMP, TABLE_DUMP_V2, BGP4MP, BGP4MP_ET, BGP of 1999 | [`mrt::MrtDecoder`] |
//! | BMP | routers' reports of their BGP peers to monitoring stations | [`bmp::BmpDecoder`] |
//! | RIS Live | updates that RIPE's route collectors receive, as lines of JSON | [`ris::RisDecoder`] |
//! | mmdb | MaxMind's database files | [`mmdb::MmdbDecoder`] |
//! | FPM | FRR's messages to a forwarding plane | [`fpm::FpmDecoder`] |
//! | rtnetlink | a kernel's messages about its routes | [`netlink::NetlinkDecoder`] |
//! | JSON | the ranges that cloud providers publish; arrays and objects of prefixes | by [`read`] |
//! | Parquet, Arrow | tables of data frames and databases | by [`read`], with [`ReadOptions::columnar`] |
//! | lines of fixed forms | registries' `delegated` files, `bgpdump -m`, `show ip bgp`, `ip route` | by [`read`] |
//!
//! A [`Decoder`] gets bytes and calls a [`Sink`]; it does no I/O, uses no clock and never panics
//! on any input. A [`Driver`] connects it with an input that arrives in pieces, pauses and breaks off.
//! Most callers use [`read`]: it opens a file or standard input, decompresses gzip,
//! bzip2, xz or zstd, detects the format from the content and drives the decoder. [`bgp`] has the messages
//! that MRT records, BMP and BGP sessions share.
//!
//! ```
//! use fibula_core::{AnyPrefix, Attributes, Change, Update, Value};
//! use fibula_ingest::{Collected, Decoder, Tail, text::TextDecoder};
//!
//! let feed = b"# prefix  origin\n192.0.2.0/24 64500\n2001:db8::/32 64501\n192.0.2.300/32 1\n";
//! let mut sink = Collected::default();
//! TextDecoder::default().decode(feed, Tail::End, &mut sink)?;
//!
//! assert_eq!(sink.lines, ["192.0.2.0/24 = 64500", "2001:db8::/32 = 64501"]);
//! // The bad line is reported, not swallowed.
//! assert_eq!((sink.damage[0].record, sink.damage[0].offset), (4, 56));
//! # Ok::<(), fibula_ingest::StopReason>(())
//! ```
//!
//! # Damage
//! Real archives are truncated, damaged and mislabelled. Records that cannot be decoded are skipped and reported
//! as [`Damage`] with file, record number and byte offset (in the decompressed stream), and decoding
//! continues; with [`ReadOptions::strict`] the first damage is an error. Valid records without a
//! unicast route (multicast, OSPF, messages that the collector itself sent) are counted in
//! [`ReadReport::ignored`].
#![forbid(unsafe_code)]

pub mod bgp;
pub mod bmp;
mod columnar;
mod compress;
mod container;
mod decoder;
mod detect;
mod driver;
pub mod fpm;
mod json;
mod lines;
pub mod mmdb;
pub mod mrt;
pub mod netlink;
mod options;
mod position;
mod read;
pub mod ris;
pub mod text;
mod whole;

pub use fibula_core::{ColumnKind, ScalarType};

pub use columnar::{ColumnCells, ColumnarInput, ReadColumns, TypedColumn};
pub use compress::{Compression, open as decompress};
pub use container::{container, no_text};
pub use decoder::{
    Collected, ColumnDecl, Damage, Decoder, PeerInfo, PeerState, Sink, SourceInfo, StopReason, Tail,
};
pub use driver::{DriveError, Driver, PullResult};
pub use options::{Format, HostBits, ReadError, ReadOptions, ReadProgress, ReadReport, SourceSpec};
pub use read::{read, read_from};
pub use whole::{LONGEST_WHOLE, bounded, open_whole, read_whole};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
