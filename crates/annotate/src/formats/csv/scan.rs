//! Finds records and fields in delimited text without copying them.

use memchr::{memchr, memchr_iter};

use crate::formats::{last_line_end, line_end};

/// How fields are separated and quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
}

/// A record, as offsets from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The end of its content, before CR LF or LF.
    pub(crate) content: usize,
    /// The start of the next record.
    pub(crate) next: usize,
    /// Number of fields, at least 1.
    pub(crate) fields: usize,
    pub(crate) quotes: Quotes,
    /// The end of the bytes that decide where the record ends. They may be behind it, but not behind `next` unless
    /// quotes are irregular.
    seen: usize,
}

impl Record {
    /// A record with regular quotes.
    #[inline(always)]
    pub(crate) fn regular(content: usize, next: usize, fields: usize) -> Self {
        Self { content, next, fields, quotes: Quotes::Regular, seen: next }
    }
}

/// Whether the quotes of a record can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    Regular,
    /// A quote was still open at the end of the input.
    Open,
    /// There is text between a closing quote and the next delimiter.
    TextBehind,
}

/// Splits the record at the beginning of `data` into fields: `field` gets the number, the start and the end of each
/// field, quotes included. `None` if the record is not complete.
///
/// A quote is special only at the beginning of a field, and doubled quotes only inside a quoted field. Text between a
/// closing quote and the next delimiter is damage. It belongs to the field if the quotes are on one line. Otherwise the
/// first quote was most likely a character of its field, so the record ends with that quote's line.
pub(crate) fn record(
    data: &[u8],
    end: bool,
    dialect: Dialect,
    mut field: impl FnMut(usize, usize, usize),
) -> Option<Record> {
    let (content, next) = line_end(data, end)?;
    let line = &data[..content];
    if let Some(quote) = dialect.quote
        && memchr(quote, line).is_some()
    {
        return quoted_record(data, end, dialect.delimiter, quote, field);
    }
    let (mut from, mut fields) = (0, 0);
    for at in memchr_iter(dialect.delimiter, line) {
        field(fields, from, at);
        fields += 1;
        from = at + 1;
    }
    field(fields, from, content);
    Some(Record::regular(content, next, fields + 1))
}

/// Like `record`, for a record with quotes, whose fields may contain line ends.
fn quoted_record(
    data: &[u8],
    end: bool,
    delimiter: u8,
    quote: u8,
    mut field: impl FnMut(usize, usize, usize),
) -> Option<Record> {
    let (mut from, mut fields, mut quotes, mut seen) = (0, 0, Quotes::Regular, 0);
    loop {
        let mut at = from;
        if data.get(from) == Some(&quote) {
            match closing_quote(data, from + 1, quote) {
                Some(close) => {
                    at = close + 1;
                    let rest = &data[at..];
                    let len = memchr::memchr2(delimiter, b'\n', rest);
                    if len.is_none() && !end {
                        return None;
                    }
                    let len = len.unwrap_or(rest.len());
                    if !rest[..len].trim_ascii().is_empty() {
                        quotes = Quotes::TextBehind;
                        if let Some(line) = memchr(b'\n', &data[from..close]) {
                            seen = (at + len + 1).min(data.len());
                            at = from + line;
                        }
                    }
                }
                None if end => {
                    field(fields, from, data.len());
                    let (content, next) = (data.len(), data.len());
                    let (fields, quotes) = (fields + 1, Quotes::Open);
                    return Some(Record { content, next, fields, quotes, seen: next });
                }
                None => return None,
            }
        }
        let rest = &data[at..];
        match memchr::memchr2(delimiter, b'\n', rest) {
            Some(len) if rest[len] == delimiter => {
                field(fields, from, at + len);
                fields += 1;
                from = at + len + 1;
            }
            found => {
                if found.is_none() && !end {
                    return None;
                }
                let stop = at + found.unwrap_or(rest.len());
                let cr = stop > from && data[stop - 1] == b'\r';
                let content = stop - usize::from(cr);
                field(fields, from, content);
                let next = stop + usize::from(found.is_some());
                let (fields, seen) = (fields + 1, seen.max(next));
                return Some(Record { content, next, fields, quotes, seen });
            }
        }
    }
}

/// The position of the quote that closes a field whose content begins at `at`; doubled quotes are content.
fn closing_quote(data: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at += memchr(quote, data.get(at..)?)?;
        if data.get(at + 1) != Some(&quote) {
            return Some(at);
        }
        at += 2;
    }
}

/// The end of the last complete record in `data`, which begins with a record; 0 if none is complete. A line without
/// quotes is a record, so only lines with quotes are parsed. The bytes that decide where records end are not cut off.
pub(crate) fn cut(data: &[u8], dialect: Dialect) -> usize {
    let (mut at, mut seen, mut safe) = (0, 0, 0);
    if let Some(quote) = dialect.quote {
        while let Some(found) = memchr(quote, &data[at..]) {
            let line = at + last_line_end(&data[at..at + found]);
            let next = quoted_record(&data[line..], false, dialect.delimiter, quote, |_, _, _| {});
            if line >= seen {
                safe = line;
            }
            let Some(record) = next else { return safe };
            seen = seen.max(line + record.seen);
            at = line + record.next;
            if at >= seen {
                safe = at;
            }
        }
    }
    let last = at + last_line_end(&data[at..]);
    if last >= seen { last } else { safe }
}

/// The content of a field without its outer quotes. Doubled quotes inside stay doubled, which does not matter for
/// addresses.
pub(crate) fn unquoted(field: &[u8], quote: Option<u8>) -> &[u8] {
    let (from, to) = unquoted_place(field, (0, field.len()), quote);
    &field[from..to]
}

/// The range of the unquoted content of the field at `from..to` in `data`.
#[inline(always)]
pub(crate) fn unquoted_place(
    data: &[u8],
    (from, to): (usize, usize),
    quote: Option<u8>,
) -> (usize, usize) {
    match quote {
        Some(quote) if to - from > 1 && data[from] == quote && data[to - 1] == quote => {
            (from + 1, to - 1)
        }
        _ => (from, to),
    }
}

/// The content of a field as text, doubled quotes made single.
pub(crate) fn text(field: &[u8], quote: Option<u8>) -> String {
    let inner = unquoted(field, quote);
    let text = String::from_utf8_lossy(inner);
    match quote {
        Some(quote) if inner.len() < field.len() => {
            let quote = char::from(quote);
            text.replace(&format!("{quote}{quote}"), &quote.to_string())
        }
        _ => text.into_owned(),
    }
}

/// Appends a value as a field, quoted if necessary. In a dialect without quotes, delimiters and line ends become
/// blanks, or underscores if the delimiter is a blank.
pub(crate) fn write_field(value: &[u8], dialect: Dialect, out: &mut Vec<u8>) {
    let Dialect { delimiter, quote } = dialect;
    let breaks = |b: u8| b == delimiter || b == b'\n' || b == b'\r';
    let instead = if delimiter == b' ' { b'_' } else { b' ' };
    let space = |byte: u8| if breaks(byte) { instead } else { byte };
    match quote {
        // As in exports: tabs and line ends become spaces, and only a quote at the beginning needs quotes.
        Some(quote) if delimiter == b'\t' => {
            let quotes = (value.first() == Some(&quote)).then_some(quote);
            out.extend(quotes);
            for &byte in value {
                out.push(space(byte));
                out.extend(quotes.filter(|quote| *quote == byte));
            }
            out.extend(quotes);
        }
        Some(quote) if value.iter().any(|&b| breaks(b) || b == quote) => {
            out.push(quote);
            for &byte in value {
                if byte == quote {
                    out.push(quote);
                }
                out.push(byte);
            }
            out.push(quote);
        }
        Some(_) => out.extend_from_slice(value),
        None => out.extend(value.iter().map(|&b| space(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: Dialect = Dialect { delimiter: b',', quote: Some(b'"') };

    #[test]
    fn values_in_fields_separated_by_tabs_are_those_of_exports() {
        let tabs = Dialect { delimiter: b'\t', quote: Some(b'"') };
        for (value, written) in
            [("a\tb\r\nc", "a b  c"), ("3\" pipe", "3\" pipe"), ("\"a\"\tb", "\"\"\"a\"\" b\"")]
        {
            let mut out = Vec::new();
            write_field(value.as_bytes(), tabs, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }

    fn fields(data: &[u8], end: bool) -> Option<(Vec<String>, Record)> {
        let mut found = Vec::new();
        let record =
            record(data, end, CSV, |_, from, to| found.push(text(&data[from..to], CSV.quote)))?;
        Some((found, record))
    }

    #[test]
    fn plain_and_quoted() {
        for (data, expected, content, next) in [
            ("a,b\nc", vec!["a", "b"], 3, 4),
            ("a,b\r\nc", vec!["a", "b"], 3, 5),
            (",\n", vec!["", ""], 1, 2),
            ("\"a,\n\"\"b\"\"\",c\r\n", vec!["a,\n\"b\"", "c"], 12, 14),
            ("a\"b,c\n", vec!["a\"b", "c"], 5, 6),
            ("\"\",\"\"\n", vec!["", ""], 5, 6),
            ("\"a\"\r\n", vec!["a"], 3, 5),
        ] {
            let (found, record) = fields(data.as_bytes(), false).unwrap();
            assert_eq!(found, expected, "{data:?}");
            assert_eq!((record.content, record.next), (content, next), "{data:?}");
        }
    }

    #[test]
    fn incomplete_records_wait_and_open_quotes_end_with_the_input() {
        for data in ["a,b", "\"a\n", "\"a\"", "\"a\"\"\n", "x,\"\n\n"] {
            assert_eq!(fields(data.as_bytes(), false), None, "{data:?}");
        }
        let (found, record) = fields(b"x,\"a\nb", true).unwrap();
        assert_eq!((found.len(), record.next, record.quotes), (2, 6, Quotes::Open));
    }

    /// A part that ends before the quote that shows the damage would be read otherwise.
    #[test]
    fn cuts_keep_what_decides() {
        let text = b"a,b\nx,\"s-H\ny,z\nv,Am\"ster\nc,d\n";
        let records = [4, 11, 15, 25, 29];
        for end in 0..=text.len() {
            let cut = cut(&text[..end], CSV);
            assert!(cut == 0 || records.contains(&cut), "{end}: {cut}");
            assert!(cut <= 4 || cut >= 25, "{end}: {cut}");
        }
        assert_eq!(cut(text, CSV), text.len());
    }

    /// Text behind a closing quote damages the record that began it, and no other.
    #[test]
    fn text_behind_a_closing_quote() {
        for (data, expected, next) in [
            ("\"a\"b,c\n", vec!["\"a\"b", "c"], 7),
            ("x,\"s-H\ny,Am\"ster\"dam\n", vec!["x", "\"s-H"], 7),
            ("x,\"s-H\r\ny,\"z\"\r\n", vec!["x", "\"s-H"], 8),
            ("\"a\nb\",\"c\nd,\"e\"\n", vec!["a\nb", "\"c"], 9),
        ] {
            let (found, record) = fields(data.as_bytes(), false).unwrap();
            assert_eq!(
                (found, record.next),
                (expected.iter().map(|t| t.to_string()).collect(), next)
            );
            assert_eq!(record.quotes, Quotes::TextBehind, "{data:?}");
        }
        for data in ["\"a\" ,b\n", "\"a\"\t\r\n", "\"a\nb\",c\n", "a\"b\"c,d\n"] {
            assert_eq!(
                fields(data.as_bytes(), false).unwrap().1.quotes,
                Quotes::Regular,
                "{data:?}"
            );
        }
    }

    proptest! {
        /// All values that are written can be read back.
        #[test]
        fn round_trip(values in proptest::collection::vec("[a,\"\r\n ]{0,6}", 1..5)) {
            let mut line = Vec::new();
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    line.push(b',');
                }
                write_field(value.as_bytes(), CSV, &mut line);
            }
            line.extend_from_slice(b"\r\nnext");
            let (found, record) = fields(&line, false).unwrap();
            prop_assert_eq!(found, values);
            prop_assert_eq!(record.next, line.len() - 4);
        }

        /// `record` and `quoted_record` agree on records without quotes, and fields tile records.
        #[test]
        fn tiles(data in "[a,\"\r\n]{1,30}", end: bool) {
            let data = data.as_bytes();
            let mut spans = Vec::new();
            if let Some(r) = record(data, end, CSV, |i, from, to| spans.push((i, from, to))) {
                prop_assert_eq!(r.fields, spans.len());
                prop_assert!(r.content <= r.next && r.next <= data.len() && r.next > 0);
                prop_assert_eq!(spans[0].1, 0);
                prop_assert_eq!(spans[spans.len() - 1].2, r.content);
                for pair in spans.windows(2) {
                    prop_assert_eq!(pair[0].2 + 1, pair[1].1);
                }
                if !data[..r.next].contains(&b'"') {
                    let mut careful = Vec::new();
                    let other = quoted_record(data, end, b',', b'"', |i, f, t| careful.push((i, f, t)));
                    prop_assert_eq!(other, Some(r));
                    prop_assert_eq!(careful, spans);
                }
            }
        }
    }
}
