//! The values of a table's routes, by the dense numbers that engines answer with.
//!
//! ```text
//!   value ─► number ─► hop of the route ─► engine ─► hop ─► slots[hop] ─► value
//!                                                   NONE ─► the last slot: the value of addresses without a route
//! ```
//!
//! Invariants:
//! - a slot that a published generation refers to is never written again: a number is used again only in a new array of
//!   slots, and generations keep their own array;
//! - there are at most as many values as routes, and as many again that no route has any more.

use fibula_core::{Addr, Routes};
use hashbrown::HashMap;

use crate::sync::{Arc, AtomicU64, Ordering};

/// The values by number, and behind them the value of addresses without a route.
pub(crate) struct Slots(Box<[AtomicU64]>);

impl Slots {
    /// Slots for this many values, of which the first are those of `from`.
    fn of(from: &[AtomicU64], count: usize, none: u64) -> Self {
        let value = |at: usize| from.get(at).map_or(none, |slot| slot.load(Ordering::Relaxed));
        let values = (0..count).map(value).chain([none]);
        Self(values.map(AtomicU64::new).collect())
    }

    /// The value of a hop's 32 bits. All numbers beyond the values mean that there is no route.
    #[inline]
    pub(crate) fn value(&self, hop: u32) -> u64 {
        // No branch: it would be mispredicted where some addresses have no route.
        let at = (hop as usize).min(self.0.len() - 1);
        self.0[at].load(Ordering::Relaxed)
    }

    /// The slots of values.
    fn values(&self) -> &[AtomicU64] {
        &self.0[..self.0.len() - 1]
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Gives numbers to values.
pub(super) struct Numbers {
    slots: Arc<Slots>,
    of: HashMap<u64, u32>,
    free: Vec<u32>,
    /// Slots that were ever used.
    used: u32,
    /// From this number of values on, those that no route has are looked for.
    scan_from: usize,
    none: u64,
}

/// Below this number of values, none is given up. The model check has few values, and publishes some of its changes
/// before any is given up.
const FEW: usize = if cfg!(test) { 4 } else { 4096 };
/// Slots at first.
const FIRST: usize = 15;

impl Numbers {
    pub(super) fn new(none: u64) -> Self {
        let slots = Arc::new(Slots::of(&[], FIRST, none));
        Self { slots, of: HashMap::new(), free: Vec::new(), used: 0, scan_from: FEW, none }
    }

    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Whether there may be many values that no route has.
    pub(super) fn is_untidy(&self) -> bool {
        self.of.len() >= self.scan_from
    }

    /// Gives up the values that no route has, if there may be many of them. Call it before numbers are given to routes
    /// that are not in `routes` yet.
    pub(super) fn tidy<A: Addr>(&mut self, routes: &Routes<A>) {
        if !self.is_untidy() {
            return;
        }
        let mut is_used = vec![false; self.used as usize];
        for hop in routes.iter().filter_map(|route| route.hop.index()) {
            is_used[hop as usize] = true;
        }
        let before = self.of.len();
        let Self { of, free, .. } = self;
        of.retain(|_, number| {
            let is_kept = is_used[*number as usize];
            if !is_kept {
                free.push(*number);
            }
            is_kept
        });
        if of.len() < before {
            // Published generations refer to the slots that are used again.
            self.slots = Arc::new(self.larger(self.slots.values().len()));
        }
        self.scan_from = FEW.max(2 * self.of.len());
    }

    fn larger(&self, count: usize) -> Slots {
        Slots::of(self.slots.values(), count, self.none)
    }

    /// The number of a value.
    pub(super) fn number(&mut self, value: u64) -> u32 {
        if let Some(&number) = self.of.get(&value) {
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        let count = self.slots.values().len();
        if number as usize >= count {
            self.slots = Arc::new(self.larger(2 * count + 1));
        }
        self.slots.values()[number as usize].store(value, Ordering::Relaxed);
        self.of.insert(value, number);
        number
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.memory() + self.of.allocation_size() + self.free.capacity() * size_of::<u32>()
    }
}
