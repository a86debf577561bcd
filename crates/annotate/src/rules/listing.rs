//! Rows of text from columns: the number of the row, its flow, and the rule.

use std::io::Write;

use arrow_array::RecordBatch;

use super::columns::{RuleBatches, RuleColumnAnnotator};
use super::text::{RuleText, write_flow};
use crate::AnnotateError;
use crate::files::{BatchWork, Batches, ColumnWork, KeyColumns, Progress, in_order};
use crate::formats::Style;
use crate::formats::csv::scan::Dialect;

/// Number of rows classified and written at once.
const ROWS: usize = 8192;

/// The columns of a row, before those of the rule.
const HEADER: &[u8] = b"row,src,dst,protocol,src_port,dst_port";

const STYLE: Style = Style::Fields(Dialect { delimiter: b',', quote: Some(b'"') });

/// The work of a thread.
struct Lister {
    batches: RuleBatches,
    text: RuleText,
}

/// The rows of a batch. With an error, the rows before it.
struct BatchRows {
    text: Vec<u8>,
    rows: u64,
    failed: Option<AnnotateError>,
}

impl Lister {
    fn list(
        &mut self,
        batch: &RecordBatch,
        first_row: u64,
        columns: &KeyColumns,
        writes: bool,
    ) -> BatchRows {
        let failed = self.batches.find(batch, columns, first_row).err();
        let (mut text, mut rows) = (Vec::new(), first_row);
        let RuleBatches { lookup, flows, .. } = &self.batches;
        if writes {
            for (flow, &id) in flows.iter().zip(lookup.found()) {
                rows += 1;
                write_flow(rows, flow, &mut text);
                text.extend_from_slice(self.text.of(lookup.rules(), id));
                text.push(b'\n');
            }
        }
        BatchRows { text, rows: first_row + flows.len() as u64, failed }
    }
}

/// Writes a row for each row of the input, or only counts without an output. The batches of a stream are written as
/// they arrive, by this thread.
pub(super) fn list<W: Write>(
    annotator: &RuleColumnAnnotator,
    input: Batches<'_>,
    mut output: Option<W>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(RuleBatches, KeyColumns), AnnotateError> {
    let columns = annotator.flow_columns(input.schema(), false)?;
    let roots = columns.roots();
    let read = columns.in_batch(&roots);
    let threads = if input.is_stream() { 1 } else { annotator.threads() };
    let new = |_| {
        let batches = annotator.batches(&columns);
        let text = RuleText::new(batches.rules(), STYLE);
        Lister { batches, text }
    };
    let listers: Vec<Lister> = (0..threads).map(new).collect();
    let (writes, is_stream) = (output.is_some(), input.is_stream());
    if let Some(output) = &mut output {
        let header = [HEADER, &listers[0].text.header(), b"\n"].concat();
        output.write_all(&header).map_err(AnnotateError::Write)?;
    }
    let list = |lister: &mut Lister, (batch, first_row): (RecordBatch, u64)| {
        lister.list(&batch, first_row, &read, writes)
    };
    let take = |listed: BatchRows| {
        if let Some(output) = &mut output {
            output.write_all(&listed.text).map_err(AnnotateError::Write)?;
            if is_stream {
                output.flush().map_err(AnnotateError::Write)?;
            }
        }
        progress(Progress { rows: listed.rows, total: None });
        listed.failed.map_or(Ok(()), Err)
    };
    let listers = in_order(listers, list, take, |ordered| {
        let mut rows = 0;
        input.each(&roots, ROWS, |batch| {
            let first_row = rows;
            rows += batch.num_rows() as u64;
            ordered.push((batch, first_row))
        })
    })?;
    if let Some(output) = &mut output {
        output.flush().map_err(AnnotateError::Write)?;
    }
    let mut listers = listers.into_iter().map(|lister| lister.batches);
    let mut found = listers.next().unwrap_or_else(|| annotator.batches(&columns));
    listers.for_each(|other| found.merge(&other));
    Ok((found, columns))
}
