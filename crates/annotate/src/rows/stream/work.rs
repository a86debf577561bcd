//! The work on a stream: its table, its columns and its decoder.

use std::sync::Arc;

use super::emit::StreamStages;
use super::{StreamFormat, StreamOptions, binary::RowBinary, line::Line, tsv};
use crate::added::{Added, Addition};
use crate::clock::Clock;
use crate::formats::{Decode, json::JsonLines};
use crate::input::MAX_RECORD;
use crate::pipeline::keys::Cells;
use crate::rows::Parting;
use crate::rows::work::Work;
use crate::{AnnotateError, AnnotateOptions, LogFormat, LookupTable};

/// A stream with one of its tables.
pub(super) struct StreamWork {
    pub(super) table: Arc<dyn LookupTable>,
    pub(super) options: AnnotateOptions,
    pub(super) stream: StreamOptions,
    pub(super) additions: Vec<Addition>,
    /// The rows that were looked up in earlier tables.
    pub(super) rows_before: u64,
}

impl StreamWork {
    pub(super) fn new(
        table: Arc<dyn LookupTable>,
        options: &AnnotateOptions,
        stream: &StreamOptions,
    ) -> Result<Self, AnnotateError> {
        let additions = Addition::all(table.columns(), options)?;
        let (options, stream) = (options.clone(), stream.clone());
        let work = Self { table, options, stream, additions, rows_before: 0 };
        work.decoder()?;
        Ok(work)
    }

    /// The same stream with a new table, which must have the added columns, with their types.
    pub(super) fn renewed(&self, table: Arc<dyn LookupTable>) -> Result<Self, AnnotateError> {
        let next = Self::new(table, &self.options, &self.stream)?;
        let (new, old) = (next.added(), self.added());
        if new != old {
            let what = format!("the new table has the columns {new}, the stream began with {old}");
            return Err(AnnotateError::Stream { what });
        }
        Ok(next)
    }

    /// The added columns and their types, as text.
    fn added(&self) -> String {
        let columns = self.table.columns();
        let one = |Addition { name, what, .. }: &Addition| match what {
            Added::Prefix | Added::Covering => name.clone(),
            Added::Value(column) => format!("{name} {}", columns.type_name(*column)),
        };
        self.additions.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The error for a row that is too long, after so many lines and bytes.
    pub(super) fn too_long(&self, lines: u64, bytes: u64) -> AnnotateError {
        if self.stream.format == StreamFormat::RowBinary {
            let what = format!("it is longer than {MAX_RECORD} bytes");
            return AnnotateError::Bytes { offset: bytes, what };
        }
        AnnotateError::TooLong { line: lines + 1, limit: MAX_RECORD }
    }

    /// Whether the first line of the stream names its columns.
    pub(super) fn has_header(&self) -> bool {
        self.stream.format == StreamFormat::Tsv
            && tsv::has_header(&self.options.columns, self.options.header)
    }
}

impl Work for StreamWork {
    type Keys = Cells;
    type Stages<'w> = StreamStages<'w>;

    /// The nearest format of files, which only readers of files ask for.
    fn format(&self) -> LogFormat {
        match self.stream.format {
            StreamFormat::JsonLines => LogFormat::JsonLines,
            _ => LogFormat::Tsv,
        }
    }

    fn options(&self) -> &AnnotateOptions {
        &self.options
    }

    fn parting(&self) -> Parting {
        Parting::default()
    }

    fn decoder(&self) -> Result<Box<dyn Decode>, AnnotateError> {
        let columns = &self.options.columns;
        Ok(match self.stream.format {
            StreamFormat::Tsv => Box::new(tsv::Tsv::new(columns, self.options.header)),
            StreamFormat::JsonLines => {
                // Values that are written alone can have the names of any members.
                let names = self.additions.iter().map(|addition| addition.name.clone());
                let added: Vec<String> = names.filter(|_| !self.stream.only_added).collect();
                Box::new(JsonLines::of_stream(&self.options, &added)?)
            }
            StreamFormat::RowBinary => {
                Box::new(RowBinary::new(&self.stream.types, columns, self.rows_before)?)
            }
            StreamFormat::Influx => Box::new(Line::new(columns)?),
            StreamFormat::Arrow => {
                return Err(AnnotateError::Columnar { format: LogFormat::Arrow });
            }
        })
    }

    fn clock(&self) -> Result<Option<Clock>, AnnotateError> {
        Clock::new(&*self.table, &self.options)
    }

    fn stages<'w>(&'w self, decoder: &dyn Decode) -> StreamStages<'w> {
        StreamStages::new(self, decoder)
    }
}
