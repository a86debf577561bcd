use fibula_core::{Addr, Engine, Hop, Lookup, Persist, Prefix, Route, Routes};
use fibula_simd::Isa;
use fibula_testkit::{Oracle, Rng, StoredTables, probes};

use super::word::Entry;
use super::{Config, Form, Matchline, RootShape, SHAPE, WORDS};

/// Compares all answers at boundaries, and at addresses that differ from a route's first one in a single bit: those
/// differ in bits that tables skip, too.
fn agrees(routes: &Routes<u128>, label: &str) {
    let oracle = Oracle::new(routes);
    let flipped = routes.iter().zip(0..).flat_map(|(route, at)| flipped(route.prefix.addr(), at));
    let addrs: Vec<u128> = probes::boundary(routes).chain(flipped).collect();
    for config in configs() {
        let engine = Matchline::build(routes, &config).expect("it takes the table");
        answers(&engine, &oracle, &addrs, &format!("{label} {config:?}"));
    }
}

/// Every instruction set; AVX-512 with gathers and with loads, whichever is faster here.
pub(super) fn configs() -> impl Iterator<Item = Config> {
    let gathers = |isa| if isa == Isa::Avx512 { &[true, false][..] } else { &[false] };
    Isa::available().into_iter().flat_map(move |isa| {
        gathers(isa).iter().map(move |&gathers| Config { isa, gathers: Some(gathers) })
    })
}

/// Addresses that differ from this one in a single bit, sixteen of them, others for other numbers.
pub(super) fn flipped(addr: u128, at: u32) -> impl Iterator<Item = u128> {
    (0..16).map(move |i| addr ^ (1 << ((at.wrapping_mul(7) + 11 * i) % 128)))
}

/// Compares batches and single lookups with the oracle.
pub(super) fn answers(engine: &Matchline, oracle: &Oracle<u128>, addrs: &[u128], label: &str) {
    let mut hops = vec![Hop::NONE; addrs.len()];
    for (addrs, hops) in addrs.chunks(999).zip(hops.chunks_mut(999)) {
        engine.lookup_batch(addrs, hops);
    }
    for (&addr, &hop) in addrs.iter().zip(&hops) {
        assert_eq!(hop, oracle.lookup(addr), "{label}: {}, batch", addr.to_ip());
        assert_eq!(engine.lookup(addr), hop, "{label}: {}, single", addr.to_ip());
    }
}

/// Routes of these lengths, below some of `parents`.
pub(super) fn below(
    parents: &[Prefix<u128>],
    number: usize,
    lens: std::ops::RangeInclusive<u8>,
    hops: u32,
) -> Vec<Route<u128>> {
    let mut rng = Rng::new(number as u64);
    let spread = u64::from(lens.end() - lens.start()) + 1;
    (0..number)
        .map(|_| {
            let len = lens.start() + rng.below(spread) as u8;
            let addr = rng.choose(parents).map_or(0, |parent| rng.addr_in(parent));
            let prefix = Prefix::masked(addr, len).expect("a length");
            Route { prefix, hop: Hop::new(rng.below(hops.into()) as u32) }
        })
        .collect()
}

pub(super) fn networks(number: u64, len: u8) -> Vec<Prefix<u128>> {
    let mut rng = Rng::new(number);
    (0..number).map(|_| Prefix::masked(rng.addr(), len).expect("a length")).collect()
}

pub(super) fn prefix(text: &str) -> Prefix<u128> {
    text.parse().expect("a prefix")
}

#[test]
fn long_routes_with_codes_of_every_width() {
    for hops in [2, 200, 300, 70_000] {
        let clusters = below(&networks(40, 48), 4000, 49..=64, hops);
        agrees(&Routes::from_unsorted(clusters), "in /48s");
        let mut nested = below(&networks(30, 20), 3000, 21..=64, hops);
        let sites: Vec<_> = nested.iter().take(30).map(|route| route.prefix).collect();
        nested.extend(below(&sites, 1000, 64..=64, hops));
        agrees(&Routes::from_unsorted(nested), "nested");
    }
}

/// Whatever covers a cluster: nothing, a route above the root's blocks, several below.
#[test]
fn addresses_that_differ_in_skipped_bits() {
    let arounds: [&[&str]; 5] = [
        &[],
        &["2000::/3"],
        &["2001::/16", "2001:db8::/32"],
        &["2001::/16", "2001:d00::/24", "2001:db8::/32", "2001:db8:7::/48"],
        &["2001::/17", "2001:d00::/24", "2001:db0::/28", "2001:db8::/32", "2001:db8:0::/47"],
    ];
    // Some are shorter than the table's bits, so that they alone answer for its words.
    for lens in [64..=64, 50..=52, 49..=64] {
        for around in arounds {
            let site = [prefix("2001:db8:7::/48")];
            let mut routes = below(&site, 300, lens.clone(), 100);
            let outer = around.iter().zip(100..);
            routes.extend(outer.map(|(p, hop)| Route { prefix: prefix(p), hop: Hop::new(hop) }));
            agrees(&Routes::from_unsorted(routes.clone()), "one cluster");
            // A second one, so that the root has more than this block.
            routes.extend(below(&[prefix("2c0f:f000::/32")], 20, 40..=64, 100));
            agrees(&Routes::from_unsorted(routes), "two clusters");
        }
    }
}

/// Lines do not contain the first six bits: the same prefixes but for these must not meet.
#[test]
fn the_whole_space() {
    let mut routes = Vec::new();
    for top in 0..64u128 {
        for (len, hop) in [(7, 1), (48, 2), (63, 3), (64, 4)] {
            let prefix = Prefix::masked(top << 122 | 5 << 64, len).expect("a length");
            routes.push(Route { prefix, hop: Hop::new(hop + 4 * (top % 3) as u32) });
        }
    }
    agrees(&Routes::from_unsorted(routes.clone()), "every top");
    for (text, hop) in [("::/0", 20), ("::/1", 21), ("8000::/2", 22), ("fc00::/6", 23)] {
        routes.push(Route { prefix: prefix(text), hop: Hop::new(hop) });
        agrees(&Routes::from_unsorted(routes.clone()), text);
    }
}

#[test]
fn networks_that_longer_routes_divide() {
    let sites = networks(20, 56);
    let mut routes = below(&sites, 500, 60..=70, 50);
    let inner: Vec<_> = routes.iter().map(|route| route.prefix).collect();
    routes.extend(below(&inner, 500, 65..=128, 50));
    agrees(&Routes::from_unsorted(routes), "longer than /64");
}

/// Lines are shared: random /64s fill them, though a block of the root has a few.
#[test]
fn lines_are_full() {
    let routes = Routes::from_unsorted(below(&[prefix("2000::/3")], 20_000, 64..=64, 1000));
    let engine = Matchline::build(&routes, &Config::default()).expect("it takes the table");
    let Form::Narrow(tables) = &engine.form else { panic!("a thousand hops need 16 bits") };
    assert!(tables.lines.len() < 20_000 / 6 + 100, "{} lines", tables.lines.len());
}

/// Networks that lie together, as real ones do, are distinguished by a few wide tables. With narrow ones it takes twice
/// as many.
#[test]
fn few_tables_above_networks_that_lie_together() {
    let prefixes =
        |routes: Vec<Route<u128>>| -> Vec<_> { routes.iter().map(|route| route.prefix).collect() };
    let outer = prefixes(below(&networks(4, 20), 60, 32..=32, 1));
    let sites = prefixes(below(&outer, 1000, 48..=48, 1));
    let routes = Routes::from_unsorted(below(&sites, 40_000, 64..=64, 1000));
    let engine = Matchline::build(&routes, &Config::default()).expect("it takes the table");
    let Form::Narrow(tables) = &engine.form else { panic!("a thousand hops need 16 bits") };
    let passed = |route: Route<u128>| {
        let high = (route.prefix.addr() >> 64) as u64;
        let (mut word, mut passed) = (tables.words[tables.shape.entry(high)], 0);
        while let Entry::Table { base, bits, shift } = Entry::of(word) {
            word = tables.words[base + (high >> shift & ((1 << bits) - 1)) as usize];
            passed += 1;
        }
        passed
    };
    assert_eq!(routes.iter().map(passed).max(), Some(4));
}

/// A table before the word that names it, or that word itself, would be a lookup without an end.
#[test]
fn stored_tables_that_lead_back_are_refused() {
    let routes = Routes::from_unsorted(below(&networks(5, 48), 500, 64..=64, 100));
    let engine = Matchline::build(&routes, &Config::default()).expect("it takes the table");
    let load = |change: &dyn Fn(&mut [u32], &mut RootShape)| {
        let mut stored = StoredTables::of(&engine.tables());
        let mut words = bytemuck::cast_slice(stored.bytes(WORDS)).to_vec();
        let mut shape: RootShape = bytemuck::cast_slice(stored.bytes(SHAPE))[0];
        change(&mut words, &mut shape);
        stored.set(WORDS, bytemuck::cast_slice(&words));
        stored.set(SHAPE, bytemuck::bytes_of(&shape));
        Matchline::load(&stored, routes.hop_count(), &Config::default()).map(|_| ())
    };
    let is_table = |word: &u32| matches!(Entry::of(*word), Entry::Table { .. });
    load(&|_, _| ()).expect("as it was stored");
    let to = |base| {
        move |words: &mut [u32], _: &mut RootShape| {
            if let Some(word) = words.iter_mut().rfind(|word| is_table(word)) {
                *word = Entry::Table { base, bits: 2, shift: 6 }.word();
            }
        }
    };
    assert!(load(&to(0)).is_err());
    assert!(
        load(&|words, _| {
            let Some(at) = words.iter().rposition(is_table) else { return };
            words[at] = Entry::Table { base: at / 4 * 4, bits: 2, shift: 6 }.word();
        })
        .is_err()
    );
    assert!(load(&|_, shape| shape.entries = 1 << 30).is_err());
    assert!(load(&|_, shape| shape.shift = 32).is_err());
}
