use fibula_core::{Hop, Prefix, Route, Routes};

use super::line::Item;

/// The code of a hop.
pub(super) fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

/// The code of addresses that no route covers but ::/0, and the other routes.
pub(super) fn rest(routes: &Routes<u128>) -> (u32, &[Route<u128>]) {
    match routes.as_slice() {
        [first, others @ ..] if first.prefix.len() == 0 => (code(first.hop), others),
        all => (0, all),
    }
}

/// The items of some routes in ascending order, without those that have the code of the route around them, `outer`
/// around all. A network (/64) that longer routes divide is one item, whose code is `block`'s.
pub(super) fn items<E>(
    routes: &[Route<u128>],
    outer: u32,
    mut block: impl FnMut(Prefix<u128>) -> Result<u32, E>,
) -> Result<Vec<Item>, E> {
    let mut all: Vec<Item> = Vec::with_capacity(routes.len());
    let mut is_divided = false;
    for route in routes {
        let (key, len) = ((route.prefix.addr() >> 64) as u64, route.prefix.len());
        if len <= 64 {
            all.push(Item { key, len, code: code(route.hop) });
            is_divided = false;
            continue;
        }
        let network = Prefix::masked(route.prefix.addr(), 64).unwrap_or(Prefix::ALL);
        match all.last_mut() {
            Some(last) if last.len == 64 && last.key == key => {
                // The network has its block already, or has its own route in the block.
                if !is_divided {
                    last.code = block(network)?;
                }
            }
            _ => all.push(Item { key, len: 64, code: block(network)? }),
        }
        is_divided = true;
    }
    let mut around: Vec<Item> = Vec::new();
    all.retain(|item| {
        while around.last().is_some_and(|outer| !outer.covers(item)) {
            around.pop();
        }
        let is_new = item.code != around.last().map_or(outer, |outer| outer.code);
        if is_new {
            around.push(*item);
        }
        is_new
    });
    Ok(all)
}

/// The items of routes shorter than /64 that cover the prefix, ascending by length, without ::/0 and those that have
/// the code of the route around them; `rest` is the code of ::/0.
pub(super) fn covering(routes: &Routes<u128>, prefix: Prefix<u128>, rest: u32) -> Vec<Item> {
    let covering = routes.covering(prefix).filter(|route| (1..64).contains(&route.prefix.len()));
    let mut items: Vec<Item> = covering
        .map(|Route { prefix, hop }| Item {
            key: (prefix.addr() >> 64) as u64,
            len: prefix.len(),
            code: code(hop),
        })
        .collect();
    items.reverse();
    let mut outer = rest;
    items.retain(|item| std::mem::replace(&mut outer, item.code) != item.code);
    items
}
