//! `fibula build --as-of`: compiles the tables of several dates into one file.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fibula_core::{Addr, grouped};
use fibula_ingest::{Damage, Progress, ReadReport};
use fibula_rib::dated::{NameDate, date_of_name};
use fibula_rib::{DatedBuilder, DatedSnapshot, DatedTable, Dates, Moment, Pod, Table};
use fibula_sources::{Merge, Watch};
use serde_json::{Value as Json, json};

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, size};
use crate::progress::{Bar, ms};
use crate::same;
use crate::source::{ReadArgs, Source};
use crate::table;

/// The table of a date, not yet read.
struct Dated {
    at: Moment,
    /// The name from the command line.
    name: String,
    sources: Vec<(String, Source)>,
}

/// The files and dates of the arguments.
#[derive(Default)]
struct Plan {
    /// A file of several dates, to which the other tables are added.
    before: Option<PathBuf>,
    tables: Vec<Dated>,
}

/// The tables of all dates, with the time spent.
pub struct Loaded {
    /// The tables.
    pub dated: DatedTable,
    /// The stages of the work, with their durations.
    pub stages: Vec<(&'static str, Duration)>,
    /// Number of damaged records, which were skipped.
    pub damaged: u64,
}

/// Reads the tables that the arguments name, in the order of their dates, for a file that is none of them.
pub fn load(arguments: &[String], read: &ReadArgs, output: &Path) -> Result<Loaded, Failure> {
    let plan = plan(arguments)?;
    for dated in &plan.tables {
        same::refuse_tables(&dated.sources, output)?;
    }
    let mut builder = DatedBuilder::default();
    if let Some(path) = &plan.before {
        let before = DatedSnapshot::open_with(path, read.load)?;
        builder = DatedBuilder::from_snapshot(&before)?;
        check_newer(path, &plan.tables, before.dates())?;
    }
    // The tables of one chunk are in memory together.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (mut reading, mut comparing, mut damaged) = (Duration::ZERO, Duration::ZERO, 0);
    let bar = Bar::new("tables");
    for (done, some) in plan.tables.chunks(threads).enumerate() {
        let started = Instant::now();
        let tables = std::thread::scope(|scope| {
            let reading: Vec<_> =
                some.iter().map(|dated| scope.spawn(move || one(dated, read))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<_, Failure>>| {
                thread.join().unwrap_or_else(|_| Err(Failure::new("a thread ended early")))
            };
            reading.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        reading += started.elapsed();
        let started = Instant::now();
        for (dated, (table, skipped)) in some.iter().zip(tables) {
            let added = builder.add(dated.at, &dated.name, &table);
            added.map_err(|error| Failure::new(format_args!("{}: {error}", dated.name)).hint(
                "a column has one kind in all tables: --kind COLUMN=str makes it text, --columns leaves others out",
            ))?;
            damaged += skipped;
        }
        comparing += started.elapsed();
        bar.show_count(done * threads + some.len(), plan.tables.len());
    }
    drop(bar);
    let started = Instant::now();
    let dated = builder.finish()?;
    comparing += started.elapsed();
    Ok(Loaded { dated, stages: vec![("read", reading), ("compare", comparing)], damaged })
}

/// Reads the table of a date.
fn one(dated: &Dated, read: &ReadArgs) -> Result<(Table, u64), Failure> {
    let (table, damaged) = match &*dated.sources {
        [(_, Source::Snapshot(path))] if read.takes_all() => {
            (fibula_sources::open_snapshot(path, read.load, None)?.0, 0)
        }
        sources => {
            let mut merge = Merge::new(read.settings()?);
            for (name, source) in sources {
                merge.add(name, source, &mut Quiet)?;
            }
            let damaged = merge.damaged();
            (merge.finish()?, damaged)
        }
    };
    if table.v4.is_empty() && table.v6.is_empty() && !read.allow_empty {
        return Err(Failure::new(format_args!(
            "{}: no routes at all, nothing written",
            dated.name
        ))
        .hint("--allow-empty takes a table without routes"));
    }
    Ok((table, damaged))
}

/// Reports damage after a file is read, without a progress bar.
struct Quiet;

impl Watch for Quiet {
    fn progress(&mut self, _: &str, _: Progress) {}
    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        table::say_report(name, report, damage);
    }
}

/// The tables of the arguments, ordered by date.
fn plan(arguments: &[String]) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    for argument in arguments {
        let path = Path::new(argument);
        if path.is_dir() {
            let files = files(path)?;
            if files.is_empty() {
                return Err(Failure::new(format_args!("{argument}: no files in this folder")));
            }
            for file in files {
                plan.file(&file)?;
            }
        } else if !path.exists()
            && let Some((date, sources)) = dated_argument(argument)
        {
            let sources = Source::parse_list(&[sources.to_owned()])?;
            plan.tables.push(Dated { at: date, name: argument.clone(), sources });
        } else {
            plan.file(path)?;
        }
    }
    if plan.tables.is_empty() {
        return Err(Failure::new("no table with a date, nothing written"));
    }
    plan.tables.sort_by_key(|dated| dated.at);
    match plan.tables.windows(2).find(|pair| pair[0].at == pair[1].at) {
        Some([one, other]) => {
            let (one, other, at) = (&one.name, &other.name, one.at);
            Err(Failure::new(format_args!("{one} and {other} are both of {at}"))
                .hint(format_args!("leave one out, or give both as one table: {at}=FILE,FILE")))
        }
        _ => Ok(plan),
    }
}

impl Plan {
    /// Adds a file given without a date.
    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        let name = path.display().to_string();
        let source = Source::parse(&name)?;
        if let Source::Snapshot(path) = &source
            && DatedSnapshot::is_one(path)
        {
            if let Some(other) = self.before.replace(path.clone()) {
                return Err(Failure::new(format_args!(
                    "{} and {name} are both files of several dates",
                    other.display()
                ))
                .hint("give one of them, and the tables to add to it"));
            }
            return Ok(());
        }
        let at = date_of(path)?;
        self.tables.push(Dated { at, name: name.clone(), sources: vec![(name, source)] });
        Ok(())
    }
}

/// Parses `2024-05-01=FILE,...`.
fn dated_argument(argument: &str) -> Option<(Moment, &str)> {
    let (date, sources) = argument.split_once('=')?;
    Some((date.parse().ok()?, sources)).filter(|(_, sources)| !sources.is_empty())
}

/// All files below a folder, in order. Hidden files are left out, because they are temporary files of other programs.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let fail = |error| Failure::io(folder.display(), &error);
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
fn date_of(path: &Path) -> Result<Moment, Failure> {
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let shown = path.display();
    let hint =
        format!("call it 2024-05-01.csv or rib.20240501.0000.bz2, or write 2024-05-01={shown}");
    match date_of_name(&name) {
        NameDate::One(at) => Ok(at),
        NameDate::Several(one, other) => {
            Err(Failure::new(format_args!("{shown}: its name has two dates, {one} and {other}"))
                .hint(hint))
        }
        NameDate::None => date_of_rib(path)?.ok_or_else(|| {
            Failure::new(format_args!(
                "{shown}: no date in its name, and it is no MRT RIB, whose records have one"
            ))
            .hint(hint)
        }),
    }
}

/// The time of the first record of an MRT RIB; `None` if it is something else.
fn date_of_rib(path: &Path) -> Result<Option<Moment>, Failure> {
    /// MRT record types of RIBs: TABLE_DUMP and TABLE_DUMP_V2 (RFC 6396).
    const RIBS: [u16; 2] = [12, 13];
    if path.as_os_str() == "-" {
        return Ok(None); // what is read here would be missing later
    }
    let mut head = Vec::new();
    let read = input::open(path)?.take(8).read_to_end(&mut head);
    let &[s0, s1, s2, s3, t0, t1, ..] = &*head else { return Ok(None) };
    let is_rib = read.is_ok() && RIBS.contains(&u16::from_be_bytes([t0, t1]));
    let seconds = u32::from_be_bytes([s0, s1, s2, s3]);
    Ok(is_rib.then(|| Moment::from_unix(seconds.into())))
}

/// Refuses tables that are not newer than all tables in the file.
fn check_newer(path: &Path, tables: &[Dated], before: &Dates) -> Result<(), Failure> {
    let newest = before.tables().last();
    match (newest, tables.first()) {
        (Some(newest), Some(first)) if first.at <= newest.at => {
            let (file, newest) = (path.display(), newest.at);
            Err(Failure::new(format_args!(
                "{}: the table of {} is not newer than the newest of {file}, that of {newest}",
                first.name, first.at
            ))
            .hint("tables are added at the end: build the file again from all tables"))
        }
        _ => Ok(()),
    }
}

/// Prints the dates and sizes of the file in the style of `fibula build`.
pub fn describe(
    out: &mut impl Write,
    dates: &Dates,
    prefixes: [usize; 2],
    changes: usize,
) -> std::io::Result<()> {
    let [first, .., last] = dates.tables() else {
        let Some(only) = dates.tables().first() else { return Ok(()) };
        return writeln!(out, "tables   1, of {} ({})", only.at, only.source);
    };
    let count = grouped(dates.len() as u64);
    writeln!(out, "tables   {count}, {} to {}", first.at, last.at)?;
    let both = |v4: u64, v6: u64| format!("{} IPv4, {} IPv6", grouped(v4), grouped(v6));
    writeln!(out, "routes   {} in the first table", both(first.v4, first.v6))?;
    writeln!(out, "         {} in the newest", both(last.v4, last.v6))?;
    let [v4, v6] = prefixes.map(|prefixes| prefixes as u64);
    writeln!(out, "         {} in any, {} changes", both(v4, v6), grouped(changes as u64))
}

/// The dates as JSON.
pub fn dates_json(dates: &Dates) -> Json {
    let one = |table: &fibula_rib::TableDate| json!({ "at": table.at.to_string(), "source": table.source, "ipv4": table.v4, "ipv6": table.v6 });
    dates.tables().iter().map(one).collect()
}

/// `fibula stats` for a file of several dates.
pub fn stats(path: &Path, read: &ReadArgs, as_json: bool) -> Result<Outcome, Failure> {
    let dated = DatedSnapshot::open_with(path, read.load)?;
    let written = dated.written();
    let sections = parts(&written.sections);
    let [v4, v6] = [count::<u32>(&dated), count::<u128>(&dated)];
    if as_json {
        output::json(&json!({
            "table": path.display().to_string(),
            "dates": dates_json(dated.dates()),
            "prefixes": { "ipv4": v4.0, "ipv6": v6.0 },
            "timelines": { "ipv4": v4.1, "ipv6": v6.1 },
            "changes": { "ipv4": v4.2, "ipv6": v6.2 },
            "attribute_rows": dated.columns().len(),
            "digest": format!("{:032x}", written.digest),
            "bytes": written.bytes,
            "parts": sections.iter().cloned().collect::<serde_json::Map<_, _>>(),
        }))?;
        return Ok(Outcome::Done);
    }
    let mut out = output::stdout();
    describe(&mut out, dated.dates(), [v4.0, v6.0], v4.2 + v6.2)?;
    writeln!(out, "rows     {} attribute rows", grouped(dated.columns().len().into()))?;
    let (bytes, digest) = (size(written.bytes), written.digest);
    writeln!(out, "file     {}: {bytes}, digest {digest:032x}", path.display())?;
    for (part, bytes) in sections {
        writeln!(out, "           {part}: {}", size(bytes.as_u64().unwrap_or_default()))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The numbers of prefixes, timelines and changes of a family.
fn count<A: Addr + Pod>(dated: &DatedSnapshot) -> (usize, usize, usize) {
    let lines = dated.timelines::<A>();
    (dated.routes::<A>().len(), lines.len(), lines.changes())
}

/// The sizes of the sections, grouped by purpose.
fn parts(sections: &[(String, u64)]) -> Vec<(String, Json)> {
    let part = |name: &str| match name.split('/').collect::<Vec<_>>()[..] {
        ["column", ..] | ["schema"] => "values",
        ["engine", ..] | ["engines"] => "engines",
        [_, "line", ..] => "timelines",
        ["v4" | "v6", ..] => "prefixes",
        _ => "dates and provenance",
    };
    let mut all: Vec<(String, Json)> = Vec::new();
    for wanted in ["prefixes", "timelines", "values", "engines", "dates and provenance"] {
        let bytes =
            sections.iter().filter(|(name, _)| part(name) == wanted).map(|(_, bytes)| bytes);
        all.push((wanted.to_owned(), bytes.sum::<u64>().into()));
    }
    all
}

/// The stages of a build with their durations, on one line.
pub fn times(stages: &[(String, Duration)]) -> String {
    stages
        .iter()
        .map(|(stage, time)| format!("{stage} {}", ms(*time)))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_files() {
        let may: Moment = "2024-05-01".parse().unwrap();
        assert_eq!(dated_argument("2024-05-01=a.csv,b.csv"), Some((may, "a.csv,b.csv")));
        for other in ["a=b.csv", "2024-05-01=", "2024-13-01=a.csv", "a.csv"] {
            assert_eq!(dated_argument(other), None, "{other}");
        }
    }
}
