//! The attribute sets as the columns of a snapshot: a row for each number, so that hops stay what they
//! are.

use fibula_core::Value;

use crate::rib::names::{self, BGP};
use crate::{AttributeSet, ColumnKind, Columns, ColumnsBuilder, TableError};

pub(super) fn of(sets: &[Option<AttributeSet>]) -> Result<Columns, TableError> {
    let used = || sets.iter().flatten();
    let values = used().map(|set| set.values().len()).max().unwrap_or(0);
    let bgp = if values == 0 || used().any(|set| set.bgp().is_some()) { BGP.len() } else { 0 };
    let mut kinds: Vec<(String, ColumnKind)> =
        BGP[..bgp].iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    for i in 0..values {
        let is_text = |set: &AttributeSet| matches!(set.values().get(i), Some(Value::Str(_)));
        let kind = if used().any(is_text) { ColumnKind::Str } else { ColumnKind::Int };
        kinds.push((names::of_value(i).into_owned(), kind));
    }
    let mut rows = ColumnsBuilder::new(&kinds);
    for set in sets {
        let mut row = vec![Value::Null; kinds.len()];
        let next_hop = set.as_ref().and_then(AttributeSet::next_hop_text);
        if let Some(set) = set {
            // Those of BGP come first, the others behind them.
            let first = if set.bgp().is_some() { 0 } else { bgp };
            let named = set.named(next_hop.as_deref());
            row[first..].iter_mut().zip(named).for_each(|(cell, (_, value))| *cell = value);
        }
        rows.push(&row)?;
    }
    rows.finish()
}
