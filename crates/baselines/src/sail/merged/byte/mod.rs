mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::Table;

use super::build::{check_chunks, merge};
use super::load::check_level_16;
use super::{Config, Entry, name};
use crate::sail::division::{Chunk, Division, byte};
use crate::sail::{at_most, hop};
use fibula_engines::common::{each, table};
use update::Free;

/// SAIL_L with next hops of one byte; see the [module above](super).
pub struct SailL8 {
    bcn16: Table<u16>,
    bn24: Table<Chunk<u8>>,
    /// Where `bn24` is 0: the chunk of `n32`. The first of them is empty.
    c24: Table<Chunk<u16>>,
    n32: Table<Chunk<u8>>,
    /// The chunks that no node names, from the first patch on.
    free: Option<Free>,
}

impl Lookup<u32> for SailL8 {
    #[inline]
    fn lookup(&self, addr: u32) -> Hop {
        let entry = self.bcn16[(addr >> 16) as usize];
        let chunk = entry.chunk(self.bn24.len());
        let Some(codes) = self.bn24.get(chunk) else { return entry.hop() };
        let code = codes[byte(addr >> 8)];
        if code != 0 {
            return hop(code);
        }
        let below = self.c24[chunk][byte(addr >> 8)];
        hop(self.n32[usize::from(below)][byte(addr)])
    }

    /// One after the other.
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        each(addrs, hops, |addr| self.lookup(addr));
    }

    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for SailL8 {
    const NAME: &'static str = "sail-l8";
    type Config = Config;

    fn build(routes: &Routes<u32>, _: &Config) -> Result<Self, BuildError> {
        let hops = routes.hop_count();
        at_most(Self::NAME, "next hops", u8::MAX.into(), hops as usize)?;
        let division = Division::of(&[routes]);
        check_chunks::<u16>(Self::NAME, "chunks of level 24", hops, division.chunks24())?;
        at_most(Self::NAME, "chunks of level 32", u16::MAX.into(), division.chunks32())?;
        let codes = division.paint(routes);
        let c24 = division.c24().map(|chunk| chunk.map_or(0, |chunk| chunk as u16 + 1));
        let bytes = |codes: Vec<u32>| codes.into_iter().map(|code| code as u8);
        let empty = [0; size_of::<Chunk<u8>>()];
        Ok(Self {
            bcn16: merge(&codes.n16, division.c16(), division.chunks24()),
            bn24: chunks(bytes(codes.n24)),
            c24: chunks(c24),
            n32: chunks(empty.into_iter().chain(bytes(codes.n32))),
            free: None,
        })
    }
}

/// Elements by chunk.
fn chunks<T: bytemuck::Pod>(elements: impl Iterator<Item = T>) -> Table<Chunk<T>> {
    Table::from_slice(elements.collect::<Vec<T>>().as_chunks().0)
}

impl Follow<u32> for SailL8 {
    /// As that of [`SailL`](super::SailL): O(entries and routes under the changed prefixes). [`Patched::Rebuild`] when
    /// hops or chunks no longer fit into their entries.
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        Ok(update::patch(self, routes, changed))
    }
}

impl Persist<u32> for SailL8 {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: name::BCN16, bytes: self.bcn16.as_bytes() },
            TableRef { name: name::BN24, bytes: self.bn24.as_bytes() },
            TableRef { name: name::C24, bytes: self.c24.as_bytes() },
            TableRef { name: name::N32, bytes: self.n32.as_bytes() },
        ]
    }

    fn load(tables: &dyn TableSource, hop_count: u32, _: &Config) -> Result<Self, LoadError> {
        let this = Self {
            bcn16: table(tables, name::BCN16)?,
            bn24: table(tables, name::BN24)?,
            c24: table(tables, name::C24)?,
            n32: table(tables, name::N32)?,
            free: None,
        };
        check_level_16(&this.bcn16, this.bn24.len(), hop_count)?;
        if this.c24.len() != this.bn24.len() {
            return Err(LoadError::new(name::C24, "has another length than BN24"));
        }
        if this.c24.as_flattened().iter().any(|&chunk| usize::from(chunk) >= this.n32.len()) {
            return Err(LoadError::new(name::C24, "names a chunk that is not there"));
        }
        for (name, codes) in [(name::BN24, &this.bn24), (name::N32, &this.n32)] {
            if codes.as_flattened().iter().any(|&code| u32::from(code) > hop_count) {
                return Err(LoadError::new(name, "a hop is out of range"));
            }
        }
        Ok(this)
    }
}
