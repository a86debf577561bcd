//! Records without quotes, which most are: delimiters and line ends are found sixty-four bytes at a time.

use fibula_simd::byte_marks;

use super::scan::{Dialect, Record};

/// What parts records, from a place in the data on.
#[derive(Debug)]
pub(super) struct Plain<'d> {
    data: &'d [u8],
    dialect: Dialect,
    /// The place of the bytes that are looked at, of which the bits below say what they are.
    base: usize,
    delimiters: u64,
    lines: u64,
    quotes: u64,
}

/// What [`Plain::locate`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// A record without quotes.
    Record(Record),
    /// Something that must be looked at closely: quotes, or a record that has no line end.
    Else,
}

/// The bits below a place.
#[inline(always)]
fn below(place: u32) -> u64 {
    (1 << place) - 1
}

impl<'d> Plain<'d> {
    /// Begins at a place in the data.
    #[inline]
    pub(super) fn new(data: &'d [u8], at: usize, dialect: Dialect) -> Self {
        let mut plain = Self { data, dialect, base: at, delimiters: 0, lines: 0, quotes: 0 };
        plain.mark();
        plain
    }

    /// Goes on at another place.
    #[inline]
    pub(super) fn seek(&mut self, at: usize) {
        self.base = at;
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
        self.quotes = dialect.quote.map_or(0, |quote| byte_marks(text, quote));
        if rest.len() < 64 {
            // The padding may be what is looked for.
            let real = below(rest.len() as u32);
            self.delimiters &= real;
            self.lines &= real;
            self.quotes &= real;
        }
    }

    /// The bytes behind those that are looked at; `false` if there are none.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        self.base += 64;
        if self.base >= self.data.len() {
            return false;
        }
        self.mark();
        true
    }

    /// Finds the record that begins at `start`, which is where the last one ended, and gives `found` the places of the
    /// fields that are asked for, ascending, each with its slot; relative to the data. Missing ones stay as they are.
    #[inline(always)]
    pub(super) fn locate(
        &mut self,
        start: usize,
        fields: &[(usize, usize)],
        found: &mut [(usize, usize)],
    ) -> Located {
        let (mut from, mut passed) = (start, 0);
        for &(field, slot) in fields {
            // Up to the field, and to its end.
            loop {
                let stops = self.delimiters | self.lines;
                if stops == 0 {
                    if self.quotes != 0 || !self.advance() {
                        return Located::Else;
                    }
                    continue;
                }
                let place = stops.trailing_zeros();
                if self.quotes & below(place) != 0 {
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
        // The others are only counted.
        loop {
            if self.lines != 0 {
                let place = self.lines.trailing_zeros();
                if self.quotes & below(place) != 0 {
                    return Located::Else;
                }
                passed += (self.delimiters & below(place)).count_ones() as usize;
                return self.end(start, self.base + place as usize, place, passed);
            }
            passed += self.delimiters.count_ones() as usize;
            if self.quotes != 0 || !self.advance() {
                return Located::Else;
            }
        }
    }

    /// The record ends with the line.
    #[inline(always)]
    fn end(&mut self, start: usize, at: usize, place: u32, delimiters: usize) -> Located {
        let behind = !(below(place) | 1 << place);
        self.delimiters &= behind;
        self.lines &= behind;
        self.quotes &= behind;
        let cr = at > start && self.data[at - 1] == b'\r';
        let content = at - start - usize::from(cr);
        let next = at + 1 - start;
        Located::Record(Record { content, next, fields: delimiters + 1, open: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::csv::scan::record;
    use proptest::prelude::*;

    proptest! {
        /// As the careful way, or nothing.
        #[test]
        fn agrees_with_the_careful_way(
            text in "([a-z0-9]{0,40}|,|,|\n|\r\n|\r|\"){0,60}", quote in proptest::option::of(Just(b'"')),
            fields in proptest::collection::btree_set(0usize..6, 1..3),
        ) {
            let dialect = Dialect { delimiter: b',', quote };
            let wanted: Vec<_> = fields.into_iter().enumerate().map(|(slot, field)| (field, slot)).collect();
            let data = text.as_bytes();
            let (mut start, mut plain) = (0, Plain::new(data, 0, dialect));
            while let Some(expected) = record(&data[start..], false, dialect, |_, _, _| {}) {
                let mut found = vec![(start, start); wanted.len()];
                let located = plain.locate(start, &wanted, &mut found);
                let line = &data[start..start + expected.next];
                if quote.is_some_and(|quote| line.contains(&quote)) {
                    prop_assert_eq!(located, Located::Else);
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
        }
    }
}
