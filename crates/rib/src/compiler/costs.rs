//! What building and patching cost, as measured on the table at hand.

use std::time::Duration;

/// Prefixes whose patches are taken to cost as much as a build, before any was measured.
const GUESS: f64 = 4096.0;

/// Nanoseconds of builds, and of patches for each prefix.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    build: f64,
    patch: Option<f64>,
}

impl Costs {
    pub(crate) fn built(&mut self, time: Duration) {
        self.build = mean(Some(self.build).filter(|ns| *ns > 0.0), time.as_nanos() as f64);
        // Patches get another chance now and then: the last one may have met a busy machine.
        self.patch = self.patch.map(|ns| ns * 0.97);
    }

    pub(crate) fn patched(&mut self, time: Duration, prefixes: usize) {
        let each = time.as_nanos() as f64 / prefixes.max(1) as f64;
        // Now and then tables grow or leave garbage behind, or the machine is busy: no reason for a build.
        let each = self.patch.map_or(each, |known| each.min(4.0 * known));
        self.patch = Some(mean(self.patch, each));
    }

    pub(crate) fn is_patch_cheaper(&self, prefixes: usize) -> bool {
        let each = self.patch.unwrap_or(self.build / GUESS);
        each * prefixes as f64 <= self.build
    }
}

/// A mean that forgets.
fn mean(old: Option<f64>, new: f64) -> f64 {
    old.map_or(new, |old| 0.75 * old + 0.25 * new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheaper_way_is_taken_and_tried_again() {
        let ms = Duration::from_millis;
        let mut costs = Costs::default();
        costs.built(ms(30));
        assert!(costs.is_patch_cheaper(4000) && !costs.is_patch_cheaper(5000));
        costs.patched(ms(10), 100);
        assert!(costs.is_patch_cheaper(300) && !costs.is_patch_cheaper(301));
        let mut others = costs;
        others.patched(ms(1000), 100);
        assert!(others.is_patch_cheaper(170), "one that took long");
        (0..9).for_each(|_| others.patched(ms(1000), 100));
        assert!(!others.is_patch_cheaper(10), "all do");
        (0..50).for_each(|_| costs.built(ms(30)));
        assert!(costs.is_patch_cheaper(600));
    }
}
