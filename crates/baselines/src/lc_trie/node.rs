use bytemuck::Pod;

/// A node of the trie: branch, skip and address in one word.
pub trait Node: sealed::Sealed + Pod + Send + Sync {
    /// Bits of an address.
    const ADDRESS_BITS: u32;
    /// The name of the stored trie.
    #[doc(hidden)]
    const TRIE: &'static str;
    #[doc(hidden)]
    fn new(branch: u32, skip: u32, address: usize) -> Self;
    /// Branch, skip, address.
    #[doc(hidden)]
    fn parts(self) -> (u32, u32, usize);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Bits of the branch: at most 31.
const BRANCH_BITS: u32 = 5;
/// Bits of the skip: at most 127.
const SKIP_BITS: u32 = 7;

macro_rules! node {
    ($t:ty, $address_bits:expr, $trie:expr) => {
        impl Node for $t {
            const ADDRESS_BITS: u32 = $address_bits;
            const TRIE: &'static str = $trie;

            fn new(branch: u32, skip: u32, address: usize) -> Self {
                debug_assert!(branch < 1 << BRANCH_BITS && skip < 1 << SKIP_BITS);
                debug_assert!(address >> $address_bits == 0);
                let (branch, skip) = (<$t>::from(branch), <$t>::from(skip));
                branch << (SKIP_BITS + $address_bits) | skip << $address_bits | address as $t
            }

            #[inline(always)]
            fn parts(self) -> (u32, u32, usize) {
                let branch =
                    (self >> (SKIP_BITS + $address_bits)) as u32 & ((1 << BRANCH_BITS) - 1);
                let skip = (self >> $address_bits) as u32 & ((1 << SKIP_BITS) - 1);
                (branch, skip, (self & ((1 << $address_bits) - 1)) as usize)
            }
        }
    };
}

node!(u32, 20, "trie32");
node!(u64, 32, "trie64");
