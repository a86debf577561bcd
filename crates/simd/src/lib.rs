//! The machine-specific parts of fibula's engines: [`Isa`] detection and [`Caches`], kernels compiled once for
//! each instruction set, compare-and-rank over cache lines, vectors of words ([`Row`], [`Lanes`]),
//! prefetching, aligned and huge-page [`Table`]s, a clock where there is one ([`Stopwatch`]), addresses from text
//! ([`parse_v4`], [`parse_v6`]), and the places of separators in text ([`byte_marks`]).
//! The crate has no notion of prefixes.
//!
//! # How a kernel is written
//!
//! A hot loop is written once, as the `run` method of a [`Kernel`], over the operations of [`Simd`].
//! The engine turns an [`Isa`] into a [`Level`] when it is built and calls [`Level::run`] for each
//! batch: one predictable branch, behind which the loop has been compiled with the instruction set's
//! features. A level can only be made on a machine that has the instructions, so holding one is the
//! proof that running them is sound, and the kernels need no `unsafe` for it. So are the vectors: an
//! instruction set makes them, and other crates cannot implement the traits.
//!
//! ```
//! use fibula_simd::{Isa, Kernel, Simd};
//!
//! /// How many keys of a cache line are below another key.
//! struct CountBelow<'a>(&'a [u64; 8], u64);
//!
//! impl Kernel for CountBelow<'_> {
//!     type Output = u32;
//!     #[inline(always)] // so that it is compiled into each instruction set's own entry function
//!     fn run<S: Simd>(self, simd: S) -> u32 {
//!         simd.rank64(self.0, simd.splat64(self.1))
//!     }
//! }
//!
//! let line = [1, 3, 5, 7, 9, 11, u64::MAX, u64::MAX];
//! for isa in Isa::available() {
//!     assert_eq!(isa.level().run(CountBelow(&line, 6)), 3);
//! }
//! ```

mod address;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod caches;
mod crc;
mod decimals;
mod gathers;
mod hexadecimals;
mod huge;
mod isa;
mod kernel;
mod lanes;
mod marks;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pages;
mod prefetch;
mod row;
mod stopwatch;
mod table;

/// Keeps other crates from implementing the traits that prove something.
mod sealed {
    pub trait Sealed {}
}

pub use address::{parse_v4, parse_v4_at, parse_v6, parse_v6_at};
#[cfg(target_arch = "x86_64")]
pub use avx2::{Avx2, Avx2Row};
#[cfg(target_arch = "x86_64")]
pub use avx512::{Avx512, Avx512HalfRow, Avx512Row};
pub use caches::Caches;
pub use crc::crc32c;
pub use decimals::{decimal_bytes, decimal_marks};
pub use hexadecimals::{hex_groups, hex_marks};
pub use huge::{huge_bytes, huge_pages_off};
pub use isa::{Isa, IsaError};
pub use kernel::{Kernel, Level, Scalar, Simd};
#[cfg(target_arch = "aarch64")]
pub use lanes::NeonLanes;
#[cfg(target_arch = "x86_64")]
pub use lanes::{Avx2Lanes, Avx512Lanes};
pub use lanes::{Lanes, One, Permutations, Word};
pub use marks::{byte_marks, digit_marks, unprintable_marks};
#[cfg(target_arch = "aarch64")]
pub use neon::{Neon, NeonRow};
pub use prefetch::{prefetch_read, prefetch_read_l2};
pub use row::{Row, RowOffsets, ScalarRow, load_rows, read_row};
pub use stopwatch::Stopwatch;
pub use table::Table;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
