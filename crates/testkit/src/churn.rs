use std::collections::BTreeMap;

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

use crate::Rng;

/// Changes of a table that remains as it is on average: half of them give a route another hop, a quarter withdraws
/// one, a quarter announces a withdrawn one again. All prefixes are equally likely.
///
/// ```
/// use fibula_testkit::{RouteChurn, tables};
/// let mut routes = tables::dense::<u32>(3, 1000);
/// let mut churn = RouteChurn::new(1);
/// let changes = churn.burst(&routes, 100);
/// assert_eq!(changes.len(), 100);
/// routes.apply(&changes);
/// ```
pub struct RouteChurn<A: Addr> {
    rng: Rng,
    gone: Vec<Route<A>>,
}

impl<A: Addr> RouteChurn<A> {
    /// The changes of this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed), gone: Vec::new() }
    }

    /// The next changes, each of another prefix, in order. A change to [`Hop::NONE`] is a withdrawal.
    ///
    /// # Panics
    /// If the table is empty. It does not end if the table has fewer prefixes than changes.
    pub fn burst(&mut self, routes: &Routes<A>, size: usize) -> Vec<Route<A>> {
        let mut changes: BTreeMap<Prefix<A>, Hop> = BTreeMap::new();
        while changes.len() < size {
            let one_of = |rng: &mut Rng| rng.choose(routes.as_slice()).expect("more than a burst");
            let kind = self.rng.below(4);
            let back = if kind == 0 { self.rng.choose(&self.gone) } else { None };
            let route = back.unwrap_or_else(|| one_of(&mut self.rng));
            if changes.contains_key(&route.prefix) {
                continue;
            }
            let hop = match (back, kind) {
                (Some(route), _) => {
                    self.gone.retain(|gone| gone.prefix != route.prefix);
                    route.hop
                }
                (None, 1) => {
                    self.gone.push(route);
                    Hop::NONE
                }
                _ => one_of(&mut self.rng).hop,
            };
            changes.insert(route.prefix, hop);
        }
        changes.into_iter().map(|(prefix, hop)| Route { prefix, hop }).collect()
    }

    /// Random addresses, from the same seed.
    pub fn addrs(&mut self, count: usize) -> Vec<A> {
        (0..count).map(|_| self.rng.addr()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    #[test]
    fn the_table_remains_as_it_is() {
        let mut routes = tables::dense::<u32>(3, 1000);
        let before = routes.len();
        let mut churn = RouteChurn::new(1);
        for burst in [1, 7, 100].into_iter().cycle().take(300) {
            let changes = churn.burst(&routes, burst);
            assert_eq!(changes.len(), burst);
            routes.apply(&changes);
            assert_eq!(routes.len() + churn.gone.len(), before);
        }
        assert!((before / 50..before / 2).contains(&churn.gone.len()), "{}", churn.gone.len());
    }
}
