//! Finds the members with addresses in an object.
//!
//! If the fast paths in `shape` and `plain` decline, `serde_json` reads the object: it checks the whole grammar and
//! skips other members without building values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::plain;
use super::shape::LineTemplate;
use crate::address::Address;

/// The value of an address member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum MemberValue {
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
    pub(super) place: MemberValue,
    depth: u32,
}

impl Found {
    const NOTHING: Self = Self { place: MemberValue::Empty, depth: u32::MAX };

    /// Sets the value of a member of the outermost object, which replaces earlier values.
    pub(super) fn set(&mut self, place: MemberValue) {
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
    shape: &mut LineTemplate,
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
    find_any(text, names, found).or_else(|error| {
        let Some(text) = without_nan(text) else { return Err(error) };
        clear(names, found);
        find_any(&text, names, found).map_err(|_| error)
    })
}

/// The text with `null` for the numbers that JSON does not have but Python and others write; `None` if it has none.
#[cold]
fn without_nan(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut copied, mut at, mut quoted) = (Vec::new(), 0, 0, false);
    while at < text.len() {
        let rest = &text[at..];
        let found =
            [&b"NaN"[..], b"Infinity", b"-Infinity"].into_iter().find(|of| rest.starts_with(of));
        if let Some(name) = found.filter(|_| !quoted) {
            out.extend_from_slice(&text[copied..at]);
            out.extend_from_slice(b"null");
            at += name.len();
            copied = at;
            continue;
        }
        match text[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ => {}
        }
        at += 1;
    }
    out.extend_from_slice(&text[copied..]);
    (copied > 0).then_some(out)
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
    fn put(&mut self, place: MemberValue) {
        if let Some(slot) = self.matched.exact
            && self.depth <= self.found[slot].depth
        {
            self.found[slot] = Found { place, depth: self.depth };
        }
    }

    fn other(mut self, text: impl fmt::Display) {
        self.put(MemberValue::Other(text.to_string()));
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
            Some(address) => MemberValue::Address(address),
            None if text.is_empty() => MemberValue::Empty,
            None => MemberValue::Other(text.to_owned()),
        });
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.put(MemberValue::Empty);
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
        self.put(MemberValue::Other("{..}".to_owned()));
        let Self { matched, depth, found } = self;
        let (added, taken) = (&[][..], &mut None);
        Object { wanted: &matched.inner, added, taken, depth: depth + 1, found }.visit_map(map)
    }
}

#[cfg(test)]
mod tests;
