//! A table by the names of its sources, compiled.

use fibula_fib::{Fib, FibOptions};
use fibula_ingest::{Damage, ReadProgress, ReadReport};
use fibula_rib::{AnySnapshot, Table, TableDate};

use crate::sources::merge::{nested_tags, table_of};
use crate::sources::{Settings, Source, SourceError, Watch, load};

/// Reads the table with this name, and compiles it: a file of networks (text, CSV, MRT, BMP, mmdb, ..., plain or
/// compressed), a snapshot, `embedded`, or `gen:v4:2024:900000:1`; several of them, with commas between, are merged.
/// A single snapshot is opened in place, as [`Fib::open`] does; of a file of several dates, the newest table is used.
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
        let fib = open(&sources, &self.settings, &self.options, &mut report)?;
        if fib.is_empty() && !self.settings.allow_empty {
            let first = report.damage.into_iter().next();
            return Err(SourceError::NoRoutes { names: self.names.join(","), first });
        }
        Ok((fib, report))
    }
}

/// Opens the table of these sources. A single snapshot is used in place, with its stored engines;
/// [`Settings::loading`] applies to it. Other sources are read, merged and compiled. A table without routes is
/// accepted.
///
/// [`TableSources::fib`] takes names, and returns the reports that this function passes to `watch`.
///
/// # Errors
/// If a source cannot be read, the sources cannot be merged, or no engine takes the table; with
/// [`Settings::strict`], also if a source is damaged or has a prefix twice.
pub fn open(
    sources: &[(String, Source)],
    settings: &Settings,
    options: &FibOptions,
    watch: &mut dyn Watch,
) -> Result<Fib, SourceError> {
    let table = match sources {
        [(_, Source::Snapshot(path))] if settings.takes_all() => {
            match AnySnapshot::open_with(path, settings.loading)? {
                AnySnapshot::Table(snapshot) if settings.at.is_none() => {
                    return Ok(Fib::of_snapshot(snapshot, options)?);
                }
                file => table_of(&file, path, settings.at, watch)?,
            }
        }
        sources => load(sources, settings, watch)?.table,
    };
    Ok(Fib::of_table(table, options)?)
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
        self.notes.extend(report.remarks.iter().map(|remark| format!("{name}: {remark}")));
    }

    fn taken(&mut self, name: &str, table: &TableDate, of: usize) {
        self.notes.push(format!("{name}: of {of} tables, that of {}", table.at));
    }

    fn merged(&mut self, table: &Table) {
        self.notes.extend(nested_tags(table));
    }

    fn stands_in(&mut self, name: &str, column: &str, value: &str) {
        self.notes
            .push(format!("{name}: no column {column}, its values are the file's name: {value}"));
    }
}
