//! What a text looks like, and what a row says by it.

use std::borrow::Cow;

use fibula_core::{AnyPrefix, Attributes, Change, ColumnKind, Prefix, Update, Value};

use super::fields::Delimiter;
use super::key::{Key, parse_key, parse_range};
use crate::{ColumnDecl, HostBits, Sink};

/// What a text looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) delimiter: Delimiter,
    /// Fields of a row; more are damage, or in blank-separated text part of the last.
    pub(crate) fields: usize,
    /// Whether the first row is a header.
    pub(crate) header: bool,
    pub(crate) key: KeyAt,
    pub(crate) columns: Vec<Column>,
}

/// Where the addresses are; numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAt {
    One(usize),
    Two { start: usize, end: usize, decimal: bool },
}

/// A value column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) field: usize,
    pub(crate) decl: ColumnDecl,
}

impl Layout {
    /// Turns a row into updates.
    pub(crate) fn emit<'a>(
        &self,
        header: &mut bool,
        fields: &[&'a [u8]],
        host_bits: HostBits,
        values: &mut Vec<Value<'a>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        if std::mem::take(header) {
            return Ok(());
        }
        if fields.len() > self.fields {
            return Err(format!("more than {} fields", self.fields).into());
        }
        let key = self.key(fields, host_bits)?;
        values.clear();
        for column in &self.columns {
            let text = fields.get(column.field).copied().unwrap_or_default();
            values.push(value(text, column.decl.kind).ok_or_else(|| column.complain(text))?);
        }
        match key {
            Key::Prefix(prefix) => announce(prefix, values, sink),
            Key::RangeV4(first, last) => Prefix::split_range(first, last)
                .for_each(|prefix| announce(AnyPrefix::V4(prefix), values, sink)),
            Key::RangeV6(first, last) => Prefix::split_range(first, last)
                .for_each(|prefix| announce(AnyPrefix::V6(prefix), values, sink)),
        }
        Ok(())
    }

    fn key(&self, fields: &[&[u8]], host_bits: HostBits) -> Result<Key, Cow<'static, str>> {
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match self.key {
            KeyAt::One(at) => parse_key(field(at), host_bits)
                .map_err(|error| format!("{}: {}", error.text(), excerpt(field(at))).into()),
            KeyAt::Two { start, end, decimal } => parse_range(field(start), field(end), decimal)
                .map_err(|error| {
                    let (start, end) = (excerpt(field(start)), excerpt(field(end)));
                    format!("{}: {start} to {end}", error.text()).into()
                }),
        }
    }
}

fn announce(prefix: AnyPrefix, values: &[Value<'_>], sink: &mut dyn Sink) {
    let change = Change::Announce(Attributes::Values(values));
    sink.update(&Update::new(prefix, change));
}

/// The value of a field; `None` if it is not of the kind.
fn value(text: &[u8], kind: ColumnKind) -> Option<Value<'_>> {
    match kind {
        _ if text.is_empty() => Some(Value::Null),
        ColumnKind::Int => parse_int(text).map(Value::Int),
        ColumnKind::Str => std::str::from_utf8(text).ok().map(Value::Str),
    }
}

/// An unsigned integer of up to 64 bits, digits only.
pub(crate) fn parse_int(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

impl Column {
    #[cold]
    fn complain(&self, text: &[u8]) -> Cow<'static, str> {
        let name = &self.decl.name;
        match self.decl.kind {
            ColumnKind::Str => format!("column {name} is not UTF-8: {}", excerpt(text)),
            ColumnKind::Int => format!(
                "column {name} held integers so far, this is none: {}; declare it as text if it is",
                excerpt(text)
            ),
        }
        .into()
    }
}

/// The beginning of a field, fit to be shown.
#[cold]
fn excerpt(text: &[u8]) -> String {
    const MAX: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX)]).into_owned();
    let dots = if text.len() > MAX { "..." } else { "" };
    format!("{shown:?}{dots}")
}
