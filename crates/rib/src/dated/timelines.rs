//! The rows of each prefix over time.

use fibula_core::{Addr, FamilyType, Hop, Prefix};
use serde::{Deserialize, Serialize};

use super::Moment;
use crate::array::Array;
use crate::columns::NULL;

/// No timeline.
pub(crate) const NO_TIMELINE: u32 = u32::MAX;

/// The table of a date, as the file records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDate {
    /// The time from which it holds, until the next table.
    pub at: Moment,
    /// The name of its source.
    pub source: String,
    /// Number of its IPv4 routes.
    pub v4: u64,
    /// Number of its IPv6 routes.
    pub v6: u64,
}

/// The dates of the tables, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dates {
    tables: Vec<TableDate>,
    /// The searched keys of each table, stored again.
    seconds: Vec<i64>,
    /// Tables a second, on average.
    rate: f64,
}

impl Dates {
    /// The number for no table, for times before the first one.
    pub const NONE: u16 = u16::MAX;

    pub(crate) fn new(tables: Vec<TableDate>) -> Self {
        let seconds: Vec<i64> = tables.iter().map(|table| table.at.unix()).collect();
        let rate = match &*seconds {
            [first, .., last] => (seconds.len() - 1) as f64 / (last - first) as f64,
            _ => 0.0,
        };
        Self { tables, seconds, rate }
    }

    /// The tables with their dates, ascending.
    pub fn tables(&self) -> &[TableDate] {
        &self.tables
    }

    /// Number of dates.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are no dates.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The number of the newest table that is not later; [`Dates::NONE`] before the first one.
    ///
    /// The search begins at a proportional guess. Tables usually have equal distances, so the guess is nearly right,
    /// in whatever order times are looked up.
    #[inline]
    pub fn number(&self, time: Moment) -> u16 {
        let (time, seconds) = (time.unix(), &*self.seconds);
        let (Some(&first), Some(&last)) = (seconds.first(), seconds.last()) else {
            return Self::NONE;
        };
        if time < first {
            return Self::NONE;
        }
        let newest = seconds.len() - 1;
        if time >= last {
            return newest as u16;
        }
        // `first <= time < last`, so there are two dates, and this is below the newest.
        let guess = (((time - first) as f64 * self.rate) as usize).min(newest - 1);
        for at in [guess, guess + 1] {
            if seconds[at] <= time && seconds.get(at + 1).is_some_and(|&next| time < next) {
                return at as u16;
            }
        }
        (seconds.partition_point(|&second| second <= time) - 1) as u16
    }

    /// The number of the newest table; [`Dates::NONE`] if there is none.
    pub fn newest(&self) -> u16 {
        self.len().checked_sub(1).map_or(Self::NONE, |newest| newest as u16)
    }
}

/// The timelines of a family.
#[derive(Clone)]
pub struct Timelines {
    /// The position at which the changes of each timeline begin, and after the last one their end.
    pub(crate) first: Array<u32>,
    /// The timeline of the next shorter prefix, which is used where this one has no row.
    pub(crate) up: Array<u32>,
    /// The length of its prefix.
    pub(crate) len: Array<u8>,
    /// The changes, as [`words`] lays them out.
    pub(crate) changes: Array<u16>,
}

/// Words that a change takes.
pub(crate) const WORDS: usize = 3;

/// The words of a timeline's changes: the numbers of the dates since which they hold, then their rows ([`NULL`] where
/// the prefix is gone), the low word of each first. Together, so that a lookup fetches one place in memory.
pub(crate) fn words(changes: &[(u16, u32)]) -> impl Iterator<Item = u16> + '_ {
    let rows = changes.iter().flat_map(|&(_, row)| [row as u16, (row >> 16) as u16]);
    changes.iter().map(|&(from, _)| from).chain(rows)
}

/// The dates and the words of the rows of a timeline's changes.
#[inline]
pub(crate) fn parted(words: &[u16]) -> (&[u16], &[u16]) {
    words.split_at(words.len() / WORDS)
}

/// The row of change `at`, of the words of rows.
#[inline]
pub(crate) fn row_at(rows: &[u16], at: usize) -> Option<u32> {
    let words = rows.get(2 * at..2 * at + 2)?;
    Some(u32::from(words[0]) | u32::from(words[1]) << 16)
}

/// The timelines of each family.
pub(crate) struct Lines;

impl FamilyType for Lines {
    type Of<A: Addr> = Timelines;
}

impl Default for Timelines {
    fn default() -> Self {
        let (first, none) = (vec![0].into(), Vec::new());
        Self { first, up: none.into(), len: vec![].into(), changes: vec![].into() }
    }
}

impl Timelines {
    /// Number of timelines.
    pub fn len(&self) -> usize {
        self.up.len()
    }

    /// Whether there are no timelines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of changes, including the first rows.
    pub fn changes(&self) -> usize {
        self.changes.len() / WORDS
    }

    /// Resolves the arrays once, for many lookups.
    #[inline]
    pub fn ask(&self) -> Ask<'_> {
        let Self { first, up, len, changes } = self;
        Ask { first, up, len, changes }
    }
}

/// The timelines of a family, prepared for lookups.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    first: &'a [u32],
    up: &'a [u32],
    len: &'a [u8],
    changes: &'a [u16],
}

impl<'a> Ask<'a> {
    /// The words of a timeline's changes.
    #[inline]
    fn words(self, timeline: Hop) -> Option<&'a [u16]> {
        let place = timeline.to_bits() as usize;
        let (&start, &end) = (self.first.get(place)?, self.first.get(place + 1)?);
        self.changes.get(WORDS * start as usize..WORDS * end as usize)
    }

    /// The row of the timeline's own prefix at a date, if the prefix is in the table of that date.
    #[inline]
    pub fn own(self, timeline: Hop, date: u16) -> Option<Hop> {
        let (from, rows) = parted(self.words(timeline)?);
        // Most have one change, and few more than a handful.
        let held = match from {
            [only] => usize::from(*only <= date),
            more => more.partition_point(|&from| from <= date),
        };
        let row = row_at(rows, held.checked_sub(1)?)?;
        (row != NULL).then(|| Hop::from_bits(row))
    }

    /// Loads the changes of timelines into the caches, [`Ask::AT_ONCE`] at most. The loops are short, so many loads
    /// run at the same time. [`Ask::find`] would wait for each of them.
    #[inline]
    pub fn fetch(self, timelines: &[Hop]) {
        let mut starts = [0; Self::AT_ONCE];
        for (start, timeline) in starts.iter_mut().zip(timelines) {
            *start = self.first.get(timeline.to_bits() as usize).copied().unwrap_or(0);
        }
        let first = |&start: &u32| self.changes.get(WORDS * start as usize).copied().unwrap_or(0);
        let sum = starts.iter().take(timelines.len()).map(first).fold(0, |sum, word| sum ^ word);
        std::hint::black_box(sum);
    }

    /// Maximum number of timelines fetched together.
    pub const AT_ONCE: usize = 256;

    /// The row at a date, and the length of its prefix, which is the longest match of that date. `None` if no prefix
    /// of that date matches. `timeline` is the answer of an engine, which may be [`Hop::NONE`].
    #[inline]
    pub fn find(self, timeline: Hop, date: u16) -> Option<(Hop, u8)> {
        let mut timeline = timeline;
        if date == Dates::NONE {
            return None;
        }
        // Every step leads to a shorter prefix; the bound keeps a forged file from making lookups slow.
        for _ in 0..=128 {
            if let Some(row) = self.own(timeline, date) {
                return Some((row, *self.len.get(timeline.to_bits() as usize)?));
            }
            timeline = Hop::from_bits(*self.up.get(timeline.to_bits() as usize)?);
        }
        None
    }

    /// The changes of a timeline's own prefix: the number of the date, and the row; `None` when the prefix is
    /// removed.
    pub fn changes(self, timeline: Hop) -> impl Iterator<Item = (u16, Option<Hop>)> + 'a {
        let (from, rows) = parted(self.words(timeline).unwrap_or_default());
        from.iter().enumerate().map(move |(at, &from)| {
            let row = row_at(rows, at).filter(|&row| row != NULL);
            (from, row.map(Hop::from_bits))
        })
    }
}

/// The prefix with this length that covers the address. With the length from [`Ask::find`], it is the matched prefix.
#[inline]
pub fn prefix_of<A: Addr>(addr: A, len: u8) -> Prefix<A> {
    Prefix::masked(addr, len.min(A::BITS)).unwrap_or(Prefix::ALL)
}
