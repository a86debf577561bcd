//! Tables of any size in the shape of the Internet's.
//!
//! [`FibSpec`] describes a table, [`FibSpec::generate`] makes it: the prefix lengths and the share of more-specifics at
//! each length are those of a real table of the year (the counts are carried in the crate, no table is), the prefixes
//! cluster and nest as real ones do, and hops are given by a [`HopModel`]. Equal specifications give equal tables on
//! every machine.
//!
//! Tables without a default route, as they are exchanged between networks.

use std::fmt;
use std::str::FromStr;

use fibula_core::{Addr, Family, Routes};

pub use crate::hops::{HopModel, HopModelError, synthetic_hops};

mod place;
mod plan;
mod profile;
mod space;

/// The description of a table; the family is the type parameter of [`FibSpec::generate`].
///
/// ```
/// use fibula_testkit::TableShape;
/// use fibula_testkit::fib::{FibSpec, HopModel};
///
/// let spec = FibSpec { year: 2024, prefixes: 10_000, seed: 1, hops: HopModel::Near(64) };
/// let routes = spec.generate::<u32>();
/// let shape = TableShape::of(&routes);
/// assert_eq!(shape.prefixes, 10_000);
/// assert!((0.50..0.60).contains(&shape.more_specific_share()));
/// assert!(shape.lengths[24] > 5_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibSpec {
    /// The year whose shape the table has. Counts are there for 2002, 2008, 2010, 2014, 2015, 2022
    /// and 2024 (IPv4), 2014, 2015, 2019, 2021, 2022 and 2024 (IPv6); another year stands for the
    /// closest of these.
    pub year: u16,
    /// Number of prefixes, at most [`FibSpec::limit`]. The shape is scaled to it; where IPv4 has no
    /// room for it (beyond about a million), short prefixes give way to longer ones.
    pub prefixes: usize,
    /// Another seed gives another table of the same shape.
    pub seed: u64,
    /// How the hops are given.
    pub hops: HopModel,
}

impl FibSpec {
    /// The most prefixes that a table can have: 10 million in IPv4, 4 million in IPv6.
    pub const fn limit(family: Family) -> usize {
        match family {
            Family::V4 => 10_000_000,
            Family::V6 => 4_000_000,
        }
    }

    /// Makes the table.
    ///
    /// # Panics
    /// If it would have more than [`FibSpec::limit`] prefixes.
    pub fn generate<A: Addr>(&self) -> Routes<A> {
        let limit = Self::limit(A::FAMILY);
        assert!(self.prefixes <= limit, "generated tables have at most {limit} prefixes");
        let profile = profile::Profile::of::<A>(self.year);
        let blocks = space::blocks::<A>();
        let cells = plan::plan(profile, &blocks, self.prefixes as u32);
        let prefixes = place::place(&cells, &blocks, self.seed);
        Routes::from_unsorted(crate::hops::assign(&prefixes, self.hops, self.seed))
    }
}

impl fmt::Display for FibSpec {
    /// `2024:900000:1 near:64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{} {}", self.year, self.prefixes, self.seed, self.hops)
    }
}

/// A table to generate as the command line names it: `gen:v4:2024:900000:1`, that is family, year,
/// prefixes and seed. The seed may be left out and is then 1; hops are chosen elsewhere.
///
/// ```
/// use fibula_testkit::fib::{GenSpec, HopModel};
/// let spec: GenSpec = "gen:v6:2024:1000:7".parse()?;
/// let routes = spec.with_hops(HopModel::Hash(16)).generate::<u128>();
/// assert_eq!(routes.len(), 1000);
/// # Ok::<(), fibula_testkit::fib::GenSpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenSpec {
    /// The family.
    pub family: Family,
    /// The year, see [`FibSpec::year`].
    pub year: u16,
    /// The number of prefixes.
    pub prefixes: usize,
    /// The seed.
    pub seed: u64,
}

impl GenSpec {
    /// The whole specification, to be generated for the family [`GenSpec::family`].
    pub fn with_hops(self, hops: HopModel) -> FibSpec {
        FibSpec { year: self.year, prefixes: self.prefixes, seed: self.seed, hops }
    }
}

impl fmt::Display for GenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gen:{}:{}:{}:{}", self.family, self.year, self.prefixes, self.seed)
    }
}

/// The name of a generated table was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenSpecError(String);

impl fmt::Display for GenSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no generated table: gen:FAMILY:YEAR:PREFIXES[:SEED] as in gen:v4:2024:900000:1, \
             with up to {} (v4) or {} (v6) prefixes",
            self.0,
            FibSpec::limit(Family::V4),
            FibSpec::limit(Family::V6)
        )
    }
}

impl std::error::Error for GenSpecError {}

impl FromStr for GenSpec {
    type Err = GenSpecError;

    fn from_str(text: &str) -> Result<Self, GenSpecError> {
        let parse = || -> Option<Self> {
            let mut fields = text.strip_prefix("gen:")?.split(':');
            let family = match fields.next()? {
                "v4" => Family::V4,
                "v6" => Family::V6,
                _ => return None,
            };
            let year = fields.next()?.parse().ok()?;
            let prefixes = fields.next()?.parse().ok().filter(|n| *n <= FibSpec::limit(family))?;
            let seed = fields.next().map_or(Ok(1), str::parse).ok()?;
            fields.next().is_none().then_some(Self { family, year, prefixes, seed })
        };
        parse().ok_or_else(|| GenSpecError(text.to_owned()))
    }
}

#[cfg(test)]
mod any_isa;
