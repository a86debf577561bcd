//! The files of a history, in order, with those that cannot be read.

use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::HistoryError;
use crate::memory::Memory;
use crate::merge::join;
use crate::record::{HistoryBreak, HistoryGap, Recorded};
use crate::segment::Segment;

/// A file, or its place.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Good(Arc<Segment>),
    Bad(Arc<Bad>),
}

/// A file that is missing or damaged as a whole.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) path: PathBuf,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) what: &'static str,
}

impl Bad {
    pub(crate) fn error(&self) -> HistoryError {
        HistoryError::damaged(&self.path, self.offset, self.what)
    }
}

impl Piece {
    pub(crate) fn first(&self) -> u64 {
        match self {
            Self::Good(file) => file.summary.first,
            Self::Bad(bad) => bad.first,
        }
    }

    pub(crate) fn last(&self) -> u64 {
        match self {
            Self::Good(file) => file.summary.last,
            Self::Bad(bad) => bad.last,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Good(file) => file.bytes,
            Self::Bad(bad) => bad.bytes,
        }
    }

    pub(crate) fn path(&self) -> &PathBuf {
        match self {
            Self::Good(file) => &file.path,
            Self::Bad(bad) => &bad.path,
        }
    }

    pub(crate) fn good(&self) -> Option<&Arc<Segment>> {
        match self {
            Self::Good(file) => Some(file),
            Self::Bad(_) => None,
        }
    }

    /// Whether it has changes of these times.
    pub(crate) fn has(&self, times: &RangeInclusive<u64>) -> bool {
        self.good().is_some_and(|file| {
            file.summary.from <= *times.end() && *times.start() <= file.summary.until
        })
    }

    /// Whether no file before it is needed.
    pub(crate) fn is_complete(&self) -> bool {
        self.good().is_some_and(|file| file.summary.is_complete)
    }
}

/// The files and the log.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) files: Vec<Piece>,
    pub(crate) memory: Memory,
}

impl Pieces {
    /// The times that are recorded, in order.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        let mut all: Vec<Recorded> = Vec::new();
        let mut is_damaged = false;
        for piece in &self.files {
            let Piece::Good(file) = piece else {
                is_damaged = true;
                continue;
            };
            for next in &file.summary.recorded {
                let before = if is_damaged { HistoryBreak::Damage } else { next.before };
                is_damaged = false;
                join(&mut all, Recorded { before, ..*next });
            }
        }
        for next in &self.memory.recorded {
            let before = if is_damaged { HistoryBreak::Damage } else { next.before };
            is_damaged = false;
            join(&mut all, Recorded { before, ..*next });
        }
        all
    }

    /// The numbers of the files on which the log depends, from a complete one on.
    pub(crate) fn chain(&self) -> Range<usize> {
        if self.memory.is_complete {
            return self.files.len()..self.files.len();
        }
        let first = self.files.iter().rposition(Piece::is_complete);
        first.unwrap_or(0)..self.files.len()
    }
}

/// The times between those that are recorded.
pub(crate) fn gaps(recorded: &[Recorded]) -> impl Iterator<Item = HistoryGap> {
    recorded.windows(2).map(|pair| HistoryGap {
        from: pair[0].until,
        until: pair[1].from,
        why: pair[1].before,
    })
}

/// Checks that a time is recorded.
pub(crate) fn check(recorded: &[Recorded], time: u64) -> Result<(), HistoryError> {
    let (Some(first), Some(last)) = (recorded.first(), recorded.last()) else {
        return Err(HistoryError::Empty);
    };
    if time < first.from {
        return Err(HistoryError::Before { oldest: first.from });
    }
    if time > last.until {
        return Err(HistoryError::After { newest: last.until });
    }
    match gaps(recorded).find(|gap| gap.from < time && time < gap.until) {
        Some(gap) => Err(HistoryError::Missing(gap)),
        None => Ok(()),
    }
}
