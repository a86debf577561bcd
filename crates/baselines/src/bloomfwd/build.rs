use std::marker::PhantomData;

use fibula_core::{BuildError, Prefix, Route, Routes};
use fibula_filter::Parameters;
use fibula_simd::Table;

use super::bucket::{Address, Code, EMPTY, Keyed, Line, Slot, code_of, slots};
use super::cost::Model;
use super::dpcpe::{self, Expansion};
use super::lookup::key;
use super::tables::{Change, Level, Tables, Writer};
use super::{Config, Levels, NAME, Sizes};

/// Of the slots of a level so many in hundred have a key when it is built. Fuller ones have more
/// marked buckets, which cost a second line: 4 % of ten slots at 60.
pub(super) const FILL: usize = 60;

/// The minimum room of a level, so that a few more routes need no build.
const KEYS_MIN: usize = 32;

/// So many pass the gate by chance, at most: they are looked up one by one.
const GATE_RATE: f64 = 0.01;

/// The most prefixes after expansion for one before, where the lengths are chosen automatically.
const EXPANSION_MAX: u64 = 4;

/// So many after expansion are never too many for that.
const EXPANSION_FREE: u64 = 1 << 16;

/// The levels that the automatic choice begins with: the paper's best for IPv6.
const LEVELS: usize = 5;

pub(super) fn build<A: Address, C: Code>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<Tables<A, C>, BuildError> {
    let (direct_bits, lengths) = lengths(routes, config)?;
    let hashes = config.hashes::<A>();
    let mut plan = Plan { config, words: 0, buckets: 0 };
    let counts = dpcpe::counts(routes, direct_bits, &lengths);
    let most = counts.iter().copied().max().unwrap_or(0);
    let levels = lengths.iter().zip(&counts).rev();
    let levels = levels
        .map(|(&len, &keys)| {
            let filter = if config.sizes == Sizes::Equal { most } else { keys };
            plan.level::<A::Key, C>(len, keys, filter)
        })
        .collect::<Result<_, _>>()?;
    let (long, gate) = plan.long::<A, C>(routes)?;
    plan.limit::<C>(direct_bits)?;

    let mut tables = Tables {
        hashes,
        direct_bits,
        direct: Table::with(1 << direct_bits, |to: &mut [C]| {
            paint(routes.as_slice(), direct_bits, Prefix::ALL, to);
        }),
        levels,
        long,
        gate,
        filters: Table::with(plan.words, |_| {}),
        buckets: Table::with(plan.buckets, |to: &mut [Line]| to.fill(EMPTY)),
        shape: Table::default(),
        counters: None,
        family: PhantomData,
    };
    let Tables { levels, long, gate, filters, buckets, .. } = &mut tables;
    let mut writer =
        Writer { hashes, filters: filters.to_mut(), buckets: buckets.to_mut(), counters: None };
    fill::<A, C>(routes, direct_bits, levels, &mut writer);
    fill_long::<A, C>(routes, long, gate.as_ref(), &mut writer);
    tables.shape = tables.describe();
    Ok(tables)
}

/// The first bits of the direct lookup array, and the lengths of the levels, ascending.
fn lengths<A: Address>(routes: &Routes<A>, config: &Config) -> Result<(u8, Vec<u8>), BuildError> {
    let top = <A as Keyed>::TOP;
    Ok(match &config.levels {
        Levels::Auto if A::BITS == 32 => (20, vec![24, 32]),
        Levels::Auto => {
            let histogram = dpcpe::histogram(routes);
            let free = EXPANSION_FREE.max(EXPANSION_MAX * routes.len() as u64);
            let choices = (LEVELS..=top.into()).map(|n| dpcpe::greedy(&histogram, 0, top, n));
            let mut fitting = choices
                .skip_while(|lengths| Expansion::at(routes, 0, lengths.clone()).actual > free);
            (0, fitting.next().unwrap_or_else(|| (1..=top).collect()))
        }
        Levels::Dpcpe(n) => (0, dpcpe::greedy(&dpcpe::histogram(routes), 0, top, usize::from(*n))),
        Levels::Fewest(n) => (0, dpcpe::optimal(routes, 0, top, usize::from(*n))),
        Levels::Cheapest => (0, Model::new(routes, config).cheapest()),
        Levels::Every => (0, (1..=top).collect()),
        Levels::At { direct, lengths } => {
            let ascend = lengths.is_sorted_by(|a, b| a < b);
            if !ascend || *direct > 24 || lengths.last() != Some(&top) || lengths[0] <= *direct {
                return Err(BuildError::Config {
                    engine: NAME,
                    reason: format!(
                        "lengths must ascend from above the direct bits, 24 at most, to {top}"
                    )
                    .into(),
                });
            }
            (*direct, lengths.clone())
        }
    })
}

/// Where levels come to lie, and how large all of them are.
struct Plan<'a> {
    config: &'a Config,
    words: usize,
    buckets: usize,
}

impl Plan<'_> {
    /// A level of so many keys, with a filter made for so many.
    fn level<K: Slot, C: Code>(
        &mut self,
        len: u8,
        keys: u64,
        filter: u64,
    ) -> Result<Level, BuildError> {
        let room = usize::try_from(keys).unwrap_or(usize::MAX).max(KEYS_MIN);
        let buckets = room.saturating_mul(100).div_ceil(slots::<K, C>() * FILL);
        if u32::try_from(buckets).is_err() {
            return Err(self.too_much(buckets as u64));
        }
        let rate = self.config.false_positives;
        let mut level = self.filter(len, filter.max(KEYS_MIN as u64) as usize, rate);
        level.buckets = self.buckets..self.buckets + buckets;
        self.buckets += buckets;
        Ok(level)
    }

    fn filter(&mut self, len: u8, keys: usize, rate: f64) -> Level {
        let shape = match self.config.positions {
            Some(positions) => Parameters::for_positions(keys, rate, positions),
            None => Parameters::for_rate(keys, rate),
        };
        let words = self.words..self.words + shape.words();
        self.words = words.end;
        Level { len, shape, words, buckets: 0..0, keys: 0 }
    }

    /// The levels of routes that are longer than keys, longest first, and their gate.
    fn long<A: Address, C: Code>(
        &mut self,
        routes: &Routes<A>,
    ) -> Result<(Vec<Level>, Option<Level>), BuildError> {
        let histogram = dpcpe::histogram(routes);
        let top = usize::from(<A as Keyed>::TOP);
        let lengths = (top + 1..=A::BITS.into()).rev().filter(|len| histogram[*len] > 0);
        let levels: Vec<_> = lengths
            .map(|len| self.level::<u128, C>(len as u8, histogram[len], histogram[len]))
            .collect::<Result<_, _>>()?;
        let keys: u64 = histogram[top + 1..].iter().sum();
        let gate = (keys > 0).then(|| {
            let rate = self.config.false_positives.min(GATE_RATE);
            self.filter(top as u8, (keys as usize).max(KEYS_MIN), rate)
        });
        Ok((levels, gate))
    }

    fn limit<C: Code>(&self, direct_bits: u8) -> Result<(), BuildError> {
        let bytes =
            self.words * 8 + self.buckets * size_of::<Line>() + (size_of::<C>() << direct_bits);
        if bytes > self.config.memory_limit { Err(self.too_much(bytes as u64)) } else { Ok(()) }
    }

    fn too_much(&self, bytes: u64) -> BuildError {
        BuildError::Limit {
            engine: NAME,
            what: "bytes for the prefixes after expansion (more levels need fewer)",
            limit: self.config.memory_limit as u64,
            needed: bytes,
        }
    }
}

/// Puts the routes of up to `TOP` bits into their levels, longest level first.
fn fill<A: Address, C: Code>(
    routes: &Routes<A>,
    direct_bits: u8,
    levels: &mut [Level],
    writer: &mut Writer<'_>,
) {
    let mut codes = Vec::new();
    for at in 0..levels.len() {
        let shorter = levels.get(at + 1).map_or(direct_bits, |next| next.len);
        let level = &mut levels[at];
        let band = |route: &&Route<A>| (shorter + 1..=level.len).contains(&route.prefix.len());
        let band: Vec<Route<A>> = routes.as_slice().iter().filter(band).copied().collect();
        let mut rest = &band[..];
        while let Some(first) = rest.first() {
            let inside = rest.iter().take_while(|route| first.prefix.covers(route.prefix)).count();
            codes.clear();
            codes.resize(1 << (level.len - first.prefix.len()), C::NONE);
            paint(&rest[..inside], level.len, first.prefix, &mut codes);
            for (key, &code) in keys::<A>(first.prefix, level.len).zip(&codes) {
                writer.set(level, key, code).expect("levels have room for what was counted");
            }
            rest = &rest[inside..];
        }
    }
}

/// Puts the routes longer than that into theirs.
fn fill_long<A: Address, C: Code>(
    routes: &Routes<A>,
    levels: &mut [Level],
    gate: Option<&Level>,
    writer: &mut Writer<'_>,
) {
    let Some(gate) = gate else { return };
    for route in routes.iter().filter(|route| route.prefix.len() > gate.len) {
        let level = levels.iter_mut().find(|level| level.len == route.prefix.len());
        let level = level.expect("every long length has its level");
        let code = C::of(code_of(route.hop));
        writer.set(level, route.prefix.addr().to_u128(), code).expect("the level has room");
        writer.pass(gate, key::<A, u64>(route.prefix.addr(), gate.len), Change::Came);
    }
}

/// The prefixes of that length under a prefix, as keys.
pub(super) fn keys<A: Address>(
    prefix: Prefix<A>,
    len: u8,
) -> impl Iterator<Item = <A as Keyed>::Key> {
    let first = prefix.addr().to_u128();
    (0..1u128 << (len - prefix.len())).map(move |i| {
        <A as Keyed>::Key::of(A::from_u128(
            first | i.checked_shl((A::BITS - len).into()).unwrap_or(0),
        ))
    })
}

/// Writes the codes of the routes, which are sorted and lie under the prefix, over the places of that
/// many bits: longer ones over those that cover them.
pub(super) fn paint<A: Address, C: Code>(
    routes: &[Route<A>],
    len: u8,
    prefix: Prefix<A>,
    codes: &mut [C],
) {
    for route in routes.iter().filter(|route| route.prefix.len() <= len) {
        let offset = route.prefix.addr().to_u128() ^ prefix.addr().to_u128();
        let first = offset.checked_shr((A::BITS - len).into()).unwrap_or(0) as usize;
        codes[first..first + (1 << (len - route.prefix.len()))].fill(C::of(code_of(route.hop)));
    }
}
