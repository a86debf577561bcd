//! Many addresses: chunks of columns, shared out among threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_array::{Array, ArrayRef};
use arrow_schema::FieldRef;
use fibula_annotate::{AnnotateError, Annotated, ColumnAnnotator, Counts};

/// Fewer rows are not worth a thread: they take it some milliseconds.
const SHARE: usize = 1 << 17;

/// More rows are not one array: putting together what threads made would take longer than making it,
/// and prefixes of very many rows could be more than 32-bit offsets reach.
const PIECE: usize = 1 << 20;

/// The columns that were added.
pub struct Added {
    pub fields: Vec<FieldRef>,
    /// By added column, then by chunk: the input's chunks, those of more than [`PIECE`] rows in pieces.
    pub columns: Vec<Vec<ArrayRef>>,
    pub rows: usize,
    pub matched: u64,
    pub unmatched: u64,
    pub unparsable: u64,
    pub empty: u64,
    /// Of the tables of several dates: rows before the first one, and rows without a time.
    pub before: u64,
    pub untimed: u64,
    /// The first cell that is not an address: its row, counted from 0.
    pub first_unparsable: Option<(usize, String)>,
    /// The first cell that is not a time.
    pub first_untimed: Option<(usize, String)>,
}

/// A part of a chunk.
struct Part {
    chunk: usize,
    start: usize,
    len: usize,
    /// Rows before it, in the whole column.
    before: usize,
}

/// Looks up the addresses of a column, chunk by chunk, with at most so many threads. What is added is
/// named after the column, if it has a name. The tables of several dates need the times of all rows, as one array.
pub fn annotate(
    annotator: &ColumnAnnotator,
    name: Option<&str>,
    chunks: &[ArrayRef],
    times: Option<&ArrayRef>,
    threads: usize,
) -> Result<Added, AnnotateError> {
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let threads = threads.clamp(1, rows.div_ceil(SHARE).max(1));
    let parts = parts(chunks);
    let called = name.unwrap_or("address");
    let done = run(&parts, threads, |part| one(annotator, called, chunks, times, part))?;

    let mut fields = match chunks.first() {
        Some(chunk) => annotator.fields_for(called, chunk.data_type()),
        None => annotator.fields(called),
    };
    if name.is_none() {
        let plain = |field: &FieldRef| {
            let name = field.name()["address_".len()..].to_owned();
            Arc::new(field.as_ref().clone().with_name(name))
        };
        fields = fields.iter().map(plain).collect();
    }
    let mut added = Added {
        columns: vec![Vec::with_capacity(chunks.len()); fields.len()],
        fields,
        rows,
        matched: 0,
        unmatched: 0,
        unparsable: 0,
        empty: 0,
        before: 0,
        untimed: 0,
        first_unparsable: None,
        first_untimed: None,
    };
    for (part, found) in parts.iter().zip(done) {
        let Counts { matched, unmatched, unparsable, empty, before, untimed, .. } = found.counts;
        added.matched += matched;
        added.unmatched += unmatched;
        added.unparsable += unparsable;
        added.empty += empty;
        added.before += before;
        added.untimed += untimed;
        let in_column = |(row, text)| (part.before + row, text);
        let first = &mut added.first_unparsable;
        *first = first.take().or(found.first_unparsable.map(in_column));
        let first = &mut added.first_untimed;
        *first = first.take().or(found.first_untimed.map(in_column));
        for (chunks, column) in added.columns.iter_mut().zip(found.columns) {
            chunks.push(column);
        }
    }
    Ok(added)
}

/// All chunks, long ones in pieces.
fn parts(chunks: &[ArrayRef]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut before = 0;
    for (chunk, array) in chunks.iter().enumerate() {
        let mut start = 0;
        loop {
            let len = PIECE.min(array.len() - start);
            parts.push(Part { chunk, start, len, before: before + start });
            start += len;
            if start == array.len() {
                break;
            }
        }
        before += array.len();
    }
    parts
}

/// Looks up a part.
fn one(
    annotator: &ColumnAnnotator,
    name: &str,
    chunks: &[ArrayRef],
    times: Option<&ArrayRef>,
    part: &Part,
) -> Result<Annotated, AnnotateError> {
    let array = chunks[part.chunk].slice(part.start, part.len);
    let found = match times {
        None => annotator.annotate(name, &array),
        Some(times) => annotator.annotate_at(name, &array, &times.slice(part.before, part.len)),
    };
    found.map_err(|mut error| {
        if let AnnotateError::Cell { row, .. } | AnnotateError::TimeCell { row, .. } = &mut error {
            *row += part.before as u64;
        }
        error
    })
}

fn run(
    parts: &[Part],
    threads: usize,
    one: impl Fn(&Part) -> Result<Annotated, AnnotateError> + Sync,
) -> Result<Vec<Annotated>, AnnotateError> {
    if threads == 1 {
        return parts.iter().map(one).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, part)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, parts.get(at)?)))
        {
            let found = one(part);
            if found.is_err() {
                // What lies before is with a thread already, what lies behind is not needed.
                next.store(parts.len(), Ordering::Relaxed);
            }
            done.push((at, found));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, found)| found).collect()
}
