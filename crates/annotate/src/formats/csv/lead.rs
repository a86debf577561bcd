//! The lines before the rows: comments, and the lines in which Zeek and IIS name the columns.
//!
//! ```text
//!   # made by x            #separator \x09              #Software: Microsoft Internet Information Services
//!   src,n                  #fields  ts  id.orig_h       #Fields: date time c-ip
//!   192.0.2.1,1            #types   time  addr          2024-02-02 00:00:00 192.0.2.1
//! ```

use super::Csv;
use super::scan::{Dialect, Record};
use crate::Column;
use crate::formats::line_end;

/// Where the rows or their header begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) start: usize,
    /// The names of the columns, if the line at `start` is a directive.
    pub(super) directive: Option<Directive>,
}

/// A line that names the columns after a word of its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) names: Vec<String>,
    pub(super) dialect: Dialect,
}

/// The columns that the line names, if it is `#fields` of Zeek or `#Fields:` of IIS. Neither quotes its values.
pub(super) fn directive(line: &[u8]) -> Option<Directive> {
    let (delimiter, names) = match line.strip_prefix(b"#fields") {
        Some([delimiter, names @ ..]) if !delimiter.is_ascii_alphanumeric() => (*delimiter, names),
        _ => (b' ', line.strip_prefix(b"#Fields:")?.trim_ascii()),
    };
    let names = names.split(|byte| *byte == delimiter);
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    Some(Directive { names, dialect: Dialect { delimiter, quote: None } })
}

impl Csv {
    /// Finds the first line that is neither empty nor a comment; `None` if more input is needed. A comment directly
    /// before the first row is its header if it has as many fields and the row has an address, or if it has the names
    /// of the chosen columns. An input of comments alone begins with the first of them.
    pub(super) fn lead(&self, data: &[u8], end: bool) -> Option<Lead> {
        let mut comments: Option<(usize, usize)> = None;
        let mut at = 0;
        loop {
            at += data[at..].iter().position(|b| !b"\r\n".contains(b)).unwrap_or(data.len() - at);
            if at == data.len() && end {
                let start = comments.map_or(at, |(first, _)| first);
                return Some(Lead { start, directive: None });
            }
            let rest = &data[at..];
            let Some((content, next)) = line_end(rest, end) else {
                // A first row may be long, but a comment is a line.
                let is_row = rest.first().is_some_and(|first| *first != b'#');
                return (is_row && comments.is_none())
                    .then_some(Lead { start: at, directive: None });
            };
            let line = &rest[..content];
            if let Some(directive) = directive(line) {
                return Some(Lead { start: at, directive: Some(directive) });
            }
            if line[0] != b'#' {
                break;
            }
            comments = Some((comments.map_or(at, |(first, _)| first), at));
            at += next;
        }
        let start = match comments {
            Some((_, last)) if self.names_columns(&data[last..], &data[at..], end)? => last,
            _ => at,
        };
        Some(Lead { start, directive: None })
    }

    /// Whether a comment is the header of the row.
    fn names_columns(&self, comment: &[u8], row: &[u8], end: bool) -> Option<bool> {
        let delimiter = self.detect.then(|| self.delimiter(row, end)).flatten();
        let dialect =
            Dialect { delimiter: delimiter.unwrap_or(self.dialect.delimiter), ..self.dialect };
        let (names, row) =
            (Self::fields(comment, true, dialect)?, Self::fields(row, end, dialect)?);
        let is_chosen = |column: &Column| match column {
            Column::Name(name) => names.text.iter().any(|other| is_called(other, name)),
            Column::Number(_) => false,
        };
        let Record { fields, .. } = names.record;
        let fits = fields > 1 && fields == row.record.fields && self.holds_address(&row);
        Some(fits || self.columns.iter().any(is_chosen))
    }
}

/// Whether a name of the header is the one that was asked for. Whitespace around it is ignored, as it is around an
/// address, and a mark of comments before it.
pub(super) fn is_called(header: &str, name: &str) -> bool {
    header == name || header.trim() == name.trim() || header.trim_start_matches('#').trim() == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnnotateOptions, LogFormat};

    fn lead(text: &str, columns: &[&str]) -> (usize, Option<Vec<String>>) {
        let columns = columns.iter().map(|name| name.parse().unwrap()).collect();
        let options = AnnotateOptions { columns, ..AnnotateOptions::default() };
        let csv = Csv::new(LogFormat::Csv, &options, Vec::new()).unwrap();
        let Lead { start, directive } = csv.lead(text.as_bytes(), true).unwrap();
        (start, directive.map(|directive| directive.names))
    }

    #[test]
    fn comments_and_headers() {
        for (text, columns, start) in [
            ("ip,n\n192.0.2.1,1\n", &[][..], 0),
            ("# made by x\nip,n\n192.0.2.1,1\n", &[], 12),
            ("\n# made by x\n\n192.0.2.1,1\n", &[], 14),
            ("# made by x\n#ip,n\n192.0.2.1,1\n", &[], 12),
            ("# made by x, y\nip,n\n192.0.2.1,1\n", &[], 15),
            ("#ip\n192.0.2.1\n", &[], 4),
            ("#ip\n192.0.2.1\n", &["ip"], 0),
            ("#1,192.0.2.1\n#2,192.0.2.2\n", &[], 0),
        ] {
            assert_eq!(lead(text, columns), (start, None), "{text:?}");
        }
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let zeek = "#separator \\x09\n#fields\tts\tid.orig_h\n#types\ttime\taddr\n";
        assert_eq!(lead(zeek, &[]), (16, names(&["ts", "id.orig_h"])));
        let iis = "#Software: x\r\n#Fields: date c-ip\r\n2024-02-02 192.0.2.1\r\n";
        assert_eq!(lead(iis, &[]), (14, names(&["date", "c-ip"])));
    }

    #[test]
    fn lines_that_are_not_complete_wait() {
        let csv = Csv::new(LogFormat::Csv, &AnnotateOptions::default(), Vec::new()).unwrap();
        for text in ["", "# made", "# made\n", "# made\nip,n"] {
            assert_eq!(csv.lead(text.as_bytes(), false), None, "{text:?}");
        }
    }
}
