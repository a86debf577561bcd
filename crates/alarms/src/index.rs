//! Finds the rules of a prefix.

use fibula_core::{Addr, AnyPrefix, FamilyType, Hop, PerFamily, Prefix, Route, Routes};
use fibula_rib::{IndexedRoutes, Pod};

use crate::AlarmRule;

/// The rules by the prefixes that they list: a change finds those that cover its prefix, however many there are.
pub(crate) struct RuleIndex {
    families: PerFamily<Listed>,
    /// The rules of each listed prefix.
    groups: Vec<Vec<u32>>,
}

/// The listed prefixes of a family; a hop is the number of a group.
struct Listed;

impl FamilyType for Listed {
    type Of<A: Addr> = IndexedRoutes<A>;
}

impl RuleIndex {
    pub(crate) fn new(rules: &[AlarmRule]) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (number, rule) in rules.iter().enumerate() {
            for prefix in &rule.prefixes {
                match prefix.unmapped() {
                    AnyPrefix::V4(prefix) => v4.push((prefix, number as u32)),
                    AnyPrefix::V6(prefix) => v6.push((prefix, number as u32)),
                }
            }
        }
        let mut groups = Vec::new();
        let families = PerFamily { v4: listed(v4, &mut groups), v6: listed(v6, &mut groups) };
        Self { families, groups }
    }

    /// Calls `found` with each rule that lists this prefix or one that covers it, once, and the longest such prefix.
    pub(crate) fn rules_of(&self, prefix: AnyPrefix, mut found: impl FnMut(u32, AnyPrefix)) {
        match prefix.unmapped() {
            AnyPrefix::V4(prefix) => self.of(prefix, &mut found),
            AnyPrefix::V6(prefix) => self.of(prefix, &mut found),
        }
    }

    fn of<A: Addr + Pod>(&self, prefix: Prefix<A>, found: &mut impl FnMut(u32, AnyPrefix)) {
        let family = self.families.get::<A>();
        let mut seen = Vec::new();
        for at in family.covering(prefix.addr()) {
            let route = family.get(at);
            // Longer prefixes that begin at the same address do not cover all of it.
            if !route.prefix.covers(prefix) {
                continue;
            }
            let group = route.hop.index().and_then(|group| self.groups.get(group as usize));
            for &rule in group.into_iter().flatten() {
                if !seen.contains(&rule) {
                    seen.push(rule);
                    found(rule, A::any(route.prefix));
                }
            }
        }
    }

    /// Whether a rule lists this prefix or one that covers it.
    pub(crate) fn is_listed(&self, prefix: AnyPrefix) -> bool {
        match prefix.unmapped() {
            AnyPrefix::V4(prefix) => self.covers(prefix),
            AnyPrefix::V6(prefix) => self.covers(prefix),
        }
    }

    fn covers<A: Addr + Pod>(&self, prefix: Prefix<A>) -> bool {
        let family = self.families.get::<A>();
        family.covering(prefix.addr()).any(|at| family.get(at).prefix.covers(prefix))
    }

    /// The prefixes that hold all routes with rules, none inside another one.
    pub(crate) fn roots<A: Addr + Pod>(&self) -> Vec<Prefix<A>> {
        let family = self.families.get::<A>();
        let mut all: Vec<_> = (0..family.len()).map(|at| family.get(at).prefix).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| kept.covers(*next));
        all
    }
}

fn listed<A: Addr + Pod>(
    mut all: Vec<(Prefix<A>, u32)>,
    groups: &mut Vec<Vec<u32>>,
) -> IndexedRoutes<A> {
    all.sort_unstable();
    all.dedup();
    let mut routes = Vec::<Route<A>>::new();
    for (prefix, rule) in all {
        if routes.last().is_none_or(|last| last.prefix != prefix) {
            routes.push(Route { prefix, hop: Hop::new(groups.len() as u32) });
            groups.push(Vec::new());
        }
        groups.last_mut().into_iter().for_each(|group| group.push(rule));
    }
    IndexedRoutes::new(&Routes::from_unsorted(routes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlarmKind;

    #[test]
    fn each_rule_is_found_once_by_its_longest_prefix() {
        let on = |list: &[&str]| {
            AlarmRule::new("r", AlarmKind::NewlyInvalid).on(list.iter().map(|p| p.parse().unwrap()))
        };
        let rules = [
            on(&["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]),
            on(&["10.1.0.0/16", "10.1.0.0/24"]),
            on(&["0.0.0.0/0"]),
            on(&[]),
        ];
        let index = RuleIndex::new(&rules);
        let found = |prefix: &str| {
            let mut all = Vec::new();
            index.rules_of(prefix.parse().unwrap(), |rule, by| all.push((rule, by.to_string())));
            all.sort_unstable();
            all
        };
        let of = |list: &[(u32, &str)]| {
            list.iter().map(|(rule, by)| (*rule, (*by).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(
            found("10.1.0.0/20"),
            of(&[(0, "10.1.0.0/16"), (1, "10.1.0.0/16"), (2, "0.0.0.0/0")])
        );
        assert_eq!(
            found("10.1.0.0/32"),
            of(&[(0, "10.1.0.0/16"), (1, "10.1.0.0/24"), (2, "0.0.0.0/0")])
        );
        assert_eq!(found("10.0.0.0/8"), of(&[(0, "10.0.0.0/8"), (2, "0.0.0.0/0")]));
        assert_eq!(found("10.0.0.0/7"), of(&[(2, "0.0.0.0/0")]));
        assert_eq!(found("2001:db8:1::/48"), of(&[(0, "2001:db8::/32")]));
        assert_eq!(found("::ffff:10.0.0.0/104"), of(&[(0, "10.0.0.0/8"), (2, "0.0.0.0/0")]));
        assert_eq!(found("2001:db9::/32"), []);
        assert_eq!(index.roots::<u32>().len(), 1);
        for (prefix, is_listed) in [("2001:db8:1::/48", true), ("2001:d00::/24", false)] {
            assert_eq!(index.is_listed(prefix.parse().unwrap()), is_listed, "{prefix}");
        }
    }
}
