//! The attribute sets as the columns of a snapshot, with one row for each number, so that hops keep their numbers.

use std::borrow::Cow;

use fibula_core::Value;

use crate::rib::names::{BGP, SetColumns, ValueNames};
use crate::rib::next_hops;
use crate::{AttributeSet, ColumnKind, Columns, ColumnsBuilder, TableError};

pub(crate) fn of(sets: &[Option<AttributeSet>], names: &ValueNames) -> Result<Columns, TableError> {
    let used = || sets.iter().flatten();
    let values = used().map(|set| set.values().len()).max().unwrap_or(0);
    let forwarding: Vec<_> = used().filter_map(AttributeSet::next_hops).collect();
    // An empty table gets the columns of BGP routes, as most tables have.
    let has_bgp = used().any(|set| set.bgp().is_some()) || (values == 0 && forwarding.is_empty());
    let mut kinds: Vec<(Cow<'_, str>, ColumnKind)> = Vec::new();
    // Two kinds of sets may have columns of one name, which is text if it is text anywhere.
    let mut add = |name: Cow<'_, str>, kind| match kinds.iter_mut().find(|(n, _)| *n == name) {
        Some((_, known)) if kind == ColumnKind::Str => *known = kind,
        Some(_) => {}
        None => kinds.push((name.into_owned().into(), kind)),
    };
    if has_bgp {
        BGP.iter().for_each(|(name, kind)| add((*name).into(), *kind));
    }
    if !forwarding.is_empty() {
        // With several next hops, the numbers become lists, which are text.
        let lists = forwarding.iter().any(|next_hops| next_hops.hops.len() > 1);
        for (name, kind) in next_hops::COLUMNS {
            add(name.into(), if lists { ColumnKind::Str } else { kind });
        }
    }
    for i in 0..values {
        let is_text = |set: &AttributeSet| matches!(set.values().get(i), Some(Value::Str(_)));
        let kind = if used().any(is_text) { ColumnKind::Str } else { ColumnKind::Int };
        add(names.of(i), kind);
    }
    let mut rows = ColumnsBuilder::new(&kinds);
    let columns: Vec<&str> = kinds.iter().map(|(name, _)| &**name).collect();
    let places = SetColumns::new(&columns, (0..values).map(|i| names.of(i)));
    for set in sets {
        let texts = set.as_ref().map(AttributeSet::texts).unwrap_or_default();
        let mut row = vec![Value::Null; kinds.len()];
        if let Some(set) = set {
            places.fill(set.encoded(), &texts, &mut row);
        }
        rows.push(&row)?;
    }
    rows.finish()
}
