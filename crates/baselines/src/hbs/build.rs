use fibula_core::{Addr, BuildError, Prefix, Routes};
use fibula_simd::Table;

use super::lookup::{NO_ORIGINS, with_origin};
use super::tree::{self, LEN, Node, PART, RANK};
use super::{Config, Hbs, NAME};
use crate::common::{Hashed, Item};

/// Compiles the routes: the tree of their lengths, then all tables in one pass over them.
pub(super) fn build<A: Addr>(routes: &Routes<A>, config: Config) -> Result<Hbs<A>, BuildError> {
    let mut counts = vec![0u64; usize::from(A::BITS) + 1];
    for route in routes.iter() {
        counts[usize::from(route.prefix.len())] += 1;
    }
    let lengths: Vec<u8> = (1..=A::BITS).filter(|&len| counts[usize::from(len)] > 0).collect();
    let mut tree = if config.heuristic {
        let weights: Vec<u64> = lengths.iter().map(|&len| counts[usize::from(len)]).collect();
        tree::weighted(&weights)
    } else {
        tree::balanced(lengths.len())
    };
    let tables = entries(routes, &lengths, &tree);
    let Some((slots, parts)) = Hashed::new(&tables) else {
        let needed = tables.iter().map(|items| 2 * items.len() as u64).sum();
        let limit = u32::MAX.into();
        return Err(BuildError::Limit { engine: NAME, what: "slots", limit, needed });
    };
    for node in &mut tree {
        let rank = node[RANK] as usize;
        node[LEN] = lengths[rank].into();
        [node[PART], node[PART + 1]] = [parts[rank].first, parts[rank].mask];
    }
    let shortest = routes.get(Prefix::ALL).map_or(0, |hop| hop.to_bits() + 1);
    let shape = [config.heuristic.into(), shortest];
    Ok(Hbs::new(shape, Table::from_vec(tree), slots, config.batch))
}

/// Routes and markers of each length. Those with the same bits follow each other, as the routes are
/// sorted, so the last one is the only one to compare with.
pub(super) fn entries<A: Addr>(
    routes: &Routes<A>,
    lengths: &[u8],
    tree: &[Node],
) -> Vec<Vec<Item<A>>> {
    let markers = tree::markers(tree).expect("a tree has every rank");
    let mut tables: Vec<Vec<Item<A>>> = vec![Vec::new(); lengths.len()];
    // The routes that cover the current one, itself included, with their codes.
    let mut around: Vec<(Prefix<A>, u32)> = Vec::new();
    for route in routes.iter() {
        let prefix = route.prefix;
        while around.last().is_some_and(|(outer, _)| !outer.covers(prefix)) {
            around.pop();
        }
        around.push((prefix, route.hop.to_bits() + 1));
        let Ok(rank) = lengths.binary_search(&prefix.len()) else { continue };
        for &marker in &markers[rank] {
            let len = lengths[marker];
            let key = prefix.addr().and(A::netmask(len));
            let table = &mut tables[marker];
            match table.last_mut().filter(|item| item.key == key) {
                Some(item) => item.note = with_origin(item.note, rank as u32),
                None => {
                    let best = around.iter().rev().find(|(outer, _)| outer.len() <= len);
                    let code = best.map_or(0, |(_, code)| *code);
                    table.push(Item { key, code, note: with_origin(NO_ORIGINS, rank as u32) });
                }
            }
        }
        let code = route.hop.to_bits() + 1;
        tables[rank].push(Item { key: prefix.addr(), code, note: NO_ORIGINS });
    }
    tables
}
