//! Changes of [`SailL8`] in place.

use fibula_core::{Patched, Prefix, Routes};
use fibula_simd::Table;

use super::SailL8;
use crate::sail::division::CHUNK;
use crate::sail::merged::Entry;
use crate::sail::painter::{self, Canvas, is_even, unnamed};

/// The chunks that no node names: of level 24 as entries of `BCN16`, since that array grows at its front, of level 32
/// by their number.
#[derive(Default)]
pub(super) struct Free {
    level24: Vec<u16>,
    level32: Vec<usize>,
}

impl Free {
    fn of(sail: &SailL8) -> Self {
        let chunks = sail.bn24.len();
        let named = sail.bcn16.iter().map(|entry| entry.chunk(chunks));
        let level24 = unnamed(chunks, named.filter(|&chunk| chunk < chunks));
        let codes = sail.bn24.as_flattened().iter().zip(sail.c24.as_flattened());
        let below = codes.filter(|(code, _)| **code == 0).map(|(_, &chunk)| chunk.into());
        // The first one stays empty.
        let below = below.chain([0]).filter(|&chunk| chunk < sail.n32.len());
        Self {
            level24: level24.into_iter().map(|chunk| u16::of_chunk(chunk, chunks)).collect(),
            level32: unnamed(sail.n32.len(), below),
        }
    }
}

/// Paints the changed prefixes; a build is due for hops or chunks beyond the limits, whose error names them.
pub(super) fn patch(sail: &mut SailL8, routes: &Routes<u32>, changed: &[Prefix<u32>]) -> Patched {
    let hops = routes.hop_count();
    let most = (u16::MAX as u32).saturating_sub(hops) as usize;
    if hops > u8::MAX.into() || sail.bn24.len() > most {
        return Patched::Rebuild;
    }
    let free = sail.free.take().unwrap_or_else(|| Free::of(sail));
    let mut painted = Painted { sail, free, most };
    if painter::patch(&mut painted, routes, changed).is_none() {
        return Patched::Rebuild;
    }
    let free = painted.free;
    sail.free = Some(free);
    Patched::Applied
}

struct Painted<'a> {
    sail: &'a mut SailL8,
    free: Free,
    /// Chunks of level 24 that `BCN16` has room for beside the codes.
    most: usize,
}

impl SailL8 {
    /// Chunks in use at levels 24 and 32.
    pub fn chunks(&self) -> [usize; 2] {
        let free = self.free.as_ref().map_or([0; 2], |f| [f.level24.len(), f.level32.len()]);
        [self.bn24.len() - free[0], self.n32.len() - 1 - free[1]]
    }
}

impl Canvas for Painted<'_> {
    fn chunk24(&self, node: usize) -> Option<usize> {
        let chunk = self.sail.bcn16[node].chunk(self.sail.bn24.len());
        (chunk < self.sail.bn24.len()).then_some(chunk)
    }

    fn chunk32(&self, place: usize) -> Option<usize> {
        let (chunk, at) = (place / CHUNK, place % CHUNK);
        let below = self.sail.c24[chunk][at];
        (self.sail.bn24[chunk][at] == 0 && below != 0).then_some(below.into())
    }

    fn set16(&mut self, node: usize, code: u32) {
        self.sail.bcn16.to_mut()[node] = code as u16;
    }

    fn set24(&mut self, place: usize, code: u32) {
        let (chunk, at) = (place / CHUNK, place % CHUNK);
        self.sail.bn24.to_mut()[chunk][at] = code as u8;
        self.sail.c24.to_mut()[chunk][at] = 0;
    }

    fn set32(&mut self, chunk: usize, first: usize, last: usize, code: u32) {
        self.sail.n32.to_mut()[chunk][first..=last].fill(code as u8);
    }

    fn divide16(&mut self, node: usize) -> Option<usize> {
        let sail = &mut *self.sail;
        if self.free.level24.is_empty() {
            let len = sail.bn24.len();
            let more = (len / 4 + 16).min(self.most - len);
            // The numbers of chunks are the largest entries, so the arrays grow at their front.
            sail.bn24 = Table::with(len + more, |new| new[more..].copy_from_slice(&sail.bn24));
            sail.c24 = Table::with(len + more, |new| new[more..].copy_from_slice(&sail.c24));
            let chunks = (0..more).map(|chunk| u16::of_chunk(chunk, len + more));
            self.free.level24.extend(chunks);
        }
        let entry = self.free.level24.pop()?;
        let chunk = entry.chunk(sail.bn24.len());
        let code = std::mem::replace(&mut sail.bcn16.to_mut()[node], entry);
        sail.bn24.to_mut()[chunk].fill(code as u8);
        sail.c24.to_mut()[chunk].fill(0);
        Some(chunk)
    }

    fn divide24(&mut self, place: usize) -> Option<usize> {
        let sail = &mut *self.sail;
        if self.free.level32.is_empty() {
            let len = sail.n32.len();
            let more = (len / 4 + 16).min((1 << 16) - len);
            sail.n32 = Table::with_room(&sail.n32, len + more);
            self.free.level32.extend((len..len + more).rev());
        }
        let below = self.free.level32.pop()?;
        let (chunk, at) = (place / CHUNK, place % CHUNK);
        let code = std::mem::replace(&mut sail.bn24.to_mut()[chunk][at], 0);
        sail.n32.to_mut()[below].fill(code);
        sail.c24.to_mut()[chunk][at] = below as u16;
        Some(below)
    }

    fn unite16(&mut self, node: usize) {
        let Some(chunk) = self.chunk24(node) else { return };
        let sail = &mut *self.sail;
        let is_leaf = sail.c24[chunk].iter().all(|&below| below == 0);
        if is_leaf && is_even(&sail.bn24[chunk]) {
            let entry = &mut sail.bcn16.to_mut()[node];
            self.free.level24.push(*entry);
            *entry = sail.bn24[chunk][0].into();
            // Stored chunks have codes of the table alone, whether they are in use or not.
            sail.bn24.to_mut()[chunk].fill(0);
        }
    }

    fn unite24(&mut self, place: usize) {
        let Some(below) = self.chunk32(place) else { return };
        let sail = &mut *self.sail;
        if is_even(&sail.n32[below]) {
            let (chunk, at) = (place / CHUNK, place % CHUNK);
            sail.bn24.to_mut()[chunk][at] = sail.n32[below][0];
            sail.c24.to_mut()[chunk][at] = 0;
            sail.n32.to_mut()[below].fill(0);
            self.free.level32.push(below);
        }
    }
}
