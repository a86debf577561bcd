//! Writes rows with their added values.

use super::lists::Lists;
use super::render::{Renderer, Span};
use crate::added::{Addition, added_name};
use crate::block::{Block, Row, RowKind};
use crate::formats::Style;
use crate::pipeline::answers::{Answers, Numbers};
use crate::table::LookupTable;
use crate::write::Space;
use crate::{AnnotateOptions, Only};

/// Writes the rows of blocks to a buffer.
pub(super) struct Emitter<'r> {
    renderer: Renderer<'r>,
    /// Writes the added values instead of `renderer` if some of them are lists.
    lists: Option<Lists<'r>>,
    only: Option<Only>,
    left_out: u64,
    /// How rows are numbered.
    numbers: Numbers,
    /// Whether each row must end with a newline under `only`, because the bytes between JSON objects are left out.
    ends_lines: bool,
    /// For each address column, the names of the added columns.
    names: Vec<Vec<String>>,
    /// The bytes that are added to a header.
    header: Vec<u8>,
    /// For each cell of a block, the position of its text.
    spans: Vec<Span>,
}

impl<'r> Emitter<'r> {
    /// `names` are the names of the address columns.
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &'r [Addition],
        names: &[String],
        style: Style,
        options: &AnnotateOptions,
    ) -> Self {
        let added = |name: &String| {
            additions.iter().map(|addition| added_name(name, &addition.name)).collect()
        };
        let names: Vec<Vec<String>> = names.iter().map(added).collect();
        let renderer = Renderer::new(table.columns(), additions, style, &names);
        let mut header = Vec::new();
        renderer.header(&names, &mut header);
        let lists = Lists::new(table, additions, style, &names, options.all_covering);
        Self {
            renderer,
            lists,
            only: options.only,
            left_out: 0,
            numbers: Numbers::rows(table),
            ends_lines: matches!(style, Style::Members),
            names,
            header,
            spans: Vec::new(),
        }
    }

    /// The number of rows left out so far.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds the count of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        self.left_out += other.left_out;
    }

    /// Appends the rows of a block, which are in `source`, with the added values.
    pub(super) fn block(
        &mut self,
        source: &[u8],
        block: &Block,
        answers: &Answers,
        out: &mut Vec<u8>,
    ) {
        if self.only.is_none() && self.lists.is_none() {
            return self.all(source, block, answers, out);
        }
        let Self { renderer, lists, only, left_out, numbers, ends_lines, names, header, .. } = self;
        let slots = names.len();
        // Whether `only` keeps this row.
        let is_kept = |row: &Row, answers: &[u32]| match row.kind {
            RowKind::Pass => false,
            RowKind::Header => true,
            _ => {
                let matched = answers.iter().any(|&answer| numbers.is_known(answer));
                matched == (*only == Some(Only::Matched))
            }
        };
        // Rows are contiguous, so the bytes between two insertion points are copied at once.
        debug_assert!(block.rows.windows(2).all(|pair| pair[0].end == pair[1].start));
        let (mut copied, mut cell) = (0, 0);
        for row in &block.rows {
            if only.is_some() {
                let is_row = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
                let found = if is_row { &answers.rows[cell..cell + slots] } else { &[] };
                if !is_kept(row, found) {
                    out.extend_from_slice(&source[copied..row.start]);
                    copied = row.end;
                    cell += found.len();
                    *left_out += u64::from(is_row);
                    continue;
                }
            }
            out.extend_from_slice(&source[copied..row.insert]);
            copied = row.insert;
            match row.kind {
                RowKind::Pass => {}
                RowKind::Header => out.extend_from_slice(header),
                RowKind::Annotate | RowKind::AnnotateEmpty => {
                    let from = out.len();
                    renderer.pad(row.pad, out);
                    for slot in 0..slots {
                        match lists {
                            Some(lists) => lists.values(slot, answers, cell + slot, out),
                            None => {
                                let at = cell + slot;
                                renderer.values(slot, answers.rows[at], answers.prefix(at), out);
                            }
                        }
                    }
                    cell += slots;
                    if row.kind == RowKind::AnnotateEmpty && from < out.len() {
                        out.remove(from);
                    }
                    if only.is_some() && *ends_lines {
                        out.extend_from_slice(&source[copied..row.end]);
                        copied = row.end;
                        if !out.ends_with(b"\n") {
                            out.push(b'\n');
                        }
                    }
                }
            }
        }
        let end = block.rows.last().map_or(0, |row| row.end);
        out.extend_from_slice(&source[copied..end]);
    }

    /// Like `block`, but for all rows and without lists, which is the common case.
    fn all(&mut self, source: &[u8], block: &Block, answers: &Answers, out: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (block.rows.first(), block.rows.last()) else { return };
        let slots = self.names.len();
        let values = self.renderer.prepare(&answers.rows, slots, &mut self.spans);
        let of_rows = last.end - first.start + block.pads + self.header.len();
        let mut space = Space::new(out, of_rows + values);
        let mut cells = self.spans.iter().enumerate();
        let mut copied = first.start;
        for row in &block.rows {
            // Rows are contiguous, so the bytes between two insertion points are copied at once.
            space.put::<64>(source, copied, row.insert);
            copied = row.insert;
            match row.kind {
                RowKind::Pass => {}
                RowKind::Header => space.put::<64>(&self.header, 0, self.header.len()),
                RowKind::Annotate | RowKind::AnnotateEmpty => {
                    let from = space.place();
                    if row.pad > 0 {
                        self.renderer.put_pad(row.pad, &mut space);
                    }
                    for slot in 0..slots {
                        let Some((cell, &span)) = cells.next() else { break };
                        let prefix = answers.prefix(cell);
                        self.renderer.put(slot, span, prefix, &mut space);
                    }
                    if row.kind == RowKind::AnnotateEmpty && from < space.place() {
                        space.remove(from);
                    }
                }
            }
        }
        space.put::<64>(source, copied, last.end);
        space.finish();
    }
}
