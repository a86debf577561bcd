use std::fmt::Debug;

use bytemuck::Pod;
use fibula_core::Addr;
use fibula_simd::Simd;

/// An address as a search over intervals sees it: a key of the high bits, and low bits that decide
/// only among routes longer than the key.
///
/// An IPv6 address is a 64-bit key (the network, as far as the routes of the Internet go) and 64 low
/// bits. An IPv4 address is only a key. Its low part has no bits: its first and its last value are 0,
/// and the compiler removes the code for long routes.
pub trait SearchAddr: Addr {
    /// The key.
    type Key: SearchKey;
    /// The low part with all its bits set.
    const LOW_MAX: u64;

    /// The high bits.
    fn high(self) -> Self::Key;
    /// The low bits.
    fn low(self) -> u64;
}

impl SearchAddr for u32 {
    type Key = u32;
    const LOW_MAX: u64 = 0;

    #[inline(always)]
    fn high(self) -> u32 {
        self
    }
    #[inline(always)]
    fn low(self) -> u64 {
        0
    }
}

impl SearchAddr for u128 {
    type Key = u64;
    const LOW_MAX: u64 = u64::MAX;

    #[inline(always)]
    fn high(self) -> u64 {
        (self >> 64) as u64
    }
    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }
}

/// A search key: an unsigned integer; a cache line holds 8 or 16 of them.
pub trait SearchKey: Pod + Ord + Debug + Send + Sync {
    /// A cache line of them.
    type Line: Pod + AsRef<[Self]> + AsMut<[Self]>;
    /// A key in every lane of a vector.
    type Splat<S: Simd>: Copy;

    /// Keys in a cache line.
    const LANES: usize;
    /// The largest key.
    const MAX: Self;

    /// The previous key, or `None` for 0.
    fn predecessor(self) -> Option<Self>;
    /// The next key, or `None` for [`Self::MAX`].
    fn successor(self) -> Option<Self>;
    /// Puts the key in every lane.
    fn splat<S: Simd>(self, simd: S) -> Self::Splat<S>;
    /// How many keys of the line are below the splat key.
    fn rank<S: Simd>(simd: S, line: &Self::Line, key: Self::Splat<S>) -> u32;
}

macro_rules! search_key {
    ($t:ty, $lanes:expr, $splat:ident, $splat_fn:ident, $rank_fn:ident) => {
        impl SearchKey for $t {
            type Line = [$t; $lanes];
            type Splat<S: Simd> = S::$splat;

            const LANES: usize = $lanes;
            const MAX: $t = <$t>::MAX;

            fn predecessor(self) -> Option<$t> {
                self.checked_sub(1)
            }
            fn successor(self) -> Option<$t> {
                self.checked_add(1)
            }
            #[inline(always)]
            fn splat<S: Simd>(self, simd: S) -> S::$splat {
                simd.$splat_fn(self)
            }
            #[inline(always)]
            fn rank<S: Simd>(simd: S, line: &[$t; $lanes], key: S::$splat) -> u32 {
                simd.$rank_fn(line, key)
            }
        }

        const _: () = assert!(size_of::<<$t as SearchKey>::Line>() == 64);
    };
}

search_key!(u32, 16, Splat32, splat32, rank32);
search_key!(u64, 8, Splat64, splat64, rank64);
