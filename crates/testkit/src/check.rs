//! Comparing an engine with the oracle.

use std::fmt;
use std::thread;

use fibula_core::{Addr, Hop, Lookup};

/// The call that returned a wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By `lookup`.
    Single,
    /// By `lookup_batch`, in a batch of this many addresses.
    Batch(usize),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Batch(len) => write!(f, "batch of {len}"),
        }
    }
}

/// A wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<A> {
    /// The address.
    pub addr: A,
    /// The oracle's answer.
    pub expected: Hop,
    /// The engine's.
    pub got: Hop,
    /// The call.
    pub how: How,
}

impl<A: Addr> fmt::Display for Difference<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, expected, got, how } = self;
        write!(f, "{}: expected {expected:?}, got {got:?} ({how})", addr.to_ip())
    }
}

/// The result of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport<A> {
    /// Number of addresses, each looked up both singly and in a batch.
    pub probes: u64,
    /// Addresses answered wrongly, in either way or both.
    pub wrong: u64,
    /// The first differences, at most as many as [`check`] keeps.
    pub first: Vec<Difference<A>>,
}

impl<A: Addr> CheckReport<A> {
    /// Whether every answer was right.
    pub fn is_ok(&self) -> bool {
        self.wrong == 0
    }

    /// Adds the result of another run; keeps at most `keep` differences.
    pub fn absorb(&mut self, other: Self, keep: usize) {
        self.probes += other.probes;
        self.wrong += other.wrong;
        let room = keep.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }
}

impl<A: Addr> fmt::Display for CheckReport<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} probes wrong", self.wrong, self.probes)?;
        self.first.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
    }
}

/// Looks up every address of `probes` in `engine` and `oracle`, singly and in batches, and reports where they differ;
/// the first `keep` differences in full.
///
/// The batch lengths go round 1, 2, ... 130, so that a long run meets every remainder that a kernel
/// of 4, 8, 16, 32 or 64 lanes can leave, with whatever addresses come.
///
/// ```
/// use fibula_core::Routes;
/// use fibula_testkit::{Oracle, check::check, probes, tables};
///
/// let routes: Routes<u32> = tables::dense(1, 100);
/// let oracle = Oracle::new(&routes);
/// let report = check(&oracle, &oracle, &mut probes::boundary(&routes), 10);
/// assert!(report.is_ok(), "{report}");
/// ```
pub fn check<A: Addr>(
    engine: &dyn Lookup<A>,
    oracle: &dyn Lookup<A>,
    probes: &mut dyn Iterator<Item = A>,
    keep: usize,
) -> CheckReport<A> {
    let mut report = CheckReport { probes: 0, wrong: 0, first: Vec::new() };
    let mut addrs: Vec<A> = Vec::with_capacity(LONGEST_BATCH);
    let mut expected = Vec::with_capacity(LONGEST_BATCH);
    for len in batch_lengths() {
        addrs.clear();
        addrs.extend((&mut *probes).take(len));
        if addrs.is_empty() {
            break;
        }
        expected.clear();
        expected.extend(addrs.iter().map(|&addr| oracle.lookup(addr)));
        check_batch(engine, &addrs, &expected, keep, &mut report);
    }
    report
}

/// As [`check`], with answers that the oracle gave before: `expected[i]` is right for `addrs[i]`.
///
/// # Panics
/// If there are not as many answers as addresses.
pub fn check_answers<A: Addr>(
    engine: &dyn Lookup<A>,
    mut addrs: &[A],
    mut expected: &[Hop],
    keep: usize,
) -> CheckReport<A> {
    assert_eq!(addrs.len(), expected.len(), "an answer for each address");
    let mut report = CheckReport { probes: 0, wrong: 0, first: Vec::new() };
    for len in batch_lengths() {
        if addrs.is_empty() {
            break;
        }
        let (batch, rest) = addrs.split_at(len.min(addrs.len()));
        let (answers, other_answers) = expected.split_at(batch.len());
        check_batch(engine, batch, answers, keep, &mut report);
        (addrs, expected) = (rest, other_answers);
    }
    report
}

/// Probes whose right answers are kept at a time: asking the oracle is the slowest part, so it is done once for all
/// engines.
const CHUNK: usize = 1 << 20;

/// As [`check`], for several engines over the same probes, as many at a time as there are cores. The reports are in the
/// order of the engines.
///
/// ```
/// use fibula_core::{Lookup, Routes};
/// use fibula_testkit::{Oracle, check::check_all, probes, tables};
///
/// let routes: Routes<u32> = tables::dense(1, 100);
/// let oracle = Oracle::new(&routes);
/// let engines: [&dyn Lookup<u32>; 2] = [&oracle, &oracle];
/// let reports = check_all(&engines, &oracle, &mut probes::boundary(&routes), 10);
/// assert!(reports.len() == 2 && reports.iter().all(|report| report.is_ok()));
/// ```
pub fn check_all<A: Addr>(
    engines: &[&dyn Lookup<A>],
    oracle: &dyn Lookup<A>,
    probes: &mut dyn Iterator<Item = A>,
    keep: usize,
) -> Vec<CheckReport<A>> {
    let mut reports: Vec<CheckReport<A>> =
        engines.iter().map(|_| CheckReport { probes: 0, wrong: 0, first: Vec::new() }).collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = engines.len().div_ceil(threads).max(1);
    let (mut addrs, mut answers) = (Vec::new(), Vec::new());
    loop {
        addrs.clear();
        addrs.extend((&mut *probes).take(CHUNK));
        if addrs.is_empty() {
            return reports;
        }
        answers.resize(addrs.len(), Hop::NONE);
        oracle.lookup_batch(&addrs, &mut answers);
        let (addrs, answers) = (&addrs[..], &answers[..]);
        thread::scope(|scope| {
            for (engines, reports) in engines.chunks(share).zip(reports.chunks_mut(share)) {
                scope.spawn(move || {
                    for (engine, report) in engines.iter().zip(reports) {
                        report.absorb(check_answers(*engine, addrs, answers, keep), keep);
                    }
                });
            }
        });
    }
}

/// 1, 2, ... 272, again and again.
fn batch_lengths() -> impl Iterator<Item = usize> {
    (1..=LONGEST_BATCH).cycle()
}

/// A round of 256 lanes and a remainder.
pub(crate) const LONGEST_BATCH: usize = 272;

/// One batch: all of `addrs` are looked up in `engine` at once, and each alone.
pub(crate) fn check_batch<A: Addr>(
    engine: &dyn Lookup<A>,
    addrs: &[A],
    expected: &[Hop],
    keep: usize,
    report: &mut CheckReport<A>,
) {
    // Neither "none" nor a real hop: an element that the engine forgets to write shows.
    let unwritten = Hop::new(Hop::MAX_INDEX);
    let mut hops = vec![unwritten; addrs.len()];
    engine.lookup_batch(addrs, &mut hops);
    for ((&addr, &expected), &in_batch) in addrs.iter().zip(expected).zip(&hops) {
        let answers = [(How::Single, engine.lookup(addr)), (How::Batch(addrs.len()), in_batch)];
        let mut wrong = false;
        for (how, got) in answers {
            if got != expected {
                wrong = true;
                if report.first.len() < keep {
                    report.first.push(Difference { addr, expected, got, how });
                }
            }
        }
        report.probes += 1;
        report.wrong += u64::from(wrong);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Oracle, probes, tables};
    use fibula_core::{Memory, Prefix, Routes};

    /// Wrong at the last address, in batches only at lengths that are no multiple of 8.
    struct Wrong(Oracle<u32>);

    impl Lookup<u32> for Wrong {
        fn lookup(&self, addr: u32) -> Hop {
            if addr == u32::MAX { Hop::NONE } else { self.0.lookup(addr) }
        }
        fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
            let whole = addrs.len() / 8 * 8;
            self.0.lookup_batch(&addrs[..whole], &mut hops[..whole]);
        }
        fn memory(&self) -> Memory {
            Memory::default()
        }
    }

    #[test]
    fn finds_both_kinds_of_fault() {
        let routes: Routes<u32> = [(Prefix::ALL, Hop::new(4))].into_iter().collect();
        let oracle = Oracle::new(&routes);
        let wrong = Wrong(oracle.clone());
        let report = check(&wrong, &oracle, &mut [1, u32::MAX].into_iter(), 10);
        assert_eq!((report.probes, report.wrong), (2, 2));
        let hows: Vec<How> = report.first.iter().map(|d| d.how).collect();
        assert_eq!(hows, [How::Batch(1), How::Single, How::Batch(1)]);
        assert!(report.to_string().starts_with("2 of 2 probes wrong\n  0.0.0.1: expected"));
        // Nothing kept, all counted.
        let report = check(&wrong, &oracle, &mut (0..1000), 0);
        assert!(report.first.is_empty() && report.wrong > 0 && !report.is_ok());
    }

    #[test]
    fn asks_every_probe_once() {
        let routes = tables::dense::<u128>(3, 500);
        let oracle = Oracle::new(&routes);
        let report = check(&oracle, &oracle, &mut probes::boundary(&routes), 1);
        assert_eq!(report.probes, probes::boundary(&routes).count() as u64);
        assert_eq!(report.wrong, 0);
    }

    #[test]
    fn answers_given_before_count_alike() {
        let routes = tables::dense::<u32>(3, 500);
        let wrong = Wrong(Oracle::new(&routes));
        let addrs: Vec<u32> = probes::boundary(&routes).collect();
        let expected: Vec<Hop> = addrs.iter().map(|&addr| wrong.0.lookup(addr)).collect();
        let report = check_answers(&wrong, &addrs, &expected, 3);
        assert_eq!(report, check(&wrong, &wrong.0, &mut addrs.iter().copied(), 3));
        assert!(report.wrong > 0 && report.first.len() == 3);
    }
}
