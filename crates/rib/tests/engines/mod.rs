//! Engines for tests: plain maps that can be set to refuse, to fail, to be slow and to answer wrongly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fibula_core::{
    Addr, BuildError, Follow, Hop, Lookup, Memory, Patched, PerFamily, Prefix, Routes, unstored,
};
use fibula_rib::{Maker, Makers};

/// The faults of an engine.
#[derive(Clone)]
pub struct Behaviour {
    pub name: &'static str,
    /// The maximum number of routes; more are refused.
    pub most: usize,
    /// Whether it can be patched, and whether copies of it can.
    pub patches: bool,
    pub copies: bool,
    /// Builds panic while this is set.
    pub broken: Arc<AtomicBool>,
    /// The duration of a build.
    pub delay: Duration,
    /// Engines that were built while this was 0 are wrong about this address' /8.
    pub damage: Arc<AtomicU32>,
    /// Whether the engine answers as if it had no routes.
    pub lies: bool,
    /// Number of existing engines.
    pub alive: Arc<AtomicUsize>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            name: "plain",
            most: usize::MAX,
            patches: true,
            copies: false,
            broken: Arc::default(),
            delay: Duration::ZERO,
            damage: Arc::default(),
            lies: false,
            alive: Arc::default(),
        }
    }
}

struct Plain<A: Addr> {
    map: BTreeMap<Prefix<A>, Hop>,
    behaviour: Behaviour,
    /// The damage at the time of the build.
    damage: u32,
}

pub fn maker<A: Addr>(behaviour: Behaviour) -> Maker<A> {
    Maker::new(behaviour.name, move |routes: &Routes<A>| {
        assert!(!behaviour.broken.load(Ordering::Relaxed), "set to fail");
        thread::sleep(behaviour.delay);
        if routes.len() > behaviour.most {
            let (limit, needed) = (behaviour.most as u64, routes.len() as u64);
            return Err(BuildError::Limit {
                engine: behaviour.name,
                what: "routes",
                limit,
                needed,
            });
        }
        behaviour.alive.fetch_add(1, Ordering::Relaxed);
        let damage = behaviour.damage.load(Ordering::Relaxed);
        let map = routes.iter().map(|route| (route.prefix, route.hop)).collect();
        Ok(unstored(Plain { map, behaviour: behaviour.clone(), damage }))
    })
}

pub fn makers(behaviour: Behaviour) -> PerFamily<Makers> {
    let other = Behaviour { alive: Arc::default(), ..behaviour.clone() };
    PerFamily { v4: vec![maker(behaviour)], v6: vec![maker(other)] }
}

impl<A: Addr> Drop for Plain<A> {
    fn drop(&mut self) {
        self.behaviour.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<A: Addr> Lookup<A> for Plain<A> {
    fn lookup(&self, addr: A) -> Hop {
        let damage = self.behaviour.damage.load(Ordering::Relaxed);
        if self.behaviour.lies
            || damage != self.damage && addr.to_u128() >> 24 == u128::from(damage >> 24)
        {
            return Hop::NONE;
        }
        let covering = (0..=A::BITS).rev().map(|len| Prefix::masked(addr, len).unwrap());
        covering.into_iter().find_map(|p| self.map.get(&p).copied()).unwrap_or(Hop::NONE)
    }
    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
    }
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl<A: Addr> Follow<A> for Plain<A> {
    fn follow(&mut self, routes: &Routes<A>, at: &[Prefix<A>]) -> Result<Patched, BuildError> {
        if !self.behaviour.patches || routes.len() > self.behaviour.most {
            return Ok(Patched::Rebuild);
        }
        for prefix in at {
            match routes.get(*prefix) {
                Some(hop) => self.map.insert(*prefix, hop),
                None => self.map.remove(prefix),
            };
        }
        Ok(Patched::Applied)
    }

    fn copy(&self) -> Option<Self> {
        if !self.behaviour.copies {
            return None;
        }
        self.behaviour.alive.fetch_add(1, Ordering::Relaxed);
        let Self { map, behaviour, damage } = self;
        Some(Self { map: map.clone(), behaviour: behaviour.clone(), damage: *damage })
    }
}
