use fibula_core::Hop;

use super::code::{Code, mapped, read};
use super::pointer::{Target, heads, pointers};
use super::{Level, Lulea, Pointer};
use fibula_engines::common::hop;

/// The paper's search, level by level; `touch` gets the numbers of accesses to the tables.
#[inline(always)]
pub(super) fn lookup<P: Pointer>(tables: &Lulea<P>, addr: u32, mut touch: impl FnMut(u32)) -> Hop {
    let group = (addr >> 20) as usize;
    let mut pointer = match read(tables.codes[group]) {
        Code::Direct(code) => {
            touch(1);
            return hop(code);
        }
        Code::Row { row, offset } => {
            touch(4);
            let heads = mapped(&tables.map, row, (addr >> 16 & 15) as usize);
            tables.pointers[usize::from(tables.bases[group / 4]) + offset + heads]
        }
    };
    for (level, shift) in tables.levels.iter().zip([8, 0]) {
        let slot = (addr >> shift) as u8;
        let (kind, index) = pointer.parts();
        pointer = match kind {
            Target::Hop => return hop(index as u32),
            Target::Sparse => {
                touch(2);
                let chunk = &level.sparse[index];
                pointers::<P>(chunk)[last_head(heads::<P>(chunk), slot)]
            }
            Target::Dense => {
                let chunk = &level.dense[index];
                match dense(&tables.map, level, chunk, |_| 0, slot) {
                    Ok(pointer) => {
                        touch(3);
                        pointer
                    }
                    Err(code) => {
                        touch(1);
                        return hop(code);
                    }
                }
            }
            Target::VeryDense => {
                let chunk = &level.very_dense[index];
                let base = |group: usize| base_index(chunk, group / 4);
                match dense(&tables.map, level, &chunk[..18], base, slot) {
                    Ok(pointer) => {
                        touch(4);
                        pointer
                    }
                    Err(code) => {
                        touch(1);
                        return hop(code);
                    }
                }
            }
        };
    }
    // Pointers of level 3 are hops.
    hop(pointer.parts().1 as u32)
}

/// The pointer of a dense chunk's slot, or the code of its hop.
#[inline(always)]
fn dense<P: Pointer>(
    map: &[u64],
    level: &Level<P>,
    chunk: &[u16],
    base: impl Fn(usize) -> usize,
    slot: u8,
) -> Result<P, u32> {
    let group = usize::from(slot >> 4);
    match read(chunk[group]) {
        Code::Direct(code) => Err(code),
        Code::Row { row, offset } => {
            let heads = mapped(map, row, (slot & 15).into());
            Ok(level.pointers[first_pointer(chunk) + base(group) + offset + heads])
        }
    }
}

/// The place of a chunk's first pointer.
#[inline(always)]
pub(super) fn first_pointer(chunk: &[u16]) -> usize {
    (u32::from(chunk[17]) << 16 | u32::from(chunk[16])) as usize
}

/// A base index of a very dense chunk.
#[inline(always)]
pub(super) fn base_index(chunk: &[u16; 20], quarter: usize) -> usize {
    (chunk[18 + quarter / 2] >> (8 * (quarter % 2)) & 0xff).into()
}

/// The last of eight ascending heads up to the slot, found by a step of bisection and a linear search.
#[inline(always)]
fn last_head(heads: &[u8], slot: u8) -> usize {
    let from = if heads[4] <= slot { 4 } else { 0 };
    from + heads[from + 1..from + 4].iter().take_while(|&&head| head <= slot).count()
}
