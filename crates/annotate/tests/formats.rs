//! Each format from bytes to bytes.

use crate::common::World;
use fibula_annotate::{AnnotateError, AnnotateOptions, Column, Format, Header};

fn options(format: Format, columns: &[&str], add: &[&str]) -> (Format, AnnotateOptions) {
    let mut options = AnnotateOptions::default();
    options.columns = columns.iter().map(|column| column.parse().unwrap()).collect();
    options.add = add.iter().map(|&name| name.to_owned()).collect();
    (format, options)
}

#[test]
fn csv_keeps_bytes_and_quotes_what_it_must() {
    let input = "\u{feff}t,src,note,dst\r\n\
        1,10.0.0.1,\"two\r\nlines, \"\"quoted\"\"\",10.1.0.1\r\n\
        2,\"2001:db8::1\",, 192.0.2.9 \r\n\
        3,::ffff:10.1.2.3,x,nowhere\r\n\
        \r\n\
        4,\r\n\
        5,8.8.8.8,x,";
    let (output, summary) =
        World::new().run(options(Format::Csv, &["src", "dst"], &["org", "asn"]), input.as_bytes());
    assert_eq!(
        output,
        "\u{feff}t,src,note,dst,src_org,src_asn,dst_org,dst_asn\r\n\
        1,10.0.0.1,\"two\r\nlines, \"\"quoted\"\"\",10.1.0.1,\"Example, Inc.\",64500,\"He said \"\"no\"\"\",64501\r\n\
        2,\"2001:db8::1\",, 192.0.2.9 ,Zoë,64502,\"Example, Inc.\",64500\r\n\
        3,::ffff:10.1.2.3,x,nowhere,tab\there,,,\r\n\
        \r\n\
        4,,,,,,,\r\n\
        5,8.8.8.8,x,,,,,"
    );
    let summary = summary.unwrap();
    assert_eq!((summary.rows, summary.addresses, summary.v4), (5, 6, 5));
    assert_eq!((summary.matched, summary.unmatched), (5, 1));
    assert_eq!((summary.unparsable, summary.empty, summary.damaged), (1, 3, 1));
    assert_eq!(summary.bytes_read, input.len() as u64);
    assert_eq!(summary.bytes_written, output.len() as u64);
}

#[test]
fn tsv_with_the_prefix_between_values() {
    let mut options = options(Format::Tsv, &["1"], &["asn", "prefix", "org"]);
    options.1.header = Header::Absent;
    options.1.quote = None;
    let input = "10.1.2.3\t\"x\n2001:db8:1::5\ty\n203.0.113.1\tz\n";
    let (output, _) = World::new().run(options, input.as_bytes());
    assert_eq!(
        output,
        "10.1.2.3\t\"x\t\t10.1.2.0/24\ttab here\n\
        2001:db8:1::5\ty\t64503\t2001:db8:1::/48\t\n\
        203.0.113.1\tz\t\t\t\n"
    );
}

#[test]
fn other_delimiters() {
    let mut options = options(Format::Csv, &["ip"], &["org"]);
    options.1.delimiter = Some(b';');
    let (output, _) = World::new().run(options, b"a;ip\n1;10.0.0.1\n");
    assert_eq!(output, "a;ip;ip_org\n1;10.0.0.1;Example, Inc.\n");
}

#[test]
fn json_lines() {
    let input = "{\"id.orig_h\":\"10.1.0.1\",\"p\":1}\n{\"id\":{\"orig_h\":\"2001:db8::7\"} }\r\n\
        not json\n[]\n\n{}\n{\"id.orig_h\":\"-\"}\n";
    let (output, summary) = World::new().run(
        options(Format::JsonLines, &["id.orig_h"], &["org", "prefix", "asn"]),
        input.as_bytes(),
    );
    assert_eq!(
        output,
        "{\"id.orig_h\":\"10.1.0.1\",\"p\":1,\"id.orig_h_org\":\"He said \\\"no\\\"\",\"id.orig_h_prefix\":\"10.1.0.0/16\",\"id.orig_h_asn\":64501}\n\
        {\"id\":{\"orig_h\":\"2001:db8::7\"},\"id.orig_h_org\":\"Zoë\",\"id.orig_h_prefix\":\"2001:db8::/32\",\"id.orig_h_asn\":64502 }\r\n\
        not json\n[]\n\n\
        {\"id.orig_h_org\":null,\"id.orig_h_prefix\":null,\"id.orig_h_asn\":null}\n\
        {\"id.orig_h\":\"-\",\"id.orig_h_org\":null,\"id.orig_h_prefix\":null,\"id.orig_h_asn\":null}\n"
    );
    let summary = summary.unwrap();
    assert_eq!((summary.rows, summary.damaged, summary.unparsable, summary.empty), (6, 2, 1, 1));
    for line in output.lines().filter(|line| line.starts_with('{')) {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn lists_and_logs() {
    let input = "# seen\n10.1.0.1 - - [17/May/2015] \"GET /\"\r\n2001:db8::1\t7\n\nhost x\n8.8.8.8";
    let (output, summary) = World::new().run(options(Format::List, &[], &[]), input.as_bytes());
    assert_eq!(
        output,
        "# seen\n10.1.0.1 - - [17/May/2015] \"GET /\"\t64501\tHe said \"no\"\r\n\
        2001:db8::1\t7\t64502\tZoë\n\nhost x\t\t\n8.8.8.8\t\t"
    );
    let summary = summary.unwrap();
    assert_eq!((summary.rows, summary.matched, summary.unparsable), (4, 2, 1));
    let fault = "line 5, column 1: \"host\" is not an address";
    assert_eq!(summary.first_fault.as_deref(), Some(fault));
}

#[test]
fn top_values() {
    let input = "10.0.0.1\n10.1.0.1\n192.0.2.1\n10.0.0.2\n10.1.0.2\n2001:db8::1\n8.8.8.8\n";
    let mut options = options(Format::List, &[], &["prefix", "asn"]);
    options.1.top = 2;
    let (_, summary) = World::new().run(options, input.as_bytes());
    let top = summary.unwrap().top;
    assert_eq!(top[0].column, "1_prefix");
    assert_eq!(top[0].values, [("10.0.0.0/8".to_owned(), 2), ("10.1.0.0/16".to_owned(), 2)]);
    assert_eq!(top[0].distinct, 4);
    assert_eq!(top[1].values, [("64500".to_owned(), 3), ("64501".to_owned(), 2)]);
}

#[test]
fn strict_stops_at_the_line_and_writes_what_was_before() {
    let world = World::new();
    let strict = |format, columns: &[&str]| {
        let mut options = options(format, columns, &["asn"]);
        options.1.strict = true;
        options
    };
    let (output, result) =
        world.run(strict(Format::List, &[]), b"10.0.0.1\n\n10.0.0.2\n10.0.0.300 x\n10.0.0.4\n");
    assert_eq!(output, "10.0.0.1\t64500\n\n10.0.0.2\t64500\n");
    assert_eq!(
        result.unwrap_err().to_string(),
        "line 4, column 1: \"10.0.0.300\" is not an address"
    );
    let csv = b"n,ip\n\"a\nb\",10.0.0.1\n1,x\n";
    let (_, result) = world.run(strict(Format::Csv, &["ip"]), csv);
    assert_eq!(result.unwrap_err().to_string(), "line 4, column ip: \"x\" is not an address");
    let (_, result) = world.run(strict(Format::Csv, &["ip"]), b"n,ip\n1,10.0.0.1,3\n");
    assert_eq!(result.unwrap_err().to_string(), "record at line 2: 3 fields, the first row has 2");
    let (_, result) = world.run(strict(Format::JsonLines, &["ip"]), b"{}\n{\"ip\":\n");
    assert_eq!(
        result.unwrap_err().to_string(),
        "record at line 2: not a JSON object: EOF while parsing a value at byte 6"
    );
}

#[test]
fn options_that_do_not_fit() {
    let world = World::new();
    let error = |format, columns: &[&str], add: &[&str]| {
        let (output, result) = world.run(options(format, columns, add), b"");
        assert_eq!(output, "");
        result.unwrap_err().to_string()
    };
    assert_eq!(
        error(Format::Csv, &["a"], &["country"]),
        "the table has no value column \"country\"; it has: asn, org"
    );
    assert_eq!(error(Format::Csv, &["a"], &["asn", "asn"]), "\"asn\" was asked for twice");
    assert_eq!(error(Format::List, &["ip"], &[]), "format list has no column \"ip\" to ask for");
    assert_eq!(error(Format::List, &["1", "1"], &[]), "\"1\" was asked for twice");
    assert_eq!(
        error(Format::Pcap, &["1"], &[]),
        "format pcap has no column numbers, 1 was asked for"
    );
    assert_eq!(
        error(Format::JsonLines, &[], &[]),
        "no address column found in the jsonl input: name one"
    );
    assert_eq!(error(Format::Pcap, &[], &[]), "the input is neither pcap nor pcapng");
    let mut same = options(Format::Csv, &["a"], &[]);
    same.1.delimiter = Some(b'"');
    assert!(matches!(world.run(same, b"").1, Err(AnnotateError::Delimiter)));
}

/// For addresses that nothing covers; what is no address has nothing, and neither has a value that the
/// table does not know.
#[test]
fn defaults() {
    let world = World::new();
    let input = "ip,n\n10.0.0.1,1\n9.9.9.9,2\n,3\nx,4\n10.1.2.3,5\n::9,6\n";
    for add in [&["asn", "org"][..], &["asn", "prefix", "org"]] {
        let mut with = options(Format::Csv, &["ip"], add);
        with.1.defaults = vec![("org".into(), "a \"b\"".into()), ("asn".into(), "0".into())];
        let (text, summary) = world.run(with, input.as_bytes());
        let prefix = |text: &str| match add.len() {
            3 => format!("{text},"),
            _ => String::new(),
        };
        let rows: Vec<_> = text.lines().skip(1).collect();
        let expected = [
            format!("10.0.0.1,1,64500,{}\"Example, Inc.\"", prefix("10.0.0.0/8")),
            format!("9.9.9.9,2,0,{}\"a \"\"b\"\"\"", prefix("")),
            format!(",3,,{}", prefix("")),
            format!("x,4,,{}", prefix("")),
            format!("10.1.2.3,5,,{}tab\there", prefix("10.1.2.0/24")),
            format!("::9,6,0,{}\"a \"\"b\"\"\"", prefix("")),
        ];
        assert_eq!(rows, expected);
        let summary = summary.unwrap();
        assert_eq!((summary.matched, summary.unmatched), (2, 2));
    }
    let mut with = options(Format::JsonLines, &["ip"], &["asn"]);
    with.1.defaults = vec![("asn".into(), "7".into())];
    let (text, _) = world.run(with, b"{\"ip\":\"9.9.9.9\"}\n{\"ip\":null}\n");
    assert_eq!(text, "{\"ip\":\"9.9.9.9\",\"ip_asn\":7}\n{\"ip\":null,\"ip_asn\":null}\n");
    for (name, value) in [("prefix", "x"), ("org", "x"), ("asn", "x")] {
        let mut with = options(Format::Csv, &["ip"], &["asn", "prefix"]);
        with.1.defaults = vec![(name.into(), value.into())];
        assert!(world.run(with, input.as_bytes()).1.is_err(), "{name}");
    }
}

#[test]
fn a_name_may_look_like_a_number() {
    let mut options = options(Format::Csv, &[], &["asn"]);
    options.1.columns = vec![Column::Name("7".into())];
    let (output, _) = World::new().run(options, b"7\n10.0.0.1\n");
    assert_eq!(output, "7,7_asn\n10.0.0.1,64500\n");
}
