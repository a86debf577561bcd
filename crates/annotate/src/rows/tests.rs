//! Tests that several threads give the same result as one.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};

use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
use proptest::prelude::*;
use proptest::sample::select;

use super::{Annotator, Parting};
use crate::{AnnotateError, AnnotateOptions, LogFormat, Only, Summary};

pub(super) fn table() -> Fib {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let columns = [("asn".into(), ColumnKind::Int), ("org".into(), ColumnKind::Str)];
    builder.begin_source("test", "text", &columns, false, None);
    for (prefix, asn, org) in [
        ("10.0.0.0/8", 64500, "Example, Inc."),
        ("10.1.0.0/16", 64501, "He said \"no\""),
        ("2001:db8::/32", 64502, "Zoë"),
    ] {
        let values = [Value::Int(asn), Value::Str(org)];
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    Fib::of_table(builder.finish().unwrap(), &FibOptions::default()).unwrap()
}

/// An input that is read in pieces and may end with an error.
pub(super) struct Pieces<'a> {
    pub(super) data: &'a [u8],
    pub(super) sizes: &'a [usize],
    pub(super) reads: usize,
    pub(super) breaks: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.data.is_empty() && self.breaks {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let n = self.sizes[self.reads % self.sizes.len()].min(self.data.len()).min(buf.len());
        buf[..n].copy_from_slice(&self.data[..n]);
        self.data = &self.data[n..];
        Ok(n)
    }
}

/// Rows that one thread reads before the others start.
fn head(format: LogFormat) -> String {
    let row = match format {
        LogFormat::Csv => "10.1.2.3,first,\"a \"\"b\"\"\"\r\n",
        LogFormat::Tsv => "10.1.2.3\tfirst\tb\n",
        LogFormat::JsonLines => "{\"a\":\"10.0.0.1\",\"b\":{\"c\":null}}\n",
        _ => "10.0.0.1 - - GET\n",
    };
    row.repeat((8 << 10) / row.len() + 1)
}

fn rows(format: LogFormat) -> BoxedStrategy<String> {
    let pieces: &[&str] = match format {
        LogFormat::Csv | LogFormat::Tsv => &[
            "10.1.2.3",
            "2001:db8::1",
            " 10.0.0.1 ",
            "x",
            ",",
            ",",
            "\t",
            "\n",
            "\n",
            "\r\n",
            "\"",
            "\"\"",
            "\"a\nb\",",
            "10.1.2.3,ordinary,row\n",
            "10.1.2.3\tordinary\trow\n",
            "\"10.0.0.9\",\"x,\ny\",\"z\"\r\n",
            "\r",
            ",\"",
            "\n\n",
        ],
        LogFormat::JsonLines => &[
            "{\"a\":\"10.1.2.3\"}\n",
            "{\"b\":{\"c\":\"2001:db8::1\"}}\r\n",
            "{}\n",
            "{ }",
            "\n",
            "{\"a\":7}\n",
            "{\"a\":",
            "[1]\n",
            "{\"x\":\"\\\"\",\"a\":\"x\"}\n",
            "\"",
            "}",
            " ",
        ],
        _ => &[
            "10.1.2.3",
            "2001:db8::1",
            " ",
            "x",
            "# no row\n",
            "\n",
            "\r\n",
            "\t",
            "[10.0.0.1]:443",
        ],
    };
    let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect::<Vec<_>>();
    proptest::collection::vec(select(pieces), 0..120).prop_map(|parts| parts.concat()).boxed()
}

/// The output, and the summary or the error.
pub(super) type Outcome = (String, Result<Summary, String>);

pub(super) fn outcome(output: Vec<u8>, result: Result<Summary, AnnotateError>) -> Outcome {
    (String::from_utf8(output).unwrap(), result.map_err(|error| error.to_string()))
}

proptest! {
    #[test]
    fn threads_and_parts_do_not_matter(
        (format, text) in select(vec![LogFormat::Csv, LogFormat::Tsv, LogFormat::JsonLines, LogFormat::List])
            .prop_flat_map(|format| (Just(format), rows(format))),
        sizes in proptest::collection::vec(1usize..300, 1..5),
        chunk in 1usize..400,
        (strict, breaks, all_covering, quotes) in any::<(bool, bool, bool, bool)>(),
        only in select(vec![None, Some(Only::Matched), Some(Only::Unmatched)]),
        slow in select(vec![0, 50, usize::MAX]),
    ) {
        let text = head(format) + &text;
        let mut options = AnnotateOptions {
            strict, all_covering, only, add: vec!["prefix".into(), "org".into()], ..AnnotateOptions::default()
        };
        match format {
            LogFormat::JsonLines => options.columns = vec!["a".parse().unwrap(), "b.c".parse().unwrap()],
            LogFormat::List => {}
            _ => {
                options.columns = vec!["1".parse().unwrap()];
                options.quote = quotes.then_some(b'"');
            }
        }
        let pieces = || Pieces { data: text.as_bytes(), sizes: &sizes, reads: 0, breaks };
        let fib = table();
        let mut expected = None;
        for threads in [1, 2, 3, 8] {
            options.threads = threads;
            let mut annotator = Annotator::new(fib.clone(), format, &options).unwrap();
            annotator.parting = Parting { from: 0, chunk, slow, ..Parting::default() };
            let mut output = Vec::new();
            let result = annotator.annotate_on_threads(pieces(), &mut output, &mut |_| {});
            let found = outcome(output, result);
            // The expected result is that of `annotate`, which reads other blocks.
            let expected = expected.get_or_insert_with(|| {
                let annotator = Annotator::new(fib.clone(), format, &options).unwrap();
                let mut output = Vec::new();
                let result = annotator.annotate(pieces(), &mut output);
                outcome(output, result)
            });
            prop_assert_eq!(&found, expected, "{} threads", threads);
        }
    }
}

/// Ensures that the test above does not pass only because one thread reads everything.
#[test]
fn parts_are_processed_by_other_threads() {
    struct Named(Arc<Mutex<Vec<std::thread::ThreadId>>>);
    impl Write for Named {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(std::thread::current().id());
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in [LogFormat::Csv, LogFormat::Tsv, LogFormat::JsonLines, LogFormat::List] {
        let mut options = AnnotateOptions { threads: 2, ..AnnotateOptions::default() };
        if format == LogFormat::JsonLines {
            options.columns = vec!["a".parse().unwrap()];
        }
        let mut annotator = Annotator::new(table(), format, &options).unwrap();
        annotator.parting = Parting { from: 0, chunk: 4096, slow: 0, ..Parting::default() };
        let writers = Arc::default();
        let input = head(format).repeat(4);
        let named = Named(Arc::clone(&writers));
        annotator.annotate_on_threads(input.as_bytes(), named, &mut |_| {}).unwrap();
        let mut writers = writers.lock().unwrap().clone();
        writers.dedup();
        assert_eq!(writers.len(), 2, "{format}: first this thread, then the writer");
    }
}

/// As with one thread, all rows read so far are written before the next read.
#[test]
fn rows_of_a_slow_input_come_out_as_they_come_in() {
    struct Slow(Arc<Mutex<usize>>, usize);
    impl Read for Slow {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            assert_eq!(*self.0.lock().unwrap(), self.1, "lines");
            if self.1 == 2000 {
                return Ok(0);
            }
            self.1 += 1;
            buf[..9].copy_from_slice(b"10.0.0.1\n");
            Ok(9)
        }
    }
    struct Lines(Arc<Mutex<usize>>);
    impl Write for Lines {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            *self.0.lock().unwrap() += buf.iter().filter(|&&byte| byte == b'\n').count();
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let options = AnnotateOptions { threads: 3, ..AnnotateOptions::default() };
    let mut annotator = Annotator::new(table(), LogFormat::List, &options).unwrap();
    annotator.parting.from = 0;
    let lines = Arc::default();
    let (input, output) = (Slow(Arc::clone(&lines), 0), Lines(Arc::clone(&lines)));
    let mut seen = Vec::new();
    let summary = annotator.annotate_on_threads(input, output, &mut |rows| seen.push(rows));
    assert_eq!(summary.unwrap().rows, 2000);
    assert!(seen.is_sorted() && seen.last() == Some(&2000), "{seen:?}");
}

#[test]
fn a_closed_output_ends_quietly_and_a_full_disk_does_not() {
    struct Failing(usize, ErrorKind);
    impl Write for Failing {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(buf.len()).ok_or(self.1)?;
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut options = AnnotateOptions { threads: 2, ..AnnotateOptions::default() };
    options.columns = vec!["1".parse().unwrap()];
    let mut annotator = Annotator::new(table(), LogFormat::Csv, &options).unwrap();
    annotator.parting = Parting { from: 0, chunk: 1000, slow: 0, ..Parting::default() };
    // The input has no end, so the call returns only if it stops early.
    let endless = || head(LogFormat::Csv).into_bytes();
    struct Endless(Vec<u8>, usize);
    impl Read for Endless {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let rest = &self.0[self.1..];
            let n = rest.len().min(buf.len());
            buf[..n].copy_from_slice(&rest[..n]);
            self.1 = (self.1 + n) % self.0.len();
            Ok(n)
        }
    }
    for (kind, closed) in [(ErrorKind::BrokenPipe, true), (ErrorKind::StorageFull, false)] {
        let output = Failing(100_000, kind);
        let result = annotator.annotate_on_threads(Endless(endless(), 0), output, &mut |_| {});
        match result {
            Ok(summary) => assert!(closed && summary.output_closed && summary.rows > 1000),
            Err(error) => assert!(!closed && matches!(error, AnnotateError::Write(_)), "{error}"),
        }
    }
}

#[test]
fn records_that_are_too_long() {
    let options = AnnotateOptions { threads: 2, ..AnnotateOptions::default() };
    let mut annotator = Annotator::new(table(), LogFormat::List, &options).unwrap();
    annotator.parting.from = 0;
    let rows = "10.0.0.1\n".repeat(2000);
    let endless = || rows.as_bytes().chain(io::repeat(b'x'));
    let error = |annotator: &Annotator| {
        annotator.annotate_on_threads(endless(), io::sink(), &mut |_| {}).unwrap_err().to_string()
    };
    let found = error(&annotator);
    annotator.options.threads = 1;
    assert_eq!(found, error(&annotator));
    assert_eq!(found, "the record at line 2001 is longer than 16777216 bytes");
}
