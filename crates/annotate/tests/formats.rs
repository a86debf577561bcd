//! Each format from bytes to bytes.

use crate::common::World;
use fibula_annotate::{AnnotateError, AnnotateOptions, Column, Header, LogFormat};

fn options(format: LogFormat, columns: &[&str], add: &[&str]) -> (LogFormat, AnnotateOptions) {
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
    let (output, summary) = World::new()
        .run(options(LogFormat::Csv, &["src", "dst"], &["org", "asn"]), input.as_bytes());
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
    let mut options = options(LogFormat::Tsv, &["1"], &["asn", "prefix", "org"]);
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
    let mut options = options(LogFormat::Csv, &["ip"], &["org"]);
    options.1.delimiter = Some(b';');
    let (output, _) = World::new().run(options, b"a;ip\n1;10.0.0.1\n");
    assert_eq!(output, "a;ip;ip_org\n1;10.0.0.1;Example, Inc.\n");
}

#[test]
fn json_lines() {
    let input = "{\"id.orig_h\":\"10.1.0.1\",\"p\":1}\n{\"id\":{\"orig_h\":\"2001:db8::7\"} }\r\n\
        not json\n[]\n\n{}\n{\"id.orig_h\":\"-\"}\n";
    let (output, summary) = World::new().run(
        options(LogFormat::JsonLines, &["id.orig_h"], &["org", "prefix", "asn"]),
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
    let (output, summary) = World::new().run(options(LogFormat::List, &[], &[]), input.as_bytes());
    assert_eq!(
        output,
        "# seen\n10.1.0.1 - - [17/May/2015] \"GET /\"\t64501\tHe said \"no\"\r\n\
        2001:db8::1\t7\t64502\tZoë\n\nhost x\t\t\n8.8.8.8\t\t"
    );
    let summary = summary.unwrap();
    assert_eq!((summary.rows, summary.matched, summary.unparsable), (4, 2, 1));
    let fault = "line 5, column 1: \"host\" is not an address";
    assert_eq!(summary.first_unparsable.as_deref(), Some(fault));
}

#[test]
fn top_values() {
    let input = "10.0.0.1\n10.1.0.1\n192.0.2.1\n10.0.0.2\n10.1.0.2\n2001:db8::1\n8.8.8.8\n";
    let mut options = options(LogFormat::List, &[], &["prefix", "asn"]);
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
        world.run(strict(LogFormat::List, &[]), b"10.0.0.1\n\n10.0.0.2\n10.0.0.300 x\n10.0.0.4\n");
    assert_eq!(output, "10.0.0.1\t64500\n\n10.0.0.2\t64500\n");
    assert_eq!(
        result.unwrap_err().to_string(),
        "line 4, column 1: \"10.0.0.300\" is not an address"
    );
    let csv = b"n,ip\n\"a\nb\",10.0.0.1\n1,x\n";
    let (_, result) = world.run(strict(LogFormat::Csv, &["ip"]), csv);
    assert_eq!(result.unwrap_err().to_string(), "line 4, column ip: \"x\" is not an address");
    let (_, result) = world.run(strict(LogFormat::Csv, &["ip"]), b"n,ip\n1,10.0.0.1,3\n");
    assert_eq!(result.unwrap_err().to_string(), "record at line 2: 3 fields, the first row has 2");
    let (_, result) = world.run(strict(LogFormat::JsonLines, &["ip"]), b"{}\n{\"ip\":\n");
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
        error(LogFormat::Csv, &["a"], &["country"]),
        "the table has no value column \"country\"; it has: asn, org"
    );
    assert_eq!(error(LogFormat::Csv, &["a"], &["asn", "asn"]), "\"asn\" was asked for twice");
    assert_eq!(error(LogFormat::List, &["ip"], &[]), "format list has no column \"ip\" to ask for");
    assert_eq!(error(LogFormat::List, &["1", "1"], &[]), "\"1\" was asked for twice");
    assert_eq!(
        error(LogFormat::Pcap, &["1"], &[]),
        "format pcap has no column numbers, 1 was asked for"
    );
    assert_eq!(
        error(LogFormat::JsonLines, &[], &[]),
        "no address column found in the jsonl input: name one"
    );
    assert_eq!(error(LogFormat::Pcap, &[], &[]), "the input is neither pcap nor pcapng");
    let mut same = options(LogFormat::Csv, &["a"], &[]);
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
        let mut with = options(LogFormat::Csv, &["ip"], add);
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
    let mut with = options(LogFormat::JsonLines, &["ip"], &["asn"]);
    with.1.defaults = vec![("asn".into(), "7".into())];
    let (text, _) = world.run(with, b"{\"ip\":\"9.9.9.9\"}\n{\"ip\":null}\n");
    assert_eq!(text, "{\"ip\":\"9.9.9.9\",\"ip_asn\":7}\n{\"ip\":null,\"ip_asn\":null}\n");
    for (name, value) in [("prefix", "x"), ("org", "x"), ("asn", "x")] {
        let mut with = options(LogFormat::Csv, &["ip"], &["asn", "prefix"]);
        with.1.defaults = vec![(name.into(), value.into())];
        assert!(world.run(with, input.as_bytes()).1.is_err(), "{name}");
    }
}

#[test]
fn a_name_may_look_like_a_number() {
    let mut options = options(LogFormat::Csv, &[], &["asn"]);
    options.1.columns = vec![Column::Name("7".into())];
    let (output, _) = World::new().run(options, b"7\n10.0.0.1\n");
    assert_eq!(output, "7,7_asn\n10.0.0.1,64500\n");
}

/// One row does not tell which columns hold addresses.
#[test]
fn columns_are_found_by_many_rows() {
    let world = World::new();
    let rows = "-,10.0.0.1,10.0.0.2\n10.1.0.1,,see 10.0.0.3\n10.1.0.1,10.0.0.1,none\n";
    let (output, summary) =
        world.run(options(LogFormat::Csv, &[], &["asn"]), format!("a,b,note\n{rows}").as_bytes());
    assert_eq!(summary.unwrap().columns, ["a", "b"]);
    let expected = "a,b,note,a_asn,b_asn\n-,10.0.0.1,10.0.0.2,,64500\n\
        10.1.0.1,,see 10.0.0.3,64501,\n10.1.0.1,10.0.0.1,none,64501,64500\n";
    assert_eq!(output, expected);
    // What comes behind the first thousand rows does not matter.
    let late = format!("n,ip\n{}1,10.0.0.1\n", "1,x\n".repeat(1000));
    let (_, result) = world.run(options(LogFormat::Csv, &[], &[]), late.as_bytes());
    assert!(matches!(result, Err(AnnotateError::NoColumn { .. })), "{result:?}");
}

#[test]
fn a_column_that_no_row_has_is_an_error() {
    let world = World::new();
    let error = |format, column: &str, input: &str| {
        let (_, result) = world.run(options(format, &[column], &["asn"]), input.as_bytes());
        result.unwrap_err().to_string()
    };
    let objects = "{\"ip\":\"10.0.0.1\"}\n{\"ip\":null}\n";
    assert_eq!(error(LogFormat::JsonLines, "Ip", objects), "no row has a column Ip");
    assert_eq!(error(LogFormat::JsonLines, "ip.v4", objects), "no row has a column ip.v4");
    assert_eq!(error(LogFormat::JsonLines, "ip", "10.0.0.1\n"), "no row has a column ip");
    assert_eq!(error(LogFormat::List, "3", "10.0.0.1 a\n10.0.0.2\n"), "no row has a column 3");
    for (format, column, input) in [
        (LogFormat::JsonLines, "ip", objects),
        (LogFormat::JsonLines, "ip", "\n"),
        (LogFormat::JsonLines, "ip", "{}\n{\"ip\":null}\n"),
        (LogFormat::List, "2", "10.0.0.1\n10.0.0.1 x\n"),
        (LogFormat::List, "2", ""),
    ] {
        let (_, result) = world.run(options(format, &[column], &["asn"]), input.as_bytes());
        assert!(result.is_ok(), "{input}: {result:?}");
    }
}

/// Objects in an array, and objects of several lines.
#[test]
fn json_that_is_not_in_lines() {
    let world = World::new();
    for (input, expected, damaged) in [
        (
            "[\n  {\"ip\": \"10.1.0.1\"},\n  {\"ip\": \"x}\", \"n\": {}}\n]\n",
            "[\n  {\"ip\": \"10.1.0.1\",\"ip_asn\":64501},\n  {\"ip\": \"x}\", \"n\": {},\"ip_asn\":null}\n]\n",
            0,
        ),
        ("[{\"ip\":\"10.1.0.1\"}]", "[{\"ip\":\"10.1.0.1\",\"ip_asn\":64501}]", 0),
        (
            "{\n \"ip\": \"10.1.0.1\"\n}\n{\n \"ip\": \"10.0.0.1\"\n}\n",
            "{\n \"ip\": \"10.1.0.1\",\"ip_asn\":64501\n}\n{\n \"ip\": \"10.0.0.1\",\"ip_asn\":64500\n}\n",
            0,
        ),
        (
            "[{\"ip\":\"10.1.0.1\"}, 7 eight, {\"ip\":}, {}]",
            "[{\"ip\":\"10.1.0.1\",\"ip_asn\":64501}, 7 eight, {\"ip\":}, {\"ip_asn\":null}]",
            3,
        ),
        // Commas and brackets that are missing, or too many.
        (
            "[{\"ip\":\"10.1.0.1\"} {\"ip\":\"10.0.0.1\"},, {\"ip\":\"10.1.0.1\"},]]",
            "[{\"ip\":\"10.1.0.1\",\"ip_asn\":64501} {\"ip\":\"10.0.0.1\"},, {\"ip\":\"10.1.0.1\",\"ip_asn\":64501},]]",
            4,
        ),
        (
            "{\n \"ip\": \"10.1.0.1\"\n}\n{\n \"ip\":",
            "{\n \"ip\": \"10.1.0.1\",\"ip_asn\":64501\n}\n{\n \"ip\":",
            1,
        ),
    ] {
        let (output, summary) =
            world.run(options(LogFormat::JsonLines, &["ip"], &["asn"]), input.as_bytes());
        assert_eq!(output, expected);
        assert_eq!(summary.unwrap().damaged, damaged, "{input}");
    }
    let (_, summary) =
        world.run(options(LogFormat::JsonLines, &["ip"], &[]), b"[\n{\"ip\":1},\n{\"ip\":}\n]");
    let summary = summary.unwrap();
    assert_eq!(summary.first_unparsable.unwrap(), "line 2, column ip: \"1\" is not an address");
    let place = "record at line 3: not a JSON object: expected value at byte 7";
    assert_eq!(summary.first_damaged.unwrap(), place);
}

/// Rows before the end of such an array are written, and it is an error, strict or not.
#[test]
fn a_json_array_that_is_cut_off_is_an_error() {
    let world = World::new();
    for strict in [false, true] {
        for cut in ["", ",", ",\n", ",\n[", ",\n{\"ip\":\"10.1."] {
            let mut options = options(LogFormat::JsonLines, &["ip"], &["asn"]);
            options.1.strict = strict;
            let (output, result) =
                world.run(options, format!("[{{\"ip\":\"10.0.0.1\"}}{cut}").as_bytes());
            assert!(output.starts_with("[{\"ip\":\"10.0.0.1\",\"ip_asn\":64500}"), "{output}");
            let error = result.unwrap_err().to_string();
            let is_open = error.contains("the input ends within a JSON array");
            assert!(is_open || strict && error.contains("an object is open"), "{cut:?}: {error}");
        }
    }
    let mut options = options(LogFormat::JsonLines, &["ip"], &["asn"]);
    options.1.strict = true;
    let (_, result) = world.run(options, b"[{\"ip\":\"10.0.0.1\"}\n{\"ip\":\"10.0.0.2\"}]");
    let error = result.unwrap_err().to_string();
    assert_eq!(error, "record at line 2: no comma before this object");
}

/// As in a table, whose header must not have the names that are added.
#[test]
fn json_objects_must_not_have_the_added_members() {
    let input = b"{\"ip\":\"10.0.0.1\"}\n{\"ip\":\"10.0.0.1\",\"ip_asn\":1}\n";
    let (output, result) =
        World::new().run(options(LogFormat::JsonLines, &["ip"], &["asn", "org"]), input);
    let error = result.unwrap_err();
    assert!(matches!(&error, AnnotateError::NameTaken { name } if name == "ip_asn"), "{error}");
    assert_eq!(output.lines().count(), 1);
}

#[test]
fn binary_input_is_refused() {
    let world = World::new();
    let utf16: Vec<u8> = "ip\n10.0.0.1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for format in [LogFormat::List, LogFormat::Csv, LogFormat::Tsv, LogFormat::JsonLines] {
        let columns: &[&str] = if format == LogFormat::JsonLines { &["a"] } else { &[] };
        let (output, result) = world.run(options(format, columns, &[]), &utf16);
        let error = result.unwrap_err().to_string();
        assert_eq!(error, "the input is not text, or text in UTF-16: byte 1 is zero");
        assert_eq!(output, "");
    }
    let late = [&b"10.0.0.1\n".repeat(2000)[..], b"\0"].concat();
    assert!(world.run(options(LogFormat::List, &[], &[]), &late).1.is_ok());
}

/// As in the files of tables.
#[test]
fn delimiters_are_found() {
    let world = World::new();
    for (delimiter, columns) in [(";", &["ip"][..]), ("\t", &[]), ("|", &["2"]), (",", &["ip"])] {
        let input = ["a", "ip\n1", "10.0.0.1\n"].join(delimiter);
        let (output, _) = world.run(options(LogFormat::Csv, columns, &["asn"]), input.as_bytes());
        let expected = ["a", "ip", "ip_asn\n1", "10.0.0.1", "64500\n"].join(delimiter);
        assert_eq!(output, expected);
    }
    // The one that leaves the asked name whole.
    let (output, _) =
        world.run(options(LogFormat::Csv, &["ip"], &["asn"]), b"a,b;ip\n1,2;10.0.0.1\n");
    assert_eq!(output, "a,b;ip;ip_asn\n1,2;10.0.0.1;64500\n");
}

#[test]
fn the_first_of_each_kind_of_fault_is_told() {
    let input = b"ip,n\nx,1\n10.0.0.1,2\n10.0.0.1\ny,3,4\n";
    let (_, summary) = World::new().run(options(LogFormat::Csv, &["ip"], &["asn"]), input);
    let summary = summary.unwrap();
    assert_eq!((summary.unparsable, summary.damaged), (2, 2));
    assert_eq!(summary.first_unparsable.unwrap(), "line 2, column ip: \"x\" is not an address");
    let place = "record at line 4: 1 fields, the first row has 2";
    assert_eq!(summary.first_damaged.unwrap(), place);
}
