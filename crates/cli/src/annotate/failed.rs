//! Turns annotation errors into messages for the user.

use fibula_annotate::{AnnotateError, LogFormat, Summary};

use super::inputs::Job;
use crate::failure::Failure;

/// Refuses an input that has text where addresses should be, and no address at all: its results would look as if no
/// prefix matched. Rows with fields are written without values, unless `--only` leaves them out.
pub fn found_any(
    job: &Job,
    format: LogFormat,
    scan: bool,
    summary: &Summary,
) -> Result<(), Failure> {
    let Some(what) = summary.unfit(format, scan) else { return Ok(()) };
    let hint = match format {
        LogFormat::Pcap => {
            "docs/annotate.md lists the link types; tcpdump -y or editcap -T writes another one"
        }
        LogFormat::Flows => "without --flows-in, each packet becomes a row",
        LogFormat::List => {
            "--scan finds addresses anywhere in a line, --delimiter ' ' reads its words as fields"
        }
        _ => "--column names the columns with addresses",
    };
    Err(Failure::new(format_args!("{}: {what}", job.input.display())).hint(hint))
}

/// Adds the file's name, and a hint with the option that would help.
pub fn failure(job: &Job, error: &AnnotateError) -> Failure {
    if let AnnotateError::Write(error) = error {
        return Failure::io(job.output.display(), error);
    }
    let failure = Failure::new(format_args!("{}: {error}", job.input.display()));
    match error {
        AnnotateError::UnknownValue { .. } => failure.hint("--add takes prefix and these names"),
        AnnotateError::Default { .. } | AnnotateError::DefaultKind { .. } => {
            failure.hint("--default NAME=VALUE, for value columns that --add names")
        }
        AnnotateError::Columnar { .. } => {
            failure.hint("it must come from a file that is not compressed, or with --format")
        }
        AnnotateError::Type { .. } => failure.hint(
            "addresses are text, unsigned integers, or 4 or 16 bytes; --column names the columns",
        ),
        AnnotateError::File { .. } => {
            failure.hint("the file is damaged, or of another format: --format names it")
        }
        AnnotateError::NoColumn { .. }
        | AnnotateError::UnknownColumn { .. }
        | AnnotateError::ColumnNumber { .. }
        | AnnotateError::ColumnKind { .. } => failure.hint(
            "--column names the columns with addresses, --time that of times, --format the format",
        ),
        AnnotateError::Unparsable { .. }
        | AnnotateError::Record { .. }
        | AnnotateError::LinkType { .. }
        | AnnotateError::Export { .. }
        | AnnotateError::Time { .. }
        | AnnotateError::TimeCell { .. }
        | AnnotateError::Cell { .. } => {
            failure.hint("without --strict it is counted and the rest goes on")
        }
        AnnotateError::OpenQuote { .. } => {
            failure.hint("close it, or read quotes as ordinary characters: --no-quotes")
        }
        AnnotateError::TimeType { .. } => failure.hint(
            "times are timestamps, dates, text or numbers since 1970; --time names the column",
        ),
        AnnotateError::InNoRow { .. } => {
            failure.hint("--column takes other names, in JSON also a.b")
        }
        AnnotateError::Binary { .. } => {
            failure.hint("--format names the format; UTF-16 must be made UTF-8 first")
        }
        AnnotateError::NameTaken { .. } => {
            failure.hint("was it annotated before? --add chooses other columns")
        }
        AnnotateError::NoTimes { .. } => {
            failure.hint("--delimiter ' ' reads the words of lines as fields")
        }
        AnnotateError::NotACapture | AnnotateError::NoExports => {
            failure.hint("--format names the format")
        }
        _ => failure,
    }
}
