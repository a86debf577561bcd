//! Where hashes point to in a filter's bits, for vectors of them.

use fibula_simd::{Lanes, Word, prefetch_read, prefetch_read_l2};

use super::Bits;

/// The positions of keys in a filter's bits, for vector loops.
#[derive(Clone, Copy)]
pub struct BitPositions<'a> {
    /// At least `bits` bits.
    words: &'a [u64],
    /// At most 2^31.
    bits: u32,
    /// By how much a hash is shifted to be a position, if they are a power of two.
    shift: Option<u32>,
    /// Whether words are prefetched into the first-level cache.
    is_near: bool,
}

impl<'a> BitPositions<'a> {
    pub fn new(bits: Bits<'a>) -> Self {
        let parameters = bits.parameters;
        assert!(bits.words.len() >= parameters.words(), "words for every bit");
        Self {
            words: bits.words,
            bits: parameters.bits(),
            shift: parameters.shift(),
            is_near: false,
        }
    }

    /// These, prefetched into the first-level cache (`true`) or the second-level one.
    pub fn near(self, is_near: bool) -> Self {
        Self { is_near, ..self }
    }

    /// [`crate::Parameters::position`] over vectors: in the low 32 bits of each lane, the high ones are zero.
    #[inline(always)]
    pub fn positions<V: Lanes>(self, hashes: V) -> V {
        match self.shift {
            Some(shift) if !V::Word::WIDE => hashes.srl(shift),
            _ => hashes.mulhi(self.bits),
        }
    }

    /// Which hashes point at bits that are set.
    #[inline(always)]
    pub fn test<V: Lanes>(self, hashes: V) -> u16 {
        // SAFETY: the positions are high halves of products with `bits`, or hashes shifted to that width,
        // so below `bits`; the table has as many bits (`new`), and a shape has at most 2^31.
        unsafe { self.positions(hashes).test(self.words) }
    }

    /// Prefetches the words that the hashes point at. Into the second-level cache unless asked otherwise: prefetches
    /// into the first level gain little while its few line fill buffers are in use.
    #[inline(always)]
    pub fn prefetch<V: Lanes>(self, hashes: V) {
        let mut at = [V::Word::default(); 16];
        self.positions(hashes).srl(6).store(&mut at, 0);
        // Decided once a vector, and always alike: a second set of loops would double their code.
        if self.is_near {
            at[..V::N].iter().for_each(|at| prefetch_read(self.words, at.low() as usize));
        } else {
            at[..V::N].iter().for_each(|at| prefetch_read_l2(self.words, at.low() as usize));
        }
    }
}
