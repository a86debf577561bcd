use super::*;
use crate::pipeline::answers::Without;
use proptest::prelude::*;

fn csv(columns: &[&str], header: Header) -> Csv {
    let columns = columns.iter().map(|c| c.parse().unwrap()).collect();
    let options = AnnotateOptions { columns, header, ..AnnotateOptions::default() };
    Csv::new(LogFormat::Csv, &options, vec!["asn".into()]).unwrap()
}

fn decode(csv: &mut Csv, text: &str) -> Result<Block, Fault> {
    let mut block = Block::default();
    let used = csv.decode(text.as_bytes(), true, &mut block)?;
    assert_eq!(used, text.len());
    Ok(block)
}

#[test]
fn columns_by_name_number_and_by_looking() {
    let text = "t,src,dst\r\n1,10.0.0.1,10.0.0.2\r\n2, 10.0.0.3 ,\"10.0.0.4\"\r\n";
    for columns in [&["src", "dst"][..], &["2", "3"], &[]] {
        let mut csv = csv(columns, Header::Detect);
        let block = decode(&mut csv, text).unwrap();
        assert_eq!(csv.names(), ["src", "dst"]);
        assert_eq!(block.keys.v4.addrs, [0x0a000001, 0x0a000002, 0x0a000003, 0x0a000004]);
        assert_eq!(block.rows[0].kind, RowKind::Header);
    }
    let mut csv = csv(&["3", "1"], Header::Detect);
    let block = decode(&mut csv, "10.0.0.1,x,10.0.0.2\n").unwrap();
    assert_eq!(
        (csv.names(), &block.keys.v4.addrs[..]),
        (&["3".into(), "1".into()][..], &[0x0a000002, 0x0a000001][..])
    );
}

#[test]
fn rows_of_other_widths() {
    let mut csv = csv(&["b"], Header::Present);
    let block = decode(&mut csv, "a,b,c\n1\n1,10.0.0.1,3,4\n\n").unwrap();
    assert_eq!(block.rows.iter().map(|r| r.pad).collect::<Vec<_>>(), [0, 2, 0, 0]);
    assert_eq!((block.tally.rows, block.tally.damaged, block.count(Without::Empty)), (2, 2, 1));
    csv.strict = true;
    let fault = decode(&mut csv, "1\n").unwrap_err();
    assert!(matches!(fault, Fault::Record { at: 0, .. }));
}

/// Values are below their names: before the fields that the header does not have.
#[test]
fn values_of_wide_rows() {
    let text = "a,b\n1,10.0.0.1\n2,10.0.0.2,x,y\n3,\"10.0.0.3\",\n";
    let block = decode(&mut csv(&["b"], Header::Present), text).unwrap();
    let behind = |row: &Row| &text[row.insert..row.end];
    let behind: Vec<_> = block.rows.iter().map(behind).collect();
    assert_eq!(behind, ["\n", "\n", ",x,y\n", ",\n"]);
    assert_eq!(block.tally.damaged, 2);
}

#[test]
fn times_in_brackets() {
    let text = b"x [02/Feb/2024:00:00:00 +0100] \"GET /\" [x";
    assert_eq!(time_text(text, (2, 23)), b"[02/Feb/2024:00:00:00 +0100]");
    assert_eq!(time_text(text, (39, 41)), b"[x");
    assert_eq!(time_text(text, (0, 1)), b"x");
}

#[test]
fn comments_among_rows() {
    let text = "# by x\nip,n\n10.0.0.1,1\n# half, of, it\n#2,10.0.0.9\n10.0.0.3,3\n";
    let block = decode(&mut csv(&["ip"], Header::Present), text).unwrap();
    let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
    use RowKind::{Annotate, Header as Names, Pass};
    assert_eq!(kinds, [Pass, Names, Annotate, Pass, Annotate, Annotate]);
    assert_eq!((block.tally.rows, block.tally.damaged), (3, 0));
    let text = "#fields\tip\tn\n#types\taddr\tint\n10.0.0.1\t1\n#close\t1\n";
    let block = decode(&mut csv(&[], Header::Detect), text).unwrap();
    let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [Names, Pass, Annotate, Pass]);
    let other = format!("{text}#fields\tn\tip\n1\t10.0.0.1\n");
    let fault = decode(&mut csv(&[], Header::Detect), &other).unwrap_err();
    assert!(matches!(fault, Fault::Row { at, .. } if at == text.len()), "{fault:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let text = "src,src_asn\n10.0.0.1,5\n";
    let refused =
        |columns: &[&str], text: &str| match decode(&mut csv(columns, Header::Detect), text) {
            Err(Fault::Options(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
    assert_eq!(refused(&["src"], text), "the input already has a column \"src_asn\"");
    assert_eq!(refused(&["x"], text), "the header has no column \"x\"; it has: src, src_asn");
    assert_eq!(refused(&["9"], text), "column 9 was asked for, the first row has 2");
    assert_eq!(refused(&["1", "1"], text), "\"src\" was asked for twice");
    assert_eq!(refused(&[], "a,b\n1,2\n"), "no address column found in the csv input: name one");
}

/// Rows below an open quote would be lost in silence. A last line that was cut off loses nothing but itself.
#[test]
fn quotes_that_are_left_open() {
    for (text, at) in [
        ("src,\"dst\n10.0.0.1,10.0.0.2\n", 0),
        ("src,\"dst", 0),
        ("src,dst\n10.0.0.1,\"10.0.0.2\n10.0.0.3,10.0.0.4\n", 8),
    ] {
        let fault = decode(&mut csv(&["src"], Header::Present), text).unwrap_err();
        assert!(matches!(fault, Fault::OpenQuote { at: place } if place == at), "{fault:?}");
    }
    let text = "src,dst\n10.0.0.1,10.0.0.2\n10.0.0.3,\"10.0";
    for text in [text, &format!("{text}\r\n")] {
        let block = decode(&mut csv(&["src"], Header::Present), text).unwrap();
        assert_eq!((block.tally.rows, block.tally.damaged), (2, 1));
    }
    let mut strict = csv(&["src"], Header::Present);
    strict.strict = true;
    let fault = decode(&mut strict, text).unwrap_err();
    assert!(matches!(fault, Fault::Record { at: 26, .. }), "{fault:?}");
}

#[test]
fn empty_inputs() {
    for text in ["", "\n", "\r\n\n"] {
        let mut csv = csv(&["src"], Header::Detect);
        assert_eq!(decode(&mut csv, text).unwrap().tally.rows, 0);
    }
}

proptest! {
    /// For any input and any cut, rows tile the input and give the same addresses.
    #[test]
    fn cuts_do_not_matter(text in "(a,b\r?\n)?([0-9.,\"\r\n ]{0,12}|10\\.0\\.0\\.1|,|\n|\"){0,20}", cut in 0usize..80) {
        let mut whole = csv(&["1"], Header::Detect);
        let Ok(expected) = decode(&mut whole, &text) else { return Ok(()) };
        let mut parts = csv(&["1"], Header::Detect);
        let mut block: Block = Block::default();
        let data = text.as_bytes();
        let used = parts.decode(&data[..cut.min(data.len())], false, &mut block).unwrap();
        parts.decode(&data[used..], true, &mut block).unwrap();
        prop_assert_eq!(&block.keys.v4.addrs, &expected.keys.v4.addrs);
        prop_assert_eq!(block.tally.rows, expected.tally.rows);
        let mut at = 0;
        for row in &expected.rows {
            prop_assert!(row.start == at && row.start <= row.insert && row.insert <= row.end);
            at = row.end;
        }
        prop_assert_eq!(at, data.len());
    }
}
