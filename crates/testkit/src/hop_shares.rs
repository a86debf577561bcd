use fibula_core::{Addr, Routes};

/// How unequally the routes of a table use its hops.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_testkit::HopShares;
/// let routes: Routes<u32> = [
///     ("10.0.0.0/8".parse::<Prefix<u32>>()?, Hop::new(1)),
///     ("10.1.0.0/16".parse()?, Hop::new(7)),
///     ("10.2.0.0/16".parse()?, Hop::new(7)),
///     ("10.3.0.0/16".parse()?, Hop::new(7)),
/// ].into_iter().collect();
/// let shares = HopShares::of(&routes);
/// assert_eq!((shares.distinct(), shares.top(1), shares.top(10)), (2, 0.75, 1.0));
/// assert!((shares.entropy_bits() - 0.811).abs() < 0.001);
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopShares {
    /// Routes by hop, the most frequent hop first, without hops that no route has.
    counts: Vec<usize>,
    routes: usize,
}

impl HopShares {
    /// Counts the hops of the routes. O(n).
    pub fn of<A: Addr>(routes: &Routes<A>) -> Self {
        let mut counts = vec![0usize; routes.hop_count() as usize];
        for index in routes.iter().filter_map(|route| route.hop.index()) {
            counts[index as usize] += 1;
        }
        counts.retain(|count| *count > 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        Self { counts, routes: routes.len() }
    }

    /// The number of hops that routes have.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// The share of the routes that the `n` most frequent hops have, 0 for an empty table.
    pub fn top(&self, n: usize) -> f64 {
        self.counts.iter().take(n).sum::<usize>() as f64 / self.routes.max(1) as f64
    }

    /// The entropy of the distribution of hops over routes, in bits.
    pub fn entropy_bits(&self) -> f64 {
        let share = |count: &usize| *count as f64 / self.routes.max(1) as f64;
        self.counts.iter().map(share).map(|p| -p * p.log2()).sum()
    }
}
