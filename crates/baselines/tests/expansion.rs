//! DPCPE on real IPv6 tables: Bloomfwd's table 4, printed, and its claims.

use crate::real;
use fibula_baselines::bloomfwd::dpcpe::Expansion;
use fibula_baselines::bloomfwd::{Bloomfwd, Config, Levels};
use fibula_core::{BuildError, Engine, Routes};

/// Of up to 64 bits, as the paper's tables are.
fn networks(routes: &Routes<u128>) -> Routes<u128> {
    routes.iter().filter(|route| (1..=64).contains(&route.prefix.len())).collect()
}

/// The expansions with 3 to 8 levels. The estimate is within a factor of two, the engine has what was
/// chosen, and three levels are too few for it.
fn expansions(routes: &Routes<u128>) -> Vec<Expansion> {
    (3..=8u8)
        .map(|levels| {
            let expansion = Expansion::of(routes, levels.into());
            let Expansion { lengths, estimated, actual } = &expansion;
            println!("CPE{levels} {lengths:?}: estimated {estimated}, actual {actual}");
            let fewest = Expansion::fewest(routes, levels.into());
            println!("     {:?}: the fewest, {}", fewest.lengths, fewest.actual);
            assert!(
                fewest.actual <= *actual && fewest.lengths.len() <= levels.into(),
                "{fewest:?}"
            );
            assert!(actual <= estimated && *estimated <= 2 * actual, "{expansion:?}");
            let config = Config { levels: Levels::Fewest(levels), ..Config::default() };
            match Bloomfwd::build(routes, &config) {
                Ok(engine) => {
                    assert_eq!(engine.lengths(), fewest.lengths);
                    assert_eq!(engine.keys().iter().sum::<usize>() as u64, fewest.actual);
                }
                Err(error) => {
                    println!("     {error}");
                    assert!(levels == 3, "{levels} levels do not fit: {fewest:?}");
                }
            }
            let config = Config { levels: Levels::Dpcpe(levels), ..Config::default() };
            match Bloomfwd::build(routes, &config) {
                Ok(engine) => {
                    assert_eq!(engine.lengths(), *lengths);
                    assert_eq!(engine.keys().iter().sum::<usize>() as u64, *actual);
                    assert!(levels > 3, "three levels fit: {expansion:?}");
                }
                Err(BuildError::Limit { needed, limit, .. }) => {
                    assert!(needed > limit);
                    assert!(levels <= 4, "{levels} levels do not fit: {expansion:?}");
                }
                Err(error) => panic!("{error}"),
            }
            expansion
        })
        .collect()
}

/// The lengths and numbers are those of a calculation apart, which merges intervals.
fn is_known(expansions: &[Expansion], known: [(&[u8], u64, u64); 6]) {
    for (expansion, (lengths, estimated, actual)) in expansions.iter().zip(known) {
        assert_eq!(expansion, &Expansion { lengths: lengths.into(), estimated, actual });
    }
}

#[test]
fn estimates_for_a_routing_table() {
    let routes = networks(&real::cut("pyasn-rib6"));
    assert_eq!(routes.len(), 6572);
    is_known(
        &expansions(&routes),
        [
            (&[42, 50, 64], 97_195_840, 96_216_025),
            (&[32, 42, 50, 64], 326_947, 323_250),
            (&[32, 42, 50, 56, 64], 173_692, 170_760),
            (&[24, 32, 42, 50, 56, 64], 81_382, 79_236),
            (&[24, 32, 36, 42, 50, 56, 64], 35_014, 34_653),
            (&[24, 32, 36, 42, 48, 50, 56, 64], 13_534, 13_288),
        ],
    );
}

/// Prefixes of which none lies in another: the estimates are exact.
#[test]
fn estimates_for_prefixes_that_do_not_nest() {
    let routes = networks(&real::cut("ipranges"));
    assert_eq!(routes.len(), 14_285);
    is_known(
        &expansions(&routes),
        [
            (&[42, 54, 64], 68_119_965, 68_119_965),
            (&[30, 42, 54, 64], 675_315, 675_315),
            (&[30, 42, 54, 60, 64], 357_615, 357_615),
            (&[30, 42, 48, 54, 60, 64], 130_500, 130_500),
            (&[30, 36, 42, 48, 54, 60, 64], 70_398, 70_398),
            (&[16, 30, 36, 42, 48, 54, 60, 64], 54_015, 54_015),
        ],
    );
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn estimates_for_the_archives() {
    let mut seen = 0;
    for file in real::archives() {
        let routes = networks(&real::read::<u128>(&file));
        if routes.len() >= 1000 {
            println!("{}, {} prefixes", real::name(&file), routes.len());
            assert_eq!(expansions(&routes).len(), 6);
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen} tables");
}
