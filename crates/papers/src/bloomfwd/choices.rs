//! Choices of the levels: the paper's, that with the fewest prefixes, and that with the least expected time.

use fibula_baselines::bloomfwd::cost::{Costs, Model};
use fibula_baselines::bloomfwd::dpcpe::Expansion;
use fibula_baselines::bloomfwd::{Address, Bloomfwd, Config, Levels};
use fibula_core::{Addr, Engine, Hop, Lookup, Prefix, Routes};
use fibula_papers::clock::timed;
use fibula_papers::lookups::in_batches;
use fibula_simd::Table;
use fibula_testkit::Rng;
use fibula_testkit::measure::{Stamp, median, rounded};
use fibula_testkit::traffic::Traffic;

use crate::Experiment;
use crate::cases::Case;
use crate::out::{Cell, Failure, note};
use crate::subjects::{bloomfwd, spaced};
use crate::{Subject, TrafficInput};

/// The numbers of levels.
const LEVELS: std::ops::RangeInclusive<usize> = 3..=8;
/// Prefixes after expansion for one before, at most: more take minutes to build.
const EXPANSION_MAX: u64 = 100;
/// Bytes of the array whose reads are taken for those of memory, and of a cache that the machine does not name.
const MEMORY: usize = 256 << 20;
const CACHE: usize = 32 << 20;
/// Reads of a measurement, and how often it is repeated.
const READS: usize = 1 << 20;
const TRIALS: usize = 5;

impl Experiment<'_> {
    /// All choices, looked up with random addresses and with those of prefixes. Modelled are the levels alone, with
    /// the costs of this machine: what a lookup takes besides is the same for all choices.
    pub fn choices<A: Addr + Address>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
    ) -> Result<(), Failure> {
        let costs = costs::<A>();
        note(format_args!("costs in nanoseconds, and bytes: {costs:?}"));
        let mut traffic = Vec::new();
        for kind in [Traffic::Rnd, Traffic::Pfx] {
            let workload = self.workload(routes, &TrafficInput::Pattern(kind), 1)?;
            let costs = Costs { matching: workload.matching(), ..costs };
            let model = Model::new(routes, &Config { costs, ..Config::default() });
            traffic.push((kind, workload, model));
        }
        let mut choices: Vec<(String, Vec<u8>)> = Vec::new();
        for levels in LEVELS {
            choices.push((format!("greedy {levels}"), Expansion::of(routes, levels).lengths));
            choices.push((format!("fewest {levels}"), Expansion::fewest(routes, levels).lengths));
        }
        for (kind, _, model) in &traffic {
            choices.push((format!("cheapest for {kind}"), model.cheapest()));
        }
        let usual = Model::new(routes, &Config::default()).cheapest();
        choices.push(("cheapest with the default costs".to_owned(), usual));
        let mut subjects = Vec::new();
        for (name, lengths) in &choices {
            let actual = Expansion::at(routes, 0, lengths.clone()).actual;
            let cells = vec![
                ("choice", name.clone()),
                ("lengths", spaced(lengths)),
                ("actual_prefixes", actual.to_string()),
            ];
            let levels = Levels::At { direct: 0, lengths: lengths.clone() };
            let built = if actual <= EXPANSION_MAX * routes.len() as u64 {
                bloomfwd(routes, &Config { levels, ..Config::default() })?
            } else {
                note(format_args!("not measured: {name} makes {actual} prefixes"));
                None
            };
            subjects.push(Subject::new(cells, routes, built));
        }
        let mut cases = Vec::new();
        for (kind, workload, model) in &traffic {
            for (subject, (_, lengths)) in subjects.iter().zip(&choices) {
                let modelled = rounded(model.time(lengths)).to_string();
                let cells: [Cell; 2] = [("traffic", kind.to_string()), ("modelled_ns", modelled)];
                cases.push(Case::new(subject, workload, &cells));
            }
        }
        self.measure(&mut cases);
        self.write(table, cases)
    }
}

/// The costs on this machine.
fn costs<A: Addr + Address>() -> Costs {
    let caches = Stamp::take().caches.into_iter().filter(|cache| cache.contents != "Instruction");
    let mut sizes: Vec<usize> = caches.map(|cache| cache.bytes as usize).collect();
    sizes.sort_unstable();
    let at = |at: usize, usual: usize| sizes.get(at).copied().unwrap_or(usual);
    let sizes = [at(0, 32 << 10), at(1, 1 << 20), at(2, CACHE)];
    let [first, second, last] = sizes;
    // From the middle of each cache, so that little of the one before is read.
    // A cache that many machines share may be larger than the part of it that this one gets.
    let reads = [
        (first, read(first / 2)),
        (second, read(second / 2)),
        (last, read((last / 2).min(MEMORY / 4))),
        (usize::MAX, read(MEMORY)),
    ];
    let near = reads[0].1;
    let times = [1, 9].map(|levels| level::<A>(levels, false));
    note(format_args!("nanoseconds with one level and with nine: {times:?}"));
    let level_time = ((times[1] - times[0]) / 8.0 - near).max(0.0);
    let bucket = (level::<A>(1, true) - times[0] - near).max(0.0);
    Costs { level: level_time, bucket, reads, ..Costs::default() }
}

/// Nanoseconds of a random read in an array of so many bytes. Reads do not wait for each other.
fn read(bytes: usize) -> f64 {
    let words = (bytes / 8).next_power_of_two().max(64);
    let table = Table::with(words, |to: &mut [u64]| to.fill(1));
    let table: &[u64] = &table;
    let mut rng = Rng::new(1);
    let places: Vec<u32> = (0..READS).map(|_| rng.below(words as u64) as u32).collect();
    let mut times = [0.0; TRIALS];
    for time in &mut times {
        let sum = || places.iter().fold(0, |sum, at| sum + table[*at as usize & (words - 1)]);
        let (sum, took) = timed(sum);
        assert_eq!(sum, READS as u64);
        *time = 1e9 * took.as_secs_f64() / READS as f64;
    }
    median(&mut times)
}

/// Nanoseconds of a lookup in a table of few prefixes of each of so many levels: of addresses without a prefix, which
/// come to all levels, or of those that are found at the first one.
fn level<A: Addr + Address>(levels: u8, found: bool) -> f64 {
    let top = A::BITS.min(64);
    let lengths: Vec<u8> = (top - levels + 1..=top).collect();
    // At the beginning of the space, so that hardly a random address has one.
    let prefix = |at: u32, len: u8| {
        let addr = A::from_u128(u128::from(at) << (A::BITS - len));
        Some((Prefix::masked(addr, len).ok()?, Hop::new(at)))
    };
    let places = |len: u8| (1..17).filter_map(move |at| prefix(at, len));
    let routes: Routes<A> = lengths.iter().flat_map(|len| places(*len)).collect();
    let longest: Vec<A> = places(top).map(|(prefix, _)| prefix.first()).collect();
    let config = Config { levels: Levels::At { direct: 0, lengths }, ..Config::default() };
    let engine = Bloomfwd::build(&routes, &config).expect("a few prefixes fit");
    let mut rng = Rng::new(2);
    let key = |_| match found {
        true => longest.get(rng.below(16) as usize).copied().unwrap_or(A::from_u128(0)),
        false => rng.addr::<A>(),
    };
    let keys: Vec<A> = (0..READS / 8).map(key).collect();
    let engine: &dyn Lookup<A> = &engine;
    let mut times = [0.0; TRIALS];
    for time in &mut times {
        let (_, took) = timed(|| in_batches(engine, &keys, 256));
        *time = 1e9 * took.as_secs_f64() / keys.len() as f64;
    }
    median(&mut times)
}
