//! From the parts of a document to routes and their values.

use std::collections::{HashMap, HashSet};

use fibula_core::{AnyPrefix, Family};

use super::census::Census;
use super::column::{Cell, Column};
use super::keys::{Finder, Found, is_key, key, last_of_each, no_key};
use super::node::{Member, Node, NodeKind};
use crate::HostBits;
use crate::text::{Key, block};

/// The column with the name of the list that a prefix stands in, if it is no object's.
const LIST: &str = "list";
/// The column for values other than objects under a name that is a prefix.
const VALUE: &str = "value";
/// Names are not repeated beyond this for the values inside of an object: it bounds memory.
const LONGEST_NAME: usize = 1024;
/// A document with more names is not of this kind.
const MAX_COLUMNS: usize = 256;

/// The values of an object, and the object around it whose values count, too.
struct Context<'d> {
    around: Option<usize>,
    cells: Vec<(usize, Cell<'d>)>,
}

/// Where a part of the document stands.
#[derive(Clone, Copy, Default)]
struct Surroundings<'d> {
    around: Option<usize>,
    /// Below a list.
    in_list: bool,
    /// The name of the list.
    list: Option<&'d str>,
    /// Inside of an object that has prefixes: addresses there are something else, such as gateways.
    is_inside: bool,
}

/// A route, or a value where a route is expected, and its byte position.
pub(super) struct Route {
    pub(super) at: usize,
    /// Its key and the context that has its values.
    pub(super) route: Result<(Key, Option<usize>), String>,
}

/// The routes and columns of a document.
pub(super) struct Walk<'d, 'c> {
    text: &'d [u8],
    finder: Finder<'c>,
    pub(super) columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    contexts: Vec<Context<'d>>,
    pub(super) found: Vec<Route>,
    /// Lists that would have been values, and members that a later one of the same name replaces.
    pub(super) left_out: usize,
    pub(super) replaced: usize,
    /// Objects with an address whose prefix has another name, prefixes that are values, and objects whose prefixes are
    /// all routes.
    pub(super) others: usize,
    pub(super) further: usize,
    pub(super) several: usize,
    /// Objects of JSON lines without a member that holds the prefix of another: comments, metadata.
    pub(super) other_lines: usize,
    is_lines: bool,
    key_names: HashSet<&'d str>,
    is_over: bool,
}

impl<'d, 'c> Walk<'d, 'c> {
    pub(super) fn new(
        text: &'d [u8],
        census: &'c Census,
        host_bits: HostBits,
        is_lines: bool,
    ) -> Self {
        Self {
            text,
            finder: Finder { census, host_bits },
            columns: Vec::new(),
            by_name: HashMap::new(),
            contexts: Vec::new(),
            found: Vec::new(),
            left_out: 0,
            replaced: 0,
            others: 0,
            further: 0,
            several: 0,
            other_lines: 0,
            is_lines,
            key_names: HashSet::new(),
            is_over: false,
        }
    }

    pub(super) fn document(&mut self, document: &'d Node<'d>) {
        self.node(document, Surroundings::default());
    }

    pub(super) fn trouble(&mut self, at: usize, what: String) {
        self.found.push(Route { at, route: Err(what) });
    }

    fn key(&self, text: &str) -> Option<Found> {
        key(text, self.finder.host_bits)
    }

    fn route(&mut self, at: usize, key: Found, context: Option<usize>) {
        self.found.push(Route { at, route: key.map(|key| (key, context)) });
    }

    fn node(&mut self, node: &'d Node<'d>, place: Surroundings<'d>) {
        match &node.kind {
            NodeKind::Object(members) => self.object(members, place),
            NodeKind::List(items) => self.list(items, place),
            _ => {}
        }
    }

    fn list(&mut self, items: &'d [Node<'d>], place: Surroundings<'d>) {
        let is_part =
            |item: &Node<'d>| matches!(item.kind, NodeKind::Object(_) | NodeKind::List(_));
        // One prefix makes it a list of prefixes, and other items mistakes.
        let has_prefixes = items.iter().any(|item| item.as_str().is_some_and(is_key));
        if has_prefixes {
            let mut context = place.around;
            if context.is_none()
                && let Some(name) = place.list
            {
                let at = items.first().map_or(0, |item| item.start);
                let mut cells = Vec::new();
                self.value(at, LIST, 0, Cell::text(name), &mut cells);
                context = self.context(None, cells);
            }
            for item in items.iter().filter(|item| !is_part(item)) {
                let text = item.as_str();
                let written = || String::from_utf8_lossy(&self.text[item.start..item.end]);
                let none = || Err(no_key(text.unwrap_or(&written())));
                let key = text.and_then(|text| self.key(text)).unwrap_or_else(none);
                self.route(item.start, key, context);
            }
        }
        let before = self.found.len();
        let mut barren = Vec::new();
        for item in items.iter().filter(|item| is_part(item) || !has_prefixes) {
            let before = self.found.len();
            if self.finder.census.holds(item) {
                self.node(item, Surroundings { in_list: true, ..place });
            }
            if self.found.len() == before {
                barren.push(item);
            }
        }
        // Items without a prefix, next to objects and lists with one.
        if self.found.len() > before {
            for item in barren {
                if self.is_lines && place.list.is_none() && !self.names_key(item) {
                    self.other_lines += 1;
                    continue;
                }
                let text = String::from_utf8_lossy(&self.text[item.start..item.end]);
                let words = text.split_whitespace().take(80).collect::<Vec<_>>().join(" ");
                let text: String = words.chars().take(80).collect();
                self.trouble(item.start, format!("no prefix in {text}"));
            }
        }
    }

    fn object(&mut self, members: &'d [Member<'d>], place: Surroundings<'d>) {
        let members = self.members(members);
        let before = self.found.last().and_then(|found| found.route.as_ref().ok());
        let mut keys = self.finder.keys(&members, before.map(|(key, _)| family(*key)));
        self.others += usize::from(keys.is_other);
        if keys.is_named {
            let own = keys.found.first().and_then(|(_, key)| key.as_ref().ok()).copied();
            let is_further = |(name, child): &&&Member<'_>| {
                let prefix = child.as_str().and_then(|text| block(text.trim().as_bytes()));
                !keys.names.contains(&&**name)
                    && prefix.is_some_and(|prefix| own != Some(Key::Prefix(prefix)))
            };
            self.further += members.iter().filter(is_further).count();
        }
        if !keys.is_named && keys.found.len() > 1 {
            self.several += 1;
        }
        if place.is_inside {
            keys.found.retain(|(_, key)| !matches!(key, Ok(key) if is_host(*key)));
        }
        let mut context = None;
        if place.in_list || !keys.found.is_empty() {
            let is_value = |member: &&'d Member<'d>| !keys.names.contains(&&*member.0);
            let values = members.iter().copied().filter(is_value).collect();
            let mut cells = Vec::new();
            self.values(values, keys.is_named, &mut Path::default(), &mut cells);
            context = self.context(place.around, cells);
        }
        self.key_names.extend(&keys.names);
        let is_inside = place.is_inside || !keys.found.is_empty();
        for (at, key) in keys.found {
            self.route(at, key, context);
        }
        if keys.is_named {
            return;
        }
        for (name, child) in members {
            if let Some(key) = self.key(name) {
                let context = self.described(child, context);
                self.route(child.start, key, context);
            } else if self.finder.census.holds(child) {
                self.node(
                    child,
                    Surroundings { around: context, list: Some(&**name), is_inside, ..place },
                );
            }
        }
    }

    /// Whether an object has a member that holds the prefix of another one.
    fn names_key(&self, node: &Node<'_>) -> bool {
        let NodeKind::Object(members) = &node.kind else { return true };
        members.iter().any(|(name, _)| self.key_names.contains(&**name))
    }

    /// The values of a prefix that is the name of a member: `{"192.0.2.0/24": {"asn": 64500}}`.
    fn described(&mut self, child: &'d Node<'d>, around: Option<usize>) -> Option<usize> {
        let mut cells = Vec::new();
        match &child.kind {
            NodeKind::Object(members) => {
                let members = self.members(members);
                self.values(members, true, &mut Path::default(), &mut cells);
            }
            NodeKind::List(_) => self.left_out += usize::from(child.has_parts()),
            NodeKind::Null => {}
            _ => {
                if let Some(cell) = Cell::new(child) {
                    self.value(child.start, VALUE, 0, cell, &mut cells);
                }
            }
        }
        self.context(around, cells)
    }

    fn members(&mut self, members: &'d [Member<'d>]) -> Vec<&'d Member<'d>> {
        let last = last_of_each(members);
        self.replaced += members.len() - last.len();
        last
    }

    /// The values of an object; those of an object inside of it have names such as `site.name`. If the object has no
    /// prefix by name (`is_named`), parts with prefixes in them are routes and no values.
    fn values(
        &mut self,
        members: Vec<&'d Member<'d>>,
        is_named: bool,
        path: &mut Path,
        cells: &mut Vec<NestedCell<'d>>,
    ) {
        for (name, child) in members {
            let is_route = is_key(name) || self.finder.census.holds(child);
            if !is_named && is_route {
                continue;
            }
            let len = path.name.len();
            let is_name = len + name.len() <= LONGEST_NAME && !is_key(name);
            match (&child.kind, Cell::new(child)) {
                (_, Some(cell)) => {
                    path.name.push_str(name);
                    self.value(child.start, &path.name, path.depth, cell, cells);
                }
                (NodeKind::Object(inner), _) if is_name => {
                    path.name.push_str(name);
                    path.name.push('.');
                    path.depth += 1;
                    let inner = self.members(inner);
                    self.values(inner, is_named, path, cells);
                    path.depth -= 1;
                }
                _ => self.left_out += usize::from(child.has_parts()),
            }
            path.name.truncate(len);
        }
    }

    /// Keeps a value, if it has a column.
    fn value(
        &mut self,
        at: usize,
        name: &str,
        depth: usize,
        cell: Cell<'d>,
        cells: &mut Vec<NestedCell<'d>>,
    ) {
        if let Some(column) = self.column(at, name, &cell) {
            cells.push(NestedCell { depth, column, cell });
        }
    }

    /// Keeps the values of an object; `None` if there are none, around it neither.
    fn context(&mut self, around: Option<usize>, mut cells: Vec<NestedCell<'d>>) -> Option<usize> {
        if cells.is_empty() {
            return around;
        }
        // As in `annotate`: a member that is called `site.name` comes before one in an object called `site`.
        cells.sort_by_key(|placed| placed.depth);
        let cells = cells.into_iter().map(|placed| (placed.column, placed.cell)).collect();
        self.contexts.push(Context { around, cells });
        Some(self.contexts.len() - 1)
    }

    fn column(&mut self, at: usize, name: &str, cell: &Cell<'_>) -> Option<usize> {
        let column = match self.by_name.get(name) {
            Some(&column) => column,
            None if self.columns.len() < MAX_COLUMNS => {
                self.columns.push(Column::new(name.to_owned()));
                self.by_name.insert(name.to_owned(), self.columns.len() - 1);
                self.columns.len() - 1
            }
            None => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.trouble(
                        at,
                        format!("more than {MAX_COLUMNS} columns; the others are left out"),
                    );
                }
                return None;
            }
        };
        self.columns[column].meet(cell);
        Some(column)
    }

    /// The values of a route, column by column; an inner object's count before an outer one's.
    pub(super) fn cells(&self, context: Option<usize>) -> Vec<Option<&Cell<'d>>> {
        let mut cells = vec![None; self.columns.len()];
        let mut next = context;
        while let Some(context) = next.and_then(|at| self.contexts.get(at)) {
            for (column, cell) in &context.cells {
                cells[*column].get_or_insert(cell);
            }
            next = context.around;
        }
        cells
    }
}

fn family(key: Key) -> Family {
    match key {
        Key::Prefix(AnyPrefix::V4(_)) | Key::RangeV4(..) => Family::V4,
        Key::Prefix(AnyPrefix::V6(_)) | Key::RangeV6(..) => Family::V6,
    }
}

/// Whether a key is a single address.
fn is_host(key: Key) -> bool {
    match key {
        Key::Prefix(AnyPrefix::V4(prefix)) => prefix.len() == 32,
        Key::Prefix(AnyPrefix::V6(prefix)) => prefix.len() == 128,
        _ => false,
    }
}

/// A value, its column, and how many objects deep it is in the one that it belongs to.
struct NestedCell<'d> {
    depth: usize,
    column: usize,
    cell: Cell<'d>,
}

/// The names of the objects around a value, each with a dot behind it.
#[derive(Default)]
struct Path {
    name: String,
    depth: usize,
}
