//! Splits the input into rows.

use memchr::{memchr, memrchr};

use super::fields::{Delimiter, Quote, Quoted, is_comment, split};

/// A longer line is damage. This bounds the buffer.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// The result of reading the beginning of the input. Lengths count bytes, including the newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// An incomplete line.
    Need,
    /// A blank line or a comment.
    Comment(usize),
    /// A row; its fields were put into the list.
    Fields(usize),
    /// A row with quotes, of this many bytes and lines; its fields are in [`Rows::quoted`].
    Quoted(usize, u64),
    /// A line that cannot be read.
    Bad(usize, &'static str),
    /// A line of at least [`MAX_LINE`] bytes, whose end may not be in sight.
    TooLong,
}

/// Reads rows.
pub(crate) struct Rows {
    pub(crate) delimiter: Delimiter,
    /// Fields wanted of a line; see [`split`].
    pub(crate) limit: usize,
    /// Whether lines that begin with `;` are comments.
    pub(crate) semicolons: bool,
    pub(crate) quoted: Quoted,
}

impl Rows {
    pub(crate) fn new(delimiter: Delimiter, limit: usize) -> Self {
        Self { delimiter, limit, semicolons: true, quoted: Quoted::default() }
    }

    pub(crate) fn with_semicolons(self, semicolons: bool) -> Self {
        Self { semicolons, ..self }
    }

    /// Reads the row at the beginning of `input`, which is not empty; `last` means that this is all input.
    pub(crate) fn next<'a>(
        &mut self,
        input: &'a [u8],
        last: bool,
        fields: &mut Vec<&'a [u8]>,
    ) -> Row {
        let window = &input[..input.len().min(MAX_LINE)];
        let (line, len) = match memchr(b'\n', window) {
            Some(end) => (&input[..end], end + 1),
            None if input.len() >= MAX_LINE => return Row::TooLong,
            None if last => (input, input.len()),
            None => return Row::Need,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if is_comment(line, self.semicolons) {
            return Row::Comment(len);
        }
        if let Delimiter::Byte(byte) = self.delimiter
            && memchr(b'"', line).is_some()
        {
            return self.next_quoted(input, len, last, byte);
        }
        split(line, self.delimiter, self.limit, fields);
        Row::Fields(len)
    }

    fn next_quoted(&mut self, input: &[u8], line: usize, last: bool, delimiter: u8) -> Row {
        let whole = match last {
            true => input.len(),
            false => memrchr(b'\n', input).map_or(line, |at| at + 1),
        };
        match self.quoted.read(&input[..whole], delimiter) {
            Quote::Record(len) => {
                let newlines = input[..len - 1].iter().filter(|&&b| b == b'\n').count();
                Row::Quoted(len, 1 + newlines as u64)
            }
            Quote::Open if !last => Row::Need,
            // The next lines are most likely sound: only this line is dropped.
            Quote::Open | Quote::Unclosed => Row::Bad(line, "a quote is not closed"),
            Quote::Behind => {
                Row::Bad(line, "text behind a closing quote: write a quote within quotes twice")
            }
        }
    }

    /// Calls `visit` with the byte and the fields of every readable row of `head`, until it returns `false`.
    pub(crate) fn for_each(&mut self, head: &[u8], mut visit: impl FnMut(usize, &[&[u8]]) -> bool) {
        let mut fields = Vec::new();
        let mut at = 0;
        while at < head.len() {
            let more = match self.next(&head[at..], true, &mut fields) {
                Row::Need => return,
                Row::Comment(len) | Row::Bad(len, _) => {
                    at += len;
                    true
                }
                Row::Fields(len) => {
                    at += len;
                    visit(at - len, &fields)
                }
                Row::Quoted(len, _) => {
                    at += len;
                    visit(at - len, &self.quoted.fields().collect::<Vec<_>>())
                }
                Row::TooLong => match memchr(b'\n', &head[at..]) {
                    Some(end) => {
                        at += end + 1;
                        true
                    }
                    None => return,
                },
            };
            if !more {
                return;
            }
        }
    }
}
