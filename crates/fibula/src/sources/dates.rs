//! Tables of several dates: the files and dates of names, and their tables as one.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fibula_ingest::{Damage, ReadProgress, ReadReport};
use fibula_rib::dated::{NameDate, date_of_name};
use fibula_rib::{DatedBuilder, DatedSnapshot, DatedTable, Dates, Loading, Moment, Table};

use crate::sources::{DatesError, Merge, Settings, Source, Watch, open_snapshot};

/// The table of a date, not yet read.
#[derive(Clone, Debug)]
pub struct DatedSource {
    /// The date.
    pub at: Moment,
    /// The name that the caller gave.
    pub name: String,
    /// The sources that are merged into the table.
    pub sources: Vec<(String, Source)>,
}

/// The tables of several dates, not yet read.
#[derive(Clone, Debug, Default)]
pub struct DatedSources {
    /// A file of several dates, to which the other tables are added.
    pub before: Option<PathBuf>,
    /// The tables, in the order of their dates.
    pub tables: Vec<DatedSource>,
}

/// The tables of all dates, with the time spent.
pub struct ReadDates {
    /// The tables.
    pub dated: DatedTable,
    /// The time for reading.
    pub reading: Duration,
    /// The time for comparing each table with the one before.
    pub comparing: Duration,
    /// Number of damaged records, which were skipped.
    pub damaged: u64,
}

/// Receives reports while tables are read, on several threads.
pub trait WatchDates: Sync {
    /// The number of tables that are read.
    fn progress(&self, done: usize, of: usize);
    /// The end of a file, as [`Watch::done`].
    fn done(&self, name: &str, report: &ReadReport, damage: &[Damage]);
}

impl DatedSources {
    /// Finds the tables of these names: folders, files whose names have a date, RIBs in MRT, which have one inside,
    /// `2024-05-01=FILE,...`, and at most one file of several dates.
    ///
    /// # Errors
    /// If a name is no source, a table has no date, or two have the same.
    pub fn find(names: &[String]) -> Result<Self, DatesError> {
        let mut found = Self::default();
        for name in names {
            let path = Path::new(name);
            if path.is_dir() {
                let files = files(path)?;
                if files.is_empty() {
                    return Err(DatesError::EmptyFolder(name.clone()));
                }
                files.iter().try_for_each(|file| found.add(file))?;
            } else if !path.exists()
                && let Some((at, sources)) = dated_name(name)
            {
                let sources = Source::parse_list(&[sources.to_owned()])?;
                found.tables.push(DatedSource { at, name: name.clone(), sources });
            } else {
                found.add(path)?;
            }
        }
        if found.tables.is_empty() {
            return Err(DatesError::NoTable);
        }
        found.tables.sort_by_key(|dated| dated.at);
        match found.tables.windows(2).find(|pair| pair[0].at == pair[1].at) {
            Some([one, other]) => {
                let (one_name, other_name) = (one.name.clone(), other.name.clone());
                Err(DatesError::SameDate { one: one_name, other: other_name, at: one.at })
            }
            _ => Ok(found),
        }
    }

    /// Adds a file given without a date.
    fn add(&mut self, path: &Path) -> Result<(), DatesError> {
        let name = path.display().to_string();
        let source = Source::parse(&name)?;
        if let Source::Snapshot(path) = &source
            && DatedSnapshot::is_one(path)
        {
            return match self.before.replace(path.clone()) {
                Some(one) => Err(DatesError::TwoFiles { one, other: name }),
                None => Ok(()),
            };
        }
        let at = date_of(path)?;
        self.tables.push(DatedSource { at, name: name.clone(), sources: vec![(name, source)] });
        Ok(())
    }

    /// Reads the tables in the order of their dates, several at a time.
    ///
    /// # Errors
    /// If a table cannot be read, has no routes (unless [`Settings::allow_empty`]), or is not newer than those of the
    /// file that it is added to.
    pub fn read(
        &self,
        settings: &Settings,
        watch: &dyn WatchDates,
    ) -> Result<ReadDates, DatesError> {
        let mut builder = self.begin(settings.loading)?;
        // The tables of one chunk are in memory together.
        let threads = thread::available_parallelism().map_or(1, usize::from).min(4);
        let (mut reading, mut comparing, mut damaged) = (Duration::ZERO, Duration::ZERO, 0);
        for (done, some) in self.tables.chunks(threads).enumerate() {
            let started = Instant::now();
            let tables = chunk(some, settings, watch)?;
            reading += started.elapsed();
            let started = Instant::now();
            for (dated, (table, skipped)) in some.iter().zip(tables) {
                let added = builder.add(dated.at, &dated.name, &table);
                added.map_err(|error| DatesError::Add { name: dated.name.clone(), error })?;
                damaged += skipped;
            }
            comparing += started.elapsed();
            watch.progress(done * threads + some.len(), self.tables.len());
        }
        let started = Instant::now();
        let dated = builder.finish()?;
        comparing += started.elapsed();
        Ok(ReadDates { dated, reading, comparing, damaged })
    }

    /// A builder, with the tables of the file that others are added to.
    fn begin(&self, loading: Loading) -> Result<DatedBuilder, DatesError> {
        let Some(path) = &self.before else { return Ok(DatedBuilder::default()) };
        let before = DatedSnapshot::open_with(path, loading)?;
        let builder = DatedBuilder::from_snapshot(&before)?;
        self.check_newer(path, before.dates())?;
        Ok(builder)
    }

    /// Refuses tables that are not newer than all tables in the file.
    fn check_newer(&self, path: &Path, before: &Dates) -> Result<(), DatesError> {
        match (before.tables().last(), self.tables.first()) {
            (Some(newest), Some(first)) if first.at <= newest.at => Err(DatesError::NotNewer {
                name: first.name.clone(),
                at: first.at,
                file: path.to_owned(),
                newest: newest.at,
            }),
            _ => Ok(()),
        }
    }
}

/// Reads the tables of some dates, each on a thread, with the number of damaged records.
fn chunk(
    some: &[DatedSource],
    settings: &Settings,
    watch: &dyn WatchDates,
) -> Result<Vec<(Table, u64)>, DatesError> {
    thread::scope(|scope| {
        let reading: Vec<_> =
            some.iter().map(|dated| scope.spawn(move || one(dated, settings, watch))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<_, DatesError>>| {
            thread.join().unwrap_or(Err(DatesError::Panicked))
        };
        reading.into_iter().map(join).collect()
    })
}

/// Reads the table of a date.
fn one(
    dated: &DatedSource,
    settings: &Settings,
    watch: &dyn WatchDates,
) -> Result<(Table, u64), DatesError> {
    let (table, damaged) = match &*dated.sources {
        [(_, Source::Snapshot(path))] if settings.takes_all() => {
            (open_snapshot(path, settings.loading, None, &mut Ends(watch))?, 0)
        }
        sources => {
            let mut merge = Merge::new(settings.clone());
            for (name, source) in sources {
                merge.add(name, source, &mut Ends(watch))?;
            }
            let damaged = merge.damaged();
            (merge.finish()?, damaged)
        }
    };
    match table.v4.is_empty() && table.v6.is_empty() && !settings.allow_empty {
        true => Err(DatesError::NoRoutes(dated.name.clone())),
        false => Ok((table, damaged)),
    }
}

/// Passes the ends of files on.
struct Ends<'a>(&'a dyn WatchDates);

impl Watch for Ends<'_> {
    fn progress(&mut self, _: &str, _: ReadProgress) {}

    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        self.0.done(name, report, damage);
    }
}

/// Parses `2024-05-01=FILE,...`.
fn dated_name(name: &str) -> Option<(Moment, &str)> {
    let (date, sources) = name.split_once('=')?;
    Some((date.parse().ok()?, sources)).filter(|(_, sources)| !sources.is_empty())
}

/// All files below a folder, in order. Hidden files are left out, because they are temporary files of other programs.
fn files(folder: &Path) -> Result<Vec<PathBuf>, DatesError> {
    let fail = |error| DatesError::Io { path: folder.to_owned(), error };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        entries.push(entry.map_err(fail)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to folders are not followed, because they may form cycles.
        match entry.file_type().map_err(fail)? {
            kind if kind.is_dir() => found.extend(files(&entry.path())?),
            _ if entry.path().is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    Ok(found)
}

/// The date of a file, from its name or else from the first record of an MRT RIB.
fn date_of(path: &Path) -> Result<Moment, DatesError> {
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match date_of_name(&name) {
        NameDate::One(at) => Ok(at),
        NameDate::Several(one, other) => {
            Err(DatesError::TwoDates { path: path.to_owned(), one, other })
        }
        NameDate::None => {
            date_of_rib(path)?.ok_or_else(|| DatesError::NoDate { path: path.to_owned() })
        }
    }
}

/// The time of the first record of an MRT RIB; `None` if it is something else.
fn date_of_rib(path: &Path) -> Result<Option<Moment>, DatesError> {
    /// MRT record types of RIBs: TABLE_DUMP and TABLE_DUMP_V2 (RFC 6396).
    const RIBS: [u16; 2] = [12, 13];
    if path.as_os_str() == "-" {
        return Ok(None); // bytes read here would be missing later
    }
    let fail = |error| DatesError::Io { path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(fail)?;
    let (_, reader) = fibula_ingest::decompress(Box::new(file)).map_err(fail)?;
    let mut head = Vec::new();
    let read = reader.take(8).read_to_end(&mut head);
    let &[s0, s1, s2, s3, t0, t1, ..] = &*head else { return Ok(None) };
    let is_rib = read.is_ok() && RIBS.contains(&u16::from_be_bytes([t0, t1]));
    let seconds = u32::from_be_bytes([s0, s1, s2, s3]);
    Ok(is_rib.then(|| Moment::from_unix(seconds.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_files() {
        let may: Moment = "2024-05-01".parse().unwrap();
        assert_eq!(dated_name("2024-05-01=a.csv,b.csv"), Some((may, "a.csv,b.csv")));
        for other in ["a=b.csv", "2024-05-01=", "2024-13-01=a.csv", "a.csv"] {
            assert_eq!(dated_name(other), None, "{other}");
        }
    }
}
