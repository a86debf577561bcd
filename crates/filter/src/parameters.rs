use std::f64::consts::LN_2;

/// The parameters of a filter: its number of bits, and the number of positions of each key.
///
/// With `n` keys in `m` bits at `k` positions each, a bit is set with probability `1 - e^(-kn/m)`, and
/// a key that was not inserted passes with that to the power of `k`. The smallest filter for a rate
/// `f` has `m = n ln(1/f) / (ln 2)^2` bits, half of them set, and `k = m/n ln 2`.
///
/// ```
/// use fibula_filter::Parameters;
/// let parameters = Parameters::for_rate(1_000_000, 0.01);
/// assert_eq!((parameters.bits(), parameters.hashes()), (9_585_059, 7));
/// assert!((parameters.rate(1_000_000) - 0.01).abs() < 0.0001);
/// // A power of two: positions cost a shift, not a multiplication.
/// assert_eq!(parameters.power_of_two().bits(), 1 << 24);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    bits: u32,
    hashes: u32,
}

impl Parameters {
    /// The most bits that a filter can have: positions have 32 bits.
    pub const MAX_BITS: u32 = 1 << 31;
    /// The most positions that a key can have.
    pub const MAX_HASHES: u32 = 32;

    /// A filter of exactly `bits` bits, with `hashes` positions for a key. Both are clamped to
    /// 1..=[`Parameters::MAX_BITS`] and 1..=[`Parameters::MAX_HASHES`].
    pub fn new(bits: u32, hashes: u32) -> Self {
        Self { bits: bits.clamp(1, Self::MAX_BITS), hashes: hashes.clamp(1, Self::MAX_HASHES) }
    }

    /// The smallest filter with a false-positive rate of at most about `rate` when `keys` keys are in it. Rates are
    /// brought into 1e-9..=0.99.
    ///
    /// Positions are rounded up to a whole number, as Bloomfwd does. Above one half that number is 1,
    /// the optimum far from it, and the formula's filter too small (0.99 pass for 0.9), so the size is
    /// solved for one position then.
    pub fn for_rate(keys: usize, rate: f64) -> Self {
        let (keys, rate) = (keys.max(1) as f64, rate.clamp(1e-9, 0.99));
        let bits = match rate {
            0.5.. => keys / -(1.0 - rate).ln(),
            _ => keys * -rate.ln() / (LN_2 * LN_2),
        };
        let bits = bits.ceil().min(f64::from(Self::MAX_BITS));
        Self::new(bits as u32, (-rate.log2()).ceil() as u32)
    }

    /// The smallest filter for that rate whose keys have `hashes` positions. Fewer positions than
    /// [`Parameters::for_rate`] takes cost bits, not many where rates are high: at 30 % one takes 2.8 bits a
    /// key and two 2.5, and each costs a cache access.
    pub fn for_positions(keys: usize, rate: f64, hashes: u32) -> Self {
        let (keys, rate) = (keys.max(1) as f64, rate.clamp(1e-9, 0.99));
        let positions = f64::from(hashes.clamp(1, Self::MAX_HASHES));
        let bits = keys * positions / -(1.0 - rate.powf(1.0 / positions)).ln();
        Self::new(bits.ceil().min(f64::from(Self::MAX_BITS)) as u32, hashes)
    }

    /// Bloomfwd's sizes to the letter (its equations 1 and 3, table 5): `m = n lg(1/f) / ln 2` and
    /// `k = lg(1/f)`, both rounded up. Up to a rate of one half that is [`Parameters::for_rate`]; above, the
    /// filter is too small for the rate. Rates are brought into 1e-9..=0.99.
    pub fn as_published(keys: usize, rate: f64) -> Self {
        let positions = -rate.clamp(1e-9, 0.99).log2();
        let bits = (keys.max(1) as f64 * positions / LN_2).ceil();
        Self::new(bits.min(f64::from(Self::MAX_BITS)) as u32, positions.ceil() as u32)
    }

    /// As many positions, and the next power of two of bits.
    #[must_use]
    pub fn power_of_two(self) -> Self {
        Self { bits: self.bits.next_power_of_two(), ..self }
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The positions of a key.
    pub fn hashes(self) -> u32 {
        self.hashes
    }

    /// The expected rate of false positives with `keys` keys inserted.
    pub fn rate(self, keys: usize) -> f64 {
        let (hashes, bits) = (f64::from(self.hashes), f64::from(self.bits));
        (1.0 - (-hashes * keys as f64 / bits).exp()).powf(hashes)
    }

    /// Where a hash ([`Hash::nth`](crate::Hash::nth)) points: the high bits of the product, so that a power of two
    /// of bits is a shift.
    #[inline(always)]
    pub fn position(self, hash: u32) -> u32 {
        ((u64::from(hash) * u64::from(self.bits)) >> 32) as u32
    }

    /// The 64-bit words that hold the bits.
    pub fn words(self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    /// By how much a hash is shifted to be a position, for a power of two above 1.
    pub(crate) fn shift(self) -> Option<u32> {
        (self.bits.is_power_of_two() && self.bits > 1).then(|| 32 - self.bits.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bloomfwd's table 5, all of it, from the counts of its table 3.
    #[test]
    fn as_bloomfwd_sizes_them() {
        let rates = [(0.01, 7), (0.1, 4), (0.3, 2), (0.6, 1), (0.9, 1)];
        let table = [
            (971_555, [9_312_412, 4_656_206, 2_434_631, 1_032_974, 213_057]),
            (113_397, [1_086_917, 543_459, 284_163, 120_566, 24_868]),
            (1_037_247, [9_942_074, 4_971_037, 2_599_250, 1_102_819, 227_463]),
            (67_397, [646_005, 323_003, 168_891, 71_658, 14_780]),
            (1_007_513, [9_657_071, 4_828_536, 2_524_739, 1_071_205, 220_942]),
            (209_488, [2_007_955, 1_003_978, 524_959, 222_732, 45_940]),
            (982_940, [9_421_538, 4_710_769, 2_463_161, 1_045_079, 215_553]),
            (19_863, [190_389, 95_195, 49_775, 21_119, 4_356]),
            (1_004_073, [9_624_099, 4_812_050, 2_516_119, 1_067_548, 220_188]),
            (203_360, [1_949_218, 974_609, 509_603, 216_216, 44_596]),
            (1_000_128, [9_586_286, 4_793_143, 2_506_233, 1_063_353, 219_323]),
            (151_391, [1_451_092, 725_546, 379_373, 160_962, 33_200]),
            (1_024_899, [9_823_717, 4_911_859, 2_568_307, 1_089_690, 224_755]),
            (147_201, [1_410_931, 705_466, 368_873, 156_507, 32_281]),
        ];
        for (keys, sizes) in table {
            for ((rate, hashes), bits) in rates.into_iter().zip(sizes) {
                assert_eq!(
                    Parameters::as_published(keys, rate),
                    Parameters { bits, hashes },
                    "{keys} {rate}"
                );
            }
        }
        for rate in [0.01, 0.1, 0.3, 0.49] {
            assert_eq!(Parameters::for_rate(1000, rate), Parameters::as_published(1000, rate));
        }
    }

    #[test]
    fn rates_are_as_requested() {
        for rate in [1e-6, 0.001, 0.01, 0.1, 0.3, 0.499, 0.5, 0.6, 0.9, 0.99] {
            let got = Parameters::for_rate(100_000, rate).rate(100_000);
            assert!((got / rate - 1.0).abs() < 0.13, "{rate} {got}");
            // Lower rates take more bits than there are at one position.
            for hashes in (1..=8).filter(|_| rate > 0.0005) {
                let got = Parameters::for_positions(100_000, rate, hashes).rate(100_000);
                assert!((got / rate - 1.0).abs() < 0.01, "{rate} {hashes} {got}");
            }
        }
    }

    #[test]
    fn a_power_of_two_is_a_shift() {
        for shift in 1..=31 {
            let parameters = Parameters::new(1 << shift, 3);
            assert_eq!(parameters.shift(), Some(32 - shift));
            for hash in [0, 1, 0x1234_5678, u32::MAX] {
                assert_eq!(parameters.position(hash), hash >> (32 - shift));
            }
        }
        assert_eq!(Parameters::new(1, 3).position(u32::MAX), 0);
        assert_eq!(Parameters::new(1000, 3).position(u32::MAX), 999);
        assert_eq!(Parameters::new(0, 0), Parameters::new(1, 1));
        assert_eq!(Parameters::new(u32::MAX, 99).bits(), Parameters::MAX_BITS);
    }
}
