//! Classifies the packets of a file: of a capture, of rows, or of columns.

use std::io::BufRead;
use std::path::Path;

use fibula_annotate::{
    AnnotateError, AnnotateOptions, ColumnInput, LogFormat, RuleAnnotator, RuleColumnAnnotator,
    RuleOutput, RuleTotals, Summary,
};
use fibula_classify::Classifier;

use crate::annotate::columnar::Watched;
use crate::annotate::reading::Reading;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::Output;
use crate::same;

/// The counts of a file.
pub type Classified = (Summary, RuleTotals);

/// A file with packets, and its output.
pub struct PacketFile<'a> {
    pub path: &'a Path,
    /// The file of the results.
    pub output: &'a Path,
    /// Whether packets are only counted. The file of the results has the counts then.
    pub counts_only: bool,
    pub classifier: Classifier,
    pub options: AnnotateOptions,
}

/// The format of the results, by the output's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultFormat {
    Rows,
    Parquet,
    Arrow,
}

impl ResultFormat {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => Self::Parquet,
            Some("arrow" | "arrows" | "feather" | "ipc") => Self::Arrow,
            _ => Self::Rows,
        }
    }
}

impl PacketFile<'_> {
    /// Classifies all packets.
    pub fn classify(self) -> Result<Classified, Failure> {
        let input = Input::open(self.path)?;
        same::refuse_opened(&input, self.output)?;
        let (_, reading) = Reading::of(input, None, false)?;
        let mut data = match reading {
            Reading::Columns(columns) => return self.columns(columns),
            Reading::Rows(data, _) => data,
        };
        let head = data.fill_buf().map_err(|error| Failure::io(self.path.display(), &error))?;
        // What comes from a pipe, or was compressed.
        let guessed = LogFormat::guess(head);
        if head.starts_with(b"ARROW1") || guessed == LogFormat::Parquet {
            return Err(Failure::new(format_args!(
                "{}: {guessed} is not read in order: it cannot be compressed, nor come from standard input",
                self.path.display()
            ))
            .hint("name a file that is not compressed"));
        }
        let format = match guessed {
            LogFormat::Arrow => return self.columns(ColumnInput::ArrowStream(Box::new(data))),
            LogFormat::Pcap => LogFormat::Pcap,
            guessed => {
                let named = LogFormat::from_path(self.path);
                match named.filter(|format| *format != LogFormat::List).unwrap_or(guessed) {
                    format @ (LogFormat::Tsv | LogFormat::JsonLines) => format,
                    _ => LogFormat::Csv,
                }
            }
        };
        self.rows(format, data)
    }

    /// Classifies the packets of a capture, or rows of text.
    fn rows(&self, format: LogFormat, data: impl BufRead) -> Result<Classified, Failure> {
        let writes = !self.counts_only;
        let needed = match ResultFormat::of(self.output) {
            ResultFormat::Rows => None,
            ResultFormat::Parquet => Some("Parquet output needs Parquet or Arrow input"),
            ResultFormat::Arrow => Some("Arrow output needs Arrow input"),
        };
        if let Some(needed) = needed.filter(|_| writes) {
            return Err(Failure::new(format_args!("{}: {needed}", self.output.display()))
                .hint("other packets become CSV: give the output another name"));
        }
        let classifier = self.classifier.clone();
        let annotator = RuleAnnotator::new(classifier, format, &self.options, writes);
        let annotator = annotator.map_err(|error| self.failure(&error))?;
        let mut output = writes.then(|| Output::create(self.output)).transpose()?;
        let classified = match &mut output {
            Some(output) => annotator.annotate(data, output, &mut |_| {}),
            None => annotator.annotate(data, std::io::sink(), &mut |_| {}),
        };
        let (summary, totals) = classified.map_err(|error| self.failure(&error))?;
        if summary.output_closed {
            return Err(Failure::output_closed());
        }
        if summary.rows == 0 && (summary.bytes_read == 0 || summary.columns.is_empty()) {
            return Err(Failure::new(format_args!("{}: the file is empty", self.path.display())));
        }
        if let Some(first) = &summary.first_unknown_link
            && summary.unknown_links == summary.rows
        {
            let name = self.path.display();
            return Err(Failure::new(format_args!("{name}: {first}, and no packet is of another"))
                .hint("tcpdump -y or editcap -T writes another link type"));
        }
        output.map_or(Ok(()), Output::finish)?;
        Ok((summary, totals))
    }

    /// Classifies the rows of Parquet or Arrow.
    fn columns(&self, input: ColumnInput<'_>) -> Result<Classified, Failure> {
        let annotator = RuleColumnAnnotator::new(self.classifier.clone(), &self.options);
        if self.counts_only {
            let done = annotator.annotate(input, RuleOutput::<Watched>::Counts, &mut |_| {});
            return done.map_err(|error| self.failure(&error));
        }
        let format = ResultFormat::of(self.output);
        if format == ResultFormat::Arrow && matches!(input, ColumnInput::Parquet(_)) {
            let what = format_args!("{}: Arrow output needs Arrow input", self.output.display());
            return Err(Failure::new(what).hint("give the output another name, for CSV or Parquet"));
        }
        let mut output = Watched::create(self.output)?;
        let written = match format {
            ResultFormat::Rows => RuleOutput::Rows(&mut output),
            ResultFormat::Parquet => RuleOutput::Parquet(&mut output),
            ResultFormat::Arrow => RuleOutput::Arrow(&mut output),
        };
        let done = annotator.annotate(input, written, &mut |_| {});
        output.check()?;
        let classified = done.map_err(|error| self.failure(&error))?;
        output.finish()?;
        Ok(classified)
    }

    /// Adds the file's name, and a hint.
    fn failure(&self, error: &AnnotateError) -> Failure {
        let failure = Failure::new(format_args!("{}: {error}", self.path.display()));
        match error {
            AnnotateError::Write(error) => Failure::io("the output", error),
            AnnotateError::Row { line: 1, .. } => {
                failure.hint("a capture is pcap or pcapng; CSV begins with the columns' names")
            }
            AnnotateError::Record { .. }
            | AnnotateError::Packet { .. }
            | AnnotateError::LinkType { .. } => {
                failure.hint("without --strict it is counted and the rest goes on")
            }
            _ => failure,
        }
    }
}
