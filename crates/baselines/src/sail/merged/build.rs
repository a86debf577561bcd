use fibula_core::{BuildError, Routes};
use fibula_simd::Table;

use super::{Entry, Free, SailL};
use crate::sail::at_most;
use crate::sail::division::{CHUNK, Chunk, Division};

/// Pushes the routes to the leaves of their shape, and puts the chunks where the leaves leave room.
pub(super) fn build<E: Entry>(routes: &Routes<u32>, staged: bool) -> Result<SailL<E>, BuildError> {
    let hops = routes.hop_count();
    check_hops::<E>(E::NAME, hops)?;
    let division = Division::of(&[routes]);
    check_chunks::<E>(E::NAME, "chunks of level 24", hops, division.chunks24())?;
    check_chunks::<E>(E::NAME, "chunks of level 32", hops, division.chunks32())?;
    let codes = division.paint(routes);
    Ok(SailL {
        bcn16: merge(&codes.n16, division.c16(), division.chunks24()),
        bcn24: merge_chunks(&codes.n24, division.c24(), division.chunks32()),
        n32: merge_chunks(&codes.n32, core::iter::repeat(None), 0),
        free: Free::default(),
        staged,
    })
}

/// Codes go up to the hop count.
fn check_hops<E: Entry>(engine: &'static str, hops: u32) -> Result<(), BuildError> {
    at_most(engine, "next hops", E::MAX as usize, hops as usize)
}

/// Chunks take the entries above the codes.
pub(super) fn check_chunks<E: Entry>(
    engine: &'static str,
    what: &'static str,
    hops: u32,
    chunks: usize,
) -> Result<(), BuildError> {
    at_most(engine, what, E::CHUNKS.min((E::MAX - hops) as usize), chunks)
}

/// An array of codes and one of chunks, of which there are so many, as one.
pub(super) fn merge<E: Entry>(
    codes: &[u32],
    chunks: impl Iterator<Item = Option<usize>>,
    count: usize,
) -> Table<E> {
    Table::with(codes.len(), |entries: &mut [E]| merge_into(entries, codes, chunks, count))
}

/// The same by chunk.
fn merge_chunks<E: Entry>(
    codes: &[u32],
    chunks: impl Iterator<Item = Option<usize>>,
    count: usize,
) -> Table<Chunk<E>> {
    Table::with(codes.len() / CHUNK, |entries: &mut [Chunk<E>]| {
        merge_into(entries.as_flattened_mut(), codes, chunks, count);
    })
}

fn merge_into<E: Entry>(
    entries: &mut [E],
    codes: &[u32],
    chunks: impl Iterator<Item = Option<usize>>,
    count: usize,
) {
    for ((entry, &code), chunk) in entries.iter_mut().zip(codes).zip(chunks) {
        *entry = chunk.map_or_else(|| E::of_code(code), |chunk| E::of_chunk(chunk, count));
    }
}
