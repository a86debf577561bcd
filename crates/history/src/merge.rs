//! Several files in the order of keys, and one file made of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::HistoryError;
use crate::record::{HistoryBreak, Recorded, RouteKey, RouteRecord};
use crate::segment::{Segment, SegmentWriter, Summary};

type Item = Result<(RouteKey, RouteRecord), HistoryError>;
/// Records in the order of keys, and of a key in the order of time.
pub(crate) type Source = Box<dyn Iterator<Item = Item> + Send>;

/// The records of several sources, of which each is later than the one before, in the order of keys.
pub(crate) struct Merged {
    sources: Vec<Source>,
    /// The next record of each source.
    heads: Vec<Option<RouteRecord>>,
    order: BinaryHeap<Reverse<(RouteKey, usize)>>,
    is_begun: bool,
}

impl Merged {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let heads = sources.iter().map(|_| None).collect();
        Self { sources, heads, order: BinaryHeap::new(), is_begun: false }
    }

    fn pull(&mut self, source: usize) -> Result<(), HistoryError> {
        if let Some((key, record)) = self.sources[source].next().transpose()? {
            self.heads[source] = Some(record);
            self.order.push(Reverse((key, source)));
        }
        Ok(())
    }

    /// The next record, with the number of its source.
    pub(crate) fn pop(&mut self) -> Result<Option<(usize, RouteKey, RouteRecord)>, HistoryError> {
        if !std::mem::replace(&mut self.is_begun, true) {
            (0..self.sources.len()).try_for_each(|source| self.pull(source))?;
        }
        let Some(Reverse((key, source))) = self.order.pop() else { return Ok(None) };
        let record = self.heads[source].take();
        self.pull(source)?;
        Ok(record.map(|record| (source, key, record)))
    }
}

/// The last route of each prefix that has one, in the order of keys.
pub(crate) struct LastStates {
    merged: Merged,
    ahead: Option<(RouteKey, RouteRecord)>,
}

impl LastStates {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        Self { merged: Merged::new(sources), ahead: None }
    }

    pub(crate) fn pop(&mut self) -> Result<Option<(RouteKey, RouteRecord)>, HistoryError> {
        loop {
            let next = self.merged.pop()?.map(|(_, key, record)| (key, record));
            let is_same = match (&next, &self.ahead) {
                (Some((next, _)), Some((ahead, _))) => next == ahead,
                (None, None) => return Ok(None),
                _ => false,
            };
            let done = std::mem::replace(&mut self.ahead, next);
            if !is_same && let Some(done) = done.filter(|(_, record)| record.best.is_some()) {
                return Ok(Some(done));
            }
        }
    }
}

/// Makes one file of several that follow each other; of the first one, only the state at its end if it `stays`. `None`
/// if it is to stop.
pub(crate) fn merge(
    files: &[Arc<Segment>],
    stays: bool,
    path: &Path,
    stop: &AtomicBool,
) -> Result<Option<Segment>, HistoryError> {
    let parts = &files[usize::from(stays)..];
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
    let mut recorded = Vec::new();
    for next in parts.iter().flat_map(|file| &file.summary.recorded) {
        join(&mut recorded, *next);
    }
    let summary = Summary {
        first: first.summary.first,
        last: last.summary.last,
        is_complete: true,
        is_merged: true,
        from: first.summary.from,
        until: last.summary.until,
        recorded,
        ..Summary::default()
    };
    let mut writer = SegmentWriter::create(path, summary)?;
    let sources = files.iter().map(|file| Ok(Box::new(file.all()?) as Source));
    let mut merged = Merged::new(sources.collect::<Result<_, HistoryError>>()?);
    let mut base: Option<(RouteKey, RouteRecord)> = None;
    let mut count = 0u32;
    loop {
        let next = merged.pop()?;
        let is_of_first = stays && next.as_ref().is_some_and(|(source, ..)| *source == 0);
        let is_same = match (&next, &base) {
            (Some((_, next, _)), Some((base, _))) => next == base,
            _ => false,
        };
        // The last record of the first file is the state with which the new one begins.
        if !(is_of_first && is_same)
            && let Some((key, record)) = base.take().filter(|(_, record)| record.best.is_some())
        {
            writer.push(&key, &RouteRecord { is_base: true, ..record })?;
        }
        match next {
            Some((_, key, record)) if is_of_first => base = Some((key, record)),
            Some((_, key, record)) => writer.push(&key, &record)?,
            None => break,
        }
        count = count.wrapping_add(1);
        if count.is_multiple_of(4096) && stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    writer.finish().map(Some)
}

/// Appends a time that is recorded, to the one before if it goes on.
pub(crate) fn join(all: &mut Vec<Recorded>, next: Recorded) {
    match all.last_mut() {
        Some(last) if next.before == HistoryBreak::None && next.from == last.until => {
            last.until = next.until;
        }
        _ => all.push(next),
    }
}
