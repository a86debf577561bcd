//! Which columns hold the addresses.

use super::*;

/// Columns, lines, number of damaged rows, number of notes.
fn found(text: &str) -> (Vec<String>, Vec<String>, usize, usize) {
    let sink = decode(text);
    (columns(&sink), sink.lines, sink.damage.len(), sink.noted.len())
}

macro_rules! finds {
    ($text:expr, [$($column:expr),*], [$($line:expr),* $(,)?], damaged $damaged:expr, notes $notes:expr) => {
        let (columns, lines, damaged, notes) = found($text);
        assert_eq!(columns, [$($column),*] as [&str; _], "{:?}", $text);
        assert_eq!(lines, [$($line),*] as [&str; _], "{:?}", $text);
        assert_eq!((damaged, notes), ($damaged, $notes), "damage and notes of {:?}", $text);
    };
}

#[test]
fn a_wrong_row_leaves_networks_networks() {
    // One with host bits, one without a length.
    let [a, b] = ["10.0.0.0/8", "10.1.0.0/16"];
    finds!("10.0.0.0 8\n10.1.0.0 16\n10.2.0.1 16\n", [], [a, b], damaged 1, notes 1);
    finds!("10.0.0.0,8\n10.1.0.0,16\n10.2.0.0,\n", [], [a, b], damaged 1, notes 1);
    finds!("10.2.0.1,16\n10.0.0.0,8\n10.1.0.0,16\n", [], [a, b], damaged 1, notes 1);
    let named = "Network Address,Prefix Length\n10.0.0.0,8\n10.1.0.0,16\n10.2.0.0,\n";
    finds!(named, [], [a, b], damaged 1, notes 0);
    let row = |i: u32| match i {
        49 => "10.0.49.1,24,x\n".to_owned(),
        _ => format!("10.{}.{}.0,24,x\n", i >> 8, i & 255),
    };
    let text: String = (0..1000).map(row).collect();
    let (columns, lines, damaged, notes) = found(&text);
    assert_eq!((columns, lines.len(), damaged, notes), (vec!["value:Str".to_owned()], 999, 1, 1));
}

#[test]
fn columns_named_cidr_and_prefix_may_be_lengths() {
    finds!("ip,cidr\n10.0.0.0,8\n10.0.0.1,8\n10.1.0.0,16\n", [],
        ["10.0.0.0/8", "10.1.0.0/16"], damaged 1, notes 0);
    finds!("prefix,ip\n8,10.0.0.0\n", [], ["10.0.0.0/8"], damaged 0, notes 0);
    finds!("ip,cidr\n10.0.0.1,10.0.0.0/8\n", ["ip:Str"],
        ["10.0.0.0/8 = 10.0.0.1"], damaged 0, notes 0);
    finds!("network,cidr\n10.0.0.0,10.0.0.0/8\n", ["network:Str"],
        ["10.0.0.0/8 = 10.0.0.0"], damaged 0, notes 0);
}

#[test]
fn addresses_with_small_values() {
    // Numbers that could be lengths, but the addresses do not agree.
    finds!("10.0.0.1,24\n10.0.0.2,16\n", ["value:Int"],
        ["10.0.0.1/32 = 24", "10.0.0.2/32 = 16"], damaged 0, notes 1);
    finds!("10.0.0.1,443\n10.0.0.0,8\n10.0.0.3,80\n", ["value:Int"],
        ["10.0.0.1/32 = 443", "10.0.0.0/32 = 8", "10.0.0.3/32 = 80"], damaged 0, notes 0);
    // A header with other names applies, but networks are still read as networks.
    finds!("server,weight\n10.0.0.1,8\n", ["weight:Int"], ["10.0.0.1/32 = 8"], damaged 0, notes 0);
    finds!("server,weight\n10.0.0.0,8\n", [], ["10.0.0.0/8"], damaged 0, notes 1);
    finds!("network,suffix\n10.0.0.0,8\n", ["suffix:Int"], ["10.0.0.0/32 = 8"], damaged 0, notes 1);
    // The key that the user set, whatever the rows contain.
    let told = |text, key| decode_as(text, Format::Text, TextOptions { key, ..Default::default() });
    let both = KeyColumns::Range("1".into(), "2".into());
    let sink = told("10.0.0.1,24\n10.0.0.2,16\n10.3.0.0,16\n", both);
    assert_eq!((&*sink.lines, sink.damage.len()), (&["10.3.0.0/16".to_owned()][..], 2));
    let sink = told("10.0.0.0,8\n11.0.0.0,8\n", KeyColumns::Prefix("1".into()));
    assert_eq!(
        (&*sink.lines, sink.noted.len()),
        (&["10.0.0.0/32 = 8", "11.0.0.0/32 = 8"].map(String::from)[..], 0)
    );
}

#[test]
fn integers_are_ends_only_where_no_column_of_prefixes_has_a_name() {
    finds!("prefix,start,end\n10.0.0.0/8,1714564800,1717243200\n", ["start:Int", "end:Int"],
        ["10.0.0.0/8 = 1714564800, 1717243200"], damaged 0, notes 0);
    finds!("from,to,ip\n5,9,10.0.0.1\n", ["from:Int", "to:Int"],
        ["10.0.0.1/32 = 5, 9"], damaged 0, notes 0);
    // The named column holds no address.
    finds!("start,end,network\n167772160,167772415,lab\n", ["network:Str"],
        ["10.0.0.0/24 = lab"], damaged 0, notes 0);
    // Addresses are ends, whatever is next to them.
    finds!("network,start,end\n10.0.0.0/8,10.0.0.0,10.0.0.1\n", ["network:Str"],
        ["10.0.0.0/31 = 10.0.0.0/8"], damaged 0, notes 1);
}

#[test]
fn rows_without_a_first_field_are_no_comments() {
    finds!("name;prefix;vlan\nx;10.0.0.0/8;1\n;10.1.0.0/16;2\n", ["name:Str", "vlan:Int"],
        ["10.0.0.0/8 = x, 1", "10.1.0.0/16 = null, 2"], damaged 0, notes 0);
    finds!(";prefix;vlan\n0;10.0.0.0/8;1\n1;10.1.0.0/16;2\n", ["value1:Int", "vlan:Int"],
        ["10.0.0.0/8 = 0, 1", "10.1.0.0/16 = 1, 2"], damaged 0, notes 0);
    // Where the address comes first, such a line has none.
    finds!("; a list\n10.0.0.0/8 ; SBL1\n; more\n10.0.0.0/9 ; SBL2\n", ["value:Str"],
        ["10.0.0.0/8 = SBL1", "10.0.0.0/9 = SBL2"], damaged 0, notes 0);
    // Elsewhere `;` begins comments, `#` everywhere.
    finds!(";x,y\n1,10.0.0.0/8\n", ["value:Int"], ["10.0.0.0/8 = 1"], damaged 0, notes 0);
    finds!("#x;y\n1;10.0.0.0/8\n", ["value:Int"], ["10.0.0.0/8 = 1"], damaged 0, notes 0);
    let key = KeyColumns::Prefix("prefix".into());
    let options = TextOptions { key, ..TextOptions::default() };
    let sink = decode_as(";prefix\nx;10.0.0.0/8\n", Format::Csv, options);
    assert_eq!(sink.lines, ["10.0.0.0/8 = x"]);
}

#[test]
fn columns_with_other_names_are_ranges_with_a_note_or_refused() {
    let pairs = "10.0.0.0,10.0.0.1\n10.0.0.2,10.0.0.3\n";
    let [a, b] = ["10.0.0.0/31", "10.0.0.2/31"];
    finds!(&format!("server,nat\n{pairs}"), [], [a, b], damaged 0, notes 1);
    finds!(&format!("start,end\n{pairs}"), [], [a, b], damaged 0, notes 0);
    finds!(pairs, [], [a, b], damaged 0, notes 0);
    let refused = |text: &str, options: TextOptions| {
        let mut decoder = TextDecoder::new(options, Format::Text);
        let result = decoder.decode(text.as_bytes(), Tail::End, &mut Collected::default());
        let Err(StopReason::Misfit(what)) = result else { panic!("{result:?}") };
        assert!(what.contains("--key id,size takes them as ranges"), "{what}");
    };
    let integers = "1,500,a\n2,600,b\n";
    let header = format!("id,size,name\n{integers}");
    let names = ["id", "size", "name"].map(String::from).to_vec();
    refused(&header, TextOptions::default());
    refused(integers, TextOptions { names, ..TextOptions::default() });
    let key = KeyColumns::Range("id".into(), "size".into());
    let sink = decode_as(&header, Format::Text, TextOptions { key, ..TextOptions::default() });
    assert_eq!(sink.lines[0], "0.0.0.1/32 = a");
    finds!("startIpNum,endIpNum,c\n16777216,16777471,a\n", ["c:Str"],
        ["1.0.0.0/24 = a"], damaged 0, notes 0);
}

#[test]
fn two_columns_of_addresses() {
    // Separated by blanks they are more likely an address and its gateway.
    finds!("10.0.0.0 10.0.0.255\n", ["value:Str"], ["10.0.0.0/32 = 10.0.0.255"], damaged 0, notes 1);
    finds!("10.0.0.9 10.0.0.1\n", ["value:Str"], ["10.0.0.9/32 = 10.0.0.1"], damaged 0, notes 0);
    // A wrong row leaves ranges ranges, if there are enough others.
    let rows = |n: u32| (0..n).map(|i| format!("10.0.{i}.0,10.0.{i}.255\n")).collect::<String>();
    let (_, lines, damaged, notes) = found(&(rows(10) + "10.1.0.9,10.1.0.1\n"));
    assert_eq!((&*lines[9], lines.len(), damaged, notes), ("10.0.9.0/24", 10, 1, 1));
    let (_, lines, damaged, notes) = found(&(rows(4) + "10.1.0.9,10.1.0.1\n"));
    assert_eq!((&*lines[3], damaged, notes), ("10.0.3.0/32 = 10.0.3.255", 0, 1));
}

#[test]
fn integers_are_ends_only_where_no_column_holds_addresses() {
    finds!("cidr_block,start,end\n10.0.0.0/8,1700000000,1700000000\n10.1.0.0/16,1700000001,1700000001\n",
        ["start:Int", "end:Int"],
        ["10.0.0.0/8 = 1700000000, 1700000000", "10.1.0.0/16 = 1700000001, 1700000001"], damaged 0, notes 0);
    // Of two pairs of names that with addresses.
    finds!("start_ip,end_ip,first,last\n10.0.0.0,10.0.0.255,1700000000,1700000000\n",
        ["first:Int", "last:Int"], ["10.0.0.0/24 = 1700000000, 1700000000"], damaged 0, notes 0);
}

#[test]
fn the_first_row_counts_if_it_is_no_header() {
    finds!("10.0.0.0,255.0.0.0\n10.1.0.0,255.255.0.0\n10.2.0.300,255.255.0.0\n", [],
        ["10.0.0.0/8", "10.1.0.0/16"], damaged 1, notes 0);
    finds!("10.0.0.0,8\n10.1.0.0,16\n10.0.0.300,24\n", [],
        ["10.0.0.0/8", "10.1.0.0/16"], damaged 1, notes 1);
}

#[test]
fn half_of_the_rows_are_enough_for_a_name() {
    finds!("start,end,name\n10.0.0.0,10.0.0.255,a\n10.0.1.0,,b\n", ["name:Str"],
        ["10.0.0.0/24 = a"], damaged 1, notes 0);
    finds!("ip,length\n10.0.0.0,8\n10.1.0.0,\n", [], ["10.0.0.0/8"], damaged 1, notes 0);
}

#[test]
fn ranges_beside_prefixes_are_noted() {
    finds!("subnet,first,last\n10.0.0.0/24,10.0.0.10,10.0.0.11\n", ["subnet:Str"],
        ["10.0.0.10/31 = 10.0.0.0/24"], damaged 0, notes 1);
    finds!("subnet,first,last\n10.0.0.0/24,10.0.0.0,10.0.0.255\n", ["subnet:Str"],
        ["10.0.0.0/24 = 10.0.0.0/24"], damaged 0, notes 0);
    // The ends of a range may have a column between them, or the last address before the first.
    for text in [
        "10.0.0.0,a,10.0.0.255\n10.0.1.0,b,10.0.1.255\n",
        "10.0.0.255,a,10.0.0.0\n10.0.1.255,b,10.0.1.0\n",
    ] {
        assert_eq!(found(text).3, 1, "{text:?}");
    }
    // In two columns that tabs separate they may be a host and its gateway.
    finds!("FirstAddress\tLastAddress\n10.0.0.0\t10.0.0.255\n", ["LastAddress:Str"],
        ["10.0.0.0/32 = 10.0.0.255"], damaged 0, notes 1);
}
