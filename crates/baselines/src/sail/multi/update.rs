//! Changes of one FIB in place. Its own next hops change; the shape, which all share, only where the FIB divides a node
//! that no other one does, or where none does any more.

use fibula_core::{Patched, Prefix, Routes};
use fibula_simd::Table;

use super::SailM;
use crate::sail::division::CHUNK;
use crate::sail::painter::{self, Canvas, is_even, unnamed};

/// Bits of a word of `B24`.
const WORD: usize = u64::BITS as usize;

/// The chunks that no node names.
#[derive(Clone, Default)]
pub(super) struct Free {
    level24: Vec<usize>,
    level32: Vec<usize>,
}

impl Free {
    fn of(sail: &SailM) -> Self {
        let named = sail.c16.iter().filter_map(|&chunk| usize::from(chunk).checked_sub(1));
        let divided = (0..sail.places[0]).filter(|&place| sail.is_divided(place));
        let below = divided.map(|place| usize::from(sail.n24[place]));
        Self {
            level24: unnamed(sail.places[0] / CHUNK, named),
            level32: unnamed(sail.places[1] / CHUNK, below),
        }
    }
}

/// Paints a changed FIB; a build is due for hops or chunks beyond the limits, whose error names them.
pub(super) fn patch(
    sail: &mut SailM,
    vrf: usize,
    routes: &Routes<u32>,
    changed: &[Prefix<u32>],
) -> Patched {
    if routes.hop_count() > u16::MAX.into() {
        return Patched::Rebuild;
    }
    let free = sail.free.take().unwrap_or_else(|| Free::of(sail));
    let mut fib = Fib { sail, vrf, free };
    if painter::patch(&mut fib, routes, changed).is_none() {
        return Patched::Rebuild;
    }
    let free = fib.free;
    sail.free = Some(free);
    Patched::Applied
}

/// The FIB that changes.
struct Fib<'a> {
    sail: &'a mut SailM,
    vrf: usize,
    free: Free,
}

impl SailM {
    fn is_divided(&self, place: usize) -> bool {
        self.b24[place / WORD] >> (place % WORD) & 1 != 0
    }

    /// Where a chunk of level 24 lies in each FIB's part of `N24`.
    fn chunks24(&self, chunk: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let places = self.places[0];
        (0..self.fibs).map(move |fib| fib * places + chunk * CHUNK).map(|at| at..at + CHUNK)
    }

    /// The same of level 32.
    fn chunks32(&self, chunk: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let places = self.places[1];
        (0..self.fibs).map(move |fib| fib * places + chunk * CHUNK).map(|at| at..at + CHUNK)
    }

    /// Chunks in use at levels 24 and 32.
    pub fn chunks(&self) -> [usize; 2] {
        let free = self.free.as_ref().map_or([0; 2], |f| [f.level24.len(), f.level32.len()]);
        [self.places[0] / CHUNK - free[0], self.places[1] / CHUNK - free[1]]
    }
}

impl Canvas for Fib<'_> {
    fn chunk24(&self, node: usize) -> Option<usize> {
        usize::from(self.sail.c16[node]).checked_sub(1)
    }

    fn chunk32(&self, place: usize) -> Option<usize> {
        self.sail.is_divided(place).then(|| self.sail.n24[place].into())
    }

    fn set16(&mut self, node: usize, code: u32) {
        self.sail.n16.to_mut()[self.vrf << 16 | node] = code as u16;
    }

    fn set24(&mut self, place: usize, code: u32) {
        let place = self.vrf * self.sail.places[0] + place;
        self.sail.n24.to_mut()[place] = code as u16;
    }

    fn set32(&mut self, chunk: usize, first: usize, last: usize, code: u32) {
        let at = self.vrf * self.sail.places[1] + chunk * CHUNK;
        self.sail.n32.to_mut()[at..][first..=last].fill(code as u16);
    }

    fn divide16(&mut self, node: usize) -> Option<usize> {
        let sail = &mut *self.sail;
        if self.free.level24.is_empty() {
            // Chunks are counted from 1, in 16 bits.
            let first = sail.places[0] / CHUNK;
            let count = more(first, u16::MAX.into());
            sail.n24 = grown(&sail.n24, sail.fibs, count * CHUNK);
            sail.b24 = grown(&sail.b24, 1, count * CHUNK / WORD);
            sail.places[0] += count * CHUNK;
            self.free.level24.extend((first..first + count).rev());
        }
        let chunk = self.free.level24.pop()?;
        for (fib, at) in sail.chunks24(chunk).enumerate() {
            let code = std::mem::take(&mut sail.n16.to_mut()[fib << 16 | node]);
            sail.n24.to_mut()[at].fill(code);
        }
        sail.c16.to_mut()[node] = chunk as u16 + 1;
        Some(chunk)
    }

    fn divide24(&mut self, place: usize) -> Option<usize> {
        let sail = &mut *self.sail;
        if self.free.level32.is_empty() {
            let first = sail.places[1] / CHUNK;
            let count = more(first, 1 << 16);
            sail.n32 = grown(&sail.n32, sail.fibs, count * CHUNK);
            sail.places[1] += count * CHUNK;
            self.free.level32.extend((first..first + count).rev());
        }
        let chunk = self.free.level32.pop()?;
        let (places, n32) = (sail.places[0], sail.chunks32(chunk));
        for (fib, at) in n32.enumerate() {
            let entry = &mut sail.n24.to_mut()[fib * places + place];
            sail.n32.to_mut()[at].fill(std::mem::replace(entry, chunk as u16));
        }
        sail.b24.to_mut()[place / WORD] |= 1 << (place % WORD);
        Some(chunk)
    }

    fn unite16(&mut self, node: usize) {
        let Some(chunk) = self.chunk24(node) else { return };
        let sail = &mut *self.sail;
        let words = chunk * CHUNK / WORD..(chunk + 1) * CHUNK / WORD;
        let is_leaf = sail.b24[words].iter().all(|&bits| bits == 0);
        if !is_leaf || !sail.chunks24(chunk).all(|at| is_even(&sail.n24[at])) {
            return;
        }
        for (fib, at) in sail.chunks24(chunk).enumerate() {
            sail.n16.to_mut()[fib << 16 | node] = sail.n24[at.start];
            sail.n24.to_mut()[at].fill(0);
        }
        sail.c16.to_mut()[node] = 0;
        self.free.level24.push(chunk);
    }

    fn unite24(&mut self, place: usize) {
        let Some(chunk) = self.chunk32(place) else { return };
        let sail = &mut *self.sail;
        if !sail.chunks32(chunk).all(|at| is_even(&sail.n32[at])) {
            return;
        }
        for (fib, at) in sail.chunks32(chunk).enumerate() {
            sail.n24.to_mut()[fib * sail.places[0] + place] = sail.n32[at.start];
            sail.n32.to_mut()[at].fill(0);
        }
        sail.b24.to_mut()[place / WORD] &= !(1 << (place % WORD));
        self.free.level32.push(chunk);
    }
}

/// By how many chunks an array of so many grows.
fn more(chunks: usize, most: usize) -> usize {
    (chunks / 4 + 16).min(most - chunks)
}

/// An array of as many parts, each with `more` zeros behind it.
fn grown<T: bytemuck::Pod>(array: &[T], parts: usize, more: usize) -> Table<T> {
    let len = array.len() / parts;
    Table::with(array.len() + parts * more, |new: &mut [T]| {
        for part in 0..parts {
            new[part * (len + more)..][..len].copy_from_slice(&array[part * len..][..len]);
        }
    })
}
