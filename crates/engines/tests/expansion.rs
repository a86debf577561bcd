//! DPCPE on real IPv6 tables, if they are there: Bloomfwd's table 4, printed, and its claims.

use fibula_core::{BuildError, Engine, Routes};
use fibula_engines::bloomfwd::dpcpe::Expansion;
use fibula_engines::bloomfwd::{Bloomfwd, Config, Levels};

mod shared;

/// Of up to 64 bits, as the paper's tables are.
fn networks(routes: &Routes<u128>) -> Routes<u128> {
    routes.iter().filter(|route| (1..=64).contains(&route.prefix.len())).collect()
}

#[test]
fn estimates_are_within_a_factor_of_two_and_three_levels_too_few() {
    for file in shared::files() {
        let routes = networks(&shared::read::<u128>(&file));
        if routes.len() < 1000 {
            continue;
        }
        println!("{}, {} prefixes", shared::name(&file), routes.len());
        for levels in 3..=8u8 {
            let expansion = Expansion::of(&routes, levels.into());
            let Expansion { lengths, estimated, actual } = &expansion;
            println!("CPE{levels} {lengths:?}: estimated {estimated}, actual {actual}");
            assert!(actual <= estimated && *estimated <= 2 * actual, "{expansion:?}");
            let config = Config { levels: Levels::Dpcpe(levels), ..Config::default() };
            match Bloomfwd::build(&routes, &config) {
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
        }
    }
}
