//! The columns of a document and their values.

use std::borrow::Cow;

use fibula_core::{ColumnKind, Value};

use super::node::{Kind, Node};
use crate::ColumnDecl;
use crate::text::parse_int;

/// A column met so far, and what all its values are.
pub(super) struct Column {
    pub(super) name: String,
    any: bool,
    ints: bool,
}

impl Column {
    pub(super) fn new(name: String) -> Self {
        Self { name, any: false, ints: true }
    }

    /// Takes a value into account.
    pub(super) fn meet(&mut self, cell: &Cell<'_>) {
        if cell.of == Of::Null {
            return;
        }
        self.any = true;
        self.ints &= matches!(cell.of, Of::Int(_));
    }

    pub(super) fn kind(&self) -> ColumnKind {
        if self.any && self.ints { ColumnKind::Int } else { ColumnKind::Str }
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
    Text,
}

impl<'d> Cell<'d> {
    pub(super) fn text(text: &'d str) -> Self {
        Self { of: Of::Text, text: text.into() }
    }

    /// The value of a part of the document; `None` for objects and lists.
    pub(super) fn new(node: &'d Node<'d>) -> Option<Self> {
        let (of, text) = match &node.kind {
            Kind::Text(text) => (Of::Text, &**text),
            Kind::Number(number) => {
                (parse_int(number.as_bytes()).map_or(Of::Text, Of::Int), *number)
            }
            Kind::Bool(true) => (Of::Text, "true"),
            Kind::Bool(false) => (Of::Text, "false"),
            Kind::Null => (Of::Null, ""),
            Kind::Object(_) | Kind::List(_) => return None,
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
