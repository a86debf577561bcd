//! The values with most bytes among any number of values, in bounded memory.

use hashbrown::HashMap;

/// What the flows of a value have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSums {
    /// Bytes, each flow's multiplied by its sampling rate.
    pub bytes: u64,
    /// Packets, each flow's multiplied by its sampling rate.
    pub packets: u64,
    /// Records of flows.
    pub flows: u64,
}

impl FlowSums {
    pub(crate) fn add(&mut self, more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.packets = self.packets.saturating_add(more.packets);
        self.flows = self.flows.saturating_add(more.flows);
    }
}

/// A value as text; `None` for flows without one.
pub(crate) type Value = Option<Box<str>>;

/// Sums of values. When there are too many, the half with fewer bytes is forgotten, as J. Misra and D. Gries forget in
/// "Finding Repeated Elements" (1982): a value has a counter, which grows with its bytes and loses as many bytes as all
/// others' when values are forgotten, and a value is forgotten when nothing is left of its counter. So what is missing
/// of a value is never more than what the counters have lost, which is at most all bytes divided by half the limit.
pub(crate) struct Heavy {
    limit: usize,
    values: HashMap<Value, Held>,
    /// What the counter of a value that was there from the beginning has lost.
    lost: u64,
}

/// A value that is not forgotten.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// Its flows since it was added.
    pub(crate) sums: FlowSums,
    /// The bytes that it may have had before, at most.
    pub(crate) missed: u64,
}

impl Held {
    /// `lost` is that of all counters.
    fn counter(&self, lost: u64) -> u64 {
        (self.sums.bytes).saturating_sub(lost - self.missed)
    }
}

impl Heavy {
    /// Keeps at most `limit` values.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(2), values: HashMap::new(), lost: 0 }
    }

    pub(crate) fn add(&mut self, value: Option<&str>, sums: FlowSums) {
        if let Some(held) = self.values.get_mut(&Known(value)) {
            return held.sums.add(sums);
        }
        if self.values.len() == self.limit {
            self.forget();
        }
        self.values.insert(value.map(Box::from), Held { sums, missed: self.lost });
    }

    /// Forgets at least half of the values.
    fn forget(&mut self) {
        let mut counters: Vec<u64> =
            self.values.values().map(|held| held.counter(self.lost)).collect();
        let half = counters.len() / 2;
        let (_, &mut least, _) = counters.select_nth_unstable_by(half, |a, b| b.cmp(a));
        let lost = self.lost;
        self.values.retain(|_, held| held.counter(lost) > least);
        self.lost = lost.saturating_add(least);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = (&Value, &Held)> {
        self.values.iter()
    }

    /// The bytes that are missing of a value that is not there, at most.
    pub(crate) fn missed(&self) -> u64 {
        self.lost
    }
}

/// A value that is looked for without being copied.
#[derive(Hash)]
struct Known<'a>(Option<&'a str>);

impl hashbrown::Equivalent<Value> for Known<'_> {
    fn equivalent(&self, value: &Value) -> bool {
        self.0 == value.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{FlowSums, Heavy};

    fn sums(bytes: u64) -> FlowSums {
        FlowSums { bytes, packets: bytes / 10, flows: 1 }
    }

    /// Numbers that look random.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn few_values_are_exact() {
        let mut heavy = Heavy::new(4);
        for (value, bytes) in [(Some("a"), 5), (None, 7), (Some("a"), 1), (Some("b"), 2), (None, 0)]
        {
            heavy.add(value, sums(bytes));
        }
        let mut all: Vec<_> = heavy
            .values()
            .map(|(value, held)| (value.as_deref(), held.sums.bytes, held.sums.flows, held.missed))
            .collect();
        all.sort_unstable();
        assert_eq!(all, [(None, 7, 2, 0), (Some("a"), 6, 2, 0), (Some("b"), 2, 1, 0)]);
    }

    /// What is missing is within what is said, and what is said is within the bound, for any order of values.
    #[test]
    fn what_is_missing_is_bounded() {
        let mut state = 7;
        for (limit, values, adds) in [(2, 5, 60), (8, 40, 4000), (64, 5000, 40_000), (64, 64, 999)]
        {
            let mut heavy = Heavy::new(limit);
            let mut truth = HashMap::<String, u64>::new();
            let mut total = 0;
            for step in 0..adds {
                // A few large ones among many small ones, which come again and again.
                let (value, bytes) = match step % 3 {
                    0 => (random(&mut state) % 3, random(&mut state) % 1000),
                    _ => (random(&mut state) % values, random(&mut state) % 50),
                };
                let value = value.to_string();
                heavy.add(Some(&value), sums(bytes));
                *truth.entry(value).or_default() += bytes;
                total += bytes;
                assert!(heavy.values.len() <= limit);
            }
            assert!(heavy.missed() <= total / (limit as u64 / 2), "{limit}: {}", heavy.missed());
            assert_eq!(heavy.missed() == 0, truth.len() <= limit, "{limit}");
            for (value, bytes) in truth {
                let held = heavy.values.get(&Some(value.into_boxed_str()));
                let (said, missed) =
                    held.map_or((0, heavy.missed()), |held| (held.sums.bytes, held.missed));
                assert!(
                    said <= bytes && bytes - said <= missed,
                    "{limit}: {bytes} {said} {missed}"
                );
            }
        }
    }
}
