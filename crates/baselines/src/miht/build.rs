use std::cmp::Reverse;

use fibula_core::{BuildError, Route, Routes};

use super::index::{Index, NO_TRIE};
use super::trie::{HOP_BITS, TrieAddr, Tries};
use super::{Config, K_RANGE, M_RANGE, Miht};

/// Routes for which every place has a number of 32 bits: a key needs at most four lines.
const ROUTES_MAX: u64 = 1 << 29;

pub(super) fn build<A: TrieAddr>(
    routes: &Routes<A>,
    config: &Config,
) -> Result<Miht<A>, BuildError> {
    // Those that the paper found best.
    let best = if A::BITS == 32 { 16 } else { 32 };
    let (k, m) = (config.k.unwrap_or(best), config.m.unwrap_or(best));
    for (name, value, range) in [("k", k, K_RANGE), ("m", m, M_RANGE)] {
        if !range.contains(&value) {
            let (least, most) = range.into_inner();
            let reason = format!("{name} is {value}, not {least} to {most}").into();
            return Err(BuildError::Config { engine: "miht", reason });
        }
    }
    check_limits(routes)?;
    let mut tries = Tries::with_room(routes.len());
    let (mut keyless, mut entries) = (Vec::new(), Vec::new());
    let mut group: Vec<Route<A>> = Vec::new();
    let key = |route: &Route<A>| route.prefix.addr().key(k);
    // Routes of one key come together, but for the keyless ones between them.
    for route in routes.iter() {
        if u32::from(route.prefix.len()) < k {
            keyless.push(route);
            continue;
        }
        if let Some(last) = group.last()
            && key(last) != key(&route)
        {
            entries.push((key(last), trie(&mut tries, k as u8, &mut group)));
        }
        group.push(route);
    }
    if let Some(last) = group.last() {
        entries.push((key(last), trie(&mut tries, k as u8, &mut group)));
    }
    let keyless = trie(&mut tries, 0, &mut keyless);
    let index = Index::build(m, &entries);
    Ok(Miht::new(k, index, keyless, tries, config.isa.level(), config.batch))
}

/// A trie of these routes, which are taken out. Longest first: then most stay where they are put, and
/// the nodes near the root lie together.
fn trie<A: TrieAddr>(tries: &mut Tries<A>, level: u8, routes: &mut Vec<Route<A>>) -> u32 {
    routes.sort_by_key(|route| Reverse(route.prefix.len()));
    let insert = |root, route: Route<A>| tries.insert(root, level, route.prefix, route.hop);
    routes.drain(..).fold(NO_TRIE, insert)
}

/// Whether tables can hold these routes.
pub(super) fn check_limits<A: TrieAddr>(routes: &Routes<A>) -> Result<(), BuildError> {
    for (what, needed, limit) in [
        ("next hops", u64::from(routes.hop_count()), 1 << HOP_BITS),
        ("routes", routes.len() as u64, ROUTES_MAX),
    ] {
        if needed > limit {
            return Err(BuildError::Limit { engine: "miht", what, limit, needed });
        }
    }
    Ok(())
}
