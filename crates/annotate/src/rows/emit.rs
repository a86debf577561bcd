//! Rows with what is added to them, as bytes.

use super::lookup::Answers;
use super::render::Renderer;
use crate::added::{Addition, added_name};
use crate::block::{Block, Kind};
use crate::formats::Style;
use crate::table::LookupTable;

/// Writes the rows of blocks to memory.
pub(super) struct Emitter<'r> {
    renderer: Renderer<'r>,
    /// By address column, the names of what is added.
    names: Vec<Vec<String>>,
    out: Vec<u8>,
}

impl<'r> Emitter<'r> {
    /// `names` are the names of the address columns.
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &'r [Addition],
        names: &[String],
        style: Style,
    ) -> Self {
        let added = |name: &String| {
            additions.iter().map(|addition| added_name(name, &addition.name)).collect()
        };
        let names: Vec<Vec<String>> = names.iter().map(added).collect();
        let renderer = Renderer::new(table.columns(), additions, style, &names);
        Self { renderer, names, out: Vec::new() }
    }

    /// The rows of a block that lie in `source`, with what is added.
    pub(super) fn block(&mut self, source: &[u8], block: &Block, answers: &Answers) -> &[u8] {
        let Self { renderer, names, out } = self;
        let slots = names.len();
        out.clear();
        // Rows have no gaps between them, so what lies between two places of insertion is one run.
        debug_assert!(block.rows.windows(2).all(|pair| pair[0].end == pair[1].start));
        let (mut copied, mut cell) = (0, 0);
        for row in &block.rows {
            out.extend_from_slice(&source[copied..row.insert]);
            copied = row.insert;
            match row.kind {
                Kind::Pass => {}
                Kind::Header => renderer.header(names, out),
                Kind::Annotate | Kind::AnnotateEmpty => {
                    let from = out.len();
                    renderer.pad(row.pad, out);
                    for slot in 0..slots {
                        let prefix = answers.prefixes.get(cell + slot).copied().flatten();
                        renderer.values(slot, answers.hops[cell + slot], prefix, out);
                    }
                    cell += slots;
                    if row.kind == Kind::AnnotateEmpty && from < out.len() {
                        out.remove(from);
                    }
                }
            }
        }
        let end = block.rows.last().map_or(0, |row| row.end);
        out.extend_from_slice(&source[copied..end]);
        out
    }
}
