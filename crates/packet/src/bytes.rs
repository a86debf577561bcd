//! Reads big-endian fields: from a slice, with `None` beyond its end, and from the fixed part of a header, which is
//! complete.

/// `N` bytes at an offset.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// One byte.
#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes, big-endian.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(|field| u16::from_be_bytes(*field))
}

/// Four bytes, big-endian.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(|field| u32::from_be_bytes(*field))
}

/// The fixed part of a header, of `LEN` bytes. Its fields lie at offsets that the compiler checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed<'a, const LEN: usize>(&'a [u8; LEN]);

impl<'a, const LEN: usize> Fixed<'a, LEN> {
    /// The header at the beginning of `bytes`, and the bytes behind it; `None` if it is cut.
    #[inline]
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        bytes.split_first_chunk().map(|(fixed, rest)| (Self(fixed), rest))
    }

    /// The `N` bytes at `AT`.
    #[inline]
    pub(crate) fn array<const AT: usize, const N: usize>(self) -> [u8; N] {
        const { assert!(AT + N <= LEN, "a field behind the end of its header") };
        let mut field = [0; N];
        field.copy_from_slice(&self.0[AT..AT + N]);
        field
    }

    #[inline]
    pub(crate) fn u8<const AT: usize>(self) -> u8 {
        let [byte] = self.array::<AT, 1>();
        byte
    }

    #[inline]
    pub(crate) fn u16<const AT: usize>(self) -> u16 {
        u16::from_be_bytes(self.array::<AT, 2>())
    }

    #[inline]
    pub(crate) fn u32<const AT: usize>(self) -> u32 {
        u32::from_be_bytes(self.array::<AT, 4>())
    }

    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8; LEN] {
        self.0
    }
}
