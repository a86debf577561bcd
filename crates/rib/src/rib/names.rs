//! The attributes of a set by name: what a checkpoint calls its columns, and whoever shows a set its
//! values.

use std::borrow::Cow;

use fibula_core::Value;

use super::AttributeSet;
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

/// The name of value `i` of a set that is not from BGP: `value`, `value2`. What sources call their values
/// is not the RIB's to know.
pub(crate) fn of_value(i: usize) -> Cow<'static, str> {
    if i == 0 { Cow::Borrowed("value") } else { Cow::Owned(format!("value{}", i + 1)) }
}

impl AttributeSet {
    /// The next hop of a BGP set as text.
    pub fn next_hop_text(&self) -> Option<String> {
        Some(self.bgp()?.next_hop?.to_string())
    }

    /// The attributes by name, in the order of a checkpoint's columns: of a BGP set `next_hop`,
    /// `origin_as`, `as_path_len`, `local_pref`, `med`, `as_path` and `communities`, of another set
    /// `value`, `value2` and so on. A set has no text of its next hop to lend; it is the caller's, from
    /// [`AttributeSet::next_hop_text`].
    ///
    /// ```
    /// use fibula_core::{Attributes, BgpAttributes, Value};
    /// use fibula_rib::AttributeSet;
    /// let bgp = BgpAttributes { origin_as: Some(64500), as_path_len: 3, ..Default::default() };
    /// let set = AttributeSet::new(&Attributes::Bgp(&bgp));
    /// let named = set.named(None);
    /// assert_eq!(named[1], ("origin_as".into(), Value::Int(64500)));
    /// assert_eq!(named[4], ("med".into(), Value::Null));
    /// ```
    pub fn named<'a>(&'a self, next_hop: Option<&'a str>) -> Vec<(Cow<'static, str>, Value<'a>)> {
        let Some(bgp) = self.bgp() else {
            return self.values().into_iter().enumerate().map(|(i, v)| (of_value(i), v)).collect();
        };
        let int = |v: Option<u32>| v.map_or(Value::Null, |v| Value::Int(v.into()));
        let text = |text: &'a str| if text.is_empty() { Value::Null } else { Value::Str(text) };
        let values = [
            next_hop.map_or(Value::Null, Value::Str),
            int(bgp.origin_as),
            int(Some(bgp.as_path_len)),
            int(bgp.local_pref),
            int(bgp.med),
            text(bgp.as_path),
            text(bgp.communities),
        ];
        BGP.iter().zip(values).map(|((name, _), value)| (Cow::Borrowed(*name), value)).collect()
    }
}
