use super::profile::{Profile, V4, V6};
use super::*;
use crate::TableShape;

/// Checksums of an IPv4 and an IPv6 table with near hops, and of the latter with hashed ones.
const EXPECTED: [u64; 3] = [0x83f9_7b13_5f9e_e2a3, 0xdba0_4fb4_e78a_f2e6, 0xf397_3f12_e425_e764];

const fn spec(year: u16, prefixes: usize, seed: u64) -> FibSpec {
    FibSpec { year, prefixes, seed, hops: HopModel::Near(64) }
}

/// A number for a whole table: FNV-1a over prefixes and hops.
fn checksum<A: Addr>(routes: &Routes<A>) -> u64 {
    let words = routes.iter().flat_map(|route| {
        let addr = route.prefix.addr().to_u128();
        let hop = route.hop.to_bits().into();
        [(addr >> 64) as u64, addr as u64, route.prefix.len().into(), hop]
    });
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
    })
}

/// At the size of the table that was counted, every length has its very number of prefixes, and of
/// more-specifics too.
fn repeats_the_profile<A: Addr>(profile: &Profile) {
    let routes = spec(profile.year, profile.prefixes(), 5).generate::<A>();
    let shape = TableShape::of(&routes);
    for &(len, count, more_specific) in profile.cells {
        let len = usize::from(len);
        assert_eq!(shape.lengths[len], count as usize, "{}, /{len}", profile.year);
        let off = shape.more_specific[len].abs_diff(more_specific as usize);
        assert!(off <= 2, "{}, /{len}: {shape:?}", profile.year);
    }
}

#[test]
fn repeats_every_ipv4_profile() {
    V4.iter().for_each(repeats_the_profile::<u32>);
}

#[test]
fn repeats_every_ipv6_profile() {
    V6.iter().for_each(repeats_the_profile::<u128>);
}

/// Every size gives exactly that many different prefixes, all of them in the space in use.
fn any_size<A: Addr>(years: &[Profile], sizes: &[usize]) {
    let blocks = space::blocks::<A>();
    for (i, &prefixes) in sizes.iter().enumerate() {
        for profile in years {
            let routes = spec(profile.year, prefixes, i as u64).generate::<A>();
            assert_eq!(routes.len(), prefixes, "{}", profile.year);
            let in_use = |prefix| blocks.iter().any(|block| block.prefix.covers(prefix));
            let all_in_use = routes.iter().all(|route| in_use(route.prefix));
            assert!(all_in_use, "{} {prefixes}", profile.year);
        }
    }
}

#[test]
fn any_ipv4_size() {
    any_size::<u32>(V4, &[0, 1, 2, 3, 5, 10, 30, 100, 999, 5_000, 30_000]);
}

#[test]
fn any_ipv6_size() {
    any_size::<u128>(V6, &[0, 1, 2, 3, 5, 10, 30, 100, 999, 5_000, 30_000]);
}

/// Scaled down, the shape stays: at 50,000 prefixes each length is right to one prefix, the
/// more-specifics to 1 %, and nesting and intervals resemble those counted in the real table of 2022.
#[test]
fn small_tables_keep_the_shape() {
    let routes = spec(2022, 50_000, 9).generate::<u32>();
    let shape = TableShape::of(&routes);
    let profile = Profile::of::<u32>(2022);
    for &(len, count, _) in profile.cells {
        let exact = f64::from(count) * 50_000.0 / profile.prefixes() as f64;
        let found = shape.lengths[usize::from(len)] as f64;
        assert!((found - exact).abs() <= 1.0, "/{len}: {found}, {exact}");
    }
    assert!((shape.more_specific_share() - profile.more_specific_share()).abs() < 0.01);
    assert!((1.05..1.5).contains(&(shape.intervals as f64 / 5e4)), "{shape:?}");
    assert!((0.6..1.0).contains(&shape.mean_depth()), "{shape:?}");
}

/// The full size: nesting, intervals and gaps against the counts of the real tables, 968,428 IPv4
/// prefixes (mean depth 0.78, 1.107 intervals and 0.068 gaps a prefix) and 177,846 IPv6 prefixes
/// (0.90, 1.37, 0.23).
#[test]
fn full_tables_resemble_the_real_ones() {
    let shape = TableShape::of(&spec(2022, 968_428, 1).generate::<u32>());
    let a_prefix = |count: usize| count as f64 / shape.prefixes as f64;
    assert!((0.70..0.86).contains(&shape.mean_depth()), "{shape:?}");
    assert!((1.05..1.20).contains(&a_prefix(shape.intervals)), "{shape:?}");
    assert!((0.04..0.09).contains(&a_prefix(shape.gaps)), "{shape:?}");
    let shape = TableShape::of(&spec(2022, 177_846, 1).generate::<u128>());
    let a_prefix = |count: usize| count as f64 / shape.prefixes as f64;
    assert!((0.75..1.0).contains(&shape.mean_depth()), "{shape:?}");
    assert!((1.3..1.55).contains(&a_prefix(shape.intervals)), "{shape:?}");
    assert!((0.18..0.28).contains(&a_prefix(shape.gaps)), "{shape:?}");
}

/// Where there is no room for the shape, the number of prefixes is still exact and the share of
/// more-specifics kept; only lengths give way.
#[test]
fn the_largest_ipv4_table() {
    let routes = spec(2024, FibSpec::limit(Family::V4), 1).generate::<u32>();
    assert_eq!(routes.len(), 10_000_000);
    let shape = TableShape::of(&routes);
    assert!((0.53..0.56).contains(&shape.more_specific_share()));
    assert!(shape.lengths[16] < 10_000 && shape.lengths[24] > 5_000_000);
}

#[test]
fn the_largest_ipv6_table() {
    let routes = spec(2024, FibSpec::limit(Family::V6), 1).generate::<u128>();
    assert_eq!(routes.len(), 4_000_000);
    let share = TableShape::of(&routes).more_specific_share();
    assert!((share - Profile::of::<u128>(2024).more_specific_share()).abs() < 0.01, "{share}");
}

/// Neighbours that share hops: about five times fewer intervals than with unrelated ones.
#[test]
fn near_hops_merge_five_times() {
    let near = spec(2024, 900_000, 1).generate::<u32>();
    let hash = synthetic_hops(&near, HopModel::Hash(256), 1);
    let (near, hash) = (near.ranges().count(), hash.ranges().count());
    let ratio = hash as f64 / near as f64;
    assert!((4.5..5.5).contains(&ratio), "{hash} / {near} = {ratio:.2}");
}

/// The same tables on every machine and after every change that means to keep them. A change that
/// alters them must say so: benchmark records of before are not comparable.
#[test]
fn the_same_tables_for_ever() {
    let v4 = spec(2024, 20_000, 1).generate::<u32>();
    let v6 = spec(2024, 20_000, 1).generate::<u128>();
    let hashed = synthetic_hops(&v6, HopModel::Hash(256), 1);
    let sums = [checksum(&v4), checksum(&v6), checksum(&hashed)];
    assert_eq!(sums, EXPECTED, "{sums:#018x?}");
    let other = spec(2024, 20_000, 2).generate::<u32>();
    assert_ne!(checksum(&other), sums[0]);
}

#[test]
fn names() {
    let spec: GenSpec = "gen:v4:2024:900000:1".parse().unwrap();
    assert_eq!(spec, GenSpec { family: Family::V4, year: 2024, prefixes: 900_000, seed: 1 });
    assert_eq!(spec.to_string().parse(), Ok(spec));
    assert_eq!("gen:v4:2024:900000".parse(), Ok(spec));
    for bad in [
        "",
        "gen:",
        "gen:v5:2024:1:1",
        "gen:v4:2024",
        "gen:v4:2024:1:1:1",
        "gen:v4:x:1:1",
        "v4:2024:1:1",
        "gen:v4:2024:10000001:1",
        "gen:v6:2024:4000001:1",
        "gen:v4:2024:-1:1",
    ] {
        assert!(bad.parse::<GenSpec>().is_err(), "{bad}");
    }
}
