//! The attribute sets as the columns of a snapshot: a row for each number, so that hops stay what they
//! are.

use fibula_core::Value;

use crate::rib::names::{self, BGP, Places};
use crate::rib::next_hops;
use crate::{AttributeSet, ColumnKind, Columns, ColumnsBuilder, TableError};

pub(super) fn of(sets: &[Option<AttributeSet>]) -> Result<Columns, TableError> {
    let used = || sets.iter().flatten();
    let values = used().map(|set| set.values().len()).max().unwrap_or(0);
    let forwarding: Vec<_> = used().filter_map(AttributeSet::next_hops).collect();
    // An empty table has the columns of most.
    let has_bgp = used().any(|set| set.bgp().is_some()) || (values == 0 && forwarding.is_empty());
    let mut kinds: Vec<(String, ColumnKind)> = Vec::new();
    if has_bgp {
        kinds.extend(BGP.map(|(name, kind)| (name.to_owned(), kind)));
    }
    if !forwarding.is_empty() {
        // Of several next hops, numbers are lists.
        let lists = forwarding.iter().any(|next_hops| next_hops.hops.len() > 1);
        // The first is one of BGP's, too.
        for (name, kind) in &next_hops::COLUMNS[usize::from(has_bgp)..] {
            kinds.push(((*name).to_owned(), if lists { ColumnKind::Str } else { *kind }));
        }
    }
    for i in 0..values {
        let is_text = |set: &AttributeSet| matches!(set.values().get(i), Some(Value::Str(_)));
        let kind = if used().any(is_text) { ColumnKind::Str } else { ColumnKind::Int };
        kinds.push((names::of_value(i).into_owned(), kind));
    }
    let mut rows = ColumnsBuilder::new(&kinds);
    let names: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).collect();
    let places = Places::new(&names, (0..values).map(names::of_value));
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
