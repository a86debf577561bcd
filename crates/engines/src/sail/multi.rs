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
//! A set bit of `B24` says that the node is divided once more: its place in `N24` then holds the chunk
//! of `N32`, the same in every FIB, in the room where otherwise the hop is.
//!
//! # What it saves, and what not
//!
//! What is shared is what the paper keeps on the chip, `B_16`, `C_16` and `B_24`: 2.13 MB at most for
//! any number of tables, and in a CPU's cache it stays hot whichever table is asked. The next hops
//! take for each table as much as SAIL_L for a table as divided as all of them together: a little
//! more, for similar tables, than a SAIL_L each. The example `sail_many_fibs` prints both.
//!
//! # Limits
//!
//! 65,535 hops a table, 65,535 chunks at level 24, 65,536 at level 32.
//!
//! ```
//! use fibula_core::{Hop, Routes};
//! use fibula_engines::sail::SailM;
//!
//! let fibs: [Routes<u32>; 2] = [
//!     [("10.0.0.0/8".parse()?, Hop::new(0)), ("10.1.2.0/24".parse()?, Hop::new(2))]
//!         .into_iter().collect(),
//!     [("10.0.0.0/8".parse()?, Hop::new(4)), ("10.2.0.0/15".parse()?, Hop::new(5))]
//!         .into_iter().collect(),
//! ];
//! let sail = SailM::build(&fibs).unwrap();
//! assert_eq!(sail.lookup(0, 0x0a01_0203), Hop::new(2));
//! assert_eq!(sail.lookup(1, 0x0a01_0203), Hop::new(4));
//! assert_eq!(sail.lookup(1, 0x0a02_0203), Hop::new(5));
//! # Ok::<(), fibula_core::PrefixError>(())
//! ```

use fibula_core::{BuildError, Hop, Memory, Routes};
use fibula_simd::Table;

use super::shape::{CHUNK, Shape};
use super::{at_most, hop};

const NAME: &str = "sail-m";

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
}

impl SailM {
    /// Compiles the tables; they are asked by their place in the slice.
    ///
    /// # Errors
    /// [`BuildError::Limit`] if a table has too many hops, or all of them together too many chunks.
    pub fn build(fibs: &[Routes<u32>]) -> Result<Self, BuildError> {
        let hops = fibs.iter().map(Routes::hop_count).max().unwrap_or(0);
        at_most(NAME, "next hops", u16::MAX.into(), hops as usize)?;
        let shape = Shape::of(&fibs.iter().collect::<Vec<_>>());
        at_most(NAME, "chunks of level 24", u16::MAX.into(), shape.chunks24())?;
        at_most(NAME, "chunks of level 32", 1 << 16, shape.chunks32())?;

        let mut b24 = vec![0u64; shape.chunks24() * CHUNK / 64];
        let divided = shape.c24().enumerate().filter(|(_, chunk)| chunk.is_some());
        divided.for_each(|(place, _)| b24[place / 64] |= 1 << (place % 64));
        let c16 = shape.c16().map(|chunk| chunk.map_or(0, |chunk| chunk as u16 + 1));
        let (mut n16, mut n24, mut n32) = (Vec::new(), Vec::new(), Vec::new());
        for fib in fibs {
            let codes = shape.paint(fib);
            n16.extend(codes.n16.iter().map(|&code| code as u16));
            let merged = codes.n24.iter().zip(shape.c24());
            n24.extend(merged.map(|(&code, chunk)| chunk.map_or(code as u16, |c| c as u16)));
            n32.extend(codes.n32.iter().map(|&code| code as u16));
        }
        Ok(Self {
            fibs: fibs.len(),
            c16: Table::from_vec(c16.collect()),
            b24: Table::from_vec(b24),
            n16: Table::from_vec(n16),
            n24: Table::from_vec(n24),
            n32: Table::from_vec(n32),
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
    pub fn lookup(&self, vrf: usize, addr: u32) -> Hop {
        assert!(vrf < self.fibs, "table {vrf} of {}", self.fibs);
        self.lookup_in(vrf, addr)
    }

    /// Looks up `addrs[i]` in table `vrf` into `hops[i]`.
    ///
    /// # Panics
    /// If there is no such table, or the slices differ in length.
    pub fn lookup_batch(&self, vrf: usize, addrs: &[u32], hops: &mut [Hop]) {
        assert!(vrf < self.fibs, "table {vrf} of {}", self.fibs);
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        for (hop, &addr) in hops.iter_mut().zip(addrs) {
            *hop = self.lookup_in(vrf, addr);
        }
    }

    /// Looks up `addrs[i]` in table `vrfs[i]` into `hops[i]`.
    ///
    /// # Panics
    /// If a table is not there, or the slices differ in length.
    pub fn lookup_batch_mixed(&self, vrfs: &[u16], addrs: &[u32], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        assert_eq!(addrs.len(), vrfs.len(), "as many tables as addresses");
        for ((hop, &addr), &vrf) in hops.iter_mut().zip(addrs).zip(vrfs) {
            *hop = self.lookup(vrf.into(), addr);
        }
    }

    #[inline(always)]
    fn lookup_in(&self, vrf: usize, addr: u32) -> Hop {
        let node = (addr >> 16) as usize;
        let chunk = usize::from(self.c16[node]);
        if chunk == 0 {
            return hop(self.n16[vrf << 16 | node]);
        }
        let place = (chunk - 1) * CHUNK + (addr >> 8 & 0xff) as usize;
        let code = self.n24[vrf * (self.n24.len() / self.fibs) + place];
        if self.b24[place / 64] >> (place % 64) & 1 == 0 {
            return hop(code);
        }
        let place = usize::from(code) * CHUNK + (addr & 0xff) as usize;
        hop(self.n32[vrf * (self.n32.len() / self.fibs) + place])
    }

    /// Bytes of memory by table; what all FIBs share comes first.
    pub fn memory(&self) -> Memory {
        Memory::new([
            ("C16", self.c16.as_bytes().len()),
            ("B24", self.b24.as_bytes().len()),
            ("N16", self.n16.as_bytes().len()),
            ("N24", self.n24.as_bytes().len()),
            ("N32", self.n32.as_bytes().len()),
        ])
    }
}
