//! Records on standard output, one a line.

use std::io::{BufWriter, StdoutLock, Write};

use serde::Serialize;

use super::Grid;
use crate::failure::Failure;

/// Maximum number of records that are aligned together.
const TOGETHER: usize = 4096;

/// Prints records: as JSON lines, aligned on a terminal, otherwise separated by tabs.
pub struct Records {
    out: BufWriter<StdoutLock<'static>>,
    style: Style,
}

enum Style {
    Json,
    Tabs,
    Aligned(Grid),
}

impl Records {
    /// Prints the column names first, except for JSON.
    pub fn new(columns: &[&str], is_json: bool, has_header: bool) -> Result<Self, Failure> {
        let mut out = super::stdout();
        let style = match (is_json, super::is_terminal()) {
            (true, _) => Style::Json,
            (_, true) if has_header => Style::Aligned(Grid::new(columns)),
            (_, true) => Style::Aligned(Grid::headless(&vec![false; columns.len()])),
            _ => {
                if has_header {
                    writeln!(out, "{}", columns.join("\t"))?;
                }
                Style::Tabs
            }
        };
        Ok(Self { out, style })
    }

    /// Whether records are printed by [`Records::object`], otherwise by [`Records::row`].
    pub fn is_json(&self) -> bool {
        matches!(self.style, Style::Json)
    }

    /// Prints a record as a JSON object.
    pub fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, object)?;
        Ok(writeln!(self.out)?)
    }

    /// Prints a record as a row of [`cell`]s.
    pub fn row(&mut self, cells: Vec<String>) -> Result<(), Failure> {
        match &mut self.style {
            Style::Aligned(grid) => {
                grid.row(cells);
                if grid.len() >= TOGETHER {
                    grid.write_rows(&mut self.out)?;
                }
            }
            _ => writeln!(self.out, "{}", cells.join("\t"))?,
        }
        Ok(())
    }

    /// Prints the records that are still buffered.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if let Style::Aligned(grid) = &mut self.style {
            grid.write_rows(&mut self.out)?;
        }
        Ok(self.out.flush()?)
    }
}

/// Text as it is printed in a row: `-` for none, spaces for tabs and line ends.
pub fn cell(text: Option<&str>) -> String {
    text.unwrap_or("-").replace(['\t', '\n', '\r'], " ")
}
