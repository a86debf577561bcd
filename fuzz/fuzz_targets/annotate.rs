//! Annotation of every format: the first three bytes are format, options and the size of the reads.
#![no_main]

use fibula_annotate::{AnnotateOptions, Annotator, Column, Header, LogFormat, Summary};
use fibula_fuzz::{Pieces, WORLD};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, flags, step], input)) = data.split_first_chunk() else { return };
    let format = LogFormat::ALL[usize::from(kind) % 5];
    let options = options(format, kind, flags);
    let Ok(annotator) = Annotator::new(&*WORLD, format, &options) else { return };
    let (mut output, mut pieces) = (Vec::new(), Vec::new());
    let expected = annotator.annotate(input, &mut output);
    let got = annotator.annotate(Pieces::new(input, step.into()), &mut pieces);
    assert_eq!(format!("{expected:?}"), format!("{got:?}"));
    assert_eq!(output.escape_ascii().to_string(), pieces.escape_ascii().to_string());
    let Ok(summary) = expected else { return };

    assert_eq!(summary.bytes_read, input.len() as u64);
    assert_eq!(summary.bytes_written, output.len() as u64);
    assert_eq!(summary.matched + summary.unmatched, summary.addresses);
    let cells = summary.addresses + summary.empty + summary.unparsable;
    // A line that is not a JSON object is a row without cells.
    let json = format == LogFormat::JsonLines;
    let rows = if json { summary.rows - summary.damaged } else { summary.rows };
    assert_eq!(cells.checked_rem(rows).unwrap_or(cells), 0, "{summary:?}");
    if format == LogFormat::Pcap {
        let rows = output.iter().filter(|&&b| b == b'\n').count() as u64;
        assert_eq!(rows, summary.rows + u64::from(rows > 0));
    } else {
        check_lines(input, &output, format, &options);
    }
    check_again(&output, format, &options, &summary);
});

fn options(format: LogFormat, kind: u8, flags: u8) -> AnnotateOptions {
    let mut options = AnnotateOptions::default();
    options.columns = match (format, kind >> 6) {
        (LogFormat::JsonLines, 0) => vec![Column::Name("a".into())],
        (LogFormat::JsonLines, _) => vec![Column::Name("a.b".into()), Column::Name("c".into())],
        (LogFormat::Pcap, 1) => vec![Column::Name("dst".into())],
        (LogFormat::Csv | LogFormat::Tsv, 3) => vec![Column::Name("a".into())],
        (_, 1) => vec![Column::Number(1)],
        (_, 2) => vec![Column::Number(3), Column::Number(1)],
        _ => Vec::new(),
    };
    let adds = [&[][..], &["prefix"], &["asn", "prefix", "org"], &["org"]];
    options.add = adds[usize::from(flags) % 4].iter().map(|&add| add.to_owned()).collect();
    options.header = [Header::Detect, Header::Present, Header::Absent][usize::from(flags >> 2) % 3];
    options.strict = flags & 16 != 0;
    options.delimiter =
        if flags & 32 != 0 { Some(b";| \""[usize::from(flags >> 6)]) } else { None };
    options.quote = if kind & 32 != 0 { None } else { Some(b'"') };
    options
}

/// Line by line the output is the input, with text inserted: in one place, or in each object if several share a line.
/// JSON stays JSON.
fn check_lines(input: &[u8], output: &[u8], format: LogFormat, options: &AnnotateOptions) {
    let lines = |text: &[u8]| text.iter().filter(|&&b| b == b'\n').count();
    if lines(input) != lines(output) {
        // A quoted name of a column may hold a line end; the names that are made of it do too.
        assert!(options.quote.is_some_and(|quote| input.contains(&quote)), "more or fewer lines");
        return;
    }
    for (old, new) in input.split(|&b| b == b'\n').zip(output.split(|&b| b == b'\n')) {
        let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let mut kept = new.len() >= old.len() && head + tail >= old.len();
        if format == LogFormat::JsonLines {
            let is_value = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
            match is_value(old) {
                true => kept &= is_value(new),
                // What is left of the new line behind each byte of the old one.
                false => {
                    kept = old
                        .iter()
                        .try_fold(new.iter(), |mut rest, byte| {
                            rest.any(|other| other == byte).then_some(rest)
                        })
                        .is_some()
                }
            }
        }
        assert!(kept, "{} became {}", old.escape_ascii(), new.escape_ascii());
    }
}

/// What was written reads as a table of as many rows, all of one width.
fn check_again(output: &[u8], format: LogFormat, options: &AnnotateOptions, summary: &Summary) {
    if matches!(format, LogFormat::JsonLines | LogFormat::List) || summary.damaged > 0 {
        return;
    }
    let (mut format, mut again) = (format, options.clone());
    if format == LogFormat::Pcap {
        (format, again) = (LogFormat::Csv, AnnotateOptions::default());
    }
    (again.columns, again.header) = (vec![Column::Number(1)], Header::Absent);
    again.strict = false;
    let annotator = Annotator::new(&*WORLD, format, &again).expect("the same delimiters");
    let read = annotator.annotate(output, std::io::sink()).expect("a table is written");
    let header = read.rows.saturating_sub(summary.rows);
    assert!(read.rows >= summary.rows && header <= 1, "{summary:?} {read:?}");
    assert_eq!(read.damaged, 0, "{:?}\n{}", read.first_damaged, output.escape_ascii());
}
