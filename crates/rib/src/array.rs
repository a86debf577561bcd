//! Arrays that are either in memory or in a mapped snapshot. One type covers both, so the same code uses the columns
//! and routes of a mapped file and of a new table.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::mapping::Mapped;

/// A cache line: gives [`AlignedBytes`] its alignment without `unsafe` allocation code.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes in memory, aligned to 64 as the sections of a snapshot require.
///
/// ```
/// use fibula_rib::AlignedBytes;
/// let bytes = AlignedBytes::from(&b"abc"[..]);
/// assert_eq!(bytes.as_ref(), b"abc");
/// assert_eq!(bytes.as_ref().as_ptr() as usize % 64, 0);
/// ```
#[derive(Clone)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0; 64]); len.div_ceil(64)], len }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::must_cast_slice(&self.lines)[..self.len]
    }
}

impl AsMut<[u8]> for AlignedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::must_cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.as_mut().copy_from_slice(bytes);
        aligned
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBytes({} bytes)", self.len)
    }
}

/// The bytes of a whole snapshot, in memory or mapped.
#[derive(Debug)]
pub(crate) enum Image {
    Memory(AlignedBytes),
    Mapped(Mapped),
}

impl AsRef<[u8]> for Image {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes.as_ref(),
            Self::Mapped(map) => map.as_ref(),
        }
    }
}

/// An immutable array of plain numbers.
pub(crate) enum Array<T> {
    Owned(Vec<T>),
    /// Part of a snapshot; [`Array::stored`] has checked place, alignment and size.
    Stored {
        image: Arc<Image>,
        place: Range<usize>,
        item: PhantomData<T>,
    },
}

impl<T: Pod> Array<T> {
    /// The items at `place`; `None` if the place is outside the image, is misaligned, or does not
    /// hold a whole number of items.
    pub(crate) fn stored(image: &Arc<Image>, place: Range<usize>) -> Option<Self> {
        let bytes = (**image).as_ref().get(place.clone())?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(Self::Stored { image: Arc::clone(image), place, item: PhantomData })
    }

    /// The bytes in memory.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(items) => items,
            Self::Stored { image, place, .. } => {
                bytemuck::cast_slice(&(**image).as_ref()[place.clone()])
            }
        }
    }
}

impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Owned(items) => Self::Owned(items.clone()),
            Self::Stored { image, place, .. } => {
                Self::Stored { image: Arc::clone(image), place: place.clone(), item: PhantomData }
            }
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}
