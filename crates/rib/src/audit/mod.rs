//! Checks continuously whether the live engine is right, by comparing it with the RIB at the addresses where engines
//! are most likely wrong.
//!
//! When the compiler takes a batch of changes, it holds the RIB's lock. The audit then records the RIB's
//! answers at the boundaries of changed prefixes and of some others. When the batch is published, the audit compares
//! the answers of the published engine. Both are answers of the same generation, even if the feed continues meanwhile.
//! A difference is counted and reported, and the table is compiled anew from the RIB.

use fibula_core::{Addr, Hop, Prefix, Routes, Vrf};

use crate::publisher::Generation;
use crate::{Change, Rib};

/// The part of the table that is checked while it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// Nothing is checked.
    Off,
    /// A sample: some changed prefixes of each batch and some others. It takes about 0.2 ms of the feed's time.
    #[default]
    Sampling,
    /// All changed prefixes of each batch, and all others in turn.
    Full,
}

/// The auditor of one table.
pub(crate) struct Auditor<A: Addr> {
    mode: Audit,
    /// The prefix at which the sweep over the RIB continues.
    next: Prefix<A>,
    random: u64,
}

/// An address, and the RIB's answer.
pub(crate) struct Probe<A: Addr> {
    pub(crate) prefix: Prefix<A>,
    pub(crate) addr: A,
    pub(crate) expected: Hop,
}

/// Number of changed prefixes of each batch in a sample.
const CHANGED: usize = 48;
/// Number of routes in a sample: random ones, and the next ones of the sweep.
const RANDOM: usize = 16;
const SWEEP: usize = 16;
/// Number of routes of the sweep for each batch in full mode.
const SWEEP_FULL: usize = 4096;

impl<A: Addr> Auditor<A> {
    pub(crate) fn new(mode: Audit) -> Self {
        Self { mode, next: Prefix::ALL, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The probes of a batch with the RIB's answers at the cut; `routes` are the routes from which the engine was made
    /// before.
    pub(crate) fn probes(
        &mut self,
        rib: &Rib,
        vrf: Vrf,
        changes: &[Change<A>],
        routes: &Routes<A>,
    ) -> Vec<Probe<A>> {
        let (changed, sweep) = match self.mode {
            Audit::Off => return Vec::new(),
            Audit::Sampling => (CHANGED, SWEEP),
            Audit::Full => (changes.len(), SWEEP_FULL),
        };
        let step = changes.len().div_ceil(changed.max(1)).max(1);
        let mut prefixes: Vec<Prefix<A>> =
            changes.iter().step_by(step).map(|change| change.prefix).collect();
        for _ in 0..RANDOM.min(routes.len()) {
            prefixes.push(routes.as_slice()[self.below(routes.len())].prefix);
        }
        let mut swept = rib.part(vrf, self.next, sweep + 1);
        // The additional route is where the next sweep begins; after the last route, the sweep starts again.
        self.next = if swept.len() > sweep { swept.pop() } else { None }.unwrap_or(Prefix::ALL);
        prefixes.append(&mut swept);
        let probe = |(prefix, addr)| Probe { prefix, addr, expected: rib.lookup(vrf, addr) };
        prefixes.into_iter().flat_map(boundary).map(probe).collect()
    }

    /// Xorshift: any sample will do.
    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % n as u64) as usize
    }
}

/// The ends of the prefix and their neighbours.
fn boundary<A: Addr>(prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, A)> {
    let (first, last) = (prefix.first(), prefix.last());
    let all = [first.predecessor(), Some(first), Some(last), last.successor()];
    all.into_iter().flatten().map(move |addr| (prefix, addr))
}

/// The probes for which the generation's answer differs, with that answer.
pub(crate) fn differences<'a, A: Addr>(
    generation: &Generation<A>,
    probes: &'a [Probe<A>],
) -> Vec<(&'a Probe<A>, Hop)> {
    let addrs: Vec<A> = probes.iter().map(|probe| probe.addr).collect();
    let mut hops = vec![Hop::NONE; addrs.len()];
    generation.lookup_batch(&addrs, &mut hops);
    probes.iter().zip(hops).filter(|(probe, hop)| probe.expected != *hop).collect()
}
