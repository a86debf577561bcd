//! Big-endian fields at an offset of a slice: `None` beyond its end, never a panic.

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
