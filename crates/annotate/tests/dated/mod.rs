//! Rows and columns with times, against one separate table for each date.

mod columns;

use std::net::IpAddr;

use arrow_array::{Int64Array, StringArray};
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Annotator, Column, ColumnAnnotator, LogFormat, Summary,
};
use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{DatedFib, Fib, FibOptions};
use fibula_rib::{
    BuilderOptions, ColumnKind, DatedBuilder, DatedSnapshot, EnginePart, Moment, Table,
    TableBuilder,
};

/// 2024-05-01.
const FIRST: i64 = 1_714_521_600;
const DAY: i64 = 86_400;

/// Prefixes of four days, with the AS that each has, 0 where it is missing.
const TABLES: [(&str, [u64; 4]); 7] = [
    ("10.0.0.0/8", [64500, 64500, 64501, 64501]),
    ("10.1.0.0/16", [64502, 0, 64502, 0]),
    ("10.1.2.0/24", [0, 64503, 64503, 0]),
    ("10.1.2.3/32", [0, 0, 0, 64504]),
    ("0.0.0.0/0", [0, 0, 0, 64505]),
    ("2001:db8::/32", [64506, 64507, 0, 64507]),
    ("2001:db8:1::/48", [64508, 0, 64508, 0]),
];

const ADDRESSES: [&str; 9] = [
    "10.1.2.3",
    "10.1.2.4",
    "10.1.3.1",
    "10.2.0.0",
    "192.0.2.1",
    "2001:db8:1::1",
    "2001:db8:2::1",
    "2001:db9::",
    "::ffff:10.1.2.3",
];

fn table(day: usize) -> Table {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.begin_source("test", "text", &[("asn".into(), ColumnKind::Int)], false, None);
    for (prefix, asns) in TABLES.iter().filter(|(_, asns)| asns[day] > 0) {
        let values = [Value::Int(asns[day])];
        let change = Change::Announce(Attributes::Values(&values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    builder.finish().unwrap()
}

fn dated() -> DatedFib {
    let mut builder = DatedBuilder::default();
    for day in 0..4 {
        builder.add(Moment::from_unix(FIRST + day * DAY), "test", &table(day as usize)).unwrap();
    }
    let bytes = builder.finish().unwrap().to_bytes(&EnginePart::none(), &EnginePart::none());
    let snapshot = DatedSnapshot::from_bytes(bytes.unwrap()).unwrap();
    DatedFib::of_snapshot(snapshot, &FibOptions::default()).unwrap()
}

/// The tables one by one, and what is expected of them.
struct Oracle(Vec<Fib>);

impl Oracle {
    fn new() -> Self {
        Self((0..4).map(|day| Fib::of_table(table(day), &FibOptions::default()).unwrap()).collect())
    }

    fn fib(&self, time: Option<i64>) -> Option<&Fib> {
        let day = (time? - FIRST).div_euclid(DAY).min(3);
        self.0.get(usize::try_from(day).ok()?)
    }

    /// Prefix, AS and list of prefixes, as fields.
    fn fields(&self, address: &str, time: Option<i64>) -> [String; 3] {
        let Some(fib) = self.fib(time) else { return Default::default() };
        let ip: IpAddr = address.parse().unwrap();
        let found = fib.lookup(ip);
        let prefix = found.as_ref().map_or(String::new(), |m| m.prefix().unwrap().to_string());
        let asn = found.and_then(|m| {
            m.value("asn").map(|asn| match asn {
                Value::Int(asn) => asn.to_string(),
                other => panic!("{other:?}"),
            })
        });
        let covering: Vec<_> =
            fib.covering(ip).unwrap().map(|m| m.prefix().unwrap().to_string()).collect();
        [prefix, asn.unwrap_or_default(), covering.join(";")]
    }
}

/// Rows of two addresses and a time, sorted or not; some are before the first table or have no time.
fn rows(sorted: bool) -> Vec<(&'static str, &'static str, Option<i64>)> {
    let mut state = 7u64;
    let mut next = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let boundaries = [-DAY, -1, 0, 1, DAY - 1, DAY, 2 * DAY, 3 * DAY - 1, 3 * DAY, 400 * DAY];
    let mut rows: Vec<_> = (0..6000)
        .map(|_| {
            let time = match next(20) {
                0 => None,
                1..10 => Some(FIRST + boundaries[next(10) as usize]),
                _ => Some(FIRST - DAY + next(6 * DAY as u64) as i64),
            };
            (ADDRESSES[next(9) as usize], ADDRESSES[next(9) as usize], time)
        })
        .collect();
    if sorted {
        rows.sort_by_key(|row| row.2);
    }
    rows
}

/// A time in one of the ways that are read.
fn written(time: Option<i64>, way: usize) -> String {
    let Some(time) = time else { return ["", "  ", "never", "-"][way % 4].to_owned() };
    match way % 5 {
        0 => Moment::from_unix(time).to_string(),
        1 => time.to_string(),
        2 => format!("{time}123"),
        3 => format!("{time}.75"),
        _ => format!("{time}999999"),
    }
}

fn options(add: &[&str]) -> AnnotateOptions {
    let mut options = AnnotateOptions::default();
    options.columns = ["src", "dst"].map(|name| Column::Name(name.into())).to_vec();
    options.time = Some(Column::Name("ts".into()));
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    options
}

fn run(format: LogFormat, options: &AnnotateOptions, input: &str) -> (String, Summary) {
    let mut output = Vec::new();
    let annotator = Annotator::new(dated(), format, options).unwrap();
    let summary = annotator.annotate(input.as_bytes(), &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

/// What is added: which of the oracle's fields.
const ADDED: [(&[&str], &[usize]); 3] =
    [(&["asn"], &[1]), (&["prefix", "asn"], &[0, 1]), (&["covering", "prefix", "asn"], &[2, 0, 1])];

#[test]
fn csv_rows_are_looked_up_at_their_time() {
    let oracle = Oracle::new();
    for sorted in [true, false] {
        let rows = rows(sorted);
        let mut input = "src,ts,dst\n".to_owned();
        for (way, (src, dst, time)) in rows.iter().enumerate() {
            input += &format!("{src},\"{}\",{dst}\n", written(*time, way));
        }
        for (add, fields) in ADDED {
            let (output, summary) = run(LogFormat::Csv, &options(add), &input);
            let lines: Vec<_> = output.lines().skip(1).collect();
            assert_eq!(lines.len(), rows.len());
            for ((line, (src, dst, time)), before) in
                lines.iter().zip(&rows).zip(input.lines().skip(1))
            {
                let cells = [src, dst].map(|address| oracle.fields(address, *time));
                let added =
                    cells.iter().flat_map(|cells| fields.iter().map(|at| cells[*at].clone()));
                let expected = format!("{before},{}", added.collect::<Vec<_>>().join(","));
                assert_eq!(*line, expected, "{add:?}");
            }
            check_summary(&summary, &rows, &oracle);
            assert!(summary.first_untimed.unwrap().contains("is not a time"));
        }
    }
}

/// Output and summary are the same, also the line of the first time that cannot be read, which one of several threads
/// meets.
#[test]
fn threads_do_not_matter() {
    let rows = rows(false);
    let (mut csv, mut json) = ("src,ts,dst\n".to_owned(), String::new());
    let times = |at: usize, time: Option<i64>| match at {
        100_000 => "never".to_owned(),
        _ => time.map_or(String::new(), |time| Moment::from_unix(time).to_string()),
    };
    for (at, (src, dst, time)) in rows.iter().cycle().take(120_000).enumerate() {
        let time = times(at, *time);
        csv += &format!("{src},{time},{dst}\n");
        json += &format!("{{\"src\":\"{src}\",\"dst\":\"{dst}\",\"ts\":\"{time}\"}}\n");
    }
    for (format, input) in [(LogFormat::Csv, csv), (LogFormat::JsonLines, json)] {
        assert!(input.len() > 3 << 20, "more than one thread reads alone");
        let mut expected = None;
        for threads in [1, 3] {
            let mut options = options(&["prefix", "asn"]);
            options.threads = threads;
            let annotator = Annotator::new(dated(), format, &options).unwrap();
            let mut output = Vec::new();
            let summary =
                annotator.annotate_on_threads(input.as_bytes(), &mut output, &mut |_| {}).unwrap();
            let line = if format == LogFormat::Csv { 100_002 } else { 100_001 };
            let first = summary.first_untimed.clone().unwrap();
            assert!(first.contains(&format!("line {line},")), "{first}");
            assert!(summary.before > 0 && summary.untimed > 1);
            let found = (output, format!("{summary:?}"));
            assert!(*expected.get_or_insert_with(|| found.clone()) == found, "{format} {threads}");
        }
    }
}

fn check_summary(summary: &Summary, rows: &[(&str, &str, Option<i64>)], oracle: &Oracle) {
    let untimed = rows.iter().filter(|row| row.2.is_none()).count();
    let before = rows.iter().filter(|row| row.2.is_some_and(|time| time < FIRST)).count();
    assert!(untimed > 0 && before > 0);
    assert_eq!((summary.untimed, summary.before), (untimed as u64, before as u64));
    let asked = rows.len() - untimed - before;
    assert_eq!((summary.rows, summary.addresses), (rows.len() as u64, 2 * asked as u64));
    let found = |address: &str, time| !oracle.fields(address, time)[0].is_empty();
    let matched =
        rows.iter().map(|row| u64::from(found(row.0, row.2)) + u64::from(found(row.1, row.2)));
    let matched: u64 = matched.sum();
    assert_eq!((summary.matched, summary.unmatched), (matched, summary.addresses - matched));
}

#[test]
fn json_lines_are_looked_up_at_their_time() {
    let (oracle, rows) = (Oracle::new(), rows(false));
    let mut input = String::new();
    for (way, (src, dst, time)) in rows.iter().enumerate() {
        // As text, as a number, with a fraction, and missing.
        let ts = match (time, way % 3) {
            (None, 0) => String::new(),
            (None, _) => ",\"ts\":null".to_owned(),
            (Some(time), 0) => format!(",\"ts\":{time}"),
            (Some(time), 1) => format!(",\"ts\":{time}.5"),
            (time, _) => format!(",\"ts\":\"{}\"", written(*time, way)),
        };
        input += &format!("{{\"src\":\"{src}\",\"dst\":\"{dst}\"{ts}}}\n");
    }
    let (output, summary) = run(LogFormat::JsonLines, &options(&["prefix", "asn"]), &input);
    for (line, (src, dst, time)) in output.lines().zip(&rows) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        for (name, address) in [("src", src), ("dst", dst)] {
            let [prefix, asn, _] = oracle.fields(address, *time);
            let text = |name: String| match &object[&name] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(
                (text(format!("{name}_prefix")), text(format!("{name}_asn"))),
                (prefix, asn)
            );
        }
    }
    check_summary(&summary, &rows, &oracle);
}

/// Rows without a table get nothing, not the default of addresses without a route; and no row is left out for them
/// alone.
#[test]
fn defaults_are_for_addresses_that_were_looked_up() {
    let input = "src,ts\n8.8.8.8,2024-04-30\n8.8.8.8,2024-05-01\n8.8.8.8,x\n10.0.0.1,2024-05-01\n";
    let mut options = options(&["asn"]);
    options.columns.truncate(1);
    options.defaults = vec![("asn".into(), "0".into())];
    let (output, _) = run(LogFormat::Csv, &options, input);
    let added: Vec<_> = output.lines().map(|line| line.rsplit_once(',').unwrap().1).collect();
    assert_eq!(added, ["src_asn", "", "0", "", "64500"]);
    options.only = Some(fibula_annotate::Only::Unmatched);
    let (output, summary) = run(LogFormat::Csv, &options, input);
    assert_eq!((output.lines().count(), summary.left_out), (4, 1));
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |format, change: &dyn Fn(&mut AnnotateOptions), input: &str| {
        let mut options = options(&["asn"]);
        options.columns.truncate(1);
        change(&mut options);
        let annotator = Annotator::new(dated(), format, &options);
        let run = annotator.and_then(|a| a.annotate(input.as_bytes(), &mut Vec::new()));
        run.unwrap_err().to_string()
    };
    let csv = "src,ts\n10.0.0.1,2024-05-01\n10.0.0.1,yesterday\n";
    let strict = |options: &mut AnnotateOptions| options.strict = true;
    let unreadable = refused(LogFormat::Csv, &strict, csv);
    assert_eq!(unreadable, "line 3, column ts: \"yesterday\" is not a time");
    let text = "src,ts\n10.0.0.1,2024-05-01\nx,2024-05-01\n";
    assert!(refused(LogFormat::Csv, &strict, text).contains("\"x\" is not an address"));
    let other = |options: &mut AnnotateOptions| options.time = Some(Column::Name("when".into()));
    assert!(refused(LogFormat::Csv, &other, csv).contains("no column \"when\""));
    let same = |options: &mut AnnotateOptions| options.time = Some(Column::Name("src".into()));
    assert!(refused(LogFormat::Csv, &same, csv).contains("asked for twice"));
    let none = |options: &mut AnnotateOptions| options.time = None;
    assert!(refused(LogFormat::Csv, &none, csv).contains("several dates"));
    assert!(refused(LogFormat::Pcap, &|_| {}, csv).contains("no column of times"));
    let json = "{\"src\":\"10.0.0.1\"}\n";
    assert!(refused(LogFormat::JsonLines, &|_| {}, json).contains("no row has a column ts"));

    let fib = Fib::of_table(table(0), &FibOptions::default()).unwrap();
    let error = Annotator::new(fib, LogFormat::Csv, &options(&["asn"])).map(|_| ()).unwrap_err();
    assert!(matches!(error, AnnotateError::NotDated), "{error}");

    let annotator = ColumnAnnotator::new(dated(), &options(&["asn"])).unwrap();
    let src = StringArray::from(vec!["10.0.0.1", "10.0.0.2"]);
    assert!(matches!(annotator.annotate("src", &src).unwrap_err(), AnnotateError::NoTime));
    let bools = arrow_array::BooleanArray::from(vec![true, false]);
    let error = annotator.annotate_at("src", &src, &bools).unwrap_err();
    assert_eq!(error.to_string(), "a column of type Boolean holds no times");
    let short = Int64Array::from(vec![FIRST]);
    assert!(annotator.annotate_at("src", &src, &short).is_err());
    let mut strict = options(&["asn"]);
    strict.strict = true;
    let annotator = ColumnAnnotator::new(dated(), &strict).unwrap();
    let times = StringArray::from(vec![Some("2024-05-01"), Some("x")]);
    let error = annotator.annotate_at("src", &src, &times).unwrap_err();
    assert_eq!(error.to_string(), "row 2, column ts: \"x\" is not a time");
}
