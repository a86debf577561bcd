//! Text: lists of prefixes, CSV, TSV, address ranges.
//!
//! Each line is about a prefix, a single address or a range `start,end`, which is split into the
//! fewest prefixes; IPv4 and IPv6 may be mixed. Blank lines and lines that begin with `#`, `;` or `//`
//! are comments; a byte order mark and CR LF are taken in stride; CSV fields may be quoted. What is
//! not given in [`TextOptions`] is found out from the first mebibyte: the delimiter, whether there is
//! a header, which columns hold the addresses, and the kind of every value column.
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
mod options;
mod rows;
mod sniff;

pub use decoder::TextDecoder;
pub use options::{Header, KeyColumns, TextOptions};

#[cfg(test)]
mod tests;
