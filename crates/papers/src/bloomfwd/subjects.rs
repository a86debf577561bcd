//! The engines of each figure.

use std::time::{Duration, Instant};

use fibula_baselines::bloomfwd::dpcpe::Expansion;
use fibula_baselines::bloomfwd::{Address, Bloomfwd, Config, Hashes, Levels};
use fibula_core::{Addr, BuildError, Engine, Routes};

use fibula_filter::{Hash, Parameters};
use fibula_simd::Isa;
use fibula_testkit::Rng;

use crate::RATES;
use crate::cases::Subject;
use crate::out::{Failure, note};

/// The hash functions of figure 1.
const HASHES: [Hash; 3] = [Hash::Murmur, Hash::Knuth, Hash::H2];
/// The levels of figures 7 and 8; all lengths come before them.
const LEVELS: [u8; 6] = [8, 7, 6, 5, 4, 3];
/// The most prefixes after expansion for one before that are measured. The paper's largest four levels
/// make 148, its three levels 16,000 and more: it gives no rate for these either.
const EXPANSION_MAX: u64 = 1000;

/// The subjects of figure 1. A key has as many positions as make the filter smallest, as in the paper, and
/// then one, which ours has, where that is not the same.
pub fn hashes<A: Addr + Address>(routes: &Routes<A>) -> Result<Vec<Subject<A>>, Failure> {
    let pairs = HASHES.into_iter().flat_map(|filter| HASHES.map(|table| Hashes { filter, table }));
    let rates = RATES.map(|rate| (rate, None)).into_iter();
    let rates = rates.chain(RATES.into_iter().filter(|rate| *rate < 0.5).map(|r| (r, Some(1))));
    let mut subjects = Vec::new();
    for (hashes, (rate, positions)) in pairs.flat_map(|pair| rates.clone().map(move |r| (pair, r)))
    {
        let config =
            Config { hashes: Some(hashes), false_positives: rate, positions, ..Config::default() };
        let built = bloomfwd(routes, &config)?;
        let keys = built.as_ref().map_or(Vec::new(), |(engine, _)| engine.keys());
        let shapes = keys.iter().map(|&keys| match positions {
            Some(positions) => Parameters::for_positions(keys, rate, positions),
            None => Parameters::for_rate(keys, rate),
        });
        let cells = vec![
            ("filter_hash", hashes.filter.name().to_owned()),
            ("table_hash", hashes.table.name().to_owned()),
            ("false_positives", rate.to_string()),
            ("level_prefixes", spaced(&keys)),
            ("level_bits", spaced(shapes.clone().map(Parameters::bits))),
            ("level_hashes", spaced(shapes.map(Parameters::hashes))),
        ];
        subjects.push(Subject::new(cells, routes, built));
    }
    Ok(subjects)
}

/// The subjects of figures 7 and 8, with their values in the paper's table 4, and the rivals.
pub fn levels<A: Addr + Address>(
    routes: &Routes<A>,
    rivals: &[&str],
) -> Result<Vec<Subject<A>>, Failure> {
    let mut subjects = Vec::new();
    let every = ("none".to_owned(), Expansion::at(routes, 0, lengths(routes)));
    let chosen = LEVELS.map(|levels| (levels.to_string(), Expansion::of(routes, levels.into())));
    for (levels, expansion) in [every].into_iter().chain(chosen) {
        let Expansion { lengths, estimated, actual } = expansion;
        let cells = vec![
            ("engine", "bloomfwd".to_owned()),
            ("levels", levels),
            ("lengths", spaced(&lengths)),
            ("estimated_prefixes", estimated.to_string()),
            ("actual_prefixes", actual.to_string()),
        ];
        let built = if actual <= EXPANSION_MAX * routes.len() as u64 {
            let levels = Levels::At { direct: 0, lengths };
            bloomfwd(routes, &Config { levels, ..Config::default() })?
        } else {
            note(format_args!("not measured: {} levels make {actual} prefixes", lengths.len()));
            None
        };
        subjects.push(Subject::new(cells, routes, built));
    }
    for mut subject in named(routes, rivals)? {
        let none = ["levels", "lengths", "estimated_prefixes", "actual_prefixes"];
        subject.cells.extend(none.map(|name| (name, String::new())));
        subjects.push(subject);
    }
    Ok(subjects)
}

/// The engines of these names.
pub fn named<A: Addr>(routes: &Routes<A>, names: &[&str]) -> Result<Vec<Subject<A>>, Failure> {
    let subject = |name: &&str| {
        let entry =
            fibula_baselines::registry().find::<A>(name).expect("the registry has the engine");
        let built = timed(|| entry.build(routes, Isa::detect()))?;
        Ok(Subject::new(vec![("engine", (*name).to_owned())], routes, built))
    };
    names.iter().map(subject).collect()
}

/// Bloomfwd over the table; none, with a note, if it refuses it.
pub fn bloomfwd<A: Address>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<Option<(Bloomfwd<A>, Duration)>, Failure> {
    timed(|| Bloomfwd::build(routes, config))
}

fn timed<E>(
    build: impl FnOnce() -> Result<E, BuildError>,
) -> Result<Option<(E, Duration)>, Failure> {
    let started = Instant::now();
    match build() {
        Ok(engine) => Ok(Some((engine, started.elapsed()))),
        Err(error @ BuildError::Limit { .. }) => {
            note(format_args!("not measured: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The lengths that the routes have, and the one that there has to be.
fn lengths<A: Address>(routes: &Routes<A>) -> Vec<u8> {
    let top = A::BITS.min(64);
    let mut lengths: Vec<u8> = routes.iter().map(|route| route.prefix.len()).collect();
    lengths.retain(|len| (1..top).contains(len));
    lengths.push(top);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// One of so many parts of the routes, chosen at random.
pub fn part<A: Addr>(routes: &Routes<A>, parts: usize, seed: u64) -> Routes<A> {
    let mut rng = Rng::new(seed);
    let (mut left, mut needed) = (routes.len(), routes.len() / parts);
    let chosen = routes.iter().filter(|_| {
        let take = rng.below(left as u64) < needed as u64;
        (left, needed) = (left - 1, needed - usize::from(take));
        take
    });
    chosen.collect()
}

pub fn spaced<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_testkit::tables;

    #[test]
    fn parts_have_the_requested_size() {
        let routes = tables::dense::<u32>(1, 1000);
        for parts in [16, 8, 3, 1] {
            let part = part(&routes, parts, 7);
            assert_eq!(part.len(), routes.len() / parts);
            assert!(part.iter().all(|route| routes.get(route.prefix) == Some(route.hop)));
        }
    }
}
