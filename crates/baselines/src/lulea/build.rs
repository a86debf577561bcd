use fibula_core::{BuildError, Range, Routes};
use fibula_simd::Table;

use super::code::{self, DIRECT_MOST, direct, masks, row};
use super::pointer::Target;
use super::{Dense, Level, Lulea, NAME, Pointer, VeryDense};

/// Compiles the routes in one pass over their ranges.
pub(super) fn build<P: Pointer>(routes: &Routes<u32>) -> Result<Lulea<P>, BuildError> {
    check("next hops", P::HOPS.into(), routes.hop_count().into())?;
    let mut builder = Builder::<P> {
        ranges: routes.ranges().collect(),
        at: 0,
        rows: masks(4)[1..].to_vec(),
        levels: [Chunks::default(), Chunks::default()],
    };
    let heads = builder.heads(0, 0);
    let mut pointers = Vec::new();
    let (codes, starts) = builder.codes(&heads, 4096, &mut pointers);
    for chunks in &builder.levels {
        let limit = 1 << P::INDEX_BITS;
        for needed in [chunks.sparse.len(), chunks.dense.len(), chunks.very_dense.len()] {
            check("chunks of a level", limit, needed as u64)?;
        }
        check("pointers of a level", u32::MAX.into(), chunks.pointers.len() as u64)?;
    }
    let codes = offsets(codes, &starts, 4);
    // At most 2^16 pointers, of which four groups have some.
    let bases: Vec<u16> = starts.iter().step_by(4).map(|&start| start as u16).collect();
    Ok(Lulea {
        map: Table::from_vec(code::map()),
        codes: Table::from_vec(codes),
        bases: Table::from_vec(bases),
        pointers: Table::from_vec(pointers),
        levels: builder.levels.map(Chunks::finish),
    })
}

fn check(what: &'static str, limit: u64, needed: u64) -> Result<(), BuildError> {
    if needed > limit {
        return Err(BuildError::Limit { engine: NAME, what, limit, needed });
    }
    Ok(())
}

/// The chunks of a level during the build.
struct Chunks<P: Pointer> {
    sparse: Vec<P::Sparse>,
    dense: Vec<Dense>,
    very_dense: Vec<VeryDense>,
    pointers: Vec<P>,
}

impl<P: Pointer> Default for Chunks<P> {
    fn default() -> Self {
        Self { sparse: vec![], dense: vec![], very_dense: vec![], pointers: vec![] }
    }
}

impl<P: Pointer> Chunks<P> {
    fn finish(self) -> Level<P> {
        Level {
            sparse: Table::from_vec(self.sparse),
            dense: Table::from_vec(self.dense),
            very_dense: Table::from_vec(self.very_dense),
            pointers: Table::from_vec(self.pointers),
        }
    }
}

/// The first slot of a leaf or of a root, and its pointer.
type Head<P> = (usize, P);

/// A code word before its offset is known. The offset of a row is counted from the last base index.
#[derive(Clone, Copy)]
enum Group {
    Row(usize),
    Direct(u32),
}

struct Builder<P: Pointer> {
    ranges: Vec<Range<u32>>,
    /// The range that contains the current address.
    at: usize,
    /// The masks of the map table's rows.
    rows: Vec<u16>,
    levels: [Chunks<P>; 2],
}

impl<P: Pointer> Builder<P> {
    /// The heads of a node of this level, 0 to 2, which begins at `first`. Also builds the chunks below the
    /// node.
    fn heads(&mut self, level: usize, first: u32) -> Vec<Head<P>> {
        let (slots, shift) = [(1 << 16, 16), (256, 8), (256, 0)][level];
        let mut heads = Vec::new();
        let mut slot = 0usize;
        while slot < slots {
            let start = first | (slot as u32) << shift;
            let range = self.ranges[self.at];
            if range.last < start | ((1u32 << shift) - 1) {
                heads.push((slot, self.chunk(level + 1, start)));
                slot += 1;
                continue;
            }
            // Whole slots with one answer are divided into aligned blocks.
            let covered = ((u64::from(range.last - first) + 1) >> shift) as usize;
            let end = covered.min(slots);
            let pointer = P::new(Target::Hop, range.hop.to_bits().wrapping_add(1) as usize);
            while slot < end {
                heads.push((slot, pointer));
                let aligned = if slot == 0 { slots } else { 1 << slot.trailing_zeros() };
                slot += aligned.min(1 << (end - slot).ilog2());
            }
            if range.last == (first | ((end - 1) as u32) << shift) | ((1u32 << shift) - 1) {
                self.at += 1;
            }
        }
        heads
    }

    /// The chunk of a slot that longer routes divide.
    fn chunk(&mut self, level: usize, first: u32) -> P {
        let heads = self.heads(level, first);
        let chunks = &mut self.levels[level - 1];
        if heads.len() <= 8 {
            chunks.sparse.push(sparse(&heads));
            return P::new(Target::Sparse, chunks.sparse.len() - 1);
        }
        let first_pointer = chunks.pointers.len() as u32;
        let mut pointers = Vec::new();
        let (groups, starts) = self.codes(&heads, 16, &mut pointers);
        let chunks = &mut self.levels[level - 1];
        chunks.pointers.extend(pointers);
        let place = [first_pointer as u16, (first_pointer >> 16) as u16];
        if heads.len() <= 64 {
            let mut dense = [0; 18];
            dense[..16].copy_from_slice(&offsets(groups, &starts, 16));
            dense[16..].copy_from_slice(&place);
            chunks.dense.push(dense);
            P::new(Target::Dense, chunks.dense.len() - 1)
        } else {
            let mut very_dense = [0; 20];
            very_dense[..16].copy_from_slice(&offsets(groups, &starts, 4));
            very_dense[16..18].copy_from_slice(&place);
            for pair in 0..2 {
                very_dense[18 + pair] = (starts[8 * pair] | starts[8 * pair + 4] << 8) as u16;
            }
            chunks.very_dense.push(very_dense);
            P::new(Target::VeryDense, chunks.very_dense.len() - 1)
        }
    }

    /// The groups of a node, how many pointers lie before each, and the pointers that are needed.
    fn codes(
        &self,
        heads: &[Head<P>],
        count: usize,
        pointers: &mut Vec<P>,
    ) -> (Vec<Group>, Vec<usize>) {
        let (mut groups, mut starts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut rest, mut last) = (heads, None);
        for group in 0..count {
            let own = rest.partition_point(|(slot, _)| slot / 16 == group);
            let (own, others) = rest.split_at(own);
            rest = others;
            let mask = own.iter().fold(0u16, |mask, (slot, _)| mask | 1 << (slot % 16));
            starts.push(pointers.len());
            if own.len() > 1 {
                let row = self.rows.binary_search(&mask);
                groups.push(Group::Row(row.expect("leaves are aligned blocks")));
                pointers.extend(own.iter().map(|(_, pointer)| pointer));
            } else {
                // A leaf of 16 slots or more, which begins in this group or an earlier one.
                last = own.first().or(last);
                let (_, pointer) = last.expect("slot 0 has a head");
                groups.push(Group::Direct(pointer.parts().1 as u32));
            }
            last = own.last().or(last);
        }
        (groups, starts)
    }
}

/// The code words of groups, of which `share` have a base index in common.
fn offsets(groups: Vec<Group>, starts: &[usize], share: usize) -> Vec<u16> {
    let word = |(i, group)| match group {
        Group::Row(number) => row(number, starts[i] - starts[i - i % share]),
        Group::Direct(code) => {
            debug_assert!(code <= DIRECT_MOST);
            direct(code)
        }
    };
    groups.into_iter().enumerate().map(word).collect()
}

/// Eight heads, the last one repeated.
fn sparse<P: Pointer>(heads: &[Head<P>]) -> P::Sparse {
    let mut chunk: P::Sparse = bytemuck::Zeroable::zeroed();
    let words = chunk.as_mut();
    let mut slots = [0; 8];
    for i in 0..8 {
        let (slot, pointer) = heads[i.min(heads.len() - 1)];
        slots[i] = slot as u8;
        words[8 / size_of::<P>() + i] = pointer;
    }
    bytemuck::cast_slice_mut(words)[..8].copy_from_slice(&slots);
    chunk
}
