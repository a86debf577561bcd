//! Streams between two programs, in every format: the first three bytes are format, options and the size of the reads.
//! The answers do not depend on how the rows arrive, and each row of lines has one.
#![no_main]

use std::sync::Arc;

use fibula_annotate::{
    AnnotateOptions, Column, NoHost, StreamFormat, StreamOptions, annotate_stream,
};
use fibula_fuzz::{Pieces, WORLD};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, flags, step], input)) = data.split_first_chunk() else { return };
    let format = StreamFormat::ALL[usize::from(kind) % StreamFormat::ALL.len()];
    let mut options = AnnotateOptions::default();
    options.columns = match kind >> 6 {
        0 => vec![Column::Name("a".into())],
        1 => vec![Column::Number(1)],
        2 => vec![Column::Number(2), Column::Number(1)],
        _ => vec![Column::Name("c".into()), Column::Name("a.b".into())],
    };
    let adds = [&[][..], &["prefix"], &["asn", "prefix", "org"], &["org", "covering"]];
    options.add = adds[usize::from(flags) % 4].iter().map(|&add| add.to_owned()).collect();
    let mut stream = StreamOptions::new(format);
    stream.only_added = flags & 4 != 0;
    stream.inside = (flags & 8 != 0).then(|| "in".to_owned());
    let types = ["String, UInt16", "IPv4", "Nullable(IPv6), String", "Nullable(String)"];
    if format == StreamFormat::RowBinary {
        stream.types = types[usize::from(flags >> 4) % 4].parse().expect("the types are known");
    }
    let run = |pieces: Option<usize>| {
        let mut output = Vec::new();
        let table = Arc::new(&*WORLD);
        let size = pieces.unwrap_or(input.len());
        let input = Pieces::new(input, size);
        let done = annotate_stream(table, &options, &stream, input, &mut output, &mut NoHost);
        (done.map(|summary| (summary.rows, summary.matched, summary.unparsable)), output)
    };
    let (whole, output) = run(None);
    let (parts, in_parts) = run(Some(step.into()));
    assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
    assert_eq!(output.escape_ascii().to_string(), in_parts.escape_ascii().to_string());
    let (Ok((rows, ..)), StreamFormat::Tsv) = (whole, format) else { return };
    // A last row without a line's end gets none, unless it is replaced by the added values.
    let lines_of = |text: &[u8]| {
        let ended = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        ended + u64::from(!text.is_empty() && !text.ends_with(b"\n"))
    };
    let is_named = options.columns.iter().any(|column| matches!(column, Column::Name(_)));
    let header = u64::from(is_named && !input.is_empty());
    assert_eq!((lines_of(input), lines_of(&output)), (rows + header, rows + header));
});
