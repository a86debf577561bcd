//! The columns of a document and their values.

use std::borrow::Cow;

use fibula_core::{ColumnKind, ScalarType, Value};

use super::node::{Node, NodeKind};
use crate::ColumnDecl;
use crate::text::parse_int;

/// A column found so far, and the common type of its values.
pub(super) struct Column {
    pub(super) name: String,
    any: bool,
    ints: bool,
    numbers: bool,
    bools: bool,
}

impl Column {
    pub(super) fn new(name: String) -> Self {
        Self { name, any: false, ints: true, numbers: true, bools: true }
    }

    /// Takes a value into account.
    pub(super) fn meet(&mut self, cell: &Cell<'_>) {
        if cell.of == Of::Null {
            return;
        }
        self.any = true;
        self.ints &= matches!(cell.of, Of::Int(_));
        self.numbers &= matches!(cell.of, Of::Int(_) | Of::Number);
        self.bools &= cell.of == Of::Bool;
    }

    pub(super) fn kind(&self) -> ColumnKind {
        if self.any && self.ints { ColumnKind::Int } else { ColumnKind::Str }
    }

    /// The type of its texts, if it is a column of text.
    pub(super) fn scalar(&self) -> Option<ScalarType> {
        match self {
            Self { any: false, .. } | Self { ints: true, .. } => None,
            Self { numbers: true, .. } => Some(ScalarType::Double),
            Self { bools: true, .. } => Some(ScalarType::Bool),
            Self { .. } => None,
        }
    }

    pub(super) fn decl(&self) -> ColumnDecl {
        ColumnDecl { name: self.name.clone(), kind: self.kind() }
    }
}

/// A value, and its text as it is written.
pub(super) struct Cell<'d> {
    of: Of,
    text: Cow<'d, str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Null,
    Int(u64),
    /// Another number, which 64 bits hold.
    Number,
    Bool,
    Text,
}

impl<'d> Cell<'d> {
    pub(super) fn text(text: &'d str) -> Self {
        Self { of: Of::Text, text: text.into() }
    }

    /// The value of a part of the document; `None` for objects and lists.
    pub(super) fn new(node: &'d Node<'d>) -> Option<Self> {
        let (of, text) = match &node.kind {
            NodeKind::Text(text) => (Of::Text, &**text),
            NodeKind::Number(number) => (number_of(number), *number),
            NodeKind::Bool(true) => (Of::Bool, "true"),
            NodeKind::Bool(false) => (Of::Bool, "false"),
            NodeKind::Null => (Of::Null, ""),
            NodeKind::Object(_) | NodeKind::List(_) => return None,
        };
        Some(Self { of, text: text.into() })
    }

    pub(super) fn value(&self, kind: ColumnKind) -> Value<'_> {
        match (kind, self.of) {
            (_, Of::Null) => Value::Null,
            (ColumnKind::Int, Of::Int(int)) => Value::Int(int),
            _ => Value::Str(&self.text),
        }
    }
}

/// The type of a number. Integers beyond 64 bits are text: they may be identifiers.
fn number_of(text: &str) -> Of {
    if let Some(int) = parse_int(text.as_bytes()) {
        return Of::Int(int);
    }
    let is_fraction = text.contains(['.', 'e', 'E']);
    let fits = |number: f64| number.is_finite() && (is_fraction || number.to_string() == text);
    if text.parse().is_ok_and(fits) { Of::Number } else { Of::Text }
}
