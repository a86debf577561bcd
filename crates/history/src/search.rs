//! Searches in a file, and in a row of files.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::HistoryError;
use crate::frame::Frames;
use crate::memory::Memory;
use crate::pieces::{Piece, Pieces};
use crate::record::{RouteKey, RouteRecord};
use crate::segment::{Index, Segment, Summary};

/// A file in which keys are searched, with the block that was read last.
pub(crate) struct OpenFile<'s> {
    segment: &'s Segment,
    frames: Frames,
    pub(crate) index: Index,
    block: Option<(usize, Vec<(RouteKey, RouteRecord)>)>,
}

impl<'s> OpenFile<'s> {
    pub(crate) fn new(segment: &'s Segment) -> Result<Self, HistoryError> {
        let mut frames = segment.frames()?;
        let index = segment.index(&mut frames)?;
        Ok(Self { segment, frames, index, block: None })
    }

    /// The records of a key in a block.
    fn records(
        &mut self,
        block: usize,
        key: &RouteKey,
    ) -> Result<&[(RouteKey, RouteRecord)], HistoryError> {
        if self.block.as_ref().is_none_or(|(number, _)| *number != block) {
            let Some(offset) = self.index.offset(block) else { return Ok(&[]) };
            let (records, _) = self.segment.records(&mut self.frames, offset)?;
            self.block = Some((block, records));
        }
        let records = self.block.as_ref().map_or(&[][..], |(_, records)| records);
        let begin = records.partition_point(|(other, _)| other < key);
        let end = begin + records[begin..].partition_point(|(other, _)| other == key);
        Ok(&records[begin..end])
    }

    /// The last record of the key up to this time.
    pub(crate) fn last(
        &mut self,
        key: &RouteKey,
        time: u64,
    ) -> Result<Option<RouteRecord>, HistoryError> {
        let Some(block) = self.index.find(key, time) else { return Ok(None) };
        let records = self.records(block, key)?;
        let count = records.partition_point(|(_, record)| record.time <= time);
        Ok(count.checked_sub(1).map(|at| records[at].1.clone()))
    }

    /// Calls `take` with the changes of the key after this time, in order, until it is false.
    pub(crate) fn after(
        &mut self,
        key: &RouteKey,
        time: Option<u64>,
        mut take: impl FnMut(&RouteRecord) -> bool,
    ) -> Result<(), HistoryError> {
        let first = self.index.find(key, time.unwrap_or(0)).unwrap_or(0);
        for block in first..self.index.len() {
            if block > first && !self.index.begins_with(block, key) {
                break;
            }
            for (_, record) in self.records(block, key)? {
                let is_later = time.is_none_or(|time| record.time > time);
                if is_later && !record.is_base && !take(record) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// One state of the files, and what the log has about some keys of a table.
pub(crate) struct View {
    pub(crate) files: Vec<Piece>,
    pub(crate) keys: Vec<RouteKey>,
    /// Of each key, its records in the log.
    log: Vec<Vec<RouteRecord>>,
    log_from: u64,
    is_log_complete: bool,
}

impl View {
    pub(crate) fn new(pieces: &Pieces, keys: Vec<RouteKey>) -> Self {
        let Memory { records, from, is_complete, .. } = &pieces.memory;
        let log = keys.iter().map(|key| records.get(key).cloned().unwrap_or_default()).collect();
        let files = pieces.files.clone();
        Self { files, keys, log, log_from: *from, is_log_complete: *is_complete }
    }

    /// The files that may be needed for the routes at this time, the newest first.
    pub(crate) fn needed(&self, time: u64) -> &[Piece] {
        needed(&self.files, self.log_from, self.is_log_complete, time)
    }

    /// The last record of each key up to this time.
    pub(crate) fn states(&self, time: u64) -> Result<Vec<Option<RouteRecord>>, HistoryError> {
        let mut found: Vec<Option<RouteRecord>> = vec![None; self.keys.len()];
        for (found, records) in found.iter_mut().zip(&self.log) {
            let count = records.partition_point(|record| record.time <= time);
            *found = count.checked_sub(1).map(|at| records[at].clone());
        }
        for piece in self.needed(time).iter().rev() {
            if found.iter().all(Option::is_some) {
                break;
            }
            let mut file = OpenFile::new(good(piece)?)?;
            for (found, key) in
                found.iter_mut().zip(&self.keys).filter(|(found, _)| found.is_none())
            {
                *found = file.last(key, time)?;
            }
        }
        Ok(found)
    }

    /// The time of the next change after this time, of each key that is `wanted`. Files that are damaged as a whole are
    /// left out: the times in them are no times that are recorded.
    pub(crate) fn next(
        &self,
        time: u64,
        wanted: &[bool],
    ) -> Result<Vec<Option<u64>>, HistoryError> {
        let mut found: Vec<Option<u64>> = vec![None; self.keys.len()];
        for file in
            self.files.iter().filter_map(Piece::good).filter(|file| file.summary.until >= time)
        {
            let open = |at: usize, found: &[Option<u64>]| wanted[at] && found[at].is_none();
            if !(0..found.len()).any(|at| open(at, &found)) {
                break;
            }
            let has =
                |at: usize| open(at, &found) && file.summary.lengths.has(self.keys[at].prefix);
            let searched: Vec<usize> = (0..found.len()).filter(|&at| has(at)).collect();
            if searched.is_empty() {
                continue;
            }
            let mut file = OpenFile::new(file)?;
            for at in searched {
                file.after(&self.keys[at], Some(time), |record| {
                    found[at] = Some(record.time);
                    false
                })?;
            }
        }
        for (found, records) in found.iter_mut().zip(&self.log).filter(|(found, _)| found.is_none())
        {
            *found = records.iter().map(|record| record.time).find(|&later| later > time);
        }
        Ok(found)
    }

    /// The last changes of each key in these times, at most this many of each, the oldest first. Files that are damaged
    /// as a whole are left out, as in [`View::next`].
    pub(crate) fn changes(
        &self,
        times: &RangeInclusive<u64>,
        most: usize,
    ) -> Result<Vec<VecDeque<RouteRecord>>, HistoryError> {
        let (from, until) = (*times.start(), *times.end());
        let mut found: Vec<VecDeque<RouteRecord>> = Vec::new();
        for records in &self.log {
            let inside = records.iter().filter(|record| times.contains(&record.time));
            let count = inside.clone().count();
            found.push(inside.skip(count.saturating_sub(most)).cloned().collect());
        }
        for file in self.files.iter().rev().filter_map(Piece::good) {
            let Summary { from: begin, until: end, .. } = file.summary;
            if end < from || found.iter().all(|found| found.len() >= most) {
                break;
            }
            if begin > until {
                continue;
            }
            let mut file = OpenFile::new(file)?;
            for (found, key) in
                found.iter_mut().zip(&self.keys).filter(|(found, _)| found.len() < most)
            {
                let room = most - found.len();
                let mut last = VecDeque::new();
                file.after(key, from.checked_sub(1), |record| {
                    if record.time > until {
                        return false;
                    }
                    if last.len() == room {
                        last.pop_front();
                    }
                    last.push_back(record.clone());
                    true
                })?;
                last.append(found);
                *found = last;
            }
        }
        Ok(found)
    }
}

fn good(piece: &Piece) -> Result<&Arc<Segment>, HistoryError> {
    match piece {
        Piece::Good(file) => Ok(file),
        Piece::Bad(bad) => Err(bad.error()),
    }
}

/// The files that may be needed for the routes at this time, the oldest first: those from a complete one on, up to the
/// one that has the time.
pub(crate) fn needed(files: &[Piece], log_from: u64, is_log_complete: bool, time: u64) -> &[Piece] {
    if log_from <= time && is_log_complete {
        return &[];
    }
    let has = |piece: &Piece| piece.good().is_some_and(|file| file.summary.from <= time);
    let end = match log_from <= time {
        true => files.len(),
        false => files.iter().rposition(has).map_or(0, |at| at + 1),
    };
    let begin = files[..end].iter().rposition(Piece::is_complete).unwrap_or(0);
    &files[begin..end]
}
