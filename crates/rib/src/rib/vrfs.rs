//! The names of routing instances in the sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use fibula_core::Vrf;
use hashbrown::HashMap;

/// Names of VRFs, each once, and the numbers that updates name them by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VrfNames {
    of: BTreeMap<Vrf, Arc<str>>,
    numbers: HashMap<Arc<str>, Vrf>,
    /// No larger number was given yet, unless numbers began anew.
    next: Vrf,
}

impl VrfNames {
    /// The number of the VRF of this name; a new one if it has none. The number of a VRF that was given up is not given
    /// again before all others were.
    pub(crate) fn number(&mut self, name: &str, is_used: impl Fn(Vrf) -> bool) -> Vrf {
        if name.is_empty() {
            return 0;
        }
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let is_free = |number: &Vrf| !self.of.contains_key(number) && !is_used(*number);
        let first = self.next.max(1);
        let number = (first..Vrf::MAX).chain(1..first).find(is_free).unwrap_or(Vrf::MAX);
        self.set(number, name);
        number
    }

    /// Sets the name if number and name are free, and returns whether they were.
    pub(crate) fn set(&mut self, number: Vrf, name: &str) -> bool {
        let is_free = !self.of.contains_key(&number) && !self.numbers.contains_key(name);
        if is_free {
            let name: Arc<str> = name.into();
            self.numbers.insert(Arc::clone(&name), number);
            self.of.insert(number, name);
            self.next = self.next.max(number.saturating_add(1));
        }
        is_free
    }

    pub(crate) fn remove(&mut self, number: Vrf) {
        if let Some(name) = self.of.remove(&number) {
            self.numbers.remove(&name);
        }
        if self.numbers.len() < self.numbers.capacity() / 4 {
            self.numbers.shrink_to_fit();
        }
    }

    pub(crate) fn name(&self, number: Vrf) -> Option<&Arc<str>> {
        self.of.get(&number)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Vrf> {
        if name.is_empty() { Some(0) } else { self.numbers.get(name).copied() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Vrf, &str)> {
        self.of.iter().map(|(&number, name)| (number, &**name))
    }
}
