//! The attribute sets as the columns of a snapshot: a row for each number, so that hops stay what they
//! are.

use fibula_core::Value;

use crate::{AttributeSet, ColumnKind, Columns, ColumnsBuilder, TableError};

/// The columns that BGP sets have.
const BGP: [(&str, ColumnKind); 7] = [
    ("next_hop", ColumnKind::Str),
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
    let bgp = if values == 0 || used().any(|set| set.bgp().is_some()) { BGP.len() } else { 0 };
    let mut kinds: Vec<(String, ColumnKind)> =
        BGP[..bgp].iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
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
        let next_hop;
        if let Some(a) = set.as_ref().and_then(AttributeSet::bgp) {
            next_hop = a.next_hop.map(|ip| ip.to_string());
            let int = |v: Option<u32>| v.map_or(Value::Null, |v| Value::Int(v.into()));
            row[0] = next_hop.as_deref().map_or(Value::Null, Value::Str);
            row[1] = int(a.origin_as);
            row[2] = int(Some(a.as_path_len));
            row[3] = int(a.local_pref);
            row[4] = int(a.med);
            for (cell, text) in row[5..7].iter_mut().zip([a.as_path, a.communities]) {
                if !text.is_empty() {
                    *cell = Value::Str(text);
                }
            }
        } else if let Some(set) = set {
            row[bgp..].iter_mut().zip(set.values()).for_each(|(cell, value)| *cell = value);
        }
        rows.push(&row)?;
    }
    rows.finish()
}
