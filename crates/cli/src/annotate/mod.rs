//! `fibula annotate`: reads rows with addresses and writes the same rows with prefixes and values.

mod args;
pub(crate) mod columnar;
mod device;
mod exports;
mod failed;
mod inputs;
pub(crate) mod reading;
mod report;
mod sink;
mod stream;
pub(crate) mod tables;

use std::io::Read;
use std::time::Instant;

use fibula_annotate::{AnnotateOptions, ColumnAnnotator, LogFormat, Summary};
use fibula_offload::OnDevice;
use fibula_rib::Moment;

pub use self::args::{Args, TableReadArgs, parse_default};
use self::failed::{failure, found_any};
use self::inputs::Job;
use self::reading::Reading;
use self::report::{AnnotatedFile, Totals};
use self::sink::Sink;
use self::tables::Tables;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, Position};
use crate::progress::{Bar, note};
use crate::same;

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if let Some(stream) = args.stream.options() {
        return stream::run(args, &stream);
    }
    let jobs = inputs::jobs(&args.inputs, &args.output)?;
    let tables = args.sources()?;
    for job in &jobs {
        same::refuse_tables(&tables, &job.output)?;
        args.rpki.refuse(&job.output)?;
    }
    let mut work =
        Work { args, tables: Tables::open(args)?, options: args.options(), columns: None };
    let mut total = Totals::default();
    let mut formats = Vec::new();
    for job in &jobs {
        let started = Instant::now();
        let (format, summary) = work.one(job)?;
        total.add(&summary, started.elapsed());
        formats.push(format);
        if !args.quiet {
            let values =
                if args.add.is_empty() { work.tables.columns().width() } else { args.add.len() };
            let file = AnnotatedFile {
                job,
                format,
                values,
                first_table: first_table(&work.tables),
                found: args.column.is_empty(),
                alone: jobs.len() == 1,
            };
            let lookups = work.tables.on_device().map(OnDevice::take_summary);
            match args.json {
                true => file.print_json(&summary, lookups.as_ref(), started.elapsed()),
                false => {
                    file.print(&summary, started.elapsed());
                    if let (Some(table), Some(lookups)) = (work.tables.on_device(), &lookups) {
                        device::print_summary(table, lookups);
                    }
                }
            }
        }
    }
    if jobs.len() > 1 && !args.quiet && !args.json {
        total.print(jobs.len());
    }
    if args.flows && !formats.contains(&LogFormat::Pcap) {
        note("--flows had no effect: it is for captures");
    }
    if args.rows.is_some() && !formats.contains(&LogFormat::Flows) {
        note("--rows had no effect: it is for --flows-in");
    }
    let one_thread = |format: &LogFormat| match format {
        LogFormat::Pcap => args.flows,
        format => *format == LogFormat::Flows,
    };
    if args.threads.is_some() && formats.iter().all(one_thread) {
        let option = if args.flows { "--flows" } else { "--flows-in" };
        note(format_args!(
            "--threads had no effect: captures are annotated by one thread with {option}"
        ));
    }
    Ok(Outcome::Done)
}

/// The date of the first table, for a file of several dates.
fn first_table(tables: &Tables) -> Option<Moment> {
    Some(tables.dated()?.dates().tables().first()?.at)
}

/// The state that all files share.
struct Work<'a> {
    args: &'a Args,
    tables: Tables,
    options: AnnotateOptions,
    /// Created for the first file that has columns.
    columns: Option<ColumnAnnotator>,
}

impl Work<'_> {
    /// Annotates one file.
    fn one(&mut self, job: &Job) -> Result<(LogFormat, Summary), Failure> {
        let input = Input::open(&job.input)?;
        same::refuse_opened(&input, &job.output)?;
        let named_list = self.args.format.or(self.args.scan.then_some(LogFormat::List));
        let is_named = named_list.is_some() || self.args.flows_in;
        let named = match (self.args.scan, self.args.format) {
            (true, Some(format)) if format != LogFormat::List => {
                return Err(Failure::new(format_args!(
                    "--scan is for lines of text, not {format}"
                )));
            }
            (true, _) => Some(LogFormat::List),
            (false, _) if self.args.flows_in => Some(LogFormat::Flows),
            (false, format) => format.or_else(|| LogFormat::from_path(&job.input)),
        };
        let (mut format, reading) = Reading::of(input, named, is_named)?;
        if format == LogFormat::List && self.args.delimiter.is_some() && named_list.is_none() {
            // A delimiter makes fields of words.
            format = LogFormat::Csv;
        }
        job.check_name(format)?;
        if let Some(folder) = job.output.parent().filter(|_| job.output != self.args.output) {
            std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder.display(), &e))?;
        }
        let summary = match reading {
            Reading::Rows(data, position) => self.rows(job, format, data, &position)?,
            Reading::Columns(columns) => {
                let annotator = match &mut self.columns {
                    Some(annotator) => annotator,
                    columns => {
                        let made = self.tables.column_annotator(&self.options);
                        columns.insert(made.map_err(|error| failure(job, &error))?)
                    }
                };
                columnar::annotate(job, columns, annotator, &self.tables)?
            }
        };
        Ok((format, summary))
    }

    /// Annotates a text file or a capture.
    fn rows(
        &self,
        job: &Job,
        format: LogFormat,
        data: impl Read,
        position: &Position,
    ) -> Result<Summary, Failure> {
        let fail = |error| failure(job, &error);
        let mut options = self.options.clone();
        options.export_rows = self.args.export_rows(&job.output);
        let annotator = self.tables.annotator(format, &options).map_err(fail)?;
        let mut out = Sink::create(&job.output)?;
        let summary = {
            let bar = Bar::of_rows(&job.input.display().to_string(), &job.output);
            let mut show = |rows| bar.show_bytes(rows, position);
            annotator.annotate_on_threads(data, &mut out, &mut show).map_err(fail)?
        };
        if summary.output_closed {
            return Err(Failure::output_closed());
        }
        self.tables.unchanged()?;
        found_any(job, format, self.args.scan, &summary)?;
        out.finish()?;
        Ok(summary)
    }
}
