//! Added values as text.
//!
//! What is added for an address depends on its hop alone, apart from the prefix. So the text of a hop
//! is made once and copied from then on.

use fibula_core::{AnyPrefix, Hop, ScalarType, Value};
use fibula_fib::{Columns, Typed};

use crate::added::{Added, Addition, Substitute};
use crate::formats::Style;
use crate::formats::csv::scan::write_field;
use crate::formats::json::write_string;
use crate::write::{MAX_PREFIX, Space, write_int, write_prefix};

/// Bytes of rendered text kept, for each address column; beyond, it starts anew.
const MAX_KEPT: usize = 32 << 20;

/// Writes the values that are added.
pub(crate) struct Renderer<'a> {
    columns: &'a Columns,
    additions: &'a [Addition],
    /// The place of the prefix among them.
    prefix: Option<usize>,
    style: Style,
    /// By address column and added column: what goes before the value.
    labels: Vec<Vec<Vec<u8>>>,
    /// By address column; one for all of them where the labels are the same.
    kept: Vec<Kept>,
    max_kept: usize,
}

/// The text of hops.
struct Kept {
    text: Vec<u8>,
    /// By hop, then for addresses that nothing covers, and for what is no address ([`Hop::NONE`]).
    spans: Vec<Span>,
}

/// Where the text of a hop lies: `start..middle` goes before the prefix, `middle..end` behind it.
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
            Style::Fields(_) => 1,
            Style::Members => labels.len(),
        };
        let spans = columns.len() as usize + 2;
        let kept =
            (0..kinds).map(|_| Kept { text: Vec::new(), spans: vec![UNKNOWN; spans] }).collect();
        let prefix = additions.iter().position(|addition| addition.what == Added::Prefix);
        Self { columns, additions, prefix, style, labels, kept, max_kept: MAX_KEPT }
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

    /// The same where space is known to suffice.
    pub(super) fn put_pad(&self, fields: usize, space: &mut Space<'_>) {
        if let Style::Fields(dialect) = self.style {
            space.fill(dialect.delimiter, fields);
        }
    }

    /// Appends what is added for an address of the address column `slot`.
    #[inline]
    pub(crate) fn values(
        &mut self,
        slot: usize,
        hop: Hop,
        prefix: Option<AnyPrefix>,
        out: &mut Vec<u8>,
    ) {
        self.make_room();
        let Span { start, middle, end } = self.span(slot, hop);
        let text = &self.kept[slot.min(self.kept.len() - 1)].text;
        out.extend_from_slice(&text[start as usize..middle as usize]);
        if let Some(place) = self.prefix {
            out.extend_from_slice(&self.labels[slot][place]);
            write_matched(self.style, prefix, out);
            out.extend_from_slice(&text[middle as usize..end as usize]);
        }
    }

    /// Makes the texts of the hops of a block, `slots` for each row. Returns the most bytes that they and their prefixes
    /// may take.
    pub(super) fn prepare(&mut self, hops: &[Hop], slots: usize, spans: &mut Vec<Span>) -> usize {
        self.make_room();
        spans.clear();
        let mut bytes = 0;
        if slots == 1 {
            for &hop in hops {
                let span = self.span(0, hop);
                bytes += (span.end - span.start) as usize;
                spans.push(span);
            }
        } else {
            for row in hops.chunks(slots.max(1)) {
                for (slot, &hop) in row.iter().enumerate() {
                    let span = self.span(slot, hop);
                    bytes += (span.end - span.start) as usize;
                    spans.push(span);
                }
            }
        }
        // Two quotes around the prefix.
        let label = |labels: &Vec<Vec<u8>>| {
            self.prefix.map_or(0, |place| labels[place].len() + MAX_PREFIX + 2)
        };
        bytes + self.labels.iter().map(label).max().unwrap_or(0) * hops.len()
    }

    /// Puts what is added for an address whose text was prepared.
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
            (Style::Fields(_), None) => {}
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

    /// Where the text of a hop lies, which is made if it is not there.
    #[inline(always)]
    fn span(&mut self, slot: usize, hop: Hop) -> Span {
        let kind = slot.min(self.kept.len() - 1);
        // A hop beyond the columns is that of an address that nothing covers.
        let unmatched = self.columns.len() as usize;
        let at = hop.index().map_or(unmatched + 1, |row| unmatched.min(row as usize));
        match self.kept[kind].spans[at] {
            UNKNOWN => self.render(kind, slot, at),
            span => span,
        }
    }

    /// Starts anew if too much is kept. What a block needs stays until it is written.
    fn make_room(&mut self) {
        for kept in &mut self.kept {
            if kept.text.len() > self.max_kept {
                kept.text.clear();
                kept.spans.fill(UNKNOWN);
            }
        }
    }

    /// Makes the text of a hop.
    #[cold]
    fn render(&mut self, kind: usize, slot: usize, at: usize) -> Span {
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
            kept.text.extend_from_slice(&self.labels[slot][i]);
            let unmatched = at == self.columns.len() as usize;
            let value = match addition.substitute.as_ref().filter(|_| unmatched) {
                Some(Substitute::Int(int)) => Value::Int(*int),
                Some(Substitute::Str(text)) => Value::Str(text),
                // Rows behind the last have no values.
                None => self.columns.value(column, at as u32),
            };
            write_value(self.style, value, self.columns.scalar_type(column), &mut kept.text);
        }
        let end = kept.text.len();
        // What is kept is far below 4 GiB.
        let [start, middle, end] = [start, middle.unwrap_or(end), end].map(|at| at as u32);
        let span = Span { start, middle, end };
        kept.spans[at] = span;
        span
    }
}

/// By address column and added column, what goes before the value.
pub(super) fn labels(style: Style, names: &[Vec<String>]) -> Vec<Vec<Vec<u8>>> {
    let label = |name: &String| match style {
        Style::Fields(dialect) => vec![dialect.delimiter],
        Style::Members => {
            let mut label = vec![b','];
            write_string(name, &mut label);
            label.push(b':');
            label
        }
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
    }
}

/// Appends a value: in a field as it is written in the table, in JSON as what it is.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::csv::scan::Dialect;
    use fibula_rib::{ColumnKind, ColumnsBuilder};

    /// What is kept is a matter of speed alone: the text is the same when nothing stays.
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
                    renderer.values((i % 2) as usize, Hop::new(i * 7 % 50), prefix, &mut out);
                    renderer.values((i % 2) as usize, Hop::NONE, None, &mut out);
                }
                renderer.values(0, Hop::new(50), prefix, &mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(text(MAX_KEPT), text(0));
        }
    }
}
