//! `fibula build --as-of`: compiles the tables of several dates into one file.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use fibula::sources::{DatedSources, ReadDates, WatchDates};
use fibula_core::{Addr, grouped};
use fibula_ingest::{Damage, ReadReport};
use fibula_rib::{DatedSnapshot, Dates, Pod};
use serde_json::{Value as Json, json};

use crate::failure::{Failure, Outcome};
use crate::fetch;
use crate::output::{self, size};
use crate::progress::{Bar, ms};
use crate::same;
use crate::source::ReadArgs;
use crate::table;

/// Reads the tables that the arguments name, in the order of their dates, for a file that is none of them.
pub fn load(arguments: &[String], read: &ReadArgs, output: &Path) -> Result<ReadDates, Failure> {
    let found = DatedSources::find(&fetch::dated(arguments, read)?)?;
    for dated in &found.tables {
        same::refuse_tables(&dated.sources, output)?;
    }
    Ok(found.read(&read.settings()?, &Aloud(Bar::new("tables")))?)
}

/// Shows the progress by tables, and reports damage at the end of each file.
struct Aloud(Bar);

impl WatchDates for Aloud {
    fn progress(&self, done: usize, of: usize) {
        self.0.show_count(done, of);
    }

    fn done(&self, name: &str, report: &ReadReport, damage: &[Damage]) {
        table::report_read(name, report, damage);
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
pub fn stats(path: &Path, dated: &DatedSnapshot, as_json: bool) -> Result<Outcome, Failure> {
    let written = dated.written();
    let sections = parts(&written.sections);
    let [v4, v6] = [count::<u32>(dated), count::<u128>(dated)];
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
