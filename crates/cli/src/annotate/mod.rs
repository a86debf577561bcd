//! `fibula annotate`: reads rows with addresses and writes the same rows with prefixes and values.

mod args;
mod columnar;
mod failed;
mod inputs;
mod report;
mod sink;
mod tables;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use fibula_annotate::{AnnotateOptions, Annotator, ColumnAnnotator, LogFormat, Summary};
use fibula_rib::Moment;

pub use self::args::Args;
use self::failed::failure;
use self::inputs::Job;
use self::report::{Said, Totals};
use self::sink::Sink;
use self::tables::Tables;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::progress::{Bar, note};
use crate::same;

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    leave_out_caught_panics();
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
            let said = Said {
                job,
                format,
                values,
                first_table: first_table(&work.tables),
                found: args.column.is_empty(),
                alone: jobs.len() == 1,
            };
            match args.json {
                true => said.say_json(&summary, started.elapsed()),
                false => said.say(&summary, started.elapsed()),
            }
        }
    }
    if jobs.len() > 1 && !args.quiet && !args.json {
        total.say(jobs.len());
    }
    if args.flows && !formats.contains(&LogFormat::Pcap) {
        note("--flows had no effect: it is for captures");
    }
    let one_thread = |format: &LogFormat| matches!(format, LogFormat::Arrow | LogFormat::Pcap);
    if args.threads.is_some() && formats.iter().all(one_thread) {
        note("--threads had no effect: arrow and pcap are annotated by one thread");
    }
    Ok(Outcome::Done)
}

/// The date of the first table, for a file of several dates.
fn first_table(tables: &Tables) -> Option<Moment> {
    Some(tables.dated()?.dates().tables().first()?.at)
}

/// Turns panics of the file-format libraries, which damaged files can cause, into errors.
fn leave_out_caught_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !fibula_annotate::panic_is_caught() {
            default(panic);
        }
    }));
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
        same::refuse(&job.input, &job.output)?;
        let named = match (self.args.scan, self.args.format) {
            (true, Some(format)) if format != LogFormat::List => {
                return Err(Failure::new(format_args!(
                    "--scan is for lines of text, not {format}"
                )));
            }
            (true, _) => Some(LogFormat::List),
            (false, format) => format.or_else(|| LogFormat::from_path(&job.input)),
        };
        if named == Some(LogFormat::Parquet) && job.input.as_os_str() == "-" {
            return Err(Failure::new(
                "Parquet cannot be read from standard input: it is read back to front",
            )
            .hint("give the file's name"));
        }
        let columnar = named.map_or_else(|| sniff(&job.input), Ok)?;
        if let Some(folder) = job.output.parent().filter(|_| job.output != self.args.output) {
            std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder.display(), &e))?;
        }
        if columnar.is_columnar() {
            job.check_name(columnar)?;
            let annotator = match &mut self.columns {
                Some(annotator) => annotator,
                columns => {
                    let made = ColumnAnnotator::new(self.tables.shared(), &self.options);
                    columns.insert(made.map_err(|error| failure(job, &error))?)
                }
            };
            return Ok((columnar, columnar::annotate(job, columnar, annotator, &self.tables)?));
        }
        self.rows(job, named)
    }

    /// Annotates a text file or a capture.
    fn rows(&self, job: &Job, named: Option<LogFormat>) -> Result<(LogFormat, Summary), Failure> {
        let (data, position) = input::open_counted(&job.input)?;
        let mut data = BufReader::with_capacity(256 << 10, data);
        let format = match named {
            Some(format) => format,
            None => {
                let head = data.fill_buf().map_err(|e| Failure::io(job.input.display(), &e))?;
                LogFormat::guess(head)
            }
        };
        job.check_name(format)?;
        let fail = |error| failure(job, &error);
        let annotator =
            Annotator::new(self.tables.shared(), format, &self.options).map_err(fail)?;
        let mut out = Sink::create(&job.output)?;
        let summary = {
            let bar = Bar::of_rows(&job.input.display().to_string(), &job.output);
            let mut show = |rows| bar.show_bytes(rows, &position);
            annotator.annotate_on_threads(&mut data, &mut out, &mut show).map_err(fail)?
        };
        if summary.output_closed {
            return Err(Failure::output_closed());
        }
        self.tables.unchanged()?;
        out.finish()?;
        Ok((format, summary))
    }
}

/// The format of a file whose name does not give it, from the file's first bytes. Anything unknown is a list here; it
/// is examined again once it is open and decompressed.
fn sniff(path: &Path) -> Result<LogFormat, Failure> {
    if path.as_os_str() == "-" {
        return Ok(LogFormat::List);
    }
    let fail = |error| Failure::io(path.display(), &error);
    let file = File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Ok(LogFormat::List); // a pipe: what is read here would be missing later
    }
    let mut head = Vec::new();
    file.take(8).read_to_end(&mut head).map_err(fail)?;
    Ok(Some(LogFormat::guess(&head))
        .filter(|format| format.is_columnar())
        .unwrap_or(LogFormat::List))
}
