use fibula_core::{Addr, Prefix};

/// The generators' source of randomness: splitmix64 (Steele, Lea, Flood 2014).
///
/// Our own twenty lines, so that the same seed gives the same tables and keys on every machine, with every version of
/// every dependency: benchmark records and checksums rely on it. For the same reason the generators use no
/// floating-point function beyond `+ - * /`, whose results IEEE 754 fixes to the last bit.
///
/// ```
/// use fibula_testkit::Rng;
/// assert_eq!(Rng::new(0).next_u64(), 0xe220_a839_7b1d_cdaf); // the published test vector
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 for `n` = 0). Scaled, not rejected: the bias is below `n` / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `true` once in `1 / p` times.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// One of the items, `None` if there is none.
    #[inline]
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len() as u64) as usize).copied()
    }

    /// An address, uniform over the whole space.
    #[inline]
    pub fn addr<A: Addr>(&mut self) -> A {
        let low = u128::from(self.next_u64());
        if A::BITS <= 64 {
            // The high bits of splitmix64 are no better than the low ones: either would do.
            A::from_u128(low >> (64 - A::BITS))
        } else {
            A::from_u128(u128::from(self.next_u64()) << 64 | low)
        }
    }

    /// An address, uniform within the prefix: its bits, then random host bits.
    #[inline]
    pub fn addr_in<A: Addr>(&mut self, prefix: Prefix<A>) -> A {
        prefix.addr().or(self.addr::<A>().and(A::netmask(prefix.len()).not()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        let five: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            five,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn stays_within() {
        let mut rng = Rng::new(1);
        let prefix: Prefix<u128> = "2001:db8::/32".parse().unwrap();
        for n in 1..1000 {
            assert!(rng.below(n) < n);
            assert!((0.0..1.0).contains(&rng.unit()));
            assert!(prefix.contains(rng.addr_in(prefix)));
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.choose::<u8>(&[]), None);
        assert_eq!(rng.choose(&[4]), Some(4));
        assert_eq!(rng.addr_in(Prefix::host(7u32)), 7);
    }
}
