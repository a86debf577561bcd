//! A table by the names of its sources, compiled.

use fibula_fib::{Fib, FibOptions};
use fibula_ingest::{Damage, ReadProgress, ReadReport};
use fibula_rib::TableDate;

use crate::sources::{Loaded, Settings, Source, SourceError, Watch, load};

/// Reads the table with this name, and compiles it: a file of networks (text, CSV, MRT, BMP, mmdb, ..., plain or
/// compressed), a snapshot, `embedded`, or `gen:v4:2024:900000:1`; several of them, with commas between, are merged.
///
/// Everything must be readable: a damaged record, and a prefix that a source has twice, are errors. [`TableSources`]
/// has the settings, among them those that accept such sources, and reports what was read in another way than it is
/// written.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("networks.csv");
/// # std::fs::write(&path, "prefix,asn,country\n8.8.8.0/24,15169,US\n")?;
/// # let name = path.to_str().ok_or("a name in UTF-8")?;
/// let fib = fibula::build(name)?; // "networks.csv"
/// let found = fib.lookup("8.8.8.8".parse()?).ok_or("no route")?;
/// assert_eq!(found.to_string(), "8.8.8.0/24 asn=15169 country=US");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`TableSources::fib`].
pub fn build(names: &str) -> Result<Fib, SourceError> {
    let settings = Settings { strict: true, ..Settings::default() };
    Ok(TableSources { settings, ..TableSources::of([names]) }.fib()?.0)
}

/// A table to be made of sources.
///
/// ```
/// use fibula::sources::TableSources;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("networks.csv");
/// # std::fs::write(&path, "prefix,asn\n8.8.8.0/24,15169\n8.8.8/8,1\n")?;
/// # let name = path.to_str().ok_or("a name in UTF-8")?;
/// let (fib, report) = TableSources::of([name]).fib()?; // a file with a damaged line
/// assert_eq!((fib.len(), report.damaged), (1, 1));
/// assert!(report.damage[0].contains("record 3"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableSources {
    /// The sources' names; see [`Source::parse_list`].
    pub names: Vec<String>,
    /// How they are read. The default skips damaged records and counts them.
    pub settings: Settings,
    /// The engines.
    pub options: FibOptions,
}

impl TableSources {
    /// A table of the sources with these names, in this order: for the same prefix, a later source counts.
    pub fn of<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Reads, merges and compiles. A single snapshot is used in place, with its stored engines.
    ///
    /// # Errors
    /// If a source cannot be read, there are no routes (unless [`Settings::allow_empty`] is set), or no engine takes
    /// the table; with [`Settings::strict`], also if a source is damaged or has a prefix twice.
    pub fn fib(&self) -> Result<(Fib, BuildReport), SourceError> {
        let mut report = BuildReport::default();
        let sources = Source::parse_list(&self.names)?;
        let Loaded { table, snapshot, .. } = load(&sources, &self.settings, &mut report)?;
        if table.v4.is_empty() && table.v6.is_empty() && !self.settings.allow_empty {
            let first = report.damage.into_iter().next();
            return Err(SourceError::NoRoutes { names: self.names.join(","), first });
        }
        let fib = match snapshot {
            Some(snapshot) => Fib::of_snapshot(snapshot, &self.options),
            None => Fib::of_table(table, &self.options),
        };
        Ok((fib?, report))
    }
}

/// What happened while sources were read: a line for each thing that is worth one.
#[derive(Clone, Debug, Default)]
pub struct BuildReport {
    /// Number of damaged records, which were skipped.
    pub damaged: u64,
    /// The first [`SHOWN`](crate::sources::SHOWN) damaged places of each file.
    pub damage: Vec<String>,
    /// What was read in another way than it is written, with its number.
    pub notes: Vec<String>,
    /// The files.
    pub files: Vec<SourceSummary>,
}

/// What was read from a file.
#[derive(Clone, Debug)]
pub struct SourceSummary {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: &'static str,
    /// Number of records.
    pub records: u64,
    /// Number of routes, those that were withdrawn again included.
    pub routes: u64,
    /// Number of damaged records.
    pub damaged: u64,
}

impl Watch for BuildReport {
    fn progress(&mut self, _: &str, _: ReadProgress) {}

    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        self.damaged += report.damaged;
        self.damage.extend(damage.iter().map(ToString::to_string));
        self.files.push(SourceSummary {
            name: name.to_owned(),
            format: report.format,
            records: report.records,
            routes: report.updates,
            damaged: report.damaged,
        });
        let noted = report.noted.iter().map(|(what, count)| format!("{name}: {what}: {count}"));
        self.notes.extend(noted);
    }

    fn taken(&mut self, name: &str, table: &TableDate, of: usize) {
        self.notes.push(format!("{name}: of {of} tables, that of {}", table.at));
    }

    fn stands_in(&mut self, name: &str, column: &str, value: &str) {
        self.notes
            .push(format!("{name}: no column {column}, its values are the file's name: {value}"));
    }
}
