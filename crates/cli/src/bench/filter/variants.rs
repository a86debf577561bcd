//! The ways to probe a filter.

use fibula_filter::{BlockedFilter, Filter, Form, Plan, Prefetch, WordKey};

/// Keys and payloads in, keys and payloads that pass out; how many these are.
pub(super) type Probe<'a, K> = dyn Fn(&[K], &[K], &mut [K], &mut [K]) -> usize + 'a;

/// A way to probe, with its results and times.
pub(super) struct Variant<'a, K> {
    pub(super) name: &'static str,
    pub(super) ways: usize,
    pub(super) prefetch: Prefetch,
    pub(super) bytes: usize,
    pub(super) probe: Box<Probe<'a, K>>,
    pub(super) passed: usize,
    pub(super) mops: Vec<f64>,
}

impl<'a, K> Variant<'a, K> {
    pub(super) fn new(
        name: &'static str,
        ways: usize,
        prefetch: Prefetch,
        bytes: usize,
        probe: Box<Probe<'a, K>>,
    ) -> Self {
        Self { name, ways, prefetch, bytes, probe, passed: 0, mops: Vec::new() }
    }
}

pub(super) fn variants<'a, K: WordKey>(
    filter: &'a Filter,
    blocked: &'a BlockedFilter,
    prefetches: &[Prefetch],
) -> Vec<Variant<'a, K>> {
    let mut variants: Vec<Variant<'a, K>> = Vec::new();
    for form in Form::ALL.iter().copied().filter(|form| form.runs_on(filter.isa())) {
        let prefetches = if form == Form::Scalar { &prefetches[..1] } else { prefetches };
        for &prefetch in prefetches {
            for ways in 1..=form.max_ways() {
                let plan = Plan { form, ways, prefetch };
                let probe: Box<Probe<'a, K>> =
                    Box::new(move |keys, payloads, out, out_payloads| {
                        filter.probe_with(plan, keys, payloads, out, out_payloads)
                    });
                let bytes = filter.memory();
                variants.push(Variant::new(form.name(), ways, prefetch, bytes, probe));
            }
        }
    }
    // The blocked filter's loop prefetches into the second level alone.
    for &prefetch in prefetches.iter().filter(|prefetch| **prefetch != Prefetch::L1) {
        let probe: Box<Probe<'a, K>> = Box::new(move |keys, payloads, out, out_payloads| {
            blocked.probe_with(prefetch == Prefetch::L2, keys, payloads, out, out_payloads)
        });
        variants.push(Variant::new("blocked", 1, prefetch, blocked.memory(), probe));
    }
    variants
}
