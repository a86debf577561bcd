//! The measured costs of building, patching and copying the current table.

use std::time::Duration;

/// Prefixes whose patch is taken to cost as much as a build, before one was measured. The number is higher than is
/// likely: a slow patch is measured once and then known, but a patch that is never tried is never measured.
const GUESS: usize = 32_768;

/// A build is chosen only if patches are estimated to cost this many times as much. An estimate of patches is of the
/// last few, and of a build often of a quiet start: beside the feed and readers it takes twice as long, and all changes
/// wait for it.
const PATIENCE: f64 = 2.0;

/// The assumed cost of a copy as a part of a build's, before a copy was measured.
const COPY_GUESS: f64 = 1.0 / 32.0;

/// A patch of `n` prefixes costs some `n` to this power: the more there are, the more of them share a block. Measured
/// with `runmap` and `wideleaf`: within a quarter of that from 12 to 20,000 prefixes.
const SHARING: f64 = 0.85;

/// Below this number of routes, a build's time hardly depends on it.
const SMALL: usize = 8192;

/// The ways to make a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateMethod {
    /// The engine before the current one is patched.
    Spare,
    /// A copy of the current one is patched.
    Copy,
    Build,
}

/// Nanoseconds of builds and copies, and of patches by their prefixes to the power of [`SHARING`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    build: f64,
    patch: Option<f64>,
    copy: Option<f64>,
}

impl Costs {
    pub(crate) fn built(&mut self, time: Duration) {
        self.build = mean(Some(self.build).filter(|ns| *ns > 0.0), time.as_nanos() as f64);
        // Other ways are tried again now and then: their last measurement may come from a busy moment of the machine.
        self.patch = self.patch.map(|ns| ns * 0.97);
        self.copy = self.copy.map(|ns| ns * 0.97);
    }

    /// Scales the cost of a build to a new number of routes. While a table is loaded, builds become slower with each
    /// batch, so they would otherwise always be chosen by the times of past builds.
    pub(crate) fn grown(&mut self, from: usize, to: usize) {
        self.build *= (to.max(SMALL) as f64 / from.max(SMALL) as f64).max(1.0);
    }

    pub(crate) fn patched(&mut self, time: Duration, prefixes: usize) {
        let unit = time.as_nanos() as f64 / units(prefixes.max(1));
        // A single slow patch, from a growing table, from garbage or on a busy machine, is no reason for a build.
        let unit = self.patch.map_or(unit, |known| unit.min(4.0 * known));
        self.patch = Some(mean(self.patch, unit));
    }

    pub(crate) fn copied(&mut self, time: Duration) {
        let time = time.as_nanos() as f64;
        self.copy = Some(mean(self.copy, self.copy.map_or(time, |known| time.min(4.0 * known))));
    }

    /// The cheapest way for so many prefixes that have changed since the current engine. A spare engine, if there is
    /// one, lacks `behind` others.
    pub(crate) fn way(
        &self,
        prefixes: usize,
        behind: Option<usize>,
        may_copy: bool,
    ) -> UpdateMethod {
        let unit = self.patch.unwrap_or(self.build / units(GUESS));
        let copy = self.copy.unwrap_or(self.build * COPY_GUESS) + unit * units(prefixes);
        let spare = behind.map(|behind| (UpdateMethod::Spare, unit * units(prefixes + behind)));
        let build = (UpdateMethod::Build, PATIENCE * self.build);
        let ways = [spare, may_copy.then_some((UpdateMethod::Copy, copy)), Some(build)];
        let least = |a: &(UpdateMethod, f64), b: &(UpdateMethod, f64)| a.1.total_cmp(&b.1);
        ways.into_iter().flatten().min_by(least).map_or(UpdateMethod::Build, |(way, _)| way)
    }
}

fn units(prefixes: usize) -> f64 {
    (prefixes as f64).powf(SHARING)
}

/// A moving average.
fn mean(old: Option<f64>, new: f64) -> f64 {
    old.map_or(new, |old| 0.75 * old + 0.25 * new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_way_is_taken_and_others_tried_again() {
        let (ms, us) = (Duration::from_millis, Duration::from_micros);
        let mut costs = Costs::default();
        costs.built(ms(15)); // patches may take 30
        assert_eq!(costs.way(70_000, Some(0), false), UpdateMethod::Spare);
        assert_eq!(costs.way(75_000, Some(0), false), UpdateMethod::Build);
        assert_eq!(costs.way(74_000, None, true), UpdateMethod::Build, "the copy itself");
        assert_eq!(costs.way(70_000, None, true), UpdateMethod::Copy);
        assert_eq!(costs.way(100, None, false), UpdateMethod::Build);
        // 100 prefixes take 1 ms, a copy takes 300 us.
        costs.patched(ms(1), 100);
        costs.copied(us(300));
        assert_eq!(
            costs.way(10, Some(20), true),
            UpdateMethod::Spare,
            "a copy costs more than 20 prefixes"
        );
        assert_eq!(costs.way(100, Some(100), true), UpdateMethod::Copy, "and less than 100");
        assert_eq!(costs.way(5400, Some(5400), true), UpdateMethod::Copy);
        assert_eq!(costs.way(5400, Some(5400), false), UpdateMethod::Build);
        assert_eq!(costs.way(5500, Some(5500), true), UpdateMethod::Build);
        let mut others = costs;
        others.grown(1000, 5000);
        assert_eq!(others.way(5500, Some(5500), true), UpdateMethod::Build);
        others.grown(5000, 10_000);
        assert_eq!(others.way(5500, Some(5500), true), UpdateMethod::Copy, "a larger table");
        others.grown(100_000, 10);
        assert_eq!(others.way(5500, Some(5500), true), UpdateMethod::Copy);
        let mut others = costs;
        others.patched(ms(1000), 100);
        assert_eq!(others.way(2400, Some(0), false), UpdateMethod::Spare, "one that took long");
        (0..9).for_each(|_| others.patched(ms(1000), 100));
        assert_eq!(others.way(100, Some(0), false), UpdateMethod::Build, "all do");
        let mut others = costs;
        (0..50).for_each(|_| others.copied(ms(1000)));
        assert_eq!(others.way(100, None, true), UpdateMethod::Build, "copies take long");
        (0..150).for_each(|_| others.built(ms(15)));
        assert_eq!(others.way(100, None, true), UpdateMethod::Copy, "that was long ago");
        (0..50).for_each(|_| costs.built(ms(15)));
        assert_eq!(costs.way(15_000, None, true), UpdateMethod::Copy);
    }
}
