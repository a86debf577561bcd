use std::f64::consts::LN_2;

/// How large a filter is: its bits, and the positions of each key.
///
/// With `n` keys in `m` bits at `k` positions each, a bit is set with probability `1 - e^(-kn/m)`, and
/// a key that was not inserted passes with that to the power of `k`. The smallest filter for a rate
/// `f` has `m = n ln(1/f) / (ln 2)^2` bits, half of them set, and `k = m/n ln 2`.
///
/// ```
/// use fibula_filter::Shape;
/// let shape = Shape::for_rate(1_000_000, 0.01);
/// assert_eq!((shape.bits(), shape.hashes()), (9_585_059, 7));
/// assert!((shape.rate(1_000_000) - 0.01).abs() < 0.0001);
/// // A power of two: positions cost a shift, not a multiplication.
/// assert_eq!(shape.power_of_two().bits(), 1 << 24);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    bits: u32,
    hashes: u32,
}

impl Shape {
    /// The most bits that a filter can have: positions have 32 bits.
    pub const MAX_BITS: u32 = 1 << 31;
    /// The most positions that a key can have.
    pub const MAX_HASHES: u32 = 32;

    /// A filter of exactly so many bits, with so many positions for a key. Both are brought into
    /// 1..=[`Shape::MAX_BITS`] and 1..=[`Shape::MAX_HASHES`].
    pub fn new(bits: u32, hashes: u32) -> Self {
        Self { bits: bits.clamp(1, Self::MAX_BITS), hashes: hashes.clamp(1, Self::MAX_HASHES) }
    }

    /// The smallest filter that lets at most about `rate` of the other keys pass when `keys` keys
    /// are in it. Rates are brought into 1e-9..=0.99.
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

    /// The rate of false positives to be expected with so many keys inserted.
    pub fn rate(self, keys: usize) -> f64 {
        let (hashes, bits) = (f64::from(self.hashes), f64::from(self.bits));
        (1.0 - (-hashes * keys as f64 / bits).exp()).powf(hashes)
    }

    /// Where a hash points: the high bits of the product, so that a power of two of bits is a shift.
    #[inline(always)]
    pub(crate) fn position(self, hash: u32) -> u32 {
        ((u64::from(hash) * u64::from(self.bits)) >> 32) as u32
    }

    /// The 64-bit words that hold the bits.
    pub(crate) fn words(self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    /// By how much a hash is shifted to be a position, for a power of two above 1.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for vectors"))]
    pub(crate) fn shift(self) -> Option<u32> {
        (self.bits.is_power_of_two() && self.bits > 1).then(|| 32 - self.bits.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bloomfwd's table 5, AS65000: the filters of its 971,556 and 113,397 expanded prefixes.
    #[test]
    fn as_bloomfwd_sizes_them() {
        let table = [
            (0.01, 9_312_412, 1_086_917, 7),
            (0.1, 4_656_206, 543_459, 4),
            (0.3, 2_434_631, 284_163, 2),
        ];
        for (rate, first, second, hashes) in table {
            for (keys, bits) in [(971_556, first), (113_397, second)] {
                let shape = Shape::for_rate(keys, rate);
                assert_eq!(shape.hashes(), hashes, "{rate}");
                assert!(shape.bits().abs_diff(bits) < 10, "{shape:?}, theirs {bits}");
            }
        }
    }

    #[test]
    fn rates_come_out_as_asked_for() {
        for rate in [1e-6, 0.001, 0.01, 0.1, 0.3, 0.499, 0.5, 0.6, 0.9, 0.99] {
            let got = Shape::for_rate(100_000, rate).rate(100_000);
            assert!((got / rate - 1.0).abs() < 0.13, "{rate} {got}");
        }
    }

    #[test]
    fn a_power_of_two_is_a_shift() {
        for shift in 1..=31 {
            let shape = Shape::new(1 << shift, 3);
            assert_eq!(shape.shift(), Some(32 - shift));
            for hash in [0, 1, 0x1234_5678, u32::MAX] {
                assert_eq!(shape.position(hash), hash >> (32 - shift));
            }
        }
        assert_eq!(Shape::new(1, 3).position(u32::MAX), 0);
        assert_eq!(Shape::new(1000, 3).position(u32::MAX), 999);
        assert_eq!(Shape::new(0, 0), Shape::new(1, 1));
        assert_eq!(Shape::new(u32::MAX, 99).bits(), Shape::MAX_BITS);
    }
}
