//! Output of commands: aligned columns, bars, readable numbers.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use fibula_rib::{AddressCount, AtomicFile, Typed};
use serde::Serialize;
use serde_json::Value as Json;

use crate::failure::Failure;

mod records;

pub use fibula_testkit::measure::utc;
pub use records::{Records, cell};

/// Buffered standard output.
pub fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Where a command writes: a file that appears whole when the command is done, or standard output.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file, and its name for messages.
    File(BufWriter<AtomicFile>, PathBuf),
}

impl Output {
    /// The file; `-` is standard output.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout(BufWriter::with_capacity(64 << 10, io::stdout())));
        }
        let file = AtomicFile::create(path).map_err(|e| Failure::io(path.display(), &e))?;
        Ok(Self::File(BufWriter::with_capacity(256 << 10, file), path.to_owned()))
    }

    /// Everything was written: a file appears. Without this it never does.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            Self::File(out, path) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error);
                file.and_then(AtomicFile::commit).map_err(|e| Failure::io(path.display(), &e))
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(out, path) => out.write(bytes).map_err(|error| named(path, &error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(out, path) => out.flush().map_err(|error| named(path, &error)),
        }
    }
}

/// The error with the file that it happened to.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Prints a value as JSON, followed by a line end.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// A value of a table as JSON.
pub fn json_value(value: Typed<'_>) -> Json {
    match value {
        Typed::Null => Json::Null,
        Typed::Int(int) => int.into(),
        Typed::Float(float) => float.into(),
        Typed::Bool(is) => is.into(),
        Typed::Str(text) => text.into(),
    }
}

/// A number of addresses as JSON: as text where there may be more than many readers' numbers hold.
pub fn json_addresses(count: AddressCount, as_text: bool) -> Json {
    match count.get().and_then(|count| u64::try_from(count).ok()) {
        Some(count) if !as_text => count.into(),
        _ => count.to_string().into(),
    }
}

/// A number of addresses in groups of three digits: of IPv6 it may have 39.
pub fn text_addresses(count: AddressCount) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows of text in aligned columns.
pub struct Grid {
    rows: Vec<Vec<String>>,
    /// For each column the most characters of a cell so far.
    widths: Vec<usize>,
    /// For each column whether it is aligned to the right.
    right: Vec<bool>,
}

impl Grid {
    /// A grid with these column heads. A head that begins with `>` is aligned to the right, as its
    /// column is.
    pub fn new(heads: &[&str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        let mut grid = Self { rows: Vec::new(), widths: vec![0; heads.len()], right };
        grid.row(heads.iter().map(|head| head.trim_start_matches('>').to_owned()));
        grid
    }

    /// A grid without heads.
    pub fn headless(right: &[bool]) -> Self {
        Self { rows: Vec::new(), widths: vec![0; right.len()], right: right.to_vec() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().collect();
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = cell.chars().count().max(*width);
        }
        self.rows.push(row);
    }

    /// Number of rows, heads included, that were not given out by [`Grid::write_rows`].
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes the rows and forgets them: rows that follow are aligned with them as far as they are not wider.
    pub fn write_rows(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.write_aligned(out)?;
        self.rows.clear();
        Ok(())
    }

    /// Writes the rows in aligned columns, two spaces apart.
    pub fn write_aligned(&self, out: &mut impl Write) -> io::Result<()> {
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), &right) in row.iter().zip(&self.widths).zip(&self.right) {
                let pad = " ".repeat(width - cell.chars().count());
                let (before, after) = if right { (&*pad, "") } else { ("", &*pad) };
                for part in [before, cell, after, "  "] {
                    line.push_str(part);
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Whether people rather than programs read the standard output.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A size in bytes, readable: `"812 B"`, `"1.4 MiB"`.
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// A bar of at most `width` cells, in eighths; anything above nothing shows.
pub fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut text = "█".repeat(eighths / 8);
    text.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 << 30), "5.0 GiB");
    }

    #[test]
    fn bars_are_never_empty_for_something() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(0.001, 10), "▏");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn grids() {
        let mut grid = Grid::new(&["name", ">count"]);
        grid.row(["a".into(), "7".into()]);
        grid.row(["länger".into(), "1,000".into()]);
        let mut out = Vec::new();
        grid.write_aligned(&mut out).unwrap();
        let expected = "name    count\na           7\nlänger  1,000\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        // In two parts: the second one keeps the widths.
        let mut out = Vec::new();
        grid.write_rows(&mut out).unwrap();
        grid.row(["b".into(), "8".into()]);
        grid.write_rows(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}b           8\n"));
    }
}
