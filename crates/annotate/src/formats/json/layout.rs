//! How objects follow each other in an input: by lines, in arrays, or over several lines each.

use super::JsonLines;
use super::around::{end_within, opens_array};
use super::between::Between;
use super::find::{Found, find};
use super::shape::LineTemplate;
use crate::block::Block;
use crate::fault::Fault;
use crate::formats::{SAMPLE_BYTES, line_end, set};
use crate::pipeline::keys::KeySink;

/// The object around an array of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Around {
    /// The input has none.
    None,
    /// The next object may be one.
    Next,
    /// The decoder is within one.
    Within,
}

/// How objects follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectLayout {
    Lines,
    /// Objects in arrays, or of several lines.
    Values,
}

impl JsonLines {
    /// Detects the shape from the beginning of the input; `None` if more input is needed.
    pub(super) fn tell(&mut self, data: &[u8], end: bool) -> Option<ObjectLayout> {
        let text = data.trim_ascii_start();
        match text.first() {
            Some(b'[') if begins_array(text) => return Some(ObjectLayout::Values),
            Some(b'[') if text[1..].trim_ascii_start().is_empty() && !end => return None,
            None if !end => return None,
            Some(b'{') => {}
            _ => return Some(ObjectLayout::Lines),
        }
        if let Some(array) = opens_array(text) {
            let has_columns = |this: &mut Self, text: &[u8], len: usize| {
                let before = &mut LineTemplate::default();
                find(text, len, &this.names, &mut this.found, before).is_ok()
                    && this.found.iter().any(Found::is_present)
            };
            let is_long = end || text.len() >= SAMPLE_BYTES;
            let inside = text[array + 1..].trim_ascii_start();
            match (object_end(text), object_end(inside)) {
                (None, _) | (_, None) if !is_long => return None,
                (Some(whole), _) if has_columns(self, text, whole) => {}
                (_, Some(first)) if has_columns(self, inside, first) => {
                    self.around = Around::Next;
                    return Some(ObjectLayout::Values);
                }
                _ => {}
            }
        }
        let (content, _) = line_end(text, end)?;
        let before = &mut LineTemplate::default();
        if find(text, content, &self.names, &mut self.found, before).is_ok() {
            return Some(ObjectLayout::Lines);
        }
        match object_end(text) {
            Some(len) if len > content && len <= SAMPLE_BYTES => Some(ObjectLayout::Values),
            None if !end && text.len() < SAMPLE_BYTES => None,
            _ => Some(ObjectLayout::Lines),
        }
    }

    pub(super) fn lines<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = data[start..start + content].trim_ascii_end();
            if line.is_empty() {
                block.pass(start, start + next);
            } else {
                set(&self.any);
                self.object(data, (start, start + line.len(), start + next), block)?;
            }
            start += next;
        }
        Ok(start)
    }

    pub(super) fn values<K: KeySink>(
        &mut self,
        data: &[u8],
        end: bool,
        block: &mut Block<K>,
    ) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() && start < data.len() {
            let rest = &data[start..];
            let (passed, wrong) = self.between.pass(rest);
            if passed > 0 {
                block.pass(start, start + passed);
                start += passed;
                self.stray = false;
            }
            if let Some(what) = wrong {
                set(&self.any);
                self.stray = false;
                self.stray(start, start + 1, || what.to_owned(), block)?;
                start += 1;
            }
            if passed > 0 || wrong.is_some() {
                continue;
            }
            set(&self.any);
            if self.around == Around::Within && !self.between.is_open() {
                // The other members of the object around the array.
                match end_within(rest) {
                    Some(len) => {
                        block.pass(start, start + len);
                        start += len;
                    }
                    None if end => return Err(Fault::OpenArray { at: start }),
                    None => break,
                }
                (self.around, self.between) = (Around::Next, Between::default());
                continue;
            }
            if self.around == Around::Next
                && let Some(len) = opens_array(rest)
            {
                block.pass(start, start + len);
                start += len;
                self.around = Around::Within;
                continue;
            }
            if rest[0] == b'{' {
                self.stray = false;
                match object_end(rest) {
                    Some(len) if self.between.value() => {
                        self.object(data, (start, start + len, start + len), block)?;
                        start += len;
                    }
                    Some(len) => {
                        let what = || "no comma before this object".to_owned();
                        self.stray(start, start + len, what, block)?;
                        start += len;
                    }
                    None if end => {
                        let what = || "an object is open at the end of the input".to_owned();
                        self.stray(start, data.len(), what, block)?;
                        start = data.len();
                    }
                    None => break,
                }
                continue;
            }
            let len = rest.iter().position(|&b| ends_stray(b)).unwrap_or(rest.len());
            if std::mem::replace(&mut self.stray, true) {
                block.pass(start, start + len);
            } else {
                self.between.value();
                self.stray(start, start + len, || "not a JSON object".to_owned(), block)?;
            }
            start += len;
        }
        let is_open = self.between.is_open() || self.around == Around::Within;
        if end && start == data.len() && is_open {
            return Err(Fault::OpenArray { at: start });
        }
        Ok(start)
    }
}

/// Whether the text begins like an array of objects, or like an empty array.
pub(in crate::formats) fn begins_array(text: &[u8]) -> bool {
    let Some(inside) = text.trim_ascii_start().strip_prefix(b"[") else { return false };
    matches!(inside.trim_ascii_start().first(), Some(b'{' | b']'))
}

/// Whether the byte ends text that is not an object.
fn ends_stray(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",[]{".contains(&byte)
}

/// The end of the object that begins at the first byte; `None` if it is not complete.
fn object_end(data: &[u8]) -> Option<usize> {
    data.strip_prefix(b"{").and_then(end_within).map(|len| len + 1)
}
