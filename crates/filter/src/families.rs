//! The hash functions, written once over vectors of any width: one lane of them is the scalar form.

use fibula_simd::{Lanes, Simd, Word};

/// 2^32 divided by the golden ratio: far apart seeds, and (being odd) a multiplier.
pub(crate) const GOLDEN: u32 = 0x9e37_79b9;
/// The prime next to it, Knuth's multiplier.
const KNUTH: u32 = 0x9e37_79b1;
/// The same for 64 bits: 2^64 divided by the golden ratio.
const KNUTH64: u64 = 0x9e37_79b9_7f4a_7c15;
/// The multiplier of H2.
pub(crate) const H2: u32 = 0x045d_9f3b;
/// The multiplier that Open vSwitch ends a CRC hash with. A CRC is linear, and the multiplication is not.
const OVS: u32 = 0x8052_04f3;

/// A [`crate::Hash`] as a type, so that loops are compiled for it. With lanes of 64 bits a hash is in the
/// low word, and anything in the high one.
pub trait HashFamily: Copy {
    /// The two hashes for double hashing; a blocked filter uses both. The second is odd where it is added again and
    /// again, so that positions in a filter of a power of two do not repeat.
    fn pair<V: Lanes>(keys: V) -> (V, V);

    /// The hash of each key of its lane's index.
    #[inline(always)]
    fn nth<V: Lanes>(keys: V, index: V) -> V {
        let (first, second) = Self::pair(keys);
        first.add(index.mul(second))
    }

    /// 64 bits for a key of several words: the halves are its pair.
    fn digest<S: KeyWords>(source: S) -> S::Lanes;
}

/// The words of keys, each key in its lane, taken in one after the other as numbers of 64 bits. Where
/// keys have an odd number of 32-bit words, the last one has zeros above.
pub trait KeyWords: Copy {
    /// The vector.
    type Lanes: Lanes<Word = u64>;
    /// The bytes of a key, a multiple of four.
    const BYTES: usize;
    /// The numbers of 64 bits of a key.
    const WORDS: usize = Self::BYTES.div_ceil(8);

    /// The `index`th number of each key.
    fn word(self, index: usize) -> Self::Lanes;

    /// A number in every lane.
    fn splat(self, number: u64) -> Self::Lanes;
}

/// The same expression for the [`HashFamily`] of a [`crate::Hash`].
macro_rules! of_family {
    ($hash:expr, $family:ident => $body:expr) => {
        of_family!(@ $hash, $family, $body; MurmurSeeded MurmurSeeded, Murmur Murmur, Knuth Knuth,
            H2 H2Hash, Crc32c Crc32c)
    };
    (@ $hash:expr, $family:ident, $body:expr; $($name:ident $type:ident),*) => {
        match $hash { $(
            $crate::Hash::$name => {
                type $family = $crate::families::$type;
                $body
            }
        )* }
    };
}
pub(crate) use of_family;

#[derive(Clone, Copy)]
pub struct MurmurSeeded;
#[derive(Clone, Copy)]
pub struct Murmur;
#[derive(Clone, Copy)]
pub struct Knuth;
#[derive(Clone, Copy)]
pub struct H2Hash;
#[derive(Clone, Copy)]
pub struct Crc32c;
/// The hash of digests, which are hashed already.
#[derive(Clone, Copy)]
pub struct Digested;

/// `(x ^ x >> by) * factor`
#[inline(always)]
fn mix<V: Lanes>(x: V, by: u32, factor: u32) -> V {
    x.xor(x.srl(by)).mul(x.words(factor))
}

/// [`fmix32`](crate::fmix32) of each word.
#[inline(always)]
pub fn fmix32<V: Lanes>(x: V) -> V {
    let x = mix(mix(x, 16, 0x85eb_ca6b), 13, 0xc2b2_ae35);
    x.xor(x.srl(16))
}

#[inline(always)]
fn fmix64<V: Lanes>(x: V) -> V {
    let mix = |x: V, factor| x.xor(x.srl64(33)).mul64(x.longs(factor));
    let x = mix(mix(x, 0xff51_afd7_ed55_8ccd), 0xc4ce_b9fe_1a85_ec53);
    x.xor(x.srl64(33))
}

#[inline(always)]
pub(crate) fn h2<V: Lanes>(x: V) -> V {
    let x = mix(mix(x, 16, H2), 16, H2);
    x.xor(x.srl(16))
}

/// Takes four bytes more into a MurmurHash3 (x86, 32 bits).
#[inline(always)]
pub fn murmur_block<V: Lanes>(hash: V, block: V) -> V {
    let block = block.mul(block.words(0xcc9e_2d51)).rotate(15);
    let hash = hash.xor(block.mul(block.words(0x1b87_3593))).rotate(13);
    hash.mul(hash.words(5)).add(hash.words(0xe654_6b64))
}

/// MurmurHash3 (x86, 32 bits) of each key's bytes, least significant first, with its lane's seed.
#[inline(always)]
pub(crate) fn murmur3<V: Lanes>(keys: V, seeds: V) -> V {
    let hash = murmur_block(seeds, keys);
    if V::Word::WIDE {
        let hash = murmur_block(hash, keys.srl64(32));
        return fmix32(hash.xor(hash.words(8)));
    }
    fmix32(hash.xor(hash.words(4)))
}

/// A hash of 32 bits, and the same turned by half.
#[inline(always)]
fn turned<V: Lanes>(first: V) -> (V, V) {
    (first, first.rotate(16).or(first.words(1)))
}

/// The halves of a 64-bit hash.
#[inline(always)]
fn halves<V: Lanes>(hash: V) -> (V, V) {
    (hash.srl64(32), hash.or(hash.words(1)))
}

impl HashFamily for MurmurSeeded {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        let index = |i| V::splat(keys.simd(), V::Word::of_low(i));
        (Self::nth(keys, index(0)), Self::nth(keys, index(1)))
    }
    #[inline(always)]
    fn nth<V: Lanes>(keys: V, index: V) -> V {
        murmur3(keys, index.mul(index.words(GOLDEN)))
    }
    /// The first two seeds, each in its half of the lane.
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        let mut hash = source.splat(GOLDEN.into());
        for index in 0..S::WORDS {
            let word = source.word(index);
            hash = murmur_block(hash, word.low_twice());
            if 8 * index + 4 < S::BYTES {
                hash = murmur_block(hash, word.high_twice());
            }
        }
        fmix32(hash.xor(hash.words(S::BYTES as u32)))
    }
}

impl HashFamily for Murmur {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        match V::Word::WIDE {
            true => halves(fmix64(keys)),
            false => turned(fmix32(keys)),
        }
    }
    /// The first half of MurmurHash3 (x64, 128 bits) without a seed.
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        let [c1, c2] = [0x87c3_7b91_1142_53d5, 0x4cf5_ad43_2745_937f].map(|c| source.splat(c));
        let (mut h1, mut h2) = (source.splat(0), source.splat(0));
        let five = source.splat(5);
        let mut index = 0;
        while index < S::WORDS {
            // A block has two numbers. The last one may have fewer bytes, which end the hash unmixed.
            let whole = 8 * index + 16 <= S::BYTES;
            h1 = h1.xor(source.word(index).mul64(c1).rotate64(31).mul64(c2));
            if whole {
                h1 = h1.rotate64(27).add64(h2).mul64(five).add64(source.splat(0x52dc_e729));
            }
            if index + 1 < S::WORDS {
                h2 = h2.xor(source.word(index + 1).mul64(c2).rotate64(33).mul64(c1));
            }
            if whole {
                h2 = h2.rotate64(31).add64(h1).mul64(five).add64(source.splat(0x3849_5ab5));
            }
            index += 2;
        }
        let bytes = source.splat(S::BYTES as u64);
        let (h1, h2) = (h1.xor(bytes), h2.xor(bytes));
        let h1 = h1.add64(h2);
        fmix64(h1).add64(fmix64(h2.add64(h1)))
    }
}

impl HashFamily for Knuth {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        match V::Word::WIDE {
            true => halves(keys.mul64(keys.longs(KNUTH64))),
            false => turned(keys.mul(keys.words(KNUTH))),
        }
    }
    /// A product's high bits are its best, so they come low before the next word comes in.
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        let mut hash = source.splat(0);
        for index in 0..S::WORDS {
            hash = hash.rotate64(32).xor(source.word(index)).mul64(source.splat(KNUTH64));
        }
        hash
    }
}

impl HashFamily for H2Hash {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        // H2 has 32 bits: the high half is hashed first, and mixed into the low one.
        let keys = if V::Word::WIDE { h2(keys.srl64(32)).xor(keys) } else { keys };
        turned(h2(keys))
    }
    /// Word by word, from two beginnings.
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        let mut hash = source.splat(GOLDEN.into());
        for index in 0..S::WORDS {
            let word = source.word(index);
            hash = h2(hash.xor(word.low_twice()));
            if 8 * index + 4 < S::BYTES {
                hash = h2(hash.xor(word.high_twice()));
            }
        }
        hash
    }
}

/// The final step of Open vSwitch's CRC hash, after the number of bytes.
#[inline(always)]
pub fn crc_finish<V: Lanes>(crc: V) -> V {
    let hash = crc.mul(crc.words(OVS));
    hash.xor(hash.srl(16))
}

impl HashFamily for Crc32c {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        // The instruction is one of scalar registers: lanes go through memory.
        let (simd, mut lanes) = (keys.simd(), [V::Word::default(); 16]);
        keys.store(&mut lanes, 0);
        for lane in &mut lanes[..V::N] {
            let crc = simd.crc32c(simd.crc32c(0, *lane), size_of::<V::Word>() as u64);
            *lane = V::Word::of_low(crc);
        }
        turned(crc_finish(V::load(simd, &lanes, 0)))
    }
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        let simd = source.splat(0).simd();
        let (mut crcs, mut lanes) = ([0; 16], [0; 16]);
        for index in 0..S::WORDS {
            source.word(index).store(&mut lanes, 0);
            for (crc, lane) in crcs.iter_mut().zip(lanes).take(S::Lanes::N) {
                *crc = match 8 * index + 4 < S::BYTES {
                    true => simd.crc32c(*crc, lane),
                    false => simd.crc32c(*crc, lane as u32),
                };
            }
        }
        for (crc, lane) in crcs.into_iter().zip(&mut lanes).take(S::Lanes::N) {
            *lane = simd.crc32c(crc, S::BYTES as u64).into();
        }
        let (first, second) = turned(crc_finish(S::Lanes::load(simd, &lanes, 0)));
        first.sll64(32).or(second.and(source.splat(u32::MAX.into())))
    }
}

impl HashFamily for Digested {
    #[inline(always)]
    fn pair<V: Lanes>(keys: V) -> (V, V) {
        halves(keys)
    }
    #[inline(always)]
    fn digest<S: KeyWords>(source: S) -> S::Lanes {
        source.word(0)
    }
}

#[cfg(test)]
mod tests {
    use fibula_simd::{Isa, Kernel, Scalar};

    use super::*;
    use crate::hash::nth;
    use crate::probe::{BitPositions, Bits};
    use crate::{Hash, Parameters, fmix64};

    /// The hashes and positions of the keys at one index.
    struct Hashes<'a, T, F>(&'a [T], u32, BitPositions<'a>, F);

    impl<T: Word, F: HashFamily> Kernel for Hashes<'_, T, F> {
        type Output = Vec<(u32, u32)>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<(u32, u32)> {
            let Self(keys, index, positions, _) = self;
            let index = S::Lanes::splat(simd, T::of_low(index));
            let mut all = Vec::new();
            for at in (0..keys.len()).step_by(S::Lanes::<T>::N) {
                let hashes = F::nth(S::Lanes::load(simd, keys, at), index);
                let mut lanes = [[T::default(); 16]; 2];
                hashes.store(&mut lanes[0], 0);
                positions.positions(hashes).store(&mut lanes[1], 0);
                all.extend((0..S::Lanes::<T>::N).map(|i| (lanes[0][i].low(), lanes[1][i].low())));
            }
            all
        }
    }

    fn check<T: Word>(keys: &[T]) {
        let sizes = [1, 2, 77, 1 << 20, (1 << 31) - 1, 1 << 31];
        let words = vec![0; sizes[5] as usize / 64];
        for (bits, index) in sizes.into_iter().flat_map(|bits| [0, 1, 2, 6, 31].map(|i| (bits, i)))
        {
            let parameters = Parameters::new(bits, 32);
            for hash in Hash::ALL {
                let bits = Bits::new(&words[..parameters.words()], parameters, hash).unwrap();
                let positions = BitPositions::new(bits);
                of_family!(hash, F => {
                    let expected: Vec<(u32, u32)> = keys
                        .iter()
                        .map(|key| nth::<T, F>(*key, index))
                        .map(|hash| (hash, parameters.position(hash)))
                        .collect();
                    assert_eq!(Scalar.run(Hashes(keys, index, positions, F {})), expected);
                    for isa in Isa::available() {
                        let got = isa.level().run(Hashes(keys, index, positions, F {}));
                        assert_eq!(got, expected, "{hash} {isa} {index} {parameters:?}");
                    }
                });
            }
        }
    }

    #[test]
    fn vectors_hash_as_scalars_do() {
        let mut keys: Vec<u64> = (0..2048).map(|i| fmix64(i * 0x1234_5677)).collect();
        keys[..6].copy_from_slice(&[0, 1, u64::MAX, u32::MAX.into(), 1 << 32, 1 << 63]);
        check(&keys);
        check(&keys.iter().map(|key| *key as u32).collect::<Vec<u32>>());
    }
}
