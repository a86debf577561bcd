use fibula_core::{LoadError, TableSource};

use super::shape::LevelLayout;
use super::{Config, KEYS, Line, Tree};
use crate::common::{Long, SearchAddr, SearchKey, Values, table};

/// Loads a stored tree. Every key is compared with the value that follows from the leaves, so a search stays inside the
/// tree, whatever its key (see the invariants of the [module](super)).
pub(super) fn load<A: SearchAddr, const LINES: usize>(
    tables: &dyn TableSource,
    hop_count: u32,
    config: &Config,
) -> Result<Tree<A, LINES>, LoadError> {
    let keys = table::<Line<A>>(tables, KEYS)?;
    let long = if A::LOW_MAX == 0 { None } else { Long::load(tables, hop_count)? };
    let values = Values::load(tables, hop_count, long.as_ref().map_or(0, Long::blocks))?;
    let intervals = values.len();
    if intervals == 0 {
        return Err(LoadError::new(KEYS, "there are no intervals"));
    }
    let lanes = Tree::<A, LINES>::LANES;
    let shape = LevelLayout::new(intervals, lanes);
    if keys.len() != shape.nodes() * LINES {
        return Err(LoadError::new(KEYS, format!("is not a tree of {intervals} intervals")));
    }
    let leaves = shape.bases().last().map_or(0, |base| *base);
    let lasts = &bytemuck::cast_slice::<_, A::Key>(&keys[leaves * LINES..])[..intervals];
    if !lasts.is_sorted_by(|a, b| a < b) || lasts.last() != Some(&A::Key::MAX) {
        return Err(LoadError::new(KEYS, "the leaves are not sorted or do not end at the top"));
    }
    let mut sound = true;
    shape.for_each_key(lanes, lasts, |place, key| {
        sound &= keys[place / A::Key::LANES].as_ref()[place % A::Key::LANES] == key;
    });
    if !sound {
        return Err(LoadError::new(KEYS, "an inner key or the padding is not what it must be"));
    }
    Ok(Tree { keys, values, long, shape, level: config.isa.level(), search: config.search })
}
