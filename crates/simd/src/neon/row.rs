use core::arch::aarch64::*;

use super::masks::mask32;
use super::{Neon, mask_half};
use crate::lanes::neon::pack;
use crate::sealed::Sealed;
use crate::{Row, ScalarRow};

/// Words in two vectors or four. Made by a [`Neon`] alone, which proves that the machine has NEON: the fact behind
/// every `unsafe` here.
#[derive(Clone, Copy, Debug)]
pub struct NeonRow<const V: usize>([uint32x4_t; V]);

impl<const V: usize> NeonRow<V> {
    #[inline(always)]
    pub(super) fn new(_: Neon, word: u32) -> Self {
        // SAFETY: the token proves that the machine has NEON.
        Self([unsafe { vdupq_n_u32(word) }; V])
    }
    /// A plain loop: `array::from_fn` and `map` are not always inlined.
    #[inline(always)]
    fn each(mut self, vector: impl Fn(usize) -> uint32x4_t) -> Self {
        for i in 0..V {
            self.0[i] = vector(i);
        }
        self
    }
    #[inline(always)]
    fn with(self, other: Self, vector: impl Fn(uint32x4_t, uint32x4_t) -> uint32x4_t) -> Self {
        self.each(|i| vector(self.0[i], other.0[i]))
    }
    /// The first words of these, which are as many as the row's.
    #[inline(always)]
    pub(super) fn read<const N: usize>(self, words: &[u32; N]) -> Self {
        const { assert!(N == 4 * V) };
        let words = words.as_ptr();
        // SAFETY: see `NeonRow`; there are four words a vector, and the loads have no alignment to keep.
        self.each(|i| unsafe { vld1q_u32(words.add(4 * i)) })
    }
}

impl<const V: usize> Sealed for NeonRow<V> {}

/// Each word shifted up by its own number of bits, or down if that is negative; by 32 and more it is 0.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn shift(words: uint32x4_t, by: int32x4_t) -> uint32x4_t {
    // SAFETY: the caller's.
    unsafe { vshlq_u32(words, by) }
}

/// The words of a table of so many vectors, by the bytes of places in it.
macro_rules! pick {
    (4, $table:expr, $bytes:expr) => {
        vqtbl4q_u8(uint8x16x4_t($table(0), $table(1), $table(2), $table(3)), $bytes)
    };
    (2, $table:expr, $bytes:expr) => {
        vqtbl2q_u8(uint8x16x2_t($table(0), $table(1)), $bytes)
    };
}

/// A row of so many words in so many vectors, with the function that makes a mask of them.
macro_rules! row {
    ($words:literal, $vectors:tt, $mask:ident) => {
        // SAFETY: the operations are as they are described.
        unsafe impl Row<$words> for NeonRow<$vectors> {
            #[inline(always)]
            fn words(self) -> [u32; $words] {
                let mut words = [0; $words];
                for (to, vector) in words.as_chunks_mut::<4>().0.iter_mut().zip(self.0) {
                    // SAFETY: see `NeonRow`; the four words can be written.
                    unsafe { vst1q_u32(to.as_mut_ptr(), vector) };
                }
                words
            }
            #[inline(always)]
            fn load(self, words: &[u32; $words]) -> Self {
                self.read(words)
            }
            #[inline(always)]
            fn halves(self, words: &[u16; $words]) -> Self {
                let words = words.as_ptr();
                // SAFETY: see `NeonRow`; there are four words a vector, and the loads have no alignment to keep.
                self.each(|i| unsafe { vmovl_u16(vld1_u16(words.add(4 * i))) })
            }
            #[inline(always)]
            fn splat(self, word: u32) -> Self {
                // SAFETY: see `NeonRow`.
                self.each(|_| unsafe { vdupq_n_u32(word) })
            }
            #[inline(always)]
            fn high_words(self, numbers: &[u128; $words]) -> (Self, Self) {
                let numbers = numbers.as_ptr().cast::<u32>();
                let (mut first, mut second) = (self, self);
                for i in 0..$vectors {
                    // The words of four numbers, the lowest of each first.
                    // SAFETY: see `NeonRow`; there are four numbers a vector.
                    let words = unsafe { vld4q_u32(numbers.add(16 * i)) };
                    (first.0[i], second.0[i]) = (words.3, words.2);
                }
                (first, second)
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(other, |a, b| unsafe { vandq_u32(a, b) })
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(other, |a, b| unsafe { vorrq_u32(a, b) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(other, |a, b| unsafe { vaddq_u32(a, b) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(other, |a, b| unsafe { vsubq_u32(a, b) })
            }
            #[inline(always)]
            fn shl(self, by: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(by, |a, b| unsafe { shift(a, vreinterpretq_s32_u32(b)) })
            }
            #[inline(always)]
            fn shr(self, by: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.with(by, |a, b| unsafe { shift(a, vnegq_s32(vreinterpretq_s32_u32(b))) })
            }
            #[inline(always)]
            fn shr_long(self, high: Self, by: Self) -> Self {
                self.each(|i| {
                    // From 32 bits on, the high word is shifted down, too.
                    // SAFETY: see `NeonRow`.
                    unsafe {
                        let by = vreinterpretq_s32_u32(by.0[i]);
                        let across = vsubq_s32(vdupq_n_s32(32), by);
                        vorrq_u32(shift(self.0[i], vnegq_s32(by)), shift(high.0[i], across))
                    }
                })
            }
            #[inline(always)]
            fn if_below(self, test: Self, limit: Self, other: Self) -> Self {
                // SAFETY: see `NeonRow`.
                self.each(|i| unsafe {
                    vbslq_u32(vcltq_u32(test.0[i], limit.0[i]), self.0[i], other.0[i])
                })
            }
            #[inline(always)]
            fn if_top(self, test: Self, other: Self) -> Self {
                self.each(|i| {
                    // SAFETY: see `NeonRow`.
                    unsafe {
                        let top = vcltzq_s32(vreinterpretq_s32_u32(test.0[i]));
                        vbslq_u32(top, self.0[i], other.0[i])
                    }
                })
            }
            #[inline(always)]
            fn top_bits(self) -> u16 {
                // SAFETY: see `NeonRow`.
                let top = self.each(|i| unsafe { vcltzq_s32(vreinterpretq_s32_u32(self.0[i])) });
                // SAFETY: see `NeonRow`.
                unsafe { $mask(top.0) }
            }
            #[inline(always)]
            fn pack(self, mask: u16) -> Self {
                let (mut packed, mut len) = ([0; $words + 4], 0);
                for (i, &vector) in self.0.iter().enumerate() {
                    let set = mask >> (4 * i) & 15;
                    let to: &mut [u32; 4] = packed[len..].first_chunk_mut().expect("room");
                    // SAFETY: see `NeonRow`; a vector has the size of the words.
                    unsafe { vst1q_u32(to.as_mut_ptr(), pack(vector, set)) };
                    len += set.count_ones() as usize;
                }
                self.load(packed.first_chunk().expect("a row"))
            }
            #[inline(always)]
            fn pick(self, places: Self) -> Self {
                self.each(|i| {
                    // SAFETY: see `NeonRow`.
                    unsafe {
                        let table = |i: usize| vreinterpretq_u8_u32(self.0[i]);
                        let place = vandq_u32(places.0[i], vdupq_n_u32($words - 1));
                        let bytes = vdupq_n_u32(0x0302_0100);
                        let bytes = vmlaq_u32(bytes, place, vdupq_n_u32(0x0404_0404));
                        vreinterpretq_u32_u8(pick!($vectors, table, vreinterpretq_u8_u32(bytes)))
                    }
                })
            }
            #[inline(always)]
            fn bit_lengths(self) -> Self {
                // SAFETY: see `NeonRow`.
                self.each(|i| unsafe { vsubq_u32(vdupq_n_u32(32), vclzq_u32(self.0[i])) })
            }
            #[inline(always)]
            unsafe fn gather(self, table: *const u32) -> Self {
                // SAFETY: the caller's.
                self.load(&unsafe { ScalarRow(self.words()).gather(table) }.0)
            }
            #[inline(always)]
            unsafe fn gather_if_top(self, test: Self, table: *const u32, other: Self) -> Self {
                let places = self.if_top(test, self.splat(0));
                // SAFETY: the caller's; other lanes read the first word.
                unsafe { places.gather(table) }.if_top(test, other)
            }
        }
    };
}

row!(16, 4, mask32);
row!(8, 2, mask_half);
