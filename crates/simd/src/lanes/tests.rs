use super::*;
use crate::{Isa, Kernel, Scalar, Simd};

/// Every operation that lanes do by themselves, on sixteen words and sixteen others.
struct All<'a, T>(&'a [T; 16], &'a [T; 16], u32);

impl<T: Word> Kernel for All<'_, T> {
    type Output = Vec<[T; 16]>;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Vec<[T; 16]> {
        let Self(a, b, by) = self;
        let mut all = vec![[T::default(); 16]; 22];
        for at in (0..16).step_by(S::Lanes::<T>::N) {
            let (a, b) = (S::Lanes::load(simd, a, at), S::Lanes::load(simd, b, at));
            let mut each = vec![
                a.add(b),
                a.mul(b),
                a.and(b),
                a.xor(b),
                a.or(b),
                a.srl(by),
                a.sll(by),
                a.rotate(1 + by % 31),
                a.mulhi(by.wrapping_mul(0x85eb_ca6b)),
                a.words(by.wrapping_mul(0x9e37_79b9)),
                S::Lanes::splat(a.simd(), T::of_u64(u64::MAX / 3)),
            ];
            if T::WIDE {
                each.extend([
                    a.add64(b),
                    a.mul64(b),
                    a.srl64(by + by),
                    a.sll64(by + by),
                    a.rotate64(1 + by * 2),
                    a.mul_low(b),
                    a.bit64(),
                    a.low_twice(),
                    a.high_twice(),
                    a.longs(u64::MAX / 5),
                ]);
            }
            each.iter().zip(&mut all).for_each(|(lanes, to)| lanes.store(to, at));
        }
        all
    }
}

/// Operations that move lanes: masks of equal ones, packed lanes, and lanes refilled and cleared.
struct Moves<'a, T>(&'a [T; 16], &'a [T; 16], u16);

impl<T: Word> Kernel for Moves<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(words, others, mask) = self;
        let lanes = S::Lanes::<T>::N;
        let (a, b) = (S::Lanes::load(simd, words, 0), S::Lanes::load(simd, others, 0));
        let chosen: Vec<usize> = (0..lanes).filter(|i| mask >> i & 1 == 1).collect();
        assert_eq!(S::Lanes::<T>::count(mask), chosen.len());
        let equal = a.equal(b);
        assert!((0..lanes).all(|i| equal >> i & 1 == u16::from(words[i] == others[i])));
        let stored = |lanes: S::Lanes<T>| {
            let mut to = [T::default(); 16];
            lanes.store(&mut to, 0);
            to
        };
        let packed: Vec<T> = chosen.iter().map(|i| words[*i]).collect();
        let table = Permutations::get();
        assert_eq!(stored(a.pack(mask))[..chosen.len()], packed);
        assert_eq!(stored(a.pack_by(table, mask))[..chosen.len()], packed);
        // The lanes that stay and the fresh ones, wherever they are; two vectors move alike.
        let stay = (0..lanes).filter(|i| !chosen.contains(i)).map(|i| (words[i], others[i]));
        let fresh = (0..chosen.len()).map(|i| (others[i], words[i]));
        let mut expected: Vec<(T, T)> = stay.clone().chain(fresh).collect();
        expected.sort_unstable();
        for [x, y] in [
            [a.refill(b, mask), b.refill(a, mask)],
            [a.refill_by(table, b, mask), b.refill_by(table, a, mask)],
        ] {
            let mut got: Vec<(T, T)> = stored(x).into_iter().zip(stored(y)).take(lanes).collect();
            got.sort_unstable();
            assert_eq!(got, expected);
        }
        let zero = (T::default(), T::default());
        let mut expected: Vec<(T, T)> = stay.chain(chosen.iter().map(|_| zero)).collect();
        let cleared = stored(a.clear(mask)).into_iter().zip(stored(b.clear(mask)));
        let mut got: Vec<(T, T)> = cleared.take(lanes).collect();
        expected.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, expected);
    }
}

/// Bits of a table, and words of either width loaded to lanes of 64 bits.
struct Reads<'a, T>(&'a [T; 16], &'a [u64]);

impl<T: Word> Kernel for Reads<'_, T> {
    type Output = (u16, [u64; 16], [u64; 16]);
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (u16, [u64; 16], [u64; 16]) {
        let (mut bits, mut long, mut picked) = (0, [0; 16], [T::default(); 16]);
        let table: Vec<T> = self.1.iter().map(|word| T::of_u64(*word)).collect();
        for at in (0..16).step_by(S::Lanes::<T>::N) {
            // SAFETY: the numbers are below 2^12, and the table has as many bits.
            let set = unsafe { S::Lanes::load(simd, self.0, at).test(self.1) };
            bits |= (set & u16::MAX >> (16 - S::Lanes::<T>::N)) << at;
            S::Lanes::load(simd, self.0, at).pick(&table).store(&mut picked, at);
        }
        for at in (0..16).step_by(S::Lanes::<u64>::N) {
            S::Lanes::<u64>::load_long(simd, self.0, at).store(&mut long, at);
        }
        (bits, long, picked.map(Word::to_u64))
    }
}

fn check<T: Word>() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let ends = [0, u64::MAX, 1 << 63, 1 << 31, 1 << 32, u64::from(u32::MAX)];
        ends.get((state >> 60) as usize).copied().unwrap_or(state ^ state >> 29)
    };
    let table: Vec<u64> = (0..64).map(|_| next()).collect();
    for round in 0..300u32 {
        let a: [T; 16] = [(); 16].map(|()| T::of_u64(next()));
        let mut b: [T; 16] = [(); 16].map(|()| T::of_u64(next()));
        b[round as usize % 16] = a[round as usize % 16];
        let places = a.map(|word| T::of_low(word.low() % 4096));
        let bits = (0..16).fold(0, |bits, i| {
            let at = places[i].low() as usize;
            bits | ((table[at / 64] >> (at % 64) & 1) as u16) << i
        });
        let expected = Scalar.run(All(&a, &b, round % 32));
        for isa in Isa::available() {
            let level = isa.level();
            assert_eq!(level.run(All(&a, &b, round % 32)), expected, "{isa} {a:x?} {b:x?}");
            level.run(Moves(&a, &b, next() as u16));
            let read = level.run(Reads(&places, &table));
            let picked = places.map(|place| T::of_u64(table[place.low() as usize % 64]).to_u64());
            assert_eq!(read, (bits, places.map(Word::to_u64), picked), "{isa} {places:?}");
        }
    }
}

#[test]
fn every_instruction_set_does_alike() {
    check::<u32>();
    check::<u64>();
}

/// One lane without vectors, by Rust's own operations: the reference for the others.
#[test]
fn one_lane_does_as_integers_do() {
    let (a, b) = (0x8000_0003_ffff_fff5u64, 0x0000_0007_8000_0009u64);
    let word = |x: One<u64>| x.to_u64();
    let (x, y) = (One::new(a), One::new(b));
    assert_eq!(word(x.add(y)), 0x8000_000a_7fff_fffe);
    assert_eq!(word(x.mul(y)), 0x8000_0015_7fff_ff9d);
    assert_eq!(word(x.mulhi(0x8000_0009)), (0xffff_fff5 * 0x8000_0009) >> 32);
    assert_eq!((word(x.srl(4)), word(x.sll(4))), (0x0800_0000_0fff_ffff, 0x0000_0030_ffff_ff50));
    assert_eq!(word(x.rotate(4)), 0x0000_0038_ffff_ff5f);
    assert_eq!(word(x.mul64(y)), a.wrapping_mul(b));
    assert_eq!(word(x.mul_low(y)), 0xffff_fff5 * 0x8000_0009);
    assert_eq!((word(x.bit64()), word(y.bit64())), (1 << 53, 1 << 9));
    assert_eq!(word(x.low_twice()), 0xffff_fff5_ffff_fff5);
    assert_eq!(word(x.high_twice()), 0x8000_0003_8000_0003);
}

/// The instruction, the table, and blocks' bits.
struct Scalars<'a>(u32, u64, &'a [u32; 8], &'a [u32; 8]);

impl Kernel for Scalars<'_> {
    type Output = (u32, u32, bool);
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (u32, u32, bool) {
        let Self(crc, word, block, factors) = self;
        let block = simd.has_bits(block, crc, factors);
        (simd.crc32c(crc, word), simd.crc32c(crc, word as u32), block)
    }
}

#[test]
fn every_instruction_set_has_the_same_crc_and_the_same_bits() {
    let factors: [u32; 8] = std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x9e37_79b9) | 1);
    let mut passing = 0;
    for i in 0..2000u32 {
        let hash = i.wrapping_mul(0x85eb_ca6b);
        let mut block = factors.map(|factor| 1 << (hash.wrapping_mul(factor) >> 27));
        // Every third block lacks a bit.
        if i % 3 == 0 {
            block[i as usize % 8] = !block[i as usize % 8];
        }
        let word = u64::from(hash) << 29 ^ 0x1234_5678_9abc_def0;
        let expected =
            (crate::crc32c(hash, word, 8), crate::crc32c(hash, word & 0xffff_ffff, 4), i % 3 != 0);
        for isa in Isa::available() {
            let got = isa.level().run(Scalars(hash, word, &block, &factors));
            assert_eq!(got, expected, "{isa} {i}");
        }
        passing += u32::from(expected.2);
    }
    assert_eq!(passing, 1333);
}

#[test]
fn vectors_beyond_a_slice_are_refused() {
    struct Load(usize);
    impl Kernel for Load {
        type Output = usize;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> usize {
            let lanes = S::Lanes::<u32>::N;
            let words = vec![0u32; lanes + self.0];
            S::Lanes::load(simd, &words, self.0);
            let beyond = std::panic::AssertUnwindSafe(|| {
                S::Lanes::load(simd, &words, self.0 + 1);
            });
            usize::from(std::panic::catch_unwind(beyond).is_err())
        }
    }
    for isa in Isa::available() {
        assert_eq!((0..20).map(|at| isa.level().run(Load(at))).sum::<usize>(), 20, "{isa}");
    }
}
