//! The stages after the decoder: lookup, counts and output of a block.

use fibula_fib::Dates;

use super::Annotator;
use super::emit::Emitter;
use super::work::Stage;
use crate::Summary;
use crate::added::Added;
use crate::block::Block;
use crate::fault::Fault;
use crate::formats::LogDecoder;
use crate::pipeline::answers::{Answers, Numbers};
use crate::pipeline::counts::{Counts, Tally};
use crate::pipeline::hits::Hits;
use crate::pipeline::keys::Cells;
use crate::pipeline::lookup::{LookUp, Scratch, Wanted};

/// Looks up, counts and writes blocks whose address columns are known.
pub(crate) struct Stages<'r> {
    annotator: &'r Annotator,
    /// The names of the address columns.
    names: Vec<String>,
    lookup: LookUp<'r>,
    scratch: Scratch,
    answers: Answers,
    numbers: Numbers,
    tally: Tally,
    /// One for each address column; empty if no values are listed in the summary.
    hits: Vec<Hits>,
    emitter: Emitter<'r>,
}

impl<'r> Stages<'r> {
    pub(super) fn new(annotator: &'r Annotator, decoder: &dyn LogDecoder) -> Self {
        let Annotator { table, additions, options, .. } = annotator;
        let (table, names) = (&**table, decoder.names());
        let prefixes = additions.iter().any(|addition| addition.what == Added::Prefix);
        let by_route = options.all_covering
            || additions.iter().any(|addition| !matches!(addition.what, Added::Value(_)));
        // In a single table, a lookup of the route also gives its prefix. With several dates, it is an additional one.
        let routes = by_route && (table.dated().is_none() || options.top > 0 && prefixes);
        let wanted = Wanted { rows: true, lengths: by_route, routes };
        let slots = if options.top > 0 { names.len() } else { 0 };
        Self {
            annotator,
            names: names.to_vec(),
            lookup: LookUp::new(table, wanted, None),
            scratch: Scratch::default(),
            answers: Answers::default(),
            numbers: Numbers::rows(table),
            tally: Tally::default(),
            hits: (0..slots).map(|_| Hits::new(table, prefixes)).collect(),
            emitter: Emitter::new(table, additions, names, decoder.style(), options),
        }
    }
}

impl Stage<Cells> for Stages<'_> {
    fn block(
        &mut self,
        block: &mut Block,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Self { answers, names, .. } = self;
        let slots = names.len();
        if let Some(clock) = &block.clock {
            answers.dates.clear();
            // If the input ends with an error within a row, the cells of this row have no time.
            let dates = clock.rows.iter().flat_map(|&date| std::iter::repeat_n(date, slots));
            answers.dates.extend(dates.take(block.cells));
            answers.dates.resize(block.cells, Dates::NONE);
        }
        self.lookup.block(&mut block.keys, block.cells, &mut self.scratch, answers);
        let v4 = block.keys.v4.cells.len() as u64;
        self.tally.add(self.numbers, answers.rows.iter().copied(), v4);
        for (slot, hits) in self.hits.iter_mut().enumerate() {
            hits.rows(answers.rows.iter().skip(slot).step_by(slots).copied());
            hits.routes(answers.routes.iter().skip(slot).step_by(slots).copied());
        }
        self.emitter.block(data.unwrap_or(&block.text), block, answers, out);
        Ok(())
    }

    fn merge(&mut self, other: &Self) {
        self.tally.counts.add(&other.tally.counts);
        self.hits.iter_mut().zip(&other.hits).for_each(|(ours, theirs)| ours.merge(theirs));
        self.emitter.merge(&other.emitter);
    }

    fn complete(&self, summary: Summary) -> Summary {
        let Annotator { table, additions, options, .. } = self.annotator;
        let top = self.hits.iter().zip(&self.names);
        let top = top.flat_map(|(hits, name)| hits.top(&**table, additions, name, options.top));
        let Counts { matched, unmatched, unparsable, empty, v4, .. } = self.tally.counts;
        Summary {
            addresses: matched + unmatched,
            v4,
            matched,
            unmatched,
            unparsable,
            empty,
            left_out: self.emitter.left_out(),
            top: top.collect(),
            ..summary
        }
    }
}
