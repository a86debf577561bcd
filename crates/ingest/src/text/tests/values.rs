//! Values that differ from those in the head of a file.

use super::*;

#[test]
fn leading_zeros_are_not_lost() {
    let text =
        "prefix,v,w\n".to_owned() + &"1.0.0.0/24,7,9\n".repeat(90_000) + "1.0.0.0/24,00501,0\n";
    let sink = decode_as(&text, Format::Csv, TextOptions::default());
    assert_eq!((columns(&sink), sink.lines.len()), (vec!["v:Int".into(), "w:Int".into()], 90_000));
    let what =
        "column v has integers, and this is not one: \"00501\"; --kind v=str makes the column text";
    assert_eq!((sink.damage[0].record, &*sink.damage[0].what), (90_002, what));
    let kinds = |kind| TextOptions { kinds: vec![("v".into(), kind)], ..TextOptions::default() };
    let sink = decode_as(&text, Format::Csv, kinds(ColumnKind::Str));
    assert_eq!((&*sink.lines[90_000], sink.damage.len()), ("1.0.0.0/24 = 00501, 0", 0));
    // If the user sets numbers, they are numbers.
    let sink = decode_as(&text, Format::Csv, kinds(ColumnKind::Int));
    assert_eq!((&*sink.lines[90_000], sink.damage.len()), ("1.0.0.0/24 = 501, 0", 0));
}

#[test]
fn fractions_and_booleans_keep_their_text() {
    let text = "prefix,v,w\n".to_owned()
        + &"1.0.0.0/24,7.5,true\n".repeat(60_000)
        + "1.0.0.0/24,1.10,yes\n";
    let sink = decode_as(&text, Format::Csv, TextOptions::default());
    assert_eq!(sink.info.as_ref().map(|info| info.types.len()), Some(2));
    assert_eq!((&*sink.lines[60_000], sink.damage.len()), ("1.0.0.0/24 = 1.10, yes", 0));
}

#[test]
fn a_range_below_the_head_is_treated_as_one_in_it() {
    let [first, range] = ["1.0.0.0/23 a\n", "1.0.0.128-1.0.3.255 b\n"];
    let many: String =
        (0..80_000).map(|i| format!("10.{}.{}.0/24 x\n", i >> 8 & 255, i & 255)).collect();
    let answers = |text: &str| {
        let sink = decode(text);
        assert_eq!((sink.damage.len(), sink.noted.len()), (0, 1));
        let lines: Vec<String> = sink.lines.into_iter().filter(|l| l.starts_with("1.")).collect();
        lines
    };
    let early = answers(&format!("{first}{range}{many}"));
    assert_eq!(early, ["1.0.0.0/23 = a", "1.0.2.0/23 = b"]);
    assert_eq!(early, answers(&format!("{first}{many}{range}")));
}

#[test]
fn a_row_with_more_fields_than_the_first_hundred_is_damage() {
    let text = |n| "10.0.0.0/8,a\n".repeat(n) + "11.0.0.0/8,Foo, Inc\n12.0.0.0/8,b\n";
    let sink = decode(&text(99));
    assert_eq!((columns(&sink).len(), &*sink.lines[99]), (2, "11.0.0.0/8 = Foo, Inc"));
    let sink = decode(&text(100));
    assert_eq!((columns(&sink).len(), &*sink.lines[100]), (1, "12.0.0.0/8 = b"));
    assert_eq!((sink.damage[0].record, sink.damage.len()), (101, 1));
    // Names determine the number of columns.
    let names = ["prefix", "x", "y"].map(String::from).to_vec();
    let options = TextOptions { names, ..TextOptions::default() };
    let sink = decode_as(&text(100), Format::Text, options);
    assert_eq!((&*sink.lines[100], sink.damage.len()), ("11.0.0.0/8 = Foo, Inc", 0));
}
