use bytemuck::Pod;

/// A pointer: two bits for the kind of its target, and the target's number.
pub trait Pointer: sealed::Sealed + Pod + Send + Sync {
    /// Bits of the number.
    const INDEX_BITS: u32;
    /// The largest code of a hop.
    const HOPS: u32;
    /// The names of the stored pointers of level 1, and of the dense chunks of levels 2 and 3.
    #[doc(hidden)]
    const POINTERS: [&'static str; 3];
    /// A sparse chunk: the slots of 8 heads in 8 bytes, then 8 pointers.
    #[doc(hidden)]
    type Sparse: Pod + Send + Sync + AsRef<[Self]> + AsMut<[Self]>;
    #[doc(hidden)]
    fn new(target: Target, index: usize) -> Self;
    #[doc(hidden)]
    fn parts(self) -> (Target, usize);
}

/// The kind of a pointer's target.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Hop,
    Sparse,
    Dense,
    VeryDense,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

macro_rules! pointer {
    ($t:ty, $index_bits:expr, $hops:expr, $sparse:expr, $names:expr) => {
        impl Pointer for $t {
            const INDEX_BITS: u32 = $index_bits;
            const HOPS: u32 = $hops;
            const POINTERS: [&'static str; 3] = $names;
            type Sparse = [$t; $sparse];

            /// A number that is too large is truncated; the build counts and refuses such a table.
            fn new(target: Target, index: usize) -> Self {
                (target as $t) << $index_bits | index as $t & ((1 << $index_bits) - 1)
            }

            #[inline(always)]
            fn parts(self) -> (Target, usize) {
                let target = match self >> $index_bits {
                    0 => Target::Hop,
                    1 => Target::Sparse,
                    2 => Target::Dense,
                    _ => Target::VeryDense,
                };
                (target, (self & ((1 << $index_bits) - 1)) as usize)
            }
        }

        const _: () = assert!(size_of::<<$t as Pointer>::Sparse>() == 8 + 8 * size_of::<$t>());
    };
}

pointer!(u16, 14, (1 << 14) - 1, 12, ["pointers16", "pointers16_2", "pointers16_3"]);
pointer!(u32, 30, super::code::DIRECT_MOST, 10, ["pointers32", "pointers32_2", "pointers32_3"]);

/// The heads' slots of a sparse chunk.
#[inline(always)]
pub(super) fn heads<P: Pointer>(chunk: &P::Sparse) -> &[u8] {
    &bytemuck::cast_slice(chunk.as_ref())[..8]
}

/// The pointers of a sparse chunk.
#[inline(always)]
pub(super) fn pointers<P: Pointer>(chunk: &P::Sparse) -> &[P] {
    &chunk.as_ref()[8 / size_of::<P>()..]
}
