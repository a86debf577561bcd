use super::*;
use crate::pipeline::answers::Without;
use proptest::prelude::*;

fn decode(columns: &[&str], strict: bool, text: &str) -> Result<Block, Fault> {
    let mut block = Block::default();
    let used = decode_into(&mut block, columns, strict, text)?;
    assert_eq!(used, text.len());
    Ok(block)
}

fn decode_into(
    block: &mut Block,
    columns: &[&str],
    strict: bool,
    text: &str,
) -> Result<usize, Fault> {
    let columns = columns.iter().map(|&c| Column::Name(c.into())).collect();
    let options = AnnotateOptions { columns, strict, ..AnnotateOptions::default() };
    JsonLines::new(&options, &[]).unwrap().decode(text.as_bytes(), true, block)
}

#[test]
fn members_are_found_and_others_counted() {
    let text = "{\"ip\":\"10.0.0.1\"}\r\n[1]\n\n{\"ip\":null}\n{ } \n{\"ip\":7}\n{\"ip\":\"x\"";
    let block = decode(&["ip"], false, text).unwrap();
    assert_eq!(
        (&block.keys.v4.addrs[..], &block.keys.v4.cells[..]),
        (&[0x0a00_0001][..], &[0][..])
    );
    let kinds: Vec<_> = block.rows.iter().map(|row| row.kind).collect();
    let (a, p) = (RowKind::Annotate, RowKind::Pass);
    assert_eq!(kinds, [a, p, p, a, RowKind::AnnotateEmpty, a, p]);
    let t = block.tally;
    let (empty, unparsable) = (block.count(Without::Empty), block.count(Without::Unparsable));
    assert_eq!((t.rows, empty, unparsable, t.damaged), (6, 2, 1, 2));
    let first = block.rows[0];
    assert_eq!(&text[first.insert..first.end], "}\r\n");
}

#[test]
fn strict_says_where() {
    let fault = decode(&["ip"], true, "{\"ip\":\"10.0.0.1\"}\n{\"ip\":7}\n").unwrap_err();
    assert!(matches!(fault, Fault::Unparsable { at: 18, slot: 0, .. }), "{fault:?}");
    let fault = decode(&["ip"], true, "\n{\"ip\":}\n").unwrap_err();
    assert!(matches!(fault, Fault::Record { at: 1, .. }), "{fault:?}");
}

#[test]
fn records_within_an_object() {
    let records = "[{\"ip\":\"10.0.0.1\"},\n{\"ip\":\"10.0.0.2\",\"n\":NaN}]";
    let one = format!("{{\"v\":1,\"Records\":{records},\"next\":{{\"a\":1}}}}\n");
    for text in [one.clone(), format!("{one}{one}"), one.replace('\n', "")] {
        let block = decode(&["ip"], true, &text).unwrap();
        assert_eq!(block.keys.v4.addrs[..2], [0x0a00_0001, 0x0a00_0002]);
        assert_eq!(block.tally.rows as usize, text.matches("\"ip\"").count());
    }
    // The column is one of the object itself, or of neither.
    let text = "{\"tags\":[{\"ip\":\"10.0.0.9\"}],\"ip\":\"10.0.0.1\"}\n";
    assert_eq!(decode(&["ip"], true, text).unwrap().keys.v4.addrs, [0x0a00_0001]);
    assert_eq!(decode(&["x"], true, text).unwrap().tally.rows, 1);
    let cut = &one[..one.len() - 3];
    assert!(matches!(decode(&["ip"], false, cut), Err(Fault::OpenArray { .. })));
}

proptest! {
    #[test]
    fn strings_read_back(text: String) {
        let mut out = Vec::new();
        write_string(&text, &mut out);
        let back: String = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(back, text);
    }

    #[test]
    fn rows_tile_any_input(text in "([{}\\[\\]\":,a.\\\\ \r]|\n|\"a\":|\"10.0.0.1\"|\\{\"a\":\\{\"b\":){0,40}") {
        let mut block = Block::default();
        // The rows before the end of an array that is cut off are there, too.
        match decode_into(&mut block, &["a", "a.b"], false, &text) {
            Ok(used) | Err(Fault::OpenArray { at: used }) => prop_assert_eq!(used, text.len()),
            Err(fault) => prop_assert!(false, "{:?}", fault),
        }
        let mut at = 0;
        for row in &block.rows {
            prop_assert!(row.start == at && row.start <= row.insert && row.insert <= row.end);
            at = row.end;
        }
        prop_assert_eq!(at, text.len());
    }
}
