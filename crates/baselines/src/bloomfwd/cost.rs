//! Which lengths to expand prefixes to, by the time that a lookup is expected to take.
//!
//! Few levels make many prefixes, whose filters and buckets leave the caches; many levels each take their time. The
//! paper fixes the number of levels and asks for few prefixes. Here a model weighs the one against the other:
//!
//! ```text
//!   time = Σ over levels   share of addresses that come to the level · (level + read(bytes of all filters))
//!                        + share of them that passes its filter      · (bucket + read(bytes of all buckets))
//!
//!   read(bytes): each cache holds as large a part of the bytes as it can, and the rest is read from the next one
//! ```
//!
//! An address comes to the levels from the longest down to that of its prefix, an address without a route to all of
//! them. Those with one are drawn from the prefixes uniformly. For given sizes of filters and buckets the time is a
//! sum over levels, so the best lengths are a shortest path ([`Model::cheapest`]). The sizes depend on the lengths:
//! the path is searched for at each of many sizes and prices of a prefix, and the model chooses among the results and
//! the choices with the fewest prefixes. Then single lengths are added, left out or replaced while this saves time.
//!
//! ```
//! use fibula_baselines::bloomfwd::cost::{Costs, Model};
//! use fibula_baselines::bloomfwd::{Bloomfwd, Config, Levels};
//! use fibula_core::{Engine, Hop, Routes};
//!
//! let routes: Routes<u128> = [("2001::/31".parse()?, Hop::new(0)), ("2001:1::/32".parse()?, Hop::new(1))]
//!     .into_iter()
//!     .collect();
//! let config = Config { levels: Levels::Cheapest, ..Config::default() };
//! let engine = Bloomfwd::build(&routes, &config).unwrap();
//! // One level more costs less than the prefixes that it saves: 3 of 64 bits would be 2^34.
//! assert_eq!(engine.lengths(), [32, 64]);
//! let model = Model::new(&routes, &config);
//! assert!(model.time(&[32, 64]) < model.time(&[31, 32, 64]));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

use fibula_core::Routes;
use fibula_filter::Parameters;

use super::Config;
use super::bucket::{Address, Keyed, Line, slots};
use super::build::FILL;
use super::dpcpe::{Bands, histogram};

/// What the parts of a lookup take, in nanoseconds for an address of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A level: the hash of the key, and the test of its bit.
    pub level: f64,
    /// The search of a bucket after the filter let the key pass.
    pub bucket: f64,
    /// Random reads, of which many are on their way together: the bytes that a cache holds, ascending, and the time of
    /// a read from it. The last one's bytes do not count: it has all.
    pub reads: [(usize, f64); 4],
    /// The share of addresses that have a route.
    pub matching: f64,
}

impl Default for Costs {
    /// Measured with `bloomfwd --figure choices` of `fibula-papers` on an Intel Xeon, family 6 model 207, that other
    /// programs used, too. Of its last cache, which many machines share, 64 MiB are counted.
    fn default() -> Self {
        let reads = [(48 << 10, 0.6), (2 << 20, 0.75), (64 << 20, 5.0), (usize::MAX, 8.0)];
        Self { level: 1.6, bucket: 1.7, reads, matching: 0.5 }
    }
}

impl Costs {
    /// A read of an array of so many bytes, of which each is read as often as the others.
    pub fn read(&self, bytes: f64) -> f64 {
        let mut held = 0.0;
        let mut time = 0.0;
        for (at, (capacity, each)) in self.reads.iter().enumerate() {
            let is_last = at + 1 == self.reads.len();
            let end = if is_last { 1.0 } else { (*capacity as f64 / bytes.max(1.0)).min(1.0) };
            time += (end - held).max(0.0) * each;
            held = end.max(held);
        }
        time
    }
}

/// Sizes that the search assumes, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 14..=30;
/// Prices of a prefix, as powers of two of a nanosecond. The cheapest ones do not count.
const PRICES: std::ops::RangeInclusive<i32> = -34..=-2;

/// Numbers of levels whose choices with the fewest prefixes are among the candidates.
const LEVELS_MAX: usize = 12;

/// The expected time of a lookup in a table, by the lengths of its levels.
pub struct Model {
    costs: Costs,
    bands: Bands,
    /// The prefixes of up to so many bits.
    below: Vec<u64>,
    false_positives: f64,
    memory_limit: f64,
    /// Bytes for a prefix after expansion, in the filters and in the buckets.
    filter: f64,
    bucket: f64,
}

impl Model {
    /// The model of these routes with the costs and filters of a configuration.
    pub fn new<A: Address>(routes: &Routes<A>, config: &Config) -> Self {
        const KEYS: usize = 1 << 20;
        let rate = config.false_positives;
        let shape = match config.positions {
            Some(positions) => Parameters::for_positions(KEYS, rate, positions),
            None => Parameters::for_rate(KEYS, rate),
        };
        let slots = slots::<<A as Keyed>::Key, u16>();
        let top = <A as Keyed>::TOP;
        let mut sum = 0;
        // The default route is no prefix of a level.
        let lengths = histogram(routes).into_iter().enumerate().take(usize::from(top) + 1);
        let below = lengths.map(|(len, count)| {
            sum += if len == 0 { 0 } else { count };
            sum
        });
        Self {
            costs: config.costs,
            below: below.collect(),
            bands: Bands::new(routes, 0, top),
            false_positives: rate,
            memory_limit: config.memory_limit as f64,
            filter: f64::from(shape.bits()) / 8.0 / KEYS as f64,
            bucket: size_of::<Line>() as f64 * 100.0 / (slots * FILL) as f64,
        }
    }

    /// The time of an address at the level of length `to` after that of length `from`, with these times of reads.
    fn level(&self, from: usize, to: usize, (filter, bucket): (f64, f64)) -> f64 {
        // A level without prefixes is left out.
        if self.below[to] == self.below[from] {
            return 0.0;
        }
        let share = |count: u64| count as f64 / self.below[self.below.len() - 1].max(1) as f64;
        let Costs { level, bucket: search, matching, .. } = self.costs;
        let comes = 1.0 - matching + matching * share(self.below[to]);
        let stays = matching * share(self.below[to] - self.below[from]);
        let passes = stays + self.false_positives * (comes - stays);
        comes * (level + filter) + passes * (search + bucket)
    }

    /// The times of reads in filters and buckets of so many prefixes.
    fn reads(&self, keys: f64) -> (f64, f64) {
        (self.costs.read(keys * self.filter), self.costs.read(keys * self.bucket))
    }

    /// The prefixes after expansion to these lengths, which ascend to the last one that there may be.
    fn keys(&self, lengths: &[u8]) -> u64 {
        let made = bands(lengths).map(|(from, to)| self.bands.made(from, to));
        made.fold(0, u64::saturating_add)
    }

    /// Whether the prefixes of these lengths stay within the limit of memory.
    fn fits(&self, lengths: &[u8]) -> bool {
        self.keys(lengths) as f64 * (self.filter + self.bucket) <= self.memory_limit
    }

    /// The nanoseconds that a lookup is expected to take with these lengths, ascending, the last 32 or 64.
    pub fn time(&self, lengths: &[u8]) -> f64 {
        let reads = self.reads(self.keys(lengths) as f64);
        bands(lengths).map(|(from, to)| self.level(from, to, reads)).sum()
    }

    /// The lengths with which a lookup is expected to take the least time.
    pub fn cheapest(&self) -> Vec<u8> {
        let bytes = self.filter + self.bucket;
        let prices = PRICES.map(f64::from).map(f64::exp2);
        let sizes = SIZES.flat_map(|size| prices.clone().map(move |price| (size, price)));
        let paths = sizes.map(|(size, price)| self.path(f64::from(size).exp2() / bytes, price));
        let paths = paths.chain((1..=LEVELS_MAX).map(|levels| self.bands.fewest(levels)));
        let mut paths: Vec<Vec<u8>> = paths.collect();
        paths.sort_unstable();
        paths.dedup();
        let every = (1..self.below.len()).map(|len| len as u8).collect();
        let best = |choices: &mut dyn Iterator<Item = Vec<u8>>| {
            let timed = choices
                .filter(|lengths| self.fits(lengths))
                .map(|lengths| (self.time(&lengths), lengths));
            timed.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let mut chosen = best(&mut paths.into_iter()).unwrap_or((f64::INFINITY, every));
        while let Some(better) =
            best(&mut self.neighbours(&chosen.1)).filter(|other| other.0 < chosen.0)
        {
            chosen = better;
        }
        // Lengths at which no prefix comes to lie save nothing.
        let (mut before, top) = (0, self.below.len() - 1);
        chosen.1.retain(|len| {
            let at = usize::from(*len);
            let is_used = at == top || self.below[at] > self.below[before];
            before = if is_used { at } else { before };
            is_used
        });
        chosen.1
    }

    /// The choices that have a length more or less, or another one.
    fn neighbours(&self, lengths: &[u8]) -> impl Iterator<Item = Vec<u8>> + use<> {
        let top = self.below.len() as u8 - 1;
        let lengths = lengths.to_vec();
        (1..top).flat_map(move |new| {
            let mut with = lengths.clone();
            match with.binary_search(&new) {
                Ok(at) => {
                    with.remove(at);
                    vec![with]
                }
                Err(at) => {
                    with.insert(at, new);
                    let others = (0..with.len() - 1).filter(|other| *other != at);
                    let without = others.map(|other| {
                        let mut without = with.clone();
                        without.remove(other);
                        without
                    });
                    let mut all: Vec<Vec<u8>> = without.collect();
                    all.push(with);
                    all
                }
            }
        })
    }

    /// The lengths with the least sum of times and prices, if reads take what they take with so many prefixes.
    fn path(&self, keys: f64, price: f64) -> Vec<u8> {
        let (reads, top) = (self.reads(keys), self.below.len() - 1);
        // For each length the least sum up to it, and the length before.
        let mut best = vec![(0.0, 0)];
        for to in 1..=top {
            let by = (0..to).map(|from| {
                let made = self.bands.made(from, to) as f64;
                (best[from].0 + self.level(from, to, reads) + price * made, from)
            });
            best.extend(by.min_by(|a: &(f64, usize), b| a.0.total_cmp(&b.0)));
        }
        let mut lengths = Vec::new();
        let mut at = top;
        while at > 0 {
            lengths.push(at as u8);
            at = best[at].1;
        }
        lengths.reverse();
        lengths
    }
}

/// `(the length before, the length)` of each level.
fn bands(lengths: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let before = [0].into_iter().chain(lengths.iter().copied());
    before.zip(lengths).map(|(from, to)| (usize::from(from), usize::from(*to)))
}

#[cfg(test)]
mod tests {
    use super::super::Levels;
    use super::super::dpcpe::{Expansion, counts};
    use super::*;
    use fibula_testkit::fib::{FibSpec, HopModel};

    fn routes(prefixes: usize) -> Routes<u128> {
        FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Hash(256) }.generate()
    }

    fn networks(routes: &Routes<u128>) -> Routes<u128> {
        routes.iter().filter(|route| (1..=64).contains(&route.prefix.len())).collect()
    }

    #[test]
    fn reads_are_shared_among_the_caches() {
        let reads = [(100, 1.0), (200, 2.0), (1000, 10.0), (0, 50.0)];
        let costs = Costs { reads, ..Costs::default() };
        for (bytes, expected) in [
            (1.0, 1.0),
            (100.0, 1.0),
            (200.0, 1.5),
            (400.0, 0.25 + 0.5 + 5.0),
            (2000.0, 0.05 + 0.1 + 4.0 + 25.0),
        ] {
            assert!((costs.read(bytes) - expected).abs() < 1e-9, "{bytes}: {}", costs.read(bytes));
        }
    }

    /// Times, written out for a table of two lengths.
    #[test]
    fn a_time_is_the_sum_of_its_parts() {
        let routes: Routes<u128> =
            [("2001::/32", 0), ("2002::/32", 1), ("2003::/32", 2), ("2001:0:1::/48", 3)]
                .map(|(prefix, hop)| (prefix.parse().unwrap(), fibula_core::Hop::new(hop)))
                .into_iter()
                .collect();
        let reads = [(0, 7.0), (0, 7.0), (0, 7.0), (0, 7.0)];
        let costs = Costs { level: 10.0, bucket: 100.0, reads, matching: 0.5 };
        let config = Config { costs, false_positives: 0.2, ..Config::default() };
        let model = Model::new(&routes, &config);
        // No prefix is in level 64, which is left out. An eighth of the addresses is in the /48.
        let at_48 = 17.0 + (0.125 + 0.2 * 0.875) * 107.0;
        let at_32 = 0.875 * 17.0 + (0.375 + 0.2 * 0.5) * 107.0;
        assert!((model.time(&[32, 48, 64]) - at_48 - at_32).abs() < 1e-9);
    }

    /// No choice that others make is cheaper, and no neighbour of it that differs in one length.
    #[test]
    fn no_other_choice_is_cheaper() {
        let routes = networks(&routes(4000));
        for costs in [
            Costs::default(),
            Costs { matching: 1.0, ..Costs::default() },
            Costs { level: 0.1, ..Costs::default() },
            Costs { level: 20.0, ..Costs::default() },
        ] {
            let model = Model::new(&routes, &Config { costs, ..Config::default() });
            let chosen = model.cheapest();
            assert!(chosen.is_sorted() && chosen.ends_with(&[64]), "{chosen:?}");
            let made = counts(&routes, 0, &chosen);
            assert_eq!(model.keys(&chosen), made.iter().sum::<u64>());
            assert!(made[..made.len() - 1].iter().all(|keys| *keys > 0), "{chosen:?} {made:?}");
            let time = model.time(&chosen) * (1.0 - 1e-9);
            for levels in 1..=12 {
                let others = [Expansion::of(&routes, levels), Expansion::fewest(&routes, levels)];
                for other in others.iter().filter(|other| model.fits(&other.lengths)) {
                    assert!(time <= model.time(&other.lengths), "{chosen:?}, {other:?}");
                }
            }
            for len in 1..64 {
                let mut other = chosen.clone();
                match other.binary_search(&len) {
                    Ok(at) => drop(other.remove(at)),
                    Err(at) => other.insert(at, len),
                }
                let is_no_choice = !model.fits(&other);
                assert!(is_no_choice || time <= model.time(&other), "{chosen:?}, {len}");
            }
        }
    }

    /// Dear levels become few, cheap ones many, and tables stay within their limit.
    #[test]
    fn choices_follow_the_costs() {
        let routes = networks(&routes(4000));
        let levels = |level, memory_limit| {
            let costs = Costs { level, ..Costs::default() };
            let config = Config { costs, memory_limit, ..Config::default() };
            let chosen = Model::new(&routes, &config).cheapest();
            let built = Config { levels: Levels::Cheapest, ..config };
            let engine =
                <super::super::Bloomfwd<u128> as fibula_core::Engine<u128>>::build(&routes, &built);
            assert_eq!(engine.unwrap().lengths(), chosen);
            chosen.len()
        };
        let (cheap, dear) = (levels(0.05, 1 << 30), levels(50.0, 1 << 30));
        assert!(cheap > dear, "{cheap} and {dear}");
        assert!(levels(50.0, 1 << 20) > dear);
    }
}
