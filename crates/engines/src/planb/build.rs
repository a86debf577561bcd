use fibula_core::{BuildError, Engine, Routes};
use fibula_simd::Table;

use super::shape::LevelLayout;
use super::{Config, Line, PlanB, Tree};
use crate::common::{Intervals, Long, SearchAddr, SearchKey, Values};

pub(super) fn build<A: SearchAddr, const LINES: usize>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<Tree<A, LINES>, BuildError> {
    let Intervals { lasts, codes, long } = Intervals::new(routes, PlanB::<A>::NAME)?;
    let lanes = Tree::<A, LINES>::LANES;
    let shape = LevelLayout::new(lasts.len(), lanes);
    let keys = Table::<Line<A>>::with(shape.nodes() * LINES, |lines| {
        shape.for_each_key(lanes, &lasts, |place, key| {
            lines[place / A::Key::LANES].as_mut()[place % A::Key::LANES] = key;
        });
    });
    let blocks = long.as_ref().map_or(0, Long::blocks);
    let values = Values::new(&codes, routes.hop_count(), blocks);
    Ok(Tree { keys, values, long, shape, level: config.isa.level(), search: config.search })
}
