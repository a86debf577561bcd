//! The tables of several dates, kept as their differences.
//!
//! It answers lookups at a date, for a year of daily tables in a
//! few times the memory of one.
//!
//! ```text
//! prefix          2024-05-01   05-02   05-03   05-04        timeline
//! 10.0.0.0/8      A            A       A       B            A from 05-01, B from 05-04
//! 10.1.0.0/16     -            C       -       C            C from 05-02, none from 05-03, C from 05-04; else ask 10.0.0.0/8
//! 10.2.0.0/16     A            A       A       A            A from 05-01
//! ```
//!
//! The prefixes of all dates form one set of routes, whose hops number *timelines*. An ordinary engine over them
//! finds the timeline of an address, and a short search in it finds the row of the date. If the prefix is not in the
//! table of that date, the search continues with the next shorter prefix of the set, to which the timeline refers. So
//! the answer is the longest match among the prefixes of that date. Equal timelines are stored once: most prefixes
//! never change, and share a few of them.
//!
//! - **Invariant** A timeline refers only to a timeline of a shorter prefix with a lower number, so every lookup
//!   ends.
//! - **Invariant** A timeline's changes ascend by date; the first is a row, and none repeats the one before it.

mod builder;
mod moment;
mod of_name;
#[cfg(test)]
mod tests;
mod timelines;
mod values;

pub use builder::DatedBuilder;
pub use moment::{Moment, TimeFormat};
pub use of_name::{NameDate, date_of_name};
pub use timelines::{Ask, Dates, TableDate, Timelines, prefix_of};
pub(crate) use timelines::{Lines, NO_TIMELINE, WORDS, parted, row_at};

use std::path::Path;

use fibula_core::{Addr, PerFamily};

use crate::array::AlignedBytes;
use crate::snapshot::{Parts, SnapshotError, dated_sections, dated_to_bytes, write_dated};
use crate::{EnginePart, Table, Written};

/// The tables of several dates in memory, ready to be written; [`DatedBuilder`] makes it.
pub struct DatedTable {
    /// All prefixes of all dates; hops number timelines.
    pub(crate) union: Table,
    pub(crate) timelines: PerFamily<Lines>,
    pub(crate) dates: Dates,
}

impl DatedTable {
    /// The prefixes of all dates of a family, to compile an engine from: hops number timelines.
    pub fn routes<A: Addr>(&self) -> &fibula_core::Routes<A> {
        self.union.routes::<A>()
    }

    /// The dates.
    pub fn dates(&self) -> &Dates {
        &self.dates
    }

    /// Changes of prefixes from each date to the next, their first rows among them, as they are kept.
    pub fn changes(&self) -> usize {
        self.timelines.v4.changes() + self.timelines.v6.changes()
    }

    /// The values of all dates.
    pub fn columns(&self) -> &crate::Columns {
        &self.union.columns
    }

    /// Writes the file, with engines for [`DatedTable::routes`]. As [`write()`](crate::write()), it appears whole or
    /// not at all.
    ///
    /// # Errors
    /// If the operating system refuses, or the table cannot be stored.
    pub fn write(
        &self,
        path: &Path,
        v4: &EnginePart<'_>,
        v6: &EnginePart<'_>,
    ) -> Result<Written, SnapshotError> {
        write_dated(path, &self.union, [v4, v6], self.sections()?)
    }

    /// The file in memory.
    ///
    /// # Errors
    /// If the table cannot be stored.
    pub fn to_bytes(
        &self,
        v4: &EnginePart<'_>,
        v6: &EnginePart<'_>,
    ) -> Result<AlignedBytes, SnapshotError> {
        dated_to_bytes(&self.union, [v4, v6], self.sections()?)
    }

    fn sections(&self) -> Result<Parts<'_>, SnapshotError> {
        dated_sections(&self.dates, &self.timelines)
    }
}
