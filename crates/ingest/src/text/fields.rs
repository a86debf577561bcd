//! Splits a line into fields.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr2};

/// The separator of the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    /// Runs of spaces and tabs. The last requested field takes the rest of the line.
    Blank,
    /// Every occurrence of this byte; spaces around fields are trimmed.
    Byte(u8),
}

/// Whether the line is blank or a comment. `semicolons`: those that begin with `;` are comments, too.
pub(crate) fn is_comment(line: &[u8], semicolons: bool) -> bool {
    match line.trim_ascii_start() {
        [] | [b'#', ..] | [b'/', b'/', ..] => true,
        [b';', ..] => semicolons,
        _ => false,
    }
}

/// Cuts `line` into `fields`, at most `limit` of them: of a blank-separated line the last then takes
/// the rest, of others the rest is in one field more, uncut.
pub(crate) fn split<'a>(
    line: &'a [u8],
    delimiter: Delimiter,
    limit: usize,
    fields: &mut Vec<&'a [u8]>,
) {
    fields.clear();
    match delimiter {
        Delimiter::Blank => split_blank(line, limit, fields),
        Delimiter::Byte(byte) => {
            let mut rest = line;
            while fields.len() < limit {
                let Some(at) = memchr(byte, rest) else { break };
                fields.push(rest[..at].trim_ascii());
                rest = &rest[at + 1..];
            }
            fields.push(rest.trim_ascii());
        }
    }
}

fn split_blank<'a>(line: &'a [u8], limit: usize, fields: &mut Vec<&'a [u8]>) {
    let (mut at, mut field_start, mut joins) = (0, 0, false);
    while let Some((start, end)) = next_token(line, at) {
        // `start - end` and `start to end` are one field.
        let dash = !fields.is_empty()
            && matches!(&line[start..end], b"-" | b"to" | b"TO")
            && next_token(line, end)
                .is_some_and(|(start, end)| has_address_marks(&line[start..end]));
        if fields.len() >= limit || joins || dash {
            fields.pop();
        } else {
            field_start = start;
        }
        fields.push(&line[field_start..end]);
        joins = dash;
        at = end;
    }
}

/// The next run of non-blanks at or after `at`; none at the end of the line or where a comment begins.
fn next_token(line: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = at + line[at..].iter().position(|&b| !b.is_ascii_whitespace())?;
    let token = &line[start..];
    let len = memchr2(b' ', b'\t', token).unwrap_or(token.len());
    (!is_comment(token, true)).then_some((start, start + len))
}

fn has_address_marks(token: &[u8]) -> bool {
    token.first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':')
        && token.iter().any(|b| matches!(b, b'.' | b':'))
}

/// Reads records that hold quotes: a quoted field may hold the delimiter, doubled quotes and, for a
/// few lines, newlines.
#[derive(Default)]
pub(crate) struct Quoted {
    out: Vec<u8>,
    ends: Vec<usize>,
}

/// The result of [`Quoted::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quote {
    /// A record of this many bytes, newline included.
    Record(usize),
    /// The input ends within quotes.
    Open,
    /// The quotes are not closed within [`Quoted::MAX_LINES`].
    Unclosed,
    /// Text follows a closing quote: most likely the opening one is part of a value.
    Behind,
}

/// Where in a record with quotes a byte stands.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Begin,
    Plain,
    Within,
    /// Behind a quote that is closing, unless another one follows.
    Behind,
}

impl Part {
    fn next(self, byte: u8, delimiter: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Within, b'"') => Self::Behind,
            (Self::Within, _) | (Self::Behind, b'"') => Self::Within,
            (_, b'\n') => Self::Begin,
            (_, byte) if byte == delimiter => Self::Begin,
            (Self::Begin, b'"') => Self::Within,
            (Self::Begin | Self::Plain, _) => Self::Plain,
            (Self::Behind, byte) if byte.is_ascii_whitespace() => Self::Behind,
            (Self::Behind, _) => return None,
        })
    }
}

impl Quoted {
    /// A quoted field that spans more lines than this has most likely lost its closing quote. It also
    /// bounds how often a line is looked at.
    const MAX_LINES: usize = 16;

    /// Reads one record from the front of `input`.
    pub(crate) fn read(&mut self, input: &[u8], delimiter: u8) -> Quote {
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        let (mut taken, mut out_len, mut ends_len) = (0, 0, 0);
        let mut part = Part::Begin;
        for line in input.split_inclusive(|&b| b == b'\n').take(Self::MAX_LINES) {
            taken += line.len();
            match line.iter().try_fold(part, |part, &byte| part.next(byte, delimiter)) {
                Some(next) => part = next,
                None => {
                    self.ends.clear();
                    return Quote::Behind;
                }
            }
            self.out.resize(out_len + line.len() + 1, 0);
            self.ends.resize(ends_len + line.len() + 1, 0);
            let (mut done, written, ended) = self.step(&mut reader, line, out_len, ends_len);
            (out_len, ends_len) = (out_len + written, ends_len + ended);
            if !done && !line.ends_with(b"\n") {
                // The last line of the input may lack its newline.
                let (now, written, ended) = self.step(&mut reader, b"\n", out_len, ends_len);
                done = now;
                (out_len, ends_len) = (out_len + written, ends_len + ended);
            }
            if done {
                self.out.truncate(out_len);
                self.ends.truncate(ends_len);
                return Quote::Record(taken);
            }
        }
        self.ends.clear();
        match input[..taken].iter().filter(|&&b| b == b'\n').count() {
            Self::MAX_LINES => Quote::Unclosed,
            _ => Quote::Open,
        }
    }

    fn step(
        &mut self,
        reader: &mut Reader,
        line: &[u8],
        out_len: usize,
        ends_len: usize,
    ) -> (bool, usize, usize) {
        let (result, _, written, ended) =
            reader.read_record(line, &mut self.out[out_len..], &mut self.ends[ends_len..]);
        (result == ReadRecordResult::Record, written, ended)
    }

    /// The fields of the record just read.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.out[start..end].trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str, delimiter: Delimiter, limit: usize) -> Vec<String> {
        let mut fields = Vec::new();
        split(line.as_bytes(), delimiter, limit, &mut fields);
        fields.iter().map(|f| String::from_utf8(f.to_vec()).unwrap()).collect()
    }

    #[test]
    fn blanks() {
        let blank = |line, limit| cut(line, Delimiter::Blank, limit);
        assert_eq!(blank("  a\tb  c ", 9), ["a", "b", "c"]);
        assert_eq!(blank("a b c  d", 2), ["a", "b c  d"]);
        assert_eq!(blank("a b # c", 9), ["a", "b"]);
        assert_eq!(blank("a b c ; d", 2), ["a", "b c"]);
        assert_eq!(blank("a x#y http://z // d", 9), ["a", "x#y", "http://z"]);
        assert_eq!(blank("10.0.0.1 - 10.0.0.2 x", 9), ["10.0.0.1 - 10.0.0.2", "x"]);
        assert_eq!(blank("10.0.0.1 to 10.0.0.2 x", 9), ["10.0.0.1 to 10.0.0.2", "x"]);
        assert_eq!(blank("10.0.0.1 - x", 9), ["10.0.0.1", "-", "x"]);
        assert_eq!(blank("- 10.0.0.1", 9), ["-", "10.0.0.1"]);
        assert_eq!(blank("", 9), [""; 0]);
    }

    #[test]
    fn bytes() {
        assert_eq!(cut("a, b ,,c", Delimiter::Byte(b','), 9), ["a", "b", "", "c"]);
        assert_eq!(cut("a,b,c,d", Delimiter::Byte(b','), 2), ["a", "b", "c,d"]);
        assert_eq!(cut("a b\t", Delimiter::Byte(b'\t'), 2), ["a b", ""]);
    }

    #[test]
    fn comments() {
        for line in ["", "  ", "# x", " ;x", "//", "\t// x"] {
            assert!(is_comment(line.as_bytes(), true), "{line:?}");
        }
        assert!(!is_comment(b"/ x", true) && !is_comment(b"10.0.0.0/8 # x", true));
        assert!(!is_comment(b" ;x", false) && is_comment(b"#;x", false));
    }

    #[test]
    fn quotes() {
        let mut quoted = Quoted::default();
        let mut read = |text: &str| {
            let result = quoted.read(text.as_bytes(), b',');
            let fields: Vec<_> =
                quoted.fields().map(|f| String::from_utf8(f.to_vec()).unwrap()).collect();
            (result, fields)
        };
        let (result, fields) = read("a,\"b, \"\"c\"\"\",d\r\nnext");
        assert_eq!(result, Quote::Record("a,\"b, \"\"c\"\"\",d\r\n".len()));
        assert_eq!(fields, ["a", "b, \"c\"", "d"]);
        let (result, fields) = read("a,\"b\nc\"");
        assert_eq!((result, fields), (Quote::Record(7), vec!["a".into(), "b\nc".into()]));
        // A quote within an unquoted field is a character like others.
        assert_eq!(read("a,3\" pipe\nb").1, ["a", "3\" pipe"]);
        // Blanks around quotes do not matter, other text behind them does.
        assert_eq!(read("a,\"b\" \t,c\n").1, ["a", "b", "c"]);
        assert_eq!(read("a,\"b\"c,d\n").0, Quote::Behind);
        assert_eq!(read("a,\"b\n1,c\"d\"e\n").0, Quote::Behind);
        assert_eq!(read("a,\"b").0, Quote::Open);
        assert_eq!(read("a,\"b\nc\n").0, Quote::Open);
        assert_eq!(read(&format!("\"{}", "b\n".repeat(20))).0, Quote::Unclosed);
    }
}
