//! Tables that commands write: CSV, TSV or Parquet, by the file name's ending.

use std::path::Path;

use clap::ValueEnum;
use fibula_export::{ExportError, TextFormat};
use fibula_rib::Table;

use crate::failure::Failure;
use crate::output::Output;

/// The format of such a table.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum To {
    Csv,
    Tsv,
    Parquet,
}

impl To {
    /// The named format, else the one of the file name's ending.
    pub fn of(named: Option<Self>, path: &Path) -> Result<Self, Failure> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match (named, ending) {
            (Some(to), _) => Ok(to),
            (None, Some("csv")) => Ok(Self::Csv),
            (None, Some("tsv" | "txt")) => Ok(Self::Tsv),
            (None, Some("parquet")) => Ok(Self::Parquet),
            (None, _) => {
                Err(Failure::new(format_args!("{}: unknown file name ending", path.display()))
                    .hint("name it .csv, .tsv or .parquet, or set --to"))
            }
        }
    }

    /// Writes the table, whole or not at all.
    pub fn write(self, table: &Table, path: &Path) -> Result<(), Failure> {
        let mut out = Output::create(path)?;
        let written = match self {
            Self::Csv => fibula_export::text(table, TextFormat::Csv, &mut out).map_err(Into::into),
            Self::Tsv => fibula_export::text(table, TextFormat::Tsv, &mut out).map_err(Into::into),
            Self::Parquet => fibula_export::prefixes(table, &mut out),
        };
        written.map_err(|error| match error {
            ExportError::Write(error) => Failure::from(error),
            error => Failure::new(format_args!("{}: {error}", path.display())),
        })?;
        out.finish()
    }
}
