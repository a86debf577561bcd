//! A document with the positions of its parts, for damage reports.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// A part of a document, from one byte to another.
#[derive(Debug, PartialEq)]
pub(super) struct Node<'d> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: NodeKind<'d>,
}

/// A member of an object.
pub(super) type Member<'d> = (Cow<'d, str>, Node<'d>);

#[derive(Debug, PartialEq)]
pub(super) enum NodeKind<'d> {
    /// In the order of the document; a name may come twice.
    Object(Vec<Member<'d>>),
    List(Vec<Node<'d>>),
    Text(Cow<'d, str>),
    /// As it is written.
    Number(&'d str),
    Bool(bool),
    Null,
}

impl<'d> Node<'d> {
    pub(super) fn as_str(&self) -> Option<&str> {
        if let NodeKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// A text or a number, without blanks around it; `None` if nothing is left.
    pub(super) fn words(&self) -> Option<&str> {
        let words = match &self.kind {
            NodeKind::Text(text) => text.trim(),
            NodeKind::Number(number) => number,
            _ => return None,
        };
        (!words.is_empty()).then_some(words)
    }

    /// Whether it has parts: an object or a list that is not empty.
    pub(super) fn has_parts(&self) -> bool {
        match &self.kind {
            NodeKind::Object(members) => !members.is_empty(),
            NodeKind::List(items) => !items.is_empty(),
            _ => false,
        }
    }

    /// The node of a document that begins at this byte of a longer text.
    fn moved(mut self, by: usize) -> Self {
        self.start += by;
        self.end += by;
        self.kind = match self.kind {
            NodeKind::Object(members) => NodeKind::Object(
                members.into_iter().map(|(name, node)| (name, node.moved(by))).collect(),
            ),
            NodeKind::List(items) => {
                NodeKind::List(items.into_iter().map(|node| node.moved(by)).collect())
            }
            kind => kind,
        };
        self
    }

    /// Reads a document.
    ///
    /// # Errors
    /// Where it is not JSON, and why.
    pub(super) fn of(bytes: &'d [u8]) -> Result<Self, (usize, String)> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| (error.valid_up_to(), "not UTF-8".to_owned()))?;
        // The code below relies on this, and only stores positions.
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|error| (offset(text, &error), format!("not JSON: {error}")))?;
        let mut reader = Reader { text, at: 0 };
        reader.node(0).map_err(|what| (reader.at, format!("not JSON: {what}")))
    }
}

/// The documents of JSON lines, one a line, as the items of a list, and what is wrong with other lines. `None` if the
/// text is no such file: if its first line is no object, or its only one.
pub(super) fn lines(bytes: &[u8]) -> Option<(Node<'_>, Vec<(usize, String)>)> {
    let (mut items, mut wrong) = (Vec::new(), Vec::new());
    let mut start = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let at = start + line.len() - line.trim_ascii_start().len();
        start += line.len();
        match line.trim_ascii() {
            [] => {}
            text => match Node::of(text) {
                Ok(node) if matches!(node.kind, NodeKind::Object(_)) => items.push(node.moved(at)),
                _ if items.is_empty() => return None,
                Ok(_) => wrong.push((at, "not an object, which the other lines are".to_owned())),
                Err((within, what)) => wrong.push((at + within, what)),
            },
        }
    }
    let is_several = items.len() + wrong.len() > 1;
    is_several.then_some((Node { start: 0, end: bytes.len(), kind: NodeKind::List(items) }, wrong))
}

/// The byte at an error's line and column.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let before = error.line().saturating_sub(1);
    let lines: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    (lines + error.column().saturating_sub(1)).min(text.len())
}

/// Reads text that is known to be JSON.
struct Reader<'d> {
    text: &'d str,
    at: usize,
}

/// Documents that are nested deeper are not of this kind.
const DEEPEST: usize = 128;
const ENDS: &str = "it ends too early";

impl<'d> Reader<'d> {
    fn peek(&mut self) -> Result<u8, &'static str> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied().ok_or(ENDS)
    }

    /// Passes over a byte, if it is this one.
    fn is_next(&mut self, byte: u8) -> Result<bool, &'static str> {
        let is_next = self.peek()? == byte;
        self.at += usize::from(is_next);
        Ok(is_next)
    }

    fn node(&mut self, depth: usize) -> Result<Node<'d>, &'static str> {
        if depth > DEEPEST {
            return Err("it is nested too deeply");
        }
        let first = self.peek()?;
        let start = self.at;
        let kind = match first {
            b'{' => self.object(depth)?,
            b'[' => self.list(depth)?,
            b'"' => NodeKind::Text(self.string()?),
            b't' => self.word("true", NodeKind::Bool(true)),
            b'f' => self.word("false", NodeKind::Bool(false)),
            b'n' => self.word("null", NodeKind::Null),
            _ => {
                let rest = &self.text[start..];
                let is_end = |c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace();
                let number = &rest[..rest.find(is_end).unwrap_or(rest.len())];
                self.word(number, NodeKind::Number(number))
            }
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn word(&mut self, word: &str, kind: NodeKind<'d>) -> NodeKind<'d> {
        self.at = (self.at + word.len()).min(self.text.len());
        kind
    }

    fn object(&mut self, depth: usize) -> Result<NodeKind<'d>, &'static str> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.is_next(b'}')? {
            self.is_next(b',')?;
            self.peek()?;
            let name = self.string()?;
            self.is_next(b':')?;
            members.push((name, self.node(depth + 1)?));
        }
        Ok(NodeKind::Object(members))
    }

    fn list(&mut self, depth: usize) -> Result<NodeKind<'d>, &'static str> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.is_next(b']')? {
            self.is_next(b',')?;
            items.push(self.node(depth + 1)?);
        }
        Ok(NodeKind::List(items))
    }

    fn string(&mut self) -> Result<Cow<'d, str>, &'static str> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while *bytes.get(at).ok_or(ENDS)? != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        self.at = at + 1;
        let inside = &self.text[start + 1..at];
        match inside.contains('\\') {
            false => Ok(inside.into()),
            // Half a surrogate pair, for instance.
            true => serde_json::from_str::<String>(&self.text[start..=at])
                .map(Cow::Owned)
                .map_err(|_| "a text has an escape that stands for no character"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_places() {
        let text = r#" { "a\n" : [ 1.5e3 , true,null ], "b": "x\"y" , "b": {} } "#;
        let node = Node::of(text.as_bytes()).unwrap();
        assert_eq!((node.start, node.end), (1, text.len() - 1));
        let NodeKind::Object(members) = &node.kind else { panic!("{node:?}") };
        let names: Vec<_> = members.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a\n", "b", "b"]);
        let NodeKind::List(items) = &members[0].1.kind else { panic!("{node:?}") };
        let places: Vec<_> = items.iter().map(|node| &text[node.start..node.end]).collect();
        assert_eq!(places, ["1.5e3", "true", "null"]);
        assert_eq!(members[1].1.as_str(), Some("x\"y"));
        assert_eq!(members[2].1.kind, NodeKind::Object(vec![]));
    }

    #[test]
    fn errors_of_invalid_documents_have_a_position() {
        let error = |text: &[u8]| Node::of(text).map(|_| ()).map_err(|(at, _)| at);
        assert_eq!(error(b"[1,\n  x]"), Err(6));
        assert_eq!(error(b"{\"a\": "), Err(5));
        assert_eq!(error(b"[\"\xff\"]"), Err(2));
        assert_eq!(error(b"[\"\\ud800\"]"), Err(9));
        assert!(error(b"").is_err());
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(error(deep.as_bytes()), Err(DEEPEST + 1));
    }
}
