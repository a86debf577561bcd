//! Answers from the files and the log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Prefix, mapped_v4};

use crate::error::HistoryError;
use crate::folder::Shared;
use crate::memory::Memory;
use crate::pieces::{self, Piece, Pieces};
use crate::record::{HistoryGap, Recorded, RouteKey, RouteRecord};
use crate::search::{OpenFile, View, needed};
use crate::segment::Lengths;

/// The most tables that are searched if none is named.
const TABLES: usize = 8;
/// The most gaps of an answer: the newest ones.
const GAPS: usize = 100;

/// Answers questions about the history. Any number of threads may ask, and none waits for the writer.
#[derive(Clone, Debug)]
pub struct HistoryReader {
    shared: Arc<Shared>,
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryQuestion {
    /// The route of exactly this prefix.
    Prefix(AnyPrefix),
    /// The routes of all prefixes that cover this address.
    Address(IpAddr),
}

/// The answers of all tables for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryAnswer {
    /// The tables, by name.
    pub tables: Vec<TableThen>,
    /// The times of which changes are missing, as far as the answer may depend on them: since a route's `since`, until
    /// its `until`. The oldest comes first; of more than 100, the newest.
    pub gaps: Vec<HistoryGap>,
}

/// The answer of a table for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableThen {
    /// Its name.
    pub table: Arc<str>,
    /// The routes that were there, the longest prefix first.
    pub routes: Vec<RouteThen>,
    /// Of a prefix without a route: the time of its last change before, and of the next one.
    pub absent: Option<(Option<u64>, Option<u64>)>,
}

/// A route at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteThen {
    /// Its prefix.
    pub prefix: AnyPrefix,
    /// The route, and since when it was there.
    pub record: RouteRecord,
    /// The time of the prefix's next change; `None` if there is none so far.
    pub until: Option<u64>,
}

/// Changes of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastChanges {
    /// The changes with their tables, the newest first.
    pub changes: Vec<(Arc<str>, RouteRecord)>,
    /// If there are more: the last of the times for the next question, and how many changes of that time to skip.
    pub next: Option<(u64, usize)>,
    /// The times of which changes are missing: the oldest first; of more than 100, the newest.
    pub gaps: Vec<HistoryGap>,
}

impl HistoryReader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The times that are recorded, and the gaps between them.
    pub fn recorded(&self) -> (Option<(u64, u64)>, Vec<HistoryGap>) {
        let recorded = self.shared.read().recorded();
        let all =
            recorded.first().zip(recorded.last()).map(|(first, last)| (first.from, last.until));
        (all, pieces::gaps(&recorded).collect())
    }

    /// The routes at this time, in microseconds since 1970, of one table or of all.
    ///
    /// # Errors
    /// If the time is not recorded, no such table was there, a file that is needed cannot be read or is damaged, or
    /// there are many tables and none is named.
    pub fn at(
        &self,
        question: HistoryQuestion,
        time: u64,
        table: Option<&str>,
    ) -> Result<HistoryAnswer, HistoryError> {
        again(|| self.try_at(question, time, table))
    }

    /// The changes of a prefix in these times, the newest first, of one table or of all; at most `limit` of them,
    /// without the first `skip` of those that have the last of these times.
    ///
    /// # Errors
    /// As [`HistoryReader::at`]. Times that are not recorded are no error but gaps.
    pub fn changes(
        &self,
        prefix: AnyPrefix,
        table: Option<&str>,
        times: &RangeInclusive<u64>,
        skip: usize,
        limit: usize,
    ) -> Result<PastChanges, HistoryError> {
        again(|| self.try_changes(prefix, table, times, skip, limit))
    }

    fn try_changes(
        &self,
        prefix: AnyPrefix,
        table: Option<&str>,
        times: &RangeInclusive<u64>,
        skip: usize,
        limit: usize,
    ) -> Result<PastChanges, HistoryError> {
        let (view, recorded) = {
            let tables = self.tables(times, table)?;
            let pieces = self.shared.read();
            let key = |table| RouteKey { table, prefix };
            (View::new(&pieces, tables.into_iter().map(key).collect()), pieces.recorded())
        };
        let found = view.changes(times, limit.saturating_add(skip).saturating_add(1))?;
        let mut changes: Vec<(Arc<str>, RouteRecord)> = Vec::new();
        for (key, found) in view.keys.iter().zip(found) {
            changes.extend(found.into_iter().rev().map(|record| (Arc::clone(&key.table), record)));
        }
        // Those of a table keep their order.
        changes.sort_by_key(|(_, record)| std::cmp::Reverse(record.time));
        let skipped = changes.iter().take_while(|(_, record)| record.time == *times.end()).count();
        let skipped = skipped.min(skip);
        changes.drain(..skipped);
        let is_more = changes.len() > limit;
        changes.truncate(limit);
        let next = changes.last().filter(|_| is_more).map(|(_, last)| {
            let same =
                changes.iter().rev().take_while(|(_, other)| other.time == last.time).count();
            (last.time, same + if last.time == *times.end() { skipped } else { 0 })
        });
        let touches = |gap: &HistoryGap| gap.from <= *times.end() && *times.start() <= gap.until;
        let mut gaps: Vec<HistoryGap> = pieces::gaps(&recorded).filter(touches).collect();
        gaps.drain(..gaps.len().saturating_sub(GAPS));
        Ok(PastChanges { changes, next, gaps })
    }

    fn try_at(
        &self,
        question: HistoryQuestion,
        time: u64,
        table: Option<&str>,
    ) -> Result<HistoryAnswer, HistoryError> {
        let recorded = self.shared.read().recorded();
        pieces::check(&recorded, time)?;
        let mut answer = HistoryAnswer::default();
        for table in self.tables(&(time..=time), table)? {
            answer.tables.push(self.table_at(question, time, table)?);
        }
        answer.gaps = gaps_of(&answer, time, &recorded);
        Ok(answer)
    }

    /// The tables that had changes up to the end of these times, or the named one of them.
    fn tables(
        &self,
        times: &RangeInclusive<u64>,
        name: Option<&str>,
    ) -> Result<Vec<Arc<str>>, HistoryError> {
        let (files, mut tables) = {
            let (pieces, until) = (self.shared.read(), *times.end());
            let Memory { from, is_complete, records, .. } = &pieces.memory;
            let mut files = needed(&pieces.files, *from, *is_complete, until).to_vec();
            // Of a list also tables that are gone at its end.
            let first = files.first().map_or(u64::MAX, Piece::first);
            let before = pieces.files.iter().filter(|piece| piece.first() < first);
            files.extend(before.filter(|piece| piece.has(times)).cloned());
            (files, if *from <= until { tables(records) } else { BTreeSet::new() })
        };
        for piece in &files {
            let file = match piece {
                Piece::Good(file) => file,
                Piece::Bad(bad) => return Err(bad.error()),
            };
            tables.extend(OpenFile::new(file)?.index.tables);
        }
        match name {
            Some(name) => match tables.get(name) {
                Some(table) => Ok(vec![Arc::clone(table)]),
                None => Err(HistoryError::NoTable { count: tables.len() }),
            },
            None if tables.len() > TABLES => Err(HistoryError::Tables { count: tables.len() }),
            None => Ok(tables.into_iter().collect()),
        }
    }

    fn table_at(
        &self,
        question: HistoryQuestion,
        time: u64,
        table: Arc<str>,
    ) -> Result<TableThen, HistoryError> {
        let view = {
            let pieces = self.shared.read();
            let keys = match question {
                HistoryQuestion::Prefix(prefix) => vec![prefix],
                HistoryQuestion::Address(address) => covering(address, &lengths(&pieces)),
            };
            let key = |prefix| RouteKey { table: Arc::clone(&table), prefix };
            View::new(&pieces, keys.into_iter().map(key).collect())
        };
        let states = view.states(time)?;
        let is_there =
            |state: &Option<RouteRecord>| state.as_ref().is_some_and(|state| state.best.is_some());
        let is_prefix = matches!(question, HistoryQuestion::Prefix(_));
        let wanted: Vec<bool> = states.iter().map(|state| is_prefix || is_there(state)).collect();
        let next = view.next(time, &wanted)?;
        let absent = match (&states[..], &next[..]) {
            ([state], [next]) if is_prefix && !is_there(state) => {
                Some((state.as_ref().map(|state| state.time), *next))
            }
            _ => None,
        };
        let mut routes = Vec::new();
        // The longest prefix is the last one.
        for ((key, state), until) in view.keys.iter().zip(states).zip(next).rev() {
            if let Some(record) = state.filter(|state| state.best.is_some()) {
                routes.push(RouteThen { prefix: key.prefix, record, until });
            }
        }
        Ok(TableThen { table, routes, absent })
    }
}

/// Asks again if a file was merged or deleted meanwhile: the new ones have what it had.
fn again<T>(mut ask: impl FnMut() -> Result<T, HistoryError>) -> Result<T, HistoryError> {
    for _ in 0..9 {
        match ask() {
            Err(HistoryError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {}
            answer => return answer,
        }
    }
    ask()
}

/// The tables of the log.
fn tables(records: &BTreeMap<RouteKey, Vec<RouteRecord>>) -> BTreeSet<Arc<str>> {
    let mut tables = BTreeSet::new();
    let mut next = records.keys().next();
    while let Some(RouteKey { table, .. }) = next {
        tables.insert(Arc::clone(table));
        // The last prefix of all.
        let last =
            RouteKey { table: Arc::clone(table), prefix: AnyPrefix::V6(Prefix::host(u128::MAX)) };
        next = records.range((Bound::Excluded(last), Bound::Unbounded)).next().map(|(key, _)| key);
    }
    tables
}

/// The lengths of all prefixes.
fn lengths(pieces: &Pieces) -> Lengths {
    let mut lengths = pieces.memory.lengths;
    pieces
        .files
        .iter()
        .filter_map(Piece::good)
        .for_each(|file| lengths.join(&file.summary.lengths));
    lengths
}

/// The prefixes of these lengths that cover the address, the shortest first.
fn covering(address: IpAddr, lengths: &Lengths) -> Vec<AnyPrefix> {
    fn all<A: Addr>(address: A, lengths: &Lengths) -> Vec<AnyPrefix> {
        let of = |length| Prefix::masked(address, length).ok().map(A::any);
        (0..=A::BITS).filter_map(of).filter(|prefix| lengths.has(*prefix)).collect()
    }
    match address {
        IpAddr::V4(address) => all(u32::from(address), lengths),
        IpAddr::V6(address) => match mapped_v4(address.into()) {
            Some(address) => all(address, lengths),
            None => all(u128::from(address), lengths),
        },
    }
}

/// The gaps on which the answer depends.
fn gaps_of(answer: &HistoryAnswer, time: u64, recorded: &[Recorded]) -> Vec<HistoryGap> {
    let now = recorded.last().map_or(0, |last| last.until);
    let mut times = Vec::new();
    for table in &answer.tables {
        let routes = table.routes.iter().map(|route| (route.record.time, route.until));
        let absent = table.absent.map(|(since, until)| (since.unwrap_or(time), until));
        times.extend(routes.chain(absent).map(|(since, until)| (since, until.unwrap_or(now))));
    }
    let touches = |gap: &HistoryGap| {
        times.iter().any(|&(since, until)| since <= gap.until && gap.from <= until)
    };
    let mut gaps: Vec<HistoryGap> = pieces::gaps(recorded).filter(touches).collect();
    gaps.drain(..gaps.len().saturating_sub(GAPS));
    gaps
}
