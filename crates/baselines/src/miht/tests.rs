use std::collections::BTreeMap;

use fibula_core::{
    Addr, BuildError, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Routes,
};
use fibula_simd::Isa;
use fibula_testkit::conform::patches;
use fibula_testkit::{Oracle, Rng, StoredTables, conform, conforms, probes, tables};

use super::index::{HEIGHT_MAX, separators, tries};
use super::{Batch, Config, Miht, TrieAddr};

/// The smallest, the defaults of both families, a node that fills its line to the last but one, and
/// keys that are in none of the tables' prefixes.
const SHAPES: [(u32, u32); 6] = [(1, 3), (4, 4), (16, 16), (8, 17), (24, 5), (32, 32)];

fn config(k: u32, m: u32) -> Config {
    Config { k: Some(k), m: Some(m), batch: Batch::Interleaved, isa: Isa::detect() }
}

fn forms<A: TrieAddr>() -> conform::Builders<A> {
    let all = SHAPES
        .into_iter()
        .flat_map(|shape| Isa::available().into_iter().map(move |isa| (shape, isa)));
    all.map(|((k, m), isa)| {
        let config = Config { isa, ..config(k, m) };
        (format!("({k},{m}) {isa}"), conform::builder::<A, Miht<A>>(config))
    })
    .collect()
}

mod any_isa {
    use super::*;

    conforms!(shapes_v4, u32, forms());
    conforms!(shapes_v6, u128, forms());
}

#[test]
fn patched_tables_answer_as_built_ones() {
    for (k, m) in SHAPES {
        patches::<u32, Miht<u32>>(&format!("({k},{m})"), &config(k, m));
        patches::<u128, Miht<u128>>(&format!("({k},{m})"), &config(k, m));
    }
}

fn routes<A: Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The drawing of the module.
#[test]
fn the_drawing() {
    let routes = routes::<u32>(&[
        ("10.0.0.0/8", 0),
        ("10.1.0.0/16", 1),
        ("10.1.64.0/18", 2),
        ("10.1.80.0/24", 3),
        ("10.2.128.0/20", 4),
        ("192.0.2.0/24", 5),
        ("172.16.0.0/12", 6),
    ]);
    let miht = Miht::build(&routes, &config(16, 3)).unwrap();
    let key = |a: u32, b: u32| a << 8 | b;
    let (keys, children) = miht.index.node(miht.index.root);
    assert_eq!((miht.index.height, &keys[..2]), (2, &[key(10, 1), u32::MAX][..]));
    assert_eq!(miht.index.node(children[0]).0[..2], [key(10, 1), u32::MAX]);
    assert_eq!(miht.index.node(children[1]).0[..2], [key(10, 2), key(192, 0)]);
    // Hop, length, and the trie below.
    fn trie(miht: &Miht<u32>, at: u32) -> String {
        if at == 0 {
            return "-".into();
        }
        let [_, info, left, right] = miht.tries.nodes[at as usize];
        let hop = char::from(b"ABCDEFG"[(info >> 8) as usize]);
        format!("{hop}/{}({} {})", info & 0xff, trie(miht, left), trie(miht, right))
    }
    assert_eq!(trie(&miht, miht.index.find(key(10, 1))), "B/16(D/24(- C/18(- -)) -)");
    assert_eq!(trie(&miht, miht.keyless), "G/12(A/8(- -) -)");
    for (addr, hop) in [
        ("10.1.80.9", Hop::new(3)),
        ("10.1.100.1", Hop::new(2)),
        ("10.2.1.1", Hop::new(0)),
        ("11.0.0.1", Hop::NONE),
    ] {
        let addr = addr.parse::<std::net::Ipv4Addr>().unwrap().to_bits();
        assert_eq!(miht.lookup(addr), hop);
    }
}

/// All that the modules promise of the tables.
fn check<A: TrieAddr>(miht: &Miht<A>, routes: &Routes<A>) {
    let m = miht.index.m as usize;
    let mut level = vec![miht.index.root];
    let mut nodes = 0;
    for height in (1..=miht.index.height).rev() {
        nodes += level.len();
        let mut below = Vec::new();
        for &place in &level {
            let (keys, pointers) = miht.index.node(place);
            let (count, least) = match height {
                1 => (tries(pointers), m / 2),
                _ => (separators(keys) + 1, m.div_ceil(2)),
            };
            let is_root = place == miht.index.root;
            assert!(count >= if !is_root { least } else { usize::from(height > 1) * 2 });
            below.extend(&pointers[..count]);
        }
        level = below;
    }
    let lines = &miht.index.lines;
    assert_eq!(nodes, lines.in_use(), "i-nodes, none of them lost");
    let keys = routes.iter().filter(|route| u32::from(route.prefix.len()) >= miht.k);
    let mut keys: Vec<u32> = keys.map(|route| route.prefix.addr().key(miht.k)).collect();
    keys.dedup();
    assert_eq!(level.len(), keys.len(), "a trie for each key");
    assert_eq!(miht.tries.nodes.in_use(), routes.len() + 1, "a d-node for each route");
    // The others are the checks of a file.
    let loaded =
        Miht::<A>::load(&StoredTables::of(&miht.tables()), routes.hop_count(), &Config::default())
            .expect("it is sound");
    assert_eq!(loaded.index.height, miht.index.height);
}

/// Keys and routes come and go, from nothing to many and back, often enough for nodes to split, to take
/// from their siblings and to merge on all levels.
fn grows_and_shrinks<A: TrieAddr>(k: u32, m: u32) {
    let pool: Vec<(Prefix<A>, Hop)> = tables::dense::<A>(5, 400)
        .iter()
        .map(|route| (route.prefix, route.hop))
        .chain((0..1500u32).map(|i| {
            let addr = A::from_u128(u128::from(i.wrapping_mul(0x9e37_79b1)) << (A::BITS - 32));
            (Prefix::masked(addr, 18 + (i % 15) as u8).unwrap(), Hop::new(i % 7))
        }))
        .collect();
    let mut rng = Rng::new(u64::from(k * 100 + m));
    let mut table = BTreeMap::new();
    let mut miht = Miht::<A>::build(&Routes::default(), &config(k, m)).unwrap();
    let (mut highest, mut steps) = (1, 0);
    for odds in [0.9, 0.5, 0.1, 0.7, 0.0] {
        for _ in 0..12 {
            let mut changed = Vec::new();
            for _ in 0..300 {
                let (prefix, hop) = rng.choose(&pool).expect("there are routes");
                if rng.chance(odds) {
                    table.insert(prefix, hop);
                } else {
                    table.remove(&prefix);
                }
                changed.push(prefix);
            }
            if odds == 0.0 && steps == 59 {
                changed.extend(std::mem::take(&mut table).into_keys());
            }
            steps += 1;
            let routes: Routes<A> = table.iter().map(|(&p, &h)| (p, h)).collect();
            assert_eq!(miht.follow(&routes, &changed), Ok(Patched::Applied));
            check(&miht, &routes);
            let oracle = Oracle::new(&routes);
            for addr in probes::boundary(&routes).step_by(7) {
                assert_eq!(miht.lookup(addr), oracle.lookup(addr), "({k},{m}) {}", addr.to_ip());
            }
            highest = highest.max(miht.index.height);
            // A stored and loaded table behaves like the original.
            if steps % 9 == 0 {
                miht = Miht::load(
                    &StoredTables::of(&miht.tables()),
                    routes.hop_count(),
                    &Config::default(),
                )
                .unwrap();
            }
        }
    }
    assert!(table.is_empty() && miht.index.height == 1 && miht.index.find(0) == 0);
    let least = if m < 32 { 3 } else { 2 };
    assert!(k < 16 || highest >= least, "({k},{m}): {highest} levels");
}

#[test]
fn nodes_split_and_merge() {
    for (k, m) in SHAPES {
        grows_and_shrinks::<u32>(k, m);
        grows_and_shrinks::<u128>(k, m);
    }
}

/// The largest key is also the padding of nodes.
#[test]
fn the_largest_key() {
    for m in [3, 16, 32] {
        let all = routes::<u32>(&[("255.255.255.255/32", 1), ("255.255.255.254/32", 2)]);
        let mut miht = Miht::build(&all, &config(32, m)).unwrap();
        let answers = |miht: &Miht<u32>| [u32::MAX, u32::MAX - 1].map(|addr| miht.lookup(addr));
        assert_eq!(answers(&miht), [Hop::new(1), Hop::new(2)]);
        let one = routes::<u32>(&[("255.255.255.254/32", 2)]);
        assert_eq!(miht.follow(&one, &[Prefix::host(u32::MAX)]), Ok(Patched::Applied));
        assert_eq!(answers(&miht), [Hop::NONE, Hop::new(2)]);
        check(&miht, &one);
        assert_eq!(miht.follow(&all, &[Prefix::host(u32::MAX)]), Ok(Patched::Applied));
        assert_eq!(answers(&miht), [Hop::new(1), Hop::new(2)]);
        check(&miht, &all);
    }
}

#[test]
fn limits_and_wrong_parameters() {
    let build = |hop, config: Config| Miht::build(&routes::<u32>(&[("0.0.0.0/0", hop)]), &config);
    for (k, m) in [(0, 16), (33, 16), (16, 2), (16, 33)] {
        let error = build(0, config(k, m)).err().expect("out of range");
        assert!(matches!(error, BuildError::Config { engine: "miht", .. }), "{error}");
    }
    let largest = (1 << 24) - 1;
    let mut miht = build(largest, Config::default()).unwrap();
    assert_eq!(miht.lookup(7), Hop::new(largest));
    assert!(matches!(build(largest + 1, Config::default()), Err(BuildError::Limit { .. })));
    let beyond = routes(&[("0.0.0.0/0", largest + 1)]);
    assert!(matches!(miht.follow(&beyond, &[Prefix::ALL]), Err(BuildError::Limit { .. })));
}

/// The result of `load` for the tables with one word replaced.
fn blame(miht: &Miht<u32>, table: &'static str, word: usize, value: u32) -> String {
    let mut stored = StoredTables::of(&miht.tables());
    stored.edit(table, |bytes| bytes[4 * word..][..4].copy_from_slice(&value.to_ne_bytes()));
    match Miht::<u32>::load(&stored, 10, &Config::default()) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn damaged_tables_are_refused() {
    let hosts = (0..40u32).map(|i| (Prefix::masked(i << 20, 24).unwrap(), Hop::new(i % 10)));
    let more = [("0.0.128.0/17", 1), ("0.0.0.0/16", 2), ("0.0.0.0/3", 3)];
    let more = more.map(|(p, h)| (p.parse().unwrap(), Hop::new(h)));
    let all: Routes<u32> = hosts.chain(more).collect();
    let miht = Miht::build(&all, &config(16, 4)).unwrap();
    assert_eq!(miht.index.height, 3);
    let (i, d) = ("i_nodes", "d_nodes");
    let root = 16 * miht.index.root as usize;
    let words: &[u32] = miht.index.lines.as_flattened();
    let order = "table i_nodes: the keys of a node are out of order";
    let place = "table i_nodes: a node is out of place";
    assert_eq!(blame(&miht, i, root, words[root]), "accepted");
    assert_eq!(blame(&miht, i, root, words[root + 1]), order);
    assert_eq!(blame(&miht, i, root + 3, 0xffff), order, "a key too many");
    assert_eq!(blame(&miht, i, root + 16, words[root + 17]), order, "another's child");
    assert_eq!(blame(&miht, i, root + 16, 1), place, "within a node");
    assert_eq!(blame(&miht, i, root + 16, u32::MAX), place);
    assert_eq!(blame(&miht, i, root + 31, 2), "table i_nodes: a node has more pointers than keys");
    // The first node is the first external one.
    assert_eq!(blame(&miht, i, 1, 0), order);
    assert_eq!(blame(&miht, i, 2, 0x1_0000), order, "a key of more than k bits");
    let trie = 4 * words[16] as usize;
    let nodes: &[u32] = miht.tries.nodes.as_flattened();
    assert_eq!(nodes[trie..][..2], [0, 2 << 8 | 16]);
    for (word, value, reason) in [
        (1, 2 << 8 | 15, "a prefix is too long, or shorter than the way to it"),
        (1, 2 << 8 | 33, "a prefix is too long, or shorter than the way to it"),
        (0, 1, "a prefix is too long, or shorter than the way to it"),
        (0, 1 << 16, "a prefix lies on another's way"),
        (1, 10 << 8 | 16, "a hop is out of range"),
        (2, trie as u32 / 4, "a node is out of place"),
        (3, 1000, "a node is out of place"),
    ] {
        assert_eq!(blame(&miht, d, trie + word, value), format!("table {d}: {reason}"), "{word}");
    }
    for (word, value) in [(0, 0), (0, 33), (1, 2), (1, 33), (2, 0), (2, HEIGHT_MAX + 1)] {
        let reason = "table shape: k, m or the height is out of range";
        assert_eq!(blame(&miht, "shape", word, value), reason);
    }
    assert_eq!(blame(&miht, "shape", 3, 0x8000_0000), place);
    assert_eq!(blame(&miht, "shape", 4, 0x8000_0000), "table d_nodes: a node is out of place");
}
