use std::fmt;
use std::str::FromStr;

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

use crate::Rng;
use crate::zipf::Zipf;

/// How hops are given to the prefixes of a table that has none.
///
/// Schemes that merge neighbouring intervals or push leaves depend on how often neighbours share a
/// hop. The two models are the ends between which real tables lie: measured by how many times fewer
/// elementary intervals remain after merging than with unrelated hops, a route collector with 20 next
/// hops reaches 5.6, one with 3,771 next hops 2.3, and tables of origin ASes 2.0 to 2.6.
///
/// ```
/// use fibula_testkit::fib::HopModel;
/// assert_eq!("hash:256".parse(), Ok(HopModel::Hash(256)));
/// assert_eq!(HopModel::Near(64).to_string(), "near:64");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HopModel {
    /// `hash:256`: unrelated hops, a hash of the prefix modulo this number. A prefix keeps its hop
    /// when others are added and removed.
    Hash(u32),
    /// `near:64`: up to this many hops, shared by neighbours: most routes have the hop of the route
    /// that covers them or that precedes them; new ones are drawn by Zipf's law. On a generated IPv4
    /// table of 900,000 prefixes about five times fewer intervals remain than with unrelated hops.
    Near(u32),
}

impl fmt::Display for HopModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(n) => write!(f, "hash:{n}"),
            Self::Near(n) => write!(f, "near:{n}"),
        }
    }
}

/// A hop model was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopModelError(String);

impl fmt::Display for HopModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown hop model {:?}: hash:N or near:N, N from 1 to {MOST_HOPS}", self.0)
    }
}

impl std::error::Error for HopModelError {}

/// Hops that a model may have: a table of them must fit into memory.
const MOST_HOPS: u32 = 1 << 24;

impl FromStr for HopModel {
    type Err = HopModelError;

    fn from_str(text: &str) -> Result<Self, HopModelError> {
        let error = || HopModelError(text.to_owned());
        let (kind, n) = text.split_once(':').ok_or_else(error)?;
        let n = n.parse().ok().filter(|n| (1..=MOST_HOPS).contains(n)).ok_or_else(error)?;
        match kind {
            "hash" => Ok(Self::Hash(n)),
            "near" => Ok(Self::Near(n)),
            _ => Err(error()),
        }
    }
}

/// The same prefixes with hops by this model; equal arguments give equal tables.
///
/// ```
/// use fibula_testkit::fib::{HopModel, synthetic_hops};
/// let routes = fibula_testkit::tables::dense::<u32>(1, 500);
/// let hashed = synthetic_hops(&routes, HopModel::Hash(16), 1);
/// assert_eq!((hashed.len(), hashed.hop_count()), (500, 16));
/// ```
///
/// # Panics
/// If the model has no hops at all.
pub fn synthetic_hops<A: Addr>(routes: &Routes<A>, model: HopModel, seed: u64) -> Routes<A> {
    let prefixes: Vec<Prefix<A>> = routes.iter().map(|route| route.prefix).collect();
    assign(&prefixes, model, seed).into_iter().collect()
}

/// Hops for prefixes in ascending order.
pub(crate) fn assign<A: Addr>(prefixes: &[Prefix<A>], model: HopModel, seed: u64) -> Vec<Route<A>> {
    match model {
        HopModel::Hash(n) => {
            assert!(n > 0, "a hop model needs hops");
            prefixes.iter().map(|&prefix| Route { prefix, hop: hashed(prefix, n, seed) }).collect()
        }
        HopModel::Near(n) => near(prefixes, n, seed),
    }
}

fn hashed<A: Addr>(prefix: Prefix<A>, n: u32, seed: u64) -> Hop {
    let addr = prefix.addr().to_u128();
    let mut state = seed;
    for word in [addr as u64, (addr >> 64) as u64, prefix.len().into()] {
        state = Rng::new(state ^ word).next_u64();
    }
    Hop::new(Rng::new(state).below(n.into()) as u32)
}

/// How often a more-specific has the hop of the route that covers it, and how often otherwise that
/// of the one before it under the same cover.
const LIKE_PARENT: f64 = 0.82;
const LIKE_BROTHER: f64 = 0.80;
/// How often a root has the hop of the root before it.
const LIKE_NEIGHBOUR: f64 = 0.88;

fn near<A: Addr>(prefixes: &[Prefix<A>], n: u32, seed: u64) -> Vec<Route<A>> {
    assert!(n > 0, "a hop model needs hops");
    let mut rng = Rng::new(seed ^ 0x6e65_6172);
    let zipf = Zipf::new(n as usize);
    let draw = move |rng: &mut Rng| Hop::new(zipf.rank(rng) as u32);
    // The routes that cover the present one, each with the hop last given right below it.
    let mut open: Vec<(Route<A>, Hop)> = Vec::new();
    let mut last_root = draw(&mut rng);
    let mut routes = Vec::with_capacity(prefixes.len());
    for &prefix in prefixes {
        while open.last().is_some_and(|(cover, _)| !cover.prefix.covers(prefix)) {
            open.pop();
        }
        let hop = match open.last_mut() {
            None => {
                if !rng.chance(LIKE_NEIGHBOUR) {
                    last_root = draw(&mut rng);
                }
                last_root
            }
            Some((cover, brother)) => {
                if rng.chance(LIKE_PARENT) {
                    cover.hop
                } else {
                    if !rng.chance(LIKE_BROTHER) {
                        *brother = draw(&mut rng);
                    }
                    *brother
                }
            }
        };
        let route = Route { prefix, hop };
        routes.push(route);
        open.push((route, hop));
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    #[test]
    fn names() {
        for model in [HopModel::Hash(1), HopModel::Near(MOST_HOPS)] {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        for bad in ["", "hash", "hash:", "hash:0", "near:-1", "far:3", "near:16777217"] {
            assert!(bad.parse::<HopModel>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_hashed_hop_depends_on_its_prefix_alone() {
        let routes = tables::dense::<u128>(1, 400);
        let all = synthetic_hops(&routes, HopModel::Hash(100), 3);
        let half: Routes<u128> = routes.iter().step_by(2).collect();
        for route in synthetic_hops(&half, HopModel::Hash(100), 3).iter() {
            assert_eq!(all.get(route.prefix), Some(route.hop));
        }
        assert_ne!(all, synthetic_hops(&routes, HopModel::Hash(100), 4));
    }

    #[test]
    fn near_hops_stay_below_their_number() {
        let routes = tables::dense::<u32>(1, 3000);
        let near = synthetic_hops(&routes, HopModel::Near(5), 1);
        assert_eq!(near.hop_count(), 5);
        assert_eq!(synthetic_hops(&routes, HopModel::Near(1), 1).hop_count(), 1);
        assert_eq!(near, synthetic_hops(&routes, HopModel::Near(5), 1));
    }
}
