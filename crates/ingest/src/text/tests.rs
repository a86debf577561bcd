mod keys;
mod permuted;
mod values;

use proptest::prelude::*;

use super::*;
use crate::{Collected, ColumnKind, Decoder, Format, HostBits, ScalarType, StopReason, Tail};

fn decode_as(text: &str, format: Format, options: TextOptions) -> Collected {
    let mut sink = Collected::default();
    let mut decoder = TextDecoder::new(options, format);
    let taken = decoder.decode(text.as_bytes(), Tail::End, &mut sink);
    assert!(taken.is_err() || taken == Ok(text.len()));
    sink
}

fn decode(text: &str) -> Collected {
    decode_as(text, Format::Text, TextOptions::default())
}

/// `name:kind` of each column.
fn columns(sink: &Collected) -> Vec<String> {
    let decls = &sink.info.as_ref().expect("began").columns;
    decls.iter().map(|c| format!("{}:{:?}", c.name, c.kind)).collect()
}

fn clean(text: &str) -> (Vec<String>, Vec<String>) {
    let sink = decode(text);
    assert_eq!(sink.damage, [], "{text:?}");
    (columns(&sink), sink.lines)
}

macro_rules! gives {
    ($text:expr, [$($column:expr),*], [$($line:expr),* $(,)?]) => {
        let (columns, lines) = clean($text);
        assert_eq!(columns, [$($column),*] as [&str; _], "{:?}", $text);
        assert_eq!(lines, [$($line),*] as [&str; _], "{:?}", $text);
    };
}

#[test]
fn plain_lists() {
    gives!("", [], []);
    gives!("# nothing\n\n", [], []);
    gives!("10.0.0.0/8", [], ["10.0.0.0/8"]);
    gives!("10.0.0.0/8\r\n::1\r\n", [], ["10.0.0.0/8", "::1/128"]);
    gives!(
        "10.0.0.0/8 7\n  10.1.2.3\t9 # why\n// x\n; y\n::/0  11",
        ["value:Int"],
        ["10.0.0.0/8 = 7", "10.1.2.3/32 = 9", "::/0 = 11"]
    );
    gives!("\u{feff}10.0.0.0/8 AS1\n", ["value:Str"], ["10.0.0.0/8 = AS1"]);
    gives!("10.0.0.0/8 192.0.2.1\n", ["value:Str"], ["10.0.0.0/8 = 192.0.2.1"]);
    gives!("10.0.0.1 192.0.2.1\n", ["value:Str"], ["10.0.0.1/32 = 192.0.2.1"]);
    gives!("10.0.0.0/8 007\n", ["value:Str"], ["10.0.0.0/8 = 007"]);
}

#[test]
fn free_text_after_the_columns_all_rows_have() {
    gives!(
        "10.0.0.0/8 AU Sydney, New South Wales\n10.0.0.0/9 DE Ulm\n10.0.0.0/10\n",
        ["value1:Str", "value2:Str"],
        [
            "10.0.0.0/8 = AU, Sydney, New South Wales",
            "10.0.0.0/9 = DE, Ulm",
            "10.0.0.0/10 = null, null"
        ]
    );
}

#[test]
fn delimited() {
    gives!(
        "network,asn,name\n10.0.0.0/8,1,\"Foo, \"\"Inc\"\"\"\n::/0,2,\n",
        ["asn:Int", "name:Str"],
        ["10.0.0.0/8 = 1, Foo, \"Inc\"", "::/0 = 2, null"]
    );
    gives!("AS1;10.0.0.0/8\nAS2;::/0\n", ["value:Str"], ["10.0.0.0/8 = AS1", "::/0 = AS2"]);
    gives!("10.0.0.0/8\tNew York\n", ["value:Str"], ["10.0.0.0/8 = New York"]);
    gives!("prefix origin\n10.0.0.0/8 3\n", ["origin:Int"], ["10.0.0.0/8 = 3"]);
    // A peer's address is no key where prefixes are.
    gives!(
        "peer|prefix|asn\n192.0.2.1|10.0.0.0/8|5\n",
        ["peer:Str", "asn:Int"],
        ["10.0.0.0/8 = 192.0.2.1, 5"]
    );
    gives!(
        "10.0.0.0/8 ; SBL1\n10.0.0.0/9 ; SBL2\n",
        ["value:Str"],
        ["10.0.0.0/8 = SBL1", "10.0.0.0/9 = SBL2"]
    );
    gives!("ip,x,x\n1.1.1.1,2,3\n", ["x:Int", "x_2:Int"], ["1.1.1.1/32 = 2, 3"]);
}

#[test]
fn ranges() {
    gives!(
        "1.0.0.0,1.0.2.255,13335\n::1,::2,7\n",
        ["value:Int"],
        ["1.0.0.0/23 = 13335", "1.0.2.0/24 = 13335", "::1/128 = 7", "::2/128 = 7"]
    );
    gives!("10.0.0.0-10.0.0.1 x\n", ["value:Str"], ["10.0.0.0/31 = x"]);
    gives!("10.0.0.0 - 10.0.0.1 x\n", ["value:Str"], ["10.0.0.0/31 = x"]);
    gives!("10.0.0.0 10.0.0.1 x\n", ["value:Str"], ["10.0.0.0/31 = x"]);
    gives!("0.0.0.0,255.255.255.255,x\n", ["value:Str"], ["0.0.0.0/0 = x"]);
    gives!("start_ip,end_ip,c\n10.0.0.0,10.0.0.1,x\n", ["c:Str"], ["10.0.0.0/31 = x"]);
    // Named ranges are ranges, even if most of them are the wrong way round.
    let wrong = "start,end,c\n10.0.0.0,10.0.0.1,x\n10.0.1.9,10.0.1.0,y\n10.0.2.9,10.0.2.0,z\n";
    let decoded = decode_as(wrong, Format::Text, TextOptions::default());
    assert_eq!((decoded.lines, decoded.damage.len()), (vec!["10.0.0.0/31 = x".to_owned()], 2));
    // IP2Location and Tor: decimal.
    gives!("\"16777216\",\"16777471\",\"AU\"\n", ["value:Str"], ["1.0.0.0/24 = AU"]);
    let forced = decode_as("1 2\n", Format::Ranges, TextOptions::default());
    assert_eq!(forced.lines, ["0.0.0.1/32", "0.0.0.2/32"]);
    let forced = decode_as("1.1.1.1 1.1.1.1\n", Format::Ranges, TextOptions::default());
    assert_eq!(forced.lines, ["1.1.1.1/32"]);
}

#[test]
fn networks_with_masks_and_lengths() {
    gives!("10.0.0.0 255.0.0.0 a\n", ["value:Str"], ["10.0.0.0/8 = a"]);
    gives!(
        "10.0.0.0,8,a\n2001:db8::,32,b\n",
        ["value:Str"],
        ["10.0.0.0/8 = a", "2001:db8::/32 = b"]
    );
    gives!("x,netmask,network\na,255.255.255.255,10.0.0.1\n", ["x:Str"], ["10.0.0.1/32 = a"]);
    gives!("destination\tgenmask\tn\n0.0.0.0\t0.0.0.0\t5\n", ["n:Int"], ["0.0.0.0/0 = 5"]);
    // Addresses with a number are no networks, and all addresses are a range.
    gives!(
        "10.0.0.1,8,a\n10.0.0.0,8,b\n",
        ["value1:Int", "value2:Str"],
        ["10.0.0.1/32 = 8, a", "10.0.0.0/32 = 8, b"]
    );
    gives!("0.0.0.0,255.255.255.255,x\n", ["value:Str"], ["0.0.0.0/0 = x"]);
    let key = KeyColumns::Range("1".into(), "2".into());
    let told = decode_as("10.0.0.0;8;a\n", Format::Text, TextOptions { key, ..Default::default() });
    assert_eq!(told.lines, ["10.0.0.0/8 = a"]);
    let sink = decode("10.0.0.0,255.0.0.0,a\n10.0.0.1,255.0.0.0,b\n11.0.0.0,255.0.255.0,c\n");
    assert_eq!((&*sink.lines, sink.damage.len()), (&["10.0.0.0/8 = a".to_owned()][..], 2));
}

#[test]
fn a_damaged_first_line_is_no_header() {
    for text in [
        "l0.0.0.0/8,AS1,x\n11.0.0.0/8,AS2,y\n",
        "oops,1\n11.0.0.0/8,2\n",
        "broken 192.0.2.1\n10.0.0.0/8 192.0.2.1\n",
    ] {
        let sink = decode(text);
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 1), "{text}");
        assert_eq!(sink.damage[0].record, 1);
    }
}

#[test]
fn odd_names_are_names() {
    gives!("ip.src,asn\n10.0.0.1,7\n", ["asn:Int"], ["10.0.0.1/32 = 7"]);
    gives!("IP/Mask;Site, old\n10.0.0.0/8;a\n", ["Site, old:Str"], ["10.0.0.0/8 = a"]);
    gives!("net,,as4\n10.0.0.0/8,x,7\n", ["value1:Str", "as4:Int"], ["10.0.0.0/8 = x, 7"]);
}

#[test]
fn ranges_that_overlap() {
    let answers = |sink: &Collected| {
        let value = |addr: &u32| {
            let holds = |line: &&String| {
                let prefix: fibula_core::Prefix<u32> = line[..line.find(' ')?].parse().ok()?;
                prefix.contains(0x0a00_0000 + addr).then_some(prefix.len())
            };
            let lines = sink.lines.iter().enumerate();
            let longest = lines.filter_map(|(i, line)| Some((holds(&line)?, i))).max();
            longest.map_or('-', |(_, i)| sink.lines[i].chars().last().unwrap())
        };
        (0..10).map(|addr| value(&addr)).collect::<String>()
    };
    // B is the wider one.
    let sink = decode("start,end,v\n10.0.0.0,10.0.0.5,A\n10.0.0.3,10.0.0.9,B\n");
    assert_eq!((answers(&sink).as_str(), sink.noted.len()), ("AAAAAABBBB", 1));
    let sink = decode("start,end,v\n10.0.0.3,10.0.0.9,B\n10.0.0.0,10.0.0.5,A\n");
    assert_eq!((answers(&sink).as_str(), sink.noted.len()), ("AAAAAABBBB", 1));
    // As wide as each other: the later.
    let sink = decode("10.0.0.0-10.0.0.5 A\n10.0.0.4-10.0.0.9 B\n");
    assert_eq!((answers(&sink).as_str(), sink.noted.len()), ("AAAABBBBBB", 1));
    // Nested ones, and prefixes among ranges.
    let sink = decode("10.0.0.3-10.0.0.4 B\n10.0.0.0-10.0.0.4 A\n10.0.0.4/30 C\n");
    assert_eq!((answers(&sink).as_str(), sink.noted.len()), ("AAABBCCC--", 1));
}

#[test]
fn mapped_prefixes_are_ipv4() {
    let sink = decode("::ffff:10.0.0.0/104 a\n::ffff:192.0.2.1 b\n::/0 c\n::ffff:0:0/95 d\n");
    assert_eq!(
        sink.lines,
        ["10.0.0.0/8 = a", "192.0.2.1/32 = b", "::/0 = c"],
        "and one with host bits"
    );
    assert_eq!((sink.noted.len(), sink.damage.len()), (2, 1));
    let sink = decode("::ffff:10.0.0.0,::ffff:10.0.0.1,a\n");
    assert_eq!((&*sink.lines, sink.noted.len()), (&["10.0.0.0/31 = a".to_owned()][..], 1));
    // IP2Location's numbers.
    let sink = decode("281470681743360,281470698520575,-\n");
    assert_eq!(sink.lines, ["0.0.0.0/8 = -"]);
}

#[test]
fn columns_that_the_user_sets() {
    let options = TextOptions {
        header: HeaderLine::Absent,
        key: KeyColumns::Range("2".into(), "3".into()),
        names: ["asn", "first", "last", "name"].map(String::from).to_vec(),
        kinds: vec![("asn".into(), ColumnKind::Str)],
        columns: Some(vec!["name".into(), "asn".into()]),
        ..TextOptions::default()
    };
    let sink = decode_as("1;10.0.0.0;10.0.0.1;x\n", Format::Text, options);
    assert_eq!(columns(&sink), ["name:Str", "asn:Str"]);
    assert_eq!(sink.lines, ["10.0.0.0/31 = x, 1"]);

    let options = TextOptions { key: KeyColumns::Prefix("nw".into()), ..TextOptions::default() };
    let result = TextDecoder::new(options, Format::Csv).decode(
        b"a,b\n1,2\n",
        Tail::End,
        &mut Collected::default(),
    );
    let what = "no column \"nw\"; there are: a, b".to_owned();
    assert_eq!(result, Err(StopReason::Misfit(what)));
}

#[test]
fn fractions_and_booleans_are_found() {
    let (float, bool) = (Some(ScalarType::Double), Some(ScalarType::Bool));
    for (values, kind, expected) in [
        (&["47.25", "-8", "0.5"][..], ColumnKind::Str, float),
        (&["7", "8"], ColumnKind::Int, None),
        (&["7", "", "8.5"], ColumnKind::Str, float),
        (&["1.10", "1.2"], ColumnKind::Str, None),
        (&["1e5", "1.5"], ColumnKind::Str, None),
        (&["nan", "1.5"], ColumnKind::Str, None),
        (&["inf"], ColumnKind::Str, None),
        (&["007", "1.5"], ColumnKind::Str, None),
        (&["18446744073709551615", "1.5"], ColumnKind::Str, None),
        (&["true", "", "false"], ColumnKind::Str, bool),
        (&["true", "1.5"], ColumnKind::Str, None),
        (&["True"], ColumnKind::Str, None),
        (&["", ""], ColumnKind::Str, None),
    ] {
        let mut text = "prefix,v,w\n".to_owned();
        for (i, value) in values.iter().enumerate() {
            text += &format!("10.{i}.0.0/16,{value},x\n");
        }
        let info = decode_as(&text, Format::Csv, TextOptions::default()).info.expect("began");
        assert_eq!(info.columns[0].kind, kind, "{values:?}");
        let found = info.types.first().map(|(name, scalar)| (name.as_str(), *scalar));
        assert_eq!(found, expected.map(|scalar| ("v", scalar)), "{values:?}");
        // A kind that is given is not looked for.
        let kinds = vec![("v".into(), ColumnKind::Str)];
        let told = decode_as(&text, Format::Csv, TextOptions { kinds, ..TextOptions::default() });
        assert_eq!(told.info.expect("began").types, []);
    }
    // A type that is given is checked.
    let types = vec![("v".into(), ScalarType::Bool)];
    let options = TextOptions { types, ..TextOptions::default() };
    let told = decode_as("prefix,v\n10.0.0.0/8,true\n11.0.0.0/8,yes\n", Format::Csv, options);
    assert_eq!((told.lines.len(), told.damage.len()), (1, 1));
}

#[test]
fn host_bits_are_refused_or_masked() {
    let sink = decode("10.0.0.1/8 x\n");
    assert_eq!((sink.lines.len(), sink.damage.len()), (0, 1));
    let options = TextOptions { host_bits: HostBits::Mask, ..TextOptions::default() };
    assert_eq!(decode_as("10.0.0.1/8 x\n", Format::Text, options).lines, ["10.0.0.0/8 = x"]);
}

#[test]
fn damage_is_located() {
    let sink = decode("10.0.0.0/8 1\nnonsense\n\n10.0.0.0/40 2\n10.0.0.0/9 3\n");
    assert_eq!(sink.lines, ["10.0.0.0/8 = 1", "10.0.0.0/9 = 3"]);
    let places: Vec<_> = sink.damage.iter().map(|d| (d.record, d.offset)).collect();
    assert_eq!(places, [(2, 13), (4, 23)]);
    assert_eq!(sink.damage[0].what, "not an address, a prefix or a range: \"nonsense\"");

    let sink = decode("a,b\n10.0.0.0/8,1\n10.0.0.0/9,1,2\n10.0.0.0/10,\"x\n10.0.0.0/11,4\n");
    let places: Vec<_> = sink.damage.iter().map(|d| (d.record, &*d.what)).collect();
    assert_eq!(places, [(4, "a quote is not closed")]);
    assert_eq!(sink.lines.len(), 3);
}

#[test]
fn text_in_a_column_of_integers_is_damage() {
    let mut text = "10.0.0.0/8,1\n".repeat(90_000);
    text.push_str("10.0.0.0/9,AS2\n10.0.0.0/9,2\n10.0.0.0/9,\n10.0.0.0/9,1,2\n");
    let sink = decode(&text);
    assert_eq!(columns(&sink), ["value:Int"]);
    assert_eq!(sink.lines.len(), 90_002);
    let damage: Vec<_> = sink.damage.iter().map(|d| (d.record, &*d.what)).collect();
    assert_eq!(damage[0].0, 90_001);
    assert!(damage[0].1.contains("\"AS2\"; --kind"), "{}", damage[0].1);
    assert_eq!(damage[1].0, 90_004);
    assert!(damage[1].1.starts_with("more than 2 fields, which"), "{}", damage[1].1);
}

#[test]
fn a_cut_last_line_is_not_trusted() {
    let mut sink = Collected::default();
    let text = b"10.0.0.0/8 1\n10.0.0.0/2";
    let taken = TextDecoder::default().decode(text, Tail::Cut, &mut sink);
    assert_eq!(taken, Ok(text.len()));
    assert_eq!(sink.lines, ["10.0.0.0/8 = 1"]);
    assert_eq!((sink.damage[0].record, sink.damage[0].offset), (2, 13));
}

#[test]
fn long_lines_are_passed_over() {
    let text =
        format!("10.0.0.0/8 1\n{}\n10.0.0.0/9 1\n{}", "x".repeat(200_000), "y".repeat(70_000));
    let sink = decode(&text);
    assert_eq!(sink.lines, ["10.0.0.0/8 = 1", "10.0.0.0/9 = 1"]);
    let places: Vec<_> = sink.damage.iter().map(|d| (d.record, d.offset)).collect();
    assert_eq!(places, [(2, 13), (4, 200_027)]);
}

/// Decodes in pieces cut at `cuts`, as `read` does: the rest that was not consumed is passed again.
fn decode_in_pieces(bytes: &[u8], cuts: &[usize]) -> Collected {
    let mut sink = Collected::default();
    let mut decoder = TextDecoder::default();
    let mut start = 0;
    for &cut in cuts {
        let cut = cut.clamp(start, bytes.len());
        start += decoder.decode(&bytes[start..cut], Tail::More, &mut sink).expect("never stopped");
    }
    let taken = decoder.decode(&bytes[start..], Tail::End, &mut sink).expect("never stopped");
    assert_eq!(start + taken, bytes.len());
    sink
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "10\\.[0-9]{1,3}\\.0\\.0/1[6-9],[0-9]{1,4},[a-z \"]{0,8}",
        4 => "[0-9a-f]{1,4}:[0-9a-f]{0,4}::/48,[0-9]{1,4},\"[a-z,]{0,8}\"",
        1 => "10\\.0\\.0\\.0/8,1,\"two\nlines\"",
        1 => "[ -~]{0,20}",
        1 => "#[ -~]{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        decode_in_pieces(&bytes, &[]);
    }

    #[test]
    fn any_text(text in "[0-9a-f.:/,;\"\t\n #-]{0,400}") {
        decode_in_pieces(text.as_bytes(), &[]);
    }
}

proptest! {
    // Each case is larger than the head from which the layout is detected.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn cuts_change_nothing(
        lines in proptest::collection::vec(any_line(), 0..40),
        cuts in proptest::collection::vec(0usize..1_400_000, 0..8),
    ) {
        // More than a head, so that pieces matter at all.
        let mut text = "10.0.0.0/8,1,x\n".repeat(69_900);
        text.push_str(&lines.join("\n"));
        text.push_str(&"\n10.0.0.0/8,1,x".repeat(20_000));
        let mut cuts = cuts;
        cuts.sort_unstable();
        let whole = decode_in_pieces(text.as_bytes(), &[]);
        prop_assert_eq!(whole, decode_in_pieces(text.as_bytes(), &cuts));
    }
}

#[test]
fn more_names_than_columns_do_not_fit() {
    let named = |text: &str, format, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut decoder = TextDecoder::new(TextOptions { names, ..TextOptions::default() }, format);
        let mut sink = Collected::default();
        let taken = decoder.decode(text.as_bytes(), Tail::End, &mut sink);
        taken.map(|_| (columns(&sink), sink.lines))
    };
    for (text, format) in [
        ("10.0.0.0/8,a\n11.0.0.0/8,b\n", Format::Csv),
        ("prefix,x\n10.0.0.0/8,a\n", Format::Text),
        ("10.0.0.0/8 a\n", Format::Text),
    ] {
        let error = named(text, format, &["prefix", "asn", "name"]).unwrap_err();
        let StopReason::Misfit(error) = error else { panic!("{error:?}") };
        assert!(error.starts_with("3 names for 2 columns: prefix, asn, name"), "{error}");
    }
    assert!(named("10.0.0.0/8\n", Format::Text, &["prefix", "asn"]).is_err());
    assert!(named("", Format::Text, &["prefix", "asn"]).is_ok(), "nothing to compare with");
    // Columns that only later rows have, and text with blanks behind the named ones.
    let late = "10.0.0.0/8,a\n".repeat(150) + "11.0.0.0/8,b,c\n";
    let (columns, lines) = named(&late, Format::Csv, &["prefix", "x", "y"]).unwrap();
    assert_eq!(
        (columns, &*lines[150]),
        (vec!["x:Str".into(), "y:Str".into()], "11.0.0.0/8 = b, c")
    );
    let text = "10.0.0.0/8 hq\n11.0.0.0/8 berlin ops of the north\n";
    let (columns, lines) = named(text, Format::Text, &["prefix", "site", "owner"]).unwrap();
    assert_eq!(columns, ["site:Str", "owner:Str"]);
    assert_eq!(lines, ["10.0.0.0/8 = hq, null", "11.0.0.0/8 = berlin, ops of the north"]);
}
