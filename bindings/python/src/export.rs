//! Tables in the formats of other tools.

use std::io::{BufWriter, Write};
use std::path::Path;

use fibula_core::Family;
use fibula_export::{ExportError, TextFormat};
use fibula_rib::{AtomicFile, Table};
use pyo3::PyResult;

use crate::error::{self, FibulaError};

/// A format, as it is asked for.
#[derive(Clone, Copy)]
pub enum To {
    Text(TextFormat),
    Mmdb,
    Prefixes,
    Intervals(Family),
}

impl To {
    /// The format of this name; of intervals, those of `family`, which a table with one family need not say.
    pub fn new(name: &str, family: Option<&str>, table: &Table) -> PyResult<Self> {
        Ok(match name {
            "tsv" => Self::Text(TextFormat::Tsv),
            "csv" => Self::Text(TextFormat::Csv),
            "clickhouse" => Self::Text(TextFormat::ClickHouse),
            "mmdb" => Self::Mmdb,
            "prefixes" => Self::Prefixes,
            "intervals" => {
                Self::Intervals(match (family, table.v4.is_empty(), table.v6.is_empty()) {
                    (Some("v4"), ..) | (None, _, true) => Family::V4,
                    (Some("v6"), ..) | (None, true, _) => Family::V6,
                    (None, ..) => {
                        return Err(FibulaError::new_err(
                            "intervals are of one family: family=\"v4\", and another file with family=\"v6\"",
                        ));
                    }
                    (Some(other), ..) => {
                        return Err(FibulaError::new_err(format!(
                            "family {other:?}; there are v4, v6"
                        )));
                    }
                })
            }
            other => {
                return Err(FibulaError::new_err(format!(
                    "format {other:?}; there are csv, tsv, clickhouse, mmdb, prefixes, intervals"
                )));
            }
        })
    }
}

/// Writes the file, whole or not at all.
pub fn write(table: &Table, to: To, mmdb_type: &str, path: &Path) -> PyResult<()> {
    let io = |error| error::io_error(path, &error);
    let mut out = BufWriter::with_capacity(256 << 10, AtomicFile::create(path).map_err(io)?);
    let written = match to {
        To::Text(form) => fibula_export::text(table, form, &mut out).map_err(ExportError::from),
        To::Prefixes => fibula_export::prefixes(table, &mut out),
        To::Intervals(Family::V4) => fibula_export::intervals::<u32>(table, &mut out).map(|_| ()),
        To::Intervals(Family::V6) => fibula_export::intervals::<u128>(table, &mut out).map(|_| ()),
        To::Mmdb => {
            // When the data is from, not when it was written: equal tables give equal files.
            let date = table.provenance.sources.iter().filter_map(|source| source.date).max();
            let epoch = date.unwrap_or(table.provenance.created);
            fibula_export::mmdb(table, mmdb_type, epoch, &mut out)
        }
    };
    written.map_err(|error| match error {
        ExportError::Write(error) => error::io_error(path, &error),
        error => FibulaError::new_err(format!("{}: {error}", path.display())),
    })?;
    out.flush().map_err(io)?;
    let file = out.into_inner().map_err(|error| io(error.into_error()))?;
    file.commit().map_err(io)
}
