//! Renders added values as text.
//!
//! Except for the prefix, the added values of an address depend only on its row in the table. The text of a row is
//! therefore rendered once and then copied.

use fibula_core::{AnyPrefix, ScalarType, Value};
use fibula_fib::{Columns, Typed};

use crate::added::{Added, Addition, Substitute};
use crate::formats::csv::scan::write_field;
use crate::formats::json::write_string;
use crate::formats::wire;
use crate::formats::{Style, Wire};
use crate::pipeline::answers::Numbers;
use crate::write::{MAX_PREFIX, Space, write_int, write_prefix};

/// The size in bytes beyond which the cache of rendered text of an address column is cleared.
const MAX_KEPT: usize = 32 << 20;

/// Writes the added values.
pub(crate) struct Renderer<'a> {
    columns: &'a Columns,
    numbers: Numbers,
    additions: &'a [Addition],
    /// The index of the prefix in `additions`.
    prefix: Option<usize>,
    style: Style,
    /// For each address column and added column, the bytes before the value.
    labels: Vec<Vec<Vec<u8>>>,
    /// One for each address column, or a single one if the labels of all columns are the same.
    kept: Vec<Kept>,
    max_kept: usize,
}

/// A cache of the text of rows.
struct Kept {
    text: Vec<u8>,
    /// One for each row, then one for each reason to have none.
    spans: Vec<Span>,
}

/// The position of a row's text: `start..middle` is written before the prefix, `middle..end` after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    middle: u32,
    end: u32,
}

const UNKNOWN: Span = Span { start: u32::MAX, middle: 0, end: 0 };

impl<'a> Renderer<'a> {
    /// `names` are the names of the added columns, by address column.
    pub(crate) fn new(
        columns: &'a Columns,
        additions: &'a [Addition],
        style: Style,
        names: &[Vec<String>],
    ) -> Self {
        let labels = labels(style, names);
        let kinds = match style {
            Style::Fields(_) | Style::Wire(Wire::Tabs | Wire::Binary) => 1,
            Style::Members | Style::Wire(Wire::Line) => labels.len(),
        };
        let numbers = Numbers::new(columns.len());
        let spans = numbers.len();
        let kept =
            (0..kinds).map(|_| Kept { text: Vec::new(), spans: vec![UNKNOWN; spans] }).collect();
        let prefix = additions.iter().position(|addition| addition.what == Added::Prefix);
        Self { columns, numbers, additions, prefix, style, labels, kept, max_kept: MAX_KEPT }
    }

    /// Appends the names of the added columns to a header.
    pub(crate) fn header(&self, names: &[Vec<String>], out: &mut Vec<u8>) {
        if let Style::Fields(dialect) = self.style {
            for name in names.iter().flatten() {
                out.push(dialect.delimiter);
                write_field(name.as_bytes(), dialect, out);
            }
        }
    }

    /// Appends empty fields.
    pub(crate) fn pad(&self, fields: usize, out: &mut Vec<u8>) {
        if let Style::Fields(dialect) = self.style {
            out.resize(out.len() + fields, dialect.delimiter);
        }
    }

    /// Like `pad`, but into space that is known to suffice.
    pub(super) fn put_pad(&self, fields: usize, space: &mut Space<'_>) {
        if let Style::Fields(dialect) = self.style {
            space.fill(dialect.delimiter, fields);
        }
    }

    /// Appends the added values of an address in the address column `slot`.
    #[inline]
    pub(crate) fn values(
        &mut self,
        slot: usize,
        row: u32,
        prefix: Option<AnyPrefix>,
        out: &mut Vec<u8>,
    ) {
        self.make_room();
        let Span { start, middle, end } = self.span(slot, row);
        let text = &self.kept[slot.min(self.kept.len() - 1)].text;
        out.extend_from_slice(&text[start as usize..middle as usize]);
        if let Some(place) = self.prefix {
            if prefix.is_some() || !self.leaves_nulls_out() {
                out.extend_from_slice(&self.labels[slot][place]);
                write_matched(self.style, prefix, out);
            }
            out.extend_from_slice(&text[middle as usize..end as usize]);
        }
    }

    /// Renders the text of the answers of a block, `slots` for each of its rows. Returns an upper bound on the bytes of
    /// the text and the prefixes.
    pub(super) fn prepare(
        &mut self,
        answers: &[u32],
        slots: usize,
        spans: &mut Vec<Span>,
    ) -> usize {
        self.make_room();
        spans.clear();
        let mut bytes = 0;
        if slots == 1 {
            for &row in answers {
                let span = self.span(0, row);
                bytes += (span.end - span.start) as usize;
                spans.push(span);
            }
        } else {
            for cells in answers.chunks(slots.max(1)) {
                for (slot, &row) in cells.iter().enumerate() {
                    let span = self.span(slot, row);
                    bytes += (span.end - span.start) as usize;
                    spans.push(span);
                }
            }
        }
        // The last 2 bytes are the quotes around the prefix.
        let label = |labels: &Vec<Vec<u8>>| {
            self.prefix.map_or(0, |place| labels[place].len() + MAX_PREFIX + 2)
        };
        bytes + self.labels.iter().map(label).max().unwrap_or(0) * answers.len()
    }

    /// Whether a null has no label either.
    fn leaves_nulls_out(&self) -> bool {
        matches!(self.style, Style::Wire(Wire::Line))
    }

    /// Appends the added values of an address whose text was prepared. Rows of streams are not.
    #[inline(always)]
    pub(super) fn put(
        &self,
        slot: usize,
        Span { start, middle, end }: Span,
        prefix: Option<AnyPrefix>,
        space: &mut Space<'_>,
    ) {
        let text = &self.kept[slot.min(self.kept.len() - 1)].text;
        space.put::<16>(text, start as usize, middle as usize);
        let Some(place) = self.prefix else { return };
        let label = &self.labels[slot][place];
        space.put::<16>(label, 0, label.len());
        match (self.style, prefix) {
            (Style::Fields(_), None) | (Style::Wire(_), _) => {}
            (Style::Fields(_), Some(prefix)) => space.put_prefix(prefix),
            (Style::Members, None) => space.put::<4>(b"null", 0, 4),
            (Style::Members, Some(prefix)) => {
                space.fill(b'"', 1);
                space.put_prefix(prefix);
                space.fill(b'"', 1);
            }
        }
        space.put::<16>(text, middle as usize, end as usize);
    }

    /// The position of the text of a row or of a reason for none, which is rendered if it is not in the cache.
    #[inline(always)]
    fn span(&mut self, slot: usize, row: u32) -> Span {
        let kind = slot.min(self.kept.len() - 1);
        let at = row as usize;
        match self.kept[kind].spans[at] {
            UNKNOWN => self.render(kind, slot, at),
            span => span,
        }
    }

    /// Clears caches that are too large. `prepare` calls this first, so the positions of a block stay valid until it is
    /// written.
    fn make_room(&mut self) {
        for kept in &mut self.kept {
            if kept.text.len() > self.max_kept {
                kept.text.clear();
                kept.spans.fill(UNKNOWN);
            }
        }
    }

    /// Renders the text of a row.
    #[cold]
    fn render(&mut self, kind: usize, slot: usize, at: usize) -> Span {
        let leaves_nulls_out = self.leaves_nulls_out();
        let kept = &mut self.kept[kind];
        let start = kept.text.len();
        let mut middle = None;
        for (i, addition) in self.additions.iter().enumerate() {
            let column = match addition.what {
                Added::Value(column) => column,
                Added::Prefix => {
                    middle = Some(kept.text.len());
                    continue;
                }
                // Lists are written by `Lists`.
                Added::Covering => continue,
            };
            let unmatched = self.numbers.is_unmatched(at as u32);
            let value = match addition.substitute.as_ref().filter(|_| unmatched) {
                Some(Substitute::Int(int)) => Value::Int(*int),
                Some(Substitute::Str(text)) => Value::Str(text),
                // Rows beyond the last one have no values.
                None => self.columns.value(column, at as u32),
            };
            if leaves_nulls_out && value == Value::Null {
                continue;
            }
            kept.text.extend_from_slice(&self.labels[slot][i]);
            write_value(self.style, value, self.columns.scalar_type(column), &mut kept.text);
        }
        let end = kept.text.len();
        // The cache is far smaller than 4 GiB.
        let [start, middle, end] = [start, middle.unwrap_or(end), end].map(|at| at as u32);
        let span = Span { start, middle, end };
        kept.spans[at] = span;
        span
    }
}

/// For each address column and added column, the bytes before the value.
pub(super) fn labels(style: Style, names: &[Vec<String>]) -> Vec<Vec<Vec<u8>>> {
    let label = |name: &String| match style {
        Style::Fields(dialect) => vec![dialect.delimiter],
        Style::Members => {
            let mut label = vec![b','];
            write_string(name, &mut label);
            label.push(b':');
            label
        }
        Style::Wire(form) => wire::label(form, name),
    };
    names.iter().map(|names| names.iter().map(label).collect()).collect()
}

pub(super) fn write_matched(style: Style, prefix: Option<AnyPrefix>, out: &mut Vec<u8>) {
    match (style, prefix) {
        (Style::Fields(_), None) => {}
        (Style::Fields(_), Some(prefix)) => write_prefix(prefix, out),
        (Style::Members, None) => out.extend_from_slice(b"null"),
        (Style::Members, Some(prefix)) => {
            out.push(b'"');
            write_prefix(prefix, out);
            out.push(b'"');
        }
        (Style::Wire(form), None) => wire::value(form, Typed::Null, None, out),
        (Style::Wire(form), Some(prefix)) => {
            let mut text = Vec::with_capacity(MAX_PREFIX);
            write_prefix(prefix, &mut text);
            let text = std::str::from_utf8(&text).unwrap_or_default();
            wire::value(form, Typed::Str(text), None, out);
        }
    }
}

/// Appends a value: in a field as the table's text, in JSON with its type.
pub(super) fn write_value(
    style: Style,
    value: Value<'_>,
    scalar: Option<ScalarType>,
    out: &mut Vec<u8>,
) {
    match style {
        Style::Fields(dialect) => match value {
            Value::Null => {}
            Value::Int(int) => write_int(int, out),
            Value::Str(text) => write_field(text.as_bytes(), dialect, out),
        },
        Style::Members => match Typed::new(value, scalar) {
            Typed::Null => out.extend_from_slice(b"null"),
            Typed::Int(int) => write_int(int, out),
            Typed::Float(float) => out.extend_from_slice(float.to_string().as_bytes()),
            Typed::Bool(is) => out.extend_from_slice(if is { b"true" } else { b"false" }),
            Typed::Str(text) => write_string(text, out),
        },
        // A field has the table's text, also of fractions.
        Style::Wire(Wire::Tabs) => wire::value(Wire::Tabs, Typed::new(value, None), None, out),
        Style::Wire(form) => wire::value(form, Typed::new(value, scalar), scalar, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::csv::scan::Dialect;
    use crate::pipeline::answers::Without;
    use fibula_rib::{ColumnKind, ColumnsBuilder};

    /// The cache affects only speed: the text is the same if the cache is cleared all the time.
    #[test]
    fn starting_anew_changes_nothing() {
        let mut rows = ColumnsBuilder::new(&[("n", ColumnKind::Int), ("s", ColumnKind::Str)]);
        for n in 0..50 {
            rows.push(&[Value::Int(n), Value::Str("a,\"b\"")]).unwrap();
        }
        let columns = rows.finish().unwrap();
        let additions = [("n", Added::Value(0)), ("p", Added::Prefix), ("s", Added::Value(1))]
            .map(|(name, what)| Addition { name: name.into(), what, substitute: None });
        let names = ["a", "b"].map(|slot| ["n", "p", "s"].map(|n| format!("{slot}_{n}")).to_vec());
        let prefix = Some("10.0.0.0/8".parse().unwrap());
        for style in [Style::Members, Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') })]
        {
            let text = |max_kept| {
                let mut renderer = Renderer::new(&columns, &additions, style, &names);
                renderer.max_kept = max_kept;
                let mut out = Vec::new();
                for i in 0..500u32 {
                    renderer.values((i % 2) as usize, i * 7 % 50, prefix, &mut out);
                    let empty = renderer.numbers.of(Without::Empty);
                    renderer.values((i % 2) as usize, empty, None, &mut out);
                }
                renderer.values(0, 50, prefix, &mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(text(MAX_KEPT), text(0));
        }
    }
}
