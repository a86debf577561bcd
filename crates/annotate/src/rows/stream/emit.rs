//! Looks up and writes the rows of a stream.

use super::work::StreamWork;
use crate::Summary;
use crate::added::{Added, added_name};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::formats::json::write_string;
use crate::formats::{Decode, Style, Wire, wire};
use crate::pipeline::answers::{Answers, Numbers, Without};
use crate::pipeline::counts::{Counts, Tally};
use crate::pipeline::keys::Cells;
use crate::pipeline::lookup::{LookUp, Scratch, Wanted};
use crate::rows::lists::Lists;
use crate::rows::render::Renderer;
use crate::rows::work::Stage;

/// Looks up, counts and writes blocks.
pub(super) struct StreamStages<'w> {
    lookup: LookUp<'w>,
    scratch: Scratch,
    answers: Answers,
    numbers: Numbers,
    tally: Tally,
    renderer: Renderer<'w>,
    /// Writes the added values instead of `renderer` if some of them are lists.
    lists: Option<Lists<'w>>,
    /// The number of address columns.
    slots: usize,
    /// The names of the added columns, as they are added to a header.
    header: Vec<u8>,
    /// How rows are written if the input's columns are not.
    alone: Option<Alone>,
}

/// The bytes around the added values of a row that are written without the row.
struct Alone {
    /// The first byte of the values is a separator.
    separated: bool,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Alone {
    fn new(style: Style, inside: Option<&str>) -> Self {
        let (separated, mut before, mut after) = match style {
            Style::Fields(_) | Style::Wire(Wire::Tabs | Wire::Line) => (true, vec![], vec![]),
            Style::Members => (true, vec![b'{'], vec![b'}']),
            Style::Wire(Wire::Binary) => {
                return Self { separated: false, before: vec![], after: vec![] };
            }
        };
        if let Some(name) = inside {
            write_string(name, &mut before);
            before.extend_from_slice(b":{");
            after.push(b'}');
        }
        after.push(b'\n');
        Self { separated, before, after }
    }
}

impl<'w> StreamStages<'w> {
    pub(super) fn new(work: &'w StreamWork, decoder: &dyn Decode) -> Self {
        let StreamWork { table, options, stream, additions, .. } = work;
        let (table, style) = (&**table, decoder.style());
        let lists = options.all_covering
            || additions.iter().any(|addition| addition.what == Added::Covering);
        let lengths = lists || additions.iter().any(|addition| addition.what == Added::Prefix);
        let wanted = Wanted { rows: true, lengths, routes: lengths };
        let added = |name: &String| -> Vec<String> {
            additions.iter().map(|addition| added_name(name, &addition.name)).collect()
        };
        let names: Vec<Vec<String>> = decoder.names().iter().map(added).collect();
        let mut header = Vec::new();
        for name in names.iter().flatten() {
            header.push(b'\t');
            wire::escaped(name, &mut header);
        }
        Self {
            lookup: LookUp::new(table, wanted, None),
            scratch: Scratch::default(),
            answers: Answers::default(),
            numbers: Numbers::rows(table),
            tally: Tally::default(),
            renderer: Renderer::new(table.columns(), additions, style, &names),
            lists: Lists::new(table, additions, style, &names, options.all_covering),
            slots: names.len(),
            header,
            alone: stream.only_added.then(|| Alone::new(style, stream.inside.as_deref())),
        }
    }

    /// Appends the added values of a row whose first cell is `cell`; nulls if it has no cells.
    fn values(&mut self, cell: Option<usize>, out: &mut Vec<u8>) {
        for slot in 0..self.slots {
            match (cell.map(|cell| cell + slot), &mut self.lists) {
                (Some(cell), Some(lists)) => lists.values(slot, &self.answers, cell, out),
                (Some(cell), None) => {
                    let (row, prefix) = (self.answers.rows[cell], self.answers.prefix(cell));
                    self.renderer.values(slot, row, prefix, out);
                }
                (None, _) => {
                    let row = self.numbers.of(Without::Unparsable);
                    self.renderer.values(slot, row, None, out);
                }
            }
        }
    }

    /// Appends a row with its added values.
    fn whole(&mut self, source: &[u8], row: &Row, cell: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&source[row.start..row.insert]);
        match row.kind {
            RowKind::Pass => {}
            RowKind::Header => out.extend_from_slice(&self.header),
            RowKind::Annotate | RowKind::AnnotateEmpty => {
                let from = out.len();
                self.values(Some(cell), out);
                if row.kind == RowKind::AnnotateEmpty && from < out.len() {
                    out.remove(from);
                }
            }
        }
        out.extend_from_slice(&source[row.insert..row.end]);
    }

    /// Appends the added values of a row alone.
    fn alone(&mut self, alone: &Alone, row: &Row, cell: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&alone.before);
        let from = out.len();
        match row.kind {
            RowKind::Pass => self.values(None, out),
            RowKind::Header => out.extend_from_slice(&self.header),
            RowKind::Annotate | RowKind::AnnotateEmpty => self.values(Some(cell), out),
        }
        if alone.separated && from < out.len() {
            out.remove(from);
        }
        out.extend_from_slice(&alone.after);
    }
}

impl Stage<Cells> for StreamStages<'_> {
    fn block(
        &mut self,
        block: &mut Block,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.lookup.block(&mut block.keys, block.cells, &mut self.scratch, &mut self.answers);
        let v4 = block.keys.v4.cells.len() as u64;
        self.tally.add(self.numbers, self.answers.rows.iter().copied(), v4);
        let source = data.unwrap_or_default();
        let alone = self.alone.take();
        let mut cell = 0;
        for row in &block.rows {
            match &alone {
                None => self.whole(source, row, cell, out),
                Some(alone) => self.alone(alone, row, cell, out),
            }
            let has_cells = matches!(row.kind, RowKind::Annotate | RowKind::AnnotateEmpty);
            cell += if has_cells { self.slots } else { 0 };
        }
        self.alone = alone;
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.tally.counts.add(&other.tally.counts);
    }

    fn complete(&self, summary: Summary) -> Summary {
        let Counts { matched, unmatched, unparsable, empty, v4, .. } = self.tally.counts;
        Summary {
            addresses: matched + unmatched,
            v4,
            matched,
            unmatched,
            unparsable,
            empty,
            ..summary
        }
    }
}
