use fibula_core::{BuildError, Engine, Routes};
use fibula_simd::Table;

use super::shape::LevelLayout;
use super::{Config, Line, PlanB};
use crate::common::{Intervals, Long, SearchAddr, Values};

pub(super) fn build<A: SearchAddr>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<PlanB<A>, BuildError> {
    let Intervals { lasts, codes, long } = Intervals::new(routes, PlanB::<A>::NAME)?;
    let shape = LevelLayout::new::<A::Key>(lasts.len());
    let keys = Table::<Line<A>>::with(shape.nodes(), |nodes| {
        shape.for_each_key(&lasts, |node, slot, key| nodes[node].as_mut()[slot] = key);
    });
    let blocks = long.as_ref().map_or(0, Long::blocks);
    let values = Values::new(&codes, routes.hop_count(), blocks);
    Ok(PlanB { keys, values, long, shape, level: config.isa.level(), search: config.search })
}
