//! Where a table's routes are: how many of each length, and how much of each part of the address space they cover.
//!
//! The server's overview and `fibula plot` draw these numbers.

use fibula_core::{Addr, Hop, Prefix, Routes};

/// The number of prefixes of each length, from 0 to 32 or 128.
///
/// ```
/// let prefixes = ["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"].map(|text| text.parse());
/// let lengths = fibula_fib::prefix_lengths::<u32>(prefixes.into_iter().flatten());
/// assert_eq!((lengths.len(), lengths[8], lengths[16]), (33, 1, 2));
/// ```
pub fn prefix_lengths<A: Addr>(prefixes: impl IntoIterator<Item = Prefix<A>>) -> Vec<u64> {
    let mut lengths = vec![0; usize::from(A::BITS) + 1];
    prefixes.into_iter().for_each(|prefix| lengths[usize::from(prefix.len())] += 1);
    lengths
}

/// The blocks of one size that a prefix consists of, in order of their addresses.
///
/// A route whose prefix is the whole space that is divided, or covers it, such as a default route, is left out: it
/// would fill every block and hide all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<A: Addr> {
    within: Prefix<A>,
    bits: u8,
}

impl<A: Addr> Blocks<A> {
    /// Divides `within` into two to the power of `bits` blocks.
    ///
    /// # Panics
    /// If a block would be the whole space, or smaller than an address, or if there would be more than 2²⁴ blocks.
    pub fn new(within: Prefix<A>, bits: u8) -> Self {
        let len = u32::from(within.len()) + u32::from(bits);
        let is_divided = bits <= 24 && (1..=u32::from(A::BITS)).contains(&len);
        assert!(is_divided, "{within} cannot be divided into 2^{bits} blocks");
        Self { within, bits }
    }

    /// Number of blocks.
    pub fn count(self) -> usize {
        1 << self.bits
    }

    /// The block of this number.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn prefix(self, number: usize) -> Prefix<A> {
        assert!(number < self.count(), "there are {} blocks", self.count());
        let first = self.within.first().to_u128() + ((number as u128) << self.shift());
        let prefix = Prefix::masked(A::from_u128(first), self.within.len() + self.bits);
        prefix.expect("blocks have at least one address")
    }

    /// For each block the share of its addresses that a prefix covers: 0 for none, 255 for all, at least 1 for one.
    /// The prefixes are in order, as those of a table are.
    ///
    /// ```
    /// use fibula_core::Prefix;
    /// use fibula_fib::Blocks;
    ///
    /// let slash16 = Blocks::new(Prefix::<u32>::ALL, 16);
    /// let shares = slash16.coverage(["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/17"].into_iter().flat_map(str::parse));
    /// assert_eq!((shares[0x0a00], shares[0x0b00], shares[0x0b01]), (255, 128, 0));
    /// ```
    pub fn coverage(self, prefixes: impl IntoIterator<Item = Prefix<A>>) -> Vec<u8> {
        let mut covered = vec![0_u128; self.count()];
        // Prefixes in order are nested or disjoint: one that ends before the last counted address is nested.
        let mut counted: Option<A> = None;
        for prefix in prefixes {
            if prefix.len() <= self.within.len() || counted.is_some_and(|end| prefix.last() <= end)
            {
                continue;
            }
            counted = Some(prefix.last());
            self.split(prefix.first(), prefix.last(), |block, addresses| {
                covered[block] += addresses;
            });
        }
        // Of large blocks the high bits are enough, and do not overflow.
        let dropped = self.shift().saturating_sub(64);
        let all = 1_u128 << (self.shift() - dropped);
        let share = |&count: &u128| match count {
            0 => 0,
            count => ((count >> dropped).max(1) * 255).div_ceil(all) as u8,
        };
        covered.iter().map(share).collect()
    }

    /// For each block the number of different hops that its addresses have.
    pub fn hops(self, routes: &Routes<A>) -> Vec<u32> {
        let routes: Routes<A> =
            routes.iter().filter(|route| route.prefix.len() > self.within.len()).collect();
        let mut counts = vec![0; self.count()];
        let mut seen: Vec<Hop> = Vec::new();
        let mut current = 0;
        let mut count = |block: usize, seen: &mut Vec<Hop>| {
            seen.sort_unstable();
            seen.dedup();
            counts[block] = seen.len() as u32;
            seen.clear();
        };
        for range in routes.ranges().filter(|range| !range.hop.is_none()) {
            self.split(range.first, range.last, |block, _| {
                if block != current {
                    count(current, &mut seen);
                    current = block;
                }
                seen.push(range.hop);
            });
        }
        count(current, &mut seen);
        counts
    }

    /// Number of bits of an address behind those of its block.
    fn shift(self) -> u32 {
        u32::from(A::BITS) - u32::from(self.within.len()) - u32::from(self.bits)
    }

    /// Calls `each` for every block that has some of these addresses, with the number of them.
    fn split(self, first: A, last: A, mut each: impl FnMut(usize, u128)) {
        let (first, last) = (first.max(self.within.first()), last.min(self.within.last()));
        if first > last {
            return;
        }
        let base = self.within.first().to_u128();
        let (first, last) = (first.to_u128() - base, last.to_u128() - base);
        for block in first >> self.shift()..=last >> self.shift() {
            let begin = block << self.shift();
            let end = begin + ((1 << self.shift()) - 1);
            each(block as usize, last.min(end) - first.max(begin) + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled<A: Addr>(blocks: Blocks<A>, texts: &[&str]) -> Vec<(usize, u8)> {
        let prefixes: Vec<Prefix<A>> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let shares = (0..).zip(blocks.coverage(prefixes));
        shares.filter(|(_, share)| *share > 0).collect()
    }

    #[test]
    fn nested_prefixes_count_once() {
        let blocks = Blocks::new(Prefix::<u32>::ALL, 16);
        let of = |texts: &[&str]| filled(blocks, texts);
        assert_eq!(of(&["0.0.0.0/0"]), []);
        assert_eq!(of(&["10.0.0.0/16", "10.0.0.0/24", "10.0.255.0/24"]), [(0x0a00, 255)]);
        assert_eq!(of(&["10.0.0.0/17", "10.0.128.0/32"]), [(0x0a00, 128)]);
        assert_eq!(of(&["10.0.0.1/32"]), [(0x0a00, 1)]);
        assert_eq!(of(&["255.254.0.0/15"]), [(0xfffe, 255), (0xffff, 255)]);
        assert_eq!(of(&["0.0.0.0/1", "128.0.0.0/1"]).len(), blocks.count());
    }

    #[test]
    fn a_part_of_ipv6_is_divided() {
        let blocks = Blocks::new("2000::/3".parse::<Prefix<u128>>().unwrap(), 16);
        assert_eq!(blocks.prefix(0).to_string(), "2000::/19");
        assert_eq!(blocks.prefix(0xffff).to_string(), "3fff:e000::/19");
        let of = |texts: &[&str]| filled(blocks, texts);
        assert_eq!(of(&["::/0", "::/1"]), [], "what covers the part is left out");
        assert_eq!(of(&["1fff::/16", "2000::1/128", "4000::/16", "ff00::/8"]), [(0, 1)]);
        assert_eq!(of(&["3fff:e000::/20", "3fff:f000::/20"]), [(0xffff, 255)]);
        let all = Blocks::new(Prefix::<u128>::ALL, 1);
        assert_eq!(filled(all, &["::/1", "8000::/2"]), [(0, 255), (1, 128)]);
    }

    #[test]
    fn hops_of_a_block_are_different_ones() {
        let list = [
            ("0.0.0.0/0", 9),
            ("10.0.0.0/15", 1),
            ("10.0.0.0/24", 2),
            ("10.0.2.0/24", 2),
            ("10.0.3.0/24", 1),
            ("255.255.255.255/32", 3),
        ];
        let route = |(prefix, hop): (&str, u32)| (prefix.parse().unwrap(), Hop::new(hop));
        let routes: Routes<u32> = list.map(route).into_iter().collect();
        let counts = Blocks::new(Prefix::ALL, 16).hops(&routes);
        let some = (0..).zip(counts).filter(|(_, count)| *count > 0);
        let expected: Vec<(usize, u32)> = vec![(0x0a00, 2), (0x0a01, 1), (0xffff, 1)];
        assert_eq!(some.collect::<Vec<_>>(), expected);
        assert_eq!(Blocks::new(Prefix::ALL, 4).hops(&Routes::<u32>::default()), [0; 16]);
    }

    #[test]
    #[should_panic(expected = "cannot be divided")]
    fn a_block_is_smaller_than_the_space() {
        let _ = Blocks::new(Prefix::<u128>::ALL, 0);
    }
}
