//! Which code stands for which hop.

use fibula_core::{Hop, Routes};
use fibula_simd::Table;

use super::record::{ESCAPED, Leaf};

/// Entries of the table of hops.
pub(super) const CODES: usize = 256;
/// Hops that 8-bit codes can stand for: the others are none and the escape.
const MOST: usize = CODES - 2;
/// A table has codes of 8 bits if at most one route in so many has a hop without one.
const RARE: usize = 64;

/// The width of a table's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits, for the 254 hops that most routes have; the others' addresses are found singly.
    Bits8,
    /// 16 bits, for hops below 65,534; the others' addresses are found singly.
    Bits16,
    /// 32 bits.
    Bits32,
}

impl Width {
    /// The narrowest that serves these routes well.
    pub(super) fn of(routes: &Routes<u32>) -> Self {
        let hop_count = routes.hop_count();
        if hop_count <= u16::MAX.into() {
            let common: usize = counts(routes).iter().take(MOST).map(|(count, _)| count).sum();
            if (routes.len() - common) * RARE <= routes.len() {
                return Self::Bits8;
            }
        }
        if hop_count < u16::MAX.into() { Self::Bits16 } else { Self::Bits32 }
    }
}

/// How many routes have each hop that any has, the most frequent first.
fn counts(routes: &Routes<u32>) -> Vec<(usize, u32)> {
    let mut counts = vec![0usize; routes.hop_count() as usize];
    for route in routes.iter() {
        counts[route.hop.to_bits() as usize] += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().zip(0..).filter(|(count, _)| *count > 0).collect();
    counts.sort_unstable_by_key(|&(count, hop)| (usize::MAX - count, hop));
    counts
}

/// The codes of hops while records are made.
pub(super) enum Codes {
    /// Code 0 is none, *h* + 1 is hop *h*.
    Plain,
    /// Translated by the table of hops.
    Translated {
        /// The hop of each code.
        hops: [u32; CODES],
        /// The code of each hop, counted from none; the escape for one that has none.
        codes: Vec<u8>,
    },
}

impl Codes {
    /// The codes for a new table.
    pub(super) fn new<V: Leaf>(routes: &Routes<u32>) -> Self {
        if !V::TRANSLATED {
            return Self::Plain;
        }
        let hops: Vec<u32> = if (MOST + 1..=u16::MAX.into()).contains(&(routes.hop_count() as usize))
        {
            counts(routes).into_iter().take(MOST).map(|(_, hop)| hop).collect()
        } else {
            (0..MOST as u32).collect()
        };
        let mut table = [Hop::NONE.to_bits(); CODES];
        table[1..=hops.len()].copy_from_slice(&hops);
        table[CODES - 1] = ESCAPED;
        Self::of_table(&table)
    }

    /// The codes of a table that is there; of those without a table of hops if it is empty.
    pub(super) fn of_table(hops: &[u32]) -> Self {
        let Some(&hops) = hops.first_chunk::<CODES>() else { return Self::Plain };
        let mut codes = Vec::new();
        // The first code of a hop counts, hence the last is set first.
        for (code, hop) in (0..u8::MAX).zip(hops).rev() {
            let at = hop.wrapping_add(1) as usize;
            // Tables of ours have no hops beyond; this one may be anybody's.
            if at <= u16::MAX.into() {
                codes.resize(codes.len().max(at + 1), u8::MAX);
                codes[at] = code;
            }
        }
        Self::Translated { hops, codes }
    }

    /// The table of hops.
    pub(super) fn table(&self) -> Table<u32> {
        match self {
            Self::Plain => Table::default(),
            Self::Translated { hops, .. } => Table::from_slice(hops),
        }
    }

    /// The code of a hop, `None` if it has none.
    #[inline]
    pub(super) fn code<V: Leaf>(&self, hop: Hop) -> Option<u32> {
        let plain = hop.to_bits().wrapping_add(1);
        let code = match self {
            Self::Plain => plain,
            Self::Translated { codes, .. } => (*codes.get(plain as usize)?).into(),
        };
        (code < V::ESCAPE).then_some(code)
    }
}

/// Whether the table of hops translates as is done without one: code 0 to none, *h* + 1 to hop *h*.
pub(super) fn is_identity(hops: &[u32]) -> bool {
    (0u32..).zip(hops).take(CODES - 1).all(|(code, hop)| *hop == code.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use fibula_core::Prefix;

    use super::*;

    fn routes(hops: impl Iterator<Item = u32>) -> Routes<u32> {
        (0u32..).zip(hops).map(|(i, hop)| (Prefix::host(i), Hop::new(hop))).collect()
    }

    #[test]
    fn few_hops_are_their_codes() {
        let routes = routes(0..254);
        assert_eq!(Width::of(&routes), Width::Bits8);
        let codes = Codes::new::<u8>(&routes);
        assert_eq!(codes.code::<u8>(Hop::NONE), Some(0));
        assert_eq!(codes.code::<u8>(Hop::new(253)), Some(254));
        assert_eq!(codes.code::<u8>(Hop::new(254)), None);
        assert!(is_identity(&codes.table()));
    }

    #[test]
    fn of_many_hops_the_frequent_ones_have_codes() {
        let routes = routes((0..1000).chain([700; 60_000]));
        assert_eq!(Width::of(&routes), Width::Bits8);
        let codes = Codes::new::<u8>(&routes);
        assert_eq!(codes.code::<u8>(Hop::new(700)), Some(1));
        assert_eq!(codes.code::<u8>(Hop::NONE), Some(0));
        assert_eq!(codes.code::<u8>(Hop::new(999)), None);
        assert!(!is_identity(&codes.table()));
    }

    #[test]
    fn widths() {
        assert_eq!(Width::of(&routes(0..2000)), Width::Bits16);
        assert_eq!(Width::of(&routes([65_533].into_iter().chain(0..500))), Width::Bits16);
        assert_eq!(Width::of(&routes([65_534].into_iter().chain(0..500))), Width::Bits32);
        assert_eq!(Codes::Plain.code::<u16>(Hop::new(65_533)), Some(65_534));
        assert_eq!(Codes::Plain.code::<u16>(Hop::new(65_534)), None);
        assert_eq!(Codes::Plain.code::<u32>(Hop::new(Hop::MAX_INDEX)), None);
        assert_eq!(Codes::Plain.code::<u32>(Hop::NONE), Some(0));
    }
}
