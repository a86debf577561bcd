use crate::Rng;

/// Draws ranks 0 to n - 1 by Zipf's law with s = 1: rank k with probability proportional to
/// 1 / (k + 1).
///
/// By table and binary search in integers: the usual rejection method needs logarithms, whose last
/// bits differ between platforms.
pub(crate) struct Zipf {
    /// `sums[k]`: the weight of ranks 0 to k together.
    sums: Vec<u64>,
}

/// The weight of rank 0. The sum over a million ranks, 14.4 times it, stays far below 2^64, and the
/// weight of the last one, 2^40 / 10^6, is exact to 10^-6.
const FIRST: u64 = 1 << 40;

impl Zipf {
    pub(crate) fn new(n: usize) -> Self {
        let weights = (1..=n as u64).map(|k| FIRST / k);
        let sums = weights.scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    pub(crate) fn rank(&self, rng: &mut Rng) -> usize {
        let at = rng.below(self.sums.last().copied().unwrap_or(0));
        self.sums.partition_point(|sum| *sum <= at)
    }
}
