use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{nodes, write_chunk};
use super::{Bitmaps, CHUNK, Levels, MOST};
use crate::sail::{at_most, code};

pub(super) fn patch<L: Levels>(
    tables: &mut Bitmaps<L>,
    routes: &Routes<u32>,
    changed: &[Prefix<u32>],
) -> Result<Patched, BuildError> {
    at_most(L::NAME, "next hops", MOST, routes.hop_count() as usize)?;
    for &prefix in changed {
        if prefix.len() <= 24 {
            patch_short(tables, routes, prefix);
        } else {
            patch_chunk(tables, routes, prefix)?;
        }
    }
    Ok(Patched::Applied)
}

/// Writes the nodes that a route of up to 24 bits covers: in SAIL_B that is one, in SAIL_U up to 64, whose bits are in
/// one word.
fn patch_short<L: Levels>(tables: &mut Bitmaps<L>, routes: &Routes<u32>, prefix: Prefix<u32>) {
    let level = L::level_of(prefix.len());
    let first = L::start(level) + nodes(level, prefix).start;
    let (c24, n) = (&tables.c24, tables.n.to_mut());
    let (mut place, mut mask, mut bits) = (first, 0u64, 0u64);
    push(routes, prefix, level, above::<L>(routes, prefix), &mut |code| {
        n[place] = code;
        let has_chunk = level == 24 && c24[place - L::start(24)] != 0;
        mask |= 1 << (place % 64);
        bits |= u64::from(code != 0 || has_chunk) << (place % 64);
        place += 1;
    });
    let word = &mut tables.b.to_mut()[first / 64];
    *word = *word & !mask | bits;
}

/// Visits the nodes of the level under the prefix, in order. Each gets the longest route that covers it.
fn push(
    routes: &Routes<u32>,
    prefix: Prefix<u32>,
    level: u8,
    above: u16,
    write: &mut impl FnMut(u16),
) {
    let code = routes.get(prefix).map_or(above, |hop| code(hop) as u16);
    if prefix.len() == level {
        return write(code);
    }
    for end in [prefix.first(), prefix.last()] {
        push(routes, cut(end, prefix.len() + 1), level, code, write);
    }
}

/// The code of the longest route that covers the prefix, is shorter, and stands at the same level.
fn above<L: Levels>(routes: &Routes<u32>, prefix: Prefix<u32>) -> u16 {
    let level = L::level_of(prefix.len());
    let mut lens = (0..prefix.len()).rev().take_while(|&len| L::level_of(len) == level);
    let found = lens.find_map(|len| routes.get(cut(prefix.addr(), len)));
    found.map_or(0, |hop| code(hop) as u16)
}

/// Writes the chunk of the /24 that a longer route lies in; the chunk exists as long as such routes.
fn patch_chunk<L: Levels>(
    tables: &mut Bitmaps<L>,
    routes: &Routes<u32>,
    prefix: Prefix<u32>,
) -> Result<(), BuildError> {
    let node = (prefix.addr() >> 8) as usize;
    let block = routes.within(cut(prefix.addr(), 24));
    let long = block.iter().filter(|route| route.prefix.len() > 24);
    let any = long.clone().next().is_some();
    let chunk = match tables.c24[node] {
        0 if any => new_chunk(tables)?,
        chunk => chunk,
    };
    if chunk != 0 {
        let codes = &mut tables.n32.to_mut()[usize::from(chunk - 1) * CHUNK..][..CHUNK];
        codes.fill(0);
        for route in long {
            write_chunk(codes, route.prefix, code(route.hop) as u16);
        }
    }
    if chunk != 0 && !any {
        tables.free.push(chunk);
    }
    let place = L::start(24) + node;
    let (word, bit) = (&mut tables.b.to_mut()[place / 64], 1 << (place % 64));
    *word = if any || tables.n[place] != 0 { *word | bit } else { *word & !bit };
    tables.c24.to_mut()[node] = if any { chunk } else { 0 };
    Ok(())
}

/// An unused chunk. If there is none, `N_32` grows by a part of itself.
fn new_chunk<L: Levels>(tables: &mut Bitmaps<L>) -> Result<u16, BuildError> {
    if tables.free.is_empty() {
        let chunks = tables.n32.len() / CHUNK;
        at_most(L::NAME, "chunks of routes longer than /24", MOST, chunks + 1)?;
        let more = (chunks + chunks / 4 + 16).min(MOST);
        tables.n32 = Table::with(more * CHUNK, |new: &mut [u16]| {
            new[..chunks * CHUNK].copy_from_slice(&tables.n32);
        });
        tables.free.extend((chunks + 1..=more).rev().map(|chunk| chunk as u16));
    }
    Ok(tables.free.pop().expect("N_32 has grown"))
}

/// The prefix of this length around the address.
fn cut(addr: u32, len: u8) -> Prefix<u32> {
    Prefix::masked(addr, len).expect("a length of up to 24 bits")
}
