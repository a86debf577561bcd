//! A set of VRPs with an index.

use std::fmt;

use fibula_core::{Addr, AnyPrefix, FamilyType, Hop, PerFamily, Prefix, Route, Routes};
use fibula_rib::{IndexedRoutes, Pod};

use crate::{Validity, Vrp};

/// A set of VRPs, indexed by prefix. Duplicates count once.
pub struct Vrps(PerFamily<Family>);

/// The VRPs of a family. See [`Covering`].
struct Family;

impl FamilyType for Family {
    type Of<A: Addr> = Covering<A>;
}

/// The prefixes of the VRPs as routes, with the maximum lengths and ASes of each.
pub(crate) struct Covering<A: Addr> {
    prefixes: IndexedRoutes<A>,
    /// The index of each prefix's first rule, and at the end the number of rules.
    begins: Vec<usize>,
    rules: Vec<Rule>,
}

/// A VRP without its prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) asn: u32,
    pub(crate) max_len: u8,
}

impl Vrps {
    /// Makes a set of VRPs.
    ///
    /// # Panics
    /// If a family has 2^32 - 1 prefixes or more.
    pub fn new(vrps: impl IntoIterator<Item = Vrp>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for vrp in vrps {
            let rule = Rule { asn: vrp.asn(), max_len: vrp.max_len() };
            match vrp.prefix() {
                AnyPrefix::V4(prefix) => v4.push((prefix, rule)),
                AnyPrefix::V6(prefix) => v6.push((prefix, rule)),
            }
        }
        Self(PerFamily { v4: Covering::new(v4), v6: Covering::new(v6) })
    }

    /// Number of different VRPs.
    pub fn len(&self) -> usize {
        self.0.v4.rules.len() + self.0.v6.rules.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of different IPv4 VRPs and IPv6 VRPs.
    pub fn by_family(&self) -> [usize; 2] {
        [self.0.v4.rules.len(), self.0.v6.rules.len()]
    }

    /// The VRPs that cover the prefix, longest prefix first; for equal prefixes by AS, then by maximum length. An
    /// IPv4-mapped prefix is treated as IPv4.
    pub fn covering(&self, prefix: AnyPrefix) -> Box<dyn Iterator<Item = Vrp> + '_> {
        match prefix.unmapped() {
            AnyPrefix::V4(prefix) => Box::new(self.0.v4.vrps(self.0.v4.longest(prefix))),
            AnyPrefix::V6(prefix) => Box::new(self.0.v6.vrps(self.0.v6.longest(prefix))),
        }
    }

    /// The validity of a route with this prefix and origin AS. `None` is a route without an origin, for example
    /// because its AS path ends in a set. AS 0 means the same.
    pub fn validity(&self, prefix: AnyPrefix, origin: Option<u32>) -> Validity {
        match prefix.unmapped() {
            AnyPrefix::V4(prefix) => self.of(prefix, origin).0,
            AnyPrefix::V6(prefix) => self.of(prefix, origin).0,
        }
    }

    /// The validity, and the number of the longest VRP prefix that covers the prefix.
    pub(crate) fn of<A: Addr + Pod>(
        &self,
        prefix: Prefix<A>,
        origin: Option<u32>,
    ) -> (Validity, Option<usize>) {
        let family = self.family::<A>();
        let Some(longest) = family.longest(prefix) else { return (Validity::NotFound, None) };
        let origin = origin.filter(|&asn| asn != 0);
        let mut validity = Validity::InvalidOrigin;
        for at in family.up(longest) {
            for rule in family.rules(at).iter().filter(|rule| Some(rule.asn) == origin) {
                if prefix.len() <= rule.max_len {
                    return (Validity::Valid, Some(longest));
                }
                validity = Validity::InvalidLength;
            }
        }
        (validity, Some(longest))
    }

    pub(crate) fn family<A: Addr>(&self) -> &Covering<A> {
        self.0.get::<A>()
    }
}

impl fmt::Debug for Vrps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [v4, v6] = self.by_family();
        f.debug_struct("Vrps").field("v4", &v4).field("v6", &v6).finish()
    }
}

impl Default for Vrps {
    /// No VRPs.
    fn default() -> Self {
        Self::new([])
    }
}

impl FromIterator<Vrp> for Vrps {
    fn from_iter<I: IntoIterator<Item = Vrp>>(vrps: I) -> Self {
        Self::new(vrps)
    }
}

impl<A: Addr + Pod> Covering<A> {
    fn new(mut vrps: Vec<(Prefix<A>, Rule)>) -> Self {
        vrps.sort_unstable();
        vrps.dedup();
        let (mut routes, mut begins) = (Vec::<Route<A>>::new(), Vec::new());
        for (at, &(prefix, _)) in vrps.iter().enumerate() {
            if routes.last().is_none_or(|last| last.prefix != prefix) {
                routes.push(Route { prefix, hop: Hop::new(0) }); // the place says which rules
                begins.push(at);
            }
        }
        begins.push(vrps.len());
        let prefixes = IndexedRoutes::new(&Routes::from_unsorted(routes));
        Self { prefixes, begins, rules: vrps.into_iter().map(|(_, rule)| rule).collect() }
    }

    /// The number of the longest VRP prefix that covers the prefix.
    fn longest(&self, prefix: Prefix<A>) -> Option<usize> {
        // Longer prefixes that begin at the same address do not cover all of it.
        let covers = |&at: &usize| self.prefixes.get(at).prefix.covers(prefix);
        self.prefixes.covering(prefix.addr()).find(covers)
    }

    /// This VRP prefix and the VRP prefixes that cover it, longest first.
    fn up(&self, longest: usize) -> impl Iterator<Item = usize> + '_ {
        let prefix = self.prefixes.get(longest).prefix;
        let at_most = move |&at: &usize| self.prefixes.get(at).prefix.len() <= prefix.len();
        self.prefixes.covering(prefix.addr()).filter(at_most)
    }

    fn rules(&self, at: usize) -> &[Rule] {
        &self.rules[self.begins[at]..self.begins[at + 1]]
    }

    /// The VRPs of this prefix, and of the prefixes that cover it.
    pub(crate) fn vrps(&self, longest: Option<usize>) -> impl Iterator<Item = Vrp> + '_ {
        longest.into_iter().flat_map(|longest| self.up(longest)).flat_map(|at| {
            let prefix = A::any(self.prefixes.get(at).prefix);
            let rules = self.rules(at).iter();
            rules.filter_map(move |rule| Vrp::new(prefix, rule.max_len.into(), rule.asn).ok())
        })
    }
}
