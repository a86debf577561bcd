//! `annotate --stream`: answers at once, a table that is replaced meanwhile, and how it ends.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;

use crate::common::{Files, done, execute, execute_with, fibula};

/// A stream that runs, as the other program sees it.
struct Stream {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Stream {
    fn new(args: &[&str]) -> Self {
        let mut command = Command::new(fibula(&[]).get_program());
        command.env("FIBULA_CONFIG", "").env_remove("FIBULA_TABLE").arg("annotate").args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn send(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Waits for the end. Returns the exit code and the messages.
    fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let mut messages = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        (self.child.wait().unwrap().code().expect("no signal ends it"), messages)
    }
}

fn number(address: usize) -> String {
    format!("10.{}.{}.{}", address >> 16 & 255, address >> 8 & 255, address & 255)
}

#[test]
fn a_row_is_answered_before_the_next() {
    let files = Files::new();
    let fib = files.snapshot();
    for (stream, args, sent, answers) in [
        ("tsv", &["--column", "1", "--only-added"][..], "10.1.2.3\n", "64503\tNL\n"),
        (
            "jsonl",
            &["--column", "a"],
            "{\"a\":\"10.1.2.3\"}\n",
            "{\"a\":\"10.1.2.3\",\"a_asn\":64503,\"a_country\":\"NL\"}\n",
        ),
        (
            "influx",
            &["--column", "a"],
            "m,a=10.1.2.3 v=1 2\n",
            "m,a=10.1.2.3 v=1,a_asn=64503i,a_country=\"NL\" 2\n",
        ),
    ] {
        let args = [&["--table", &fib, "--stream", stream], args].concat();
        let mut stream = Stream::new(&args);
        for _ in 0..3 {
            stream.send(sent);
            assert_eq!(stream.line(), answers);
        }
        // A row that arrives in two pieces.
        let (first, second) = sent.split_at(4);
        stream.send(first);
        stream.send(second);
        assert_eq!(stream.line(), answers);
        assert_eq!(stream.end(), (0, "4 rows, 4 addresses, 4 matched\n".to_owned()));
    }
}

#[test]
fn a_batch_is_answered_before_the_next() {
    let files = Files::new();
    let fib = files.snapshot();
    let Stream { mut child, input, output } =
        Stream::new(&["--table", &fib, "--stream", "arrow", "--column", "a", "-q"]);
    let batch = |address: &str| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![address]));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    };
    // Flushing sends the schema, which is answered before there is a batch.
    let mut writer = StreamWriter::try_new(input.unwrap(), &batch("").schema()).unwrap();
    writer.flush().unwrap();
    let mut reader = StreamReader::try_new(output, None).unwrap();
    let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["a", "a_asn", "a_country"]);
    for (address, country) in [("10.1.2.3", Some("NL")), ("x", None), ("2001:db8::1", Some("CH"))] {
        writer.write(&batch(address)).unwrap();
        writer.flush().unwrap();
        let answer = reader.next().unwrap().unwrap();
        assert_eq!(answer.column(0).as_string::<i32>().value(0), address);
        assert_eq!(answer.column(2).as_string::<i32>().iter().collect::<Vec<_>>(), [country]);
    }
    writer.finish().unwrap();
    drop(writer);
    assert!(reader.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The same values as files get, in each format.
#[test]
fn values_are_those_of_files() {
    let files = Files::new();
    let fib = files.snapshot();
    let odd =
        ["", "x", "2001:db8:1::1", "2001:db8::9", "::ffff:10.1.2.3", "fe80::1", "255.255.255.255"];
    let cells: Vec<String> = (0..30_000)
        .map(|n| {
            odd.get(n % 11).map_or_else(|| number(n * 7919 % (1 << 24)), |odd| (*odd).to_owned())
        })
        .collect();
    let csv: String = cells.iter().map(|cell| format!("{cell},\n")).collect();
    let input = files.with("in.csv", format!("a,b\n{csv}"));
    let plain = done(&["annotate", "--table", &fib, "--column", "a", &input]).out;
    let expected: Vec<(&str, &str)> = plain
        .lines()
        .skip(1)
        .map(|line| line.split_once(",,").unwrap().1.split_once(',').unwrap())
        .collect();
    assert_eq!(expected.len(), cells.len());
    let stream = |format: &str, args: &[&str], data: Vec<u8>| {
        let args = [&["annotate", "--table", &fib, "--stream", format, "--only-added", "-q"], args]
            .concat();
        let output = fibula(&args).write_stdin(data).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        output.stdout
    };

    let tsv = cells.iter().map(|cell| format!("{cell}\n")).collect::<String>().into_bytes();
    let field = |text: &str| if text.is_empty() { "\\N".to_owned() } else { text.to_owned() };
    let lines: String = expected
        .iter()
        .map(|(asn, country)| format!("{}\t{}\n", field(asn), field(country)))
        .collect();
    assert!(stream("tsv", &["--column", "1"], tsv) == lines.into_bytes());

    let text: Vec<u8> =
        cells.iter().flat_map(|cell| [&[cell.len() as u8], cell.as_bytes()].concat()).collect();
    let rows: Vec<u8> = expected
        .iter()
        .flat_map(|(asn, country)| match asn.parse::<u64>() {
            Err(_) => vec![1, 1],
            Ok(asn) => {
                [&[0][..], &asn.to_le_bytes(), &[0, country.len() as u8], country.as_bytes()]
                    .concat()
            }
        })
        .collect();
    assert!(stream("rowbinary", &["--column", "1", "--types", "String"], text) == rows);

    let json = cells.iter().map(|cell| format!("{{\"a\":\"{cell}\"}}\n")).collect::<String>();
    let objects: String = expected
        .iter()
        .map(|(asn, country)| match asn.is_empty() {
            true => "{\"a_asn\":null,\"a_country\":null}\n".to_owned(),
            false => format!("{{\"a_asn\":{asn},\"a_country\":\"{country}\"}}\n"),
        })
        .collect();
    assert!(stream("jsonl", &["--column", "a"], json.into_bytes()) == objects.into_bytes());

    let mut arrow = Vec::new();
    let batch = |cells: &[String]| {
        let column: ArrayRef = Arc::new(StringArray::from_iter_values(cells));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    };
    // Two streams, as two queries of a pool send them.
    for half in cells.chunks(20_000) {
        let mut writer = StreamWriter::try_new(&mut arrow, &batch(half).schema()).unwrap();
        half.chunks(7000).for_each(|part| writer.write(&batch(part)).unwrap());
        writer.finish().unwrap();
    }
    let mut answers = Cursor::new(stream("arrow", &["--column", "a"], arrow));
    let mut row = 0;
    for half in cells.chunks(20_000) {
        let mut left = half.len();
        let mut reader = StreamReader::try_new(&mut answers, None).unwrap();
        while left > 0 {
            let batch = reader.next().unwrap().unwrap();
            let (asns, countries) =
                (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_string::<i32>());
            for at in 0..batch.num_rows() {
                let (asn, country) = expected[row];
                assert_eq!(asns.is_valid(at).then(|| asns.value(at)), asn.parse().ok());
                let found = countries.is_valid(at).then(|| countries.value(at));
                assert_eq!(found, (!country.is_empty()).then_some(country));
                row += 1;
            }
            left -= batch.num_rows();
        }
    }
    assert_eq!(row, cells.len());
}

/// Writes a snapshot in which every address has this value, over the file.
fn replace(files: &Files, fib: &str, n: u32) {
    let csv = files.with("new.csv", format!("prefix,n\n0.0.0.0/0,{n}\n"));
    done(&["build", &csv, "-o", fib]);
}

/// No row is lost or has a value of no table, and values never go back to an older table.
#[test]
fn a_table_that_is_replaced_under_load() {
    const ROWS: usize = 300_000;
    let files = Files::new();
    let fib = files.path("n.fib");
    replace(&files, &fib, 0);
    let mut stream = Stream::new(&["--table", &fib, "--stream", "tsv", "--column", "2"]);
    let mut input = stream.input.take().unwrap();
    let writer = thread::spawn(move || {
        for at in 0..ROWS {
            writeln!(input, "{at}\t{}", number(at)).unwrap();
        }
        input
    });
    let (mut seen, mut last) = (BTreeSet::new(), 0);
    for at in 0..ROWS {
        if at % (ROWS / 10) == 0 {
            replace(&files, &fib, (at / (ROWS / 10)) as u32 + 1);
        }
        let line = stream.line();
        let mut fields = line.trim_end().split('\t');
        assert_eq!(fields.next(), Some(&*at.to_string()));
        assert_eq!(fields.next(), Some(&*number(at)));
        let n: u32 = fields.next().unwrap().parse().unwrap();
        assert!(last <= n && n <= 10, "{n} after {last}");
        seen.insert(n);
        last = n;
    }
    stream.input = Some(writer.join().unwrap());
    stream.send("last\t10.0.0.1\n");
    assert_eq!(stream.line(), "last\t10.0.0.1\t10\n");
    assert!(seen.len() > 1, "all rows have the values of {seen:?}");
    let (code, messages) = stream.end();
    assert_eq!(code, 0);
    assert!(
        messages.starts_with("300,001 rows, 300,001 addresses, 300,001 matched, "),
        "{messages}"
    );
}

#[test]
fn a_new_table_that_cannot_be_used() {
    let files = Files::new();
    let fib = files.path("n.fib");
    replace(&files, &fib, 7);
    let mut stream = Stream::new(&["--table", &fib, "--stream", "tsv", "--column", "1"]);
    let ask = |stream: &mut Stream, answer: &str| {
        stream.send("10.0.0.1\n");
        assert_eq!(stream.line(), format!("10.0.0.1\t{answer}\n"));
    };
    ask(&mut stream, "7");
    for broken in ["no", "still no", ""] {
        files.with("broken", broken);
        fs::rename(files.path("broken"), &fib).unwrap();
        ask(&mut stream, "7");
    }
    fs::remove_file(&fib).unwrap();
    ask(&mut stream, "7");
    replace(&files, &fib, 8);
    ask(&mut stream, "8");
    // Other columns.
    let csv = files.with("other.csv", "prefix,n\n0.0.0.0/0,text\n");
    done(&["build", &csv, "-o", &fib]);
    ask(&mut stream, "8");
    let (code, messages) = stream.end();
    let lines: Vec<&str> = messages.lines().collect();
    assert_eq!((code, lines.len()), (0, 3), "{messages}");
    assert!(lines[0].starts_with("the new table is not used, the old one stays: "), "{messages}");
    assert_eq!(
        lines[1],
        "the new table is not used, the old one stays: the new table has the columns n str, the stream began with n int"
    );
    assert_eq!(lines[2], "7 rows, 7 addresses, 7 matched, 1 new table");
}

/// Hosts take lines of standard error for answers, or for errors of the current row.
#[test]
fn a_quiet_stream_says_nothing() {
    let files = Files::new();
    let table = files.with("t.csv", "prefix,n\n10.0.0.0/8,1\n10.0.0.0/8,2\nno,3\n");
    let args = ["annotate", "--table", &table, "--stream", "tsv", "--column", "1"];
    let loud = execute_with(&args, "x\n");
    assert!(loud.err.lines().count() > 4, "{}", loud.err);
    let quiet = execute_with(&[&args[..], &["-q"]].concat(), "x\n");
    assert_eq!((quiet.code, &*quiet.out, &*quiet.err), (0, "x\t\\N\n", ""));
}

#[test]
fn a_signal_ends_it_in_order() {
    let files = Files::new();
    let fib = files.snapshot();
    for signal in ["-TERM", "-INT"] {
        let mut stream =
            Stream::new(&["--table", &fib, "--stream", "tsv", "--column", "1", "--only-added"]);
        stream.send("10.1.2.3\n10.1");
        assert_eq!(stream.line(), "64503\tNL\n");
        let sent = Command::new("kill").args([signal, &stream.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let mut rest = String::new();
        stream.output.read_to_string(&mut rest).unwrap();
        // Half a row is not answered.
        assert_eq!(rest, "");
        assert_eq!(stream.end(), (0, "1 rows, 1 addresses, 1 matched\n".to_owned()));
    }
}

#[test]
fn ends_with_an_error() {
    let files = Files::new();
    let fib = files.snapshot();
    let stream = ["annotate", "--table", &fib, "--stream", "rowbinary", "--column", "1"];
    let typed = [&stream[..], &["--types", "Nullable(String)", "--only-added"]].concat();
    let failed = execute_with(&typed, b"\x01\x07".to_vec());
    assert_eq!(failed.code, 2);
    assert_eq!(failed.out, "\x01\x01", "the row before the damage is answered");
    let message =
        "fibula: standard input: row at byte 1: the value of column 1 begins with the byte 7";
    assert!(failed.err.starts_with(message), "{}", failed.err);
    for (args, message) in [
        (&["--stream", "tsv"][..], "--column"),
        (
            &["--stream", "csv", "--column", "1"],
            "a stream is one of tsv, jsonl, rowbinary, influx, arrow",
        ),
        (&["--stream", "tsv", "--column", "1", "in.tsv"], "cannot be used with"),
        (&["--stream", "rowbinary", "--column", "1"], "RowBinary needs the types of all columns"),
        (
            &["--stream", "rowbinary", "--column", "1", "--types", "Map"],
            "\"Map\" is no type of RowBinary",
        ),
        (
            &["--stream", "tsv", "--column", "1", "--add", "no"],
            "the table has no value column \"no\"",
        ),
        (&["--only-added"], "--stream"),
    ] {
        let failed = execute(&[&["annotate", "--table", &fib], args].concat());
        assert!(failed.code == 2 && failed.err.contains(message), "{}", failed.err);
    }
    // A reader that ends is no error.
    let Stream { mut child, input, output } =
        Stream::new(&["--table", &fib, "--stream", "tsv", "--column", "1"]);
    drop(output);
    input.unwrap().write_all(b"10.0.0.1\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
