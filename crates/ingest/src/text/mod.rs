//! Text: lists of prefixes, CSV, TSV, address ranges.
//!
//! Each line has a prefix, a single address, a network with its netmask or length in a separate column
//! (`10.0.0.0,255.0.0.0`; `10.0.0.0,8`), or a range `start,end`, which is split into the smallest number of prefixes.
//! IPv4 and IPv6 may be mixed. Blank lines and lines that begin with `#`, `;` or `//` are comments; but where `;` is
//! the delimiter and the first column has no addresses, a line that begins with it is a row. A byte order mark and CR
//! LF are accepted, and CSV fields may be quoted. Settings that are not in [`TextOptions`] are detected from the first
//! mebibyte: the delimiter, whether there is a header, the address columns, and the kind of every value column.
//!
//! # Ranges and prefixes that overlap
//! An address belongs to the longest prefix that contains it, and to the narrowest range; among equally narrow
//! ranges, to the last one in the file. The rule applies to addresses, whatever prefixes a range is split into. In a
//! file with ranges, prefixes are treated as ranges too. Ranges that overlap others without nesting are counted
//! ([`Sink::noted`](crate::Sink::noted)), because most are mistakes.
//!
//! Prefixes below `::ffff:0:0/96`, and ranges inside it, become IPv4 prefixes, like addresses in lookups
//! ([`mapped_v4`](fibula_core::mapped_v4)). They are counted too.
//!
//! # Kinds of columns
//! A column is [`ColumnKind::Int`](crate::ColumnKind::Int) if all its values in the first mebibyte are unsigned
//! integers without leading zeros, which would be lost. AS numbers are integers; `AS13335` is text. If a later value
//! of such a column is text, its line is damage, and the message explains how to change this
//! ([`TextOptions::kinds`]). The value is neither dropped silently nor read as 0. Empty fields, and missing fields at
//! the end of a line, are null.

mod cells;
mod decoder;
mod feed;
mod fields;
mod guess;
mod header;
mod key;
mod layout;
mod names;
mod options;
mod overlap;
mod ranges;
mod roles;
mod rows;
mod sniff;

pub(crate) use cells::block;
pub(crate) use key::{
    Key, KeyError, parse_counted, parse_ip, parse_key, parse_network, parse_range,
};
pub(crate) use layout::{Column, emit_key, excerpt, parse_int};
pub(crate) use names::{
    LENGTH_NAMES, PREFIX_NAMES, Pair, START_NAMES, SURE_LENGTH_NAMES, pairs, rank,
};
pub(crate) use overlap::Earlier;
pub(crate) use sniff::columns as value_columns;

pub use decoder::TextDecoder;
pub use feed::RowFeed;
pub use options::{HeaderLine, KeyColumns, TextOptions};
pub use roles::{AddressColumns, Roles, Sample, SampleRow, roles};

#[cfg(test)]
mod tests;
