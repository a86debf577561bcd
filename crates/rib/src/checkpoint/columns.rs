//! The attribute sets as the columns of a snapshot: a row for each number, so that hops stay what they
//! are.

use fibula_core::Value;

use crate::rib::next_hops;
use crate::{AttributeSet, ColumnKind, Columns, ColumnsBuilder, TableError};

/// The column that BGP sets and next hops share.
const NEXT_HOP: (&str, ColumnKind) = next_hops::COLUMNS[0];

/// The columns that BGP sets have.
const BGP: [(&str, ColumnKind); 7] = [
    NEXT_HOP,
    ("origin_as", ColumnKind::Int),
    ("as_path_len", ColumnKind::Int),
    ("local_pref", ColumnKind::Int),
    ("med", ColumnKind::Int),
    ("as_path", ColumnKind::Str),
    ("communities", ColumnKind::Str),
];

pub(super) fn of(sets: &[Option<AttributeSet>]) -> Result<Columns, TableError> {
    let used = || sets.iter().flatten();
    let values = used().map(|set| set.values().len()).max().unwrap_or(0);
    let forwarding: Vec<_> = used().filter_map(AttributeSet::next_hops).collect();
    let has_bgp = used().any(|set| set.bgp().is_some());
    let mut kinds: Vec<(String, ColumnKind)> = Vec::new();
    let mut add = |columns: &[(&str, ColumnKind)]| {
        let start = kinds.len();
        kinds.extend(columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)));
        start
    };
    // An empty table has the columns of most.
    let has_bgp = has_bgp || (values == 0 && forwarding.is_empty());
    let bgp = add(if has_bgp { &BGP } else { &[] });
    let shared = usize::from(has_bgp);
    let hops = add(if forwarding.is_empty() { &[] } else { &next_hops::COLUMNS[shared..] });
    let value = kinds.len();
    // Of several next hops, numbers are lists.
    if forwarding.iter().any(|next_hops| next_hops.hops.len() > 1) {
        kinds[hops..].iter_mut().for_each(|(_, kind)| *kind = ColumnKind::Str);
    }
    for i in 0..values {
        // What sources call their values is not the RIB's to know.
        let name = if i == 0 { "value".to_owned() } else { format!("value{}", i + 1) };
        let is_text = |set: &AttributeSet| matches!(set.values().get(i), Some(Value::Str(_)));
        let kind = if used().any(is_text) { ColumnKind::Str } else { ColumnKind::Int };
        kinds.push((name, kind));
    }
    let mut rows = ColumnsBuilder::new(&kinds);
    for set in sets {
        let mut row = vec![Value::Null; kinds.len()];
        let (next_hop, cells);
        if let Some(a) = set.as_ref().and_then(AttributeSet::bgp) {
            next_hop = a.next_hop.map(|ip| ip.to_string());
            let int = |v: Option<u32>| v.map_or(Value::Null, |v| Value::Int(v.into()));
            row[bgp] = next_hop.as_deref().map_or(Value::Null, Value::Str);
            row[bgp + 1] = int(a.origin_as);
            row[bgp + 2] = int(Some(a.as_path_len));
            row[bgp + 3] = int(a.local_pref);
            row[bgp + 4] = int(a.med);
            for (cell, text) in row[bgp + 5..].iter_mut().zip([a.as_path, a.communities]) {
                if !text.is_empty() {
                    *cell = Value::Str(text);
                }
            }
        } else if let Some(next_hops) = set.as_ref().and_then(AttributeSet::next_hops) {
            cells = next_hops::Cells::of(&next_hops);
            let cells = cells.values();
            if has_bgp {
                row[bgp] = cells[0];
            }
            row[hops..].iter_mut().zip(&cells[shared..]).for_each(|(to, cell)| *to = *cell);
        } else if let Some(set) = set {
            row[value..].iter_mut().zip(set.values()).for_each(|(cell, value)| *cell = value);
        }
        rows.push(&row)?;
    }
    rows.finish()
}
