//! Finds the members with addresses in an object.
//!
//! If the fast paths in `shape` and `plain` decline, `serde_json` reads the object: it checks the whole grammar and
//! skips other members without building values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::plain;
use super::shape::Shape;
use crate::address::Address;

/// The value of an address member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// The member is missing, `null` or an empty string.
    #[default]
    Empty,
    /// An address.
    Address(Address),
    /// Anything else, as text for messages.
    Other(String),
}

/// The value that was found for a name, and its depth. An outer member takes precedence over an inner one, so that a
/// literal `"id.orig_h"` comes before `"id": {"orig_h"}`. At equal depth the last one wins, as in most readers.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    depth: u32,
}

impl Found {
    const NOTHING: Self = Self { place: Place::Empty, depth: u32::MAX };

    /// Sets the value of a member of the outermost object, which replaces earlier values.
    pub(super) fn set(&mut self, place: Place) {
        *self = Self { place, depth: 0 };
    }

    /// Whether the object has the member, whatever its value.
    pub(super) fn is_present(&self) -> bool {
        self.depth < u32::MAX
    }
}

/// The names of the members to find in objects.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Members with addresses.
    pub(super) columns: Vec<String>,
    /// Members that will be added: an object must not have them already.
    pub(super) added: Vec<String>,
}

/// Finds the members with these names in `data[..len]`, which should be one object. Returns the index of an added name
/// that the object already has.
#[inline]
pub(super) fn find(
    data: &[u8],
    len: usize,
    names: &Names,
    found: &mut Vec<Found>,
    shape: &mut Shape,
) -> Result<Option<usize>, serde_json::Error> {
    clear(names, found);
    if shape.find(data, len, found) {
        return Ok(None);
    }
    let text = &data[..len];
    clear(names, found);
    if let Some(taken) = plain::find(text, names, found, shape) {
        return Ok(taken);
    }
    clear(names, found);
    find_any(text, names, found)
}

/// Resets `found` to an empty entry for each name.
#[inline(always)]
fn clear(names: &Names, found: &mut Vec<Found>) {
    if found.len() != names.columns.len() {
        found.resize(names.columns.len(), Found::NOTHING);
    }
    found.iter_mut().for_each(|found| *found = Found::NOTHING);
}

/// Like `find`, without the fast paths. `found` must have been cleared.
fn find_any(
    text: &[u8],
    names: &Names,
    found: &mut Vec<Found>,
) -> Result<Option<usize>, serde_json::Error> {
    let wanted: Vec<Wanted<'_>> =
        names.columns.iter().enumerate().map(|(slot, rest)| Wanted { slot, rest }).collect();
    let mut taken = None;
    let mut json = serde_json::Deserializer::from_slice(text);
    let (added, taken_at) = (&*names.added, &mut taken);
    json.deserialize_map(Object { wanted: &wanted, added, taken: taken_at, depth: 0, found })?;
    json.end()?;
    Ok(taken)
}

/// A name, or the rest of it within a nested object.
#[derive(Clone, Copy)]
struct Wanted<'n> {
    slot: usize,
    rest: &'n str,
}

/// The visitor of an object, which looks for some names.
struct Object<'a, 'n> {
    wanted: &'a [Wanted<'n>],
    /// Names that will be added to the object; empty for inner objects.
    added: &'a [String],
    /// The index of an added name that the object already has.
    taken: &'a mut Option<usize>,
    depth: u32,
    found: &'a mut Vec<Found>,
}

/// How a key matches the names: at most one name ends with it, and some may continue inside its object.
#[derive(Default)]
struct Match<'n> {
    exact: Option<usize>,
    inner: Vec<Wanted<'n>>,
    taken: Option<usize>,
}

struct Key<'a, 'n>(&'a [Wanted<'n>], &'a [String]);

impl<'de, 'n> DeserializeSeed<'de> for Key<'_, 'n> {
    type Value = Match<'n>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Match<'n>, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Key<'_, 'n> {
    type Value = Match<'n>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Match<'n>, E> {
        let mut matched = Match::default();
        for wanted in self.0 {
            match wanted.rest.strip_prefix(key) {
                Some("") => matched.exact = Some(wanted.slot),
                Some(rest) => {
                    if let Some(rest) = rest.strip_prefix('.') {
                        matched.inner.push(Wanted { slot: wanted.slot, rest });
                    }
                }
                None => {}
            }
        }
        matched.taken = self.1.iter().position(|added| added == key);
        Ok(matched)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(matched) = map.next_key_seed(Key(self.wanted, self.added))? {
            *self.taken = self.taken.or(matched.taken);
            if matched.exact.is_none() && matched.inner.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                let depth = self.depth;
                map.next_value_seed(Member { matched, depth, found: self.found })?;
            }
        }
        Ok(())
    }
}

/// The visitor of the value of a matching key.
struct Member<'a, 'n> {
    matched: Match<'n>,
    depth: u32,
    found: &'a mut Vec<Found>,
}

impl Member<'_, '_> {
    fn put(&mut self, place: Place) {
        if let Some(slot) = self.matched.exact
            && self.depth <= self.found[slot].depth
        {
            self.found[slot] = Found { place, depth: self.depth };
        }
    }

    fn other(mut self, text: impl fmt::Display) {
        self.put(Place::Other(text.to_string()));
    }
}

impl<'de> DeserializeSeed<'de> for Member<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Member<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        let text = text.trim_ascii();
        self.put(match Address::parse(text.as_bytes()) {
            Some(address) => Place::Address(address),
            None if text.is_empty() => Place::Empty,
            None => Place::Other(text.to_owned()),
        });
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.put(Place::Empty);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.other(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.other(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.other(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.other(value);
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.other("[..]");
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(mut self, map: M) -> Result<(), M::Error> {
        self.put(Place::Other("{..}".to_owned()));
        let Self { matched, depth, found } = self;
        let (added, taken) = (&[][..], &mut None);
        Object { wanted: &matched.inner, added, taken, depth: depth + 1, found }.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places(line: &str, names: &[&str]) -> Vec<Place> {
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
        find(line.as_bytes(), line.len(), names, found, &mut Shape::default())
    }

    fn v4(last: u32) -> Place {
        Place::Address(Address::V4(0x0a00_0000 | last))
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
            let (mut shape, mut found) = (Shape::default(), Vec::new());
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
        let (mut shape, mut found) = (Shape::default(), vec![Found::NOTHING]);
        // A line is compared in pieces that may extend into the next line.
        let mut ask = |line: &str, shape: &mut Shape| {
            let data = format!("{line}\n{}", " ".repeat(40));
            found.fill(Found::NOTHING);
            let is_like = shape.find(data.as_bytes(), line.len(), &mut found);
            find(data.as_bytes(), line.len(), &names, &mut found, shape).unwrap();
            (is_like, found[0].place.clone())
        };
        let first = r#"{"t":1700000000,"a":"10.0.0.7","b":{"c":[1]},"d":"","e":1.5}"#;
        let second = r#"{"t":17,"a":"192.0.2.123","b":true,"d":"text","e":null}"#;
        let third = r#"{"t":17,"a":"10.0.0.3","b":true,"e":null}"#;
        let address = |last| Place::Address(Address::V4(last));
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
            (r#"{ "a" : null , "b" : "{" }"#, Place::Empty),
            (r#"{"a":167772161}"#, Place::Other("167772161".into())),
        ] {
            let mut found = vec![Found::NOTHING];
            assert_eq!(
                plain::find(text.as_bytes(), &names, &mut found, &mut Shape::default()),
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
        assert_eq!(found, [Place::Other("{..}".into()), v4(1), v4(2), Place::Empty]);
    }

    #[test]
    fn escapes_and_other_values() {
        let line = r#"{"\u0061":"10.0.0.\u0031","b":"","c":null,"d":-1.5,"e":true,"f":[{}],"a":"10.0.0.4"}"#;
        let found = places(line, &["a", "b", "c", "d", "e", "f"]);
        let other = |text: &str| Place::Other(text.to_owned());
        assert_eq!(
            found,
            [v4(4), Place::Empty, Place::Empty, other("-1.5"), other("true"), other("[..]")]
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
}
