use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Patched, Persist, Prefix, Routes,
};
use fibula_simd::Isa;
use fibula_testkit::StoredTables;
use fibula_testkit::conform::patches;

use super::format::{Chunk, Entry};
use super::{Config, Dxr, Form, RangeSearch, Stats, name};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

fn build(routes: &Routes<u32>, k: u8) -> Dxr {
    Dxr::build(routes, &Config { k, ..Config::default() }).unwrap()
}

/// The paper's table: A to D are hops 0 to 3.
fn papers() -> Routes<u32> {
    routes(&[
        ("0.0.0.0/0", 0),
        ("1.0.0.0/8", 1),
        ("1.2.0.0/16", 2),
        ("1.2.3.0/24", 3),
        ("1.2.4.5/32", 2),
    ])
}

/// Starts and hops of the chunk of an address; `None` for a direct entry.
fn chunk(dxr: &Dxr, addr: u32) -> Option<(bool, Vec<(u32, u32)>)> {
    let Form::Compact(tables) = &dxr.form else { panic!("wide") };
    let entry = Entry(tables.lookup[(addr >> dxr.shift) as usize]);
    if entry.direct().is_some() {
        return None;
    }
    let chunk = Chunk::new(entry, tables.grain);
    let entries = (0..chunk.size).map(|i| {
        let entry = chunk.entry(&tables.ranges, i);
        (chunk.start(entry), chunk.code(entry) - 1)
    });
    Some((chunk.long, entries.collect()))
}

/// Section 3.2: the chunk of 1.2.0.0/16 in the short format.
#[test]
fn papers_short_chunk() {
    let dxr = build(&papers(), 16);
    let expected = vec![(0x0000, 2), (0x0300, 3), (0x0400, 2)];
    assert_eq!(chunk(&dxr, 0x0102_0000), Some((false, expected)));
    assert_eq!(chunk(&dxr, 0x0101_0000), None);
    assert_eq!(chunk(&dxr, 0x0103_0000), None);
    let expected =
        Stats { k: 16, full_chunks: 1, short_ranges: 4, largest_chunk: 3, ..stats(&dxr) };
    assert_eq!(dxr.stats(), expected);
    assert_eq!(expected.bytes, 4 * 65_536 + 2 * expected.short_ranges + 16);
    assert_eq!(dxr.lookup(0x0102_0405), Hop::new(2));
    assert_eq!(dxr.lookup(0x0102_03ff), Hop::new(3));
    assert_eq!(dxr.lookup(u32::MAX), Hop::new(0));
}

/// The same chunk in the long format, which a hop beyond 8 bits forces.
#[test]
fn papers_long_chunk() {
    let mut list: Vec<_> = papers().iter().map(|r| (r.prefix, r.hop)).collect();
    list[3].1 = Hop::new(255);
    let dxr = build(&list.into_iter().collect(), 16);
    let expected = vec![(0x0000, 2), (0x0300, 255), (0x0400, 2)];
    assert_eq!(chunk(&dxr, 0x0102_0000), Some((true, expected)));
    assert_eq!(dxr.stats().long_ranges, 3);
    assert_eq!(dxr.lookup(0x0102_0301), Hop::new(255));
}

/// And because of a prefix longer than /24 that is not merged away.
#[test]
fn long_prefixes_make_long_chunks() {
    let mut list: Vec<_> = papers().iter().map(|r| (r.prefix, r.hop)).collect();
    list[4].1 = Hop::new(3);
    let dxr = build(&list.into_iter().collect(), 18);
    let expected = vec![(0, 2), (0x0300, 3), (0x0400, 2), (0x0405, 3), (0x0406, 2)];
    assert_eq!(chunk(&dxr, 0x0102_0000), Some((true, expected)));
    assert_eq!(chunk(&dxr, 0x0102_4000), None);
}

fn stats(dxr: &Dxr) -> Stats {
    Stats { bytes: dxr.memory().total(), ..Stats::default() }
}

#[test]
fn steps_of_bisection() {
    let dxr = build(&papers(), 16);
    let steps = [0x0101_0000, 0x0102_0000, 0x0102_0300, 0x0102_0400].map(|a| dxr.search_steps(a));
    assert_eq!(steps, [0, 1, 2, 2]);
}

#[test]
fn k_out_of_range() {
    for k in [0, 15, 25, 32] {
        let refused = Dxr::build(&papers(), &Config { k, ..Config::default() });
        assert!(matches!(refused, Err(BuildError::Config { engine: "dxr", .. })));
    }
}

/// Host routes in every other address from `block`: `2 * hosts + 1` ranges where they leave a gap.
fn comb(block: u32, hosts: u32, hops: u32) -> impl Iterator<Item = (Prefix<u32>, Hop)> {
    (0..hosts).map(move |i| (Prefix::host(block + 2 * i + 1), Hop::new(1 + i % hops)))
}

/// k = 16, for each ISA and with branches.
fn configs() -> impl Iterator<Item = Config> {
    let config = |search, isa| Config { k: 16, search, isa, threads: 1 };
    let batched = Isa::available().into_iter().map(move |isa| config(RangeSearch::Batched, isa));
    batched.chain([config(RangeSearch::Branching, Isa::Scalar)])
}

/// Compares with the ranges of the table: first, last and middle of each, single and in batches.
fn check(dxr: &Dxr, routes: &Routes<u32>) {
    let probes: Vec<(u32, Hop)> = routes
        .ranges()
        .flat_map(|r| [r.first, r.first + (r.last - r.first) / 2, r.last].map(|a| (a, r.hop)))
        .collect();
    let addrs: Vec<u32> = probes.iter().map(|p| p.0).collect();
    let mut hops = vec![Hop::NONE; addrs.len()];
    dxr.lookup_batch(&addrs, &mut hops);
    for (&(addr, hop), &batch) in probes.iter().zip(&hops) {
        assert_eq!(dxr.lookup(addr), hop, "{addr:#x}");
        assert_eq!(batch, hop, "batch {addr:#x}");
    }
}

/// A chunk of more than 4,095 ranges makes the grain grow; so does a range table of 2^19 words.
#[test]
fn grain_grows_with_the_table() {
    for (hosts, grain) in [(2047, 0), (2048, 1), (4094, 1), (4095, 2), (16_379, 3)] {
        let routes: Routes<u32> = comb(0x0a00_0000, hosts, 300).chain(papers_pairs()).collect();
        for config in configs() {
            let dxr = Dxr::build(&routes, &config).unwrap();
            assert_eq!((dxr.stats().wide, dxr.stats().grain), (false, grain), "{hosts}");
            check(&dxr, &routes);
            check(&reload(&dxr, routes.hop_count()), &routes);
        }
    }
    // 300 chunks of 2,049 long ranges: 614,700 words.
    let many = (0..300u32).flat_map(|i| comb(0x2000_0000 + (i << 16), 1024, 7));
    let routes: Routes<u32> = many.chain(papers_pairs()).collect();
    let dxr = build(&routes, 16);
    assert_eq!((dxr.stats().wide, dxr.stats().grain), (false, 1));
    check(&dxr, &routes);
}

fn papers_pairs() -> impl Iterator<Item = (Prefix<u32>, Hop)> {
    papers().iter().map(|r| (r.prefix, r.hop)).collect::<Vec<_>>().into_iter()
}

/// Chunks that no grain holds, and hops beyond 16 bits, take the wide form.
#[test]
fn wide_form() {
    let full: Routes<u32> = comb(0x0a00_0000, 16_380, 300).chain(papers_pairs()).collect();
    let mut list: Vec<_> = papers_pairs().collect();
    list[3].1 = Hop::new(Hop::MAX_INDEX);
    list[1].1 = Hop::new(65_535);
    let hops: Routes<u32> = list.into_iter().collect();
    for routes in [full, hops] {
        for config in configs() {
            let dxr = Dxr::build(&routes, &config).unwrap();
            assert!(dxr.stats().wide);
            check(&dxr, &routes);
            check(&reload(&dxr, routes.hop_count()), &routes);
        }
    }
    // The largest hop that the compact form holds.
    let mut list: Vec<_> = papers_pairs().collect();
    list[3].1 = Hop::new(65_534);
    let routes = list.into_iter().collect();
    let dxr = build(&routes, 16);
    assert!(!dxr.stats().wide);
    check(&dxr, &routes);
}

fn stored(dxr: &Dxr) -> StoredTables {
    StoredTables::of(&dxr.tables())
}

fn load(tables: &StoredTables, hop_count: u32, k: u8) -> Result<Dxr, LoadError> {
    Dxr::load(tables, hop_count, &Config { k, ..Config::default() })
}

fn reload(dxr: &Dxr, hop_count: u32) -> Dxr {
    let loaded = load(&stored(dxr), hop_count, dxr.k()).unwrap();
    assert_eq!(loaded.stats(), dxr.stats());
    loaded
}

/// Replaces a 32-bit word and returns the table that the error names.
fn blame(dxr: &Dxr, table: &'static str, word: usize, value: u32) -> String {
    let mut tables = stored(dxr);
    tables.edit(table, |bytes| bytes[4 * word..][..4].copy_from_slice(&value.to_ne_bytes()));
    match load(&tables, 4, dxr.k()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn damaged_tables_are_refused() {
    let dxr = build(&papers(), 16);
    let (out_of_place, range) =
        ("table lookup: a chunk is out of place", "table lookup: a hop is out of range");
    assert_eq!(blame(&dxr, name::LOOKUP, 0x0102, Entry::new(false, 4, 0).0), "accepted");
    for (size, position) in [(5, 0), (4095, 0), (3, 1), (3, (1 << 19) - 1)] {
        let entry = Entry::new(false, size, position).0;
        assert_eq!(blame(&dxr, name::LOOKUP, 0x0102, entry), out_of_place);
    }
    // A format bit without a size is no entry.
    assert_eq!(blame(&dxr, name::LOOKUP, 0x0102, Entry::LONG), out_of_place);
    // The long format of the same size reaches into the guard.
    assert_eq!(blame(&dxr, name::LOOKUP, 0x0102, Entry::new(true, 3, 0).0), out_of_place);
    // Codes are hops plus one: 4 is the last hop of a table of four.
    assert_eq!(blame(&dxr, name::LOOKUP, 0, 4), "accepted");
    assert_eq!(blame(&dxr, name::LOOKUP, 0, 5), range);
    // A chunk that nobody refers to is a hole, as patches leave them.
    assert_eq!(blame(&dxr, name::LOOKUP, 0x0102, 1), "accepted");
    // Two entries with one chunk.
    assert_eq!(blame(&dxr, name::LOOKUP, 0x0103, Entry::new(false, 3, 0).0), out_of_place);
    let order = "table ranges: the ranges of a chunk are out of order";
    assert_eq!(blame(&dxr, name::RANGES, 0, 0x0301_0103), order);
    assert_eq!(blame(&dxr, name::RANGES, 0, 0x0504_0003), order);
    assert_eq!(blame(&dxr, name::RANGES, 0, 0x0309_0003), "table ranges: a hop is out of range");
    assert_eq!(blame(&dxr, name::SHAPE, 0, 17), "table lookup: has another length than k says");
    assert_eq!(blame(&dxr, name::SHAPE, 0, 40), "table shape: k is out of range");
    assert_eq!(blame(&dxr, name::SHAPE, 1, 4), "table shape: is of no known form");
    for table in [name::SHAPE, name::LOOKUP, name::RANGES] {
        let mut tables = stored(&dxr);
        tables.edit(table, |bytes| bytes.truncate(bytes.len() - 1));
        assert_eq!(load(&tables, 4, 16).err().unwrap().table(), table);
        tables.remove(table);
        assert_eq!(load(&tables, 4, 16).err().unwrap().reason(), "is missing");
    }
}

#[test]
fn patched_tables_answer_as_built_ones() {
    for k in [16, 18, 24] {
        patches::<u32, Dxr>(&format!("k = {k}"), &Config { k, ..Config::default() });
    }
}

/// Both forms: patched step by step, stored in between, until the holes require a build.
#[test]
fn patches_reuse_what_fits_and_ask_for_a_build_in_the_end() {
    for top in [0, Hop::MAX_INDEX] {
        let table = |round: u32| -> Routes<u32> {
            let size = if round.is_multiple_of(2) { 8 } else { 60 };
            let comb = comb(0x0a00_0000 + (round << 16), size, 200);
            comb.chain(papers_pairs()).chain([(Prefix::host(7), Hop::new(top))]).collect()
        };
        let mut dxr = build(&table(0), 16);
        assert_eq!(dxr.stats().wide, top != 0);
        let mut rounds = 1;
        loop {
            let routes = table(rounds);
            let changed = ["10.0.0.0/8".parse().unwrap()];
            match dxr.follow(&routes, &changed).unwrap() {
                Patched::Applied => check(&reload(&dxr, routes.hop_count()), &routes),
                Patched::Rebuild => break,
            }
            rounds += 1;
        }
        assert!((2..60).contains(&rounds), "{rounds}");
        // Hops that the compact form cannot hold.
        let wide = [(Prefix::host(9), Hop::new(Hop::MAX_INDEX))].into_iter();
        let routes = wide.chain(papers_pairs()).collect();
        let mut dxr = build(&papers(), 16);
        assert_eq!(dxr.follow(&routes, &[Prefix::host(9)]), Ok(Patched::Rebuild));
    }
}

/// Builds and patches of any number of threads give the same tables, in both forms.
#[test]
fn threads_do_not_matter() {
    /// Chunks with routes of their own.
    const CHUNKS: u32 = 3000;
    for top in [0, Hop::MAX_INDEX] {
        let table = |round: u32| -> Routes<u32> {
            let hosts = (0..CHUNKS).map(|i| (i << 20 | i << 8 | round, i % 200));
            let hosts = hosts.map(|(addr, hop)| (Prefix::host(addr), Hop::new(1 + hop)));
            hosts.chain(papers_pairs()).chain([(Prefix::host(7), Hop::new(top))]).collect()
        };
        let changed: Vec<_> = table(0).iter().chain(table(1).iter()).map(|r| r.prefix).collect();
        let tables = [1, 2, 3].map(|threads| {
            let config = Config { k: 18, threads, ..Config::default() };
            let mut dxr = Dxr::build(&table(0), &config).unwrap();
            assert_eq!(dxr.stats().wide, top != 0);
            assert!(dxr.stats().full_chunks >= CHUNKS as usize);
            let built = stored(&dxr);
            assert_eq!(dxr.follow(&table(1), &changed), Ok(Patched::Applied));
            check(&dxr, &table(1));
            (built, stored(&dxr))
        });
        assert!(tables[0] == tables[1] && tables[0] == tables[2]);
    }
}
