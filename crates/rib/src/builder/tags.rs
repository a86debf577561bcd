//! The column that lists the values of all routes of a prefix
//! ([`BuilderOptions::tags`](super::BuilderOptions::tags)), instead of only the last value.
//!
//! Values of sources without peers are recorded as they arrive, because later routes replace earlier ones. Values of
//! BGP peers are collected at the end, from their remaining paths.

use fibula_core::Value;
use hashbrown::{HashMap, HashSet};

use super::attributes::{AttributeSets, PEER};
use super::store::PeerSet;
use crate::intern::Interner;
use crate::rib::names::{BGP, SetColumns, SetTexts};

/// The separator of the values of a list. A value that contains it is a list already.
pub(super) const SEPARATOR: char = ';';

/// The listed column, and the current source's values for it.
pub(super) struct Tags {
    column: String,
    texts: Interner<u8>,
    current: Of,
}

/// The current source's position of the column.
#[derive(Clone, Copy)]
enum Of {
    /// The value at this place.
    Value(usize),
    /// The source has no such column: its name is used.
    Name(u32),
    /// The values come from the paths of its peers, at the end.
    Paths,
}

/// The tags of the prefixes of a family, by the prefixes' numbers.
#[derive(Default)]
pub(super) struct Tagged {
    known: HashSet<(u32, u32)>,
    /// In order of appearance; sorted by prefix in the end.
    pairs: Vec<(u32, u32)>,
}

impl Tagged {
    fn add(&mut self, prefix: u32, tag: u32) {
        if self.known.insert((prefix, tag)) {
            self.pairs.push((prefix, tag));
        }
    }

    /// The prefix was withdrawn. This is rare, because sources without peers do not withdraw.
    pub(super) fn forget(&mut self, prefix: u32) {
        if !self.pairs.is_empty() {
            self.pairs.retain(|pair| pair.0 != prefix);
            self.known.retain(|pair| pair.0 != prefix);
        }
    }

    /// For [`Tagged::of`]. Pairs of a prefix keep their order.
    pub(super) fn sort(&mut self) {
        self.known = HashSet::new();
        self.pairs.sort_by_key(|pair| pair.0);
    }

    fn of(&self, prefix: u32) -> impl Iterator<Item = u32> {
        let start = self.pairs.partition_point(|pair| pair.0 < prefix);
        self.pairs[start..].iter().take_while(move |pair| pair.0 == prefix).map(|pair| pair.1)
    }
}

impl Tags {
    pub(super) fn new(column: &str) -> Self {
        Self { column: column.to_owned(), texts: Interner::default(), current: Of::Paths }
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// Begins a source with these columns. `bgp` is whether its routes also have the columns of BGP. Returns the value
    /// to use if the source lacks the column; also `None` when numbers have run out.
    pub(super) fn begin<'a>(
        &mut self,
        source: &str,
        mut columns: impl Iterator<Item = &'a str>,
        bgp: bool,
    ) -> Option<String> {
        if let Some(at) = columns.position(|name| name == self.column) {
            self.current = Of::Value(at);
            return None;
        }
        if bgp && (self.column == PEER || BGP.iter().any(|(name, _)| *name == self.column)) {
            self.current = Of::Paths;
            return None;
        }
        let name = short_name(source);
        self.current = Of::Name(self.texts.intern(name.as_bytes())?);
        Some(name.to_owned())
    }

    /// A route of the current source, whose columns have these values; `None` when numbers have run out.
    pub(super) fn note<'v>(
        &mut self,
        tagged: &mut Tagged,
        prefix: u32,
        value: impl FnOnce(usize) -> Value<'v>,
    ) -> Option<()> {
        match self.current {
            Of::Paths => {}
            Of::Name(tag) => tagged.add(prefix, tag),
            Of::Value(at) => {
                for tag in self.intern(value(at))? {
                    tagged.add(prefix, tag);
                }
            }
        }
        Some(())
    }

    /// The tags in a value; `None` when numbers have run out.
    fn intern(&mut self, value: Value<'_>) -> Option<Vec<u32>> {
        let mut tag = |text: &str| self.texts.intern(text.as_bytes());
        match value {
            Value::Null => Some(Vec::new()),
            Value::Int(number) => Some(vec![tag(&number.to_string())?]),
            Value::Str(text) => {
                let parts = text.split(SEPARATOR).map(str::trim).filter(|part| !part.is_empty());
                parts.map(tag).collect()
            }
        }
    }
}

/// A source's name without folder, compression and suffix: `lists/drop.txt.gz` is `drop`.
fn short_name(source: &str) -> &str {
    let name = source.rsplit('/').next().unwrap_or(source);
    let packed = [".gz", ".bz2", ".xz", ".zst"];
    let name = packed.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// The lists of a table that is being numbered.
pub(super) struct Lists {
    tags: Tags,
    /// The position of the column in the rows.
    pub(super) place: usize,
    lists: Interner<u32>,
    /// The tags of attribute sets of BGP routes.
    of_set: HashMap<u32, Vec<u32>>,
}

impl Lists {
    pub(super) fn new(tags: Tags, place: usize) -> Self {
        Self { tags, place, lists: Interner::default(), of_set: HashMap::new() }
    }

    /// The number of a prefix's list: the values of sources without peers, followed by those of these paths. `None`
    /// when numbers have run out.
    pub(super) fn list(
        &mut self,
        tagged: &Tagged,
        prefix: u32,
        paths: &[PeerSet],
        describe: &Describe<'_>,
    ) -> Option<u32> {
        let mut list: Vec<u32> = tagged.of(prefix).collect();
        for path in paths {
            for &tag in self.of_path(path, describe)? {
                if !list.contains(&tag) {
                    list.push(tag);
                }
            }
        }
        self.lists.intern(&list)
    }

    fn of_path(&mut self, path: &PeerSet, describe: &Describe<'_>) -> Option<&[u32]> {
        // Peers can share a set, but each has its own name.
        let key = if describe.is_peer { path.speaker } else { path.set };
        if !self.of_set.contains_key(&key) {
            let tags = describe.value(path, self.place, |value| self.tags.intern(value))?;
            self.of_set.insert(key, tags);
        }
        self.of_set.get(&key).map(Vec::as_slice)
    }

    /// The list as the value of the column.
    pub(super) fn text(&self, list: u32) -> String {
        let mut text = String::new();
        for &tag in self.lists.get(list) {
            if !text.is_empty() {
                text.push(SEPARATOR);
            }
            text += &String::from_utf8_lossy(self.tags.texts.get(tag));
        }
        text
    }
}

/// The data for finding the value of a path.
pub(super) struct Describe<'a> {
    pub(super) sets: &'a AttributeSets,
    pub(super) places: &'a SetColumns,
    pub(super) peers: &'a [String],
    pub(super) width: usize,
    /// Whether the names of peers are listed.
    pub(super) is_peer: bool,
}

impl Describe<'_> {
    fn value<T>(&self, path: &PeerSet, place: usize, of: impl FnOnce(Value<'_>) -> T) -> T {
        if self.is_peer {
            let peer = super::peers::peer_of(path.speaker).and_then(|peer| self.peers.get(peer));
            return of(peer.map_or(Value::Null, |name| Value::Str(name)));
        }
        let set = self.sets.get(path.set);
        let texts = SetTexts::of(set);
        let mut values = vec![Value::Null; self.width];
        self.places.fill(set, &texts, &mut values);
        of(values[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sources() {
        for (source, name) in [
            ("lists/drop.txt.gz", "drop"),
            ("drop", "drop"),
            ("/a.b/firehol_level1.netset", "firehol_level1"),
            ("rib.20260101.0000.bz2", "rib.20260101"),
            ("embedded", "embedded"),
            ("-", "-"),
            (".hidden", ".hidden"),
        ] {
            assert_eq!(short_name(source), name, "{source}");
        }
    }
}
