//! Probes a filter with many keys at once.
//!
//! The vector loops are kernels over [`fibula_simd::Lanes`], and compiled for each instruction set,
//! width of key, hash function, number of ways, with and without prefetching: all that a probe of one
//! filter never changes.

mod part;
mod positions;
#[cfg(feature = "papers")]
mod refill;
mod staged;

use std::fmt;
use std::marker::PhantomData;

use fibula_simd::{Isa, Level, Word};

use crate::families::{HashFamily, of_family};
use crate::hash::{Hash, nth};
use crate::{Key, Parameters, WordKey};
use staged::Staged;

pub(crate) use part::{HashAll, Part};
pub use part::{Parting, hash_all};
#[cfg(test)]
pub(crate) use positions::BitPositions;

/// How a batch of keys is tested. All forms let the same keys pass; they differ in speed, and in the
/// order of passing keys. The papers' forms are there with the feature `papers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One key after the other, to its first bit that is not set. In the order of the keys.
    Scalar,
    /// Vectors of 256 bits whose lanes move to the next position or the next key on their own, by a table of
    /// permutations (Polychroniou and Ross), with which HPBF is compared. At most two ways.
    #[cfg(feature = "papers")]
    Permute,
    /// [`Form::Permute`] with vectors of 512 bits and nothing else changed, HPBF's *naive* form: the table
    /// has 65,536 rows, 1 MiB. At most two ways.
    #[cfg(feature = "papers")]
    Naive,
    /// HPBF: vectors of 512 bits, whose finished lanes are filled by an expanding load. One to eight
    /// ways.
    #[cfg(feature = "papers")]
    Refill,
    /// Ours: all keys of a block at their first position, those that pass at the second, and so on. No vector waits for
    /// the one before. In the order of the keys; needs AVX2 or AVX-512.
    Staged,
}

impl Form {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Scalar,
        #[cfg(feature = "papers")]
        Self::Permute,
        #[cfg(feature = "papers")]
        Self::Naive,
        #[cfg(feature = "papers")]
        Self::Refill,
        Self::Staged,
    ];

    /// `"scalar"` or `"staged"`; of the papers `"permute"`, `"naive"`, `"hpbf"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(feature = "papers")]
            Self::Permute => "permute",
            #[cfg(feature = "papers")]
            Self::Naive => "naive",
            #[cfg(feature = "papers")]
            Self::Refill => "hpbf",
            Self::Staged => "staged",
        }
    }

    /// Whether there is such a loop for this instruction set.
    pub const fn runs_on(self, isa: Isa) -> bool {
        match self {
            Self::Scalar => true,
            Self::Staged => !matches!(isa, Isa::Scalar),
            #[cfg(feature = "papers")]
            Self::Permute => !matches!(isa, Isa::Scalar),
            #[cfg(feature = "papers")]
            Self::Naive | Self::Refill => matches!(isa, Isa::Avx512),
        }
    }

    /// The maximum number of ways to which it is unrolled.
    pub const fn max_ways(self) -> usize {
        match self {
            Self::Scalar | Self::Staged => 1,
            #[cfg(feature = "papers")]
            Self::Permute | Self::Naive => 2,
            #[cfg(feature = "papers")]
            Self::Refill => 8,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A form with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The loop.
    pub form: Form,
    /// The independent vectors in the loop, each with its part of the keys; brought into
    /// 1..=[`Form::max_ways`].
    pub ways: usize,
    /// Whether words are prefetched, for filters larger than the second-level cache. The scalar form never
    /// prefetches.
    pub prefetch: Prefetch,
}

/// Into which cache the words of a vector are asked for, before the vectors of a round are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Nothing is asked for.
    Off,
    /// Into the first-level cache, which has few buffers for lines on their way: 10 to 24 a core.
    L1,
    /// Into the second-level cache.
    L2,
}

impl Prefetch {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::L1, Self::L2];

    /// `"off"`, `"l1"`, `"l2"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::L1 => "l1",
            Self::L2 => "l2",
        }
    }
}

impl Plan {
    /// The fastest known form for a filter of this size in bytes.
    pub fn best(bytes: usize, isa: Isa) -> Self {
        let form = if isa == Isa::Scalar { Form::Scalar } else { Form::Staged };
        let prefetch = if bytes > PREFETCH_FROM { Prefetch::L2 } else { Prefetch::Off };
        Self { form, ways: 1, prefetch }
    }
}

/// The bytes of a filter from which asking ahead pays: it lies in the third-level cache.
pub(crate) const PREFETCH_FROM: usize = 1 << 20;

/// The bits of a filter that another value owns: a [`Filter`](crate::Filter), or an engine with the bits of several
/// filters in one table.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    /// `parameters.words()` of them.
    pub(crate) words: &'a [u64],
    pub(crate) parameters: Parameters,
    pub(crate) hash: Hash,
}

impl<'a> Bits<'a> {
    /// These words as a filter of this shape. `None` if they are fewer or more than
    /// [`Parameters::words`].
    #[inline]
    pub fn new(words: &'a [u64], parameters: Parameters, hash: Hash) -> Option<Self> {
        (words.len() == parameters.words()).then_some(Self { words, parameters, hash })
    }

    /// Whether the key may have been inserted; always true if it was.
    #[inline]
    pub fn contains<K: Key>(self, key: K) -> bool {
        of_family!(self.hash, F => self.contains_from::<_, K::By<F>>(key.lane::<F>(), 0))
    }

    /// Tests many keys, separates those that pass from those that fail, and returns the number that pass. For testing
    /// several filters one after the other, as in Bloomfwd: keys that fail are tested with the next filter.
    ///
    /// ```
    /// use fibula_filter::{Bits, Filter, Hash, Parting, Parameters};
    /// use fibula_simd::Isa;
    ///
    /// let mut filter = Filter::new(Parameters::for_rate(10, 1e-6), Hash::H2);
    /// filter.insert(0x0a01_0200u32);
    /// let (mut keys, mut rows) = ([0x0a01_0203, 7, 0x0a01_0299u32], [0, 1, 2]);
    /// let [mut passed, mut passed_rows, mut hashes] = [[0; 3]; 3];
    /// let n = filter.bits().part(Isa::detect().level(), Parting {
    ///     mask: 0xffff_ff00,
    ///     keys: &mut keys,
    ///     rows: &mut rows,
    ///     passed: &mut passed,
    ///     passed_rows: &mut passed_rows,
    ///     hashes: &mut hashes,
    /// });
    /// assert_eq!((&passed_rows[..n], &rows[..3 - n]), (&[0, 2][..], &[1][..]));
    /// assert_eq!(hashes[0], Hash::H2.nth(0x0a01_0200u32, 0));
    /// ```
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn part<T: WordKey>(self, level: Level, keys: Parting<'_, T>) -> usize {
        keys.assert();
        T::part(self, keys, level)
    }

    /// Whether the lane's bits are set, from its `index`th position on.
    #[inline]
    pub(crate) fn contains_from<T: Word, F: HashFamily>(self, lane: T, index: u32) -> bool {
        (index..self.parameters.hashes()).all(|index| self.is_set::<T, F>(lane, index))
    }

    /// Whether the bit at the lane's `index`th position is set.
    #[inline]
    pub(crate) fn is_set<T: Word, F: HashFamily>(self, lane: T, index: u32) -> bool {
        let at = self.parameters.position(nth::<T, F>(lane, index));
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }
}

/// A batch, and the filter's bits: `B` is how they lie. The payloads are as many as the keys, the outputs at least as
/// many.
pub(crate) struct Job<'a, T, B = Bits<'a>> {
    pub bits: B,
    pub keys: &'a [T],
    pub payloads: &'a [T],
    pub out_keys: &'a mut [T],
    pub out_payloads: &'a mut [T],
    /// Whether a loop that prefetches does so into the first-level cache.
    pub is_near: bool,
}

impl<'a, T, B> Job<'a, T, B> {
    /// # Panics
    /// If there are not as many payloads as keys, or less room than keys.
    pub fn new(
        bits: B,
        keys: &'a [T],
        payloads: &'a [T],
        out_keys: &'a mut [T],
        out_payloads: &'a mut [T],
    ) -> Self {
        assert_eq!(keys.len(), payloads.len(), "a payload for each key");
        assert!(out_keys.len() >= keys.len(), "room for every key");
        assert!(out_payloads.len() >= keys.len(), "room for every payload");
        Self { bits, keys, payloads, out_keys, out_payloads, is_near: false }
    }
}

impl<T: Word> Job<'_, T> {
    /// Runs it, and returns how many passed. If the form is not available, the 256-bit baseline
    /// or the scalar form is taken.
    pub fn run<F: HashFamily>(mut self, plan: Plan, level: Level) -> usize {
        let job = &mut self;
        job.is_near = plan.prefetch == Prefetch::L1;
        let passed = match (plan.form, plan.prefetch != Prefetch::Off) {
            (Form::Scalar, _) => None,
            (Form::Staged, false) => level.run(Staged::<_, F, false>(job, PhantomData)),
            (Form::Staged, true) => level.run(Staged::<_, F, true>(job, PhantomData)),
            #[cfg(feature = "papers")]
            _ => refill::run::<T, F>(job, plan, level),
        };
        passed.unwrap_or_else(|| self.scalar::<F>(0, self.keys.len(), 0))
    }

    /// Tests the keys `from..to` one by one, with `n` already passed; how many then.
    pub fn scalar<F: HashFamily>(&mut self, from: usize, to: usize, mut n: usize) -> usize {
        for (&key, &payload) in self.keys[from..to].iter().zip(&self.payloads[from..to]) {
            if self.bits.contains_from::<T, F>(key, 0) {
                self.pass(key, payload, &mut n);
            }
        }
        n
    }

    /// Gives out a key that passed as the `n`th.
    #[inline]
    pub fn pass(&mut self, key: T, payload: T, n: &mut usize) {
        (self.out_keys[*n], self.out_payloads[*n]) = (key, payload);
        *n += 1;
    }
}
