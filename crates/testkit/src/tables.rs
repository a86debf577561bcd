//! Small tables that are hard: dense nesting, and the edges of the address space.

use std::collections::HashSet;

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

use crate::Rng;

/// A dense nested table of `prefixes` routes (fewer if the space of short lengths runs out): most lie inside, next to
/// or around another one, so that nearly every boundary of one is a boundary or a neighbour of another.
///
/// The prefixes grow from a few seeds by small steps: one or a few bits longer or shorter, the
/// sibling, the next or previous block of the same length, a host at either end. Both ends of the
/// space are among the seeds. Hops are few (up to 251), so that equal neighbours occur as well.
///
/// Fewer than 4,000 prefixes fit every engine; a conforming engine must take them.
///
/// ```
/// let routes = fibula_testkit::tables::dense::<u32>(1, 1000);
/// assert_eq!(routes.len(), 1000);
/// ```
pub fn dense<A: Addr>(seed: u64, prefixes: usize) -> Routes<A> {
    let mut rng = Rng::new(seed ^ u64::from(A::BITS));
    let mut all: Vec<Prefix<A>> = vec![Prefix::ALL, Prefix::host(A::MIN), Prefix::host(A::MAX)];
    all.extend((0..4).map(|_| masked(rng.addr(), 1 + rng.below(A::BITS.into()) as u8)));
    all.sort_unstable();
    all.dedup();
    let mut seen: HashSet<Prefix<A>> = all.iter().copied().collect();
    // The step may yield an existing prefix; the bound only matters for absurdly many prefixes.
    let mut tries = prefixes.saturating_mul(20);
    while all.len() < prefixes && tries > 0 {
        tries -= 1;
        let Some(from) = rng.choose(&all) else { break };
        let next = step(&mut rng, from);
        if seen.insert(next) {
            all.push(next);
        }
    }
    all.truncate(prefixes);
    let hops = 1 + rng.below(251);
    let route = |prefix| Route { prefix, hop: Hop::new(rng.below(hops) as u32) };
    all.into_iter().map(route).collect()
}

/// A relative of the prefix, at most a few bits away.
fn step<A: Addr>(rng: &mut Rng, from: Prefix<A>) -> Prefix<A> {
    let len = from.len();
    let few = 1 + rng.below(4) as u8;
    match rng.below(8) {
        // Inside: twice as likely as the others, or the tables would grow broad, not deep.
        0 | 1 => masked(rng.addr_in(from), len.saturating_add(few).min(A::BITS)),
        2 => masked(from.first(), len.saturating_add(few).min(A::BITS)),
        3 => masked(from.last(), len.saturating_add(few).min(A::BITS)),
        4 => masked(from.first(), len.saturating_sub(few)),
        5 => masked(from.last().successor().unwrap_or(A::MAX), len),
        6 => masked(from.first().predecessor().unwrap_or(A::MIN), len),
        _ => Prefix::host(if rng.chance(0.5) { from.first() } else { from.last() }),
    }
}

/// `addr/len` with `len` known to be in range.
fn masked<A: Addr>(addr: A, len: u8) -> Prefix<A> {
    Prefix::masked(addr, len.min(A::BITS)).expect("the length is within the family's bits")
}

/// Hand-made tables, each named after the case that it tests. Every engine must accept all of them.
pub fn edge<A: Addr>() -> Vec<(&'static str, Routes<A>)> {
    let bits = A::BITS;
    let chain = |addr: A, lens: &mut dyn Iterator<Item = u8>| -> Vec<Prefix<A>> {
        lens.map(|len| masked(addr, len)).collect()
    };
    let middle = A::MAX.xor(A::netmask(bits / 2 + 1)).successor().unwrap_or(A::MIN);
    let mut tables = vec![
        ("empty", vec![]),
        ("default route alone", vec![Prefix::ALL]),
        ("two halves", chain_of(&[A::MIN, A::MAX], 1)),
        ("first address", vec![Prefix::host(A::MIN)]),
        ("last address", vec![Prefix::host(A::MAX)]),
        ("both ends", chain_of(&[A::MIN, A::MAX], bits)),
        ("both ends over a default", {
            let mut t = chain_of(&[A::MIN, A::MAX], bits);
            t.push(Prefix::ALL);
            t
        }),
        ("pairs at both ends", {
            let mut t = chain_of(&[A::MIN, A::MAX], bits - 1);
            t.extend(chain_of(&[A::MIN, A::MAX], bits));
            t
        }),
        ("every length at the first address", chain(A::MIN, &mut (0..=bits))),
        ("every length at the last address", chain(A::MAX, &mut (0..=bits))),
        ("every length in the middle", chain(middle, &mut (0..=bits))),
        ("every second length", chain(A::MAX, &mut (1..=bits).step_by(2))),
        ("staircase up", staircase(A::MAX)),
        ("staircase down", staircase(A::MIN)),
        ("every prefix of the last 8 bits", complete(A::MAX, bits - 8)),
        ("every prefix of the first 8 bits of the last addresses", complete(A::MIN, bits - 8)),
        ("every /1 to /8", complete_top(8)),
        ("around the strides", around(&[8, 16, 17, 18, 19, 20, 24, 31, 32])),
    ];
    if bits > 64 {
        tables.push(("around 64", around(&[48, 63, 64, 65, 66, 96, 127, 128])));
        tables.push(("hosts in one /64", hosts_in_one_64()));
        tables.push(("a /64 that ends where a /65 chain begins", low_half_chain()));
    }
    tables.into_iter().map(|(name, prefixes)| (name, number(prefixes))).collect()
}

/// Hops by position, so that no two neighbours agree and hop 0 occurs.
fn number<A: Addr>(prefixes: Vec<Prefix<A>>) -> Routes<A> {
    let route = |(i, prefix)| Route { prefix, hop: Hop::new((i % 253) as u32) };
    prefixes.into_iter().enumerate().map(route).collect()
}

fn chain_of<A: Addr>(addrs: &[A], len: u8) -> Vec<Prefix<A>> {
    addrs.iter().map(|&addr| masked(addr, len)).collect()
}

/// The siblings along the path to `addr`: together they cover everything but `addr` itself.
fn staircase<A: Addr>(addr: A) -> Vec<Prefix<A>> {
    let flip = |len: u8| A::netmask(len).xor(A::netmask(len - 1));
    (1..=A::BITS).map(|len| masked(addr.xor(flip(len)), len)).collect()
}

/// Every prefix of length `from` or longer inside the block of length `from` around `addr`.
fn complete<A: Addr>(addr: A, from: u8) -> Vec<Prefix<A>> {
    let base = addr.and(A::netmask(from)).to_u128();
    (from..=A::BITS)
        .flat_map(|len| {
            (0..1u128 << (len - from))
                .map(move |i| masked(A::from_u128(base | i << (A::BITS - len)), len))
        })
        .collect()
}

/// Every prefix of lengths 0 to `to`.
fn complete_top<A: Addr>(to: u8) -> Vec<Prefix<A>> {
    (0..=to)
        .flat_map(|len| {
            (0..1u128 << len)
                .map(move |i| masked(A::from_u128(i.unbounded_shl((A::BITS - len).into())), len))
        })
        .collect()
}

/// Prefixes one bit shorter, exactly at and one bit longer than lengths where schemes cut the address, at both ends of
/// a block in the middle of the space and next to it.
fn around<A: Addr>(lens: &[u8]) -> Vec<Prefix<A>> {
    let middle = A::netmask(1);
    let mut all = Vec::new();
    for &len in lens {
        for len in [len.saturating_sub(1), len, len.saturating_add(1).min(A::BITS)] {
            let block = masked(middle, len);
            let addrs = [
                Some(block.first()),
                Some(block.last()),
                block.first().predecessor(),
                block.last().successor(),
            ];
            all.extend(addrs.into_iter().flatten().map(|addr| masked(addr, len)));
            all.extend(addrs.into_iter().flatten().map(Prefix::host));
        }
    }
    all
}

/// Host routes at both ends and in the middle of one /64, with and without a longer cover.
fn hosts_in_one_64<A: Addr>() -> Vec<Prefix<A>> {
    let base = A::from_u128(0x2001_0db8_0000_0001u128 << 64);
    let block = masked(base, 64);
    let low = |bits: u128| base.or(A::from_u128(bits));
    let mut all = vec![block, masked(low(1 << 63), 65), masked(low(1 << 40), 100)];
    all.extend(
        [low(0), low(1), low((1 << 40) + 7), low(1 << 63), low(u64::MAX.into())].map(Prefix::host),
    );
    all.extend(block.last().successor().map(Prefix::host));
    all
}

/// Two neighbouring /64s, the second one refined at every length to 128 at its first address, the
/// first one at its last address.
fn low_half_chain<A: Addr>() -> Vec<Prefix<A>> {
    let second = A::from_u128(0x2001_0db8_0000_0002u128 << 64);
    let before = second.predecessor().unwrap_or(A::MIN);
    (64..=A::BITS).flat_map(|len| [masked(second, len), masked(before, len)]).collect()
}

/// A table with hops spread over the whole range that 20 bits hold: beyond the 8, 12 or 16 bits in
/// which some schemes keep them. An engine may refuse it.
pub fn wide_hops<A: Addr>(seed: u64, prefixes: usize) -> Routes<A> {
    let mut rng = Rng::new(seed);
    let hop = |route: Route<A>| Route { hop: Hop::new(rng.below(1 << 20) as u32), ..route };
    dense::<A>(seed, prefixes).iter().map(hop).collect()
}

/// Every prefix of the last 13 bits of a block, all hosts included: 8,192 equal-sized elementary
/// intervals inside one chunk of any direct table. An engine may refuse it.
pub fn crowded<A: Addr>() -> Routes<A> {
    number(complete(A::netmask(3), A::BITS - 13))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_tables_are_nested_and_reproducible() {
        let routes = dense::<u128>(5, 2000);
        assert_eq!(routes.len(), 2000);
        assert_eq!(routes, dense::<u128>(5, 2000));
        assert_ne!(routes, dense::<u128>(6, 2000));
        let shape = crate::TableShape::of(&routes);
        assert!(shape.more_specific_share() > 0.99, "{shape:?}");
        assert!(shape.mean_depth() > 4.0, "{shape:?}");
        let shape = crate::TableShape::of(&dense::<u32>(5, 2000));
        assert!(shape.mean_depth() > 4.0, "{shape:?}");
    }

    #[test]
    fn tiny_dense_tables() {
        for n in 0..10 {
            assert_eq!(dense::<u32>(0, n).len(), n);
            assert_eq!(dense::<u128>(0, n).len(), n);
        }
    }

    #[test]
    fn edge_tables_match_their_names() {
        let v4 = edge::<u32>();
        let find = |name| &v4.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(find("every length in the middle").len(), 33);
        assert_eq!(find("every prefix of the last 8 bits").len(), 511);
        assert_eq!(find("every /1 to /8").len(), 511);
        assert_eq!(find("staircase up").ranges().filter(|r| r.hop.is_none()).count(), 1);
        assert!(edge::<u128>().len() > v4.len());
        assert_eq!(crowded::<u32>().len(), (1 << 14) - 1);
        assert!(wide_hops::<u32>(1, 500).hop_count() > 1 << 16);
    }
}
