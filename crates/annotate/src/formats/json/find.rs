//! Finding the members that hold addresses, in one pass over a line.
//!
//! `serde_json` drives: it checks the grammar of the whole line and skips what is not asked for
//! without building values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::address::Address;

/// What stands in an address member.
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

/// What was found for a name, and how deep: an outer member wins over an inner one, so that a literal
/// `"id.orig_h"` comes before `"id": {"orig_h"}`. Of equal ones the last wins, as in most readers.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    depth: u32,
}

/// Finds the members with these names in a line that holds one object.
pub(super) fn find(
    line: &[u8],
    names: &[String],
    found: &mut Vec<Found>,
) -> Result<(), serde_json::Error> {
    found.clear();
    found.resize(names.len(), Found { place: Place::Empty, depth: u32::MAX });
    let wanted: Vec<Wanted<'_>> =
        names.iter().enumerate().map(|(slot, rest)| Wanted { slot, rest }).collect();
    let mut json = serde_json::Deserializer::from_slice(line);
    json.deserialize_map(Object { wanted: &wanted, depth: 0, found })?;
    json.end()
}

/// A name, or what is left of it inside of an object.
#[derive(Clone, Copy)]
struct Wanted<'n> {
    slot: usize,
    rest: &'n str,
}

/// An object in which some names are wanted.
struct Object<'a, 'n> {
    wanted: &'a [Wanted<'n>],
    depth: u32,
    found: &'a mut Vec<Found>,
}

/// What a key is to the names: at most one ends with it, and some may go on inside of it.
#[derive(Default)]
struct Match<'n> {
    exact: Option<usize>,
    inner: Vec<Wanted<'n>>,
}

struct Key<'a, 'n>(&'a [Wanted<'n>]);

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
        Ok(matched)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(matched) = map.next_key_seed(Key(self.wanted))? {
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

/// The value of a key that matters.
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
        Object { wanted: &matched.inner, depth: depth + 1, found }.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(line: &str, names: &[&str]) -> Vec<Place> {
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let mut found = Vec::new();
        find(line.as_bytes(), &names, &mut found).unwrap();
        found.into_iter().map(|found| found.place).collect()
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
        for line in ["[]", "7", "{} {}", "{\"a\":1,}", "{\"a\"}", "{", "\"x\""] {
            assert!(find(line.as_bytes(), &["a".into()], &mut Vec::new()).is_err(), "{line}");
        }
        let deep = format!("{{\"b\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        // Deep nesting is either read or refused, it does not exhaust the stack.
        let _ = find(deep.as_bytes(), &["a".into()], &mut Vec::new());
    }
}
