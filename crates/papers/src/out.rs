//! The input, output and messages of a program.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use fibula::sources::{DEFAULT_HOPS, Merge, Settings, Silent, Source};
use fibula_core::Family;
use fibula_rib::{AtomicFile, Table};
use fibula_testkit::fib::synthetic_hops;

/// Why there is no figure.
pub type Failure = Box<dyn Error>;

/// A cell of a row, with the name of its column.
pub type Cell = (&'static str, String);

/// A line for the user.
pub fn note(text: impl fmt::Display) {
    // Nobody may listen.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How a program ends: with 1 if something `is_wrong`, with 2 and the reason if there is no figure.
pub fn ended(program: &str, is_wrong: Result<bool, Failure>) -> ExitCode {
    match is_wrong {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(1),
        Err(failure) => {
            note(format_args!("{program}: {failure}"));
            ExitCode::from(2)
        }
    }
}

/// The family of an argument `v4` or `v6`.
///
/// # Errors
/// What is possible, if it is another word.
pub fn parse_family(text: &str) -> Result<Family, String> {
    [Family::V4, Family::V6].into_iter().find(|f| f.name() == text).ok_or("v4 or v6".to_owned())
}

/// Rows whose columns have the names of the first one's.
pub struct Csv {
    out: AtomicFile,
    names: Vec<&'static str>,
}

impl Csv {
    /// Into this file, or `-` for standard output.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let path = if path.as_os_str() == "-" { Path::new("/dev/stdout") } else { path };
        let fail = |error| format!("{}: {error}", path.display());
        Ok(Self { out: AtomicFile::create(path).map_err(fail)?, names: Vec::new() })
    }

    /// A row. The columns are those of the first one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn row(&mut self, cells: &[Cell]) -> Result<(), Failure> {
        let names: Vec<_> = cells.iter().map(|(name, _)| *name).collect();
        if self.names.is_empty() {
            self.out.write_all(format!("{}\n", names.join(",")).as_bytes())?;
            self.names = names;
        } else {
            assert_eq!(self.names, names, "all rows have the same columns");
        }
        let quoted = |text: &String| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.clone(),
        };
        let cells: Vec<String> = cells.iter().map(|(_, text)| quoted(text)).collect();
        Ok(self.out.write_all(format!("{}\n", cells.join(",")).as_bytes())?)
    }

    /// Has the file appear.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), Failure> {
        Ok(self.out.commit()?)
    }
}

/// The table, with synthetic hops if all its routes have the same one.
///
/// # Errors
/// If it cannot be read.
pub fn table((name, source): &(String, Source)) -> Result<Table, Failure> {
    let mut merge = Merge::new(Settings::default());
    merge.add(name, source, &mut Silent)?;
    let table = merge.finish()?;
    if table.columns.width() > 0 && table.columns.len() > 1 {
        return Ok(table);
    }
    Ok(Table::from_routes(
        synthetic_hops(&table.v4, DEFAULT_HOPS, 1),
        synthetic_hops(&table.v6, DEFAULT_HOPS, 1),
    ))
}

/// The bytes of a file that may be compressed.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |error| format!("{}: {error}", path.display());
    let file = BufReader::new(File::open(path).map_err(fail)?);
    let (_, mut reader) = fibula_ingest::decompress(Box::new(file)).map_err(fail)?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}
