use core::fmt;

/// The result of a lookup: an index into a dense table that the caller keeps beside the engine.
///
/// A hop is a small integer, 0 to [`Hop::MAX_INDEX`]. The table that the engine was built from gives it its meaning
/// (a next hop, an origin AS, a row of attributes). [`Hop::NONE`] means that no route covers the address; it is not
/// hop 0.
///
/// ```
/// use fibula_core::Hop;
/// let hop = Hop::new(3);
/// assert_eq!(hop.index(), Some(3));
/// assert_eq!(Hop::NONE.index(), None);
/// assert_ne!(Hop::NONE, Hop::new(0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Hop(u32);

impl Hop {
    /// No route covers the address.
    pub const NONE: Self = Self(u32::MAX);
    /// The largest index that a hop can hold, 2^32 - 2.
    pub const MAX_INDEX: u32 = u32::MAX - 1;

    /// The hop with this index.
    ///
    /// # Panics
    /// If `index` is `u32::MAX`, which means [`Hop::NONE`].
    #[inline]
    pub const fn new(index: u32) -> Self {
        assert!(index != u32::MAX, "hop index u32::MAX stands for Hop::NONE");
        Self(index)
    }

    /// The index, or `None` for [`Hop::NONE`].
    #[inline]
    pub const fn index(self) -> Option<u32> {
        if self.0 == u32::MAX { None } else { Some(self.0) }
    }

    /// `true` for [`Hop::NONE`].
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// The 32 bits as an engine stores them: the index, or `u32::MAX` for [`Hop::NONE`].
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`Hop::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl Default for Hop {
    /// [`Hop::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index() {
            Some(i) => write!(f, "Hop({i})"),
            None => f.write_str("Hop::NONE"),
        }
    }
}
