//! Tests of streams: one row for each row, whatever the reads are like, and whichever table is there.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::sample::select;

use super::{NoHost, StreamFormat, StreamHost, StreamOptions, annotate_stream};
use crate::rows::tests::{Pieces, table};
use crate::{AnnotateError, AnnotateOptions, Annotator, Column, LogFormat, LookupTable, Summary};

use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};

fn options(column: &str) -> AnnotateOptions {
    AnnotateOptions { columns: vec![column.parse().unwrap()], ..AnnotateOptions::default() }
}

fn stream(format: StreamFormat, only_added: bool) -> StreamOptions {
    let mut stream = StreamOptions { only_added, ..StreamOptions::new(format) };
    if format == StreamFormat::RowBinary {
        stream.types = "String, Nullable(IPv6)".parse().unwrap();
    }
    stream
}

/// The table, built once.
fn shared() -> Arc<dyn LookupTable> {
    static TABLE: LazyLock<Fib> = LazyLock::new(table);
    Arc::new(TABLE.clone())
}

fn annotated(
    options: &AnnotateOptions,
    stream: &StreamOptions,
    input: &[u8],
) -> Result<(Vec<u8>, Summary), AnnotateError> {
    let mut out = Vec::new();
    let done = annotate_stream(shared(), options, stream, input, &mut out, &mut NoHost);
    done.map(|summary| (out, summary))
}

#[test]
fn each_format() {
    let tsv = b"a\t10.1.2.3\nb\t\\N\n\nc\tx\nd\t2001:db8::1\n";
    let values = b"64501\tHe said \"no\"\n\\N\t\\N\n\\N\t\\N\n\\N\t\\N\n64502\tZo\xc3\xab\n";
    let (out, summary) = annotated(&options("2"), &stream(StreamFormat::Tsv, true), tsv).unwrap();
    assert_eq!(out, values);
    let Summary { rows, matched, unparsable, empty, damaged, .. } = summary;
    assert_eq!((rows, matched, unparsable, empty, damaged), (5, 2, 1, 2, 1));
    assert_eq!(
        summary.first_unparsable.as_deref(),
        Some("line 4, column 2: \"x\" is not an address")
    );

    let named = b"n\tsrc\na\t10.0.0.1\r\n";
    let (out, _) = annotated(&options("src"), &stream(StreamFormat::Tsv, false), named).unwrap();
    assert_eq!(out, b"n\tsrc\tsrc_asn\tsrc_org\na\t10.0.0.1\t64500\tExample, Inc.\r\n");

    let json = b"{\"a\":\"10.0.0.1\"}\nno\n{}\n{\"a\":1,\"a_asn\":2}\n";
    let (out, _) = annotated(&options("a"), &stream(StreamFormat::JsonLines, false), json).unwrap();
    let lines = "{\"a\":\"10.0.0.1\",\"a_asn\":64500,\"a_org\":\"Example, Inc.\"}\nno\n\
                 {\"a_asn\":null,\"a_org\":null}\n{\"a\":1,\"a_asn\":2}\n";
    assert_eq!(String::from_utf8(out).unwrap(), lines);
    let mut inside = stream(StreamFormat::JsonLines, true);
    inside.inside = Some("$!".to_owned());
    let (out, _) = annotated(&options("a"), &inside, json).unwrap();
    let nulls = "{\"$!\":{\"a_asn\":null,\"a_org\":null}}\n";
    let first = "{\"$!\":{\"a_asn\":64500,\"a_org\":\"Example, Inc.\"}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), format!("{first}{nulls}{nulls}{nulls}"));

    let line = b"m,src=10.1.0.1 v=1 5\n\n#\nm v=\"\n\" 5\nm,src=x v=1\nno\n";
    let (out, summary) =
        annotated(&options("src"), &stream(StreamFormat::Influx, false), line).unwrap();
    let lines = "m,src=10.1.0.1 v=1,src_asn=64501i,src_org=\"He said \\\"no\\\"\" 5\n\n#\nm v=\"\n\" 5\n\
                 m,src=x v=1\nno\n";
    assert_eq!(String::from_utf8(out).unwrap(), lines);
    assert_eq!((summary.rows, summary.unparsable, summary.damaged), (4, 1, 1));
}

#[test]
fn binary_rows() {
    let v6 = |bytes: &mut Vec<u8>, address: &str| {
        bytes.push(0);
        bytes.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    };
    let mut input = b"\x0810.1.0.1".to_vec();
    v6(&mut input, "2001:db8::1");
    input.extend(b"\x00\x01");
    input.extend(b"\x01x");
    v6(&mut input, "::ffff:10.0.0.1");
    let second = AnnotateOptions { add: vec!["asn".into(), "prefix".into()], ..options("2") };
    let (out, summary) =
        annotated(&second, &stream(StreamFormat::RowBinary, true), &input).unwrap();
    let value = |asn: u64, prefix: &[u8]| {
        [&[0][..], &asn.to_le_bytes(), &[0, prefix.len() as u8], prefix].concat()
    };
    let expected =
        [value(64502, b"2001:db8::/32"), vec![1, 1], value(64500, b"10.0.0.0/8")].concat();
    assert_eq!(out, expected);
    assert_eq!((summary.rows, summary.matched, summary.empty), (3, 2, 1));
    // Text, with the row before the values.
    let first = AnnotateOptions { add: vec!["asn".into()], ..options("1") };
    let (out, summary) =
        annotated(&first, &stream(StreamFormat::RowBinary, false), &input).unwrap();
    assert_eq!(&out[..9], &input[..9]);
    assert_eq!(
        summary.first_unparsable.as_deref(),
        Some("row 3, column 1: \"x\" is not an address")
    );
    for (damage, message) in [
        (&b"\x00\x02"[..], "row at byte 47: the value of column 2 begins with the byte 2"),
        (b"\x05ab", "row at byte 47: the input ends within this row"),
        (b"\xff\xff\xff\xff\xff\x01", "row at byte 47: the text of column 1 has no valid length"),
        (b"\xff\xff\xff\x7f", "row at byte 47: the text of column 1 has 268435455 bytes"),
    ] {
        let damaged = [&input, damage].concat();
        let error =
            annotated(&second, &stream(StreamFormat::RowBinary, true), &damaged).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn rows_that_are_too_long() {
    let tsv = [b"a\n".to_vec(), vec![b'x'; 20 << 20]].concat();
    let error = annotated(&options("1"), &stream(StreamFormat::Tsv, true), &tsv).unwrap_err();
    assert_eq!(error.to_string(), "the record at line 2 is longer than 16777216 bytes");
    let mut three = stream(StreamFormat::RowBinary, true);
    three.types = "String, String, String".parse().unwrap();
    let text = [b"\xff\xff\xff\x03".to_vec(), vec![b'x'; (8 << 20) - 1]].concat();
    let rows = [b"\0\0\0".to_vec(), text.repeat(3)].concat();
    let error = annotated(&options("1"), &three, &rows).unwrap_err();
    assert_eq!(error.to_string(), "row at byte 3: it is longer than 16777216 bytes");
}

/// The other program: waits for the answer to all whole rows before it sends more.
struct Waits<'a> {
    pieces: Pieces<'a>,
    sent: Vec<u8>,
    answered: Rc<RefCell<(Vec<u8>, bool)>>,
}

impl Read for Waits<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (answers, flushed) = &*self.answered.borrow();
        let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines(answers), lines(&self.sent), "rows are not answered before a read");
        assert!(*flushed, "rows are not flushed before a read");
        let n = self.pieces.read(buf)?;
        self.sent.extend(&buf[..n]);
        Ok(n)
    }
}

struct Shared(Rc<RefCell<(Vec<u8>, bool)>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (out, flushed) = &mut *self.0.borrow_mut();
        out.extend(bytes);
        *flushed = false;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().1 = true;
        Ok(())
    }
}

fn lines(format: StreamFormat) -> BoxedStrategy<Vec<u8>> {
    let pieces: &[&[u8]] = match format {
        StreamFormat::Tsv => &[
            b"10.1.2.3",
            b"2001:db8::1",
            b"\t",
            b"\n",
            b"\\N",
            b"\\t",
            b"\r\n",
            b"\"",
            b"\x00\xff",
        ],
        StreamFormat::JsonLines => &[
            b"{\"1\":\"10.0.0.1\"}",
            b"{\"1\":null}",
            b"{}",
            b"{",
            b"[",
            b"\n",
            b"\"1\":",
            b"\xff",
        ],
        _ => &[b"m,1=10.0.0.1 v=1", b"m 1=\"10.1.0.1\"", b" ", b"\n", b"\\", b"=", b",", b"v=1"],
    };
    prop::collection::vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat()).boxed()
}

proptest! {
    /// Every line is answered by a line before the next read, and neither the sizes of reads nor damage change this.
    #[test]
    fn lines_are_answered_at_once(
        (format, data) in select(&[StreamFormat::Tsv, StreamFormat::JsonLines, StreamFormat::Influx])
            .prop_flat_map(|format| (Just(format), lines(format))),
        sizes in prop::collection::vec(1usize..30, 1..5),
        only_added: bool,
    ) {
        let only_added = only_added && format != StreamFormat::Influx;
        let mut options = options("1");
        options.columns = vec![match format {
            StreamFormat::Tsv => Column::Number(1),
            _ => Column::Name("1".into()),
        }];
        let stream = stream(format, only_added);
        let answered = Rc::new(RefCell::new((Vec::new(), true)));
        let pieces = Pieces { data: &data, sizes: &sizes, reads: 0, breaks: false };
        let input = Waits { pieces, sent: Vec::new(), answered: Rc::clone(&answered) };
        let mut out = Shared(Rc::clone(&answered));
        let summary =
            annotate_stream(shared(), &options, &stream, input, &mut out, &mut NoHost).unwrap();
        let (whole, same) = annotated(&options, &stream, &data).unwrap();
        prop_assert_eq!(&answered.borrow().0, &whole);
        prop_assert_eq!(summary, same);
    }

    /// JSON has the values that files get.
    #[test]
    fn objects_are_those_of_files(rows in prop::collection::vec(
        select(&["10.1.2.3", "192.0.2.1", "x", "", "2001:db8::7", "::ffff:10.0.0.1"]), 1..50)
    ) {
        let text: String = rows.iter().map(|row| format!("{{\"a\":\"{row}\"}}\n")).collect();
        let (out, summary) =
            annotated(&options("a"), &stream(StreamFormat::JsonLines, false), text.as_bytes()).unwrap();
        let files = Annotator::new(table(), LogFormat::JsonLines, &options("a")).unwrap();
        let mut expected = Vec::new();
        let counts = files.annotate(text.as_bytes(), &mut expected).unwrap();
        prop_assert_eq!(out, expected);
        prop_assert_eq!((summary.matched, summary.unparsable), (counts.matched, counts.unparsable));
    }

    /// Nothing that a program sends is a panic.
    #[test]
    fn any_bytes(data: Vec<u8>, only_added: bool) {
        for format in [StreamFormat::Tsv, StreamFormat::JsonLines, StreamFormat::RowBinary] {
            let column = if format == StreamFormat::JsonLines { "a" } else { "1" };
            let done = annotated(&options(column), &stream(format, only_added), &data);
            prop_assert!(done.is_ok() || format == StreamFormat::RowBinary);
        }
    }
}

fn with_asn(kind: ColumnKind, asn: u64) -> Fib {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("test", "text", &[("asn".into(), kind)], false, None);
    let text = asn.to_string();
    let values = [if kind == ColumnKind::Int { Value::Int(asn) } else { Value::Str(&text) }];
    let change = Change::Announce(Attributes::Values(&values));
    builder.apply(&Update::new("10.0.0.0/8".parse().unwrap(), change));
    Fib::of_table(builder.finish().unwrap(), &FibOptions::default()).unwrap()
}

/// Replaces the table at every read. Every third one has another column.
#[derive(Default)]
struct Renews {
    reads: u64,
    refused: Vec<String>,
    stops_after: Option<u64>,
    stopped: Rc<Cell<bool>>,
}

impl StreamHost for Renews {
    fn renewed(&mut self) -> Option<Arc<dyn LookupTable>> {
        self.reads += 1;
        self.stopped.set(self.stops_after == Some(self.reads));
        let kind = if self.reads % 3 == 2 { ColumnKind::Str } else { ColumnKind::Int };
        Some(Arc::new(with_asn(kind, self.reads)))
    }

    fn refused(&mut self, error: &AnnotateError) {
        self.refused.push(error.to_string());
    }

    fn is_stopped(&self) -> bool {
        self.stopped.get()
    }
}

#[test]
fn a_new_table_for_each_read() {
    let input = b"src\n10.0.0.1\n10.0.0.2\nx\n10.0.0.3\n10.0.0.4\n";
    // The header and a half row, then one row in each read.
    let sizes = [9, 5, 9, 11, 9, 30];
    let pieces = Pieces { data: input, sizes: &sizes, reads: 5, breaks: false };
    let mut host = Renews::default();
    let (mut out, stream) = (Vec::new(), stream(StreamFormat::Tsv, true));
    let table = Arc::new(with_asn(ColumnKind::Int, 0));
    let done = annotate_stream(table, &options("src"), &stream, pieces, &mut out, &mut host);
    let summary = done.unwrap();
    // The second and the fifth table are refused.
    assert_eq!(String::from_utf8(out).unwrap(), "src_asn\n1\n3\n\\N\n4\n4\n");
    assert_eq!((summary.rows, summary.matched, summary.unparsable), (5, 4, 1));
    let first = "line 4, column src: \"x\" is not an address";
    assert_eq!(summary.first_unparsable.as_deref(), Some(first));
    assert_eq!(
        host.refused[0],
        "the new table has the columns asn str, the stream began with asn int"
    );
}

#[test]
fn a_stream_that_is_stopped() {
    let sizes = [9, 9];
    let pieces =
        Pieces { data: b"10.0.0.1\n10.0.0.2\n10.0.0.3\n", sizes: &sizes, reads: 0, breaks: false };
    let mut host = Renews { stops_after: Some(1), ..Renews::default() };
    let mut out = Vec::new();
    let table = Arc::new(with_asn(ColumnKind::Int, 0));
    let stream = stream(StreamFormat::Tsv, true);
    annotate_stream(table, &options("1"), &stream, pieces, &mut out, &mut host).unwrap();
    // The block that was read before is answered.
    assert_eq!(out, b"1\n");
}

#[test]
fn options_that_no_stream_has() {
    let covering = AnnotateOptions { all_covering: true, ..options("1") };
    let mut untyped = stream(StreamFormat::RowBinary, true);
    untyped.types = "UInt8".parse().unwrap();
    for (options, stream, message) in [
        (AnnotateOptions::default(), stream(StreamFormat::Tsv, true), "a stream needs its columns"),
        (covering, stream(StreamFormat::Tsv, true), "lists of covering prefixes are for"),
        (
            options("a"),
            stream(StreamFormat::Influx, true),
            "the line protocol needs the measurement",
        ),
        (
            options("1"),
            stream(StreamFormat::Influx, false),
            "the line protocol has no column numbers",
        ),
        (options("a"), stream(StreamFormat::RowBinary, true), "RowBinary has no column names"),
        (
            options("3"),
            stream(StreamFormat::RowBinary, true),
            "column 3 was asked for, there are 2 types",
        ),
        (options("1"), untyped, "a column of type UInt8 holds no addresses"),
    ] {
        let error = annotated(&options, &stream, b"").unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
