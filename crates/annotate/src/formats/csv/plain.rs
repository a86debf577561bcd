//! The fast path for records with regular quotes: delimiters and line ends are found sixty-four bytes at a time.
//!
//! If each field with quotes begins and ends with one, quotes open and close in turn. A byte is then inside quotes if
//! the number of quotes up to it is odd.
//!
//! ```text
//!   1,"a, ""b""",c      a record
//!   ..^...^^.^^^..      quotes
//!   ..11111.111.1..     inside: delimiters and line ends do not count here
//! ```
//!
//! An opening quote must follow a delimiter, a line end or another quote, and a closing quote must precede one of them.
//! Otherwise the record is left to [`scan`], the slow path.

use fibula_simd::byte_marks;

use super::scan::{self, Dialect, Record};
use crate::formats::last_line_end;

/// The delimiters and line ends in 64 bytes of the data.
#[derive(Debug)]
pub(super) struct Plain<'d> {
    data: &'d [u8],
    dialect: Dialect,
    /// The offset of the current 64 bytes. Each bit of the next three fields belongs to one of them.
    base: usize,
    delimiters: u64,
    lines: u64,
    /// Irregular quotes, and text behind closing quotes, which need the slow path.
    odd: u64,
    /// All ones if the last of these bytes is inside quotes, otherwise 0.
    inside: u64,
    /// 1 if the byte after these may be an opening quote, otherwise 0.
    begins: u64,
    /// 1 if the last of these bytes is a closing quote, otherwise 0.
    closed: u64,
}

/// The result of [`Plain::locate`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// A record.
    Record(Record),
    /// The slow path is needed, because of irregular quotes or a record without a line end.
    Else,
}

/// The bits below a position.
#[inline(always)]
fn below(place: u32) -> u64 {
    (1 << place) - 1
}

/// The positions for which the number of marks up to them is odd.
#[inline(always)]
fn odd_up_to(mut marks: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        marks ^= marks << shift;
    }
    marks
}

/// The end of the last complete record in `data`, which begins with a record; 0 if none is complete.
pub(super) fn cut(data: &[u8], dialect: Dialect) -> usize {
    match dialect.quote {
        Some(quote) if memchr::memchr(quote, data).is_some() => {
            Plain::new(data, 0, dialect).last_end().unwrap_or_else(|| scan::cut(data, dialect))
        }
        _ => last_line_end(data),
    }
}

impl<'d> Plain<'d> {
    /// Starts at the offset `at`, where a record begins.
    #[inline]
    pub(super) fn new(data: &'d [u8], at: usize, dialect: Dialect) -> Self {
        let (delimiters, lines, odd) = (0, 0, 0);
        let (inside, begins, closed) = (0, 1, 0);
        let mut plain =
            Self { data, dialect, base: at, delimiters, lines, odd, inside, begins, closed };
        plain.mark();
        plain
    }

    /// Continues at another offset where a record begins.
    #[inline]
    pub(super) fn seek(&mut self, at: usize) {
        self.base = at;
        (self.inside, self.begins, self.closed) = (0, 1, 0);
        self.mark();
    }

    #[inline(always)]
    fn mark(&mut self) {
        let Self { data, dialect, base, .. } = *self;
        let rest = data.get(base..).unwrap_or_default();
        let mut padded = [0; 64];
        let text = rest.first_chunk::<64>().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        self.delimiters = byte_marks(text, dialect.delimiter);
        self.lines = byte_marks(text, b'\n');
        let mut quotes = dialect.quote.map_or(0, |quote| byte_marks(text, quote));
        let mut real = u64::MAX;
        if rest.len() < 64 {
            // Remove marks in the padding.
            real = below(rest.len() as u32);
            self.delimiters &= real;
            self.lines &= real;
            quotes &= real;
        }
        self.odd = 0;
        if quotes | self.inside | self.closed != 0 {
            let inside = odd_up_to(quotes) ^ self.inside;
            self.delimiters &= !inside;
            self.lines &= !inside;
            let ends = self.delimiters | self.lines | quotes;
            self.odd = quotes & inside & !(ends << 1 | self.begins);
            let closes = quotes & !inside;
            let behind = (closes << 1 | self.closed) & !ends & real;
            if behind != 0 {
                // A carriage return before a line end is no text.
                let next = u64::from(rest.get(64) == Some(&b'\n')) << 63;
                self.odd |= behind & !(byte_marks(text, b'\r') & (self.lines >> 1 | next));
            }
            self.closed = closes >> 63;
            self.inside = ((inside as i64) >> 63) as u64;
            self.begins = ends >> 63;
        } else {
            self.begins = (self.delimiters | self.lines) >> 63;
        }
    }

    /// Moves to the next 64 bytes; `false` at the end of the data.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        self.base += 64;
        if self.base >= self.data.len() {
            return false;
        }
        self.mark();
        true
    }

    /// The end of the last complete record; `None` if the slow path is needed.
    fn last_end(mut self) -> Option<usize> {
        let mut end = self.base;
        loop {
            if self.odd != 0 {
                return None;
            }
            if self.lines != 0 {
                end = self.base + 64 - self.lines.leading_zeros() as usize;
            }
            if !self.advance() {
                return Some(end);
            }
        }
    }

    /// Finds the record that begins at `start`, where the last one ended. Stores the ranges of `fields` (ascending,
    /// each with its slot) in `found`, relative to the data. The ranges of missing fields are not changed.
    #[inline(always)]
    pub(super) fn locate(
        &mut self,
        start: usize,
        fields: &[(usize, usize)],
        found: &mut [(usize, usize)],
    ) -> Located {
        let (mut from, mut passed) = (start, 0);
        for &(field, slot) in fields {
            // Advance to the field and to its end.
            loop {
                let stops = self.delimiters | self.lines;
                if stops == 0 {
                    if self.odd != 0 || !self.advance() {
                        return Located::Else;
                    }
                    continue;
                }
                let place = stops.trailing_zeros();
                if self.odd & below(place) != 0 {
                    return Located::Else;
                }
                let at = self.base + place as usize;
                let is_line = self.lines & 1 << place != 0;
                if passed == field {
                    let cr = is_line && at > from && self.data[at - 1] == b'\r';
                    found[slot] = (from, at - usize::from(cr));
                }
                if is_line {
                    return self.end(start, at, place, passed);
                }
                self.delimiters &= self.delimiters - 1;
                passed += 1;
                from = at + 1;
                if passed > field {
                    break;
                }
            }
        }
        // The remaining fields are only counted.
        loop {
            if self.lines != 0 {
                let place = self.lines.trailing_zeros();
                if self.odd & below(place) != 0 {
                    return Located::Else;
                }
                passed += (self.delimiters & below(place)).count_ones() as usize;
                return self.end(start, self.base + place as usize, place, passed);
            }
            passed += self.delimiters.count_ones() as usize;
            if self.odd != 0 || !self.advance() {
                return Located::Else;
            }
        }
    }

    /// Ends the record at the line end at `at`.
    #[inline(always)]
    fn end(&mut self, start: usize, at: usize, place: u32, delimiters: usize) -> Located {
        let behind = !(below(place) | 1 << place);
        self.delimiters &= behind;
        self.lines &= behind;
        self.odd &= behind;
        let cr = at > start && self.data[at - 1] == b'\r';
        let content = at - start - usize::from(cr);
        let next = at + 1 - start;
        Located::Record(Record::regular(content, next, delimiters + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::csv::scan::record;
    use proptest::prelude::*;

    proptest! {
        /// The fast path gives the result of the slow path, or none.
        #[test]
        fn agrees_with_the_careful_way(
            text in "([a-z0-9]{0,40}|,|,|\n|\r\n|\r|\"|,\"|\",|\",\"|\"\n\"|\"\"|\"[a-z,\n]{0,20}\",){0,60}", quote in proptest::option::of(Just(b'"')),
            fields in proptest::collection::btree_set(0usize..6, 1..3),
        ) {
            let dialect = Dialect { delimiter: b',', quote };
            let wanted: Vec<_> = fields.into_iter().enumerate().map(|(slot, field)| (field, slot)).collect();
            let data = text.as_bytes();
            let (mut start, mut plain, mut irregular) = (0, Plain::new(data, 0, dialect), false);
            while let Some(expected) = record(&data[start..], false, dialect, |_, _, _| {}) {
                irregular |= expected.quotes != scan::Quotes::Regular;
                let mut found = vec![(start, start); wanted.len()];
                let located = plain.locate(start, &wanted, &mut found);
                let line = &data[start..start + expected.next];
                if located == Located::Else {
                    prop_assert!(quote.is_some_and(|quote| line.contains(&quote)));
                    plain.seek(start + expected.next);
                } else {
                    prop_assert_eq!(located, Located::Record(expected));
                    let mut careful = vec![(start, start); wanted.len()];
                    record(&data[start..], false, dialect, |field, from, to| {
                        for &(wanted, slot) in &wanted {
                            if wanted == field {
                                careful[slot] = (start + from, start + to);
                            }
                        }
                    });
                    prop_assert_eq!(found, careful);
                }
                start += expected.next;
            }
            prop_assert_eq!(plain.locate(start, &wanted, &mut vec![(0, 0); wanted.len()]), Located::Else);
            let end = cut(data, dialect);
            prop_assert_eq!(scan::cut(data, dialect), end);
            // A record that is known only by a later quote is not cut off from it.
            prop_assert!(end == start || end < start && irregular);
        }
    }

    /// Records with the usual quotes do not need the slow path.
    #[test]
    fn usual_quotes_are_plain() {
        let long = format!("\"{}\",\"10.0.0.1\"\n", "long, \"\"quoted\"\" text\r\n".repeat(20));
        let dialect = Dialect { delimiter: b',', quote: Some(b'"') };
        for text in [
            "\"\",\"10.0.0.1\",\"a, b\"\n",
            "1,\"10.0.0.1\"\r\n",
            "\"\"\"x\"\"\",\"10.0.0.1\"\n",
            &long,
        ] {
            let mut found = [(0, 0)];
            let located = Plain::new(text.as_bytes(), 0, dialect).locate(0, &[(1, 0)], &mut found);
            let Located::Record(record) = located else { panic!("{text:?}") };
            assert_eq!(record.next, text.len(), "{text:?}");
            assert_eq!(&text[found[0].0..found[0].1], "\"10.0.0.1\"", "{text:?}");
        }
    }
}
