//! Text: lists of prefixes, CSV, TSV, address ranges.
//!
//! Each line is about a prefix, a single address, a network with its netmask or length in a column of its own
//! (`10.0.0.0,255.0.0.0`; `10.0.0.0,8`), or a range `start,end`, which is split into the fewest prefixes; IPv4 and IPv6 may be mixed. Blank lines and lines that begin with `#`, `;` or `//`
//! are comments; a byte order mark and CR LF are taken in stride; CSV fields may be quoted. What is
//! not given in [`TextOptions`] is found out from the first mebibyte: the delimiter, whether there is
//! a header, which columns hold the addresses, and the kind of every value column.
//!
//! # Ranges and prefixes that overlap
//! An address belongs to the longest prefix that holds it, and to the narrowest range; of several ranges
//! as narrow, to the one that comes last in the file. The rule holds for addresses, whatever prefixes a
//! range becomes, and in a file with ranges its prefixes are ranges, too. Ranges that overlap others
//! without nesting are counted ([`Sink::noted`](crate::Sink::noted)): most are mistakes.
//!
//! Prefixes below `::ffff:0:0/96`, and ranges in it, are the IPv4 prefixes that they stand for, as a table
//! is asked for them ([`mapped_v4`](fibula_core::mapped_v4)); they are counted as well.
//!
//! # Kinds of columns
//! A column is [`ColumnKind::Int`](crate::ColumnKind::Int) if all its values in that first mebibyte
//! are unsigned integers (without leading zeros, which a number would lose): AS numbers are integers,
//! `AS13335` is text. If text turns up further down in such a column, its line is damage that says
//! so and how to help it ([`TextOptions::kinds`]); it is neither dropped silently nor read as 0.
//! Empty fields, and fields missing at the end of a line, are null.

mod decoder;
mod fields;
mod key;
mod layout;
mod names;
mod options;
mod overlap;
mod rows;
mod sniff;

pub(crate) use key::{Key, KeyError, parse_key, parse_range};
pub(crate) use layout::{emit_key, parse_int};
pub(crate) use names::{END_NAMES, PREFIX_NAMES, START_NAMES};
pub(crate) use overlap::Overlaps;

pub use decoder::TextDecoder;
pub use options::{Header, KeyColumns, TextOptions};

#[cfg(test)]
mod tests;
