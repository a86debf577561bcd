//! Bloom filters: sets that answer "certainly not" or "probably", in a few bits a key, for keys of 32 to 512 bits and
//! for many of them at once. The crate has no notion of addresses and packets; the lookup scheme of Bloomfwd and the
//! subtables of a flow cache use it.
//! | filter | description | when to use it |
//! |---|---|---|
//! | [`Filter`] | plain: `k` positions of one array of bits | keys are only added; it fits the second-level cache |
//! | [`CountingFilter`] | a plain one, and counters of 4 bits | keys are also removed |
//! | [`BlockedFilter`] | all bits of a key in half a cache line | it is larger than that; many keys pass |
//!
//! ```text
//!   insert 42 (k = 3)                        test 7
//!   h1 = 9, h2 = 13, of 16 bits              h1 = 6, h2 = 3
//!   positions, modulo 16: 9, 6, 3            positions 6, 9, 12
//!
//!   position   0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
//!   bits       .  .  .  1  .  .  1  .  .  1  .  .  .  .  .  .
//!                                ^        ^        ^ not set: 7 is certainly not in
//! ```
//! [`Filter::probe`] takes keys with payloads (the number of a packet, of a row), and returns those that pass,
//! compacted. The algorithm is a [`Form`]: the scalar loop, the vectors of 256 bits with
//! a table of permutations, the same in 512 bits (the naive step that HPBF leaves out), HPBF (*highly vectorised Bloom
//! filter*) with the expanding loads of AVX-512, or our own in stages, which [`Plan::best`] uses. All let the same keys
//! pass, and so do all instruction sets; the tests compare every form on every one. Keys of several words, as packet
//! headers are, come in [`Columns`] ([`Filter::probe_columns`]): they are hashed to 64 bits, and the same forms test
//! those.
//!
//! ```
//! use fibula_filter::{CountingFilter, Hash, Parameters};
//!
//! // One million subtables' keys, of which 1 % of the others may pass: 9.6 bits a key.
//! let mut filter = CountingFilter::new(Parameters::for_rate(1_000_000, 0.01), Hash::Crc32c);
//! for key in 0..1000u64 {
//!     filter.insert(key);
//! }
//! filter.remove(3u64);
//! let keys = [1u64, 2, 3, 4, 5_000_000];
//! let (mut passed, mut packets) = ([0; 5], [0; 5]);
//! let n = filter.filter().probe(&keys, &[10, 11, 12, 13, 14], &mut passed, &mut packets);
//! assert_eq!(packets[..n], [10, 11, 13]);
//! ```
//!
//! # Invariants
//!
//! - A key that was inserted (and not removed) passes, in every form: there are no false negatives.
//! - A probe never allocates and never fails; filters of the same shape, hash and keys are equal bit
//!   for bit, whatever the instruction set.
//! - Positions are the high bits of `hash * bits`, so they are below the number of bits, for any
//!   size. Therefore the vector loops can read without a check.
//!
//! # Limits
//!
//! 2^31 bits, 32 positions (1 GiB for a blocked filter): positions come from hashes of 32 bits. Keys of
//! several words have up to 512 bits and are distinguished by 64 bits of hash, with [`Hash::Crc32c`] by 32:
//! among *n* keys another one then passes with a probability of *n* / 2^32 at least. The hash functions do not protect
//! against chosen keys that collide.

mod blocked;
mod counters;
mod counting;
mod families;
mod hash;
mod keys;
mod loops;
mod parameters;
mod plain;
mod probe;

/// Steps of hash functions over vectors of any width, for keys whose words others collect.
pub mod steps {
    pub use crate::families::{crc_finish, fmix32, murmur_block};
}

pub use blocked::BlockedFilter;
pub use counters::Counters;
pub use counting::CountingFilter;
pub use fibula_simd::{Word, crc32c};
pub use hash::{Hash, fmix32, fmix64, h2};
pub use keys::{Columns, Key};
pub use loops::WordKey;
pub use parameters::Parameters;
pub use plain::Filter;
pub use probe::{Bits, Form, Parting, Plan, Prefetch, hash_all};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
