//! Converts the times of rows to the numbers of the tables that were valid at these times.

use fibula_fib::{Dates, TimeFormat};

use crate::block::First;
use crate::fault::Fault;
use crate::table::LookupTable;
use crate::{AnnotateError, AnnotateOptions};

/// Reads the times of rows.
#[derive(Debug)]
pub(crate) struct Clock {
    dates: Dates,
    format: TimeFormat,
    /// For each annotated row of the block, the number of its table or [`Dates::NONE`].
    pub(crate) rows: Vec<u16>,
    pub(crate) before: u64,
    pub(crate) untimed: u64,
    /// The first time of the input that cannot be read.
    pub(crate) unreadable: First,
}

impl Clock {
    /// `None` if the table has no dates.
    ///
    /// # Errors
    /// If the table has dates but the options have no column of times, or the other way round.
    pub(crate) fn new(
        table: &dyn LookupTable,
        options: &AnnotateOptions,
    ) -> Result<Option<Self>, AnnotateError> {
        match (table.dated(), &options.time) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(AnnotateError::NoTime),
            (None, Some(_)) => Err(AnnotateError::NotDated),
            (Some(fib), Some(_)) => Ok(Some(Self {
                dates: fib.dates().clone(),
                format: options.time_format,
                rows: Vec::new(),
                before: 0,
                untimed: 0,
                unreadable: First::default(),
            })),
        }
    }

    /// A clock for other rows of the same input, with all counts at zero.
    pub(crate) fn fork(&self) -> Self {
        Self {
            dates: self.dates.clone(),
            format: self.format,
            rows: Vec::new(),
            before: 0,
            untimed: 0,
            unreadable: First::default(),
        }
    }

    /// Adds the next row, with the text of its time.
    #[inline]
    pub(crate) fn row(
        &mut self,
        text: &[u8],
        strict: bool,
        fault: impl FnOnce() -> Fault,
    ) -> Result<(), Fault> {
        let date = match self.format.parse(text) {
            Some(time) => {
                let date = self.dates.number(time);
                self.before += u64::from(date == Dates::NONE);
                date
            }
            None => {
                self.untimed += 1;
                if !text.trim_ascii().is_empty() {
                    self.unreadable.meet(strict, fault)?;
                }
                Dates::NONE
            }
        };
        self.rows.push(date);
        Ok(())
    }
}
