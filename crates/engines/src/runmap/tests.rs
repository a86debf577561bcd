use fibula_core::{Engine, Follow, Hop, Lookup, Patched, Prefix, Route, Routes};
use fibula_simd::Isa;
use fibula_testkit::check::check;
use fibula_testkit::{Oracle, Rng, conform, conforms, probes};

use super::record::{
    LONG_HEAD, LONG_MAP, ROOT_BYTES, escapes, long_place, read, root_word, value, values,
};
use super::space::Space;
use super::{Config, Form, Runmap, Tables, Width};

pub(super) const WIDTHS: [Width; 3] = [Width::Bits8, Width::Bits16, Width::Bits32];

/// Every width with all tables, whether or not it has a code for each hop, in each form.
fn forms() -> conform::Builders<u32> {
    let all = WIDTHS
        .into_iter()
        .flat_map(|width| Isa::available().into_iter().map(move |isa| (width, isa)));
    all.map(|(width, isa)| {
        let config = Config { width: Some(width), isa };
        (format!("{width:?} {isa}"), conform::builder::<u32, Runmap>(config))
    })
    .collect()
}

mod any_isa {
    use super::*;

    conforms!(widths, u32, forms());
}

#[test]
fn patches() {
    for width in WIDTHS {
        let config = Config { width: Some(width), ..Config::default() };
        conform::patches::<u32, Runmap>(&format!("{width:?}"), &config);
        conform::copies::<u32, Runmap>(&format!("{width:?}"), &config);
    }
}

fn p(text: &str) -> Prefix<u32> {
    text.parse().unwrap()
}

/// Checks single and batch lookups at both ends of every prefix and at their neighbours.
pub(super) fn assert_right(runmap: &Runmap, routes: &Routes<u32>, what: &str) {
    let mut probes = probes::boundary(routes);
    let report = check(runmap, &Oracle::new(routes), &mut probes, 5);
    assert!(report.is_ok(), "{what}: {report}");
}

/// Routes to this number of hops, with the last three on whole blocks, parts of one, a network that longer
/// routes divide, and hosts.
pub(super) fn up_to(hop_count: u32) -> Routes<u32> {
    let hop = |below: u32| Hop::new(hop_count - below);
    let routes = [
        ("10.0.0.0/8", Hop::new(0)),
        ("10.1.0.0/16", hop(1)),
        ("10.2.0.0/16", hop(2)),
        ("10.2.64.0/20", hop(1)),
        ("10.2.80.0/24", hop(2)),
        ("10.2.80.64/26", hop(1)),
        ("10.2.80.70/32", hop(3)),
        ("10.2.81.0/24", hop(3)),
        ("10.2.82.255/32", hop(1)),
        ("10.2.84.0/32", hop(2)),
    ];
    routes.into_iter().map(|(prefix, hop)| (p(prefix), hop)).collect()
}

/// Each width up to its last code, and the width chosen beyond it.
const COUNTS: [(u32, Width); 6] = [
    (190, Width::Bits8),
    (191, Width::Bits8),
    (192, Width::Bits16),
    (65_470, Width::Bits16),
    (65_471, Width::Bits16),
    (65_472, Width::Bits32),
];

#[test]
fn the_narrowest_width_with_a_code_for_each_hop() {
    for (hop_count, width) in COUNTS {
        let routes = up_to(hop_count);
        assert_eq!(routes.hop_count(), hop_count);
        let runmap = Runmap::build(&routes, &Config::default()).unwrap();
        assert_eq!(runmap.width(), width, "{hop_count} hops");
        assert_right(&runmap, &routes, &format!("{hop_count} hops"));
    }
}

/// A patch keeps the width up to its last code. With one hop more it requests a build, whose answers
/// must be right, too.
#[test]
fn a_patch_that_needs_a_wider_code_asks_for_a_build() {
    for (hop_count, width) in [(190, Width::Bits8), (65_470, Width::Bits16)] {
        let mut routes = up_to(hop_count);
        let mut runmap = Runmap::build(&routes, &Config::default()).unwrap();
        for (more, at) in ["10.2.83.0/24", "10.2.80.80/28"].into_iter().enumerate() {
            let change = Route { prefix: p(at), hop: Hop::new(hop_count + more as u32) };
            routes.apply(&[change]);
            let patched = runmap.follow(&routes, &[change.prefix]).unwrap();
            if more == 0 {
                assert_eq!((patched, runmap.width()), (Patched::Applied, width));
            } else {
                assert_eq!(patched, Patched::Rebuild, "{} hops", routes.hop_count());
                runmap = Runmap::build(&routes, &Config::default()).unwrap();
                assert!(runmap.width() > width);
            }
            assert_right(&runmap, &routes, &format!("{} hops", routes.hop_count()));
        }
    }
}

/// A width that is forced on a table has no code for some hops: by build and by patch, and in 32 bits, where
/// only the largest hop of all has none.
#[test]
fn hops_without_a_code() {
    const ALL: u32 = Hop::MAX_INDEX;
    for (width, hop_counts) in [
        (Width::Bits8, [192, 193, 194, 256, 70_000]),
        (Width::Bits16, [65_472, 65_473, 65_474, 65_536, 70_000]),
        (Width::Bits32, [ALL - 64, ALL - 63, ALL - 62, ALL, u32::MAX]),
    ] {
        for (hop_count, isa) in hop_counts
            .into_iter()
            .flat_map(|count| Isa::available().into_iter().map(move |i| (count, i)))
        {
            let what = format!("{width:?} of {hop_count} hops, {isa}");
            let config = Config { width: Some(width), isa };
            let mut routes = up_to(hop_count);
            let mut runmap = Runmap::build(&routes, &config).unwrap();
            assert_eq!(runmap.width(), width);
            assert_right(&runmap, &routes, &what);
            // Whole blocks, and networks of one.
            for at in ["10.3.0.0/17", "10.2.90.0/23"] {
                let change = Route { prefix: p(at), hop: Hop::new(hop_count - 1) };
                routes.apply(&[change]);
                let patched = runmap.follow(&routes, &[change.prefix]).unwrap();
                let is_wide_enough = width == Width::Bits32;
                assert_eq!(patched == Patched::Applied, is_wide_enough, "{what}");
                if patched == Patched::Rebuild {
                    runmap = Runmap::build(&routes, &config).unwrap();
                }
                assert_right(&runmap, &routes, &what);
            }
        }
    }
}

/// Blocks of which every network is a run.
const FULL_BLOCKS: u32 = 1000;

/// Network `network` of full block `block`.
fn network(block: u32, network: u32) -> Prefix<u32> {
    Prefix::new((0x0a00_0000 | block << 14) + (network << 8), 24).unwrap()
}

/// A record takes the place of the old one if it is no longer, unless another block has the old one, too.
#[test]
fn records_take_the_places_of_old_ones() {
    // Blocks 0 and 1 have equal records, block 2 has its own. All have two runs.
    let mut routes: Routes<u32> = [(0, 1), (1, 1), (2, 2)]
        .map(|(block, hop)| (network(block, 5), Hop::new(hop)))
        .into_iter()
        .collect();
    let mut runmap = Runmap::build(&routes, &Config::default()).unwrap();
    let word = |runmap: &Runmap, block: u32| match &runmap.form {
        Form::Bits8(tables) => (tables.root()[(0x0a00_0000 >> 14) + block as usize], tables.used),
        _ => panic!("these hops have codes of 8 bits"),
    };
    let mut change = |runmap: &mut Runmap, block, at, hop| {
        let prefix = network(block, at);
        routes.apply(&[Route { prefix, hop }]);
        let before = (0..3).map(|block| word(runmap, block)).collect::<Vec<_>>();
        assert_eq!(runmap.follow(&routes, &[prefix]).unwrap(), Patched::Applied);
        assert_right(runmap, &routes, &format!("block {block}"));
        let after = (0..3).map(|block| word(runmap, block)).collect::<Vec<_>>();
        (before[block as usize].0 == after[block as usize].0, before[0].1 == after[0].1)
    };
    assert_eq!(word(&runmap, 0).0, word(&runmap, 1).0);
    let in_place = (true, true);
    let appended = (false, false);
    assert_eq!(change(&mut runmap, 2, 5, Hop::new(3)), in_place);
    assert_eq!(change(&mut runmap, 0, 5, Hop::new(3)), appended, "block 1 has the old one");
    assert_eq!(change(&mut runmap, 0, 5, Hop::new(4)), in_place, "its own now");
    assert_eq!(change(&mut runmap, 1, 5, Hop::new(4)), appended, "not known to be its own");
    assert_eq!(change(&mut runmap, 1, 6, Hop::new(5)), appended, "longer");
    assert_eq!(change(&mut runmap, 1, 6, Hop::NONE), in_place, "shorter");
    let mut copy = runmap.clone();
    assert_eq!(change(&mut copy, 2, 5, Hop::new(1)), in_place);
    assert_ne!(
        copy.lookup(network(2, 5).addr()),
        runmap.lookup(network(2, 5).addr()),
        "shared with a copy"
    );
    // One run, which all blocks without routes have.
    assert!(!change(&mut copy, 2, 5, Hop::NONE).0);
    assert!(!change(&mut copy, 2, 5, Hop::new(1)).0);
    assert_eq!(change(&mut copy, 2, 5, Hop::new(2)), in_place);
}

/// Patches append records that are longer until the records have grown by half. Then those in use are copied, without
/// the garbage.
#[test]
fn records_in_use_move_when_patches_have_filled_the_room() {
    let mut rng = Rng::new(4);
    // Neighbours differ, and so do blocks.
    let mut hop = |at: u32, from: u32| Hop::new(from + at % 2 * 20 + rng.below(20) as u32);
    let each = (0..FULL_BLOCKS).flat_map(|block| (0..64).map(move |at| (block, at)));
    let mut routes: Routes<u32> =
        each.map(|(block, at)| (network(block, at), hop(at, 0))).collect();
    let mut runmap = Runmap::build(&routes, &Config::default()).unwrap();
    let used = |runmap: &Runmap| match &runmap.form {
        Form::Bits8(Tables { used, built, .. }) => (*used, *built),
        _ => panic!("these hops have codes of 8 bits"),
    };
    // Each of these records is longer than a line, and shorter than two.
    let written = 2 * 64 * FULL_BLOCKS as usize;
    let (mut moved, mut copied) = (0, 0);
    for patch in 0..40 {
        let at = patch % 64;
        // Some networks are divided, so that block records refer to network records.
        let change = |block: u32| match block % 10 {
            0 => Route { prefix: Prefix::host(network(block, at).addr()), hop: hop(at, 60) },
            _ => Route { prefix: network(block, at), hop: hop(at, 100) },
        };
        let changes: Vec<Route<u32>> = (0..FULL_BLOCKS).map(change).collect();
        let changed: Vec<_> = changes.iter().map(|change| change.prefix).collect();
        routes.apply(&changes);
        let (before, built) = used(&runmap);
        assert_eq!(runmap.follow(&routes, &changed).unwrap(), Patched::Applied);
        let after = used(&runmap);
        if after.0 < before {
            moved += 1;
            assert!(before + 2 * written > built * 3 / 2, "moved too early: {before} of {built}");
            let anew = used(&Runmap::build(&routes, &Config::default()).unwrap()).0;
            assert!(after.0 <= anew + anew / 50, "garbage is left: {} of {anew}", after.0);
        }
        assert!(after.0 <= after.1 * 3 / 2, "{after:?}");
        if after.0 > after.1 / 8 * 11 {
            let mut copy = runmap.clone();
            match &mut copy.form {
                Form::Bits8(tables) => tables.own(),
                _ => panic!("these hops have codes of 8 bits"),
            }
            assert!(used(&copy).0 < after.0, "a copy has no garbage");
            assert_right(&copy, &routes, &format!("copy after patch {patch}"));
            copied += 1;
        }
        assert_right(&runmap, &routes, &format!("patch {patch}"));
    }
    assert!(moved >= 3 && copied >= 3, "{moved}, {copied}");
}

/// The module's drawing: four routes, three records in one line.
#[test]
fn the_worked_example() {
    let [a, b, c, d] = [0, 1, 2, 3].map(Hop::new);
    let routes: Routes<u32> =
        [("0.0.0.0/0", a), ("1.2.0.0/16", b), ("1.2.64.0/20", c), ("1.2.80.0/24", d)]
            .into_iter()
            .map(|(prefix, hop)| (p(prefix), hop))
            .collect();
    let config = Config { width: Some(Width::Bits16), ..Config::default() };
    let runmap = Runmap::build(&routes, &config).unwrap();
    let Form::Bits16(Tables { records, .. }) = &runmap.form else {
        panic!("16 bits were asked for")
    };
    let bytes = &records[..];
    assert_eq!(bytes.len(), ROOT_BYTES + 64);
    let record = |network: &str| {
        let at = root_word(bytes, p(network).addr());
        let map: u64 = read(bytes, at);
        let codes = (0..map.count_ones() as usize).map(|run| value::<u16>(bytes, at, run));
        (at, map, codes.collect::<Vec<u32>>())
    };
    // Codes are one more than hops.
    let (a, b, c, d) = (1, 2, 3, 4);
    let all_of_a = record("0.0.0.0/24");
    assert_eq!(all_of_a, (ROOT_BYTES, 1 << 63, vec![a]));
    for network in ["1.1.192.0/24", "1.3.0.0/24", "255.255.192.0/24"] {
        assert_eq!(record(network), all_of_a, "{network}");
    }
    let all_of_b = record("1.2.0.0/24");
    assert_eq!(all_of_b, (ROOT_BYTES + 10, 1 << 63, vec![b]));
    for network in ["1.2.128.0/24", "1.2.192.0/24"] {
        assert_eq!(record(network), all_of_b, "{network}");
    }
    let map = 1 << 63 | 1 << 16 | 1 << 15;
    assert_eq!(record("1.2.64.0/24"), (ROOT_BYTES + 20, map, vec![b, d, c]));
    // 1.2.80.9, as drawn.
    assert_eq!((map >> (80 - 64)).count_ones(), 2);
}

/// A network that a longer route divides: an escape, and the place of its record.
#[test]
fn a_divided_network_has_a_record_of_its_own() {
    let routes: Routes<u32> = [
        (p("1.2.0.0/16"), Hop::new(0)),
        (p("1.2.80.128/25"), Hop::new(6)),
        (p("1.2.90.0/32"), Hop::new(7)),
    ]
    .into_iter()
    .collect();
    let runmap = Runmap::build(&routes, &Config::default()).unwrap();
    let Form::Bits8(Tables { records, .. }) = &runmap.form else { panic!("8 hops have 8 bits") };
    let bytes = &records[..];
    let at = root_word(bytes, p("1.2.80.0/24").addr());
    let map = [15, 16, 25, 26, 63].into_iter().fold(0u64, |map, end| map | 1 << end);
    assert_eq!(read::<u64>(bytes, at), map);
    // Networks 27 to 63, 26, 17 to 25, 16, and 0 to 15: the first escape, then the second.
    assert_eq!(&bytes[values(at)..][..5], [1, 192, 1, 193, 1]);
    assert_eq!(escapes::<u8>(bytes, at), 2);
    // In front of the bitmap, the places, the first escape's nearest.
    let places = [192, 193].map(|code| long_place::<u8>(bytes, at, code));
    for (i, place) in places.into_iter().enumerate() {
        assert_eq!(read::<u32>(bytes, at - 4 - 4 * i) as usize, place);
    }
    let long = |place: usize| {
        let map: [u64; 4] = read(bytes, place);
        let behind: [u8; 4] = read(bytes, place + LONG_MAP);
        (map, behind, [0, 1].map(|run| read::<u32>(bytes, place + LONG_HEAD + 4 * run)))
    };
    assert_eq!(long(places[0]), ([1, 0, 0, 1 << 63], [1, 1, 1, 0], [1, 8]), "1.2.90");
    assert_eq!(long(places[1]), ([0, 1 << 63, 0, 1 << 63], [2, 1, 1, 0], [7, 1]), "1.2.80");
}

/// Where most values are escapes, every lookup takes the step to a network's record: with and without an escape, in
/// batches of any length, in each form, in 16 bits, too.
#[test]
fn tables_of_long_routes_expect_escapes() {
    for hops in [100, 200, 70_000] {
        let at = |i: u32| i << 14 | i.wrapping_mul(0x9e37_79b9) & 0x3ff0;
        let long =
            (0..1 << 18).step_by(13).map(|i| (Prefix::new(at(i), 28).unwrap(), Hop::new(i % hops)));
        let short = (0..200).map(|i| (Prefix::new(i << 24, 8).unwrap(), Hop::new(i % hops)));
        let routes: Routes<u32> = long.chain(short).collect();
        for isa in Isa::available() {
            let runmap = Runmap::build(&routes, &Config { width: None, isa }).unwrap();
            assert!(match &runmap.form {
                Form::Bits8(tables) => tables.mostly_long,
                Form::Bits16(tables) => tables.mostly_long,
                Form::Bits32(tables) => tables.mostly_long,
            });
            assert_right(&runmap, &routes, &format!("{hops} hops, {isa}"));
            let addrs: Vec<u32> = probes::boundary(&routes).take(10_000).collect();
            for len in [1, 63, 64, 65, 127, 128, 1000, addrs.len()] {
                let mut hops = vec![0; len];
                runmap.lookup_batch16(&addrs[..len], &mut hops);
                let right =
                    |(&hop, &addr): (&u16, &u32)| hop == runmap.lookup(addr).to_bits() as u16;
                assert!(hops.iter().zip(&addrs).all(right), "{len} {isa}");
            }
        }
    }
}

/// Records of all lengths: each is stored unchanged, without overlap, aligned, and in one line if it fits
/// into one.
#[test]
fn records_in_lines() {
    const BASE: usize = ROOT_BYTES;
    let mut rng = Rng::new(8);
    let mut space = Space::new(BASE);
    let mut put: Vec<(usize, Vec<u8>)> = Vec::new();
    for i in 0..4000u32 {
        let align = if rng.chance(0.2) { 4 } else { 1 };
        let lengths = if rng.chance(0.9) { 56 } else { 500 };
        let len = 9 + rng.below(lengths) as usize;
        let mut record: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        record[..4].copy_from_slice(&i.to_le_bytes()); // no two are equal
        let place = space.put(&record, align) as usize;
        assert!(place.is_multiple_of(align));
        assert!(len > 64 || place / 64 == (place + len - 1) / 64, "{len} bytes at {place}");
        // An equal record has the same place and takes no room.
        assert_eq!(space.put(&record, align) as usize, place);
        put.push((place, record));
    }
    let bytes = space.finish().unwrap();
    put.sort();
    assert!(put.windows(2).all(|two| two[0].0 + two[0].1.len() <= two[1].0), "they overlap");
    for (place, record) in &put {
        assert_eq!(bytes[place - BASE..][..record.len()], record[..]);
    }
    // Shorter records fill the gaps that longer ones leave; otherwise a third of the space would be lost.
    let used: usize = put.iter().map(|(_, record)| record.len()).sum();
    assert!(
        bytes.len().is_multiple_of(64) && bytes.len() * 9 < used * 10,
        "{used} {}",
        bytes.len()
    );
}

/// Places have 32 bits. A record beyond them is reported, even if smaller ones are stored afterwards.
#[test]
fn places_beyond_32_bits_are_reported() {
    // Room for three lines, but not for a fourth, which would contain the last place.
    const BASE: usize = 0xffff_ff00;
    let record = |i: u8, len: usize| vec![i; len];
    let mut space = Space::new(BASE);
    for i in 0..3 {
        assert_eq!(space.put(&record(i, 64), 1), 0xffff_ff00 + 64 * u32::from(i));
    }
    assert_eq!(space.finish().map(|bytes| bytes.len()), Ok(192));

    let mut space = Space::new(BASE);
    for i in 0..4 {
        space.put(&record(i, 64), 1);
    }
    assert_eq!(space.finish(), Err(1 << 32));

    // The long record is missing, so the table is incomplete, although the short ones would fit.
    let mut space = Space::new(BASE);
    space.put(&record(0, 40), 1);
    space.put(&record(1, 300), 1);
    space.put(&record(2, 64), 1);
    space.put(&record(3, 20), 1);
    assert!(space.finish().is_err_and(|needed| needed > 1 << 32));
}
