//! The first line of a text, if it names the columns.

use super::cells::is_key;
use super::fields::Delimiter;
use super::layout::parse_int;
use super::roles::SampleRow;
use crate::Format;

/// See [`Sink::noted`](crate::Sink::noted).
pub(super) const MISFIT: &str = "headers with another number of names than the rows have fields, which name no column \
                                 (--names gives names)";

/// The rows without the first, if that may be a header: not if its first address stands where another row's does.
pub(super) fn without_header(rows: &[SampleRow]) -> &[SampleRow] {
    let place = |row: &SampleRow| row.iter().position(|field| is_key(field));
    match rows {
        [first, rest @ ..] if !rest.is_empty() => match place(first) {
            Some(at) if rest.iter().any(|row| place(row) == Some(at)) => rows,
            _ => rest,
        },
        _ => rows,
    }
}

/// Whether the first row names the columns: a word stands in the column of the addresses, and no address and no number
/// in any. A line that is damaged is none.
pub(super) fn is_header(row: &SampleRow, addresses: usize, alone: bool, format: Format) -> bool {
    let Some(field) = row.get(addresses) else { return false };
    let is_word = field.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && !field.contains(&b':')
        // `l0.0.0.0/8` is a mistake; `ip.src` and `IP/Mask` are names.
        && field.iter().filter(|b| b.is_ascii_digit()).count() * 2 < field.len();
    // A single line of a list that is no address is more likely a wrong line than a name.
    is_word && has_no_datum(row) && (!alone || matches!(format, Format::Csv | Format::Tsv))
}

fn has_no_datum(row: &SampleRow) -> bool {
    let is_datum =
        |field: &Vec<u8>| is_key(field) || parse_int(field).is_some_and(|_| !field.is_empty());
    !row.iter().any(is_datum)
}

/// The names in a comment above the rows, as Zeek (`#fields`, tabs) and IIS (`#Fields:`, blanks) write them, one for
/// each field of the rows.
pub(super) fn fields_comment(head: &[u8], body: &[SampleRow]) -> Option<Vec<String>> {
    let comments = head.split(|&byte| byte == b'\n').take_while(|line| line.starts_with(b"#"));
    let names = comments.filter_map(|line| {
        line.strip_prefix(b"#fields\t").or_else(|| line.strip_prefix(b"#Fields:"))
    });
    let names = String::from_utf8_lossy(names.last()?).into_owned();
    let names: Vec<String> = names.split_ascii_whitespace().map(str::to_owned).collect();
    body.iter().any(|row| row.len() == names.len()).then_some(names)
}

/// The names in the first line, one for each field of the rows below; `None` if their numbers differ.
///
/// Names in a text separated by blanks may have blanks in them (`Start IP  End IP`): then two blanks separate them.
pub(super) fn names(
    line: &[u8],
    first: &SampleRow,
    body: &[SampleRow],
    delimiter: Delimiter,
) -> Option<Vec<String>> {
    let text = |fields: Vec<&[u8]>| {
        fields
            .into_iter()
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect::<Vec<_>>()
    };
    let len = |row: &SampleRow| {
        let empty = row.iter().rev().take_while(|field| field.is_empty()).count();
        // A delimiter at the end of each line is no further field.
        row.len() - if matches!(delimiter, Delimiter::Byte(_)) { empty } else { 0 }
    };
    let fits = |names: usize| body.iter().any(|row| (len(row)..=row.len()).contains(&names));
    let words = text(first.iter().map(Vec::as_slice).collect());
    let wide = match delimiter {
        Delimiter::Blank => text(split_at_gaps(line)),
        Delimiter::Byte(_) => Vec::new(),
    };
    let least = body.iter().map(Vec::len).min().unwrap_or(words.len());
    let words_len = len(first).max(1);
    let candidates = [(words_len == least, &words), (wide.len() == least, &wide)];
    if let Some((_, names)) = candidates.iter().find(|(is_least, _)| *is_least) {
        return Some((*names).clone());
    }
    if body.is_empty() || fits(words_len) || fits(words.len()) {
        return Some(words);
    }
    fits(wide.len()).then_some(wide)
}

/// The parts of a line between tabs or runs of two blanks or more.
fn split_at_gaps(line: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < line.len() {
        let gap = line[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if gap > 1 || line[at] == b'\t' {
            parts.push(&line[start..at]);
            start = at + gap;
        }
        at += gap.max(1);
    }
    parts.push(&line[start..]);
    parts.retain(|part| !part.trim_ascii().is_empty());
    parts.into_iter().map(<[u8]>::trim_ascii).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_field() {
        let row = |line: &str| {
            line.split_whitespace().map(|field| field.as_bytes().to_vec()).collect::<SampleRow>()
        };
        let found = |line: &str, body: &[&str]| {
            let body: Vec<SampleRow> = body.iter().map(|line| row(line)).collect();
            names(line.as_bytes(), &row(line), &body, Delimiter::Blank).map(|names| names.join("|"))
        };
        let gaps = "Start IP  End IP\tCountry";
        assert_eq!(
            found(gaps, &["1.0.0.0 1.0.0.255 AU"]).as_deref(),
            Some("Start IP|End IP|Country")
        );
        assert_eq!(found("prefix  origin", &["::/0 7"]).as_deref(), Some("prefix|origin"));
        assert_eq!(found("Start IP End IP Country", &["1.0.0.0 1.0.0.255 AU"]), None);
        assert_eq!(
            found("prefix cc city", &["::/0 AU New York", "::/1 DE Ulm"]).as_deref(),
            Some("prefix|cc|city")
        );
    }

    #[test]
    fn delimiters_at_the_end_are_no_fields() {
        let row = |text: &str| {
            text.split(',').map(|field| field.as_bytes().to_vec()).collect::<SampleRow>()
        };
        let found = |first: &str, body: &str| {
            names(first.as_bytes(), &row(first), &[row(body)], Delimiter::Byte(b',')).is_some()
        };
        assert!(
            found("a,b", "1,2")
                && found("a,b", "1,2,")
                && found("a,b,", "1,2")
                && found("a,b,c", "1,2,")
        );
        assert!(!found("a,b", "1,2,3") && !found("a,b,c", "1,2"));
    }
}
