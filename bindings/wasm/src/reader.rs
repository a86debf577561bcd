//! An open table, and what a page asks it.

use std::convert::Infallible;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::net::IpAddr;
use std::path::Path;

use fibula::sources::{BuildReport, Merge, Settings, Watch};
use fibula::{AnyPrefix, Typed};
use fibula_annotate::{AnnotateOptions, Annotator, Column, LogFormat, Summary};
use fibula_fib::{Fib, FibOptions, Match};
use fibula_ingest::SourceSpec;
use fibula_rib::{AlignedBytes, AnySnapshot};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// The most bytes of rows that an annotation returns. An archive may unpack to more than the page can hold.
const LARGEST_OUTPUT: usize = 512 << 20;
/// The most routes inside a prefix that an answer lists.
const LISTED: usize = 100;
/// The most notes of a table, and of damaged places.
const NOTES: usize = 20;
/// The bytes by which the format of rows is guessed.
const HEAD: usize = 64 << 10;

/// An open table.
pub struct Reader {
    fib: Fib,
    name: String,
    notes: Vec<String>,
}

/// How rows are annotated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnnotateRequest {
    /// The name of the file, by whose ending the format is found.
    pub name: String,
    /// The columns with addresses, by name or number; empty to detect them.
    pub columns: Vec<String>,
    /// The values to add; empty for all of the table.
    pub add: Vec<String>,
}

impl Reader {
    /// Opens a table: a snapshot, or a list of networks in any format of `fibula build`, plain or compressed.
    ///
    /// # Errors
    /// A sentence if it is no table, is damaged, or has no routes.
    pub fn open(name: &str, bytes: AlignedBytes) -> Result<Self, String> {
        let mut report = BuildReport::default();
        let is_snapshot = name.ends_with(".fib") || AnySnapshot::begins(bytes.as_ref());
        let fib = match is_snapshot {
            true => open_snapshot(name, bytes, &mut report)?,
            false => build(name, bytes, &mut report)?,
        };
        if fib.is_empty() {
            let first = report.damage.first().map_or(String::new(), |first| format!(": {first}"));
            return Err(format!("{name}: no routes at all{first}"));
        }
        let mut notes = report.notes;
        if report.damaged > 0 {
            notes.push(format!("{} damaged records were skipped", report.damaged));
        }
        notes.extend(report.damage);
        notes.truncate(NOTES);
        Ok(Self { fib, name: name.to_owned(), notes })
    }

    /// The table in numbers, for the page.
    pub fn description(&self) -> Json {
        let (v4, v6) = (self.fib.family::<u32>(), self.fib.family::<u128>());
        let columns = self.fib.columns();
        json!({
            "name": self.name,
            "v4": { "routes": v4.routes().len(), "engine": v4.engine_name() },
            "v6": { "routes": v6.routes().len(), "engine": v6.engine_name() },
            "columns": columns.names().collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// The routes that cover an address, the longest first; of a prefix also routes inside it.
    ///
    /// # Errors
    /// A sentence if the text is neither.
    pub fn lookup(&self, text: &str) -> Result<Json, String> {
        let text = text.trim();
        let (prefix, is_address) = match text.parse::<IpAddr>() {
            Ok(address) => (AnyPrefix::host(address), true),
            Err(_) => (text.parse::<AnyPrefix>().map_err(|error| wrong(text, &error))?, false),
        };
        let covering = self.fib.covering(prefix).map_err(|error| error.to_string())?;
        let covering: Vec<Json> = covering.map(|route| record(&route)).collect();
        let mut inside = Vec::new();
        let mut is_cut = false;
        if !is_address {
            // The prefix's own route is in both lists of `Fib`.
            let all = self.fib.covered(prefix).map_err(|error| error.to_string())?;
            let mut all = all.filter(|route| route.prefix() != Some(prefix.unmapped()));
            inside = all.by_ref().take(LISTED).map(|route| record(&route)).collect();
            is_cut = all.next().is_some();
        }
        Ok(json!({ "question": text, "covering": covering, "inside": inside, "more": is_cut }))
    }

    /// The rows of a file with the values of their addresses, and the summary.
    ///
    /// # Errors
    /// A sentence if the format has no rows, no column has addresses, or the output would be too large.
    pub fn annotate(
        &self,
        bytes: AlignedBytes,
        request: &AnnotateRequest,
    ) -> Result<(Vec<u8>, Json), String> {
        let (_, data) = fibula_ingest::decompress(Cursor::new(bytes)).map_err(|e| e.to_string())?;
        let mut data = BufReader::with_capacity(HEAD, data);
        let mut head = Vec::new();
        data.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(|e| e.to_string())?;
        let format = format_of(&request.name, &head)?;
        let mut options = AnnotateOptions::default();
        options.columns = request.columns.iter().map(|name| column(name)).collect();
        options.add.clone_from(&request.add);
        options.threads = 1;
        options.hold = true;
        let refused = |error: fibula_annotate::AnnotateError| format!("{}: {error}", request.name);
        let annotator = Annotator::new(self.fib.clone(), format, &options).map_err(refused)?;
        let mut output = Bounded(Vec::new());
        let input = Cursor::new(head).chain(data);
        let summary = annotator.annotate(input, &mut output).map_err(refused)?;
        if let Some(why) = summary.unfit(format, options.scan) {
            return Err(format!("{}: {why}", request.name));
        }
        Ok((output.0, summary_of(format, &summary)))
    }
}

fn open_snapshot(name: &str, bytes: AlignedBytes, report: &mut BuildReport) -> Result<Fib, String> {
    let refused = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let options = FibOptions::default();
    let fib = match AnySnapshot::from_bytes(bytes).map_err(|error| refused(&error))? {
        AnySnapshot::Table(snapshot) => Fib::of_snapshot(snapshot, &options),
        AnySnapshot::Dated(dated) => {
            let dates = dated.dates();
            let newest = dates.newest();
            if let Some(date) = dates.tables().get(usize::from(newest)) {
                report.taken(name, date, dates.len());
            }
            Fib::of_table(dated.table(newest), &options)
        }
    };
    fib.map_err(|error| refused(&error))
}

fn build(name: &str, bytes: AlignedBytes, report: &mut BuildReport) -> Result<Fib, String> {
    let mut merge = Merge::new(Settings::default());
    merge
        .read(&SourceSpec::new(name), Cursor::new(bytes), report)
        .map_err(|error| error.to_string())?;
    let table = merge.finish().map_err(|error| error.to_string())?;
    report.merged(&table);
    Fib::of_table(table, &FibOptions::default()).map_err(|error| format!("{name}: {error}"))
}

/// The format of rows by the file's name, or else by its beginning, as the command decides it.
fn format_of(name: &str, head: &[u8]) -> Result<LogFormat, String> {
    let guessed = LogFormat::guess(head);
    let format = match LogFormat::from_path(Path::new(name)) {
        Some(LogFormat::List) => LogFormat::of_directives(head).unwrap_or(LogFormat::List),
        Some(format) => format,
        None => guessed,
    };
    if format.is_columnar() || guessed.is_columnar() {
        return Err(format!(
            "{name}: Parquet and Arrow files need the command: fibula annotate {name}"
        ));
    }
    match fibula_ingest::container(head).filter(|_| format != LogFormat::Pcap) {
        Some(what) => Err(format!("{name}: {what}")),
        None => Ok(format),
    }
}

fn column(name: &str) -> Column {
    name.parse().unwrap_or_else(|never: Infallible| match never {})
}

/// The message for a text that is no address and no prefix.
fn wrong(text: &str, error: &dyn std::fmt::Display) -> String {
    let shown: String = text.chars().take(60).collect();
    match text.contains('/') {
        true => format!("{shown:?}: {error}"),
        false => format!("{shown:?} is not an address"),
    }
}

/// A route with the texts of its values: numbers of JavaScript do not hold all of ours.
fn record(route: &Match<'_>) -> Json {
    let values = route.typed().filter_map(|(name, value)| {
        let text = match value {
            Typed::Null => return None,
            Typed::Int(int) => int.to_string(),
            Typed::Float(float) => float.to_string(),
            Typed::Bool(is) => is.to_string(),
            Typed::Str(text) => text.to_owned(),
        };
        Some(json!([name, text]))
    });
    let values: Vec<Json> = values.collect();
    json!({ "prefix": route.prefix().map(|prefix| prefix.to_string()), "values": values })
}

fn summary_of(format: LogFormat, summary: &Summary) -> Json {
    let notes = [&summary.first_unparsable, &summary.first_damaged, &summary.first_unknown_link];
    let top = summary
        .top
        .iter()
        .map(|top| json!({ "column": top.column, "values": top.values, "distinct": top.distinct }));
    json!({
        "format": format.name(),
        "rows": summary.rows,
        "addresses": summary.addresses,
        "matched": summary.matched,
        "unmatched": summary.unmatched,
        "unparsable": summary.unparsable,
        "empty": summary.empty,
        "damaged": summary.damaged,
        "columns": summary.columns,
        "notes": notes.into_iter().flatten().collect::<Vec<_>>(),
        "top": top.collect::<Vec<_>>(),
    })
}

/// An output that refuses to grow beyond [`LARGEST_OUTPUT`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST_OUTPUT {
            let what = "the result has more than 512 MiB: use the command, fibula annotate";
            return Err(io::Error::other(what));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
