//! Which rows come out, lists of all covering prefixes, addresses as numbers and inside of lines.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::{TABLE, World};
use arrow_array::{Array, StringArray};
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Column, ColumnAnnotator, Header, LogFormat, Only,
};
use fibula_core::AnyPrefix;

fn options(columns: &[&str], add: &[&str]) -> AnnotateOptions {
    let mut options = AnnotateOptions::default();
    options.columns = columns.iter().map(|column| column.parse().unwrap()).collect();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    options
}

fn run(format: LogFormat, options: &AnnotateOptions, input: &str) -> String {
    let (output, summary) = World::new().run((format, options.clone()), input.as_bytes());
    assert!(summary.is_ok(), "{summary:?}");
    output
}

/// Rows that match and those that do not are together all rows, and each is as without the choice.
#[test]
fn matched_and_unmatched_rows() {
    let mut input = "src,dst\n".to_owned();
    for i in 0..20_000u32 {
        // One in three of the sources, one in five of the destinations.
        let src = if i % 3 == 0 { "10.1.0.1" } else { "8.8.8.8" };
        let dst = match i % 5 {
            0 => "2001:db8::1",
            1 => "nothing",
            2 => "",
            _ => "2001:db9::1",
        };
        input += &format!("{src},{dst}\n");
        if i % 100 == 0 {
            input += "\n";
        }
    }
    let mut options = options(&["src", "dst"], &["asn"]);
    let all = run(LogFormat::Csv, &options, &input);
    let (header, rows) = all.split_once('\n').unwrap();
    let is_matched = |row: &&str| row.ends_with(",64501,") || row.contains("64502");
    let rows: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), 20_000);
    for only in [Only::Matched, Only::Unmatched] {
        options.only = Some(only);
        let expected = rows.iter().copied();
        let expected = expected.filter(|row| is_matched(row) == (only == Only::Matched));
        let expected: Vec<&str> = [header].into_iter().chain(expected).collect();
        let (output, summary) =
            World::new().run((LogFormat::Csv, options.clone()), input.as_bytes());
        assert!(output.lines().eq(expected.iter().copied()), "{only:?}");
        let summary = summary.unwrap();
        assert_eq!(summary.rows, 20_000);
        assert_eq!(summary.left_out as usize, 20_000 - (expected.len() - 1));
        assert_eq!(summary.bytes_written as usize, output.len());
    }
}

#[test]
fn chosen_rows_of_other_formats() {
    fn only(only: Only, columns: &[&str]) -> AnnotateOptions {
        let mut options = options(columns, &["asn"]);
        options.only = Some(only);
        options
    }
    let list = "# comment\n10.0.0.1 a\n\n8.8.8.8 b\r\n10.1.0.1 last";
    assert_eq!(
        run(LogFormat::List, &only(Only::Matched, &[]), list),
        "10.0.0.1 a\t64500\n10.1.0.1 last\t64501"
    );
    assert_eq!(run(LogFormat::List, &only(Only::Unmatched, &[]), list), "8.8.8.8 b\t\r\n");
    // The objects of an array come out by themselves, and what is no object does not.
    let array = "[{\"a\":\"10.0.0.1\"},\n {\"a\": \"8.8.8.8\"},{\"a\":\"10.1.0.1\"}]\n";
    assert_eq!(
        run(LogFormat::JsonLines, &only(Only::Matched, &["a"]), array),
        "{\"a\":\"10.0.0.1\",\"a_asn\":64500}\n{\"a\":\"10.1.0.1\",\"a_asn\":64501}\n"
    );
    let lines = "{\"a\":\"8.8.8.8\"}\nno object\n{\"a\":\"10.0.0.1\"}\n{\"a\":null}";
    assert_eq!(
        run(LogFormat::JsonLines, &only(Only::Unmatched, &["a"]), lines),
        "{\"a\":\"8.8.8.8\",\"a_asn\":null}\n{\"a\":null,\"a_asn\":null}\n"
    );
    assert_eq!(
        run(LogFormat::JsonLines, &only(Only::Matched, &["a"]), lines),
        "{\"a\":\"10.0.0.1\",\"a_asn\":64500}\n"
    );
}

/// The prefixes of [`TABLE`] that cover the address, longest first, by comparing each.
fn covering(address: IpAddr) -> Vec<(AnyPrefix, Option<u64>, &'static str)> {
    let mut found: Vec<_> = TABLE
        .iter()
        .map(|&(prefix, asn, org)| (prefix.parse::<AnyPrefix>().unwrap(), asn, org))
        .filter(|(prefix, ..)| match (prefix, address) {
            (AnyPrefix::V4(prefix), IpAddr::V4(ip)) => prefix.contains(ip.into()),
            (AnyPrefix::V6(prefix), IpAddr::V6(ip)) => prefix.contains(ip.into()),
            _ => false,
        })
        .collect();
    found.sort_by_key(|(prefix, ..)| {
        std::cmp::Reverse(match prefix {
            AnyPrefix::V4(prefix) => prefix.len(),
            AnyPrefix::V6(prefix) => prefix.len(),
        })
    });
    found
}

#[test]
fn lists_of_all_covering_prefixes() {
    let addresses = [
        "10.1.2.0",
        "10.1.2.3",
        "10.1.0.0",
        "10.1.9.9",
        "10.0.0.0",
        "10.255.0.1",
        "8.8.8.8",
        "2001:db8:1::",
        "2001:db8::",
        "2001:db8:2::1",
        "2001:db9::",
        "192.0.2.255",
    ];
    let mut options = options(&["a"], &["covering", "asn", "prefix"]);
    options.all_covering = true;
    let input: String = addresses.iter().map(|a| format!("{{\"a\":\"{a}\"}}\n")).collect();
    let output = run(LogFormat::JsonLines, &options, &input);
    for (line, address) in output.lines().zip(addresses) {
        let found = covering(address.parse().unwrap());
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let prefixes: Vec<_> = found.iter().map(|(prefix, ..)| prefix.to_string()).collect();
        let asns: Vec<_> = found.iter().map(|(_, asn, _)| *asn).collect();
        assert_eq!(line["a_covering"], serde_json::json!(prefixes), "{address}");
        assert_eq!(line["a_asn"], serde_json::json!(asns), "{address}");
        assert_eq!(line["a_prefix"], serde_json::json!(prefixes.first()), "{address}");
    }
    // In fields, quoted as a whole; without `all_covering` only the prefixes are a list.
    options.add = vec!["org".into(), "covering".into(), "asn".into()];
    options.defaults = vec![("asn".into(), "0".into())];
    options.header = Header::Absent;
    options.columns = vec![Column::Number(1)];
    let fields = "10.1.9.9\n8.8.8.8\nnone\n";
    assert_eq!(
        run(LogFormat::Csv, &options, fields),
        "10.1.9.9,\"He said \"\"no\"\";Example, Inc.\",10.1.0.0/16;10.0.0.0/8,64501;64500\n\
         8.8.8.8,,,0\nnone,,,\n"
    );
    options.all_covering = false;
    assert_eq!(
        run(LogFormat::Csv, &options, fields),
        "10.1.9.9,\"He said \"\"no\"\"\",10.1.0.0/16;10.0.0.0/8,64501\n8.8.8.8,,,0\nnone,,,\n"
    );
    options.columns = vec![Column::Name("a".into())];
    assert_eq!(
        run(LogFormat::JsonLines, &options, "{\"a\":\"8.8.8.8\"}\n{\"a\":1}\n"),
        "{\"a\":\"8.8.8.8\",\"a_org\":null,\"a_covering\":[],\"a_asn\":0}\n\
         {\"a\":1,\"a_org\":null,\"a_covering\":null,\"a_asn\":null}\n"
    );
}

/// What is added to rows with these cells.
fn added(format: LogFormat, options: &AnnotateOptions, cells: &[String]) -> Vec<String> {
    let is_csv = format == LogFormat::Csv;
    let row = |cell: &String| match is_csv {
        true => cell.clone(),
        false => format!("{{\"a\":\"{cell}\""),
    };
    let rows: Vec<String> = cells.iter().map(row).collect();
    let input: String = match is_csv {
        true => ["a".to_owned()].iter().chain(&rows).map(|row| format!("{row}\n")).collect(),
        false => rows.iter().map(|row| format!("{row}}}\n")).collect(),
    };
    let output = run(format, options, &input);
    let lines = output.lines().skip(usize::from(is_csv)).zip(&rows);
    lines.map(|(line, row)| line.strip_prefix(row.as_str()).unwrap().to_owned()).collect()
}

#[test]
fn addresses_as_numbers() {
    let texts = ["10.1.2.3", "0.0.0.0", "255.255.255.255", "192.0.2.1", "2001:db8:1::5", "::1:0:0"];
    let number = |text: &str| match text.parse().unwrap() {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    };
    let mut options = options(&["a"], &["prefix", "asn"]);
    for format in [LogFormat::Csv, LogFormat::JsonLines] {
        options.integers = false;
        let expected = added(format, &options, &texts.map(str::to_owned));
        assert!(expected[0].contains("10.1.2.0/24") && expected[4].contains("2001:db8:1::/48"));
        options.integers = true;
        let numbers = texts.map(|text| number(text).to_string());
        assert_eq!(added(format, &options, &numbers), expected, "{format}");
        assert_eq!(added(format, &options, &texts.map(str::to_owned)), expected, "{format}");
    }
    // Numbers of JSON; what is too large, and signs, are no addresses.
    let input = "{\"a\":167838211}\n{\"a\":-1}\n{\"a\":1.5}\n";
    let (output, summary) =
        World::new().run((LogFormat::JsonLines, options.clone()), input.as_bytes());
    assert!(output.starts_with("{\"a\":167838211,\"a_prefix\":\"10.1.2.0/24\""), "{output}");
    assert_eq!(summary.unwrap().unparsable, 2);
    // Columns are not guessed: a port would be an address.
    options.columns.clear();
    let (_, refused) = World::new().run((LogFormat::Csv, options), b"a,b\n1,2\n");
    assert!(matches!(refused, Err(AnnotateError::NoColumn { .. })), "{refused:?}");
    assert_eq!(number("10.1.2.3"), u128::from(u32::from(Ipv4Addr::new(10, 1, 2, 3))));
    assert_eq!(number("::1:0:0"), u128::from(Ipv6Addr::new(0, 0, 0, 0, 0, 1, 0, 0)));
}

#[test]
fn addresses_inside_of_lines() {
    let mut options = options(&[], &["asn"]);
    options.scan = true;
    let log =
        "Nov 23 gw: from 10.1.0.1:443 to [2001:db8::1]:53\n# a remark about 10.0.0.1\nno address\n";
    let (output, summary) = World::new().run((LogFormat::List, options.clone()), log.as_bytes());
    assert_eq!(
        output,
        "Nov 23 gw: from 10.1.0.1:443 to [2001:db8::1]:53\t64501\n# a remark about 10.0.0.1\nno address\t\n"
    );
    let summary = summary.unwrap();
    assert_eq!((summary.rows, summary.addresses, summary.empty), (2, 1, 1));
    options.columns = vec![Column::Number(2), Column::Number(1)];
    options.only = Some(Only::Matched);
    let output = run(LogFormat::List, &options, log);
    assert_eq!(output, "Nov 23 gw: from 10.1.0.1:443 to [2001:db8::1]:53\t64502\t64501\n");
    // A log without any address is no error.
    assert_eq!(run(LogFormat::List, &options, "nothing\n"), "");
}

/// A column on its own has no rows that could be left out.
#[test]
fn columns_are_whole() {
    let mut chosen = options(&[], &["asn"]);
    chosen.only = Some(Only::Matched);
    let addresses = StringArray::from(vec!["8.8.8.8", "10.0.0.1"]);
    let annotator = ColumnAnnotator::new(World::new(), &chosen).unwrap();
    let found = annotator.annotate("a", &addresses).unwrap();
    assert_eq!((found.columns[0].len(), found.columns[0].null_count()), (2, 1));
}
