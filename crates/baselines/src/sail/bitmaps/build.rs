use core::marker::PhantomData;

use fibula_core::{BuildError, Prefix, Routes};
use fibula_simd::Table;

use super::{Bitmaps, CHUNK, Levels, MOST};
use crate::sail::{at_most, code};

/// Writes each route to the nodes that it covers. Routes are sorted, each before those that it covers, so the longest
/// is written last.
pub(super) fn build<L: Levels>(routes: &Routes<u32>) -> Result<Bitmaps<L>, BuildError> {
    at_most(L::NAME, "next hops", MOST, routes.hop_count() as usize)?;
    // Shorter routes may stand between those of a /24 and those inside it, but not among the latter.
    let long = routes.iter().filter(|route| route.prefix.len() > 24);
    let mut chunks: Vec<u32> = long.clone().map(|route| route.prefix.addr() >> 8).collect();
    chunks.dedup();
    at_most(L::NAME, "chunks of routes longer than /24", MOST, chunks.len())?;

    let mut b = vec![0u64; L::PLACES / 64];
    let n = Table::with(L::PLACES, |n: &mut [u16]| {
        for route in routes.iter().filter(|route| route.prefix.len() <= 24) {
            let nodes = nodes(L::level_of(route.prefix.len()), route.prefix);
            let start = L::start(L::level_of(route.prefix.len()));
            for place in start + nodes.start..start + nodes.end {
                b[place / 64] |= 1 << (place % 64);
                n[place] = code(route.hop) as u16;
            }
        }
    });
    let c24 = Table::with(1 << 24, |c24: &mut [u16]| {
        for (i, &node) in chunks.iter().enumerate() {
            c24[node as usize] = i as u16 + 1;
            let place = L::start(24) + node as usize;
            b[place / 64] |= 1 << (place % 64);
        }
    });
    let n32 = Table::with(chunks.len() * CHUNK, |n32: &mut [u16]| {
        for route in long {
            let chunk = usize::from(c24[(route.prefix.addr() >> 8) as usize]) - 1;
            write_chunk(&mut n32[chunk * CHUNK..][..CHUNK], route.prefix, code(route.hop) as u16);
        }
    });
    let (b, free) = (Table::from_vec(b), Vec::new());
    Ok(Bitmaps { b, n, c24, n32, free, levels: PhantomData })
}

/// The nodes of the level that the prefix covers; the prefix is no longer than the level is deep.
pub(super) fn nodes(level: u8, prefix: Prefix<u32>) -> core::ops::Range<usize> {
    let first = (u64::from(prefix.addr()) >> (32 - level)) as usize;
    first..first + (1 << (level - prefix.len()))
}

/// Writes a route longer than /24 into its chunk.
pub(super) fn write_chunk(chunk: &mut [u16], prefix: Prefix<u32>, code: u16) {
    chunk[(prefix.first() & 0xff) as usize..=(prefix.last() & 0xff) as usize].fill(code);
}
