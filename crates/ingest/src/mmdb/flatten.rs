//! Records of any shape, flattened to columns.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use fibula_core::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::text::excerpt;
use crate::{ColumnDecl, ColumnKind, ScalarType};

/// A record as the database holds it.
#[derive(Debug)]
pub(super) enum Node<'d> {
    Map(Vec<(&'d str, Node<'d>)>),
    List(Vec<Node<'d>>),
    Scalar(Scalar<'d>),
    /// Bytes, which no column can hold.
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'d> {
    Int(u64),
    Str(Cow<'d, str>),
    /// A value that becomes text in a column, and its type.
    Typed(String, ScalarType),
}

impl Scalar<'_> {
    #[cold]
    fn describe(&self) -> String {
        match self {
            Self::Int(value) => value.to_string(),
            Self::Str(text) => excerpt(text.as_bytes()),
            Self::Typed(text, _) => text.clone(),
        }
    }
}

thread_local! {
    /// Values decoded by this thread. A decoder of maxminddb carries no state of ours, and a record
    /// that turns out to be damaged has been looked at as well.
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

impl<'d> Deserialize<'d> for Node<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.set(DECODED.get().wrapping_add(1));
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'d> Visitor<'d> for NodeVisitor {
    type Value = Node<'d>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of the MaxMind DB format")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'d>, E> {
        Ok(typed(value, ScalarType::Bool))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'d>, E> {
        Ok(u64::try_from(value).map_or_else(|_| typed(value, ScalarType::Int), int))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'d>, E> {
        Ok(int(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node<'d>, E> {
        Ok(u64::try_from(value).map_or_else(|_| typed(value, ScalarType::Wide), int))
    }

    fn visit_f32<E>(self, value: f32) -> Result<Node<'d>, E> {
        Ok(typed(value, ScalarType::Float))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'d>, E> {
        Ok(typed(value, ScalarType::Double))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'d>, E> {
        Ok(text(value.to_owned()))
    }

    fn visit_borrowed_str<E>(self, value: &'d str) -> Result<Node<'d>, E> {
        Ok(text(value))
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Node<'d>, E> {
        Ok(Node::Other)
    }

    // Capacities grow with the entries that exist, not with the size field.
    fn visit_map<M: MapAccess<'d>>(self, mut map: M) -> Result<Node<'d>, M::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }

    fn visit_seq<S: SeqAccess<'d>>(self, mut seq: S) -> Result<Node<'d>, S::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }
}

fn int<'d>(value: u64) -> Node<'d> {
    Node::Scalar(Scalar::Int(value))
}

fn typed<'d>(value: impl fmt::Display, of: ScalarType) -> Node<'d> {
    Node::Scalar(Scalar::Typed(value.to_string(), of))
}

fn text<'d>(value: impl Into<Cow<'d, str>>) -> Node<'d> {
    Node::Scalar(Scalar::Str(value.into()))
}

/// The columns met so far.
pub(super) struct Columns {
    by_path: HashMap<String, u32>,
    all: Vec<(String, Held)>,
    /// Columns that became text because of a record of another type, each with a description of it.
    mixed: Vec<(String, String)>,
    /// Values that may yet be looked at. Records may share parts, and a hostile file can share them
    /// until few bytes unfold to no end.
    budget: usize,
    is_over: bool,
}

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    Nothing,
    Ints,
    Typed(ScalarType),
    Texts,
    /// Of several types, as text.
    Mixed,
}

impl Held {
    fn with(self, scalar: &Scalar<'_>) -> Self {
        let held = match scalar {
            Scalar::Int(_) => Self::Ints,
            Scalar::Str(_) => Self::Texts,
            Scalar::Typed(_, of) => Self::Typed(*of),
        };
        let fraction = |held| {
            matches!(
                held,
                Self::Ints | Self::Typed(ScalarType::Int | ScalarType::Float | ScalarType::Double)
            )
        };
        let signed = |held| matches!(held, Self::Ints | Self::Typed(ScalarType::Int));
        let wide = |held| matches!(held, Self::Ints | Self::Typed(ScalarType::Wide));
        match self {
            Self::Nothing => held,
            _ if self == held => held,
            // Only numbers beyond u64 are distinguished from the others.
            _ if signed(self) && signed(held) => Self::Typed(ScalarType::Int),
            _ if wide(self) && wide(held) => Self::Typed(ScalarType::Wide),
            // Integers with fractions are fractions.
            _ if fraction(self) && fraction(held) => Self::Typed(ScalarType::Double),
            _ => Self::Mixed,
        }
    }
}

impl Columns {
    /// City databases have about thirty.
    const MAX: usize = 1024;
    /// Longer paths, in bytes, name no column.
    const MAX_PATH: usize = 1024;
    /// Values per byte of file. A city database has about one.
    const PER_BYTE: usize = 8;
    /// Values that any file may have.
    const BASE: usize = 1 << 18;

    /// For a file of this many bytes.
    pub(super) fn new(len: usize) -> Self {
        let budget = len.saturating_mul(Self::PER_BYTE).saturating_add(Self::BASE);
        Self { by_path: HashMap::new(), all: Vec::new(), mixed: Vec::new(), budget, is_over: false }
    }

    /// Decodes a record and flattens it; `None` if the file unfolds to more than is credible.
    pub(super) fn read<'d, E>(
        &mut self,
        decode: impl FnOnce() -> Result<Option<Node<'d>>, E>,
    ) -> Option<Result<Option<Row<'d>>, E>> {
        let before = DECODED.get();
        let decoded = decode();
        let Some(budget) = self.budget.checked_sub(DECODED.get().wrapping_sub(before)) else {
            self.is_over = true;
            return None;
        };
        self.budget = budget;
        Some(decoded.map(|node| node.map(|node| self.flatten(&node))))
    }

    fn flatten<'d>(&mut self, node: &Node<'d>) -> Row<'d> {
        let mut row = Row { scalars: Vec::new() };
        self.add(&mut String::new(), node, &mut row);
        // Of a key that comes twice the last counts. Many networks may share a row: it must not be
        // longer than there are columns.
        row.scalars.reverse();
        row.scalars.sort_by_key(|(column, _)| *column);
        row.scalars.dedup_by_key(|(column, _)| *column);
        row
    }

    fn add<'d>(&mut self, path: &mut String, node: &Node<'d>, row: &mut Row<'d>) {
        match node {
            Node::Other => {}
            Node::Scalar(scalar) => {
                if let Some(column) = self.column(path) {
                    let (name, held) = &mut self.all[column as usize];
                    let before = std::mem::replace(held, held.with(scalar));
                    if before != Held::Mixed && *held == Held::Mixed {
                        self.mixed.push((name.clone(), scalar.describe()));
                    }
                    row.scalars.push((column, scalar.clone()));
                }
            }
            Node::Map(entries) => {
                let is_names = path == "names" || path.ends_with(".names");
                for (key, node) in entries.iter().filter(|(key, _)| !is_names || *key == "en") {
                    self.step(path, key, node, row);
                }
            }
            Node::List(items) => {
                for (i, node) in items.iter().enumerate() {
                    self.step(path, &i.to_string(), node, row);
                }
            }
        }
    }

    fn step<'d>(&mut self, path: &mut String, key: &str, node: &Node<'d>, row: &mut Row<'d>) {
        let len = path.len();
        if len + 1 + key.len() > Self::MAX_PATH {
            self.is_over = true;
            return;
        }
        if len > 0 {
            path.push('.');
        }
        path.push_str(key);
        self.add(path, node, row);
        path.truncate(len);
    }

    /// The column of a path; `None` if there are too many.
    fn column(&mut self, path: &str) -> Option<u32> {
        let path = if path.is_empty() { "value" } else { path };
        if let Some(column) = self.by_path.get(path) {
            return Some(*column);
        }
        if self.all.len() == Self::MAX {
            self.is_over = true;
            return None;
        }
        let column = self.all.len() as u32;
        self.by_path.insert(path.to_owned(), column);
        self.all.push((path.to_owned(), Held::Nothing));
        Some(column)
    }

    /// The types of the texts of columns.
    pub(super) fn types(&self) -> Vec<(String, ScalarType)> {
        let typed = |(name, held): &(String, Held)| match held {
            Held::Typed(of) => Some((name.clone(), *of)),
            _ => None,
        };
        self.all.iter().filter_map(typed).collect()
    }

    /// Takes the descriptions of columns that became text since the last call.
    pub(super) fn take_mixed(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.mixed)
    }

    /// The columns, and their faults.
    pub(super) fn declare(self) -> (Vec<ColumnDecl>, Option<&'static str>) {
        let decl = |(name, held)| {
            let is_int = matches!(held, Held::Nothing | Held::Ints);
            let kind = if is_int { ColumnKind::Int } else { ColumnKind::Str };
            ColumnDecl { name, kind }
        };
        let trouble = "the records have more columns or values than is credible; some are left out";
        (self.all.into_iter().map(decl).collect(), self.is_over.then_some(trouble))
    }
}

/// A record as columns.
#[derive(Debug)]
pub(super) struct Row<'d> {
    scalars: Vec<(u32, Scalar<'d>)>,
}

impl Row<'_> {
    /// Sets the values of this row in `values`, which has one for each column. Integers in a column
    /// of text are written into `buffers`.
    pub(super) fn fill<'a>(
        &'a self,
        decls: &[ColumnDecl],
        buffers: &'a mut Vec<String>,
        values: &mut [Value<'a>],
    ) {
        let is_text = |column: u32| decls[column as usize].kind == ColumnKind::Str;
        buffers.clear();
        buffers.extend(self.scalars.iter().filter_map(|(column, scalar)| match scalar {
            Scalar::Int(value) if is_text(*column) => Some(value.to_string()),
            _ => None,
        }));
        let mut written = buffers.iter();
        for (column, scalar) in &self.scalars {
            values[*column as usize] = match scalar {
                Scalar::Str(text) => Value::Str(text),
                Scalar::Typed(text, _) => Value::Str(text),
                Scalar::Int(_) if is_text(*column) => {
                    written.next().map_or(Value::Null, |text| Value::Str(text))
                }
                Scalar::Int(value) => Value::Int(*value),
            };
        }
    }
}
