//! The blocks of address space that generated tables live in.

use fibula_core::{Addr, Family, Prefix};

use crate::traffic::RESERVED_V4;

/// A block in use, with the part of all roots that it gets when there is room.
pub(super) struct Block<A> {
    pub(super) prefix: Prefix<A>,
    pub(super) weight: u32,
}

/// Blocks of IPv6 space given to the registries, and how many of 70,000 roots each held in the table
/// of 2022 (see the profile of that year).
#[rustfmt::skip]
const V6: [(u128, u8, u32); 15] = [
    (0x2001 << 112,  16,  6_316), (0x2003 << 112,  18,     8), (0x2400 << 112, 12, 13_652),
    (0x2600 << 112,  16,  1_999), (0x2602 << 112,  16, 2_131), (0x2603 << 112, 16,    415),
    (0x2604 << 112,  16,  1_606), (0x2605 << 112,  16, 1_270), (0x2606 << 112, 16,  1_715),
    (0x2607 << 112,  16,  1_393), (0x2620 << 112,  23, 2_071), (0x2800 << 112, 12, 11_871),
    (0x2a00 << 112,  12, 21_460), (0x2a10 << 112,  12, 3_030), (0x2c00 << 112, 12,    581),
];

/// The blocks in use, in order. IPv4: everything but the reserved space, each block by its size.
pub(super) fn blocks<A: Addr>() -> Vec<Block<A>> {
    let block = |(addr, len, weight): (u128, u8, u32)| Block {
        prefix: Prefix::masked(A::from_u128(addr), len).expect("a length of the family"),
        weight,
    };
    match A::FAMILY {
        Family::V6 => V6.into_iter().map(block).collect(),
        Family::V4 => v4().map(block).collect(),
    }
}

fn v4() -> impl Iterator<Item = (u128, u8, u32)> {
    let starts = RESERVED_V4.iter().map(|(block, len)| block + (!u32::netmask(*len)));
    let ends = RESERVED_V4.iter().skip(1).map(|(block, _)| block - 1);
    starts.zip(ends).flat_map(|(before, last)| Prefix::split_range(before + 1, last)).map(
        |prefix| {
            // In /16s, the size of the smallest block.
            (prefix.addr().into(), prefix.len(), 1 << (16 - prefix.len()))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_disjoint_and_in_order() {
        fn disjoint<A: Addr>() -> Vec<Block<A>> {
            let blocks = blocks::<A>();
            assert!(blocks.windows(2).all(|pair| pair[0].prefix.last() < pair[1].prefix.first()));
            blocks
        }
        assert_eq!(disjoint::<u128>().len(), V6.len());
        let sizes: u64 = disjoint::<u32>().iter().map(|block| u64::from(block.weight)).sum();
        // 224 /8s less 0, 10 and 127, less 64 + 1 + 16 + 1 /16s.
        assert_eq!(sizes, 221 * 256 - 82);
    }
}
