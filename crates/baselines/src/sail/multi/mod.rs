//! **SAIL_M**: many tables over one set of bitmaps (VRFs, virtual routers); see the
//! [module above](super) for the paper.
//!
//! # The scheme
//!
//! The tries of all tables (FIBs) are laid over each other. A node is solid, or divided, if it is so in
//! any of them, and each table is pushed to the leaves of this common trie. So one set of bitmaps and
//! chunks serves all, and only the next hops are each table's own: `N[fib][index]`.
//!
//! ```text
//!   FIB 0: 10.0.0.0/8 → A,  10.1.2.0/24 → C       FIB 1: 10.0.0.0/8 → E,  10.2.0.0/15 → F
//!
//!   C16 (shared)       B24 (shared), chunk 1      N16[0]  N16[1]     N24[0], chunk 1   N24[1], chunk 1
//!     10.0: leaf         0 .. 255: 0        10.0: A       E            0: A              0: E
//!     10.1: chunk 1                         10.1: -       -            1: A              1: E
//!     10.2: leaf                            10.2: A       F            2: C              2: E
//!     10.3: leaf                            10.3: A       F            3: A              3: E
//!
//!   lookup 10.1.2.3 in FIB 1: C16[10.1] is chunk 1; bit 2 of B24 is clear: N24[1][chunk 1, 2] says E
//! ```
//!
//! A set bit of `B24` means that the node is divided once more: its place in `N24` then holds the chunk of `N32`, the
//! same in every FIB, in the room where otherwise the hop is.
//! # Memory
//!
//! The tables share the parts that the paper keeps on the chip, `B_16`, `C_16` and `B_24`: 2.13 MB at most for any
//! number of tables, which stay in a CPU's cache whatever table is looked up. The next hops of each table take as much
//! memory as a SAIL_L of all tables' routes together: for similar tables a little more than a SAIL_L for each. The
//! example `sail_many_fibs` prints both, and times lookups over many tables.
//!
//! The engine `sail-m` of the list is the overlay of one table: an engine answers for one. A program that has several
//! calls [`SailM::overlay`] and names the table with each address.
//!
//! # Updates
//!
//! A change of one table ([`SailM::follow_in`]) rewrites the next hops of that table under the prefix. It divides nodes
//! that no table divided before, with the other tables' answers in the new places, and unites those that no table
//! divides any more. A free chunk is used again; without any, `B24` and the arrays of all tables grow by a quarter.
//!
//! # Limits
//!
//! 65,535 hops a table, 65,535 chunks at level 24, 65,536 at level 32.
//!
//! ```
//! use fibula_core::{Hop, Routes};
//! use fibula_baselines::sail::SailM;
//!
//! let fibs: [Routes<u32>; 2] = [
//!     [("10.0.0.0/8".parse()?, Hop::new(0)), ("10.1.2.0/24".parse()?, Hop::new(2))]
//!         .into_iter().collect(),
//!     [("10.0.0.0/8".parse()?, Hop::new(4)), ("10.2.0.0/15".parse()?, Hop::new(5))]
//!         .into_iter().collect(),
//! ];
//! let sail = SailM::overlay(&fibs).unwrap();
//! assert_eq!(sail.lookup_in(0, 0x0a01_0203), Hop::new(2));
//! assert_eq!(sail.lookup_in(1, 0x0a01_0203), Hop::new(4));
//! assert_eq!(sail.lookup_in(1, 0x0a02_0203), Hop::new(5));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

mod update;

use fibula_core::{
    BuildError, Engine, Follow, Hop, LoadError, Lookup, Memory, Patched, Persist, Prefix, Routes,
    TableRef, TableSource,
};
use fibula_simd::Table;

use super::division::{CHUNK, Division};
use super::{at_most, hop};
use fibula_engines::common::{each, table};
use update::Free;

const NAME: &str = "sail-m";
const C16: &str = "C16";
const B24: &str = "B24";
const N16: &str = "N16";
const N24: &str = "N24";
const N32: &str = "N32";

/// Many tables over one set of bitmaps; see the [module](self).
pub struct SailM {
    fibs: usize,
    /// Shared: for each node of level 16 its chunk, counted from 1, or 0 for a leaf.
    c16: Table<u16>,
    /// Shared: a bit for each place of level 24, set where the node is divided.
    b24: Table<u64>,
    /// `N[fib][index]`, and so the others: all places of a FIB, then those of the next.
    n16: Table<u16>,
    n24: Table<u16>,
    n32: Table<u16>,
    /// Places of a FIB in `n24` and in `n32`.
    places: [usize; 2],
    /// The chunks that no node names, from the first patch on.
    free: Option<Free>,
}

impl SailM {
    /// Compiles the tables. Lookups name them by their position in the slice.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if a table has too many hops, or all of them together too many chunks.
    pub fn overlay(fibs: &[Routes<u32>]) -> Result<Self, BuildError> {
        let hops = fibs.iter().map(Routes::hop_count).max().unwrap_or(0);
        at_most(NAME, "next hops", u16::MAX.into(), hops as usize)?;
        let division = Division::of(&fibs.iter().collect::<Vec<_>>());
        at_most(NAME, "chunks of level 24", u16::MAX.into(), division.chunks24())?;
        at_most(NAME, "chunks of level 32", 1 << 16, division.chunks32())?;

        let mut b24 = vec![0u64; division.chunks24() * CHUNK / 64];
        let divided = division.c24().enumerate().filter(|(_, chunk)| chunk.is_some());
        divided.for_each(|(place, _)| b24[place / 64] |= 1 << (place % 64));
        let c16 = division.c16().map(|chunk| chunk.map_or(0, |chunk| chunk as u16 + 1));
        let (mut n16, mut n24, mut n32) = (Vec::new(), Vec::new(), Vec::new());
        for fib in fibs {
            let codes = division.paint(fib);
            n16.extend(codes.n16.iter().map(|&code| code as u16));
            let merged = codes.n24.iter().zip(division.c24());
            n24.extend(merged.map(|(&code, chunk)| chunk.map_or(code as u16, |c| c as u16)));
            n32.extend(codes.n32.iter().map(|&code| code as u16));
        }
        Ok(Self {
            fibs: fibs.len(),
            c16: Table::from_vec(c16.collect()),
            b24: Table::from_vec(b24),
            n16: Table::from_vec(n16),
            places: [division.chunks24() * CHUNK, division.chunks32() * CHUNK],
            n24: Table::from_vec(n24),
            n32: Table::from_vec(n32),
            free: None,
        })
    }

    /// Number of tables.
    pub fn fibs(&self) -> usize {
        self.fibs
    }

    /// The hop of the longest prefix of table `vrf` that covers `addr`, or [`Hop::NONE`].
    ///
    /// # Panics
    /// If there is no such table.
    #[inline]
    pub fn lookup_in(&self, vrf: usize, addr: u32) -> Hop {
        assert!(vrf < self.fibs, "table {vrf} of {}", self.fibs);
        self.find(vrf, addr)
    }

    /// Looks up `addrs[i]` in table `vrf` into `hops[i]`.
    ///
    /// # Panics
    /// If there is no such table, or the slices differ in length.
    pub fn lookup_batch_in(&self, vrf: usize, addrs: &[u32], hops: &mut [Hop]) {
        assert!(vrf < self.fibs, "table {vrf} of {}", self.fibs);
        each(addrs, hops, |addr| self.find(vrf, addr));
    }

    /// Looks up `addrs[i]` in table `vrfs[i]` into `hops[i]`.
    ///
    /// # Panics
    /// If a table is not there, or the slices differ in length.
    pub fn lookup_batch_mixed(&self, vrfs: &[u16], addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        assert_eq!(addrs.len(), vrfs.len(), "as many tables as addresses");
        for ((hop, &addr), &vrf) in hops.iter_mut().zip(addrs).zip(vrfs) {
            *hop = self.lookup_in(vrf.into(), addr);
        }
    }

    /// Updates table `vrf` to `routes`, as [`Follow::follow`] does with an engine's only table. O(entries and routes
    /// under the changed prefixes, and the entries of all tables in nodes that the change divides or unites).
    /// [`Patched::Rebuild`] when hops or chunks no longer fit into their entries.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn follow_in(
        &mut self,
        vrf: usize,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Patched {
        assert!(vrf < self.fibs, "table {vrf} of {}", self.fibs);
        update::patch(self, vrf, routes, changed)
    }

    #[inline(always)]
    fn find(&self, vrf: usize, addr: u32) -> Hop {
        let node = (addr >> 16) as usize;
        let chunk = usize::from(self.c16[node]);
        if chunk == 0 {
            return hop(self.n16[vrf << 16 | node]);
        }
        let place = (chunk - 1) * CHUNK + (addr >> 8 & 0xff) as usize;
        let code = self.n24[vrf * self.places[0] + place];
        if self.b24[place / 64] >> (place % 64) & 1 == 0 {
            return hop(code);
        }
        let place = usize::from(code) * CHUNK + (addr & 0xff) as usize;
        hop(self.n32[vrf * self.places[1] + place])
    }
}

/// Of the first table, as the engine `sail-m` has it alone.
impl Lookup<u32> for SailM {
    fn lookup(&self, addr: u32) -> Hop {
        self.lookup_in(0, addr)
    }

    /// One after the other.
    fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
        self.lookup_batch_in(0, addrs, hops);
    }

    /// What all tables share comes first.
    fn memory(&self) -> Memory {
        Memory::of_tables(&self.tables())
    }
}

impl Engine<u32> for SailM {
    const NAME: &'static str = NAME;
    type Config = ();

    fn build(routes: &Routes<u32>, (): &()) -> Result<Self, BuildError> {
        Self::overlay(std::slice::from_ref(routes))
    }
}

/// Of the first table.
impl Follow<u32> for SailM {
    fn follow(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        Ok(self.follow_in(0, routes, changed))
    }
}

impl Persist<u32> for SailM {
    fn tables(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: C16, bytes: self.c16.as_bytes() },
            TableRef { name: B24, bytes: self.b24.as_bytes() },
            TableRef { name: N16, bytes: self.n16.as_bytes() },
            TableRef { name: N24, bytes: self.n24.as_bytes() },
            TableRef { name: N32, bytes: self.n32.as_bytes() },
        ]
    }

    /// Stored tables of one FIB. Entries are checked as lookups read them: a set bit makes a chunk of a hop.
    fn load(tables: &dyn TableSource, hop_count: u32, (): &()) -> Result<Self, LoadError> {
        let mut this = Self {
            fibs: 1,
            c16: table(tables, C16)?,
            b24: table(tables, B24)?,
            n16: table(tables, N16)?,
            n24: table(tables, N24)?,
            n32: table(tables, N32)?,
            places: [0; 2],
            free: None,
        };
        this.places = [this.n24.len(), this.n32.len()];
        let chunks = this.n24.len() / CHUNK;
        for (name, whole) in [
            (C16, this.c16.len() == 1 << 16),
            (N16, this.n16.len() == 1 << 16),
            (N24, this.n24.len().is_multiple_of(CHUNK)),
            (B24, this.b24.len() * 64 == this.n24.len()),
            (N32, this.n32.len().is_multiple_of(CHUNK)),
        ] {
            if !whole {
                return Err(LoadError::new(name, "has not the length that it must have"));
            }
        }
        if this.c16.iter().any(|&chunk| usize::from(chunk) > chunks) {
            return Err(LoadError::new(C16, "names a chunk that is not there"));
        }
        let is_divided = |place: usize| this.b24[place / 64] >> (place % 64) & 1 != 0;
        let below = |code: u16| (usize::from(code) + 1) * CHUNK <= this.n32.len();
        let is_hop = |code: u16| u32::from(code) <= hop_count;
        for (name, sound) in [
            (N16, this.n16.iter().all(|&code| is_hop(code))),
            (
                N24,
                this.n24.iter().enumerate().all(|(place, &code)| {
                    if is_divided(place) { below(code) } else { is_hop(code) }
                }),
            ),
            (N32, this.n32.iter().all(|&code| is_hop(code))),
        ] {
            if !sound {
                return Err(LoadError::new(
                    name,
                    "names a chunk that is not there, or a hop out of range",
                ));
            }
        }
        Ok(this)
    }
}
