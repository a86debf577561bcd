use fibula_core::{Addr, Routes};

/// The shape of a table, as far as it matters to lookup schemes: lengths, nesting, intervals.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_testkit::TableShape;
/// let routes: Routes<u32> = [
///     ("10.0.0.0/8".parse::<Prefix<u32>>()?, Hop::new(1)),
///     ("10.1.0.0/16".parse()?, Hop::new(1)),
/// ].into_iter().collect();
/// let shape = TableShape::of(&routes);
/// assert_eq!(shape.more_specific_share(), 0.5);
/// assert_eq!((shape.intervals, shape.merged), (5, 3));
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Routes.
    pub prefixes: usize,
    /// Routes by prefix length, index 0 to 32 or 128.
    pub lengths: Vec<usize>,
    /// Of these, the more-specifics: those that another route covers.
    pub more_specific: Vec<usize>,
    /// Routes by the number of routes that cover them; index 0 counts the roots.
    pub depths: Vec<usize>,
    /// More-specifics whose hop is that of the closest covering route.
    pub hop_of_parent: usize,
    /// Elementary intervals as the prefixes cut them.
    pub intervals: usize,
    /// Elementary intervals with equal neighbours merged.
    pub merged: usize,
    /// Merged intervals that no route covers.
    pub gaps: usize,
}

impl TableShape {
    /// Measures the table. O(n).
    pub fn of<A: Addr>(routes: &Routes<A>) -> Self {
        let width = usize::from(A::BITS) + 1;
        let mut shape = Self {
            prefixes: routes.len(),
            lengths: vec![0; width],
            more_specific: vec![0; width],
            depths: Vec::new(),
            hop_of_parent: 0,
            intervals: routes.ranges_unmerged().count(),
            merged: routes.ranges().count(),
            gaps: routes.ranges().filter(|range| range.hop.is_none()).count(),
        };
        let mut open: Vec<fibula_core::Route<A>> = Vec::new();
        for route in routes.iter() {
            while open.last().is_some_and(|cover| !cover.prefix.covers(route.prefix)) {
                open.pop();
            }
            let len = usize::from(route.prefix.len());
            shape.lengths[len] += 1;
            if let Some(parent) = open.last() {
                shape.more_specific[len] += 1;
                shape.hop_of_parent += usize::from(parent.hop == route.hop);
            }
            if shape.depths.len() <= open.len() {
                shape.depths.push(0);
            }
            shape.depths[open.len()] += 1;
            open.push(route);
        }
        shape
    }

    /// The share of routes that another route covers, 0 for an empty table.
    pub fn more_specific_share(&self) -> f64 {
        let covered: usize = self.more_specific.iter().sum();
        covered as f64 / self.prefixes.max(1) as f64
    }

    /// How many routes cover a route, on average.
    pub fn mean_depth(&self) -> f64 {
        let sum: usize = self.depths.iter().enumerate().map(|(depth, count)| depth * count).sum();
        sum as f64 / self.prefixes.max(1) as f64
    }
}
