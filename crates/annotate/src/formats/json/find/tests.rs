use super::*;
use proptest::prelude::*;

fn places(line: &str, names: &[&str]) -> Vec<MemberValue> {
    let columns = names.iter().map(|&n| n.to_owned()).collect();
    let names = Names { columns, added: Vec::new() };
    let mut found = Vec::new();
    alone(line, &names, &mut found).unwrap();
    found.into_iter().map(|found| found.place).collect()
}

/// Calls `find` for a line without a previous line.
fn alone(
    line: &str,
    names: &Names,
    found: &mut Vec<Found>,
) -> Result<Option<usize>, serde_json::Error> {
    find(line.as_bytes(), line.len(), names, found, &mut LineTemplate::default())
}

fn v4(last: u32) -> MemberValue {
    MemberValue::Address(Address::V4(0x0a00_0000 | last))
}

#[test]
fn literal_names_come_before_paths() {
    let both = r#"{"id":{"orig_h":"10.0.0.2"},"id.orig_h":"10.0.0.1"}"#;
    assert_eq!(places(both, &["id.orig_h"]), [v4(1)]);
    let turned = r#"{"id.orig_h":"10.0.0.1","id":{"orig_h":"10.0.0.2"}}"#;
    assert_eq!(places(turned, &["id.orig_h"]), [v4(1)]);
    let nested = r#"{"x":[1,{"id":2}],"id":{"y":{},"orig_h":"10.0.0.2"}}"#;
    assert_eq!(places(nested, &["id.orig_h"]), [v4(2)]);
    let mixed = r#"{"a.b":{"c":"10.0.0.3"}}"#;
    assert_eq!(places(mixed, &["a.b.c"]), [v4(3)]);
}

#[test]
fn added_names_are_found_in_the_outermost_object() {
    let names = Names { columns: vec!["a.b".into()], added: vec!["x".into(), "a.b_x".into()] };
    for (text, taken) in [
        (r#"{"a":{"b":1,"a.b_x":2,"x":3}}"#, None),
        (r#"{"a":{"b":1},"a.b_x":2}"#, Some(1)),
        (r#"{"x":null,"b":1}"#, Some(0)),
    ] {
        assert_eq!(alone(text, &names, &mut Vec::new()).unwrap(), taken, "{text}");
    }
}

proptest! {
    /// The fast path finds and accepts the same as the slow path.
    #[test]
    fn agrees_with_the_careful_way(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "\"a\":", "\"a.b\":", "\"b\":", "\"x\":", "\"10.0.0.1\"", "\"\"", "\" \"",
            "null", "true", "false", "1", "-", "0", ".5", "e+", "12345678901234567890", "\\", "\"\\u0061\":", "é", "\t", " ",
            "{\"b\":\"10.0.0.2\"}", "{\"a\":7,\"b\":[]}", "\"a\":\"10.0.0.3\",", "\"long string, longer than what is looked at once: {}\"",
            "\"t\":1.5e-3,", "\"a\":null", "\"a_x\":1,", "[1,{\"a\":2}]", "nul", "01",
        ]), 0..14),
        is_object: bool,
    ) {
        let text = parts.concat();
        let text = if is_object { format!("{{{}}}", text) } else { text };
        let (columns, added) = (vec!["a".into(), "a.b".into(), "b".into()], vec!["a_x".into()]);
        let names = Names { columns, added };
        let (mut found, mut careful) = (Vec::new(), vec![Found::NOTHING; 3]);
        let taken = alone(&text, &names, &mut found).map_err(|error| error.to_string());
        let expected = find_any(text.as_bytes(), &names, &mut careful).map_err(|error| error.to_string());
        prop_assert_eq!(&taken, &expected);
        if taken.is_ok() {
            prop_assert_eq!(format!("{found:?}"), format!("{careful:?}"));
        }
    }
}

proptest! {
    /// Each of several lines with the same or similar members is read as if it were alone.
    #[test]
    fn lines_before_do_not_matter(
        keys in proptest::collection::vec(proptest::sample::select(vec![
            "a", "b", "a.b", "a.b.c", "t", "a_x", "a key that is longer than the text that is compared", "\\u0061", "",
        ]), 0..6),
        lines in proptest::collection::vec((
            proptest::collection::vec(proptest::sample::select(vec![
                "\"10.0.0.1\"", "\"2001:db8::1\"", "\"\"", "\"x\"", "7", "12345", "0", "01", "-1", "1.5", "1e3", "1.", "12345678901234567890",
                "null", "true", "[1,{\"a\":2}]", "{}", "{\"b\":\"10.0.0.2\"}", "{\"b\":{\"c\":\"10.0.0.9\"}}", "", "\"é\"", "\"\\n\"",
                "\"long string, longer than what is looked at once, which are sixty-four bytes: {}\"", "\"", " 1", "1 ",
                "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890",
            ]), 6),
            proptest::option::weighted(0.1, (0usize..40, proptest::sample::select(vec!["x", "}", ",", "\"", " ", "{"]))),
            "[ -~]{0,40}",
        ), 1..6),
    ) {
        let names = Names {
            columns: ["a", "a.b.c", "b"].map(String::from).to_vec(), added: vec!["a_x".into()],
        };
        let (mut shape, mut found) = (LineTemplate::default(), Vec::new());
        for (values, change, behind) in lines {
            let members = keys.iter().zip(&values).map(|(key, value)| format!("\"{key}\":{value}"));
            let mut line = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
            if let Some((at, text)) = change {
                let at = at.min(line.len());
                if line.is_char_boundary(at) {
                    line.insert_str(at, text);
                }
            }
            let mut careful = vec![Found::NOTHING; 3];
            let data = format!("{line}{behind}");
            let taken = find(data.as_bytes(), line.len(), &names, &mut found, &mut shape);
            let expected = find_any(line.as_bytes(), &names, &mut careful);
            let text = |error: serde_json::Error| error.to_string();
            let (taken, expected) = (taken.map_err(text), expected.map_err(text));
            prop_assert_eq!(&taken, &expected, "{}", line);
            if taken.is_ok() {
                prop_assert_eq!(format!("{found:?}"), format!("{careful:?}"), "{}", line);
            }
        }
    }
}

/// A line with the members of the previous line is not parsed again.
#[test]
fn lines_are_like_the_one_before() {
    let names = Names { columns: vec!["a".into()], added: Vec::new() };
    let (mut shape, mut found) = (LineTemplate::default(), vec![Found::NOTHING]);
    // A line is compared in pieces that may extend into the next line.
    let mut ask = |line: &str, shape: &mut LineTemplate| {
        let data = format!("{line}\n{}", " ".repeat(40));
        found.fill(Found::NOTHING);
        let is_like = shape.find(data.as_bytes(), line.len(), &mut found);
        find(data.as_bytes(), line.len(), &names, &mut found, shape).unwrap();
        (is_like, found[0].place.clone())
    };
    let first = r#"{"t":1700000000,"a":"10.0.0.7","b":{"c":[1]},"d":"","e":1.5}"#;
    let second = r#"{"t":17,"a":"192.0.2.123","b":true,"d":"text","e":null}"#;
    let third = r#"{"t":17,"a":"10.0.0.3","b":true,"e":null}"#;
    let address = |last| MemberValue::Address(Address::V4(last));
    assert_eq!(ask(first, &mut shape), (false, v4(7)));
    assert_eq!(ask(second, &mut shape), (true, address(0xc000_027b)));
    assert_eq!(ask(third, &mut shape), (false, v4(3)));
    assert_eq!(ask(third, &mut shape), (true, v4(3)));
}

/// Usual objects are read by the fast path.
#[test]
fn usual_objects_are_plain() {
    let names = Names { columns: vec!["a".into()], added: Vec::new() };
    for (text, place) in [
        (r#"{"t":1700000000,"a":"10.0.0.7","b":{"c":[1,-2.5e3,true,null]},"d":""}"#, v4(7)),
        (r#"{ "a" : null , "b" : "{" }"#, MemberValue::Empty),
        (r#"{"a":167772161}"#, MemberValue::Other("167772161".into())),
    ] {
        let mut found = vec![Found::NOTHING];
        assert_eq!(
            plain::find(text.as_bytes(), &names, &mut found, &mut LineTemplate::default()),
            Some(None),
            "{text}"
        );
        assert_eq!(found[0].place, place);
    }
}

#[test]
fn names_may_contain_each_other() {
    let line = r#"{"a":{"b":"10.0.0.1","a":"10.0.0.2"}}"#;
    let found = places(line, &["a", "a.b", "a.a", "b"]);
    assert_eq!(found, [MemberValue::Other("{..}".into()), v4(1), v4(2), MemberValue::Empty]);
}

#[test]
fn escapes_and_other_values() {
    let line =
        r#"{"\u0061":"10.0.0.\u0031","b":"","c":null,"d":-1.5,"e":true,"f":[{}],"a":"10.0.0.4"}"#;
    let found = places(line, &["a", "b", "c", "d", "e", "f"]);
    let other = |text: &str| MemberValue::Other(text.to_owned());
    assert_eq!(
        found,
        [
            v4(4),
            MemberValue::Empty,
            MemberValue::Empty,
            other("-1.5"),
            other("true"),
            other("[..]")
        ]
    );
}

#[test]
fn only_one_whole_object_is_a_line() {
    let names = Names { columns: vec!["a".into()], added: Vec::new() };
    for line in ["[]", "7", "{} {}", "{\"a\":1,}", "{\"a\"}", "{", "\"x\""] {
        assert!(alone(line, &names, &mut Vec::new()).is_err(), "{line}");
    }
    let deep = format!("{{\"b\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    // Deep nesting is either read or refused, it does not exhaust the stack.
    let _ = alone(&deep, &names, &mut Vec::new());
}
