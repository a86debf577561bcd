//! The attributes of a set by name, for table columns and for display.

use std::borrow::Cow;
use std::sync::Arc;

use fibula_core::{BgpAttributes, Value};

use super::set::Encoded;
use super::{AttributeSet, next_hops};
use crate::ColumnKind;

/// The columns that BGP sets have.
pub(crate) const BGP: [(&str, ColumnKind); 7] = [
    ("next_hop", ColumnKind::Str),
    ("origin_as", ColumnKind::Int),
    ("as_path_len", ColumnKind::Int),
    ("local_pref", ColumnKind::Int),
    ("med", ColumnKind::Int),
    ("as_path", ColumnKind::Str),
    ("communities", ColumnKind::Str),
];

/// The names of values in all sources, each once, in order of appearance. The values of sets other than BGP and next
/// hops are in this order, whatever their source.
///
/// ```
/// use fibula_rib::ValueNames;
/// let mut names = ValueNames::default();
/// assert_eq!(names.places(["site", "owner"]), [0, 1]);
/// assert_eq!(names.places(["country", "site"]), [2, 0]);
/// assert_eq!(names.names(), ["site", "owner", "country"]);
/// ```
///
/// A clone shares the names with its original, until either gets new ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueNames(Arc<Vec<String>>);

impl ValueNames {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self(Arc::new(names))
    }

    /// The positions of a source's columns. New names are added at the end.
    pub fn places<'a>(&mut self, columns: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
        let place = |column: &str| {
            self.0.iter().position(|name| name == column).unwrap_or_else(|| {
                Arc::make_mut(&mut self.0).push(column.to_owned());
                self.0.len() - 1
            })
        };
        columns.into_iter().map(place).collect()
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The name of value `i`; one without is called `value`, `value2`, by its number.
    pub(crate) fn of(&self, i: usize) -> Cow<'_, str> {
        self.0.get(i).map_or_else(|| of_value(i), |name| Cow::Borrowed(name))
    }
}

/// The name of value `i` where none is known: `value`, `value2`.
fn of_value(i: usize) -> Cow<'static, str> {
    if i == 0 { Cow::Borrowed("value") } else { Cow::Owned(format!("value{}", i + 1)) }
}

/// Attributes that are not stored as text but displayed as text: addresses. The result of [`AttributeSet::named`]
/// borrows from it.
#[derive(Clone, Default)]
pub struct SetTexts {
    /// The next hop of a BGP set.
    next_hop: Option<String>,
    /// The next hops of a forwarding table.
    cells: Option<next_hops::Cells>,
}

impl SetTexts {
    pub(crate) fn of(set: Encoded<'_>) -> Self {
        Self {
            next_hop: set.next_hop().map(|ip| ip.to_string()),
            cells: set.next_hops().as_ref().map(next_hops::Cells::of),
        }
    }
}

/// The values of a BGP set for the columns of [`BGP`].
fn bgp_values<'a>(bgp: &BgpAttributes<'a>, texts: &'a SetTexts) -> [Value<'a>; BGP.len()] {
    let int = |v: Option<u32>| v.map_or(Value::Null, |v| Value::Int(v.into()));
    let text = |text: &'a str| if text.is_empty() { Value::Null } else { Value::Str(text) };
    [
        texts.next_hop.as_deref().map_or(Value::Null, Value::Str),
        int(bgp.origin_as),
        int(Some(bgp.as_path_len)),
        int(bgp.local_pref),
        int(bgp.med),
        text(bgp.as_path),
        text(bgp.communities),
    ]
}

/// The positions of a table's columns for each kind of set, found once by their names.
pub(crate) struct SetColumns {
    bgp: [Option<usize>; BGP.len()],
    next_hops: [Option<usize>; next_hops::COLUMNS.len()],
    values: Vec<Option<usize>>,
}

impl SetColumns {
    /// The positions in a table with these columns; `values` has the names of the values in sets that are neither of
    /// BGP nor next hops.
    pub(crate) fn new(
        columns: &[impl AsRef<str>],
        values: impl Iterator<Item = impl AsRef<str>>,
    ) -> Self {
        let find = |name: &str| columns.iter().position(|column| column.as_ref() == name);
        Self {
            bgp: BGP.map(|(name, _)| find(name)),
            next_hops: next_hops::COLUMNS.map(|(name, _)| find(name)),
            values: values.map(|name| find(name.as_ref())).collect(),
        }
    }

    /// Writes the values of a set into the row; columns of other kinds are not changed. `texts` are those
    /// of this set.
    pub(crate) fn fill<'a>(&self, set: Encoded<'a>, texts: &'a SetTexts, row: &mut [Value<'a>]) {
        let mut put = |places: &[Option<usize>], values: &mut dyn Iterator<Item = Value<'a>>| {
            for (place, value) in places.iter().zip(values) {
                if let Some(place) = place {
                    row[*place] = value;
                }
            }
        };
        if let Some(cells) = &texts.cells {
            put(&self.next_hops, &mut cells.values().into_iter());
        } else if let Some(bgp) = set.bgp() {
            put(&self.bgp, &mut bgp_values(&bgp, texts).into_iter());
        } else {
            put(&self.values, &mut set.values());
        }
    }
}

impl AttributeSet {
    /// The texts that [`AttributeSet::named`] needs.
    pub fn texts(&self) -> SetTexts {
        SetTexts::of(self.encoded())
    }

    /// The attributes by name, in the order of a checkpoint's columns. A BGP set has `next_hop`, `origin_as`,
    /// `as_path_len`, `local_pref`, `med`, `as_path` and `communities`; next hops have `next_hop`, `interface`,
    /// `weight` and `kind`; the values of any other set have the names that its RIB gives them
    /// ([`Rib::value_names`](crate::Rib::value_names)), and without one `value`, `value2` and so on. `texts` must be
    /// the texts of this set.
    ///
    /// ```
    /// use fibula_core::{Attributes, BgpAttributes, Value};
    /// use fibula_rib::{AttributeSet, ValueNames};
    /// let bgp = BgpAttributes { origin_as: Some(64500), as_path_len: 3, ..Default::default() };
    /// let set = AttributeSet::new(&Attributes::Bgp(&bgp));
    /// let texts = set.texts();
    /// let names = ValueNames::default();
    /// let named = set.named(&texts, &names);
    /// assert_eq!(named[1], ("origin_as".into(), Value::Int(64500)));
    /// assert_eq!(named[4], ("med".into(), Value::Null));
    /// ```
    pub fn named<'a>(
        &'a self,
        texts: &'a SetTexts,
        names: &'a ValueNames,
    ) -> Vec<(Cow<'a, str>, Value<'a>)> {
        fn zip<'a>(
            columns: &[(&'static str, ColumnKind)],
            values: &[Value<'a>],
        ) -> Vec<(Cow<'a, str>, Value<'a>)> {
            columns.iter().zip(values).map(|((name, _), v)| (Cow::Borrowed(*name), *v)).collect()
        }
        if let Some(cells) = &texts.cells {
            return zip(&next_hops::COLUMNS, &cells.values());
        }
        let Some(bgp) = self.bgp() else {
            return self.values().into_iter().enumerate().map(|(i, v)| (names.of(i), v)).collect();
        };
        zip(&BGP, &bgp_values(&bgp, texts))
    }
}
