//! Columns as the entries of nested maps and arrays.

use fibula_rib::Columns;

use super::data::shared;
use super::encode::{ARRAY, MAP, control, text};
use crate::ExportError;

/// The map of a row: the names of its entries, as they are written.
pub(super) struct Layout(Vec<(Vec<u8>, Entry)>);

enum Entry {
    Column(usize),
    Map(Layout),
    /// Of entries called 0, 1, 2 and so on.
    List(Vec<Entry>),
}

impl Layout {
    /// The columns of a table; long names are put into the data.
    pub(super) fn of(columns: &Columns, bytes: &mut Vec<u8>) -> Result<Self, ExportError> {
        let names: Vec<&str> = columns.names().collect();
        // A column `a` beside `a.b` is no map: then the name with the dot is an ordinary name.
        let is_path = |name: &str| {
            let mut parents = name.match_indices('.').map(|(at, _)| &name[..at]);
            !name.split('.').any(str::is_empty) && !parents.any(|parent| names.contains(&parent))
        };
        let paths: Vec<Vec<&str>> = names
            .iter()
            .map(|name| if is_path(name) { name.split('.').collect() } else { vec![*name] })
            .collect();
        let columns: Vec<(usize, &[&str])> = paths.iter().map(Vec::as_slice).enumerate().collect();
        Self::level(&columns, bytes)
    }

    /// The entries of columns with these rests of their paths, in order of the first of each.
    fn level(columns: &[(usize, &[&str])], bytes: &mut Vec<u8>) -> Result<Self, ExportError> {
        let mut entries = Vec::new();
        let mut done: Vec<&str> = Vec::new();
        for (column, path) in columns {
            let [name, rest @ ..] = path else { continue };
            if done.contains(name) {
                continue;
            }
            done.push(name);
            let entry = if rest.is_empty() {
                Entry::Column(*column)
            } else {
                let inside: Vec<_> = columns
                    .iter()
                    .filter(|(_, path)| path[0] == *name)
                    .map(|(column, path)| (*column, &path[1..]))
                    .collect();
                Entry::nested(Self::level(&inside, bytes)?, &inside)
            };
            entries.push((shared(bytes, text(name))?, entry));
        }
        Ok(Self(entries))
    }

    /// Writes the map of a row. `found` has the encoded value of each column, nothing where there is none.
    pub(super) fn write(&self, found: &[Vec<u8>], out: &mut Vec<u8>) {
        let (mut map, mut pairs) = (Vec::new(), 0);
        for (name, entry) in &self.0 {
            if entry.is_empty(found) {
                continue;
            }
            pairs += 1;
            map.extend_from_slice(name);
            entry.write(found, &mut map);
        }
        control(MAP, pairs, out);
        out.extend_from_slice(&map);
    }
}

impl Entry {
    /// An array if the names of the entries are its indices, else a map.
    fn nested(Layout(mut entries): Layout, columns: &[(usize, &[&str])]) -> Self {
        // The entries are in order of the first column of each name.
        let mut names: Vec<&str> = Vec::new();
        for name in columns.iter().filter_map(|(_, path)| path.first()) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let place = |index: usize| names.iter().position(|name| *name == index.to_string());
        let Some(order) = (0..names.len()).map(place).collect::<Option<Vec<_>>>() else {
            return Self::Map(Layout(entries));
        };
        let empty = || (Vec::new(), Self::List(Vec::new()));
        let take = |at: usize| std::mem::replace(&mut entries[at], empty()).1;
        Self::List(order.into_iter().map(take).collect())
    }

    fn write(&self, found: &[Vec<u8>], out: &mut Vec<u8>) {
        match self {
            Self::Column(column) => out.extend_from_slice(&found[*column]),
            Self::Map(layout) => layout.write(found, out),
            Self::List(entries) => {
                let len = entries.iter().rposition(|entry| !entry.is_empty(found));
                let len = len.map_or(0, |last| last + 1);
                control(ARRAY, len, out);
                for entry in &entries[..len] {
                    // An array has no gaps: an empty map represents an item without a value.
                    match entry.is_empty(found) {
                        true => control(MAP, 0, out),
                        false => entry.write(found, out),
                    }
                }
            }
        }
    }

    fn is_empty(&self, found: &[Vec<u8>]) -> bool {
        match self {
            Self::Column(column) => found[*column].is_empty(),
            Self::Map(Layout(entries)) => entries.iter().all(|(_, entry)| entry.is_empty(found)),
            Self::List(entries) => entries.iter().all(|entry| entry.is_empty(found)),
        }
    }
}
