//! The layout of a text, and the meaning of its columns.

use std::borrow::Cow;

use fibula_core::{AnyPrefix, Attributes, Change, ColumnKind, Update, Value, mapped_v4};

use super::fields::Delimiter;
use super::key::Key;
use super::options::TextOptions;
use super::overlap::{Earlier, Overlap, Overlaps};
use super::roles::AddressColumns;
use super::rows::Rows;
use crate::{ColumnDecl, HostBits, ScalarType, Sink};

/// The layout of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) delimiter: Delimiter,
    /// Whether lines that begin with `;` are comments.
    pub(crate) semicolons: bool,
    /// Fields of a row; more are damage, or in blank-separated text part of the last.
    pub(crate) fields: usize,
    /// Whether the first row is a header.
    pub(crate) header: bool,
    pub(crate) key: AddressColumns,
    /// How an ambiguous text was read.
    pub(crate) notes: Vec<&'static str>,
    /// Whether there are ranges in the head: then they may overlap.
    pub(crate) ranges: bool,
    pub(crate) columns: Vec<Column>,
}

/// A value column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) field: usize,
    pub(crate) decl: ColumnDecl,
    /// The type of the texts, if all have it or must have it.
    pub(crate) scalar: Option<ScalarType>,
    /// Whether the user set the kind.
    pub(crate) is_declared: bool,
}

/// The state that changes from row to row.
#[derive(Default)]
pub(crate) struct State {
    /// The header has not passed by yet.
    pub(crate) header: bool,
    /// The line.
    pub(crate) record: u64,
    /// The announcements of the rows so far.
    pub(crate) earlier: Earlier,
}

/// See [`Sink::noted`].
const PARTIAL: &str =
    "ranges that overlap an earlier one in part (the narrower counts, of two as wide the later)";
const MAPPED: &str = "prefixes below ::ffff:0:0/96, taken as the IPv4 prefixes that they stand for";

impl Layout {
    /// Reads the rows of the text.
    pub(crate) fn rows(&self) -> Rows {
        Rows::new(self.delimiter, self.fields).with_semicolons(self.semicolons)
    }

    /// Turns a row into updates.
    pub(crate) fn emit<'a>(
        &self,
        state: &mut State,
        fields: &[&'a [u8]],
        host_bits: HostBits,
        values: &mut Vec<Value<'a>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        if std::mem::take(&mut state.header) {
            return Ok(());
        }
        if fields.len() > self.fields {
            return Err(format!(
                "more than {} fields, which no row at the beginning has; a delimiter within a field needs quotes, \
                 and --names gives more columns",
                self.fields
            )
            .into());
        }
        let key = self.key.read(fields, host_bits)?;
        values.clear();
        for column in &self.columns {
            let text = fields.get(column.field).copied().unwrap_or_default();
            let value = value(text, column.decl.kind).filter(|_| column.fits(text));
            values.push(value.ok_or_else(|| column.complain(text))?);
        }
        emit_key(key, state.record, &mut state.earlier, values, sink)
    }
}

/// Announces the prefixes of a record or, if there are ranges, the addresses of which its range is the narrowest.
///
/// # Errors
/// If the range overlaps more than is credible; nothing is announced then.
pub(crate) fn emit_key(
    key: Key,
    record: u64,
    earlier: &mut Earlier,
    values: &[Value<'_>],
    sink: &mut dyn Sink,
) -> Result<(), Cow<'static, str>> {
    let key = unmapped(key, sink);
    if let Key::Prefix(prefix) = key
        && earlier.keep(prefix)
    {
        sink.record(record, false);
        announce(prefix, values, sink);
        return Ok(());
    }
    sink.record(record, true);
    match add(key, record, earlier.ranges(), values, sink) {
        Overlap::Nested => Ok(()),
        Overlap::Partial => {
            sink.noted(PARTIAL);
            Ok(())
        }
        Overlap::TooMuch => Err("it overlaps more ranges than is credible".into()),
    }
}

/// Announces the addresses of which a prefix or a range is the narrowest.
fn add(
    key: Key,
    record: u64,
    overlaps: &mut Overlaps,
    values: &[Value<'_>],
    sink: &mut dyn Sink,
) -> Overlap {
    let mut is_told = false;
    let mut to = |prefix, is_again: bool| {
        // The same range was there before: it takes nothing from another one.
        if is_again && !std::mem::replace(&mut is_told, true) {
            sink.record(record, false);
        }
        announce(prefix, values, sink);
    };
    match key {
        Key::Prefix(AnyPrefix::V4(prefix)) => {
            overlaps.v4.add(prefix.first(), prefix.last(), &mut |p, again| to(p.into(), again))
        }
        Key::RangeV4(first, last) => {
            overlaps.v4.add(first, last, &mut |p, again| to(p.into(), again))
        }
        Key::Prefix(AnyPrefix::V6(prefix)) => {
            overlaps.v6.add(prefix.first(), prefix.last(), &mut |p, again| to(p.into(), again))
        }
        // A part of a range may be IPv4-mapped, too.
        Key::RangeV6(first, last) => {
            overlaps.v6.add(first, last, &mut |p, again| to(AnyPrefix::V6(p).unmapped(), again))
        }
    }
}

/// The key in the form for lookups: IPv4-mapped addresses are IPv4 (see [`mapped_v4`]).
#[inline]
fn unmapped(key: Key, sink: &mut dyn Sink) -> Key {
    let unmapped = match key {
        Key::Prefix(prefix @ AnyPrefix::V6(_)) => Key::Prefix(prefix.unmapped()),
        Key::RangeV6(first, last) => match (mapped_v4(first), mapped_v4(last)) {
            (Some(first), Some(last)) => Key::RangeV4(first, last),
            _ => return key,
        },
        _ => return key,
    };
    if unmapped != key {
        sink.noted(MAPPED);
    }
    unmapped
}

fn announce(prefix: AnyPrefix, values: &[Value<'_>], sink: &mut dyn Sink) {
    let change = Change::Announce(Attributes::Values(values));
    sink.update(&Update::new(prefix, change));
}

/// The value of a field; `None` if it is not of the kind.
fn value(text: &[u8], kind: ColumnKind) -> Option<Value<'_>> {
    match kind {
        _ if is_missing(text) => Some(Value::Null),
        ColumnKind::Int => parse_int(text).map(Value::Int),
        ColumnKind::Str => std::str::from_utf8(text).ok().map(Value::Str),
    }
}

/// Whether a field has no value: it is empty, or `\N`, as databases write it.
#[inline]
pub(crate) fn is_missing(text: &[u8]) -> bool {
    text.is_empty() || text == b"\\N"
}

/// An unsigned integer of up to 64 bits, digits only.
pub(crate) fn parse_int(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Integers lose leading zeros, which names such as `007` need.
pub(crate) fn has_leading_zeros(text: &[u8]) -> bool {
    matches!(text, [b'0', _, ..])
}

impl Column {
    /// Sets the kind: the one that the user set, else the one that was found.
    pub(crate) fn set_kind(
        &mut self,
        options: &TextOptions,
        found: (ColumnKind, Option<ScalarType>),
    ) {
        let name = &self.decl.name;
        let number = (self.field + 1).to_string();
        let is_it = |given: &String| given == name || *given == number;
        let kind = options.kinds.iter().find(|(given, _)| is_it(given)).map(|(_, kind)| *kind);
        let scalar = options.types.iter().find(|(given, _)| is_it(given)).map(|(_, of)| *of);
        (self.decl.kind, self.scalar) = match (kind, scalar) {
            (_, Some(scalar)) => (ColumnKind::Str, Some(scalar)),
            (Some(kind), None) => (kind, None),
            (None, None) => found,
        };
        self.is_declared = kind.is_some() || scalar.is_some();
    }

    /// Whether the text may be a value of the column. A value is refused if a detected kind would lose it, or if it is
    /// not of the kind that the user set.
    pub(crate) fn fits(&self, text: &[u8]) -> bool {
        if !self.is_declared {
            return self.decl.kind != ColumnKind::Int || !has_leading_zeros(text);
        }
        let text = std::str::from_utf8(text).unwrap_or_default();
        match self.scalar {
            _ if is_missing(text.as_bytes()) => true,
            Some(ScalarType::Bool) => text.parse::<bool>().is_ok(),
            Some(_) => text.parse::<f64>().is_ok_and(f64::is_finite),
            None => true,
        }
    }

    #[cold]
    pub(crate) fn complain(&self, text: &[u8]) -> Cow<'static, str> {
        let name = &self.decl.name;
        match self.decl.kind {
            ColumnKind::Str if self.is_declared && !self.fits(text) => {
                let kind = match self.scalar {
                    Some(ScalarType::Bool) => "true or false",
                    _ => "a number",
                };
                format!("column {name} is not {kind}: {}", excerpt(text))
            }
            ColumnKind::Str => format!("column {name} is not UTF-8: {}", excerpt(text)),
            ColumnKind::Int => format!(
                "column {name} has integers, and this is not one: {}; --kind {} makes the column text",
                excerpt(text),
                shell_word(&format!("{name}=str"))
            ),
        }
        .into()
    }
}

/// The beginning of a field, fit to be shown.
#[cold]
pub(crate) fn excerpt(text: &[u8]) -> String {
    const MAX: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX)]).into_owned();
    let dots = if text.len() > MAX { "..." } else { "" };
    format!("{shown:?}{dots}")
}

/// A value of an option as a shell takes it. Texts name options as the command has them.
pub(super) fn shell_word(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.,=/:@%+".contains(c);
    match value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}
