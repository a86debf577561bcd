//! Changes in place of tables whose bitmaps, chunks and hops lie apart: SAIL_L with hops of one byte, and SAIL_M.
//!
//! A change paints the answers of its prefix over the leaves, divides the nodes in which answers change, and unites
//! those whose addresses all have one answer again. So a patched table has as many chunks in use as a build would make.

use fibula_core::{Prefix, Range, Routes};

use super::code;
use super::division::{CHUNK, byte};

/// Tables that are painted: nodes of level 16, each a leaf or with a chunk of children, whose places are leaves or have
/// chunks of addresses. Codes are those of the table that changes; the shape may be one of several tables together.
pub(super) trait Canvas {
    /// The chunk of a node of level 16.
    fn chunk24(&self, node: usize) -> Option<usize>;
    /// The chunk of a place of level 24.
    fn chunk32(&self, place: usize) -> Option<usize>;

    /// Gives a leaf of level 16 a code.
    fn set16(&mut self, node: usize, code: u32);
    /// Gives a leaf of level 24 a code.
    fn set24(&mut self, place: usize, code: u32);
    /// Gives the places `first..=last` of a chunk of level 32 a code.
    fn set32(&mut self, chunk: usize, first: usize, last: usize, code: u32);

    /// Gives a leaf of level 16 a chunk, which it returns. `None` if there is no room for one more.
    fn divide16(&mut self, node: usize) -> Option<usize>;
    /// The same for level 24.
    fn divide24(&mut self, place: usize) -> Option<usize>;

    /// Makes a divided node of level 16 a leaf, if its children are leaves of one code.
    fn unite16(&mut self, node: usize);
    /// The same for level 24.
    fn unite24(&mut self, place: usize);
}

/// Rewrites the leaves that each changed prefix covers, or the whole /24 around a longer one. `None` if that takes too
/// many chunks.
pub(super) fn patch(
    canvas: &mut impl Canvas,
    routes: &Routes<u32>,
    changed: &[Prefix<u32>],
) -> Option<()> {
    for prefix in changed {
        let block = Prefix::masked(prefix.addr(), prefix.len().min(24));
        let block = block.expect("24 is a prefix length");
        for range in routes.ranges_within(block) {
            paint(canvas, range)?;
        }
        unite(canvas, block);
    }
    Some(())
}

fn paint(canvas: &mut impl Canvas, range: Range<u32>) -> Option<()> {
    let code = code(range.hop);
    for node in range.first >> 16..=range.last >> 16 {
        let first = range.first.max(node << 16);
        let last = range.last.min(node << 16 | 0xffff);
        let chunk = match canvas.chunk24(node as usize) {
            Some(chunk) => chunk,
            None if last - first == 0xffff => {
                canvas.set16(node as usize, code);
                continue;
            }
            None => canvas.divide16(node as usize)?,
        };
        for node in first >> 8..=last >> 8 {
            let place = chunk * CHUNK + byte(node);
            let first = first.max(node << 8);
            let last = last.min(node << 8 | 0xff);
            let below = match canvas.chunk32(place) {
                Some(below) => below,
                None if last - first == 0xff => {
                    canvas.set24(place, code);
                    continue;
                }
                None => canvas.divide24(place)?,
            };
            canvas.set32(below, byte(first), byte(last), code);
        }
    }
    Some(())
}

fn unite(canvas: &mut impl Canvas, block: Prefix<u32>) {
    let (first, last) = (block.first(), block.last());
    for node in first >> 16..=last >> 16 {
        let Some(chunk) = canvas.chunk24(node as usize) else { continue };
        let (first, last) = (first.max(node << 16), last.min(node << 16 | 0xffff));
        for node in first >> 8..=last >> 8 {
            let place = chunk * CHUNK + byte(node);
            if canvas.chunk32(place).is_some() {
                canvas.unite24(place);
            }
        }
        canvas.unite16(node as usize);
    }
}

/// Whether all codes of a chunk are one.
pub(super) fn is_even<T: PartialEq>(codes: &[T]) -> bool {
    codes.iter().all(|code| *code == codes[0])
}

/// The chunks, of so many, that are not among those named.
pub(super) fn unnamed(chunks: usize, named: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut is_free = vec![true; chunks];
    named.for_each(|chunk| is_free[chunk] = false);
    (0..chunks).filter(|&chunk| is_free[chunk]).collect()
}
