//! Stored tables, for every engine: what was stored answers as before; what is damaged is refused,
//! or answers without harm.

use fibula_core::{Addr, Hop, Lookup, Patched, Prefix, Routes, TableRef};
use fibula_engines::{AnyEngine, Entry};
use fibula_simd::Isa;
use fibula_testkit::{Rng, StoredTables, probes, tables};

use crate::{engines, find};

/// The engine's tables, as they are stored.
fn tables_of<A: Addr>(engine: &dyn AnyEngine<A>) -> Vec<TableRef<'_>> {
    engine.persist().expect("every engine of the list can be stored").1
}

fn store<A: Addr>(engine: &dyn AnyEngine<A>) -> StoredTables {
    StoredTables::of(&tables_of(engine))
}

fn len_of(tables: &StoredTables) -> usize {
    tables.iter().map(|(_, bytes)| bytes.len()).sum()
}

/// Boundaries and random addresses with the engine's answers.
fn answers<A: Addr>(engine: &dyn Lookup<A>, routes: &Routes<A>) -> Vec<(A, Hop)> {
    let mut rng = Rng::new(3);
    let random = (0..500).map(|_| rng.addr());
    probes::boundary(routes).chain(random).map(|addr| (addr, engine.lookup(addr))).collect()
}

fn round_trips<A: Addr>() {
    let mut tables = tables::edge::<A>();
    tables.push(("dense", tables::dense(5, 500)));
    tables.push(("crowded", tables::crowded()));
    tables.push(("wide hops", tables::wide_hops(6, 500)));
    for entry in engines::<A>() {
        let mut tried = 0;
        for (table, routes) in tables.iter().rev() {
            let Ok(built) = entry.build(routes, Isa::Scalar) else { continue };
            // Each round copies and compares all tables: fewer of those that are large whatever the routes.
            let len: usize = tables_of(&*built).iter().map(|table| table.bytes.len()).sum();
            if len > 16 << 20 && tried == 4 {
                break;
            }
            tried += 1;
            let stored = store(&*built);
            let expected = answers(&*built, routes);
            for &isa in entry.isas.iter().filter(|isa| isa.is_supported()) {
                let label = format!("{} {isa} on {table}", entry.name);
                // The other family of a snapshot may have more hops than the codes of this one number.
                let hop_count = if tried % 2 == 0 { Hop::MAX_INDEX } else { routes.hop_count() };
                let loaded = entry
                    .load(&stored, hop_count, isa)
                    .unwrap_or_else(|error| panic!("{label}: {error}"));
                assert!(store(&*loaded) == stored, "{label}: other tables");
                assert_eq!(loaded.memory(), built.memory(), "{label}");
                let addrs: Vec<A> = expected.iter().map(|(addr, _)| *addr).collect();
                let mut hops = vec![Hop::NONE; addrs.len()];
                loaded.lookup_batch(&addrs, &mut hops);
                for (&(addr, expected), hop) in expected.iter().zip(hops) {
                    assert_eq!(hop, expected, "{label}: {}", addr.to_ip());
                    assert_eq!(loaded.lookup(addr), expected, "{label}: {}", addr.to_ip());
                }
            }
        }
        assert!(tried >= 4, "{}: only {tried} tables", entry.name);
    }
}

/// Loads damaged tables; if they are taken, every answer must be none or a hop of the table.
fn survives<A: Addr>(entry: &Entry<A>, tables: &StoredTables, routes: &Routes<A>) -> bool {
    let isa = Isa::available().pop().expect("there is always a scalar form");
    let Ok(engine) = entry.load(tables, routes.hop_count(), isa) else { return false };
    let answers = answers(&*engine, routes);
    let addrs: Vec<A> = answers.iter().map(|(addr, _)| *addr).collect();
    let mut hops = vec![Hop::NONE; addrs.len()];
    engine.lookup_batch(&addrs, &mut hops);
    for hop in hops.into_iter().chain(answers.into_iter().map(|(_, hop)| hop)) {
        let known = hop.index().is_none_or(|index| index < routes.hop_count());
        assert!(known, "{}: answered {hop:?} of {} hops", entry.name, routes.hop_count());
    }
    true
}

/// Words changed at random: other bits, other values, values of other words.
fn damaged_words<A: Addr>() {
    let routes = tables::dense::<A>(8, 120);
    for entry in engines::<A>() {
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        let whole = store(&*built);
        let names: Vec<_> = whole.iter().map(|(name, _)| name).collect();
        let (mut rng, mut taken) = (Rng::new(9), 0);
        // Each round reads the tables whole: fewer where they are large.
        let rounds = ((256 << 20) / len_of(&whole)).clamp(8, 150);
        for round in 0..rounds {
            let mut tables = whole.clone();
            for _ in 0..=round % 3 {
                let name = names[rng.below(names.len() as u64) as usize];
                tables.edit(name, |bytes| damage(bytes, &mut rng));
            }
            taken += u32::from(survives(entry, &tables, &routes));
        }
        println!("{}: {taken} of {rounds} damaged tables were taken", entry.name);
    }
}

fn damage(bytes: &mut [u8], rng: &mut Rng) {
    let words = bytes.len() as u64 / 4;
    if words == 0 {
        return;
    }
    // The last words lie next to what must not be read.
    let last = rng.chance(0.2);
    let at = 4 * if last { words - 1 } else { rng.below(words) } as usize;
    let other = 4 * rng.below(words) as usize;
    let old = u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("a word"));
    let new = match rng.below(5) {
        0 => old ^ 1 << rng.below(32),
        1 => old.wrapping_add(1),
        2 => u32::MAX,
        3 => rng.next_u64() as u32,
        _ => u32::from_ne_bytes(bytes[other..other + 4].try_into().expect("a word")),
    };
    bytes[at..at + 4].copy_from_slice(&new.to_ne_bytes());
}

/// Tables cut short, made longer, emptied, taken away, or exchanged with one another.
fn damaged_lengths<A: Addr>() {
    let routes = tables::dense::<A>(8, 120);
    for entry in engines::<A>() {
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        let whole = store(&*built);
        for (name, bytes) in whole.iter() {
            let lengths = [0, 1, bytes.len() / 2, bytes.len().saturating_sub(64), bytes.len() + 64];
            // Each length copies the table and reads it whole: fewer of those that are large whatever the routes.
            let least = if bytes.len() > 16 << 20 { 1..=1 } else { 1..=8 };
            for len in lengths.into_iter().chain(least.map(|n| bytes.len().saturating_sub(n))) {
                let mut tables = whole.clone();
                tables.edit(name, |bytes| bytes.resize(len, 0));
                survives(entry, &tables, &routes);
            }
            let mut tables = whole.clone();
            tables.remove(name);
            survives(entry, &tables, &routes);
            for (_, other) in whole.iter() {
                tables.set(name, other);
                survives(entry, &tables, &routes);
            }
        }
        let nothing = StoredTables::default();
        assert!(entry.load(&nothing, routes.hop_count(), Isa::Scalar).is_err(), "{}", entry.name);
    }
}

/// What a patch leaves is stored like what a build makes: other places, free ones, and arrays that have grown.
fn patched_tables<A: Addr>() {
    let routes = tables::dense::<A>(10, 600);
    let hop = |i: usize, hop: Hop| if i.is_multiple_of(3) { Hop::new(1) } else { hop };
    let few: Routes<A> = routes.iter().step_by(5).collect();
    let other: Routes<A> =
        routes.iter().enumerate().skip(40).map(|(i, r)| (r.prefix, hop(i, r.hop))).collect();
    let changed: Vec<Prefix<A>> = routes.iter().map(|route| route.prefix).collect();
    let mut patched = Vec::new();
    for entry in engines::<A>() {
        let mut engine = entry.build(&few, Isa::Scalar).expect("a small table is taken");
        let applied = [&routes, &other].map(|routes| engine.follow(routes, &changed));
        if applied != [Ok(Patched::Applied), Ok(Patched::Applied)] {
            continue;
        }
        patched.push(entry.name);
        let loaded = entry.load(&store(&*engine), other.hop_count(), Isa::Scalar);
        let mut loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let built = entry.build(&other, Isa::Scalar).expect("a small table is taken");
        assert!(answers(&*loaded, &routes) == answers(&*built, &routes), "{}", entry.name);
        // And it goes on.
        if loaded.follow(&few, &changed) == Ok(Patched::Applied) {
            let built = entry.build(&few, Isa::Scalar).expect("a small table is taken");
            assert!(answers(&*loaded, &routes) == answers(&*built, &routes), "{}", entry.name);
        }
    }
    for name in ["bsd-radix", "poptrie18", "miht"] {
        assert!(patched.contains(&name), "{name} was not patched: {patched:?}");
    }
}

/// Its records are placed by lines, and what patches add begins where the table ends.
#[test]
fn runmap_takes_whole_lines_alone() {
    let entry = find::<u32>("runmap").expect("an engine");
    for routes in [tables::dense::<u32>(8, 120), tables::wide_hops(6, 500), Routes::default()] {
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        let whole = store(&*built);
        let load = |tables: &StoredTables| entry.load(tables, routes.hop_count(), Isa::Scalar);
        assert!(load(&whole).is_ok());
        for (name, bytes) in whole.iter() {
            for len in (bytes.len() - 63..bytes.len() + 64).filter(|&len| len != bytes.len()) {
                let mut tables = whole.clone();
                tables.edit(name, |bytes| bytes.resize(len, 0));
                assert!(load(&tables).is_err(), "{name}, {len} in place of {} bytes", bytes.len());
            }
        }
    }
}

/// A stored hop count that is too small is noticed.
fn hops_out_of_range<A: Addr>() {
    let routes = tables::dense::<A>(8, 120);
    for entry in engines::<A>() {
        let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
        let answered = answers(&*built, &routes).into_iter().filter_map(|(_, hop)| hop.index());
        let largest = answered.max().expect("some address is covered");
        let loaded = entry.load(&store(&*built), largest, Isa::Scalar);
        assert!(loaded.is_err(), "{}: hop {largest} of {largest}", entry.name);
    }
}

/// The engines that differ in a parameter refuse each other's tables.
#[test]
fn tables_of_another_engine() {
    let routes = tables::dense::<u32>(8, 120);
    let built = find::<u32>("dxr16").expect("an engine").build(&routes, Isa::Scalar);
    let stored = store(&*built.expect("a small table is taken"));
    for entry in engines::<u32>().iter().filter(|entry| entry.name != "dxr16") {
        let loaded = entry.load(&stored, routes.hop_count(), Isa::Scalar);
        assert!(loaded.is_err(), "{} took the tables of dxr16", entry.name);
    }
}

#[test]
fn round_trips_v4() {
    round_trips::<u32>();
}

#[test]
fn round_trips_v6() {
    round_trips::<u128>();
}

#[test]
fn damaged_words_v4() {
    damaged_words::<u32>();
}

#[test]
fn damaged_words_v6() {
    damaged_words::<u128>();
}

#[test]
fn damaged_lengths_v4() {
    damaged_lengths::<u32>();
}

#[test]
fn damaged_lengths_v6() {
    damaged_lengths::<u128>();
}

#[test]
fn hops_out_of_range_v4() {
    hops_out_of_range::<u32>();
}

#[test]
fn hops_out_of_range_v6() {
    hops_out_of_range::<u128>();
}

#[test]
fn patched_tables_v4() {
    patched_tables::<u32>();
}

#[test]
fn patched_tables_v6() {
    patched_tables::<u128>();
}

/// The entries of chains and lists lay one behind the other before the tree was patched, with a bit at each last one.
#[test]
fn bsd_radix_of_before_it_was_patched() {
    let entry = find::<u32>("bsd-radix").expect("an engine");
    let routes = tables::dense::<u32>(8, 500);
    let built = entry.build(&routes, Isa::Scalar).expect("a small table is taken");
    let mut stored = store(&*built);
    let words = bytes_to_words(stored.bytes("entries"));
    stored.remove("entries");
    let old: Vec<u32> = words
        .chunks_exact(3)
        .flat_map(|entry| [entry[0] | u32::from(entry[2] == u32::MAX) << 31, entry[1]])
        .collect();
    let bytes: Vec<u8> = old.iter().flat_map(|word| word.to_ne_bytes()).collect();
    stored.set("routes", &bytes);
    let loaded = entry.load(&stored, routes.hop_count(), Isa::Scalar).expect("an old table");
    assert!(answers(&*loaded, &routes) == answers(&*built, &routes));
    assert!(store(&*loaded) == store(&*built), "it is the same tree");
    stored.set("routes", &bytes[..bytes.len() - 8]);
    assert!(entry.load(&stored, routes.hop_count(), Isa::Scalar).is_err());
}

fn bytes_to_words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| u32::from_ne_bytes(word.try_into().expect("a word"))).collect()
}
