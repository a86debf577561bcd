use std::collections::BTreeMap;

use fibula_core::{BuildError, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Routes};
use fibula_filter::Hash;
use fibula_simd::Isa;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Rng, StoredTables, conform, conforms, tables};

use super::dpcpe::Expansion;
use super::tables::Level;
use super::{Address, Bloomfwd, Config, FILTERS, Form, Hashes, Levels, SHAPE};

fn v6(year: u16, prefixes: usize) -> Routes<u128> {
    FibSpec { year, prefixes, seed: 3, hops: HopModel::Hash(100) }.generate()
}

/// Hash pairs that are the same and not, rates at both ends, levels of every kind.
fn forms<A: Address>() -> conform::Builders<A> {
    let pair = |filter, table| Some(Hashes { filter, table });
    let configs = [
        Config {
            hashes: pair(Hash::Knuth, Hash::Knuth),
            false_positives: 0.9,
            ..Config::default()
        },
        Config {
            hashes: pair(Hash::Crc32c, Hash::H2),
            false_positives: 0.01,
            positions: None,
            ..Config::default()
        },
        Config { hashes: pair(Hash::MurmurSeeded, Hash::MurmurSeeded), ..Config::default() },
        Config { levels: Levels::Every, positions: Some(3), ..Config::default() },
        Config { levels: Levels::Dpcpe(14), ..Config::default() },
        Config { levels: Levels::Fewest(8), ..Config::default() },
        Config { levels: Levels::Every, positions: Some(3), ..Config::compiled() },
        Config {
            hashes: pair(Hash::MurmurSeeded, Hash::Knuth),
            false_positives: 0.3,
            positions: None,
            ..Config::compiled()
        },
    ];
    let label = |config: &Config| {
        format!("{:?} {:?} {:?} {}", config.hashes, config.levels, config.search, config.isa)
    };
    let each = |isa: Isa| configs.clone().map(|config| Config { isa, ..config });
    let all = Isa::available().into_iter().flat_map(each);
    all.map(|config| (label(&config), conform::builder::<A, Bloomfwd<A>>(config))).collect()
}

mod any_isa {
    use super::*;

    conforms!(configs_v4, u32, forms());
    conforms!(configs_v6, u128, forms());
}

#[test]
fn patches() {
    for config in [Config::default(), Config::baseline(), Config::naive()] {
        conform::patches::<u32, Bloomfwd<u32>>(&format!("{:?}", config.levels), &config);
        conform::patches::<u128, Bloomfwd<u128>>(&format!("{:?}", config.levels), &config);
    }
}

/// The contents of a level: its length, its bits, its keys with their codes.
type Content = (u8, Vec<u64>, BTreeMap<u128, u32>);

fn content<A: Address>(engine: &Bloomfwd<A>) -> (Vec<u32>, Vec<Content>) {
    fn of<A: Address, C: super::bucket::Code>(
        tables: &super::tables::Tables<A, C>,
        level: &Level,
    ) -> Content {
        let lines = &tables.buckets[level.buckets.clone()];
        let widen = |(key, code): (u128, C)| (key, code.into());
        let keys: BTreeMap<u128, u32> = if level.len > <A as super::bucket::Keyed>::TOP {
            lines.iter().flat_map(super::bucket::entries::<u128, C>).map(widen).collect()
        } else if A::BITS == 32 {
            lines
                .iter()
                .flat_map(super::bucket::entries::<u32, C>)
                .map(|(k, c)| widen((k.into(), c)))
                .collect()
        } else {
            lines
                .iter()
                .flat_map(super::bucket::entries::<u64, C>)
                .map(|(k, c)| widen((k.into(), c)))
                .collect()
        };
        assert!(level.buckets.is_empty() || level.keys == keys.len());
        (level.len, tables.filters[level.words.clone()].to_vec(), keys)
    }
    let Form::Bits16(tables) = &engine.form else { panic!("few hops") };
    let levels = tables.all_levels().map(|level| of(tables, level)).collect();
    (tables.direct.iter().map(|&code| code.into()).collect(), levels)
}

/// After any sequence of changes a table has the keys and the bits of one that was built from the
/// routes that there are then (where the sizes of the levels are the same).
fn changed_is_built<A: Address>(config: &Config, seed: u64) {
    let pool = tables::dense::<A>(seed, 400);
    let mut rng = Rng::new(seed);
    // All of it is there at first, so that no length is new later.
    let mut table: BTreeMap<Prefix<A>, Hop> = pool.iter().map(|r| (r.prefix, r.hop)).collect();
    let routes =
        |table: &BTreeMap<_, _>| -> Routes<A> { table.iter().map(|(p, h)| (*p, *h)).collect() };
    let first = routes(&table);
    let mut engine = Bloomfwd::build(&first, config).unwrap();
    let before = engine.clone();
    for _ in 0..60 {
        let mut changed = Vec::new();
        for _ in 0..rng.below(12) {
            let prefix = rng.choose(pool.as_slice()).unwrap().prefix;
            if table.contains_key(&prefix) && rng.chance(0.5) {
                table.remove(&prefix);
            } else {
                table.insert(prefix, Hop::new(rng.below(300) as u32));
            }
            changed.push(prefix);
        }
        assert_eq!(engine.follow(&routes(&table), &changed), Ok(Patched::Applied));
    }
    // What was there at first again, but for the hops: as many keys, so filters of the same size.
    let changed: Vec<_> = first.iter().map(|route| route.prefix).collect();
    let last: Routes<A> =
        first.iter().map(|r| (r.prefix, Hop::new(299 - r.hop.to_bits()))).collect();
    assert_eq!(engine.follow(&last, &changed), Ok(Patched::Applied));
    let built = Bloomfwd::build(&last, config).unwrap();
    let (got, expected) = (content(&engine), content(&built));
    assert_eq!(got.0, expected.0, "the direct lookup array");
    for ((len, bits, keys), (_, expected_bits, expected_keys)) in got.1.iter().zip(&expected.1) {
        assert_eq!(keys, expected_keys, "keys of /{len}");
        // No counter is ever full here but of bits that stay.
        assert_eq!(bits, expected_bits, "bits of /{len}");
    }
    // The clone of before has not moved.
    assert_eq!(content(&before), content(&Bloomfwd::build(&first, config).unwrap()));
}

#[test]
fn a_table_that_changed_is_one_that_was_built() {
    for seed in 0..8 {
        // Lengths that the routes do not choose: the levels are the same whatever they are.
        for levels in [Levels::Every, Levels::At { direct: 8, lengths: vec![24, 32] }] {
            changed_is_built::<u32>(&Config { levels, ..Config::default() }, seed);
        }
        for levels in
            [Levels::Every, Levels::At { direct: 0, lengths: (1..=16).map(|i| 4 * i).collect() }]
        {
            changed_is_built::<u128>(&Config { levels, ..Config::default() }, seed);
        }
    }
}

/// The paper's table 4 on a table of ours: fewer levels, more prefixes; estimates that are not far
/// off; three levels that nobody has the memory for.
fn check_expansion(routes: &Routes<u128>) {
    let expansions: Vec<_> = (3..=8).map(|levels| Expansion::of(routes, levels)).collect();
    for (levels, pair) in (3..).zip(expansions.windows(2)) {
        assert!(pair[0].estimated > pair[1].estimated, "{pair:?}");
        assert!(pair[0].lengths.iter().all(|len| pair[1].lengths.contains(len)), "{pair:?}");
        assert_eq!(pair[0].lengths.len(), levels);
    }
    for expansion in &expansions {
        let (estimated, actual) = (expansion.estimated, expansion.actual);
        assert!(actual <= estimated && estimated <= 2 * actual, "{expansion:?}");
    }
    let config = |n| Config { levels: Levels::Dpcpe(n), ..Config::default() };
    let error = Bloomfwd::build(routes, &config(3)).err().expect("three levels are too few");
    assert!(matches!(error, BuildError::Limit { limit: 1_073_741_824, .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("bytes for the prefixes after expansion (more levels need fewer)"),
        "{text}"
    );
    for levels in [5, 8] {
        let engine = Bloomfwd::build(routes, &config(levels)).unwrap();
        assert_eq!(engine.lengths(), expansions[usize::from(levels) - 3].lengths);
        let keys: usize = engine.keys().iter().sum();
        assert_eq!(keys as u64, expansions[usize::from(levels) - 3].actual);
    }
}

#[test]
fn few_levels_make_many_prefixes() {
    check_expansion(&v6(2024, 60_000));
}

#[test]
fn configurations_out_of_range_are_refused() {
    let routes = tables::dense::<u32>(1, 50);
    let refused = |config: Config| match Bloomfwd::build(&routes, &config).err() {
        Some(BuildError::Config { reason, .. }) => reason.into_owned(),
        other => panic!("{other:?}"),
    };
    for false_positives in [0.0, 0.009, 0.91, f64::NAN] {
        let reason = refused(Config { false_positives, ..Config::default() });
        assert_eq!(reason, "the rate of false positives must be 0.01 to 0.9");
    }
    for positions in [0, 33] {
        let reason = refused(Config { positions: Some(positions), ..Config::default() });
        assert_eq!(reason, "a key must have 1 to 32 positions");
    }
    for (direct, lengths) in
        [(20, vec![]), (20, vec![24]), (20, vec![20, 32]), (25, vec![32]), (0, vec![32, 24])]
    {
        refused(Config { levels: Levels::At { direct, lengths }, ..Config::default() });
    }
    let none = Config { memory_limit: 1000, ..Config::default() };
    assert!(matches!(Bloomfwd::build(&routes, &none), Err(BuildError::Limit { limit: 1000, .. })));
}

fn stored<A: Address>(engine: &Bloomfwd<A>) -> StoredTables {
    StoredTables::of(&engine.tables())
}

/// The error for the tables with other bytes at a place of one.
fn blame<A: Address>(engine: &Bloomfwd<A>, table: &'static str, at: usize, bytes: &[u8]) -> String {
    let mut tables = stored(engine);
    tables.edit(table, |table| table[at..][..bytes.len()].copy_from_slice(bytes));
    match Bloomfwd::<A>::load(&tables, 4, &Config::default()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn damaged_tables_are_refused() {
    let routes: Routes<u128> = [
        ("::/0".parse().unwrap(), Hop::new(0)),
        ("2001::/32".parse().unwrap(), Hop::new(1)),
        ("2001::1/128".parse().unwrap(), Hop::new(3)),
    ]
    .into_iter()
    .collect();
    let levels = Levels::At { direct: 0, lengths: vec![32, 64] };
    let engine = Bloomfwd::build(&routes, &Config { levels, ..Config::default() }).unwrap();
    // The shape: direct bits, two hashes, two levels, one long one; then rows of four.
    let shape = |word: usize, to: u32| blame(&engine, SHAPE, 4 * word, &to.to_ne_bytes());
    let [size, order, number, hash] = [
        "has levels of another size than the tables",
        "has levels out of order",
        "has another number of levels than it says",
        "names an unknown hash function",
    ]
    .map(|reason| format!("table shape: {reason}"));
    assert_eq!(shape(0, 0), "accepted");
    assert_eq!(shape(0, 25), "table shape: has too many direct bits");
    assert_eq!(shape(0, 24), "table direct16: has another length than its bits say");
    assert_eq!(shape(0, 32), "table shape: has too many direct bits");
    assert_eq!(shape(1, 5), hash);
    assert_eq!(shape(2, u32::MAX), hash);
    assert_eq!(shape(3, 1), number);
    assert_eq!(shape(3, u32::MAX), number);
    assert_eq!(shape(4, 0), number);
    for (word, to) in [(5, 63), (5, 128), (9, 64), (9, 0), (13, 64), (13, 129), (17, 65)] {
        assert_eq!(shape(word, to), order, "{word} {to}");
    }
    for (word, to) in [(5, 256), (6, 1 << 20), (6, 0), (7, 33), (7, 0), (8, 0), (8, u32::MAX)] {
        assert_eq!(shape(word, to), size, "{word} {to}");
    }
    assert_eq!(
        blame(&engine, "direct16", 0, &[5, 0]),
        "table direct16: names a hop beyond the hop count"
    );
    assert_eq!(blame(&engine, FILTERS, 0, &[0; 8]), "accepted");
    // A code of a hop that is not there, and a mark that is none.
    let bad = "table buckets16: has a damaged bucket";
    assert_eq!(blame(&engine, "buckets16", 48, &[5, 0]), bad);
    assert_eq!(blame(&engine, "buckets16", 48, &[4, 0]), "accepted");
    assert_eq!(blame(&engine, "buckets16", 60, &[1, 0]), bad);
    assert_eq!(blame(&engine, "buckets16", 60, &[0xff, 0xff]), "accepted");
    for table in [SHAPE, "direct16", FILTERS, "buckets16"] {
        let mut tables = stored(&engine);
        let len = tables.bytes(table).len();
        for cut in [len - 1, len / 2, 0] {
            tables.edit(table, |bytes| bytes.truncate(cut));
            assert!(
                Bloomfwd::<u128>::load(&tables, 4, &Config::default()).is_err(),
                "{table} {cut}"
            );
        }
        tables.remove(table);
        assert!(Bloomfwd::<u128>::load(&tables, 4, &Config::default()).is_err(), "{table}");
    }
}

/// Marks in all buckets: the search for an absent key ends.
#[test]
fn marks_all_round_end() {
    let routes: Routes<u32> = [("10.0.0.0/24".parse().unwrap(), Hop::new(1))].into_iter().collect();
    let engine = Bloomfwd::build(&routes, &Config::default()).unwrap();
    let mut tables = stored(&engine);
    tables.edit("buckets16", |bytes| {
        bytes.chunks_mut(64).for_each(|line| line[60..62].copy_from_slice(&[0xff, 0xff]));
    });
    tables.edit(FILTERS, |bytes| bytes.fill(0xff));
    let engine = Bloomfwd::<u32>::load(&tables, 2, &Config::default()).unwrap();
    let addrs: Vec<u32> = (0..100).map(|i| i * 0x0200_0100).collect();
    let mut hops = vec![Hop::NONE; 100];
    engine.lookup_batch(&addrs, &mut hops);
    for (addr, hop) in addrs.into_iter().zip(hops) {
        assert_eq!(hop, engine.lookup(addr));
    }
    assert_eq!(engine.lookup(0x0a00_0001), Hop::new(1));
}
