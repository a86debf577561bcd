//! Finds routes by their values.

use std::ops::Range;

use fibula_core::{Addr, AnyPrefix, Value};
use fibula_rib::{ColumnKind, Columns, Pod, Typed};

use crate::{Fib, FibError, Matches};

/// The separator of the values in a list ([`Provenance::tags`](fibula_rib::Provenance::tags)).
const SEPARATOR: char = ';';

impl Fib {
    /// All routes: IPv4 before IPv6, ordered by address and then by length.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn routes(&self) -> Result<Matches<'_>, FibError> {
        self.routes_between(0..self.len())
    }

    /// A range of [`Fib::routes`], by position. Positions beyond [`Fib::len`] are empty. Finding the first route is
    /// O(1).
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn routes_between(&self, numbers: Range<usize>) -> Result<Matches<'_>, FibError> {
        fn family<A: Addr + Pod>(fib: &Fib, numbers: Range<usize>) -> Matches<'_> {
            Box::new(numbers.map(move |index| fib.route::<A>(index)))
        }
        self.check_routes()?;
        let (v4, all) = (self.family::<u32>().routes().len(), self.len());
        let of = |from: usize, to: usize| {
            numbers.start.clamp(from, to) - from..numbers.end.clamp(from, to) - from
        };
        Ok(Box::new(family::<u32>(self, of(0, v4)).chain(family::<u128>(self, of(v4, all)))))
    }

    /// The routes that meet these conditions, each a `(column, value)`, in the order of [`Fib::routes`]. Conditions
    /// on the same column are alternatives; conditions on different columns must all hold. Values are given as text:
    /// a number for a column of integers (`AS64500` too) or of fractions (`8`, `8.0`), and empty text for routes
    /// without a value, or whose value is empty text. In the column that lists values
    /// ([`Provenance::tags`](fibula_rib::Provenance::tags)), one value of the list must be equal.
    ///
    /// ```
    /// # use fibula_core::{Attributes, Change, Update, Value};
    /// # use fibula_fib::{ColumnKind, Fib, FibOptions};
    /// # use fibula_rib::{BuilderOptions, TableBuilder};
    /// # let mut builder = TableBuilder::new(BuilderOptions::default());
    /// # builder.begin_source("t", "text", &[("asn".into(), ColumnKind::Int)], false, None);
    /// # for (prefix, asn) in [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("11.0.0.0/8", 1)] {
    /// #     let values = [Value::Int(asn)];
    /// #     let change = Change::Announce(Attributes::Values(&values));
    /// #     builder.apply(&Update::new(prefix.parse()?, change));
    /// # }
    /// # let fib = Fib::of_table(builder.finish()?, &FibOptions::default())?;
    /// let found: Vec<_> = fib.routes_where(&[("asn", "1")])?.map(|route| route.to_string()).collect();
    /// assert_eq!(found, ["10.0.0.0/8 asn=1", "11.0.0.0/8 asn=1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`FibError::NoColumn`], [`FibError::NoNumber`]; [`FibError::NoRoutes`] for a generation of a live table.
    pub fn routes_where<N: AsRef<str>, V: AsRef<str>>(
        &self,
        conditions: &[(N, V)],
    ) -> Result<Matches<'_>, FibError> {
        // Where values are written as text, empty text and no value are the same.
        self.wanted(conditions.iter().map(|(name, value)| {
            let text = value.as_ref();
            (name.as_ref(), Wanted { none: text.is_empty(), text: Some(text) })
        }))
    }

    /// Like [`Fib::routes_where`], but only `None` selects routes without a value, and empty text only for those whose
    /// value it is.
    ///
    /// # Errors
    /// The errors of [`Fib::routes_where`].
    pub fn routes_with<N: AsRef<str>, V: AsRef<str>>(
        &self,
        conditions: &[(N, Option<V>)],
    ) -> Result<Matches<'_>, FibError> {
        self.wanted(conditions.iter().map(|(name, value)| {
            let text = value.as_ref().map(AsRef::as_ref);
            (name.as_ref(), Wanted { none: text.is_none(), text })
        }))
    }

    fn wanted<'c>(
        &self,
        conditions: impl Iterator<Item = (&'c str, Wanted<'c>)>,
    ) -> Result<Matches<'_>, FibError> {
        self.check_routes()?;
        let rows = rows(self.columns(), self.provenance().tags.as_deref(), conditions)?;
        let has = move |row: u32| rows.get(row as usize).copied().unwrap_or(false);
        Ok(Box::new(self.routes()?.filter(move |route| route.hop().index().is_some_and(&has))))
    }

    /// All routes that share an address with this address or prefix: first the route of the prefix itself, then the
    /// routes that cover it, longest first, then the routes that it covers.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn overlapping(&self, prefix: impl Into<AnyPrefix>) -> Result<Matches<'_>, FibError> {
        let prefix = prefix.into().unmapped();
        let inside = self.covered(prefix)?.filter(move |route| route.prefix() != Some(prefix));
        Ok(Box::new(self.covering(prefix)?.chain(inside)))
    }
}

/// The values that a condition allows.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// No value.
    none: bool,
    /// The value of this text.
    text: Option<&'a str>,
}

/// For each row of the columns, whether all conditions hold.
fn rows<'c>(
    columns: &Columns,
    tags: Option<&str>,
    conditions: impl Iterator<Item = (&'c str, Wanted<'c>)>,
) -> Result<Vec<bool>, FibError> {
    // For each column: whether rows without a value qualify, and which value codes do.
    let mut requested: Vec<(usize, bool, Vec<bool>)> = Vec::new();
    for (name, wanted) in conditions {
        let column = columns.find(name).ok_or_else(|| FibError::NoColumn {
            column: name.to_owned(),
            known: columns.names().map(str::to_owned).collect(),
        })?;
        let place =
            requested.iter().position(|(known, ..)| *known == column).unwrap_or_else(|| {
                requested.push((column, false, vec![false; columns.distinct(column)]));
                requested.len() - 1
            });
        let (_, none, codes) = &mut requested[place];
        *none |= wanted.none;
        let is_int = columns.kind(column) == ColumnKind::Int;
        let Some(text) = wanted.text.filter(|text| !(is_int && wanted.none && text.is_empty()))
        else {
            continue;
        };
        let wanted = match is_int {
            true => Typed::Int(number(text).ok_or_else(|| FibError::NoNumber {
                column: name.to_owned(),
                text: text.to_owned(),
            })?),
            // Of fractions the number, so that 8.0 finds 8.
            false => columns.typed(column, Value::Str(text)),
        };
        let is_list = tags == Some(name);
        for (code, is_requested) in codes.iter_mut().enumerate() {
            *is_requested |= match columns.decode(column, code as u32) {
                Value::Str(value) if is_list => value.split(SEPARATOR).any(|item| item == text),
                Value::Null => false,
                value => columns.typed(column, value) == wanted,
            };
        }
    }
    let holds = |row: u32| {
        requested.iter().all(|(column, none, codes)| match columns.code(*column, row) {
            Some(code) => codes.get(code as usize).copied().unwrap_or(false),
            None => *none,
        })
    };
    Ok((0..columns.len()).map(holds).collect())
}

/// Parses a number, `64500` or `AS64500`.
fn number(text: &str) -> Option<u64> {
    let digits = match text.get(..2) {
        Some(word) if word.eq_ignore_ascii_case("as") => &text[2..],
        _ => text,
    };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
