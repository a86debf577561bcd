//! Many addresses: chunks of columns, shared out among threads.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use fibula_accel::BatchSummary;
use fibula_annotate::{AnnotateError, Annotated, ColumnAnnotator, Counts};
use fibula_offload::OnDevice;

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
    /// What looked the addresses up, if the table is on a device.
    pub lookups: BatchSummary,
}

/// A part of a chunk, or several chunks.
struct Part {
    chunks: Range<usize>,
    /// In the first of them.
    start: usize,
    len: usize,
    /// Rows before it, in the whole column.
    before: usize,
}

/// Looks up the addresses of a column, chunk by chunk, with at most so many threads. What is added is
/// named after the column, if it has a name. The tables of several dates need the times of all rows, as one array.
/// `device` is the table of the annotator, if it is on one.
pub fn annotate(
    annotator: &ColumnAnnotator,
    name: Option<&str>,
    chunks: &[ArrayRef],
    times: Option<&ArrayRef>,
    threads: usize,
    device: Option<&OnDevice>,
) -> Result<Added, AnnotateError> {
    let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let threads = threads.clamp(1, rows.div_ceil(SHARE).max(1));
    let parts = parts(chunks, device.is_some());
    let called = name.unwrap_or("address");
    let done = run(&parts, threads, |part| {
        let found = one(annotator, called, chunks, times, part);
        // Others may look up on the same device meanwhile, in other threads.
        let lookups = device.map(OnDevice::take_summary_of_thread).unwrap_or_default();
        found.map(|found| (found, lookups))
    })?;

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
        lookups: BatchSummary::default(),
    };
    for (part, (found, lookups)) in parts.iter().zip(done) {
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
        added.lookups += lookups;
        for (out, column) in added.columns.iter_mut().zip(found.columns) {
            if part.chunks.len() == 1 {
                out.push(column);
                continue;
            }
            let mut start = 0;
            for chunk in &chunks[part.chunks.clone()] {
                out.push(column.slice(start, chunk.len()));
                start += chunk.len();
            }
        }
    }
    Ok(added)
}

/// All chunks, long ones in pieces, and if `join`, short ones together: a device needs many addresses at once.
fn parts(chunks: &[ArrayRef], join: bool) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut before = 0;
    // The bytes of the last part, if more chunks may join it.
    let mut open = None;
    for (chunk, array) in chunks.iter().enumerate() {
        let bytes = joined_bytes(array).filter(|_| join && array.len() <= PIECE);
        if let (Some(has), Some(bytes), Some(last)) = (open, bytes, parts.last_mut())
            && last.len + array.len() <= PIECE
            && has + bytes <= i32::MAX as usize
        {
            last.chunks.end += 1;
            last.len += array.len();
            before += array.len();
            open = Some(has + bytes);
            continue;
        }
        open = bytes;
        let mut start = 0;
        loop {
            let len = PIECE.min(array.len() - start);
            parts.push(Part { chunks: chunk..chunk + 1, start, len, before: before + start });
            start += len;
            if start == array.len() {
                break;
            }
        }
        before += array.len();
    }
    parts
}

/// The bytes that 32-bit offsets of an array reach, 0 if it has none. `None` if arrays of the type are not joined: a
/// column of bytes is read as addresses or as text chunk by chunk, each value of a dictionary is looked up once, and
/// lists may have any number of addresses.
fn joined_bytes(array: &ArrayRef) -> Option<usize> {
    match array.data_type() {
        DataType::Utf8 => Some(match array.as_string::<i32>().value_offsets() {
            [first, .., last] => (last - first) as usize,
            _ => 0,
        }),
        DataType::LargeUtf8 | DataType::Utf8View => Some(0),
        DataType::UInt32 | DataType::UInt64 | DataType::Int64 => Some(0),
        _ => None,
    }
}

/// The chunks as one array.
fn joined(chunks: &[ArrayRef]) -> Result<ArrayRef, AnnotateError> {
    let chunks: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.as_ref()).collect();
    arrow_select::concat::concat(&chunks)
        .map_err(|error| AnnotateError::File { what: error.to_string() })
}

/// Looks up a part.
fn one(
    annotator: &ColumnAnnotator,
    name: &str,
    chunks: &[ArrayRef],
    times: Option<&ArrayRef>,
    part: &Part,
) -> Result<Annotated, AnnotateError> {
    let array = match &chunks[part.chunks.clone()] {
        [chunk] => chunk.slice(part.start, part.len),
        several => joined(several)?,
    };
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

fn run<T: Send>(
    parts: &[Part],
    threads: usize,
    one: impl Fn(&Part) -> Result<T, AnnotateError> + Sync,
) -> Result<Vec<T>, AnnotateError> {
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
