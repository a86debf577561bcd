//! Builds the differences of tables that are added in the order of their dates.

use fibula_core::{Addr, FamilyType, Hop, PerFamily, Prefix, Route, Routes};

use super::timelines::{self, Dates, NO_TIMELINE, TableDate, Timelines, WORDS};
use super::values::Values;
use super::{DatedTable, Moment};
use crate::columns::NULL;
use crate::intern::Interner;
use crate::snapshot::DatedSnapshot;
use crate::{Pod, Provenance, Table, TableError};

/// Takes tables in the order of their dates and keeps only the changes from each to the next.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_rib::{DatedBuilder, DatedSnapshot, EnginePart, Moment, Table};
/// let table = |hop| {
///     let v4: Routes<u32> = [(Prefix::ALL, Hop::new(hop))].into_iter().collect();
///     Table::from_routes(v4, Routes::default())
/// };
/// let mut builder = DatedBuilder::default();
/// builder.add(Moment::parse(b"2024-05-01").unwrap(), "may", &table(0))?;
/// builder.add(Moment::parse(b"2024-06-01").unwrap(), "june", &table(7))?;
/// let dated = builder.finish()?;
/// let bytes = dated.to_bytes(&EnginePart::none(), &EnginePart::none())?;
/// let dated = DatedSnapshot::from_bytes(bytes)?;
/// let number = dated.dates().number(Moment::parse(b"2024-05-31T23:59:59Z").unwrap());
/// assert_eq!(dated.dates().tables()[usize::from(number)].source, "may");
/// assert_eq!(dated.table(number).v4.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct DatedBuilder {
    dates: Vec<TableDate>,
    values: Values,
    families: PerFamily<Family>,
}

/// The growing arrays of each family.
struct Family;

impl FamilyType for Family {
    type Of<A: Addr> = Growing<A>;
}

/// All prefixes so far in order, and their changes.
#[derive(Default)]
struct Growing<A: Addr> {
    known: Vec<Known<A>>,
    changes: Vec<Change>,
}

#[derive(Clone, Copy)]
struct Known<A: Addr> {
    prefix: Prefix<A>,
    /// Its number, by first appearance.
    number: u32,
    /// Its row in the last table, [`NULL`] if it was not there.
    row: u32,
}

#[derive(Clone, Copy)]
struct Change {
    number: u32,
    row: u32,
    date: u16,
}

impl DatedBuilder {
    /// Makes a builder with the tables of a file. Added tables must be newer.
    ///
    /// # Errors
    /// The errors of [`DatedBuilder::add`].
    pub fn from_snapshot(dated: &DatedSnapshot) -> Result<Self, TableError> {
        let mut this = Self { dates: dated.dates().tables().to_vec(), ..Self::default() };
        let rows = this.values.rows(dated.columns())?;
        *this.families.get_mut::<u32>() = Growing::of(dated, &rows);
        *this.families.get_mut::<u128>() = Growing::of(dated, &rows);
        Ok(this)
    }

    /// Adds the table of a date. `source` is the name of its source.
    ///
    /// # Errors
    /// [`TableError::Dates`] if it is not later than the table before; [`TableError::Kind`] for text in a column that
    /// has integers in earlier tables; [`TableError::Rows`]; [`TableError::Limit`].
    pub fn add(&mut self, at: Moment, source: &str, table: &Table) -> Result<(), TableError> {
        table.check()?;
        if let Some(last) = self.dates.last()
            && last.at >= at
        {
            let (earlier, later) = (last.at.to_string(), at.to_string());
            return Err(TableError::Dates { earlier, later });
        }
        // The largest number means no date.
        let date = u16::try_from(self.dates.len()).ok().filter(|&date| date < u16::MAX);
        let date = date.ok_or(TableError::Limit { what: "dates" })?;
        let rows = self.values.rows(&table.columns)?;
        self.families.get_mut::<u32>().day(date, &table.v4, &rows)?;
        self.families.get_mut::<u128>().day(date, &table.v6, &rows)?;
        let (v4, v6) = (table.v4.len() as u64, table.v6.len() as u64);
        self.dates.push(TableDate { at, source: source.to_owned(), v4, v6 });
        Ok(())
    }

    /// The date of the newest table.
    pub fn newest(&self) -> Option<Moment> {
        self.dates.last().map(|table| table.at)
    }

    /// Finishes the tables.
    ///
    /// # Errors
    /// [`TableError::Limit`].
    pub fn finish(self) -> Result<DatedTable, TableError> {
        let PerFamily { v4, v6 } = self.families;
        let (v4, v4_lines) = v4.finish()?;
        let (v6, v6_lines) = v6.finish()?;
        let union =
            Table { v4, v6, columns: self.values.finish()?, provenance: Provenance::of_now() };
        let timelines = PerFamily { v4: v4_lines, v6: v6_lines };
        Ok(DatedTable { union, timelines, dates: Dates::new(self.dates) })
    }
}

impl<A: Addr> Growing<A> {
    fn of(dated: &DatedSnapshot, rows: &[u32]) -> Self
    where
        A: Pod,
    {
        let (routes, ask) = (dated.routes::<A>(), dated.timelines::<A>().ask());
        let mut this = Self { known: Vec::new(), changes: Vec::new() };
        for number in 0..routes.len() {
            let route = routes.get(number);
            let (number, mut now) = (number as u32, NULL);
            for (date, row) in ask.changes(route.hop) {
                now = row.and_then(Hop::index).map_or(NULL, |row| rows[row as usize]);
                this.changes.push(Change { number, row: now, date });
            }
            this.known.push(Known { prefix: route.prefix, number, row: now });
        }
        this
    }

    /// Compares the table of a date with the one before, in one pass over both.
    fn day(&mut self, date: u16, routes: &Routes<A>, rows: &[u32]) -> Result<(), TableError> {
        let Self { known, changes } = self;
        let mut change = |known: &mut Known<A>, row: u32| {
            if known.row != row {
                known.row = row;
                changes.push(Change { number: known.number, row, date });
            }
        };
        let mut come: Vec<(usize, Known<A>)> = Vec::new();
        let mut at = 0;
        for route in routes.iter() {
            while let Some(before) = known.get_mut(at).filter(|known| known.prefix < route.prefix) {
                change(before, NULL);
                at += 1;
            }
            let row = route.hop.index().map_or(NULL, |row| rows[row as usize]);
            match known.get_mut(at).filter(|known| known.prefix == route.prefix) {
                Some(same) => {
                    change(same, row);
                    at += 1;
                }
                None => {
                    let limit = TableError::Limit { what: "prefixes" };
                    let number = known.len() + come.len();
                    let number =
                        u32::try_from(number).ok().filter(|&n| n < NO_TIMELINE).ok_or(limit)?;
                    let mut new = Known { prefix: route.prefix, number, row: NULL };
                    change(&mut new, row);
                    come.push((at, new));
                }
            }
        }
        known[at..].iter_mut().for_each(|gone| change(gone, NULL));
        self.insert(&come);
        Ok(())
    }

    /// Inserts each prefix before the one at its place.
    fn insert(&mut self, come: &[(usize, Known<A>)]) {
        let mut end = self.known.len();
        let Some(&(_, filler)) = come.first() else { return };
        self.known.resize(end + come.len(), filler);
        for (before, &(at, new)) in come.iter().enumerate().rev() {
            self.known.copy_within(at..end, at + before + 1);
            self.known[at + before] = new;
            end = at;
        }
    }

    /// The routes with their timelines.
    fn finish(self) -> Result<(Routes<A>, Timelines), TableError> {
        let limit = |what| TableError::Limit { what };
        u32::try_from(self.changes.len()).map_err(|_| limit("changes of prefixes"))?;
        // The changes of each prefix, which are in order of dates already.
        let mut ends = vec![0usize; self.known.len() + 1];
        for change in &self.changes {
            ends[change.number as usize + 1] += 1;
        }
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut places = ends.clone();
        let mut sorted = vec![(0u16, NULL); self.changes.len()];
        for change in &self.changes {
            let place = &mut places[change.number as usize];
            sorted[*place] = (change.date, change.row);
            *place += 1;
        }
        drop(self.changes);
        let mut distinct = Interner::<u32>::default();
        let mut open: Vec<(Prefix<A>, u32)> = Vec::new();
        let mut routes = Vec::with_capacity(self.known.len());
        let mut line = Vec::new();
        for Known { prefix, number, .. } in self.known {
            while open.last().is_some_and(|(outer, _)| !outer.covers(prefix)) {
                open.pop();
            }
            let number = number as usize;
            let changes = &sorted[ends[number]..ends[number + 1]];
            let is_always = changes.iter().all(|&(_, row)| row != NULL)
                && changes.first().is_some_and(|&(date, _)| date == 0);
            let outer = open.last().map_or(NO_TIMELINE, |&(_, timeline)| timeline);
            // Prefixes that are in all tables never need a shorter one, so they share a timeline whatever covers them.
            let up = if is_always { NO_TIMELINE } else { outer };
            line.clear();
            line.extend([u32::from(prefix.len()), up]);
            line.extend(changes.iter().flat_map(|&(date, row)| [u32::from(date), row]));
            let timeline = distinct.intern(&line).ok_or(limit("timelines"))?;
            open.push((prefix, timeline));
            routes.push(Route { prefix, hop: Hop::new(timeline) });
        }
        Ok((Routes::from_unsorted(routes), arrays(distinct))) // they are sorted
    }
}

/// The arrays of the timelines, from their distinct keys: length, next shorter one, changes.
fn arrays(distinct: Interner<u32>) -> Timelines {
    let count = distinct.len();
    let (words, ends) = distinct.into_parts();
    let (mut first, mut up, mut len) =
        (vec![0], Vec::with_capacity(count), Vec::with_capacity(count));
    let mut changes = Vec::new();
    let mut line: Vec<(u16, u32)> = Vec::new();
    let mut start = 0;
    for end in ends {
        len.push(words[start] as u8);
        up.push(words[start + 1]);
        line.clear();
        line.extend(
            words[start + 2..end].chunks_exact(2).map(|change| (change[0] as u16, change[1])),
        );
        changes.extend(timelines::words(&line));
        first.push((changes.len() / WORDS) as u32);
        start = end;
    }
    Timelines { first: first.into(), up: up.into(), len: len.into(), changes: changes.into() }
}
