//! Addresses among which an engine's worst ones are searched for.

use std::collections::BTreeMap;

use fibula_core::{Addr, Hop, Lookup, Prefix, Routes};
use fibula_papers::clock::timed;
use fibula_papers::lookups::{in_batches, one_by_one};
use fibula_testkit::measure::answers;
use fibula_testkit::traffic::{Traffic, keys};
use fibula_testkit::{Oracle, Rng};

/// Chunks of the address space that are called crowded.
const CROWDED: usize = 64;
/// Bits of such a chunk.
const CHUNK_V4: u8 = 16;
const CHUNK_V6: u8 = 32;
/// Times that a single address is looked up to learn what it costs, and times that this is repeated.
const REPEATS: usize = 32;
const TRIALS: usize = 3;
/// One of so many candidates is among the slowest.
const PARTS: [usize; 2] = [64, 8];

/// Addresses with the oracle's answers.
#[derive(Clone)]
pub struct Pool<A> {
    pub name: String,
    pub keys: Vec<A>,
    pub hops: Vec<Hop>,
}

/// How addresses are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In batches of 256.
    Batch,
    /// Each after the answer to the last.
    Dependent,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Batch, Self::Dependent];

    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Dependent => "dependent",
        }
    }

    /// The sum of the hops.
    pub fn look_up<A: Addr>(self, engine: &dyn Lookup<A>, keys: &[A]) -> u32 {
        match self {
            Self::Batch => in_batches(engine, keys, 256),
            Self::Dependent => one_by_one(engine, keys),
        }
    }
}

impl<A: Addr> Pool<A> {
    fn new(name: impl Into<String>, oracle: &Oracle<A>, keys: Vec<A>) -> Self {
        Self { name: name.into(), hops: answers(oracle, &keys), keys }
    }

    /// Some of the addresses, in any order, as many times as it takes for `count` of them.
    fn some(&self, name: String, at: &[u32], count: usize, rng: &mut Rng) -> Self {
        let mut pool = Self { name, keys: Vec::new(), hops: Vec::new() };
        if at.is_empty() {
            return pool;
        }
        for _ in 0..count {
            let at = at[rng.below(at.len() as u64) as usize] as usize;
            pool.keys.push(self.keys[at]);
            pool.hops.push(self.hops[at]);
        }
        pool
    }
}

/// The pools for all engines. The first three are the traffic RND, PFX and WORST; then those of the prefixes of each
/// length, those beside prefixes, those under the most prefixes, and those where most prefixes are.
pub fn common<A: Addr>(routes: &Routes<A>, count: usize, seed: u64) -> Vec<Pool<A>> {
    let oracle = &Oracle::new(routes);
    let rng = &mut Rng::new(seed);
    let traffic = [Traffic::Rnd, Traffic::Pfx, Traffic::Worst];
    let mut pools: Vec<Pool<A>> = traffic
        .map(|kind| Pool::new(kind.to_string(), oracle, keys(routes, kind, count, seed)))
        .into();
    let prefixes: Vec<Prefix<A>> = routes.iter().map(|route| route.prefix).collect();
    let inside = |rng: &mut Rng, of: &[Prefix<A>]| -> Vec<A> {
        let drawn = (0..count).filter_map(|_| rng.choose(of));
        let drawn: Vec<Prefix<A>> = drawn.collect();
        drawn.into_iter().map(|prefix| rng.addr_in(prefix)).collect()
    };
    let mut by_length = BTreeMap::<u8, Vec<Prefix<A>>>::new();
    let mut by_depth = BTreeMap::<usize, Vec<Prefix<A>>>::new();
    let mut by_chunk = BTreeMap::<u128, Vec<Prefix<A>>>::new();
    let chunk = if A::BITS == 32 { CHUNK_V4 } else { CHUNK_V6 };
    let mut above: Vec<Prefix<A>> = Vec::new();
    for &prefix in &prefixes {
        above.retain(|other| other.covers(prefix));
        by_depth.entry(above.len()).or_default().push(prefix);
        above.push(prefix);
        by_length.entry(prefix.len()).or_default().push(prefix);
        if prefix.len() > chunk {
            let chunk = prefix.addr().to_u128() >> (A::BITS - chunk);
            by_chunk.entry(chunk).or_default().push(prefix);
        }
    }
    for (length, prefixes) in &by_length {
        pools.push(Pool::new(format!("length {length}"), oracle, inside(rng, prefixes)));
    }
    for (depth, prefixes) in by_depth.iter().rev().take(2) {
        pools.push(Pool::new(format!("under {depth} others"), oracle, inside(rng, prefixes)));
    }
    let mut crowded: Vec<&Vec<Prefix<A>>> = by_chunk.values().collect();
    crowded.sort_by_key(|prefixes| std::cmp::Reverse(prefixes.len()));
    let crowded: Vec<Prefix<A>> = crowded.into_iter().take(CROWDED).flatten().copied().collect();
    if !crowded.is_empty() {
        pools.push(Pool::new("crowded", oracle, inside(rng, &crowded)));
    }
    let one = A::from_u128(1);
    let beside = (0..count).filter_map(|at| {
        let prefix = rng.choose(&prefixes)?;
        Some(match at % 2 {
            0 => A::from_u128(prefix.first().to_u128().wrapping_sub(one.to_u128())),
            _ => A::from_u128(prefix.last().to_u128().wrapping_add(one.to_u128())),
        })
    });
    let beside: Vec<A> = beside.collect();
    pools.push(Pool::new("beside", oracle, beside));
    pools
}

/// Addresses of all pools alike.
pub fn candidates<A: Addr>(pools: &[Pool<A>], count: usize, seed: u64) -> Pool<A> {
    let rng = &mut Rng::new(seed);
    let mut all = Pool { name: String::new(), keys: Vec::new(), hops: Vec::new() };
    let pools: Vec<&Pool<A>> = pools.iter().filter(|pool| !pool.keys.is_empty()).collect();
    for at in 0..if pools.is_empty() { 0 } else { count } {
        let pool = pools[at % pools.len()];
        let at = rng.below(pool.keys.len() as u64) as usize;
        all.keys.push(pool.keys[at]);
        all.hops.push(pool.hops[at]);
    }
    all
}

/// The candidates that take this engine the longest by themselves, without misses of caches: each is looked up again
/// and again. In the last pool the slowest and the fastest follow each other at random, which branches cannot learn.
pub fn slowest<A: Addr>(
    engine: &dyn Lookup<A>,
    mode: Mode,
    candidates: &Pool<A>,
    count: usize,
    seed: u64,
) -> Vec<Pool<A>> {
    let rng = &mut Rng::new(seed);
    let mut costs: Vec<(u64, u32)> = (0..)
        .zip(&candidates.keys)
        .map(|(at, key)| {
            let keys = [*key; REPEATS];
            let times = (0..TRIALS).map(|_| timed(|| mode.look_up(engine, &keys)).1.as_nanos());
            (times.min().unwrap_or(0) as u64, at)
        })
        .collect();
    costs.sort_unstable_by_key(|(time, at)| (std::cmp::Reverse(*time), *at));
    let order: Vec<u32> = costs.into_iter().map(|(_, at)| at).collect();
    let mut pools = Vec::new();
    for part in PARTS {
        let slowest = &order[..order.len() / part];
        pools.push(candidates.some(format!("slowest 1/{part}"), slowest, count, rng));
    }
    let part = order.len() / PARTS[1];
    let ends = [&order[..part], &order[order.len() - part..]].concat();
    pools.push(candidates.some("slowest and fastest".to_owned(), &ends, count, rng));
    pools.retain(|pool| !pool.keys.is_empty());
    pools
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::Memory;
    use fibula_testkit::tables;

    /// Odd addresses take it longer.
    struct Slow(Oracle<u32>);

    impl Lookup<u32> for Slow {
        fn lookup(&self, addr: u32) -> Hop {
            let times = if addr % 2 == 1 { 400 } else { 1 };
            (0..times).fold(Hop::NONE, |_, _| std::hint::black_box(self.0.lookup(addr)))
        }
        fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
            addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
        }
        fn memory(&self) -> Memory {
            Memory::default()
        }
    }

    #[test]
    fn pools_have_answers() {
        let routes = tables::dense::<u32>(2, 400);
        let oracle = Oracle::new(&routes);
        let pools = common(&routes, 50, 1);
        let names: Vec<&str> = pools.iter().map(|pool| &*pool.name).collect();
        assert_eq!(names[..3], ["RND", "PFX", "WORST"]);
        assert!(names.contains(&"beside") && names.contains(&"length 32"), "{names:?}");
        for pool in pools.iter().chain([&candidates(&pools, 70, 1)]) {
            assert!(pool.keys.len() >= 50 && pool.keys.len() == pool.hops.len());
            assert!(pool.keys.iter().zip(&pool.hops).all(|(key, hop)| oracle.lookup(*key) == *hop));
        }
        assert!(common(&Routes::<u32>::default(), 5, 1).iter().any(|pool| pool.name == "RND"));
    }

    #[test]
    fn the_slowest_are_found() {
        let routes = tables::dense::<u32>(2, 100);
        let keys: Vec<u32> = (0..128).map(|i| i * 0x0100_0000 + u32::from(i % 16 == 3)).collect();
        let all = Pool::new("", &Oracle::new(&routes), keys);
        let slow = Slow(Oracle::new(&routes));
        for mode in Mode::ALL {
            let pools = slowest(&slow, mode, &all, 40, 1);
            let odd = |pool: &Pool<u32>| pool.keys.iter().filter(|key| *key % 2 == 1).count();
            assert_eq!(pools.iter().map(|pool| pool.keys.len()).collect::<Vec<_>>(), [40; 3]);
            assert_eq!(odd(&pools[0]), 40, "{mode:?}");
            // Of sixteen one half is odd.
            assert!((5..36).contains(&odd(&pools[1])), "{mode:?}: {}", odd(&pools[1]));
        }
    }
}
